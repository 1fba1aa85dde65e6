"""The graph of nothing but self-loops: what a figure is worth that counts them."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from causalformer.data import check_usable, read_series
from causalformer.graph import CausalGraph, Edge


class SelfLoops(BaseEstimator):  # type: ignore[misc]
    """Say that every series drives itself at lag 1, and nothing else, whatever the data.

    Most published truths hold every self-loop, so this graph scores well wherever they are
    counted. A method that is not clearly better has found no cause.

    Attributes
    ----------
    graph_ : CausalGraph
        One self-loop of lag 1 per series.
    scores_, edge_scores_ : array ``[cause, effect]``
        The identity matrix.

    Examples
    --------
    >>> print(SelfLoops().fit({"sun": [1, 2, 4], "rain": [3, 0, 1]}).graph_)
    CausalGraph(2 series, 2 edges)
      sun → sun (lag 1, score 1)
      rain → rain (lag 1, score 1)
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Look at the names of the series.

        Parameters
        ----------
        X : frame, array, path or SeriesTable
            One column per series; see `causalformer.data.read_series`.
        y : None
            Ignored; here for scikit-learn's sake.
        """
        table = read_series(X)
        check_usable(table, min_slots=2)
        self.names_ = table.names
        self.n_features_in_ = table.n_series
        self.scores_ = self.edge_scores_ = np.eye(table.n_series)
        loops = tuple(Edge(name, name, 1, 1.0) for name in table.names)
        self.graph_ = CausalGraph(table.names, loops, {"method": "self-loops"})
        return self
