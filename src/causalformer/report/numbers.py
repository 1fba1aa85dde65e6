"""Numbers made small enough for a page: rounded to what a plot can show, thinned to its width."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Numbers: TypeAlias = list[float | None]

_STEPS = 5000  # into which the spread of a plotted series is divided
_MOST_DECIMALS = 12  # beyond, digits are counted from the first one instead
_BREAKS = 500  # segments whose ends are drawn


def number(value: float, digits: int = 4) -> float | None:
    """Round to significant digits; None if there is no such number.

    Examples
    --------
    >>> number(1 / 3), number(math.nan)
    (0.3333, None)
    """
    return float(f"{float(value):.{digits}g}") if math.isfinite(value) else None


def rounded(values: FloatArray | Sequence[float]) -> Numbers:
    """Round numbers that are plotted together to a small part of their spread; None for NaN.

    Examples
    --------
    >>> rounded([101325.123456, 101327.0, math.nan])
    [101325.1235, 101327.0, None]
    """
    array = np.asarray(values, dtype=np.float64)
    known = array[np.isfinite(array)]
    if not len(known):
        return [None] * len(array)
    with np.errstate(over="ignore"):
        spread = float(np.ptp(known)) or float(np.abs(known).max()) or 1.0
    decimals = math.ceil(-math.log10(spread / _STEPS)) if math.isfinite(spread) else -_STEPS
    if abs(decimals) > _MOST_DECIMALS:
        return [number(value, 6) for value in array.tolist()]
    return none_for_nan(np.round(array, decimals).tolist())


def none_for_nan(values: Iterable[float]) -> Numbers:
    """Put None where a number is not finite, as JSON holds none of these."""
    return [value if math.isfinite(value) else None for value in values]


def thinned(values: FloatArray, n_points: int) -> tuple[FloatArray, FloatArray]:
    """Keep the outline of long series: smallest and largest value of every stretch of slots.

    Parameters
    ----------
    values : array ``[slot, series]``
        NaN is a missing value.
    n_points : int
        Points to keep; series that are not longer stay as they are.

    Returns
    -------
    slot : array
        Where the points are.
    values : array ``[point, series]``

    Examples
    --------
    >>> slot, values = thinned(np.array([[0.0], [5.0], [1.0], [2.0], [-3.0], [0.0]]), 4)
    >>> slot.tolist(), values[:, 0].tolist()
    ([0.0, 1.5, 3.0, 4.5], [0.0, 5.0, -3.0, 2.0])
    """
    n_slots = len(values)
    if n_slots <= n_points:
        return np.arange(n_slots, dtype=np.float64), values
    starts = np.linspace(0, n_slots, max(1, n_points // 2) + 1)[:-1]
    first = starts.astype(np.int64)
    lowest, highest = np.fmin.reduceat(values, first), np.fmax.reduceat(values, first)
    points = np.stack([lowest, highest], axis=1).reshape(-1, values.shape[1])
    half = n_slots / len(first) / 2
    return np.stack([starts, starts + half], axis=1).ravel(), points


def with_breaks(
    slot: FloatArray, values: FloatArray, starts: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Put a missing value before every further segment, so that no line is drawn across.

    Examples
    --------
    >>> with_breaks(np.arange(3.0), np.ones((3, 1)), (0, 2))[0].tolist()
    [0.0, 1.0, 1.5, 2.0]
    """
    breaks = np.array(starts[1 : _BREAKS + 1], dtype=np.float64) - 0.5
    at = np.searchsorted(slot, breaks)
    return np.insert(slot, at, breaks), np.insert(values, at, np.nan, axis=0)


def sampled(slots: NDArray[np.int64], n_samples: int) -> list[int]:
    """Draw one slot from each of as many stretches, always the same ones.

    Examples
    --------
    >>> sampled(np.arange(4), 9)
    [0, 1, 2, 3]
    >>> len(sampled(np.arange(1000), 9))
    9
    """
    if len(slots) <= n_samples:
        return [int(slot) for slot in slots]
    stretches = np.array_split(slots, n_samples)
    rng = np.random.default_rng(0)
    return [int(rng.choice(stretch)) for stretch in stretches]


def time_labels(time: NDArray[Any], slots: NDArray[np.int64]) -> list[str]:
    """Write the times of some slots as short as possible.

    Examples
    --------
    >>> time_labels(np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]"), np.array([1]))
    ['2024-01-02']
    """
    if time.dtype.kind == "M":
        return [str(text) for text in np.datetime_as_string(time, unit="auto")[slots]]
    if time.dtype.kind == "f":
        return [f"{value:.10g}" for value in time[slots]]
    if time.dtype.kind == "m":
        import pandas as pd

        return [str(value) for value in pd.to_timedelta(time[slots])]
    return [str(value) for value in time[slots]]
