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

from causalformer.detect.criterion import backward_elimination, negentropy
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
    n_series = now.shape[1]
    for n_factors in range(1, MOST_FACTORS + 1):
        n_loadings = n_series * n_factors - n_factors * (n_factors - 1) // 2
        if n_series < POLICY.least_driven or n_loadings >= n_series * (n_series - 1) // 2:
            break  # factors of few series can look like any graph
        starts = (factor_model, _robust_factor) if n_factors == 1 else (factor_model,)
        prices = price, price_of_link
        fits = (
            _Fit(past, own, now, before, prices, n_factors, start, share).found()
            for start in starts
        )
        for found in fits:
            if found is not None and (best is None or found.cost < best.cost):
                best = found
    return best


class _Fit:
    """Links and a number of factors, found in turn with what the factors are expected to be."""

    def __init__(
        self,
        past: Sequence[FloatArray],
        own: Sequence[BoolArray],
        now: FloatArray,
        before: BoolArray,
        prices: tuple[float, float],
        n_factors: int,
        start: Callable[[FloatArray, int], tuple[FloatArray, FloatArray]],
        share: float,
    ) -> None:
        self._now, self._n_factors = now, n_factors
        self._price, self._price_of_link = prices
        self._rows, self._n = len(now), share * len(now)
        self._n_past = [columns.shape[1] for columns in past]
        self._causes = [np.flatnonzero(before[:, i]) for i in range(now.shape[1])]
        self._columns = [
            np.hstack([columns, now[:, causes]])
            for columns, causes in zip(past, self._causes, strict=True)
        ]
        self._gram = [columns.T @ columns / self._rows for columns in self._columns]
        self._shared = [
            columns.T @ now[:, i] / self._rows for i, columns in enumerate(self._columns)
        ]
        self._variance = (now**2).mean(axis=0)
        self._kept = [
            np.concatenate([which, np.zeros(len(causes), dtype=bool)])
            for which, causes in zip(own, self._causes, strict=True)
        ]
        self._start(start)

    def _start(self, start: Callable[[FloatArray, int], tuple[FloatArray, FloatArray]]) -> None:
        """Take the factors of what the past alone leaves."""
        self._errors, n_terms = np.empty_like(self._now), 0
        for i, n_past in enumerate(self._n_past):
            found = backward_elimination(
                self._gram[i][:n_past, :n_past],
                self._shared[i][:n_past],
                float(self._variance[i]),
                self._kept[i][:n_past],
                self._n,
                self._price,
            )
            self._errors[:, i] = self._now[:, i] - self._columns[i][:, :n_past] @ found.weights
            n_terms += int(found.stays.sum())
        spread = np.maximum(self._errors.std(axis=0), _TINY)
        correlation = (self._errors / spread).T @ (self._errors / spread) / self._rows
        loading, _ = start(correlation, self._n_factors)
        unique = np.maximum(1.0 - (loading**2).sum(axis=1), _LEAST_UNIQUE)
        self._loading, self._unique = loading * spread[:, None], unique * spread**2
        self._spread, self._least = spread, _LEAST_UNIQUE * spread**2
        self._at_start = 2.0 * self._n * float(np.log(spread).sum()), n_terms * self._price
        self._unequal = _unequal(self._errors / spread)
        self._stays = [np.zeros(0, dtype=bool)] * len(spread)
        self._gain = [np.zeros(0)] * len(spread)

    def found(self) -> BesideFactors | None:
        """Choose terms and find weights until neither changes."""
        for _ in range(_CHOICES):
            before = self._stays
            self._step(choose=True)
            if all(map(np.array_equal, before, self._stays)):
                break
            cost = np.inf
            for _ in range(_EM_ROUNDS):
                self._step(choose=False)
                if cost - self._misfit() < _SETTLED:
                    break
                cost = self._misfit()
        driven = (self._loading != 0).sum(axis=0)
        if (
            driven.min() < POLICY.least_driven
            or (self._unique < POLICY.least_share * self._spread**2).sum() == 1
        ):
            return None  # a factor of few series, or one that is a series itself
        gain = np.zeros((len(self._causes), len(self._causes)))
        for i, causes in enumerate(self._causes):
            gain[causes, i] = self._gain[i][self._n_past[i] : self._n_past[i] + len(causes)]
        of_all, of_group = len(self._causes) * np.log(self._n), driven * self._price_of_link
        n_turns = self._n_factors * (self._n_factors - 1) // 2  # factors can be turned
        n_past = sum(int(s[:k].sum()) for s, k in zip(self._stays, self._n_past, strict=True))
        prices = n_past * self._price + int((gain > 0).sum()) * self._price_of_link
        prices += float(np.minimum(of_all, of_group).sum() - n_turns * np.log(self._n))
        misfit_before, prices_before = self._at_start
        if (misfit_before - self._misfit()) / self._unequal < prices - prices_before:
            return None  # what is shared may be the size of noise
        expected, _ = self._expected()
        left = self._errors - expected @ self._loading.T
        cost = self._misfit() + prices
        cost -= 2.0 * self._n * sum(map(negentropy, left.T))
        return BesideFactors(float(cost), self._loading, gain)

    def _expected(self) -> tuple[FloatArray, FloatArray]:
        """Give the mean ``[sample, factor]`` and the variance of the factors, errors given."""
        scaled = self._loading / self._unique[:, None]
        variance = np.linalg.inv(np.eye(self._n_factors) + self._loading.T @ scaled)
        return np.asarray(self._errors @ scaled @ variance), np.asarray(variance)

    def _step(self, *, choose: bool) -> None:
        """Find the weights of all equations given the factors, and choose their terms if told."""
        mean, variance = self._expected()
        moment = mean.T @ mean / self._rows + variance
        errors, stays, gains = np.empty_like(self._errors), list(self._stays), list(self._gain)
        for i, columns in enumerate(self._columns):
            with_factor = columns.T @ mean / self._rows
            gram = np.block([[self._gram[i], with_factor], [with_factor.T, moment]])
            shared = np.append(self._shared[i], self._now[:, i] @ mean / self._rows)
            every = np.arange(len(gram))
            at = every if choose else np.flatnonzero(self._stays[i])
            kept, price = np.ones(len(at), dtype=bool), np.full(len(at), self._price_of_link)
            if choose:
                kept = np.append(self._kept[i], np.zeros(self._n_factors, dtype=bool))
                price[: self._n_past[i]] = self._price
                price[-self._n_factors :] = np.log(self._n)
            found = backward_elimination(
                gram[np.ix_(at, at)],
                shared[at],
                float(self._variance[i]),
                kept,
                self._n,
                price,
            )
            weights, gain = np.zeros(len(gram)), np.zeros(len(gram))
            weights[at], gain[at] = found.weights, found.gain
            stays[i], gains[i] = np.isin(every, at[found.stays]), gain
            n_columns = columns.shape[1]
            errors[:, i] = self._now[:, i] - columns @ weights[:n_columns]
            self._loading[i] = weights[n_columns:]
            self._unique[i] = max(found.left, float(self._least[i]))
        self._errors, self._stays, self._gain = errors, stays, gains

    def _misfit(self) -> float:
        """Give twice the negative log-likelihood of normal errors, but for a constant."""
        sigma = self._loading @ self._loading.T + np.diag(self._unique)
        moment = self._errors.T @ self._errors / self._rows
        fit = np.linalg.slogdet(sigma)[1] + np.trace(np.linalg.solve(sigma, moment))
        return self._n * float(fit - len(sigma))


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
        weight = np.linalg.solve(identity + loading.T @ scaled, scaled.T)  # of scores
        shared = correlation @ weight.T
        moment = identity - weight @ loading + weight @ shared
        before, loading = loading, np.linalg.solve(moment, shared.T).T
        if np.abs(loading - before).max() < _CONVERGED:
            break
    return loading, weight
