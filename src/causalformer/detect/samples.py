"""What the detector learns from: the past of every slot, and which slots count for which effect."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer.data.windows import lagged_samples, slots_with_past
from causalformer.detect.filling import expected_past, past_covariance
from causalformer.detect.folds import blocked_folds, folds_of_runs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_PART = 4096  # samples that are filled at once
_CAUSES = 4  # values that an effect hangs on, typically


@dataclass(frozen=True, eq=False)
class Samples:
    """Slots with enough past, in order.

    Attributes
    ----------
    past : tensor ``[sample, cause, lag - 1]``
        Values before the slot; missing ones are what the others let expect.
    now : tensor ``[sample, effect]``
        Values in the slot; zero if missing.
    observed : tensor ``[sample, effect]``
        One where the value in the slot was observed: only then it is learned from and judged by.
    slot : array ``[sample]``
        Position in the table.
    fold : array ``[sample]``
        Which fold never learns from the sample.
    hidden : tensor of bool ``[sample, cause, lag - 1]``, optional
        Which past values were missing; None if no value is missing at all.
    """

    past: Float[Tensor, "sample cause lag"]
    now: Float[Tensor, "sample effect"]
    observed: Float[Tensor, "sample effect"]
    slot: IntArray
    fold: IntArray
    hidden: Bool[Tensor, "sample cause lag"] | None = None

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def n_series(self) -> int:
        """How many series the past holds."""
        return self.past.shape[1]

    @property
    def max_lag(self) -> int:
        """How many lags the past holds."""
        return self.past.shape[2]

    @property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return self.hidden is None

    @cached_property
    def n_observed(self) -> int:
        """Samples that an effect can be learned from, on average."""
        return int(self.observed.sum(0).mean())

    @cached_property
    def n_informed(self) -> int:
        """Samples of an effect with all that it hangs on, if gaps fall at random."""
        if self.hidden is None:
            return self.n_observed
        share = 1.0 - float(self.hidden.cpu().double().mean())
        return max(1, int(self.n_observed * share**_CAUSES))

    def pick(self, positions: IntArray) -> "Samples":
        """Take samples by position, with repetition; folds are blocks of what is taken."""
        n_folds = int(self.fold.max()) + 1
        at = torch.from_numpy(positions).to(self.past.device)
        return Samples(
            self.past[at],
            self.now[at],
            self.observed[at],
            self.slot[positions],
            blocked_folds(len(positions), n_folds),
            None if self.hidden is None else self.hidden[at],
        )

    def of(self, causes: Sequence[int], effects: Sequence[int]) -> "Samples":
        """Keep some causes and some effects only."""
        from_, to = list(causes), list(effects)
        return replace(
            self,
            past=self.past[:, from_],
            now=self.now[:, to],
            observed=self.observed[:, to],
            hidden=None if self.hidden is None else self.hidden[:, from_],
        )

    def to(self, device: torch.device | str) -> "Samples":
        """Move everything to a device."""
        return replace(
            self,
            past=self.past.to(device),
            now=self.now.to(device),
            observed=self.observed.to(device),
            hidden=None if self.hidden is None else self.hidden.to(device),
        )

    def thinned(self, most: int) -> "Samples":
        """Keep every second, every third, ... sample, so that no more than `most` are left."""
        step = -(-len(self) // most)
        if step == 1:
            return self
        return Samples(
            self.past[::step],
            self.now[::step],
            self.observed[::step],
            self.slot[::step],
            self.fold[::step],
            None if self.hidden is None else self.hidden[::step],
        )

    def seen(
        self, cause: int, profile: FloatArray, sources: Int[Tensor, "effect cause"] | None = None
    ) -> FloatArray:
        """How much of what a cause means to each effect was observed, ``[sample, effect]``.

        Parameters
        ----------
        cause : int
            The cause.
        profile : array ``[effect, lag - 1]``
            How much of each effect's prediction comes through each lag of the cause.
        sources : tensor ``[effect, cause]``, optional
            Which series the causes of each effect are; see `causalformer.model.channels`.
        """
        if self.hidden is None:
            return np.ones((len(self), 1))
        share = profile / np.maximum(profile.sum(axis=1, keepdims=True), 1e-300)
        if sources is None:
            return np.asarray(1.0 - self.hidden[:, cause].cpu().double().numpy() @ share.T)
        hidden = self.hidden[:, sources[:, cause]].cpu().numpy()  # sample, effect, lag
        return np.asarray(1.0 - (hidden * share).sum(axis=-1))


def make_samples(
    scores: FloatArray,
    segments: Sequence[slice],
    run: IntArray,
    max_lag: int,
    n_folds: int,
    device: torch.device | str = "cpu",
) -> Samples:
    """Collect the samples of ``scores[slot, series]``; none looks across segments.

    Parameters
    ----------
    scores : array ``[slot, series]``
        Normal scores; NaN where a value is missing.
    segments : sequence of slice
        Stretches of slots without a break.
    run : array ``[slot]``
        Number of the recording; with enough of them a fold holds out whole recordings.
    max_lag, n_folds : int
        Lags of the past; folds.
    device : torch.device
        Where the tensors go.
    """
    slot = slots_with_past(segments, max_lag)
    fold = folds_of_runs(run[slot], n_folds)
    missing = np.isnan(scores)
    past, now = _at(np.nan_to_num(scores) if missing.any() else scores, slot, max_lag)
    if not missing.any():
        return Samples(past, now, torch.ones_like(now), slot, fold).to(device)
    hidden, lacking = _at(missing, slot, max_lag)
    past = _filled(past, hidden > 0, past_covariance(scores, segments, max_lag))
    return Samples(past, now, 1.0 - lacking, slot, fold, hidden > 0).to(device)


def _filled(
    past: Float[Tensor, "sample cause lag"],
    hidden: Bool[Tensor, "sample cause lag"],
    covariance: FloatArray,
) -> Float[Tensor, "sample cause lag"]:
    matrix = torch.from_numpy(covariance)
    filled = past.clone()
    for part in hidden.flatten(1).any(1).nonzero()[:, 0].split(_PART):
        expected = expected_past(past[part].flatten(1).double(), hidden[part].flatten(1), matrix)
        filled[part] = expected.to(past).view_as(past[part])
    return filled


def _at(x: FloatArray | BoolArray, slot: IntArray, max_lag: int) -> tuple[Tensor, Tensor]:
    past, now = lagged_samples(torch.tensor(x, dtype=torch.float32), max_lag)
    if len(slot) == len(now):
        return past, now
    at = torch.from_numpy(slot - max_lag)
    return past[at], now[at]
