"""Granger's test in a vector autoregression as an estimator: the linear yardstick."""

from collections.abc import Sequence

import numpy as np

from causalformer.baselines.contract import Baseline, Findings, FloatArray
from causalformer.baselines.granger import granger_tests
from causalformer.detect.evidence import edge_q
from causalformer.errors import SettingsError


class VarGranger(Baseline):
    """Granger causality by F-tests in a vector autoregression.

    A pair is an edge if its p-value is below ``alpha``; its lag is the one with the largest |t|.
    There is no correction for the number of pairs, as in the published comparison: expect about
    ``alpha`` times the number of absent pairs as false edges. With ``fdr`` there is one.

    A cause whose lags are linear combinations of the other regressors (a constant series, a copy
    of another) adds nothing to the regression and is no edge.

    Parameters
    ----------
    max_lag : int
        Lags in the regression.
    alpha : float
        Level of every single test.
    fdr : bool
        Whether to correct for the number of tests (Benjamini and Hochberg), self-loops and edges
        between series apart; ``alpha`` is then the share of false edges to tolerate.

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

    method = "var"

    def __init__(self, max_lag: int = 3, alpha: float = 0.01, fdr: bool = False) -> None:
        self.max_lag = max_lag
        self.alpha = alpha
        self.fdr = fdr

    def check_settings(self) -> None:
        """Refuse a level that is none."""
        super().check_settings()
        if not 0 < self.alpha < 1:
            raise SettingsError(f"alpha is {self.alpha}; choose a level between 0 and 1")

    def min_slots(self, n_series: int) -> int:
        """Give one slot more than coefficients and starting values: a residual to test with."""
        return self.max_lag + n_series * self.max_lag + 2

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Test every pair."""
        tests = granger_tests(values, self.max_lag, segments)
        self.p_values_ = np.exp(tests.log_p)
        scores = np.abs(tests.log_p) / np.log(10.0)
        found = tests.log_p < np.log(self.alpha)
        if self.fdr:
            found = edge_q(self.p_values_, np.ones(found.shape, dtype=bool)) <= self.alpha
        return Findings(scores, found, tests.lag)
