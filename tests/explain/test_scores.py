import numpy as np
import pytest
import torch

from causalformer.explain import scores as scores_module
from causalformer.explain.propagation import gradients, relevance
from causalformer.explain.scores import by_lag, causal_scores
from small_models import SMALL, make_model, make_windows


def settings(**changes):
    return SMALL.model_copy(update=changes)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("sign", ["both", "positive"])
def test_scores_are_the_modulated_relevance_averaged_over_heads_and_samples(sign):
    model, x = make_model(), make_windows(n_samples=7)
    share, slope = relevance(model, x), gradients(model, x)
    expected = np.zeros((3, 3))
    for b in range(7):
        for h in range(2):
            product = slope.attention[b, h].abs() * share.attention[b, h]
            kept = product.abs() if sign == "both" else product.clamp(min=0)
            expected += kept.numpy() / (7 * 2)
    scores = causal_scores(model, x, settings(relevance_sign=sign))
    np.testing.assert_allclose(scores.pair, expected)


@pytest.mark.usefixtures("double")
def test_the_untrained_first_slot_can_be_left_out():
    model, x = make_model(), make_windows(n_samples=4)
    start = torch.ones_like(x)
    start[..., 0] = 0.0
    product = gradients(model, x, start=start).attention.abs()
    product = product * relevance(model, x, start=start).attention
    scores = causal_scores(model, x, settings(explained_slots="predicted"))
    np.testing.assert_allclose(scores.pair, product.abs().mean((0, 1)).numpy())


@pytest.mark.usefixtures("double")
def test_chunks_do_not_change_the_scores(monkeypatch):
    model, x = make_model(), make_windows(n_samples=7)
    whole = causal_scores(model, x, SMALL)
    monkeypatch.setattr(scores_module, "_CHUNK_VALUES", 2 * model.kernel.numel())
    np.testing.assert_allclose(causal_scores(model, x, SMALL).lag, whole.lag)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "ablation",
    [{"interpretation": False}, {"relevance": False}, {"gradient": False}, {"bias": False}],
    ids=lambda change: f"without {next(iter(change))}",
)
def test_every_ablation_changes_the_scores(ablation):
    model, x = make_model(), make_windows(n_samples=4)
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
    tap[1, 1, 0] = 1.0  # the oldest tap, shifted
    lag = by_lag(tap).argmax(-1)
    assert lag.tolist() == [[1, 0], [2, 4]]


def test_scores_need_no_gradient_bookkeeping():
    model, x = make_model(), make_windows().float()
    model = model.float()
    assert isinstance(causal_scores(model, x, SMALL).pair, np.ndarray)
    assert torch.is_grad_enabled()
