r"""A hidden series: a driver with a memory that nobody recorded, beside links of all lags.

.. math:: x_i(t) = \sum_k w_k\, g_k(\text{past}) + \sum_{j \in P(i)} b_{ij}\, x_j(t)
    + \sum_{l=0}^L \lambda_{il}\, z(t - l) + e_i(t), \qquad z(t) = \varphi z(t - 1) + u(t),

with errors that are independent of each other and over time. It holds what else are special cases:
a driver within the slot, one that reaches its effects at different lags, and noise that all
measurements share. In a graph of the recorded series alone each of them takes many links, at many
lags, so one criterion decides: twice the negative log-likelihood of normal errors and the price of
all terms. The likelihood is Whittle's (1953), a sum over frequencies, at each of which the driver
is one number that all series share (Geweke 1977): no recursion over time. Weights are found by the
EM algorithm, terms by backward elimination in its second step (Friedman's structural EM, 1998).

What EM finds depends on where it begins. Links that stand in for a driver are many and weak, so it
begins beside only the strongest links, with what the errors of all series have in common, and with
the error of each series: that of the one that the driver reaches first tells it best. The
second step flatters links, as it takes the driver for as well known as it is beside them; so in
the end each link is left out in turn, the other weights are found anew, and it goes if the
likelihood itself falls by less than its price.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from causalformer.detect.contemporaneous import PREDICTED, Present, Term, forms
from causalformer.detect.criterion import BesideDrivers, backward_elimination
from causalformer.detect.factors import factor_model
from causalformer.detect.few_terms import basis_term
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
MOST_SERIES = 12  # the work of the search grows with their square
_STRONG = (np.inf, 4.0, 2.0)  # links beside which the search begins, in prices
_FIRST_ROUNDS, _CHOICES, _ROUNDS, _ROUNDS_WITHOUT = 8, 6, 40, 6  # of EM, and of choosing terms
_SWEEPS = 3
_SURE = 50.0  # a gain in the second step (|t| = 7) of a link that need not be left out to be kept
_CONVERGED = 0.02  # of the criterion
_RIDGE = 1e-6
_LEAST_UNIQUE = 1e-4  # share of a series' variance that is not the driver's
_MOST_MEMORY = 0.99
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class HiddenSeries:
    """What is left beside a hidden series.

    Attributes
    ----------
    driven : array of bool ``[series]``
        The series that it drives.
    memory : float
        Its memory, the correlation of one value with the next.
    links : array of bool ``[cause, effect, lag]``
        The links beside it, lag 0 first.
    gain : array ``[cause, effect, lag]``
        Of these, twice the log-likelihood ratio; of others what the errors say of them.
    better : float
        By how much the criterion is less than that of links alone.
    """

    driven: BoolArray
    memory: float
    links: BoolArray
    gain: FloatArray
    better: float


def find_hidden_series(
    samples: Samples,
    present: Present,
    allowed: Bool[np.ndarray, "cause effect lag"],
    within: BoolArray,
) -> HiddenSeries | None:
    """Find a hidden series and the links beside it; None if links alone are as likely.

    Parameters
    ----------
    samples : Samples
        Normal scores, in which noise of any law is as near to normal as the criterion takes it to
        be; nothing is said of series with gaps.
    present : Present
        The past terms that the series hang on.
    allowed : array of bool ``[cause, effect, lag]``
        Which links may be, lag 0 first.
    within : array of bool ``[cause, effect]``
        Links within the slot without a cycle: those say in which order series act within it, and
        they may be bent.

    Examples
    --------
    >>> from causalformer.detect.contemporaneous import Term
    >>> from causalformer.detect.samples import make_samples
    >>> rng = np.random.default_rng(0)
    >>> x, driver = rng.standard_normal((4, 800)), rng.standard_normal(800)
    >>> for t in range(2, 800):
    ...     driver[t] += 0.7 * driver[t - 1]
    ...     x[:, t] += 0.5 * x[:, t - 1] + [driver[t], driver[t - 1], driver[t - 2], 0]
    ...     x[3, t] += 0.5 * x[0, t - 1]
    >>> values = x.T / x.std(axis=1)
    >>> samples = make_samples(values, [slice(0, 800)], np.zeros(800, int), 2, 4)
    >>> past = [[Term(i, 0, 0)] for i in range(4)]
    >>> shown, slot = np.ones((798, 4), bool), np.arange(2, 800)
    >>> present = Present(values[2:], shown, past, lambda term: values[:798, 0], slot, 2)
    >>> none = np.zeros((4, 4), bool)
    >>> found = find_hidden_series(samples, present, np.ones((4, 4, 3), bool), none)
    >>> found.driven.tolist(), [link for link in np.argwhere(found.links).tolist()]
    ([True, True, True, False], [[0, 3, 1]])
    """
    least = POLICY.least_driven - 1  # a memory tells as much as a series
    complete = present.observed.all() and (np.diff(present.slot) == 1).all()
    if samples.hidden is not None or not complete:
        return None
    if not least <= present.n_series <= MOST_SERIES:
        return None
    design = _Design(samples, present, allowed, within)
    if len(present.now) < 2 * len(design.tags) or design.n_links < least:
        return None
    fit = _Fit(design)
    fit.search()
    unlikely = 2.0 * float(np.log(POLICY.direct_odds))  # as rare as behind a link
    needed = design.cost_alone - POLICY.clearly - unlikely
    if fit.driven.sum() < least or fit.least_cost > needed:
        return None
    fit.leave_out()
    left_alone = fit.unique < POLICY.least_share * design.variance_alone
    if fit.driven.sum() < least or left_alone.sum() == 1:
        return None
    if fit.cost > needed:
        return None
    links, gain = fit.links()
    return HiddenSeries(fit.driven, fit.memory, links, gain, design.cost_alone - fit.cost)


class _Design:
    """The columns that equations may have, and the best equations without a driver."""

    def __init__(
        self, samples: Samples, present: Present, allowed: BoolArray, within: BoolArray
    ) -> None:
        past, now = (x.cpu().double().numpy() for x in (samples.past, samples.now))
        n_series, self.n_lags = present.n_series, present.max_lag + 1
        series, effects = range(n_series), np.arange(n_series)
        columns, offered, kept, tags = [], [], [], []  # of each column; tags: cause, lag, form
        for cause in series:
            for lag in range(present.max_lag):
                term = Term(cause, lag, 0)
                columns.append(past[:, cause, lag])
                offered.append(allowed[cause, :, lag + 1])
                kept.append((effects == cause) & (term in present.terms[cause]))
                tags.append((cause, lag + 1, 0))
        for effect in series:
            for term in present.terms[effect]:
                if term.form and term.lag != PREDICTED:
                    columns.append(basis_term(past[:, term.cause, term.lag], term.form))
                    offered.append(effects == effect)
                    kept.append(np.zeros(n_series, dtype=bool))
                    tags.append((term.cause, term.lag + 1, term.form))
        n_past = len(tags)
        place = np.argsort(_order(within))
        for cause in series:
            for form, column in enumerate(forms(now[:, cause]).T):
                later = (place > place[cause]) & allowed[cause, :, 0]
                columns.append(column)
                offered.append(later & within[cause] if form else later)
                kept.append(np.zeros(n_series, dtype=bool))
                tags.append((cause, 0, form))
        self.columns, self.now = _standard(np.column_stack(columns)), _standard(now)
        self.offered, self.kept, self.tags = np.array(offered), np.array(kept), tags
        self.n, self.n_series = len(self.now), n_series
        straight = np.log(self.n) + np.log(n_past)
        of_links = np.log(self.n) + np.log(max(n_series - 1, 1) / (POLICY.straight_share))
        self.price = np.array([of_links if lag == 0 else straight for _, lag, _ in tags])
        self.price_of_loading = float(np.log(self.n) + np.log(n_series * self.n_lags))
        self.gram = self.columns.T @ self.columns / self.n
        self.shared = self.columns.T @ self.now / self.n
        self._without_driver(present)

    def _without_driver(self, present: Present) -> None:
        """Choose the equations of recorded series alone; the network's, where that is better."""
        self.alone, self.gain = np.zeros(self.offered.shape, bool), np.zeros(self.offered.shape)
        self.variance_alone, self.cost_alone = np.empty(self.n_series), 0.0
        for i in range(self.n_series):
            at = np.flatnonzero(self.offered[:, i])
            found = backward_elimination(
                self.gram[np.ix_(at, at)],
                self.shared[at, i],
                1.0,
                self.kept[at, i],
                self.n,
                self.price[at],
            )
            self.alone[at, i], self.gain[at, i] = found.stays, found.gain
            self.variance_alone[i] = found.left
            cost = self.n * np.log(found.left) + self.price[at][found.stays].sum()
            if present.by_network[i]:
                predicted = _standard(present.column(Term(i, PREDICTED, 0))[:, None])[:, 0]
                left = 1.0 - float(predicted @ self.now[:, i] / self.n) ** 2
                cost = min(cost, self.n * np.log(max(left, _TINY)) + self.price[0])
            self.cost_alone += float(cost)

    @property
    def n_links(self) -> int:
        """Links between series, without a driver."""
        return int((self.alone & ~self.own).sum())

    @cached_property
    def own(self) -> BoolArray:
        """Which columns are a series' own past, ``[column, effect]``."""
        causes = np.array([cause for cause, _, _ in self.tags])
        return np.asarray(causes[:, None] == np.arange(self.n_series))

    def starts(self) -> list[BoolArray]:
        """Give the terms beside which the search begins: links that are worth several prices."""
        starts = [
            self.alone & (self.own | (self.gain > times * self.price[:, None])) for times in _STRONG
        ]
        return [s for k, s in enumerate(starts) if not any((s == t).all() for t in starts[:k])]


class _State(NamedTuple):
    """What EM has found, from one or more beginnings (b)."""

    memory: FloatArray  # b
    loading: FloatArray  # b, series, lag
    unique: FloatArray  # b, series
    weights: FloatArray  # b, column, series

    def at(self, which: Any) -> "_State":
        """Take some of them."""
        return _State(*(x[which] for x in self))


class _Driver(NamedTuple):
    """What is expected of the driver, as Fourier coordinates: real and imaginary parts in turn."""

    lagged: FloatArray  # b, lag, coordinate
    power: FloatArray  # b, frequency


class _Fit:
    """Weights, and what is expected of the driver, found in turn.

    Everything is kept as Fourier coordinates of norm one, real and imaginary parts in turn: mean
    products are the same as over time, and a lag is a turn at every frequency.
    """

    def __init__(self, design: _Design) -> None:
        self._d, n, n_lags = design, design.n, design.n_lags
        self._turn = np.exp(-2j * np.pi * np.arange(n // 2 + 1) / n)
        self._delays = self._turn ** np.arange(n_lags)[:, None]
        self._cosines = np.ascontiguousarray((self._turn ** np.arange(n_lags + 1)[:, None]).real)
        self._times = np.full(len(self._turn), 2.0)  # every frequency stands for its negative, too
        self._times[0] = 1.0
        if n % 2 == 0:
            self._times[-1] = 1.0
        self._norm = np.sqrt(self._times / n)
        self._waves = self._coordinates(np.hstack([design.columns, design.now]))
        self._apart = np.abs(np.subtract.outer(np.arange(n_lags), np.arange(n_lags)))
        self.cost, self.terms = (
            np.inf,
            np.zeros((len(design.tags) + n_lags, design.n_series), dtype=bool),
        )
        self._gain: FloatArray = np.zeros(self.terms.shape)
        self._state = _State(
            np.zeros(1),
            np.zeros((1, design.n_series, n_lags)),
            np.ones((1, design.n_series)),
            np.zeros((1, len(design.tags), design.n_series)),
        )

    @property
    def driven(self) -> BoolArray:
        """The series with a loading."""
        return np.asarray(self.terms[len(self._d.tags) :].any(axis=0))

    @property
    def memory(self) -> float:
        """The memory of the driver."""
        return float(self._state.memory[0])

    @property
    def unique(self) -> FloatArray:
        """The variance of every series that is neither its terms' nor the driver's."""
        return np.asarray(self._state.unique[0])

    def search(self) -> None:
        """Find terms and weights from several starts; keep those that cost least."""
        best, chosen = self._state, self.terms
        loadings = np.ones((self._d.n_lags, self._d.n_series), dtype=bool)
        for links in self._d.starts():
            terms = np.vstack([links, loadings])
            amplitude = np.sqrt(0.5) * self._coordinates(self._first_guesses(links)).view(complex)
            half = np.full(amplitude.shape, 0.5)  # half of it is noise
            begun, misfit, driver = self._converged(
                terms, _FIRST_ROUNDS, self._driver(amplitude, half)
            )
            first = slice(int(misfit.argmin()), int(misfit.argmin()) + 1)
            state, driver = begun.at(first), _Driver(*(x[first] for x in driver))
            for _ in range(_CHOICES):
                before = chosen
                state, chosen, gain = self._chosen(driver)
                driven = chosen[len(self._d.tags) :].any(axis=0)
                if np.array_equal(before, chosen) or driven.sum() < POLICY.least_driven - 1:
                    break  # a driver that is given up by all series but two does not come back
                _, driver = self._expected(state)
                state, misfit, driver = self._converged(chosen, _ROUNDS, driver)
                cost = self._cost(misfit, chosen)
                if cost < self.cost:
                    self.cost, best = cost, state
                    self.terms, self._gain = chosen, gain
        self._state = best

    def leave_out(self) -> None:
        """Leave out terms whose loss lowers the likelihood by less than their price."""
        price = self._prices
        for _ in range(_SWEEPS):
            before, may_go = self.cost, self._may_go
            for term in sorted(np.argwhere(may_go).tolist(), key=lambda at: self._gain[tuple(at)]):
                terms = self.terms.copy()
                terms[tuple(term)] = False
                _, driver = self._expected(self._state)
                state, misfit, _ = self._converged(terms, _ROUNDS_WITHOUT, driver)
                cost = self._cost(misfit, terms)
                if cost < self.cost:
                    self.cost, self.terms, self._state = cost, terms, state
                else:
                    self._gain[tuple(term)] = cost - self.cost + price[term[0], 0]
            if self.cost == before:
                break

    @property
    def least_cost(self) -> float:
        """What is left of the cost if all terms that may go were idle: likelihoods only fall."""
        return self.cost - float((self._prices * self._may_go).sum())

    @property
    def _may_go(self) -> BoolArray:
        kept = np.vstack([self._d.kept, np.zeros((self._d.n_lags, self._d.n_series), dtype=bool)])
        return np.asarray(self.terms & ~kept & (self._gain < self._prices + _SURE))

    def links(self) -> tuple[BoolArray, FloatArray]:
        """Give the links ``[cause, effect, lag]``, and what speaks for each that may be."""
        d, size = self._d, (self._d.n_series, self._d.n_series, self._d.n_lags)
        links, gain = np.zeros(size, dtype=bool), np.zeros(size)
        _, expected = self._expected(self._state)
        waves = np.ascontiguousarray(expected.lagged[0]).view(complex) / self._norm
        loading, weights = self._state.loading[0], self._state.weights[0]
        driver = d.now - d.columns @ weights - np.fft.irfft(waves, d.n).T @ loading.T
        for i in range(d.n_series):
            at = np.flatnonzero(self.terms[: len(d.tags), i])
            basis, _ = np.linalg.qr(d.columns[:, at])
            free = d.columns - basis @ (basis.T @ d.columns)
            square = np.maximum((free**2).sum(axis=0), _TINY)
            share = (
                (free.T @ driver[:, i]) ** 2
                / square
                / max(float(driver[:, i] @ driver[:, i]), _TINY)
            )
            for column, (cause, lag, _) in enumerate(d.tags):
                if self.terms[column, i]:
                    links[cause, i, lag] |= cause != i
                    worth = self._gain[column, i]
                elif d.offered[column, i] and square[column] > _RIDGE * d.n:
                    worth = min(-d.n * np.log1p(-min(float(share[column]), 0.99)), d.price[column])
                else:
                    continue
                gain[cause, i, lag] = max(gain[cause, i, lag], worth)
        return links, gain

    def _coordinates(self, columns: Float[np.ndarray, "sample column"]) -> FloatArray:
        """Give the Fourier coordinates ``[column, coordinate]``."""
        waves = np.fft.rfft(columns.T) * self._norm
        return np.ascontiguousarray(waves).view(np.float64)

    def _first_guesses(self, terms: BoolArray) -> FloatArray:
        """Give what errors beside some terms have in common, and each of them."""
        d, errors = self._d, np.empty_like(self._d.now)
        for i in range(d.n_series):
            at = np.flatnonzero(terms[:, i])
            gram = d.gram[np.ix_(at, at)] + _RIDGE * np.eye(len(at))
            errors[:, i] = d.now[:, i] - d.columns[:, at] @ np.linalg.solve(gram, d.shared[at, i])
        errors = _standard(errors)
        _, weight = factor_model(errors.T @ errors / d.n)
        return np.column_stack([_standard((errors @ weight.T)[:, [0]]), errors])

    @cached_property
    def _prices(self) -> FloatArray:
        """The prices of columns, then of loadings, ``[term, 1]``."""
        loadings = np.full(self._d.n_lags, self._d.price_of_loading)
        return np.append(self._d.price, loadings)[:, None]

    def _cost(self, misfit: FloatArray, terms: BoolArray) -> float:
        return float(misfit[0]) + float((self._prices * terms).sum() + np.log(self._d.n))

    def _converged(
        self, terms: BoolArray, rounds: int, driver: _Driver
    ) -> tuple[_State, FloatArray, _Driver]:
        """Find the weights of some terms; give twice the negative log-likelihood, too."""
        d, n_columns = self._d, len(self._d.tags)
        beside = BesideDrivers(d.gram, d.shared, terms[:n_columns], terms[n_columns:], _RIDGE)
        going = np.arange(len(driver.power))
        state, misfit = self._updated(beside, driver), np.full(len(going), np.inf)
        for done in range(rounds):
            some = self._updated(beside, _Driver(*(x[going] for x in driver))) if done else state
            found, expected = self._expected(some)
            for whole, part in zip((*state, *driver), (*some, *expected), strict=True):
                whole[going] = part
            before, misfit[going] = misfit[going], found
            going = going[before - found >= _CONVERGED]
            if not len(going):
                break
        return state, misfit, driver

    def _expected(self, state: _State) -> tuple[FloatArray, _Driver]:
        """Find the likelihood, and what is expected of the driver, frequency by frequency."""
        d = self._d
        memory, loading, unique, weights = state
        spectrum = 1.0 / (1.0 + memory[:, None] ** 2 - 2.0 * memory[:, None] * self._cosines[1])
        scaled = (loading / unique[..., None]).mT
        between = scaled @ loading
        told = np.zeros((len(memory), d.n_lags))
        for lag in range(d.n_lags):  # what is said of pairs of lags hangs on how far apart they are
            told[:, lag] = np.where(self._apart == lag, between, 0.0).sum(axis=(1, 2))
        told = np.maximum(told @ self._cosines[: d.n_lags], 0.0)
        by_lag = np.concatenate([-scaled @ weights.mT, scaled], axis=-1) @ self._waves
        heard = (self._delays.conj() * by_lag.view(complex)).sum(axis=1)
        variance = 1.0 / (1.0 / spectrum + told)
        square = 1.0 + (weights * (d.gram @ weights - 2.0 * d.shared)).sum(axis=1)
        misfit = d.n * (np.log(unique) + square / unique - 1.0).sum(axis=-1)
        misfit += (self._times * np.log1p(spectrum * told)).sum(axis=-1)
        misfit -= (variance * (heard.real**2 + heard.imag**2)).sum(axis=-1)
        return misfit, self._driver(variance * heard, variance)

    def _driver(self, amplitude: NDArray[np.complex128], variance: FloatArray) -> _Driver:
        lagged = (amplitude[:, None] * self._delays).view(np.float64)
        return _Driver(lagged, amplitude.real**2 + amplitude.imag**2 + self._times * variance)

    def _products(self, driver: _Driver) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Give the mean products of the driver: with columns, with series, and its own by lag."""
        products = self._waves @ driver.lagged.mT / self._d.n
        n_columns = len(self._d.tags)
        by_lag = driver.power @ self._cosines.T / self._d.n
        return products[:, :n_columns], products[:, n_columns:].mT, by_lag

    def _updated(self, beside: BesideDrivers, driver: _Driver) -> _State:
        """Find the weights of some terms given the driver."""
        with_driver, with_series, by_lag = self._products(driver)
        found = beside.solved(with_driver, by_lag[:, self._apart], with_series)
        return self._made(found.weights, found.loading, 1.0 - found.explained, by_lag)

    def _made(
        self, weights: FloatArray, loading: FloatArray, left: FloatArray, by_lag: FloatArray
    ) -> _State:
        now, before = by_lag[:, 0], by_lag[:, 1]
        memory = np.clip(before / now, -_MOST_MEMORY, _MOST_MEMORY)
        scale = np.sqrt(np.maximum(now - memory * before, _TINY))  # its own errors: variance one
        unique = np.maximum(left, _LEAST_UNIQUE * self._d.variance_alone)
        return _State(memory, loading * scale[:, None, None], unique, weights)

    def _chosen(self, driver: _Driver) -> tuple[_State, BoolArray, FloatArray]:
        """Choose terms given the driver; give their gain, too."""
        d, n_columns = self._d, len(self._d.tags)
        with_driver, with_series, by_lag = self._products(driver)
        gram = np.block([[d.gram, with_driver[0]], [with_driver[0].T, by_lag[0][self._apart]]])
        shared = np.vstack([d.shared, with_series[0]])
        weights, gain = np.zeros(shared.shape), np.zeros(shared.shape)
        stays, left = np.zeros(shared.shape, dtype=bool), np.empty((1, d.n_series))
        every = np.ones(d.n_lags, dtype=bool)
        for i in range(d.n_series):
            at = np.flatnonzero(np.append(d.offered[:, i], every))
            found = backward_elimination(
                gram[np.ix_(at, at)],
                shared[at, i],
                1.0,
                np.append(d.kept[:, i], ~every)[at],
                d.n,
                self._prices[at, 0],
            )
            stays[at, i], gain[at, i] = found.stays, found.gain
            weights[at, i], left[0, i] = found.weights, found.left
        state = self._made(weights[None, :n_columns], weights[None, n_columns:].mT, left, by_lag)
        return state, stays, gain


def _order(within: BoolArray) -> list[int]:
    """Put series in an order in which causes within the slot come before their effects."""
    order, left = list[int](), list(range(len(within)))
    while left:
        first = next((i for i in left if not within[left, i].any()), left[0])
        order.append(first)
        left.remove(first)
    return order


def _standard(columns: Float[np.ndarray, "sample column"]) -> FloatArray:
    """Give every column mean zero and variance one."""
    columns = columns - columns.mean(axis=0)
    return np.asarray(columns / np.maximum(columns.std(axis=0), _TINY))
