"""Bringing every series to a common scale, and back."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from causalformer import scratch
from causalformer.data.series import SeriesTable

LEAST_TO_LEVEL = 20  # slots; the mean of fewer is too uncertain to be taken off


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

    def centred(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take the offset off and leave the spread as it is."""
        without: NDArray[np.float64] = x - self.offset
        return without

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
        return Scaling(np.nanmean(x, axis=0), 1.0 / _or_one(np.nanstd(x, axis=0)), 0.0)
    smallest, largest = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
    middle = smallest / 2 + largest / 2
    return Scaling(middle, (high - low) / _or_one(largest - smallest), (low + high) / 2)


def fit_run_scaling(x: NDArray[np.float64], run: NDArray[np.int64]) -> Scaling:
    """Learn mean and spread of every recording: subjects differ in level, and that is no cause.

    Examples
    --------
    >>> x = np.array([[1.0], [3.0], [100.0], [104.0]])
    >>> fit_run_scaling(x, np.array([0, 0, 1, 1])).apply(x).ravel()
    array([-1.,  1., -1.,  1.])
    """
    offset, factor = np.zeros_like(x), np.ones_like(x)
    for number in np.unique(run):
        mine = run == number
        observed = np.isfinite(x[mine])
        n_observed = np.maximum(observed.sum(axis=0), 1)
        mean = np.where(observed, x[mine], 0.0).sum(axis=0) / n_observed
        square = np.where(observed, x[mine] - mean, 0.0) ** 2
        offset[mine] = mean
        factor[mine] = 1.0 / _or_one(np.sqrt(square.sum(axis=0) / n_observed))
    return Scaling(offset, factor, 0.0)


def _or_one(spread: NDArray[np.float64]) -> NDArray[np.float64]:
    usable = np.isfinite(spread) & (spread > np.finfo(np.float64).tiny * 1e16)
    return np.where(usable, spread, 1.0)


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Every series to the quantiles of a normal law by its ranks: outliers lose their pull.

    Parameters
    ----------
    ordered : array ``[slot, series]``
        The values the scores were learned from, each series in ascending order, missing ones last.

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
        """Give the normal score of ``x[slot, series]``; equal values share the middle of theirs.

        A missing value stays missing.
        """
        from scipy.special import ndtri

        scores = scratch.empty(x.shape)
        for i, column in enumerate(self._columns()):
            order = np.argsort(x[:, i])  # to look long series up in order is ten times faster
            wanted = x[order, i]
            below = np.searchsorted(column, wanted, side="left")
            up_to = np.searchsorted(column, wanted, side="right")
            least = 0.5 / len(column)
            share = np.clip((below + up_to) * least, least, 1 - least)
            scores[order, i] = np.where(np.isnan(wanted), np.nan, ndtri(share))
        return scores

    def undo(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring scores ``[..., series]`` back to the units of the data."""
        from scipy.special import ndtr

        share = ndtr(scaled)
        undone = [
            np.interp(share[..., i], (np.arange(len(column)) + 0.5) / len(column), column)
            for i, column in enumerate(self._columns())
        ]
        return np.stack(undone, -1)

    def _columns(self) -> list[NDArray[np.float64]]:
        n_observed = len(self.ordered) - scratch.n_missing(self.ordered)
        return [column[:n] for column, n in zip(self.ordered.T, n_observed, strict=True)]

    def thinned(self, most: int) -> "NormalScores":
        """Keep so many values of each series at most, evenly over their ranks."""
        if len(self.ordered) <= most or scratch.n_missing(self.ordered).any():
            return self
        at = np.linspace(0, len(self.ordered) - 1, most).round().astype(np.int64)
        return NormalScores(self.ordered[at])


def fit_normal_scores(x: NDArray[np.float64]) -> NormalScores:
    """Learn the ranks of ``x[slot, series]``."""
    ordered = scratch.empty(x.shape[::-1]).T  # column by column
    for i, column in enumerate(x.T):
        ordered[:, i] = np.sort(column)
    return NormalScores(ordered)


@dataclass(frozen=True, eq=False)
class TableScaling:
    """Normal scores of a table; if `by_run`, each recording is first freed from its own level."""

    normal: NormalScores
    by_run: bool

    def apply(self, table: SeriesTable) -> NDArray[np.float64]:
        """Give the scores ``[slot, series]``."""
        return self.normal.apply(levelled(table) if self.by_run else table.values)

    def undo(self, scores: NDArray[np.float64], table: SeriesTable) -> NDArray[np.float64]:
        """Bring scores of the slots of `table` back to the units of the data."""
        values = self.normal.undo(scores)
        return (
            fit_run_scaling(table.values, table.run_of_slot).undo(values) if self.by_run else values
        )


def fit_table_scaling(table: SeriesTable) -> TableScaling:
    """Learn the scores of a table; recordings long enough to know their level are levelled."""
    lengths = np.bincount(table.run_of_slot)
    by_run = len(lengths) > 1 and bool(lengths.min() >= LEAST_TO_LEVEL)
    return TableScaling(fit_normal_scores(levelled(table) if by_run else table.values), by_run)


def levelled(table: SeriesTable) -> NDArray[np.float64]:
    """Give the values of every recording with mean zero and spread one."""
    return fit_run_scaling(table.values, table.run_of_slot).apply(table.values)
