r"""Granger's test in a vector autoregression: the linear yardstick.

Each effect is regressed on a constant and ``max_lag`` lags of all N series. With p lags and T
slots, a cause is tested by leaving all its lags out,

.. math:: F = \frac{(RSS_0 - RSS_1) / p}{RSS_1 / (T - p - (Np + 1))},

where RSS₁ is the residual sum of squares with the cause and RSS₀ without it. In a linear model
:math:`RSS_0 - RSS_1 = \beta_j' \, [(X'X)^{-1}]_{jj}^{-1} \, \beta_j` (the Wald form), so a single
decomposition of X serves all pairs.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from causalformer.data import check_usable, read_series
from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph

FloatArray = NDArray[np.float64]

_NO_VARIATION = 1e-12  # spread in proportion to the level below which a column is constant
_SAME_SPACE = 1e-8  # singular value of a block of orthonormal columns that counts as zero


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
    scores_ : array ``[cause, effect]``
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
        tests = granger_tests(table.values, self.max_lag)
        self.names_ = table.names
        self.n_features_in_ = table.n_series
        self.p_values_ = np.exp(tests.log_p)
        self.scores_ = np.abs(tests.log_p) / np.log(10.0)
        self.graph_ = CausalGraph.from_arrays(
            table.names,
            tests.log_p < np.log(self.alpha),
            tests.lag,
            self.scores_,
            metadata={"method": "var", "max_lag": self.max_lag, "alpha": self.alpha},
        )
        return self


@dataclass(frozen=True, slots=True)
class GrangerTests:
    """The F-tests of all pairs, each array ``[cause, effect]``.

    Attributes
    ----------
    f : array of float
        The statistic; 0 if there was nothing to be tested.
    log_p : array of float
        Natural logarithm of the p-value.
    lag : array of int
        Lag with the largest |t|.
    """

    f: FloatArray
    log_p: FloatArray
    lag: NDArray[np.int64]


def granger_tests(values: FloatArray, max_lag: int) -> GrangerTests:
    """Test every pair of series; see the module for the formula.

    Where regressors are collinear, (X'X)⁻¹ is the pseudo-inverse and only those combinations of
    a cause's coefficients are tested that the data determine, as many as the rank of X falls when
    the cause is left out. That is still exactly the F-test of leaving the cause out.

    Parameters
    ----------
    values : array of float, shape (slot, series)
        The series.
    max_lag : int
        Lags in the regression.

    Returns
    -------
    GrangerTests

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((101, 2))
    >>> values = np.column_stack([noise[1:, 0], noise[:-1, 0] + 0.1 * noise[1:, 1]])
    >>> tests = granger_tests(values, 2)
    >>> tests.log_p < np.log(0.01)
    array([[False,  True], [False, False]])
    >>> int(tests.lag[0, 1])
    1
    """
    lagged, effects = _regression(values, max_lag)
    n_rows, n_series = effects.shape
    left, size, right = np.linalg.svd(lagged, full_matrices=False)
    rank = int((size > size[0] * max(lagged.shape) * np.finfo(np.float64).eps).sum())
    loadings = right[:rank] / size[:rank, None]
    beta = loadings.T @ (left[:, :rank].T @ effects)  # [(cause, lag), effect]
    inverse = loadings.T @ loadings  # (X'X)^-1
    residual = ((effects - lagged @ beta) ** 2).sum(axis=0)
    # a fit without error would give an infinite score: keep what rounding leaves of the total
    residual = np.maximum(residual, np.finfo(np.float64).eps * n_rows)
    freedom = n_rows - rank - 1
    explained, tested = _wald(beta, inverse, _null_space(right, rank), max_lag)
    f = explained / np.maximum(tested, 1)[:, None] / (residual / freedom)
    spread = np.sqrt(np.diag(inverse))[:, None]
    t = np.divide(np.abs(beta), spread, out=np.zeros_like(beta), where=spread > 0)
    lag = t.reshape(n_series, max_lag, n_series).argmax(axis=1) + 1
    return GrangerTests(f, _log_p(f, tested[:, None], freedom), lag)


def _regression(values: FloatArray, max_lag: int) -> tuple[FloatArray, FloatArray]:
    """Return regressors ``[row, (cause, lag)]`` and effects ``[row, effect]``, standardised.

    Centring stands in for the constant; no F depends on the scale of a column.
    """
    n_slots, n_series = values.shape
    lags = [values[max_lag - lag : n_slots - lag] for lag in range(1, max_lag + 1)]
    lagged = np.stack(lags, axis=-1).reshape(n_slots - max_lag, n_series * max_lag)
    return _standardised(lagged), _standardised(values[max_lag:])


def _standardised(columns: FloatArray) -> FloatArray:
    """Scale to mean zero and variance one; a constant column becomes zero."""
    largest = np.abs(columns).max(axis=0)
    columns = columns / np.where(largest > 0, largest, 1.0)  # no square can overflow now
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > _NO_VARIATION
    return np.where(varies, centred / np.where(varies, spread, 1.0), 0.0)


def _null_space(right: FloatArray, rank: int) -> FloatArray:
    """Complete the right singular vectors: an orthonormal basis ``[(cause, lag), dimension]``."""
    n_columns = right.shape[1]
    if rank == n_columns:
        return np.zeros((n_columns, 0))
    if len(right) == n_columns:
        return right[rank:].T
    basis, _ = np.linalg.qr(right[:rank].T, mode="complete")
    return basis[:, rank:]


def _wald(
    beta: FloatArray, inverse: FloatArray, null_space: FloatArray, max_lag: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return RSS₀ - RSS₁ as ``[cause, effect]``, and how many constraints each cause makes."""
    n_series = beta.shape[1]
    explained = np.zeros((n_series, n_series))
    tested = np.zeros(n_series, dtype=np.int64)
    for cause in range(n_series):
        block = slice(cause * max_lag, (cause + 1) * max_lag)
        known = _determined(null_space[block])  # [lag, combination]
        estimate = known.T @ beta[block]
        covariance = known.T @ inverse[block, block] @ known
        explained[cause] = (estimate * np.linalg.solve(covariance, estimate)).sum(axis=0)
        tested[cause] = known.shape[1]
    return explained, tested


def _determined(null_block: FloatArray) -> FloatArray:
    """Return the combinations of one cause's coefficients that collinearity leaves determined."""
    if null_block.shape[1] == 0:
        return np.eye(len(null_block))
    left, size, _ = np.linalg.svd(null_block, full_matrices=True)
    return left[:, int((size > _SAME_SPACE).sum()) :]


def _log_p(f: FloatArray, tested: NDArray[np.int64], freedom: int) -> FloatArray:
    r"""Return :math:`\ln P(F \ge f)`, also where the probability is too small for a float.

    :math:`P = I_x(a, b)` with a = freedom/2, b = tested/2 and x = freedom / (freedom + tested f);
    for small x, :math:`I_x(a, b) = x^a (1-x)^b \, {}_2F_1(a+b, 1; a+1; x) / (a B(a, b))`.
    """
    from scipy.special import betainc, betaln, hyp2f1

    a = freedom / 2.0
    b = np.broadcast_to(np.maximum(tested, 1) / 2.0, f.shape)
    x = freedom / (freedom + 2.0 * b * np.maximum(f, 0.0))
    p = np.where(tested > 0, betainc(a, b, x), 1.0)
    log_p = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    tiny = p < 1e-280
    x, b = x[tiny], b[tiny]
    series = np.log(hyp2f1(a + b, 1.0, a + 1.0, x))
    log_p[tiny] = a * np.log(x) + b * np.log1p(-x) - np.log(a) - betaln(a, b) + series
    return np.minimum(log_p, 0.0)
