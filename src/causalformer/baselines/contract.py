"""What every comparison method shares: reading, scaling, windows, and how a graph is read out."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from causalformer.data import check_usable, read_series
from causalformer.data.scaling import fit_scaling
from causalformer.data.windows import slots_with_past
from causalformer.detect.clustering import select_by_clusters
from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph

if TYPE_CHECKING:
    from torch import Tensor

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a method says of every pair; each array is ``[cause, effect]``.

    Attributes
    ----------
    scores : array of float
        Higher is more likely an edge; finite.
    adjacency : array of bool
        The edges by the method's own rule.
    lags : array of int, optional
        The delay of every pair, at least 1 for a series with itself; None if the method has none.
    oriented : array of bool, optional
        False where the direction of a pair of lag 0 is a guess; None if there is no such pair.
    """

    scores: FloatArray
    adjacency: NDArray[np.bool_]
    lags: NDArray[np.int64] | None = None
    oriented: NDArray[np.bool_] | None = None


class Baseline(BaseEstimator):  # type: ignore[misc]
    """A comparison method with the estimator's contract.

    A method says in `discover` what it finds in standardised series; everything else is the same
    for all of them. Parameters are checked in `check_settings`.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges by the method's own rule. Of a method without lags every edge has lag 1, and
        ``graph_.metadata["lags"]`` is False.
    parity_graph_ : CausalGraph
        The edges by the paper's rule, the same for every method: per effect, k-means of the
        incoming scores into two classes, of which the higher is kept.
    scores_, edge_scores_ : array ``[cause, effect]``
        Higher is more likely an edge.
    names_ : tuple of str
        Names of the series.
    """

    method: ClassVar[str]
    """The name of the method in benchmarks."""

    missing_ok: ClassVar[bool] = False
    """Whether `discover` takes NaN."""

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Discover the graph.

        Parameters
        ----------
        X : frame, array, path or SeriesTable
            One column per series, one row per time slot; see `causalformer.data.read_series`.
        y : None
            Ignored; here for scikit-learn's sake.

        Raises
        ------
        SettingsError
            For a parameter out of its range.
        DataError
            If there are too few rows, or the series cannot be used.
        """
        self.check_settings()
        table = read_series(X)
        check_usable(
            table,
            min_slots=self.min_slots(table.n_series),
            option="max_lag",
            missing_ok=self.missing_ok,
        )
        standard = fit_scaling(table.values, "standard").apply(table.values)
        found = self.discover(standard, table.segments)
        self.names_ = table.names
        self.n_features_in_ = table.n_series
        self.scores_ = self.edge_scores_ = found.scores
        self._found = found
        self.graph_ = self._graph(found, found.adjacency)
        return self

    @property
    def parity_graph_(self) -> CausalGraph:
        """The edges by the paper's rule, sorted out when asked for: no part of the method."""
        two_classes = select_by_clusters(self._found.scores, 2, 1, random_state=0)
        return self._graph(self._found, two_classes)

    @abstractmethod
    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Judge every pair of standardised series ``[slot, series]``.

        No window or lag may reach across the ends of a segment.
        """

    def check_settings(self) -> None:
        """Refuse parameters out of their range, before any work is done."""
        at_least("max_lag", getattr(self, "max_lag", 1), 1)

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give the least number of rows that the parameters need."""
        return int(getattr(self, "max_lag", 0)) + 2

    def _graph(self, found: Findings, adjacency: NDArray[np.bool_]) -> CausalGraph:
        has_lags = found.lags is not None
        lags = found.lags if found.lags is not None else np.ones(adjacency.shape, dtype=np.int64)
        about = {"method": self.method, "lags": has_lags, "settings": self.get_params()}
        evidence = {}
        if found.oriented is not None:  # a read-out by clusters may take both ways of a link
            both = adjacency & adjacency.T & (lags == 0) & (lags.T == 0)
            evidence["oriented"] = found.oriented | both
        return CausalGraph.from_arrays(
            self.names_, adjacency, lags, found.scores, metadata=about, evidence=evidence
        )


def at_least(option: str, value: float, least: float) -> None:
    """Refuse a parameter below its least value.

    Examples
    --------
    >>> at_least("max_lag", 0, 1)
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: max_lag is 0; choose at least 1
    """
    if not (isinstance(value, Real) and value >= least):
        raise SettingsError(f"{option} is {value!r}; choose at least {least:g}")


def windows_of(values: FloatArray, segments: Sequence[slice], max_lag: int) -> "Tensor":
    """Give every slot with its past, oldest first: ``[sample, series, max_lag + 1]`` in float32.

    The last slot of a window is the one to be predicted; slot ``k`` before it has the lag
    ``max_lag - k``. No window reaches across the ends of a segment.

    Examples
    --------
    >>> windows_of(np.arange(5.0)[:, None], [slice(0, 3), slice(3, 5)], 1)[:, 0].tolist()
    [[0.0, 1.0], [1.0, 2.0], [3.0, 4.0]]
    """
    import torch

    slot = slots_with_past(segments, max_lag)
    past = values[slot[:, None] - np.arange(max_lag, -1, -1)]
    return torch.as_tensor(past.transpose(0, 2, 1).copy(), dtype=torch.float32)
