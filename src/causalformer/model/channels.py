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


class ChannelNetwork(nn.Module):
    """Predict every effect from the past of its causes, once per fold.

    Parameters
    ----------
    n_folds, n_series, max_lag, n_channels : int
        Sizes. The folds are independent networks that learn from different slots.
    generator : torch.Generator, optional
        Source of the initial weights.
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
        # added to the channels where a cause is removed: see `channel_loss` and `detect.removal`
        self.absent = nn.Parameter(torch.zeros(n_causes, *outputs, n_channels))
        self.mix = draw(*outputs, n_channels, fan_in=n_channels)
        self.skip = nn.Parameter(torch.zeros(n_causes, max_lag, *outputs))
        self.offset = nn.Parameter(torch.zeros(outputs))

    def allow(self, allowed: Bool[Tensor, "cause effect lag"]) -> None:
        """Cut the links that are not allowed: their weights are zero and get no gradient."""
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
        self, past: Float[Tensor, "b series lag"]
    ) -> Float[Tensor, "b fold effect channel"]:
        """Convolve the causes with their kernels."""
        return self._channels(self.inputs(past))

    def channels_of_fold(
        self, past: Float[Tensor, "b series lag"], k: int
    ) -> Float[Tensor, "b effect channel"]:
        """Give the channels of one fold."""
        summed: Tensor
        inputs, kernel = self.inputs(past), self.kernel[:, :, k].flatten(0, 1)
        if self.sources is None:
            summed = (inputs.flatten(1) @ kernel.flatten(1)).unflatten(1, kernel.shape[1:])
        else:
            summed = (inputs.flatten(2) @ kernel.transpose(0, 1)).transpose(0, 1)
        return summed + self.threshold[k]

    def forward(self, past: Float[Tensor, "b series lag"]) -> Float[Tensor, "b fold effect"]:
        """Predict the next slot of every effect, by every fold."""
        inputs = self.inputs(past)
        bent = (nn.functional.silu(self._channels(inputs)) * self.mix).sum(-1)
        if self.sources is None:
            straight = (inputs.flatten(1) @ self.skip.flatten(2).flatten(0, 1)).view_as(bent)
        else:
            by_effect = self.skip.flatten(0, 1).permute(2, 0, 1)  # effect, (cause, lag), fold
            straight = (inputs.flatten(2) @ by_effect).permute(1, 2, 0)
        return bent + straight + self.offset

    def _channels(
        self, inputs: Float[Tensor, "*effect b cause lag"]
    ) -> Float[Tensor, "b fold effect channel"]:
        if self.sources is not None:
            by_effect = self.kernel.flatten(0, 1).permute(2, 0, 1, 3).flatten(2)
            summed = (inputs.flatten(2) @ by_effect).transpose(0, 1)  # b, effect, (fold, channel)
            summed = summed.unflatten(2, (self.n_folds, -1)).transpose(1, 2)
        else:
            summed = inputs.flatten(1) @ self.kernel.flatten(2).flatten(0, 1)
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
