"""Vector autoregressions with a penalty: linear methods for more series than a test can take."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from causalformer.baselines.contract import Baseline, Findings, FloatArray
from causalformer.baselines.lagged import lagged_rows
from causalformer.detect.evidence import edge_q
from causalformer.errors import SettingsError

_LEAST_ROWS = 10
_PENALTIES = 40  # on a path of the lasso
_SPAN = np.geomspace(1e-3, 1e2, 26)  # penalties of the ridge, in parts of the number of rows
_ROUNDS = 2  # of the ridge's test: the second knows what the first found


def _regression(
    values: FloatArray, segments: Sequence[slice], max_lag: int
) -> tuple[FloatArray, FloatArray]:
    """Give standardised regressors ``[row, (lag, cause)]`` and centred effects ``[row, effect]``.

    A regressor that does not vary becomes zero.
    """
    rows = lagged_rows(values, segments, range(max_lag + 1), least=_LEAST_ROWS)
    past = rows[:, 1:].reshape(len(rows), -1)
    spread = past.std(axis=0)
    return past / np.where(spread > 0, spread, np.inf), rows[:, 0]


def _by_lag(matrix: FloatArray) -> FloatArray:
    """Turn ``[(lag, cause), effect]`` to ``[lag, cause, effect]``."""
    n_series = matrix.shape[1]
    return matrix.reshape(-1, n_series, n_series)


class VarLasso(Baseline):
    r"""Sparse vector autoregression: the lasso, its penalty by the extended information criterion.

    For every effect the path of the lasso over all lags of all series proposes sets of regressors.
    Each set of k regressors is fitted again by least squares, and the set is chosen that has the
    least

    .. math:: n \log(RSS / n) + k (\log n + 2 \log p)

    for n rows and p regressors (Chen and Chen 2008 with γ = 1, made for p > n). A regressor stays
    only if leaving it out of the chosen set would not lower that figure either. A cause is an edge
    if one of its lags stays.

    Parameters
    ----------
    max_lag : int
        Lags in the regression.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges; the lag of an edge is the one with the largest coefficient.
    scores_, edge_scores_ : array ``[cause, effect]``
        The penalty at which the first lag of a cause enters the path: how large its share in the
        unexplained part is when it comes to its turn. Zero if it never does.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((200, 2))
    >>> x, y = noise.T.copy()
    >>> y[2:] += x[:-2]
    >>> [(e.cause, e.effect, e.lag) for e in VarLasso().fit({"x": x, "y": y}).graph_]
    [('x', 'y', 2)]
    """

    method = "var-lasso"

    def __init__(self, max_lag: int = 3) -> None:
        self.max_lag = max_lag

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give a few rows to learn from."""
        return self.max_lag + _LEAST_ROWS

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Choose the regressors of every effect."""
        past, effects = _regression(values, segments, self.max_lag)
        gram, shared = past.T @ past, effects.T @ past
        shape = (past.shape[1], effects.shape[1])
        entry, size = np.zeros(shape), np.zeros(shape)
        for effect, series in enumerate(effects.T.copy()):
            if not shared[effect].any():  # does not vary
                continue
            penalties, path = _lasso_path(past, series, gram, shared[effect])
            came = path != 0
            entry[:, effect] = np.where(came.any(1), penalties[came.argmax(1)], 0.0)
            chosen = _best_set(path, gram, shared[effect], series)
            size[chosen, effect] = np.abs(_least_squares(gram, shared[effect], chosen))
        scores, sizes = _by_lag(entry), _by_lag(size)
        adjacency = sizes.max(axis=0) > 0
        lags = np.where(adjacency, sizes.argmax(axis=0), scores.argmax(axis=0)) + 1
        return Findings(scores.max(axis=0), adjacency, lags)


def _lasso_path(
    past: FloatArray, series: FloatArray, gram: FloatArray, shared: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give falling penalties and the coefficients ``[regressor, penalty]``.

    The path ends where chance begins: below the largest of p correlations with noise, every
    regressor that enters would be dropped again.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path

    n_rows, n_regressors = past.shape
    highest = np.abs(shared).max() / n_rows
    chance = series.std() * np.sqrt(2 * np.log(n_regressors + 1) / n_rows)
    penalties = np.geomspace(highest, min(0.5 * highest, 0.7 * chance), _PENALTIES)
    with warnings.catch_warnings():  # the last digits of a coefficient do not matter
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, path, _ = lasso_path(
            past, series, alphas=penalties, precompute=gram, Xy=shared, tol=1e-6, check_input=False
        )
    return penalties, path


def _best_set(
    path: FloatArray, gram: FloatArray, shared: FloatArray, series: FloatArray
) -> NDArray[np.int64]:
    """Choose the set of regressors by the extended information criterion."""
    n_rows, n_regressors = len(series), len(gram)
    price = float(np.log(n_rows) + 2 * np.log(n_regressors))
    total = float(series @ series)
    best, least, left = np.arange(0), n_rows * float(np.log(total / n_rows)), total
    for coefficients in path.T:
        chosen = np.flatnonzero(coefficients)
        if len(chosen) > n_rows // 4:  # more would fit anything
            break
        fitted = _least_squares(gram, shared, chosen)
        residual = max(total - float(fitted @ shared[chosen]), np.finfo(float).eps * total)
        figure = n_rows * float(np.log(residual / n_rows)) + len(chosen) * price
        if figure < least:
            best, least, left = chosen, figure, residual
    if not len(best):
        return best
    inverse = np.linalg.pinv(gram[np.ix_(best, best)], hermitian=True)
    explained = _least_squares(gram, shared, best) ** 2 / np.maximum(np.diag(inverse), 1e-300)
    return np.asarray(best[n_rows * np.log1p(explained / left) > price])


def _least_squares(gram: FloatArray, shared: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
    """Fit the chosen regressors; copies of one another share their coefficient."""
    part = gram[np.ix_(chosen, chosen)] + 1e-9 * np.diag(np.diag(gram)[chosen])
    return np.asarray(np.linalg.solve(part, shared[chosen]))


class VarRidge(Baseline):
    r"""Vector autoregression with a ridge, tested coefficient by coefficient.

    One penalty for all effects is chosen by generalised cross-validation. A ridge spreads the
    weight of one cause over the regressors that resemble it, so what earlier findings spread to the
    others is taken off before a coefficient is tested (Bühlmann 2013):

    .. math:: z_j = \Big(\hat\beta_j - \sum_{k \ne j} P_{jk} \tilde\beta_k\Big)
        \Big/ \operatorname{sd}(\hat\beta_j), \qquad P = (X'X + \lambda)^{-1} X'X,

    with :math:`\tilde\beta` from least squares on the edges of a first round without correction.
    The p-value of a pair is that of its largest \|z\|, for the number of its lags; pairs are edges
    by the false discovery rate, self-loops and edges between series apart, as in the default.

    Parameters
    ----------
    max_lag : int
        Lags in the regression.
    alpha : float
        Share of false edges to tolerate.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges; the lag of an edge is the one with the largest \|z\|.
    scores_, edge_scores_ : array ``[cause, effect]``
        The largest \|z\| of every pair.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((200, 2))
    >>> x, y = noise.T.copy()
    >>> y[2:] += x[:-2]
    >>> [(e.cause, e.effect, e.lag) for e in VarRidge().fit({"x": x, "y": y}).graph_]
    [('x', 'y', 2)]
    """

    method = "var-ridge"

    def __init__(self, max_lag: int = 3, alpha: float = 0.05) -> None:
        self.max_lag = max_lag
        self.alpha = alpha

    def check_settings(self) -> None:
        """Refuse a level that is none."""
        super().check_settings()
        if not 0 < self.alpha < 1:
            raise SettingsError(f"alpha is {self.alpha}; choose a level between 0 and 1")

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give a few rows to learn from."""
        return self.max_lag + _LEAST_ROWS

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Test every coefficient."""
        past, effects = _regression(values, segments, self.max_lag)
        ridge = _Ridge(past, effects)
        known, noise = np.zeros(ridge.beta.shape), ridge.noise
        for _ in range(_ROUNDS):
            z = _by_lag(ridge.z_values(known, noise))
            found = self._edges(z)
            strongest = (z == z.max(axis=0)) & found
            known, noise = _refitted(past, effects, strongest.reshape(known.shape))
        return Findings(z.max(axis=0), found, z.argmax(axis=0) + 1)

    def _edges(self, z: FloatArray) -> NDArray[np.bool_]:
        from scipy.special import ndtr

        one = 2 * ndtr(-z.max(axis=0))
        p_value = -np.expm1(len(z) * np.log1p(-np.minimum(one, 1 - 1e-16)))  # of the largest of all
        return edge_q(p_value, np.ones(p_value.shape, dtype=bool)) <= self.alpha


class _Ridge:
    """A ridge regression of all effects, from one decomposition ``X = U diag(d) V'``."""

    def __init__(self, past: FloatArray, effects: FloatArray) -> None:
        left, size, self._right = np.linalg.svd(past, full_matrices=False)
        along, power = left.T @ effects, size**2
        total, n_rows = (effects**2).sum(axis=0), len(past)

        def residual(kept: FloatArray) -> FloatArray:
            return np.asarray(total - (kept * (2 - kept)) @ along**2)

        shares = [power / (power + n_rows * penalty) for penalty in _SPAN]
        errors = [(residual(kept) / (n_rows - kept.sum()) ** 2).sum() for kept in shares]
        best = int(np.argmin(errors))
        self._kept = kept = shares[best]
        shrunk = power + n_rows * _SPAN[best]
        self.beta = self._right.T @ ((size / shrunk)[:, None] * along)
        freedom = max(n_rows - float((kept * (2 - kept)).sum()), 1.0)
        self.noise = np.maximum(residual(kept), 0.0) / freedom
        self._spread = (self._right.T**2) @ (power / shrunk**2)
        self._own = (self._right.T**2) @ kept

    def z_values(self, known: FloatArray, noise: FloatArray) -> FloatArray:
        """Give |z| of every coefficient, without what `known` ones spread to it."""
        passed_on = self._right.T @ (self._kept[:, None] * (self._right @ known))
        rest = self.beta - passed_on + self._own[:, None] * known
        spread = np.sqrt(np.outer(self._spread, noise))
        return np.asarray(
            np.divide(np.abs(rest), spread, out=np.zeros_like(rest), where=spread > 0)
        )


def _refitted(
    past: FloatArray, effects: FloatArray, chosen: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Fit the chosen regressors ``[regressor, effect]`` by least squares; also give the noise."""
    beta = np.zeros(chosen.shape)
    for effect in range(effects.shape[1]):
        which = np.flatnonzero(chosen[:, effect])
        beta[which, effect] = np.linalg.lstsq(past[:, which], effects[:, effect], rcond=None)[0]
    freedom = np.maximum(len(past) - chosen.sum(axis=0), 1)
    return beta, ((effects - past @ beta) ** 2).sum(axis=0) / freedom
