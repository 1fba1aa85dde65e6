r"""Hidden drivers of many series within a slot, beside links between single ones.

What a pair shares within a slot may come from a link, or from a factor that many series share:

.. math:: x_i(t) = \sum_k w_k\, g_k(\text{past}) + \sum_{j \in P(i)} b_{ij}\, x_j(t)
    + \sum_f \lambda_{if}\, f(t) + e_i(t) ,

with factors f of variance one and errors that are independent. The factors are not observed: the
weights are found by the EM algorithm (Rubin and Thayer 1982), the terms by backward elimination in
its second step (Friedman's structural EM, 1998). The loadings of a factor of all series cost what
numbers do that were not chosen among others, log n; those of a group of them as much as links, if
that is less. So a graph of links, a few factors, and both have one criterion
(`causalformer.detect.criterion`), and the least one wins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from causalformer.detect.criterion import BesideDrivers, backward_elimination, negentropy
from causalformer.detect.evidence import SMALLEST
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
MOST_FACTORS = 3
_CHOICES = 8  # rounds in which terms are chosen
_EM_ROUNDS, _CONVERGED = 200, 1e-4
_SETTLED = 0.01  # of the criterion
_LEAST_UNIQUE = 1e-4  # share of a series' variance that is no factor's
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class BesideFactors:
    """Links and factors of some series.

    Attributes
    ----------
    cost : float
        The criterion.
    loading : array ``[series, factor]``
        Weights of the factors; zero for a series that a factor does not drive.
    gain : array ``[cause, effect]``
        What the loss of a link would add to the criterion, but for its price; else zero.
    """

    cost: float
    loading: FloatArray
    gain: FloatArray

    @property
    def driven(self) -> BoolArray:
        """Which series a factor drives."""
        return np.asarray(self.loading.any(axis=1))

    @property
    def p_value(self) -> FloatArray:
        """The p-values of links, symmetric: likelihood ratios (Wilks 1938)."""
        from scipy.special import chdtrc

        return np.asarray(np.maximum(chdtrc(1, np.maximum(self.gain, self.gain.T)), SMALLEST))


def links_beside_factors(
    past: Sequence[Float[np.ndarray, "sample term"]],
    own: Sequence[Bool[np.ndarray, " term"]],
    now: Float[np.ndarray, "sample series"],
    before: Bool[np.ndarray, "cause effect"],
    price: float,
    price_of_link: float,
    share: float = 1.0,
) -> BesideFactors | None:
    """Find factors and links; None if there is no factor of four series or more.

    Parameters
    ----------
    past : sequence of array
        The past terms on offer for each series, centred.
    own : sequence of array of bool
        Those of them that always stay.
    now : array ``[sample, series]``
        The series, standardised.
    before : array of bool ``[cause, effect]``
        Which links there may be; they make no loop.
    price, price_of_link : float
        What a term of the past costs, and a link.
    share : float
        How many independent samples a sample is worth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((500, 6)) + 2 * rng.standard_normal((500, 1))
    >>> x[:, 5] += 0.8 * x[:, 0]
    >>> none = [np.zeros((500, 0))] * 6
    >>> before = np.triu(np.ones((6, 6), dtype=bool), 1)
    >>> found = links_beside_factors(none, [np.zeros(0, bool)] * 6, x / x.std(0), before, 10, 10)
    >>> found.driven.all(), np.argwhere(found.gain).tolist()
    (np.True_, [[0, 5]])
    """
    best: BesideFactors | None = None
    n_series, design = now.shape[1], None
    for n_factors in range(1, MOST_FACTORS + 1):
        n_loadings = n_series * n_factors - n_factors * (n_factors - 1) // 2
        if n_series < POLICY.least_driven or n_loadings >= n_series * (n_series - 1) // 2:
            break  # factors of few series can look like any graph
        starts = (factor_model, _robust_factor) if n_factors == 1 else (factor_model,)
        design = design or _Design(past, own, now, before, price, price_of_link, share)
        for start in starts:
            found = _Fit(design, n_factors, start).found()
            if found is not None and (best is None or found.cost < best.cost):
                best = found
    return best


class _Design:
    """The columns that equations may have, and what the past alone leaves of the series."""

    def __init__(
        self,
        past: Sequence[FloatArray],
        own: Sequence[BoolArray],
        now: FloatArray,
        before: BoolArray,
        price: float,
        price_of_link: float,
        share: float,
    ) -> None:
        self.now, self.price, self.price_of_link = now, price, price_of_link
        self.rows, self.n = len(now), share * len(now)
        n_past = [columns.shape[1] for columns in past]
        of_past = np.repeat(np.eye(now.shape[1], dtype=bool), n_past, axis=0)
        self.n_past, self.n_series = sum(n_past), now.shape[1]
        self.columns = np.hstack([*past, now])
        self.offered = np.vstack([of_past, before])  # column, effect
        self.kept = np.zeros(self.offered.shape, dtype=bool)
        self.kept[: self.n_past][of_past] = np.concatenate(own)
        self.shared = self.columns.T @ now / self.rows
        self.variance = np.diag(self.shared[self.n_past :])
        self.at = [np.flatnonzero(which) for which in self.offered.T]
        self.gram = [self.columns[:, at].T @ self.columns[:, at] / self.rows for at in self.at]
        weights, self.n_terms = np.zeros(self.shared.shape), 0
        for i in range(self.n_series):
            at = self.at[i][: n_past[i]]
            found = backward_elimination(
                self.gram[i][: n_past[i], : n_past[i]],
                self.shared[at, i],
                float(self.variance[i]),
                self.kept[at, i],
                self.n,
                price,
            )
            weights[at, i] = found.weights
            self.n_terms += int(found.stays.sum())
        self.errors = now - self.columns @ weights
        self.spread = np.maximum(self.errors.std(axis=0), _TINY)
        scaled = self.errors / self.spread
        self.correlation = scaled.T @ scaled / self.rows
        self.unequal = _unequal(scaled)


class _Fit:
    """Links and a number of factors, found in turn with what the factors are expected to be."""

    def __init__(
        self,
        design: _Design,
        n_factors: int,
        start: Callable[[FloatArray, int], tuple[FloatArray, FloatArray]],
    ) -> None:
        self._d, self._n_factors = design, n_factors
        loading, _ = start(design.correlation, n_factors)
        unique = np.maximum(1.0 - (loading**2).sum(axis=1), _LEAST_UNIQUE)
        self._loading = loading * design.spread[:, None]
        self._unique, self._least = unique * design.spread**2, _LEAST_UNIQUE * design.spread**2
        self._gain: FloatArray = np.zeros(design.shared.shape)
        self._terms: BoolArray = np.zeros(design.offered.shape, dtype=bool)
        self._driven: BoolArray = np.zeros(loading.shape, dtype=bool)
        self._errors = design.errors

    def found(self) -> BesideFactors | None:
        """Choose terms and find weights until neither changes."""
        d = self._d
        for _ in range(_CHOICES):
            before = self._terms, self._driven.copy()
            self._choose()
            if all(map(np.array_equal, before, (self._terms, self._driven))):
                break
            self._settle()
        driven = (self._loading != 0).sum(axis=0)
        if (
            driven.min() < POLICY.least_driven
            or (self._unique < POLICY.least_share * d.spread**2).sum() == 1
        ):
            return None  # a factor of few series, or one that is a series itself
        gain = self._gain[d.n_past :]
        of_all, of_group = d.n_series * np.log(d.n), driven * d.price_of_link
        n_turns = self._n_factors * (self._n_factors - 1) // 2  # factors can be turned
        n_past = int(self._terms[: d.n_past].sum())
        prices = n_past * d.price + int((gain > 0).sum()) * d.price_of_link
        prices += float(np.minimum(of_all, of_group).sum() - n_turns * np.log(d.n))
        misfit_before = 2.0 * d.n * float(np.log(d.spread).sum())
        misfit = self._misfit(self._between)
        if (misfit_before - misfit) / d.unequal < prices - d.n_terms * d.price:
            return None  # what is shared may be the size of noise
        scores, _ = self._scores()
        left = self._errors - self._errors @ scores @ self._loading.T
        cost = misfit + prices
        cost -= 2.0 * d.n * sum(map(negentropy, left.T))
        return BesideFactors(float(cost), self._loading, gain)

    def _scores(self) -> tuple[FloatArray, FloatArray]:
        """Give the weights of errors in the mean of the factors, and the variance of these."""
        scaled = self._loading / self._unique[:, None]
        variance = np.linalg.inv(np.eye(self._n_factors) + self._loading.T @ scaled)
        return np.asarray(scaled @ variance), np.asarray(variance)

    def _choose(self) -> None:
        """Choose the terms of all equations given the factors."""
        d, (scores, variance) = self._d, self._scores()
        mean = self._errors @ scores
        with_factor, moment = d.columns.T @ mean / d.rows, mean.T @ mean / d.rows + variance
        factors, weights = np.ones(self._n_factors, dtype=bool), np.zeros(d.shared.shape)
        price = np.full(len(weights), d.price)
        price[d.n_past :] = d.price_of_link
        terms, gain = np.zeros(d.offered.shape, dtype=bool), np.zeros(weights.shape)
        for i, at in enumerate(d.at):
            found = backward_elimination(
                np.block([[d.gram[i], with_factor[at]], [with_factor[at].T, moment]]),
                np.append(d.shared[at, i], with_factor[d.n_past + i]),
                float(d.variance[i]),
                np.append(d.kept[at, i], ~factors),
                d.n,
                np.append(price[at], np.log(d.n) * factors),
            )
            n_terms = len(at)
            terms[at, i], self._driven[i] = found.stays[:n_terms], found.stays[n_terms:]
            gain[at, i], weights[at, i] = found.gain[:n_terms], found.weights[:n_terms]
            self._loading[i] = found.weights[n_terms:]
            self._unique[i] = max(found.left, float(self._least[i]))
        self._terms, self._gain = terms, gain
        self._errors = d.now - d.columns @ weights

    def _settle(self) -> None:
        """Find the weights of the chosen terms.

        Factors are sums of errors, these of columns: the products of columns are all it takes.
        """
        d, is_series = self._d, np.arange(len(self._terms)) >= self._d.n_past
        used = self._terms.any(axis=1) | is_series
        columns, terms, shared = d.columns[:, used], self._terms[used], d.shared[used]
        products = columns.T @ columns / d.rows
        beside = BesideDrivers(products, shared, terms, self._driven.T)
        with_errors, between = columns.T @ self._errors / d.rows, self._between
        cost = np.inf
        for _ in range(_EM_ROUNDS):
            scores, variance = self._scores()
            with_factor, moment = with_errors @ scores, scores.T @ between @ scores + variance
            found = beside.solved(with_factor, moment, with_factor[-d.n_series :].T)
            self._loading = found.loading
            self._unique = np.maximum(d.variance - found.explained, self._least)
            with_errors = shared - products @ found.weights
            between = with_errors[-d.n_series :] - found.weights.T @ with_errors
            misfit = self._misfit(between)
            if cost - misfit < _SETTLED:
                break
            cost = misfit
        self._errors = d.now - columns @ found.weights

    @property
    def _between(self) -> FloatArray:
        """Mean products of the errors."""
        return np.asarray(self._errors.T @ self._errors / self._d.rows)

    def _misfit(self, between: FloatArray) -> float:
        """Give twice the negative log-likelihood of normal errors, but for a constant."""
        sigma = self._loading @ self._loading.T + np.diag(self._unique)
        fit = np.linalg.slogdet(sigma)[1] + np.trace(np.linalg.solve(sigma, between))
        return self._d.n * float(fit - len(sigma))


def _unequal(errors: Float[np.ndarray, "sample series"]) -> float:
    """Say by how much unequal errors raise the variance of correlations, in the mean of pairs.

    Where the size of noise changes together, correlations by chance are larger (White 1980).
    """
    square = errors**2
    pairs = np.triu_indices(errors.shape[1], 1)
    return max(float((square.T @ square)[pairs].mean()) / len(errors), 1.0)


def misfit(correlation: FloatArray, loading: FloatArray) -> float:
    r"""Give :math:`\log|\Sigma| + tr(R \Sigma^{-1}) - N` of a correlation matrix R.

    :math:`\Sigma` is what factors with these loadings give. It is zero for series that have nothing
    in common, and below if factors fit better.

    Examples
    --------
    >>> matrix = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    >>> round(misfit(matrix, factor_model(matrix)[0]), 2)
    -1.16
    """
    unique = np.maximum(1.0 - (loading**2).sum(axis=1), _LEAST_UNIQUE)
    sigma = loading @ loading.T + np.diag(unique)
    fit = np.linalg.slogdet(sigma)[1] + np.trace(np.linalg.solve(sigma, correlation))
    return float(fit - len(sigma))


def _robust_factor(correlation: FloatArray, n_factors: int) -> tuple[FloatArray, FloatArray]:
    """Give the loadings of one factor that few links do not change, and nothing else.

    With one factor alone the square of a loading is ``r_ij r_ik / r_jk`` for any two others; links
    change some of these triads (Spearman 1904), not their median. The signs are those of
    `factor_model`.
    """
    n_series = len(correlation)
    away = np.where(np.eye(n_series, dtype=bool), np.nan, correlation)
    triads = away[:, :, None] * away[:, None, :] / np.where(np.abs(away) > _TINY, away, np.nan)
    square = np.nan_to_num(np.nanmedian(triads.reshape(n_series, -1), axis=1))
    loading, weight = factor_model(correlation, n_factors)
    size = np.sqrt(np.clip(square, _LEAST_UNIQUE, 1.0 - _LEAST_UNIQUE))[:, None]
    return np.where(loading < 0, -size, size), weight


def factor_model(correlation: FloatArray, n_factors: int = 1) -> tuple[FloatArray, FloatArray]:
    """Give the loadings ``[series, factor]`` and the weights of the scores ``[factor, series]``.

    By the EM algorithm (Rubin and Thayer 1982); the scores are Thomson's.
    """
    size, axes = np.linalg.eigh(correlation)
    loading = axes[:, -n_factors:] * np.sqrt(np.maximum(size[-n_factors:] - 1.0, 0.01))
    identity = np.eye(n_factors)
    for _ in range(_EM_ROUNDS):
        unique = np.maximum(1.0 - (loading**2).sum(axis=1), _LEAST_UNIQUE)
        scaled = loading / unique[:, None]
        weight = _solve(identity + loading.T @ scaled, scaled.T)  # of scores
        shared = correlation @ weight.T
        moment = identity - weight @ loading + weight @ shared
        before, loading = loading, _solve(moment, shared.T).T
        if np.abs(loading - before).max() < _CONVERGED:
            break
    return loading, weight


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve equations, mostly a single one, that of one factor."""
    return np.asarray(right / matrix if len(matrix) == 1 else np.linalg.solve(matrix, right))
