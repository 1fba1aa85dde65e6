"""What the detector learns from: the past of every slot, and which slots count for which effect."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer import scratch
from causalformer.data.windows import slots_with_past
from causalformer.detect.filling import expected_past, past_covariance
from causalformer.detect.folds import blocked_folds, folds_of_runs
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_PART = 4096  # samples that are filled at once


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
    before : tensor ``[sample, cause]``, optional
        Values one slot before the past; None unless some series wanders.
    wanders : array of bool ``[cause]``, optional
        Which series wander like random walks.
    """

    past: Float[Tensor, "sample cause lag"]
    now: Float[Tensor, "sample effect"]
    observed: Float[Tensor, "sample effect"]
    slot: IntArray
    fold: IntArray
    hidden: Bool[Tensor, "sample cause lag"] | None = None
    before: Float[Tensor, "sample cause"] | None = None
    wanders: BoolArray | None = None

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
        return len(self) if self.complete else int(self.observed.sum(0).mean())

    @cached_property
    def n_informed(self) -> int:
        """Samples of an effect with all that it hangs on, if gaps fall at random."""
        if self.hidden is None:
            return self.n_observed
        share = 1.0 - float(self.hidden.cpu().double().mean())
        return max(1, int(self.n_observed * share**POLICY.needed_values))

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
            None if self.before is None else self.before[at],
            self.wanders,
        )

    def of(self, causes: Sequence[int], effects: Sequence[int]) -> "Samples":
        """Keep some causes and some effects only."""
        from_, to = list(causes), list(effects)
        return replace(
            self,
            past=_columns(self.past, from_),
            now=_columns(self.now, to),
            observed=self.observed[:, :1].expand(-1, len(to))
            if self.complete
            else self.observed[:, to],
            hidden=None if self.hidden is None else self.hidden[:, from_],
            before=None if self.before is None else self.before[:, from_],
            wanders=None if self.wanders is None else self.wanders[from_],
        )

    def to(self, device: torch.device | str) -> "Samples":
        """Move everything to a device."""
        return replace(
            self,
            past=self.past.to(device),
            now=self.now.to(device),
            observed=self.observed.to(device),
            hidden=None if self.hidden is None else self.hidden.to(device),
            before=None if self.before is None else self.before.to(device),
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
            None if self.before is None else self.before[::step],
            self.wanders,
        )

    def seen(
        self,
        cause: int,
        profile: FloatArray,
        sources: Int[Tensor, "effect cause"] | None = None,
        at: Int[Tensor, " sample"] | slice = slice(None),
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
        at : tensor of int ``[sample]``, optional
            The samples to look at; all of them unless given.
        """
        if self.hidden is None:
            return np.ones((len(self.now[at]), 1))
        share = profile / np.maximum(profile.sum(axis=1, keepdims=True), 1e-300)
        if sources is None:
            return np.asarray(1.0 - self.hidden[at, cause].cpu().double().numpy() @ share.T)
        hidden = self.hidden[at][:, sources[:, cause]].cpu().numpy()  # sample, effect, lag
        return np.asarray(1.0 - (hidden * share).sum(axis=-1))


def make_samples(
    scores: FloatArray,
    segments: Sequence[slice],
    run: IntArray,
    max_lag: int,
    n_folds: int,
    device: torch.device | str = "cpu",
    wanders: BoolArray | None = None,
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
    wanders : array of bool ``[series]``, optional
        Which series wander like random walks; none unless given.
    """
    slot = slots_with_past(segments, max_lag)
    fold = folds_of_runs(run[slot], n_folds)
    if not scratch.n_missing(scores).any():
        past, now = _at(scores, slot, max_lag)
        every = torch.ones(1).expand_as(now)
        samples = Samples(past, now, every, slot, fold)
        return _with_level(samples, scores, segments, wanders).to(device)
    past, now = _at(np.nan_to_num(scores), slot, max_lag)
    hidden, lacking = _at(np.isnan(scores), slot, max_lag)
    past = _filled(past, hidden > 0, past_covariance(scores, segments, max_lag))
    samples = Samples(past, now, 1.0 - lacking, slot, fold, hidden > 0)
    return _with_level(samples, scores, segments, wanders).to(device)


def _with_level(
    samples: Samples, scores: FloatArray, segments: Sequence[slice], wanders: BoolArray | None
) -> Samples:
    """Keep the values before the past if some series wander; an unknown one is like the next."""
    if wanders is None or not wanders.any():
        return samples
    slot = samples.slot - samples.max_lag - 1
    starts = np.array([segment.start for segment in segments])
    first = starts[np.searchsorted(starts, samples.slot, "right") - 1]
    earlier = torch.from_numpy(scores[np.maximum(slot, 0)]).to(samples.past)
    known = torch.from_numpy(slot >= first)[:, None] & torch.isfinite(earlier)
    before = torch.where(known, earlier, samples.past[..., -1])
    return replace(samples, before=before, wanders=wanders)


def _columns(x: Tensor, at: list[int]) -> Tensor:
    """Copy some columns, part by part: all of them may be larger than memory."""
    if x.device.type != "cpu":
        return x[:, at]
    taken = torch.from_numpy(scratch.empty((len(x), len(at), *x.shape[2:]), np.float32))
    for some in scratch.parts(len(x), x[0].numel()):
        taken[some] = x[some][:, at]
    return taken


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
    n_samples, n_series = len(slot), x.shape[1]
    past = scratch.empty((n_samples, n_series, max_lag), np.float32)
    now = scratch.empty((n_samples, n_series), np.float32)
    for some in scratch.parts(n_samples, n_series * max_lag):
        now[some] = x[slot[some]]
        for lag in range(1, max_lag + 1):
            past[some, :, lag - 1] = x[slot[some] - lag]
    return torch.from_numpy(past), torch.from_numpy(now)
