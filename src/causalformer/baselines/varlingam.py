"""VARLiNGAM: contemporaneous and lagged edges from noise that is not normal."""

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoLarsIC
from threadpoolctl import threadpool_limits

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least
from causalformer.baselines.lagged import lagged_rows, largest_of


class VARLiNGAM(Baseline):
    r"""A structural VAR, identified by noise that is not normal (Hyvärinen et al. 2010).

    .. math:: x_t = B_0 x_t + \sum_{\tau \ge 1} B_\tau x_{t-\tau} + e_t

    Three steps: a VAR by least squares; the causal order within one slot by DirectLiNGAM on its
    residuals (see `causal_order`); and, of every series, an adaptive lasso by BIC on the present
    of the series before it in that order and the past of all. What the lasso keeps is fitted once
    more by least squares.

    A pair is an edge if its largest \|coefficient\| exceeds ``threshold``; its lag is the one of
    that coefficient, and may be 0 between two series. If the noise is normal, lagged edges are
    still found, but the direction of contemporaneous ones is a guess. There are no random numbers.

    With the same order of the VAR the graph is that of the authors' package ``lingam``, whose
    default is to choose the order by BIC. DEVIATION: the order is ``max_lag``, or as large as the
    number of rows allows, as BIC gives up true long lags for the sake of all other pairs.

    Parameters
    ----------
    max_lag : int
        Order of the VAR.
    threshold : float
        Coefficients up to this one are no edges. The default is the best of a grid on generated
        series of variance one (`make_var` and `make_structure`, 50 to 4000 slots).

    Attributes
    ----------
    coefficients_ : array ``[cause, effect, lag]``
        The transposed B, lag 0 first.
    causal_order_ : tuple of int
        The series, causes before effects within one slot.

    Examples
    --------
    >>> noise = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> x, y = noise[:, 0], noise[:, 1].copy()
    >>> y[2:] += x[:-2]
    >>> model = VARLiNGAM().fit({"z": y + 0.5 * noise[:, 2], "x": x, "y": y})
    >>> sorted((e.cause, e.effect, e.lag) for e in model.graph_)
    [('x', 'y', 2), ('y', 'z', 0)]
    """

    method = "varlingam"

    def __init__(self, max_lag: int = 3, threshold: float = 0.15) -> None:
        self.max_lag = max_lag
        self.threshold = threshold

    def check_settings(self) -> None:
        """Refuse a negative threshold."""
        super().check_settings()
        at_least("threshold", self.threshold, 0)

    def min_slots(self, n_series: int) -> int:
        """Give so many slots that a VAR of order 1 with instantaneous edges can be judged."""
        return self.max_lag + 2 * n_series + 2

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Fit the coefficients and read the largest of each pair."""
        n = values.shape[1]
        rows = lagged_rows(values, segments, range(self.max_lag + 1), least=2 * n + 2)
        with threadpool_limits(1, user_api="blas"):  # many small problems: threads only wait
            longest = min(self.max_lag, (len(rows) - 2) // n - 1)
            past = rows[:, 1 : longest + 1].reshape(len(rows), -1)
            order = causal_order(rows[:, 0] - past @ _least_squares(past, rows[:, 0]))
            stacked = np.zeros((self.max_lag + 1, n, n))  # [lag, cause, effect]
            for place, effect in enumerate(order):
                before = order[:place]
                weights = _adaptive_lasso(np.hstack([rows[:, 0, before], past]), rows[:, 0, effect])
                stacked[0, before, effect] = weights[:place]
                stacked[1:, :, effect].flat[: past.shape[1]] = weights[place:]
        self.causal_order_ = tuple(order)
        self.coefficients_ = stacked.transpose(1, 2, 0)
        return largest_of(self.coefficients_, self.threshold)


def causal_order(x: FloatArray) -> list[int]:
    """Order the columns of ``x[row, series]``, causes first, as DirectLiNGAM does.

    In each round the most exogenous series goes next, and is regressed out of the rest. Of two
    standardised series the cause is the one for which the entropies of it and of the other's
    residual add up to less (Hyvärinen and Smith 2013); a series loses the squares of all the
    comparisons that speak against it.

    Examples
    --------
    >>> noise = np.random.default_rng(0).uniform(-1, 1, (2, 500))
    >>> causal_order(np.column_stack([noise[0] + noise[1], noise[0]]))
    [1, 0]
    """
    remaining, order = list(range(x.shape[1])), []
    while remaining:
        z = _standardised(x[:, remaining])
        correlation = z.T @ z / len(z)
        joint = _entropy(z) + np.column_stack(
            [_entropy(_standardised(z - np.outer(z[:, j], c))) for j, c in enumerate(correlation)]
        )  # [other, cause]: of the cause and of what it leaves of the other
        against = np.minimum(0.0, joint - joint.T)
        np.fill_diagonal(against, 0.0)
        first = int((against**2).sum(axis=1).argmin())
        x = x.copy()
        x[:, remaining] = z - np.outer(z[:, first], correlation[first])
        order.append(remaining.pop(first))
    return order


def _entropy(z: FloatArray) -> FloatArray:
    """Approximate the entropy of standardised columns by two moments (Hyvärinen 1998)."""
    size = np.abs(z)
    log_cosh = (size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).mean(axis=0)
    skew = (z * np.exp(-0.5 * z * z)).mean(axis=0)
    normal = 0.5 * (1.0 + np.log(2.0 * np.pi))
    return np.asarray(normal - 79.047 * (log_cosh - 0.37457) ** 2 - 7.4129 * skew**2)


def _standardised(x: FloatArray) -> FloatArray:
    centred = x - x.mean(axis=0)
    spread = centred.std(axis=0)
    return np.asarray(centred / np.where(spread > 1e-9, spread, 1.0))


def _adaptive_lasso(x: FloatArray, y: FloatArray) -> FloatArray:
    """Give the coefficients by least squares of those columns that a weighted lasso keeps."""
    weights = np.zeros(x.shape[1])
    if y.std() < 1e-9:  # a constant series has no causes, and no likelihood for BIC
        return weights
    sizes = np.abs(_least_squares(x, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # collinear columns are dropped
        kept = LassoLarsIC(criterion="bic", fit_intercept=False).fit(x * sizes, y).coef_ != 0
    weights[kept] = _least_squares(x[:, kept], y)
    return weights


def _least_squares(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0])
