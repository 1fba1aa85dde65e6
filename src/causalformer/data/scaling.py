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


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Every series to the quantiles of a normal law by its ranks: outliers lose their pull.

    Parameters
    ----------
    ordered : array ``[slot, series]``
        The values the scores were learned from, each series in ascending order.

    Examples
    --------
    >>> x = np.array([[1.0], [5.0], [1000.0]])
    >>> scores = fit_normal_scores(x)
    >>> scores.apply(x).round(2).ravel()
    array([-0.97,  0.  ,  0.97])
    >>> scores.undo(scores.apply(x)).ravel()
    array([   1.,    5., 1000.])
    """

    ordered: NDArray[np.float64]

    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the normal score of ``x[slot, series]``; equal values share the middle of theirs."""
        from scipy.special import ndtri

        n_slots = len(self.ordered)
        share = np.empty_like(x, dtype=np.float64)
        for i, column in enumerate(self.ordered.T):
            below = np.searchsorted(column, x[:, i], side="left")
            up_to = np.searchsorted(column, x[:, i], side="right")
            share[:, i] = (below + up_to) / (2 * n_slots)
        return np.asarray(ndtri(np.clip(share, 0.5 / n_slots, 1 - 0.5 / n_slots)))

    def undo(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring scores ``[..., series]`` back to the units of the data."""
        from scipy.special import ndtr

        at = (np.arange(len(self.ordered)) + 0.5) / len(self.ordered)
        share = ndtr(scaled)
        return np.stack(
            [np.interp(share[..., i], at, column) for i, column in enumerate(self.ordered.T)], -1
        )


def fit_normal_scores(x: NDArray[np.float64]) -> NormalScores:
    """Learn the ranks of ``x[slot, series]``."""
    return NormalScores(np.sort(x, axis=0))
