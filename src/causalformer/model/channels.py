"""The default network: the paper's kernels, kept as channels instead of summed over heads.

The paper adds all heads up to one number per (effect, slot) before its feed forward layer, so one
bent line, shared by all effects, must carry everything. Here every effect has its own channels,
each with one kernel per cause, its own feed forward layer, and a straight path beside it::

    past[b, cause, lag] ── kernel ──► channel[b, fold, effect, channel] ── SiLU ── mix ──► +
                        └─ skip ───────────────────────────────────────────────────────► prediction

All folds and all effects are one computation. Temporal priority holds by construction: only slots
before the predicted one go in. Among many series every effect looks at its own candidates only.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
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
    """Predict every effect from the past of its causes, once per fold.

    Parameters
    ----------
    n_folds, n_series, max_lag, n_channels : int
        Sizes. The folds are independent networks that learn from different slots.
    generator : torch.Generator, optional
        Source of the initial weights.
    temperature : float, optional
        Adds attention over the causes with this temperature; none unless given.
    sources : tensor ``[effect, position]``, optional
        Which series every effect looks at, itself first; unless given every series is an effect of
        all of them. "Cause" then means a position among the candidates of each effect.
    """

    sources: Int[Tensor, "effect cause"] | None

    def __init__(
        self,
        n_folds: int,
        n_series: int,
        max_lag: int,
        n_channels: int,
        generator: torch.Generator | None = None,
        temperature: float | None = None,
        sources: Int[Tensor, "effect cause"] | None = None,
    ) -> None:
        super().__init__()
        self.n_folds, self.n_series, self.max_lag = n_folds, n_series, max_lag
        self.n_channels = n_channels
        n_effects, n_causes = (n_series, n_series) if sources is None else sources.shape
        self.n_effects, self.n_causes = n_effects, n_causes
        self.register_buffer("sources", sources)
        outputs = (n_folds, n_effects)  # fold, effect

        def draw(*shape: int, fan_in: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator) / math.sqrt(fan_in))

        n_inputs = n_causes * max_lag
        self.kernel = draw(n_causes, max_lag, *outputs, n_channels, fan_in=n_inputs)
        self.threshold = nn.Parameter(torch.zeros(*outputs, n_channels))
        self.absent = nn.Parameter(torch.zeros(n_causes, *outputs, n_channels))
        self.mix = draw(*outputs, n_channels, fan_in=n_channels)
        self.skip = nn.Parameter(torch.zeros(n_causes, max_lag, *outputs))
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

    def inputs(self, past: Float[Tensor, "b series lag"]) -> Float[Tensor, "*effect b cause lag"]:
        """Give what goes in: the past of all series, or of its candidates for every effect."""
        if self.sources is None:
            return past
        max_lag = past.shape[2]
        columns = self.sources[..., None] * max_lag + torch.arange(max_lag, device=past.device)
        taken = past.flatten(1).index_select(1, columns.flatten())  # much faster than indexing
        return taken.view(len(past), *columns.shape).transpose(0, 1)

    def channels(
        self, past: Float[Tensor, "b series lag"], removed: Float[Tensor, "b cause"] | None = None
    ) -> Float[Tensor, "b fold effect channel"]:
        """Convolve the causes with their kernels; a removed cause adds what stands for absence."""
        return self._channels(without(self.inputs(past), removed), removed)

    def channels_of_fold(
        self, past: Float[Tensor, "b series lag"], k: int
    ) -> Float[Tensor, "b effect channel"]:
        """Give the channels of one fold, with all causes."""
        if self.attention is not None:
            return self.channels(past)[:, k]
        summed: Tensor
        inputs, kernel = self.inputs(past), self.kernel[:, :, k].flatten(0, 1)
        if self.sources is None:
            summed = (inputs.flatten(1) @ kernel.flatten(1)).unflatten(1, kernel.shape[1:])
        else:
            summed = (inputs.flatten(2) @ kernel.transpose(0, 1)).transpose(0, 1)
        return summed + self.threshold[k]

    def forward(
        self, past: Float[Tensor, "b series lag"], removed: Float[Tensor, "b cause"] | None = None
    ) -> Float[Tensor, "b fold effect"]:
        """Predict the next slot of every effect, by every fold."""
        inputs = without(self.inputs(past), removed)
        bent = (nn.functional.silu(self._channels(inputs, removed)) * self.mix).sum(-1)
        if self.sources is None:
            straight = (inputs.flatten(1) @ self.skip.flatten(2).flatten(0, 1)).view_as(bent)
        else:
            by_effect = self.skip.flatten(0, 1).permute(2, 0, 1)  # effect, (cause, lag), fold
            straight = (inputs.flatten(2) @ by_effect).permute(1, 2, 0)
        return bent + straight + self.offset

    def _channels(
        self, inputs: Float[Tensor, "*effect b cause lag"], removed: Float[Tensor, "b cause"] | None
    ) -> Float[Tensor, "b fold effect channel"]:
        if self.sources is not None:
            by_effect = self.kernel.flatten(0, 1).permute(2, 0, 1, 3).flatten(2)
            summed = (inputs.flatten(2) @ by_effect).transpose(0, 1)  # b, effect, (fold, channel)
            summed = summed.unflatten(2, (self.n_folds, -1)).transpose(1, 2)
        elif self.attention is None:
            summed = inputs.flatten(1) @ self.kernel.flatten(2).flatten(0, 1)
        else:
            weights = self.attention(inputs, removed)
            summed = torch.einsum("bjl,bfje,jlfec->bfec", inputs, weights, self.kernel).flatten(1)
        if removed is not None:
            summed = summed + (removed @ self.absent.flatten(1)).view(-1, *summed.shape[1:])
        return summed.view(-1, *self.threshold.shape) + self.threshold

    def straight(self, past: Float[Tensor, "b series lag"]) -> Float[Tensor, "*effect b column"]:
        """Give the columns of the straight path: every lag of every cause, and a constant."""
        inputs = self.inputs(past)
        return torch.cat([inputs.flatten(-2), torch.ones_like(inputs[..., 0, :1])], dim=-1)

    @property
    def own(self) -> Bool[Tensor, "cause effect"]:
        """Which cause is the effect itself."""
        own = torch.eye(self.n_causes, dtype=torch.bool)
        return own if self.sources is None else own[:, :1].expand(-1, self.n_effects)

    def penalty(self, lag_weight: Float[Tensor, " lag"]) -> Float[Tensor, ""]:
        """Sum of squared weights; kernels and skips of long lags count more."""
        by_lag = self.kernel.square().sum((0, 2, 3, 4)) + self.skip.square().sum((0, 2, 3))
        return by_lag @ lag_weight + self.mix.square().sum() + self.absent.square().sum()


_EFFECT_AXIS = {
    "kernel": 3,
    "threshold": 1,
    "absent": 2,
    "mix": 1,
    "skip": 3,
    "offset": 1,
    "sources": 0,
}


def side_by_side(networks: Sequence[ChannelNetwork]) -> ChannelNetwork:
    """Join networks with candidates of their own into one for all their effects."""
    first = networks[0]
    parts = [network.state_dict() for network in networks]
    joined = {name: torch.cat([p[name] for p in parts], a) for name, a in _EFFECT_AXIS.items()}
    network = ChannelNetwork(
        first.n_folds,
        first.n_series,
        first.max_lag,
        first.n_channels,
        sources=torch.zeros_like(joined["sources"]),
    )
    network.load_state_dict(joined)
    return network


def without(
    inputs: Float[Tensor, "*effect b cause lag"], removed: Float[Tensor, "b cause"] | None
) -> Float[Tensor, "*effect b cause lag"]:
    """Put zero where a cause is removed."""
    return inputs if removed is None else inputs * (1 - removed)[..., None]
