"""Model and detector against figures of the published implementation, in float64.

The two files hold random weights, windows and what the implementation made of them (figures, not
code); `[effect, cause]` there is `[cause, effect]` here.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from causalformer.config import Settings
from causalformer.explain.propagation import gradients, predicted_slots, relevance
from causalformer.explain.scores import causal_scores, main_lag
from causalformer.model import CausalityAwareTransformer

pytestmark = pytest.mark.usefixtures("double")

LINEAR = {
    "attention.embedding": "embedding",
    "attention.embedding_norm": "embedding_norm",
    "attention.query": "query",
    "attention.key": "key",
    "feed_forward.inner": "feed_forward_in",
    "feed_forward.outer": "feed_forward_out",
    "output": "output",
}
OVER_SLOTS = {
    "attention_norm": "norm_after_attention",
    "feed_forward_norm": "norm_after_feed_forward",
}


@pytest.fixture(params=["small", "fmri_like"])
def case(request, double):
    path = Path(__file__).parent / "published" / f"published_rules_{request.param}.npz"
    figures = dict(np.load(path))
    n_series, window, d_model, n_heads, d_ffn, n_samples = map(int, figures["sizes"])
    settings = Settings(
        window=window,
        d_model=d_model,
        n_heads=n_heads,
        d_ffn=d_ffn,
        temperature=float(figures["tau"]),
        batch_size=n_samples,
    )
    model = CausalityAwareTransformer(n_series, settings)
    weights = {
        name.removeprefix("weights."): torch.from_numpy(values)
        for name, values in figures.items()
        if name.startswith("weights.")
    }
    state = {
        "attention.mask": weights["mask"].transpose(1, 2),
        "shared_kernel": weights["kernel"],
        "head_weight": weights["heads.weight"][0],
    }
    for part in ("weight", "bias"):
        state |= {f"{ours}.{part}": weights[f"{name}.{part}"] for ours, name in LINEAR.items()}
        state |= {
            f"{ours}.{part}": weights[f"{name}.{part}"][:, 0] for ours, name in OVER_SLOTS.items()
        }
    model.load_state_dict(state)
    windows = torch.from_numpy(figures["x"]).transpose(1, 2).contiguous()
    return model, windows, settings, figures


def assert_equals(ours, published):
    """Equal to 1e-10, every figure for itself; zeros are zeros."""
    if isinstance(ours, torch.Tensor):
        ours = ours.detach().numpy()
    np.testing.assert_allclose(ours, published, rtol=1e-10, atol=0)


def test_prediction(case):
    model, x, _, figures = case
    assert_equals(model(x)[..., 1:].transpose(1, 2), figures["prediction"])


def test_attention(case):
    model, x, _, figures = case
    assert_equals(model.attention(x).transpose(2, 3), figures["attention"])


def test_relevance_of_attention(case):
    model, x, _, figures = case
    ours = relevance(model, x).attention  # sample, head, cause, effect
    assert_equals(ours.permute(3, 0, 1, 2), figures["relevance_of_attention"])


def test_gradient_of_attention(case):
    model, x, _, figures = case
    assert_equals(
        gradients(model, x).attention.permute(3, 0, 1, 2), figures["gradient_of_attention"]
    )


def test_scores_of_attention(case):
    model, x, settings, figures = case
    assert_equals(causal_scores(model, x, settings).pair.T, figures["attention_score"])


def test_scores_of_kernels(case):
    model, x, settings, figures = case
    by_slot = causal_scores(model, x, settings).lag.transpose(1, 0, 2)[..., ::-1]
    assert_equals(by_slot, figures["kernel_score"])


def test_lags_are_read_as_published(case):
    model, x, settings, figures = case
    scores = causal_scores(model, x, settings)
    lag = main_lag(scores.lag, np.ones_like(scores.lag, dtype=bool))
    assert (settings.window - 1 - figures["kernel_score"].argmax(-1) == lag.T).all()
    assert (np.diag(lag) >= 1).all()


def test_one_sweep_equals_the_loop_over_targets(case):
    model, x, _, _ = case
    together, slopes = relevance(model, x), gradients(model, x)
    for target in range(x.shape[1]):
        one_hot = torch.zeros_like(x)
        one_hot[:, target] = predicted_slots(x)[:, target]
        for whole, alone in (
            (together, relevance(model, x, start=one_hot)),
            (slopes, gradients(model, x, start=one_hot)),
        ):
            for ours, one in ((whole.attention, alone.attention), (whole.kernel, alone.kernel)):
                axis = ours.dim() - 1 if ours is whole.attention else 2
                torch.testing.assert_close(
                    ours.select(axis, target), one.select(axis, target), rtol=1e-10, atol=1e-12
                )
                others = [i for i in range(x.shape[1]) if i != target]
                assert (one.index_select(axis, torch.tensor(others)) == 0).all()
