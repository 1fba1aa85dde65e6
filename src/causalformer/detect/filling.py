"""Missing values: what goes into the past instead of them.

A value that is missing is never learned from and never judged by. Only where it stands in the past
of other slots do a network and a regression need a number there.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.data.windows import lagged_samples, slots_with_past

FloatArray = NDArray[np.float64]

_FOREVER = 100_000  # slots after which nothing is remembered
_SWEEPS = 4  # a prediction may rest on a prediction, up to this depth
_FARTHEST = 3.5  # no prediction is farther out, in standard deviations


def fill_between(scores: FloatArray, segments: Sequence[slice]) -> FloatArray:
    r"""Fill gaps with what each series' own memory expects between the values around them.

    With lag-one autocorrelation ρ and neighbours x at distance a before and y at distance b after,
    an autoregression of order one expects

    .. math:: \frac{ρ^a (1 - ρ^{2b}) x + ρ^b (1 - ρ^{2a}) y}{1 - ρ^{2(a+b)}},

    nearly a straight line in a short gap of a slow series; far inside a long gap, the mean, zero.

    Examples
    --------
    >>> slow = np.sin(np.arange(100) / 10)[:, None]
    >>> gappy = slow.copy()
    >>> gappy[50] = np.nan
    >>> bool(np.abs(fill_between(gappy, [slice(0, 100)]) - slow).max() < 0.02)
    True
    """
    filled = np.array(scores)
    for i, column in enumerate(scores.T):
        memory = _memory(column, segments)
        for segment in segments:
            filled[segment, i] = _bridged(column[segment], memory)
    return filled


def _memory(column: FloatArray, segments: Sequence[slice]) -> float:
    """Lag-one autocorrelation of the observed neighbours, about the mean zero."""
    slot = slots_with_past(segments, 1)
    before, now = column[slot - 1], column[slot]
    both = ~np.isnan(before) & ~np.isnan(now)
    product, square = (before * now)[both].sum(), (before**2 + now**2)[both].sum() / 2
    return float(np.clip(product / square, -0.999, 0.999)) if square > 0 else 0.0


def _bridged(column: FloatArray, memory: float) -> FloatArray:
    known = np.flatnonzero(~np.isnan(column))
    missing = np.flatnonzero(np.isnan(column))
    if not len(missing):
        return column
    filled = np.nan_to_num(column)
    after = np.searchsorted(known, missing)
    at = np.concatenate([[-_FOREVER], known, [len(column) + _FOREVER]])
    values = np.concatenate([[0.0], column[known], [0.0]])  # beyond the ends: the mean
    x, y = values[after], values[after + 1]
    a, b = missing - at[after], at[after + 1] - missing
    to_a, to_b = memory ** np.minimum(a, _FOREVER), memory ** np.minimum(b, _FOREVER)
    filled[missing] = (to_a * (1 - to_b**2) * x + to_b * (1 - to_a**2) * y) / (
        1 - (to_a * to_b) ** 2
    )
    return filled


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
