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
from causalformer.detect.filling import fill_between
from causalformer.detect.folds import blocked_folds, folds_of_runs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_HIDDEN_SHARE = 0.2  # share of an effect's relevance that may rest on missing values
_LEAST_PER_INPUT = 8  # but as many samples per past value shall count, if there are


@dataclass(frozen=True, eq=False)
class Samples:
    """Slots with enough past, in order.

    Attributes
    ----------
    past : tensor ``[sample, cause, lag - 1]``
        Values before the slot; missing ones are what the series' memory expects there.
    now : tensor ``[sample, effect]``
        Values in the slot.
    observed : tensor ``[sample, effect]``
        One where the value in the slot was observed, so that it may be learned from; else zero.
    counts : tensor ``[sample, effect]``
        One where a sample may be judged by: `observed`, and so were the past values that the
        effect hangs on, as far as `informed` was told.
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
    counts: Float[Tensor, "sample effect"]
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
        """Whether every sample counts for every effect."""
        return self.hidden is None

    @cached_property
    def n_observed(self) -> int:
        """Samples that an effect can be learned from, on average."""
        return int(self.observed.sum(0).mean())

    def pick(self, positions: IntArray) -> "Samples":
        """Take samples by position, with repetition; folds are blocks of what is taken."""
        n_folds = int(self.fold.max()) + 1
        at = torch.from_numpy(positions).to(self.past.device)
        return Samples(
            self.past[at],
            self.now[at],
            self.observed[at],
            self.counts[at],
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
            counts=self.counts[:, to],
            hidden=None if self.hidden is None else self.hidden[:, from_],
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
            self.counts[::step],
            self.slot[::step],
            self.fold[::step],
            None if self.hidden is None else self.hidden[::step],
        )

    def informed(
        self, profile: FloatArray, sources: Int[Tensor, "effect cause"] | None = None
    ) -> "Samples":
        """Let samples count only where little of an effect's relevance rests on missing values.

        If B drives C and B is missing, then what drives B foretells C and looks like a cause of C.

        Parameters
        ----------
        profile : array ``[cause, effect, lag - 1]``
            How much of each effect's prediction comes through each past value.
        sources : tensor ``[effect, cause]``, optional
            Which series the causes of each effect are; see `causalformer.model.channels`.
        """
        if self.hidden is None:
            return self
        share = torch.from_numpy(profile).to(self.now).transpose(1, 2).flatten(0, 1)
        share = share / share.sum(0).clamp(min=1e-30)  # (cause, lag), effect
        if sources is None:
            lost, before = self.hidden.flatten(1).to(share) @ share, self.hidden[:, :, 0]
        else:
            lost = (self.hidden[:, sources].flatten(2) * share.T).sum(-1)
            before = self.hidden[:, sources[:, 0], 0]
        # what fills the slot before was drawn towards the slot's own value: it would foretell it
        unusable = (self.observed == 0) | before
        lost = lost.masked_fill(unusable, torch.inf)
        # where too few would count, those count that miss least
        least = min(len(lost), _LEAST_PER_INPUT * len(share))
        limit = lost.kthvalue(least, dim=0).values.clamp(min=_HIDDEN_SHARE)
        return replace(self, counts=self.observed * ((lost <= limit) & ~unusable))


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
    if not missing.any():
        past, now = _at(scores, slot, max_lag, device)
        observed = torch.ones_like(now)
        return Samples(past, now, observed, observed, slot, fold)
    past, now = _at(fill_between(scores, segments), slot, max_lag, device)
    hidden, lacking = _at(missing, slot, max_lag, device)
    observed = 1.0 - lacking
    return Samples(past, now, observed, observed, slot, fold, hidden > 0)


def _at(
    x: FloatArray | BoolArray, slot: IntArray, max_lag: int, device: torch.device | str
) -> tuple[Tensor, Tensor]:
    past, now = lagged_samples(torch.tensor(x, dtype=torch.float32, device=device), max_lag)
    if len(slot) == len(now):
        return past, now
    at = torch.from_numpy(slot - max_lag).to(device)
    return past[at], now[at]
