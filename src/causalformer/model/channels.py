"""The default network: the paper's kernels, kept as channels instead of summed over heads.

The paper adds all heads up to one number per (effect, slot) before its feed forward layer, so one
bent line, shared by all effects, must carry everything. Here every effect has its own channels,
each with one kernel per cause, its own feed forward layer, and a straight path beside it::

    past[b, cause, lag] ── kernel ──► channel[b, fold, effect, channel] ── SiLU ── mix ──► +
                        └─ skip ───────────────────────────────────────────────────────► prediction

All folds and all effects are one computation. Temporal priority holds by construction: only slots
before the predicted one go in.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from causalformer.errors import SettingsError


class SourceAttention(nn.Module):
    r"""Attention of every effect over its causes, from their past only; an option.

    .. math:: \mathcal{A} = N \cdot \mathrm{softmax}\left( X F X^T / \tau \odot M \right)

    ``F`` is the folded product of the paper's embedding, query and key weights, ``M`` its mask. The
    factor ``N`` makes equal attention one. A removed cause is neither seen nor counted.
    """

    def __init__(self, n_folds: int, n_series: int, max_lag: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.form = nn.Parameter(torch.zeros(n_folds, max_lag, max_lag))
        self.mask = nn.Parameter(torch.ones(n_folds, n_series, n_series))

    def forward(
        self, past: Float[Tensor, "b cause lag"], removed: Float[Tensor, "b cause"] | None
    ) -> Float[Tensor, "b fold cause effect"]:
        """Weigh the causes of every effect; the mean weight is one."""
        logits = torch.einsum("bjl,flm,bim->bfji", past, self.form, past)
        logits = logits * self.mask / self.temperature
        if removed is not None:
            logits = logits.masked_fill(removed[:, None, :, None] > 0, -torch.inf)
        return past.shape[1] * torch.softmax(logits, dim=2)


class ChannelNetwork(nn.Module):
    """Predict every effect from the past of all causes, once per fold.

    Parameters
    ----------
    n_folds, n_series, max_lag, n_channels : int
        Sizes. The folds are independent networks that learn from different slots.
    generator : torch.Generator, optional
        Source of the initial weights.
    temperature : float, optional
        Adds attention over the causes with this temperature; none unless given.
    """

    def __init__(
        self,
        n_folds: int,
        n_series: int,
        max_lag: int,
        n_channels: int,
        generator: torch.Generator | None = None,
        temperature: float | None = None,
    ) -> None:
        super().__init__()
        self.n_folds, self.n_series, self.max_lag = n_folds, n_series, max_lag
        self.n_channels = n_channels
        outputs = (n_folds, n_series)  # fold, effect

        def draw(*shape: int, fan_in: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator) / math.sqrt(fan_in))

        n_inputs = n_series * max_lag
        self.kernel = draw(n_series, max_lag, *outputs, n_channels, fan_in=n_inputs)
        self.threshold = nn.Parameter(torch.zeros(*outputs, n_channels))
        self.absent = nn.Parameter(torch.zeros(n_series, *outputs, n_channels))
        self.mix = draw(*outputs, n_channels, fan_in=n_channels)
        self.skip = nn.Parameter(torch.zeros(n_series, max_lag, *outputs))
        self.offset = nn.Parameter(torch.zeros(outputs))
        self.attention = (
            None
            if temperature is None
            else SourceAttention(n_folds, n_series, max_lag, temperature)
        )

    def allow(self, allowed: Bool[Tensor, "cause effect lag"]) -> None:
        """Cut the links that are not allowed: their weights are zero and get no gradient."""
        if self.attention is not None:
            raise SettingsError(
                "attention looks at all series and cannot respect prior knowledge; leave one out"
            )
        by_lag = allowed.transpose(1, 2).unsqueeze(2).to(self.skip)  # cause, lag, fold, effect
        by_cause = allowed.any(-1).unsqueeze(1).to(self.skip)  # cause, fold, effect
        kept = {self.skip: by_lag, self.kernel: by_lag[..., None], self.absent: by_cause[..., None]}
        for weight, mask in kept.items():
            weight.data *= mask
            weight.register_hook(lambda gradient, mask=mask: gradient * mask)

    def channels(
        self, past: Float[Tensor, "b cause lag"], removed: Float[Tensor, "b cause"] | None = None
    ) -> Float[Tensor, "b fold effect channel"]:
        """Convolve the causes with their kernels; a removed cause adds what stands for absence."""
        if removed is not None:
            past = past * (1 - removed)[..., None]
        if self.attention is None:
            summed = past.flatten(1) @ self.kernel.flatten(2).flatten(0, 1)
        else:
            weights = self.attention(past, removed)
            summed = torch.einsum("bjl,bfje,jlfec->bfec", past, weights, self.kernel).flatten(1)
        if removed is not None:
            summed = summed + removed @ self.absent.flatten(1)
        return summed.view(-1, *self.threshold.shape) + self.threshold

    def forward(
        self, past: Float[Tensor, "b cause lag"], removed: Float[Tensor, "b cause"] | None = None
    ) -> Float[Tensor, "b fold effect"]:
        """Predict the next slot of every effect, by every fold."""
        bent = (nn.functional.silu(self.channels(past, removed)) * self.mix).sum(-1)
        if removed is not None:
            past = past * (1 - removed)[..., None]
        straight = past.flatten(1) @ self.skip.flatten(2).flatten(0, 1)
        return bent + straight.view_as(bent) + self.offset

    def penalty(self, lag_weight: Float[Tensor, " lag"]) -> Float[Tensor, ""]:
        """Sum of squared weights; kernels and skips of long lags count more."""
        by_lag = self.kernel.square().sum((0, 2, 3, 4)) + self.skip.square().sum((0, 2, 3))
        return by_lag @ lag_weight + self.mix.square().sum() + self.absent.square().sum()


def masked_source_loss(
    model: ChannelNetwork,
    past: Float[Tensor, "b cause lag"],
    now: Float[Tensor, "b effect"],
    learns: Float[Tensor, "b fold #effect"],
    removed: Float[Tensor, "b cause"],
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
) -> Float[Tensor, ""]:
    """Squared error of every fold on its own training slots, plus the penalty.

    In part of the samples one cause is removed, so that one network learns to predict with and
    without each of them. `learns` is one where a fold may learn an effect from a slot, else zero.
    """
    error = (model(past, removed) - now[:, None]).square()  # b, fold, effect
    mean = (error * learns).sum(0) / learns.sum(0).clamp(min=1)
    return torch.add(mean.sum(), ridge * model.penalty(lag_weight))
