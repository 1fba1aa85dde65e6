"""The gradient written out against autograd's, in double precision."""

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.model.channel_loss import masked_source_loss
from causalformer.model.channels import ChannelNetwork

SOURCES = torch.tensor([[0, 2], [1, 0], [2, 1]])


def slow_loss(model, past, now, learns, removed, ridge, lag_weight):
    """The same loss by its definition, for autograd."""
    sources = torch.arange(3).expand(3, -1) if model.sources is None else model.sources
    kept = past[:, sources] * (1 - removed)[:, None, :, None]  # b, effect, cause, lag
    summed = torch.einsum("bejl,jlfec->bfec", kept, model.kernel)
    summed = summed + torch.einsum("bj,jfec->bfec", removed, model.absent) + model.threshold
    bent = (torch.nn.functional.silu(summed) * model.mix).sum(-1)
    predicted = bent + torch.einsum("bejl,jlfe->bfe", kept, model.skip) + model.offset
    error = (predicted - now[:, None]).square()
    mean = (error * learns).sum(0) / learns.sum(0).clamp(min=1)
    by_lag = model.kernel.square().sum((0, 2, 3, 4)) + model.skip.square().sum((0, 2, 3))
    penalty = by_lag @ lag_weight + model.mix.square().sum() + model.absent.square().sum()
    return mean.sum() + ridge * penalty


def drawn(sources, n_effects, seed):
    """Draw a network with large weights, and samples that some folds may not see."""
    generator = torch.Generator().manual_seed(seed)
    model = ChannelNetwork(3, 3, 2, 4, generator, sources=sources).double()
    for weight in model.parameters():
        weight.data = torch.randn(weight.shape, generator=generator, dtype=torch.float64)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    learns = (normal(7, 3, n_effects) > -0.5).double()
    removed = torch.zeros(7, model.n_causes, dtype=torch.float64)
    removed[1, 1] = removed[4, 0] = 1
    weight = torch.tensor([1.0, 4.0], dtype=torch.float64)
    return model, (normal(7, 3, 2), normal(7, 3), learns, removed, 0.3, weight)


folds_at_once = pytest.mark.parametrize("few", [0, 512], ids=["one fold at a time", "all folds"])


@folds_at_once
@given(st.integers(0, 2**31), st.sampled_from([None, SOURCES]), st.sampled_from([1, 3]))
def test_equals_autograd(few, seed, sources, n_effects):
    model, arguments = drawn(sources, n_effects, seed)
    results = []
    for loss in (masked_source_loss, slow_loss):
        with patch("causalformer.model.channel_loss._FEW_CHANNELS", few):
            value = loss(model, *arguments)
        results.append([value, *torch.autograd.grad(2.5 * value, list(model.parameters()))])
    for ours, reference in zip(*results, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-10)


@folds_at_once
@pytest.mark.parametrize("sources", [None, SOURCES], ids=["all causes", "candidates"])
def test_threads_that_share_the_folds_change_no_bit(sources, few, monkeypatch):
    monkeypatch.setattr("causalformer.model.channel_loss._FEW_CHANNELS", few)
    model, arguments = drawn(sources, 1, 0)
    losses = []
    with ThreadPoolExecutor(3) as pool:
        for share in (map, pool.map):
            model.zero_grad()
            masked_source_loss(model, *arguments, share=share).backward()
            losses.append([w.grad for w in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*losses, strict=True))


def test_on_an_accelerator_no_sample_is_picked_out(monkeypatch):
    """There all samples go through; those that do not count change nothing."""
    model, arguments = drawn(None, 1, 0)
    monkeypatch.setattr("causalformer.model.channel_loss._FEW_CHANNELS", 0)
    usual = masked_source_loss(model, *arguments)
    monkeypatch.setattr("causalformer.model.channel_loss.PICKS_SAMPLES", ())
    torch.testing.assert_close(masked_source_loss(model, *arguments), usual)
