"""Missing values: what goes into the past instead of them.

A value that is missing is never learned from and never judged by. Only where it stands in the past
of other slots do a network and a regression need a number there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.data.windows import lagged_samples, slots_with_past

FloatArray = NDArray[np.float64]

NEVER = 2.0**62
_FOREVER = 100_000  # slots after which nothing is remembered
_SWEEPS = 4  # a prediction may rest on a prediction, up to this depth
_FARTHEST = 3.5  # no prediction is farther out, in standard deviations


@dataclass(frozen=True, eq=False)
class Expected:
    r"""What each series' own memory expects in its gaps; all arrays ``[slot, series]``.

    With lag-one autocorrelation ρ and the last value x before a gap at distance a, an
    autoregression of order one expects :math:`ρ^a x`; if it is also told the next value y at
    distance b,

    .. math:: \frac{ρ^a (1 - ρ^{2b}) x + ρ^b (1 - ρ^{2a}) y}{1 - ρ^{2(a+b)}},

    nearly a straight line in a short gap of a slow series. Far from any value it is the mean, zero.

    Attributes
    ----------
    ahead : array
        Expected from the values before; observed values stay.
    between : array
        Expected from the values on both sides.
    next_known : array
        The slot of the next observed value, `NEVER` if there is none in the segment.
    """

    ahead: FloatArray
    between: FloatArray
    next_known: FloatArray


def expect(scores: FloatArray, segments: Sequence[slice]) -> Expected:
    """Ask every series' own memory what stands in its gaps (NaN).

    Examples
    --------
    >>> slow = np.sin(np.arange(100) / 10)[:, None]
    >>> gappy = slow.copy()
    >>> gappy[50] = np.nan
    >>> found = expect(gappy, [slice(0, 100)])
    >>> bool(np.abs(found.between - slow).max() < 0.02), found.next_known[50]
    (True, array([51.]))
    """
    found = Expected(*(np.array(scores) for _ in range(3)))
    for i, column in enumerate(scores.T):
        memory = _memory(column, segments)
        for segment in segments:
            ahead, between, next_known = _bridged(column[segment], memory)
            found.ahead[segment, i], found.between[segment, i] = ahead, between
            found.next_known[segment, i] = next_known + segment.start
    return found


def _memory(column: FloatArray, segments: Sequence[slice]) -> float:
    """Lag-one autocorrelation of the observed neighbours, about the mean zero."""
    slot = slots_with_past(segments, 1)
    before, now = column[slot - 1], column[slot]
    both = ~np.isnan(before) & ~np.isnan(now)
    product, square = (before * now)[both].sum(), (before**2 + now**2)[both].sum() / 2
    return float(np.clip(product / square, -0.999, 0.999)) if square > 0 else 0.0


def _bridged(column: FloatArray, memory: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    known, slot = np.flatnonzero(~np.isnan(column)), np.arange(len(column))
    after = np.searchsorted(known, slot)
    at = np.concatenate([[-_FOREVER], known, [NEVER]])
    values = np.concatenate([[0.0], column[known], [0.0]])  # beyond the ends: the mean
    x, y = values[after], values[after + 1]
    to_x = memory ** np.minimum(slot - at[after], _FOREVER)
    to_y = memory ** np.minimum(at[after + 1] - slot, _FOREVER)
    both = (to_x * (1 - to_y**2) * x + to_y * (1 - to_x**2) * y) / (1 - (to_x * to_y) ** 2 + 1e-12)
    seen = ~np.isnan(column)
    return np.where(seen, column, to_x * x), np.where(seen, column, both), at[after + 1]


def fill_from_past(
    scores: FloatArray,
    segments: Sequence[slice],
    max_lag: int,
    predict: Callable[[Float[Tensor, "sample cause lag"]], FloatArray],
) -> FloatArray:
    """Fill gaps with predictions from the past, for who may not look ahead; else with the mean."""
    slot = slots_with_past(segments, max_lag)
    gaps = np.isnan(scores[slot])
    filled = np.nan_to_num(scores)
    for _ in range(_SWEEPS):
        past, _ = lagged_samples(torch.from_numpy(filled), max_lag)
        guess = predict(past[slot - max_lag])
        filled[slot] = np.where(gaps, guess.clip(-_FARTHEST, _FARTHEST), filled[slot])
    return filled
