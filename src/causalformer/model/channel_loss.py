r"""What the default network learns from, with the gradient written out.

A fold skips the samples that it may not learn from, touches its channels half as often as autograd
would, and shares nothing with the other folds: several threads can take one each. With
:math:`z = X W` the channels, :math:`h = \mathrm{SiLU}(z)` and :math:`e` the error of an effect,

.. math:: \partial_{mix} = \sum_b g_b h_b, \quad
          \partial_W = X^T \left( g\, mix^T \odot \mathrm{SiLU}'(z) \right), \quad
          g_b = 2 e_b / n ,

and to each the derivative of the penalty is added.
"""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.model.channels import ChannelNetwork
from causalformer.parallel import Map

PICKS_SAMPLES = ("cpu",)
"""Devices where samples that do not count are left out; to ask an accelerator costs more."""

_FEW_CHANNELS = 640  # of a fold, up to which all folds at once are faster than two threads


def masked_source_loss(
    model: ChannelNetwork,
    past: Float[Tensor, "b series lag"],
    now: Float[Tensor, "b effect"],
    learns: Float[Tensor, "b fold #effect"],
    removed: Float[Tensor, "b cause"],
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
    share: Map = map,
) -> Float[Tensor, ""]:
    """Squared error of every fold on its own training slots, plus the penalty.

    In part of the samples one cause is removed, so that one network learns to predict with and
    without each of them. `learns` is one where a fold may learn an effect from a slot, else zero.
    The loss does not depend on who shares the folds.
    """
    # of every input: its lags, what stands for its absence, and the threshold, which is free
    weight = lag_weight.repeat(model.n_causes)
    weight = torch.cat([weight, torch.ones_like(removed[0]), torch.zeros_like(weight[:1])])
    inputs = _inputs(model, past, removed)
    arguments = (share, inputs, now, learns, ridge * weight, *_weights(model))
    loss: Tensor = _Loss.apply(*arguments)  # type: ignore[no-untyped-call]
    return loss


def _inputs(
    model: ChannelNetwork, past: Float[Tensor, "b series lag"], removed: Float[Tensor, "b cause"]
) -> Float[Tensor, "b *effect input"]:
    """Give the lags of every cause, zero where it is removed, then which one is, and a one."""
    lags = model.inputs(past).flatten(-2).movedim(-2, 0)  # b, *effect, lag of a cause
    left, flags = (1 - removed).repeat_interleave(model.max_lag, dim=1), removed
    if lags.ndim == 3:
        left, flags = left[:, None], flags[:, None]
    n_lags, n_flags = lags.shape[-1], removed.shape[1]
    inputs = lags.new_empty(*lags.shape[:-1], n_lags + n_flags + 1)
    torch.mul(lags, left, out=inputs[..., :n_lags])
    inputs[..., n_lags:-1] = flags
    inputs[..., -1] = 1.0
    return inputs


def _weights(model: ChannelNetwork) -> tuple[nn.Parameter, ...]:
    return model.kernel, model.absent, model.threshold, model.mix, model.skip, model.offset


class _Loss(torch.autograd.Function):
    """Sum over folds of mean squared errors and penalty, and its gradient by the weights."""

    @staticmethod
    def forward(
        ctx: Any,
        share: Map,
        inputs: Float[Tensor, "b *effect input"],
        now: Float[Tensor, "b effect"],
        learns: Float[Tensor, "b fold #effect"],
        shrink: Float[Tensor, " input"],
        *weights: Tensor,
    ) -> Float[Tensor, ""]:
        gradients = [torch.empty_like(weight) for weight in weights]
        n_folds, n_effects, n_channels = weights[0].shape[2:]

        def of(folds: slice) -> Tensor:
            some, target, counts = inputs, now, learns[:, folds]
            n_together = counts.shape[1]
            if n_together > 1:  # as if the effects of another fold were other effects
                target = now.repeat(1, n_together)
                counts = counts.expand(-1, -1, n_effects)
            counts = counts.flatten(1)
            if n_together == 1 and now.device.type in PICKS_SAMPLES:
                rows = counts.any(1).nonzero()[:, 0]
                some, target, counts = (x.index_select(0, rows) for x in (some, target, counts))
            if some.ndim == 3:
                some = some.transpose(0, 1)
            return _one_fold(
                some, target.T, counts.T, shrink, _at(weights, folds), _at(gradients, folds)
            )

        if inputs.ndim == 2 and n_effects * n_channels <= _FEW_CHANNELS:
            losses = [of(slice(n_folds))]
        else:
            losses = list(share(of, [slice(k, k + 1) for k in range(n_folds)]))
        ctx.gradients = gradients
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx: Any, *slope: Tensor) -> tuple[Tensor | None, ...]:
        return (None, None, None, None, None, *(g * slope[0] for g in ctx.gradients))


def _at(weights: Iterable[Tensor], folds: slice) -> list[Tensor]:
    """Take what belongs to some folds, without copying; the same order as `_weights`."""
    axes = (2, 1, 0, 0, 2, 0)  # of the folds, each followed by that of the effects
    taken = [w[(slice(None),) * axis + (folds,)] for w, axis in zip(weights, axes, strict=True)]
    return [w.view(*w.shape[:a], -1, *w.shape[a + 2 :]) for w, a in zip(taken, axes, strict=True)]


@torch.no_grad()
def _one_fold(
    inputs: Float[Tensor, "*effect b input"],
    now: Float[Tensor, "effect b"],
    counts: Float[Tensor, "#effect b"],
    shrink: Float[Tensor, " input"],
    weights: list[Tensor],
    gradients: list[Tensor],
) -> Float[Tensor, ""]:
    """Give the loss of one fold, or of several side by side; write the gradient of the weights."""
    kernel, absent, threshold, mix, skip, offset = weights
    n_lags = len(shrink) - len(absent) - 1
    whole = torch.cat([kernel.flatten(0, 1), absent, threshold[None]])  # input, effect, channel
    beside = nn.functional.pad(skip.flatten(0, 1).T, (0, len(absent) + 1))  # effect, input
    ridge = shrink[n_lags]  # as of what stands for absence
    summed = inputs @ whole.transpose(0, 1)  # effect, b, channel
    bent = nn.functional.silu(summed)
    mixed = bent * mix[:, None]
    wrong = mixed.sum(-1) + (beside[:, None] @ inputs.mT)[:, 0] + offset[:, None] - now
    slope = wrong * counts / counts.sum(1, keepdim=True).clamp(min=1)
    loss = (slope * wrong).sum() + ridge * mix.square().sum()
    loss += shrink @ (whole.square().sum((1, 2)) + beside.square().sum(0))
    slope = 2.0 * slope[:, None]  # effect, one, b
    through = torch.mul(slope.mT, mix[:, None], out=mixed)
    d_summed = torch.ops.aten.silu_backward.grad_input(through, summed, grad_input=through)
    d_whole = (inputs.mT @ d_summed).transpose(0, 1)
    d_whole = torch.addcmul(d_whole, shrink[:, None, None], whole, value=2.0)
    d_beside = torch.addcmul((slope @ inputs)[:, 0], shrink, beside, value=2.0)
    d_kernel, d_absent, d_threshold, d_mix, d_skip, d_offset = gradients
    d_kernel.copy_(d_whole[:n_lags].view_as(kernel))
    d_absent.copy_(d_whole[n_lags:-1])
    d_threshold.copy_(d_whole[-1])
    d_mix.copy_(torch.addcmul((slope @ bent)[:, 0], ridge, mix, value=2.0))
    d_skip.copy_(d_beside[:, :n_lags].T.view_as(d_skip))
    d_offset.copy_(slope.sum((1, 2)))
    return loss
