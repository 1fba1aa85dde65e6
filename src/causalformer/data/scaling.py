"""Bringing every series to a common scale, and back."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Scaling:
    """``scaled = (x - offset) * factor + base`` for every series.

    Examples
    --------
    >>> scaling = fit_scaling(np.array([[0.0, 5.0], [10.0, 5.0]]), "minmax", 0.5, 1.0)
    >>> scaling.apply(np.array([[5.0, 5.0]]))
    array([[0.75, 0.75]])
    """

    offset: NDArray[np.float64]
    factor: NDArray[np.float64]
    base: float

    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale ``x[slot, series]``."""
        scaled: NDArray[np.float64] = (x - self.offset) * self.factor + self.base
        return scaled

    def undo(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring scaled values ``[..., series]`` back to the units of the data."""
        x: NDArray[np.float64] = (scaled - self.base) / self.factor + self.offset
        return x


def fit_scaling(
    x: NDArray[np.float64],
    kind: Literal["minmax", "standard", "none"],
    low: float = 0.5,
    high: float = 1.0,
) -> Scaling:
    """Learn the scaling of ``x[slot, series]``; a constant series lands in the middle."""
    n_series = x.shape[1]
    if kind == "none":
        return Scaling(np.zeros(n_series), np.ones(n_series), 0.0)
    if kind == "standard":
        return Scaling(x.mean(axis=0), 1.0 / _or_one(x.std(axis=0)), 0.0)
    smallest, largest = x.min(axis=0), x.max(axis=0)
    middle = smallest / 2 + largest / 2
    return Scaling(middle, (high - low) / _or_one(largest - smallest), (low + high) / 2)


def _or_one(spread: NDArray[np.float64]) -> NDArray[np.float64]:
    usable = np.isfinite(spread) & (spread > np.finfo(np.float64).tiny * 1e16)
    return np.where(usable, spread, 1.0)
