import numpy as np
import pytest
import torch

from causalformer.explain import scores as scores_module
from causalformer.explain.propagation import gradients, relevance
from causalformer.explain.scores import by_lag, causal_scores, main_lag
from small_models import SMALL, make_model, make_windows


def settings(**changes):
    return SMALL.model_copy(update=changes)


@pytest.mark.usefixtures("double")
def test_scores_of_pairs_are_positive_parts_averaged_over_heads_and_samples():
    model, x = make_model(), make_windows(n_samples=7)
    share, slope = relevance(model, x), gradients(model, x)
    expected = np.zeros((3, 3))
    for b in range(7):
        for h in range(2):
            product = slope.attention[b, h].abs() * share.attention[b, h]
            expected += product.clamp(min=0).numpy() / (7 * 2)
    np.testing.assert_allclose(causal_scores(model, x, SMALL).pair, expected)


@pytest.mark.usefixtures("double")
def test_scores_of_lags_multiply_sums_over_a_batch_and_are_averaged_over_batches():
    model, x = make_model(), make_windows(n_samples=7)
    expected = np.zeros((3, 3, 5))
    for batch in (x[:3], x[3:6], x[6:]):
        share, slope = (
            sum(attribute(model, window[None]).kernel for window in batch)
            for attribute in (relevance, gradients)
        )
        expected += (slope.abs() * share).clamp(min=0).mean(0).numpy() / 3
    scores = causal_scores(model, x, settings(batch_size=3))
    np.testing.assert_allclose(scores.lag, by_lag(expected))


@pytest.mark.usefixtures("double")
def test_chunks_do_not_change_the_scores(monkeypatch):
    model, x = make_model(), make_windows(n_samples=7)
    whole = causal_scores(model, x, SMALL)
    monkeypatch.setattr(scores_module, "_CHUNK_VALUES", 2 * model.kernel.numel())
    parts = causal_scores(model, x, SMALL)
    np.testing.assert_allclose(parts.lag, whole.lag)
    np.testing.assert_allclose(parts.pair, whole.pair)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "ablation",
    [
        {"interpretation": False},
        {"relevance": False},
        {"gradient": False},
        {"relevance_bias": True},
        {"relevance_layers": "all"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_ablation_changes_the_scores(ablation):
    model, x = make_model(normalisation="published"), make_windows(n_samples=4)
    full = causal_scores(model, x, SMALL).pair
    assert not np.allclose(causal_scores(model, x, settings(**ablation)).pair, full)


@pytest.mark.usefixtures("double")
def test_without_interpretation_scores_are_the_attention():
    model, x = make_model(), make_windows(n_samples=4)
    scores = causal_scores(model, x, settings(interpretation=False))
    expected = model.attention(x).mean((0, 1)).detach().numpy()
    np.testing.assert_allclose(scores.pair, expected)


def test_lags_count_back_from_the_current_slot_and_self_terms_one_more():
    tap = np.zeros((2, 2, 4))
    tap[0, 1, 3] = 1.0  # the current slot
    tap[1, 0, 1] = 1.0  # two slots before it
    tap[0, 0, 3] = 1.0  # shifted right by one
    tap[1, 1, 1] = 1.0  # two before that
    assert by_lag(tap).argmax(-1).tolist() == [[1, 0], [2, 3]]


def test_of_equal_scores_the_longest_lag_is_read_and_what_is_not_usable_never():
    scores = np.zeros((1, 1, 4))
    usable = np.ones((1, 1, 4), dtype=bool)
    assert main_lag(scores, usable).tolist() == [[3]]
    usable[..., 3] = False
    assert main_lag(scores, usable).tolist() == [[2]]
    scores[..., 3] = 9.0
    scores[..., 1] = 1.0
    assert main_lag(scores, usable).tolist() == [[1]]


def test_scores_need_no_gradient_bookkeeping():
    model, x = make_model(), make_windows().float()
    model = model.float()
    assert isinstance(causal_scores(model, x, SMALL).pair, np.ndarray)
    assert torch.is_grad_enabled()
