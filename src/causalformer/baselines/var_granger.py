"""Granger's test in a vector autoregression as an estimator: the linear yardstick."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from causalformer.data import check_usable, read_series
from causalformer.detect.granger import granger_tests
from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph


class VarGranger(BaseEstimator):  # type: ignore[misc]
    """Granger causality by F-tests in a vector autoregression.

    A pair is an edge if its p-value is below ``alpha``; its lag is the one with the largest |t|.
    There is no correction for the number of pairs, as in the published comparison: expect about
    ``alpha`` times the number of absent pairs as false edges.

    A cause whose lags are linear combinations of the other regressors (a constant series, a copy
    of another) adds nothing to the regression and is no edge.

    Parameters
    ----------
    max_lag : int
        Lags in the regression.
    alpha : float
        Level of every single test.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges; their score is ``-log10 p``.
    scores_, edge_scores_ : array ``[cause, effect]``
        ``-log10 p`` of every pair, always finite: computed from logarithms where p underflows.
    p_values_ : array ``[cause, effect]``
        The p-values.
    names_ : tuple of str
        Names of the series.

    Examples
    --------
    >>> from causalformer.datasets import make_var
    >>> made = make_var(3, 400, density=0.5, random_state=1)
    >>> graph = VarGranger().fit(made.series).graph_
    >>> sorted((e.cause, e.effect, e.lag) for e in graph if e.cause != e.effect)
    [('x0', 'x2', 1), ('x1', 'x2', 1), ('x2', 'x1', 3)]
    >>> sorted((e.cause, e.effect, e.lag) for e in made.truth if e.cause != e.effect)
    [('x0', 'x2', 1), ('x1', 'x2', 1), ('x2', 'x1', 3)]
    """

    def __init__(self, max_lag: int = 3, alpha: float = 0.01) -> None:
        self.max_lag = max_lag
        self.alpha = alpha

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Test every pair.

        Parameters
        ----------
        X : frame, array, path or SeriesTable
            One column per series, one row per time slot; see `causalformer.data.read_series`.
        y : None
            Ignored; here for scikit-learn's sake.

        Raises
        ------
        SettingsError
            If ``max_lag`` is below 1 or ``alpha`` not between 0 and 1.
        DataError
            If there are too few rows for ``max_lag``, or the series cannot be used.
        """
        if self.max_lag < 1:
            raise SettingsError(f"max_lag is {self.max_lag}; choose at least 1")
        if not 0 < self.alpha < 1:
            raise SettingsError(f"alpha is {self.alpha}; choose a level between 0 and 1")
        table = read_series(X)
        # one slot more than coefficients and starting values, for one residual degree of freedom
        needed = self.max_lag + table.n_series * self.max_lag + 2
        check_usable(table, min_slots=needed, option="max_lag")
        tests = granger_tests(table.values, self.max_lag, table.segments)
        self.names_ = table.names
        self.n_features_in_ = table.n_series
        self.p_values_ = np.exp(tests.log_p)
        self.scores_ = self.edge_scores_ = np.abs(tests.log_p) / np.log(10.0)
        self.graph_ = CausalGraph.from_arrays(
            table.names,
            tests.log_p < np.log(self.alpha),
            tests.lag,
            self.scores_,
            metadata={"method": "var", "max_lag": self.max_lag, "alpha": self.alpha},
        )
        return self
