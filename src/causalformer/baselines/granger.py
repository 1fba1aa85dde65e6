r"""Granger's test in a vector autoregression: the linear yardstick.

Each effect is regressed on a constant and ``max_lag`` lags of all N series. With p lags and T
slots, a cause is tested by leaving all its lags out,

.. math:: F = \frac{(RSS_0 - RSS_1) / p}{RSS_1 / (T - p - (Np + 1))},

where RSS₁ is the residual sum of squares with the cause and RSS₀ without it. In a linear model
:math:`RSS_0 - RSS_1 = \beta_j' \, [(X'X)^{-1}]_{jj}^{-1} \, \beta_j` (the Wald form), so a single
decomposition of X serves all pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causalformer.data.windows import slots_with_past

FloatArray = NDArray[np.float64]

_NO_VARIATION = 1e-12  # spread in proportion to the level below which a column is constant
_MANY_ROWS = 50_000  # more are replaced by few with the same products; also rows at a time
_SAME_SPACE = 1e-8  # singular value of a block of orthonormal columns that counts as zero


@dataclass(frozen=True, slots=True)
class GrangerTests:
    """The F-tests of all pairs, each array ``[cause, effect]``.

    Attributes
    ----------
    f : array of float
        The statistic; 0 if there was nothing to be tested.
    log_p : array of float
        Natural logarithm of the p-value.
    t : array of float ``[cause, effect, lag - 1]``
        |t| of every single coefficient.
    """

    f: FloatArray
    log_p: FloatArray
    t: FloatArray

    @property
    def lag(self) -> NDArray[np.int64]:
        """Lag with the largest |t|."""
        return np.asarray(self.t.argmax(axis=-1) + 1)


def granger_tests(
    values: FloatArray, max_lag: int, segments: Sequence[slice] | None = None
) -> GrangerTests:
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
    segments : sequence of slice, optional
        Unbroken stretches of slots; no lag reaches across. One, unless given.

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
    slot = slots_with_past(segments or [slice(0, len(values))], max_lag)
    lags = [values[slot - lag] for lag in range(1, max_lag + 1)]
    lagged = np.stack(lags, axis=-1).reshape(len(slot), values.shape[1] * max_lag)
    return lagged_tests(lagged, values[slot], max_lag)


def lagged_tests(lagged: FloatArray, effects: FloatArray, max_lag: int) -> GrangerTests:
    """Test every pair from regressors ``[row, (cause, lag)]`` and effects ``[row, effect]``.

    Centring stands in for the constant; no F depends on the scale of a column.
    """
    n_causes = lagged.shape[1] // max_lag
    n_rows, n_effects = effects.shape
    nothing = np.zeros((n_causes, n_effects))
    untested = GrangerTests(nothing, nothing, np.zeros((n_causes, n_effects, max_lag)))
    if n_rows < 2:
        return untested
    if n_rows > _MANY_ROWS:
        lagged, effects = _few_rows(lagged, effects)
    else:
        lagged, effects = (_standardised(x.astype(np.float64)) for x in (lagged, effects))
    left, size, right = np.linalg.svd(lagged, full_matrices=False)
    rank = int((size > size[0] * max(lagged.shape) * np.finfo(np.float64).eps).sum())
    loadings = right[:rank] / size[:rank, None]
    beta = loadings.T @ (left[:, :rank].T @ effects)  # [(cause, lag), effect]
    inverse = loadings.T @ loadings  # (X'X)^-1
    residual = ((effects - lagged @ beta) ** 2).sum(axis=0)
    # a fit without error would give an infinite score: keep what rounding leaves of the total
    residual = np.maximum(residual, np.finfo(np.float64).eps * n_rows)
    freedom = n_rows - rank - 1
    if freedom < 1:  # more coefficients than rows: nothing can be tested
        return untested
    explained, tested = _wald(beta, inverse, _null_space(right, rank), max_lag)
    f = explained / np.maximum(tested, 1) / (residual / freedom)
    spread = np.sqrt(np.outer(np.diag(inverse), residual / freedom))
    varies = np.asarray(lagged.any(axis=0))  # of a constant column only rounding is left
    there = (spread > 0) & varies[:, None]
    t = np.divide(np.abs(beta), spread, out=np.zeros_like(beta), where=there)
    t = t.reshape(n_causes, max_lag, n_effects).transpose(0, 2, 1)
    return GrangerTests(f, _log_p(f, tested, freedom), t)


def _standardised(columns: FloatArray) -> FloatArray:
    """Scale to mean zero and variance one; a constant column becomes zero."""
    largest = np.abs(columns).max(axis=0)
    columns = columns / np.where(largest > 0, largest, 1.0)  # no square can overflow now
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > _NO_VARIATION
    return np.where(varies, centred / np.where(varies, spread, 1.0), 0.0)


def _few_rows(lagged: FloatArray, effects: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace the standardised columns by fewer rows with the same products: the R of a QR.

    The rows are gone through in parts and never copied all at once.
    """
    n_inputs, parts = lagged.shape[1], range(0, len(lagged), _MANY_ROWS)

    def rows(first: int) -> FloatArray:
        at = slice(first, first + _MANY_ROWS)
        return np.hstack([lagged[at], effects[at]], dtype=np.float64) / scale

    scale = np.ones(n_inputs + effects.shape[1])
    largest = np.max([np.abs(rows(first)).max(axis=0) for first in parts], axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    mean = np.sum([rows(first).sum(axis=0) for first in parts], axis=0) / len(lagged)
    square = np.sum([((rows(first) - mean) ** 2).sum(axis=0) for first in parts], axis=0)
    spread = np.sqrt(square / len(lagged))
    varies = spread > _NO_VARIATION
    few = np.zeros((0, len(scale)))
    for first in parts:
        part = np.where(varies, (rows(first) - mean) / np.where(varies, spread, 1.0), 0.0)
        few = np.asarray(np.linalg.qr(np.vstack([few, part]), mode="r"))
    return few[:, :n_inputs], few[:, n_inputs:]


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
    """Return RSS₀ - RSS₁ of every cause ``[cause, effect]``, and how many constraints that makes.

    Where collinearity leaves some combinations of a cause's coefficients undetermined, the others
    are tested.
    """
    n_causes = len(beta) // max_lag
    explained = np.zeros((n_causes, beta.shape[1]))
    tested = np.zeros((n_causes, 1), dtype=np.int64)
    for cause in range(n_causes):
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

    a = np.broadcast_to(freedom / 2.0, f.shape)
    b = np.broadcast_to(np.maximum(tested, 1) / 2.0, f.shape)
    x = freedom / (freedom + 2.0 * b * np.maximum(f, 0.0))
    p = np.where(tested > 0, betainc(a, b, x), 1.0)
    log_p = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    tiny = p < 1e-280
    a, b, x = a[tiny], b[tiny], x[tiny]
    series = hyp2f1(a + b, 1.0, a + 1.0, x)
    # in very long series it overflows; there it is nearly the geometric series 1 / (1 - x)
    series = np.log(np.where(np.isfinite(series) & (series > 0), series, 1.0 / (1.0 - x)))
    log_p[tiny] = a * np.log(x) + b * np.log1p(-x) - np.log(a) - betaln(a, b) + series
    return np.minimum(log_p, 0.0)
