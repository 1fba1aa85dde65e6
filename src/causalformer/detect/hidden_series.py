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

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from causalformer.detect.contemporaneous import PREDICTED, Present, Term, forms
from causalformer.detect.criterion import backward_elimination
from causalformer.detect.factors import factor_model
from causalformer.detect.few_terms import basis_term
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
MOST_SERIES = 12
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
    left_alone = fit.unique < POLICY.least_share * design.variance_alone
    if fit.driven.sum() < least or left_alone.sum() == 1:
        return None
    unlikely = 2.0 * float(np.log(POLICY.direct_odds))  # as rare as behind a link
    better = design.cost_alone - fit.cost
    if better < POLICY.clearly + unlikely:
        return None
    links, gain = fit.links()
    return HiddenSeries(fit.driven, fit.memory, links, gain, better)


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


class _Fit:
    """Weights, and what is expected of the driver, found in turn."""

    def __init__(self, design: _Design) -> None:
        self._d, n, n_lags = design, design.n, design.n_lags
        turn = np.exp(-2j * np.pi * np.arange(n // 2 + 1) / n)
        self._turn, self._delays = turn, turn ** np.arange(n_lags)[:, None]
        self._times = np.full(len(turn), 2.0)  # every frequency stands for its negative, too
        self._times[0] = 1.0
        if n % 2 == 0:
            self._times[-1] = 1.0
        self._apart = np.abs(np.subtract.outer(np.arange(n_lags), np.arange(n_lags)))
        self.cost, self.memory = np.inf, 0.0
        self._terms: BoolArray = np.zeros((len(design.tags) + n_lags, design.n_series), dtype=bool)
        self._gain: FloatArray = np.zeros(self._terms.shape)
        self._loading: FloatArray = np.zeros((design.n_series, n_lags))
        self.unique: FloatArray = np.ones(design.n_series)
        self._errors: FloatArray = design.now

    @property
    def driven(self) -> BoolArray:
        """The series with a loading."""
        return np.asarray(self._terms[len(self._d.tags) :].any(axis=0))

    def search(self) -> None:
        """Find terms and weights from several starts, then leave out terms one by one."""
        best = self._state
        best_terms, best_gain = self._terms, self._gain
        loadings = np.ones((self._d.n_lags, self._d.n_series), dtype=bool)
        for links in self._d.starts():
            terms, begun = np.vstack([links, loadings]), []
            for driver in self._first_guesses(links):
                amplitude = np.fft.rfft(np.sqrt(0.5) * driver)
                self._take(amplitude, np.full(len(amplitude), 0.5))  # half of it is noise
                begun.append((self._converged(terms, _FIRST_ROUNDS), self._state))
            self._state = min(begun, key=lambda one: one[0])[1]
            self._expect()
            for _ in range(_CHOICES):
                before = self._terms
                self._maximise(None)
                if np.array_equal(before, self._terms):
                    break
                self._expect()
                self._converged(self._terms, _ROUNDS)
                cost = self._cost(self._terms)
                if cost < self.cost:
                    self.cost, best = cost, self._state
                    best_terms, best_gain = self._terms, self._gain
        self._terms, self._gain, self._state = best_terms, best_gain, best
        self._leave_out()

    def _leave_out(self) -> None:
        """Leave out terms whose loss lowers the likelihood by less than their price."""
        d, price = self._d, self._prices
        kept = np.vstack([d.kept, np.zeros((d.n_lags, d.n_series), dtype=bool)])
        for _ in range(_SWEEPS):
            before, may_go = self.cost, self._terms & ~kept & (self._gain < price + _SURE)
            for term in sorted(np.argwhere(may_go).tolist(), key=lambda at: self._gain[tuple(at)]):
                terms, state = self._terms.copy(), self._state
                terms[tuple(term)] = False
                self._expect()
                self._converged(terms, _ROUNDS_WITHOUT)
                cost = self._cost(terms)
                if cost < self.cost:
                    self.cost, self._terms = cost, terms
                else:
                    self._gain[tuple(term)] = cost - self.cost + price[term[0], 0]
                    self._state = state
            if self.cost == before:
                break
        self._expect()

    def links(self) -> tuple[BoolArray, FloatArray]:
        """Give the links ``[cause, effect, lag]``, and what speaks for each that may be."""
        d, size = self._d, (self._d.n_series, self._d.n_series, self._d.n_lags)
        links, gain = np.zeros(size, dtype=bool), np.zeros(size)
        driver = self._errors - self._driver @ self._loading.T
        for i in range(d.n_series):
            at = np.flatnonzero(self._terms[: len(d.tags), i])
            basis, _ = np.linalg.qr(d.columns[:, at])
            free = d.columns - basis @ (basis.T @ d.columns)
            square = np.maximum((free**2).sum(axis=0), _TINY)
            share = (
                (free.T @ driver[:, i]) ** 2
                / square
                / max(float(driver[:, i] @ driver[:, i]), _TINY)
            )
            for column, (cause, lag, _) in enumerate(d.tags):
                if self._terms[column, i]:
                    links[cause, i, lag] |= cause != i
                    worth = self._gain[column, i]
                elif d.offered[column, i] and square[column] > _RIDGE * d.n:
                    worth = min(-d.n * np.log1p(-min(float(share[column]), 0.99)), d.price[column])
                else:
                    continue
                gain[cause, i, lag] = max(gain[cause, i, lag], worth)
        return links, gain

    def _first_guesses(self, terms: BoolArray) -> list[FloatArray]:
        """Give what errors beside some terms have in common, and each of them."""
        d, errors = self._d, np.empty_like(self._d.now)
        for i in range(d.n_series):
            at = np.flatnonzero(terms[:, i])
            gram = d.gram[np.ix_(at, at)] + _RIDGE * np.eye(len(at))
            errors[:, i] = d.now[:, i] - d.columns[:, at] @ np.linalg.solve(gram, d.shared[at, i])
        errors = _standard(errors)
        _, weight = factor_model(errors.T @ errors / d.n)
        return [_standard((errors @ weight.T)[:, [0]])[:, 0], *errors.T]

    @property
    def _state(self) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        return self.memory, self._loading, self.unique, self._errors

    @_state.setter
    def _state(self, state: tuple[float, FloatArray, FloatArray, FloatArray]) -> None:
        self.memory, self._loading, self.unique, self._errors = state

    @property
    def _prices(self) -> FloatArray:
        """The prices of columns, then of loadings, ``[term, 1]``."""
        loadings = np.full(self._d.n_lags, self._d.price_of_loading)
        return np.append(self._d.price, loadings)[:, None]

    def _cost(self, terms: BoolArray) -> float:
        return self._misfit + float((self._prices * terms).sum() + np.log(self._d.n))

    def _converged(self, terms: BoolArray, rounds: int) -> float:
        """Find the weights of some terms; give twice the negative log-likelihood."""
        before = np.inf
        for _ in range(rounds):
            self._maximise(terms)
            self._expect()
            if before - self._misfit < _CONVERGED:
                break
            before = self._misfit
        return self._misfit

    def _expect(self) -> None:
        """Find what is expected of the driver, and the likelihood, frequency by frequency."""
        errors = np.fft.rfft(self._errors, axis=0).T
        response = self._loading @ self._delays
        spectrum = 1.0 / np.abs(1.0 - self.memory * self._turn) ** 2
        told = (np.abs(response) ** 2 / self.unique[:, None]).sum(axis=0)
        heard = (response.conj() * errors / self.unique[:, None]).sum(axis=0)
        variance = 1.0 / (1.0 / spectrum + told)
        alone = (np.abs(errors) ** 2 / self.unique[:, None]).sum(axis=0)
        n = self._d.n
        misfit = n * np.log(self.unique).sum() + (self._times * np.log1p(spectrum * told)).sum()
        misfit += (self._times * (alone - variance * np.abs(heard) ** 2)).sum() / n
        self._misfit = float(misfit) - n * self._d.n_series
        self._take(variance * heard, variance)

    def _take(self, amplitude: NDArray[np.complex128], variance: FloatArray) -> None:
        """Take the expected driver at every lag, and its autocovariance."""
        n, n_lags = self._d.n, self._d.n_lags
        driver = np.fft.irfft(amplitude, n)
        self._driver = np.column_stack([np.roll(driver, lag) for lag in range(n_lags)])
        self._moment = np.fft.irfft(np.abs(amplitude) ** 2 / n + variance, n)[: n_lags + 1]

    def _maximise(self, terms: BoolArray | None) -> None:
        """Find the weights of some terms given the driver; choose among all if none are given."""
        d, n_columns = self._d, len(self._d.tags)
        with_driver = d.columns.T @ self._driver / d.n
        moment = self._moment[self._apart]
        gram = np.block([[d.gram, with_driver], [with_driver.T, moment]])
        shared = np.vstack([d.shared, self._driver.T @ d.now / d.n])
        errors, unique = np.empty_like(d.now), np.empty(d.n_series)
        weights, gain = np.zeros(shared.shape), np.zeros(shared.shape)
        stays = np.zeros(shared.shape, dtype=bool)
        every = np.ones(d.n_lags, dtype=bool)
        for i in range(d.n_series):
            at = np.flatnonzero(np.append(d.offered[:, i], every) if terms is None else terms[:, i])
            if terms is None:
                kept = np.append(d.kept[:, i], ~every)[at]
                prices = self._prices[at, 0]
                found = backward_elimination(
                    gram[np.ix_(at, at)], shared[at, i], 1.0, kept, d.n, prices
                )
                stays[at, i], gain[at, i] = found.stays, found.gain
                weights[at, i], left = found.weights, found.left
            else:
                some = gram[np.ix_(at, at)] + _RIDGE * np.eye(len(at))
                weights[at, i] = np.linalg.solve(some, shared[at, i])
                left = 1.0 - float(shared[at, i] @ weights[at, i])
            errors[:, i] = d.now[:, i] - d.columns @ weights[:n_columns, i]
            unique[i] = max(left, _LEAST_UNIQUE * d.variance_alone[i])
        now, before = self._moment[:2]
        self.memory = float(np.clip(before / now, -_MOST_MEMORY, _MOST_MEMORY))
        scale = np.sqrt(max(now - self.memory * before, _TINY))  # its own errors have variance one
        self._loading = np.asarray(weights[n_columns:].T * scale)
        self.unique = unique
        self._errors = errors
        if terms is None:
            self._terms, self._gain = stays, gain


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
