r"""Contemporaneous links: which series act on each other within a slot, and which way.

Every series i gets an equation for its present, given the past that the lagged tests found for it
and for those it may be linked with, and the present of the series before it in an order:

.. math:: x_i(t) = \sum_k w_k\, g_k(\text{past}) + \sum_{j \in P(i)} f_{ij}(x_j(t)) + e_i(t) .

Its terms are chosen by backward elimination with the extended information criterion of
`causalformer.detect.few_terms`, to which the non-Gaussianity of the error is added:

.. math:: C_i = n \log \hat\sigma_i^2 - 2 n J(e_i) + \sum_k (\log n + \log p_k) .

One over p is the share that a term has in what may be beforehand: those of the past have equal
ones, links are straight or bent as often as lagged ones are, from any candidate. J
is Hyvärinen's (1998) approximation of the negentropy, so C is twice the negative log-likelihood
of the equation, whatever law the noise has. The order with the least sum of all C wins. Three
things make one order likelier than another, and one figure counts them all: the past (in the right
order the past of a cause reaches its effect through its present, and needs no terms of its own),
noise that is not Gaussian of either sign (Shimizu et al. 2006), and bent links (Hoyer et al. 2009).
As parents are chosen given all other parents, two causes of a common effect are not joined, as they
are by partial correlations given all series.

A direction is claimed if the best order in which the effect comes before the cause is at least 19
times less likely. A hidden driver of both is the third possibility: then each of the two has the
equation it has without the other, and their errors are correlated. It is compared by the same
figure; beforehand one link in five is such, as of lagged edges. Hidden drivers of many series,
beside links, are compared with the whole graph (`causalformer.detect.factors`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from causalformer.detect.criterion import backward_elimination, negentropy
from causalformer.detect.evidence import SMALLEST, cauchy_combination
from causalformer.detect.factors import BesideFactors, links_beside_factors
from causalformer.detect.few_terms import N_TESTED as N_FORMS
from causalformer.detect.few_terms import basis_term, basis_terms, search_terms
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_MOST_EXACT = 800  # equations up to which all orders are compared
_ROUNDS = 20  # of moves in a large graph, at most
_MOST_MOVED = 30  # series up to which an order is improved by moves; they cost its cube
_TINY = 1e-12
_EXACT = 1e-6  # variance of what series have left of an exact sum
_LONGEST_MEMORY = 100  # lags that autocorrelations are followed over
PREDICTED = -1  # in place of a lag: the network's prediction
MOST_SAMPLES = 2**14
_NUMBERS = 2**22  # of columns that are kept


@dataclass(frozen=True)
class Term:
    """A basis term of a past value: the cause, the position of the lag, and the form."""

    cause: int
    lag: int
    form: int


@dataclass(frozen=True, eq=False)
class Present:
    """What the present is explained by.

    Attributes
    ----------
    now : array ``[sample, series]``
        Standardised values; zero where missing.
    observed : array of bool ``[sample, series]``
        Where there is a value.
    terms : sequence of list of Term
        The past terms that each series hangs on.
    column : callable
        Gives the column ``[sample]`` of a term.
    slot : array of int ``[sample]``
        The slot of every sample.
    max_lag : int
        Lags of the past that every sample has.
    independent : array ``[series, series]``
        How many independent samples of two series a sample is worth (see `levels`); one for
        surprises.
    """

    now: Float[np.ndarray, "sample series"]
    observed: Bool[np.ndarray, "sample series"]
    terms: Sequence[list[Term]]
    column: Callable[[Term], FloatArray]
    slot: IntArray
    max_lag: int
    independent: Float[np.ndarray, "series series"] | None = None

    @property
    def shares(self) -> FloatArray:
        """How many independent samples of two series a sample is worth."""
        return np.ones((self.n_series,) * 2) if self.independent is None else self.independent

    @property
    def share(self) -> float:
        """The same of a series, in the mean."""
        return float(np.diag(self.shares).mean())

    @property
    def n_series(self) -> int:
        """Number of series."""
        return int(self.now.shape[1])

    @property
    def by_network(self) -> BoolArray:
        """Which series the network predicts better than the terms, ``[series]``."""
        return np.array([any(t.lag == PREDICTED for t in terms) for terms in self.terms], bool)

    def before(self, values: FloatArray, lag: int) -> FloatArray:
        """Give the values ``[sample]`` at the position of a lag before; NaN where no sample is."""
        then = self.slot - lag - 1
        row = self._row_of_slot[np.maximum(then, 0)]
        return np.where((then >= 0) & (row >= 0), values[row], np.nan)

    @cached_property
    def _row_of_slot(self) -> IntArray:
        row = np.full(int(self.slot.max()) + 1, -1)
        row[self.slot] = np.arange(len(self.slot))
        return row

    def past_of(self, series: Iterable[int]) -> tuple[list[Term], FloatArray]:
        """Give the past terms that some series hang on, each once, and their columns."""
        terms = list(dict.fromkeys(term for i in series for term in self.terms[i]))
        columns = [self.column(term) for term in terms]
        return terms, np.column_stack(columns) if columns else np.zeros((len(self.now), 0))


@dataclass(frozen=True, eq=False)
class ContemporaneousEvidence:
    """Contemporaneous links; matrices are ``[cause, effect]``.

    Attributes
    ----------
    p_value : array, symmetric
        Test of a link, given the other terms of its effect's equation, either way round.
    partial : array, symmetric
        The partial correlation that goes with it.
    linked : array of bool
        The links of the most likely graph, each in its likelier direction.
    probability : array
        How likely the direction is, against the reverse; 0 where no link is.
    hidden : array, symmetric
        How likely a hidden driver of both is, against the link; 0 where no link is, and at least
        one half in a clique of four.
    factor : array of bool ``[series]``
        Whether few hidden drivers of many series, this one among them, explain what these share
        within a slot better than links alone; then links are those beside the drivers.
    levels : bool
        Whether levels were looked at, not surprises, as they show more (see `likelier_view`).
    """

    p_value: FloatArray
    partial: FloatArray
    linked: BoolArray
    probability: FloatArray
    hidden: FloatArray
    factor: BoolArray
    levels: bool = False

    @property
    def oriented(self) -> BoolArray:
        """Whether the direction is claimed."""
        return np.asarray(self.linked & (self.probability >= POLICY.claim))

    @property
    def by_hidden_driver(self) -> BoolArray:
        """Whether a hidden driver of both explains a link better."""
        return np.asarray(self.hidden >= POLICY.claim)


def no_links(n_series: int) -> ContemporaneousEvidence:
    """Give the evidence if nobody has looked."""
    none, one = np.zeros((n_series, n_series)), np.ones((n_series, n_series))
    return ContemporaneousEvidence(one, none, none > 0, none, none, np.zeros(n_series, bool))


def contemporaneous_evidence(present: Present, allowed: BoolArray) -> ContemporaneousEvidence:
    """Find and orient the links of the present; `allowed` says which may be, ``[cause, effect]``.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> x = rng.laplace(size=(1000, 3))
    >>> x[:, 2] += 0.5 * x[:, 0] - 0.5 * x[:, 1]
    >>> seen, none = np.ones(x.shape, bool), [[], [], []]
    >>> present = Present(x / x.std(0), seen, none, lambda term: x[:, 0], np.arange(1000), 1)
    >>> found = contemporaneous_evidence(present, ~np.eye(3, dtype=bool))
    >>> found.oriented
    array([[False, False,  True], [False, False,  True], [False, False, False]])
    """
    present = likelier_view(present)
    n_series = present.n_series
    p_value, partial, candidate = _first_look(present, allowed | allowed.T)
    joined = np.flatnonzero(candidate.any(axis=0)).tolist()
    designs = {i: _Design(present, candidate, i) for i in joined}
    equations, all_of_the_past = (
        _Equations(designs, candidate & allowed, eliminate_past=yes, share=present.share)
        for yes in (True, False)
    )
    linked = np.zeros((n_series, n_series), dtype=bool)
    probability, hidden = np.zeros(linked.shape), np.zeros(linked.shape)
    factor = np.zeros(n_series, dtype=bool)
    for part in _components(candidate):
        if _are_dependent(present, part):
            continue  # an exact relation, of shares of a whole say, has no direction
        order = _best_order(equations, part)
        if found := order.beside_factors:
            factor[list(order.series)] = found.driven
            at = np.ix_(order.series, order.series)
            some = found.gain > 0
            linked[at], probability[at] = some, np.where(some | some.T, 0.5, 0.0)
            p_value[at] = np.where(some | some.T, found.p_value, 1.0)
            continue
        edges = [(x, y) for y in part for x in equations.given(y, order.before(y)).parents]
        if not edges:
            continue
        without_past = _best_order(all_of_the_past, part)
        for x, y in edges:
            present_says = without_past.worse_reversed(x, y)
            past_says = order.worse_reversed(x, y) - present_says
            uncounted = min(abs(past_says), equations.price(y))
            likelier = present_says + np.sign(past_says) * (abs(past_says) - uncounted)
            probability[x, y] = 1.0 / (1.0 + np.exp(-np.clip(likelier, -1e3, 1e3) / 2))
            probability[y, x] = 1.0 - probability[x, y]
            hidden[x, y] = hidden[y, x] = _hidden_driver(equations, order, (x, y))
            # either equation may have found the link: two tests of one thing
            turned = (set(order.before(y)) | {y}) - {x}
            forth = _tested(present, x, y, equations.given(y, order.before(y)))
            back = _tested(present, y, x, equations.given(x, turned))
            p_value[x, y] = p_value[y, x] = _combined([forth[0], back[0]], (0.5, 0.5))
            partial[x, y] = partial[y, x] = forth[1]
        _draw(linked, edges, probability, allowed)
    linked &= ~_left_over(present, partial)
    drawn = linked | linked.T
    hidden = np.where(_in_cliques(drawn), np.maximum(hidden, 0.5), hidden)
    p_value = np.where(drawn | ~candidate, p_value, 1.0)  # explained by other links
    levels = present.independent is not None
    return ContemporaneousEvidence(p_value, partial, linked, probability, hidden, factor, levels)


def likelier_view(present: Present) -> Present:
    r"""Look at levels, not at surprises, if these show more of what joins the series.

    Surprises, what the past leaves, are the efficient way to see links: the information that two
    normal series have of each other, per slot, is

    .. math:: -\frac{1}{4\pi} \int \log\bigl(1 - |C(\omega)|^2\bigr)\, d\omega .

    Where links are weak the correlation of levels has no more, and as much if the coherence C has
    the shape of the spectra (by Cauchy and Schwarz). So it is where sampling is slower than the
    dynamics and each series is seen through a slow response with a delay of its own (BOLD): what is
    fast is noise and disagreement, which surprises bring out, and they pay for terms besides. So
    both are measured: Bartlett's (1951) likelihood ratio against independent series, of levels
    with as many samples as their memory leaves (Bartlett 1935), of surprises with what the past of
    others gained, less its price. Levels have to be clearly ahead, as all that is claimed.
    """
    levels = as_levels(present)
    more = _of_correlation(levels.now, levels.observed, levels.share)
    return levels if more > _evidence_of_surprises(present) + POLICY.clearly else present


def as_levels(present: Present) -> Present:
    r"""Forget the past of all series; memory counts as fewer samples.

    Among independent series the variance of a correlation of n samples is
    :math:`(1 + 2 \sum_k \rho_x(k) \rho_y(k)) / n` (Bartlett 1935). Autocorrelations count up to
    the first that chance may make; a memory without end leaves no samples. Borders of recordings
    are not seen: they make the memory shorter, by a share of the lags in the samples.
    """
    now = present.now - present.now.mean(axis=0)
    n_samples = len(now)
    rho = np.zeros((min(n_samples // 4, _LONGEST_MEMORY) + 1, now.shape[1]))
    size = np.maximum((now**2).sum(axis=0), _TINY)
    clear = np.ones(now.shape[1], dtype=bool)
    for lag in range(1, len(rho)):
        rho[lag] = (now[lag:] * now[:-lag]).sum(axis=0) / size
        clear &= np.abs(rho[lag]) > POLICY.one_sided / np.sqrt(n_samples)
        rho[lag] *= clear
        if not clear.any():
            break
    inflated = np.maximum(1.0 + 2.0 * rho.T @ rho, 1.0)
    inflated[clear] = inflated[:, clear] = np.inf
    none: list[list[Term]] = [[] for _ in range(present.n_series)]
    return replace(present, terms=none, independent=1.0 / inflated)


def _evidence_of_surprises(present: Present) -> float:
    """Measure how clearly surprises are joined, and what the past of others foretells."""
    left, gained = np.zeros_like(present.now), 0.0
    for i in range(present.n_series):
        shown = present.observed[:, i]
        terms, past = present.past_of([i])
        own = np.array([t.cause == i and t.lag != PREDICTED for t in terms], dtype=bool)
        value = present.now[shown, i : i + 1]
        left[shown, i] = freed(past[shown], value)[:, 0]
        if not own.all():
            alone = freed(past[shown][:, own], value)[:, 0]
            ratio = float((alone**2).sum() / max((left[shown, i] ** 2).sum(), _TINY))
            price = int((~own).sum()) * np.log(max(shown.sum(), 2))
            gained += max(float(shown.sum() * np.log(max(ratio, 1.0)) - price), 0.0)
    return gained + _of_correlation(left, present.observed, 1.0)


def _of_correlation(x: FloatArray, observed: BoolArray, share: float) -> float:
    """Give Bartlett's (1951) statistic of a correlation matrix; 0 if the samples are too few."""
    complete, n_series = observed.all(axis=1), x.shape[1]
    n_samples = share * complete.sum()
    if n_series < 2 or n_samples < 2 * n_series + 5:
        return 0.0
    some = x[complete] - x[complete].mean(axis=0)
    some = some / np.maximum(some.std(axis=0), _TINY)
    size = np.linalg.slogdet(some.T @ some / len(some) + _TINY * np.eye(n_series))[1]
    return float(-(n_samples - (2 * n_series + 5) / 6) * size)


def _in_cliques(drawn: BoolArray) -> BoolArray:
    """Say which links are among four series that are all linked with each other.

    One hidden driver of four series, which remembers in a way that no factor describes, looks like
    that; links have to be six for it. So it is at least as likely.
    """
    found = np.zeros_like(drawn)
    for x, y in np.argwhere(np.triu(drawn)).tolist():
        both = np.flatnonzero(drawn[x] & drawn[y])
        found[x, y] = found[y, x] = drawn[np.ix_(both, both)].any()
    return found


def _are_dependent(present: Present, part: list[int]) -> bool:
    """Say whether one of several series is an exact sum of others; a copy is a link."""
    now = present.now[present.observed[:, part].all(axis=1)][:, part]
    if len(part) < 3 or len(now) < 2 * len(part):
        return False
    scaled = (now - now.mean(axis=0)) / np.maximum(now.std(axis=0), _TINY)
    correlation = scaled.T @ scaled / len(now)
    size = np.linalg.eigvalsh(correlation)
    copies = int((np.abs(np.triu(correlation, 1)) > 1.0 - _EXACT).any(axis=0).sum())
    return int((size < _EXACT).sum()) > copies


def _left_over(present: Present, partial: FloatArray) -> BoolArray:
    """Say which pairs may share no more than what a network leaves of their past.

    Where causes act together, as in Lorenz 96, no model resolves the past well, and what it leaves
    is shared by neighbours. So if the network predicts one of two series better than the terms do,
    their link must explain as much as was asked of links beside the past before.
    """
    either = present.by_network[:, None] | present.by_network
    return np.asarray(either & (partial**2 < POLICY.left_over))


def _draw(
    linked: BoolArray, edges: list[tuple[int, int]], probability: FloatArray, allowed: BoolArray
) -> None:
    """Draw links in their likelier direction, the clearest first, without a directed cycle."""
    for x, y in sorted(edges, key=lambda pair: (-abs(probability[pair] - 0.5), pair)):
        cause, effect = (x, y) if probability[x, y] >= probability[y, x] else (y, x)
        if not allowed[cause, effect] or reaches(linked, effect, cause):
            cause, effect = effect, cause
        linked[cause, effect] = True


def reaches(linked: BoolArray, start: int, end: int) -> bool:
    """Say whether there is a directed path."""
    reached, new = {start}, {start}
    while new:
        new = set(np.flatnonzero(linked[sorted(new)].any(axis=0)).tolist()) - reached
        reached |= new
    return end in reached


def forms(values: FloatArray) -> FloatArray:
    """Give the basis terms of every value that are tested, along a new last axis."""
    return basis_terms(values)[..., :N_FORMS]


def make_present(
    values: FloatArray,
    samples: Samples,
    likely: BoolArray,
    allowed: BoolArray,
    error: FloatArray,
    residual: NDArray[np.float32],
) -> Present:
    """Collect the present of all series, and the past terms that each hangs on.

    The terms are chosen among normal scores, as in the lagged tests; here they are made of
    standardised values, as normal scores would hide a noise that is not Gaussian. If the network
    predicts a series better than the terms, its held-out prediction is one more term.

    Parameters
    ----------
    values : array ``[slot, series]``
        In the units of the data; NaN is a missing value.
    samples : Samples
        Normal scores.
    likely : array of bool ``[cause, effect]``
        Which pairs may have lagged edges.
    allowed : array of bool ``[cause, effect, lag - 1]``
        Which lagged edges may be.
    error : array ``[effect]``
        Held-out mean squared error of the network.
    residual : array ``[sample, effect]``
        Its held-out errors.
    """
    step = -(-len(samples) // MOST_SAMPLES)
    samples, residual = samples.thinned(MOST_SAMPLES), residual[::step]
    scores = samples.now.cpu().double().numpy()
    observed = (samples.observed > 0).expand(scores.shape).cpu().numpy()
    standard = standardised(values)
    past = samples.past.cpu().double().numpy()
    terms: list[list[Term]] = []
    for effect in range(samples.n_series):
        causes = causes_of(likely, effect)
        search = search_terms(samples.of(causes, [effect]), allowed[causes, effect], 0)
        chosen = [Term(causes[place], lag, form) for place, lag, form in search.terms]
        better = [Term(effect, PREDICTED, 0)] if error[effect] < search.error else []
        terms.append(chosen + better)

    @lru_cache(maxsize=_NUMBERS // len(samples))
    def column(term: Term) -> FloatArray:
        if term.lag == PREDICTED:
            return np.asarray(scores[:, term.cause] - residual[:, term.cause])
        value = standard[samples.slot - term.lag - 1, term.cause]
        missing = np.isnan(value)
        if missing.any():
            value[missing] = _in_units(past[missing, term.cause, term.lag], standard, term.cause)
        return basis_term(value, term.form)

    now = np.where(observed, standard[samples.slot], 0.0)
    return Present(now, observed, terms, column, samples.slot, samples.max_lag)


def causes_of(likely: BoolArray, effect: int) -> list[int]:
    """List the effect itself, then its likely causes."""
    return list(dict.fromkeys([effect, *np.flatnonzero(likely[:, effect]).tolist()]))


def _in_units(scores: FloatArray, standard: FloatArray, series: int) -> FloatArray:
    """Turn normal scores into standardised values of the same rank."""
    from scipy.special import ndtr

    return np.asarray(np.nanquantile(standard[:, series], ndtr(scores)))


def standardised(values: FloatArray) -> FloatArray:
    """Standardise every series; bring glitches to a limit that noise hardly reaches.

    One bad row in all series would otherwise link them all. The limit is that of Tukey's far
    outliers in standard deviations of a normal law, about 5.

    Examples
    --------
    >>> x = np.r_[np.arange(99.0), 1e300][:, None]
    >>> bool(np.abs(standardised(x)).max() < 5)
    True
    """
    _, exponent = np.frexp(np.nanmax(np.abs(values), axis=0))
    scaled = np.ldexp(values, -exponent)  # exact, and no square can overflow now
    lower, middle, upper = np.nanquantile(scaled, (0.25, 0.5, 0.75), axis=0)
    reach = POLICY.reach * (upper - lower) / 1.349  # quartiles of a normal law are 1.349 apart
    reach = np.where(reach > 0, reach, np.inf)
    clipped = np.clip(scaled, middle - reach, middle + reach)
    spread = np.nanstd(clipped, axis=0)
    return np.asarray((clipped - np.nanmean(clipped, axis=0)) / np.where(spread > 0, spread, 1.0))


def _first_look(present: Present, allowed: BoolArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Test every pair given its past alone; say which may be linked, alone or given all others.

    So few pairs may be by chance that they do not join all series to one graph.
    """
    n_samples, n_series = present.now.shape
    left = np.zeros((N_FORMS, n_samples, n_series))
    for i in range(n_series):
        _, past = present.past_of([i])
        shown = present.observed[:, i]
        left[:, shown, i] = freed(past[shown], forms(present.now[shown, i])).T
    n_terms = np.array([len(terms) for terms in present.terms])
    n_both = n_terms[:, None] + n_terms
    p_value, partial = _pair_tests(left, present.observed, n_both, present.shares)
    given_all = _given_all(left[0], present.observed, present.shares)
    chance = min(POLICY.second_look, POLICY.doubt / max(n_series - 1, 1))
    candidate = allowed & (np.minimum(p_value, given_all) < chance)
    np.fill_diagonal(candidate, val=False)
    return p_value, partial, candidate & _affordable(partial, candidate, n_terms, n_samples)


def _affordable(
    partial: FloatArray, candidate: BoolArray, n_terms: IntArray, n_samples: int
) -> BoolArray:
    """Say which candidates an equation can have: two samples for each of their terms, at least.

    Where one driver acts on very many series all are candidates of each other. The closest count.
    """
    most = max(POLICY.least_driven, int(n_samples / 2 / (N_FORMS + n_terms.mean())))
    close = np.where(candidate, np.abs(partial), -1.0)
    rank = np.argsort(np.argsort(-close, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray((rank < most) | (rank < most).T)


def _given_all(errors: FloatArray, observed: BoolArray, shares: FloatArray) -> FloatArray:
    """Give p-values of the partial correlations given all other series."""
    from scipy.special import stdtr

    n_series, complete = errors.shape[1], observed.all(axis=1)
    freedom = shares * complete.sum() - n_series
    if freedom.min() < n_series:
        return np.ones((n_series, n_series))
    precision = np.linalg.pinv(np.cov(errors[complete].T), hermitian=True)
    scale = np.sqrt(np.maximum(np.diag(precision), _TINY))
    partial = np.clip(precision / np.outer(scale, scale), -1 + _TINY, 1 - _TINY)
    np.fill_diagonal(partial, 0.0)
    t = np.abs(partial) * np.sqrt(freedom / (1.0 - partial**2))
    return np.asarray(2.0 * stdtr(freedom, -t))


def _tested(present: Present, x: int, y: int, equation: "Equation") -> tuple[float, float]:
    """Test a link by what it adds to the other terms of its effect's equation.

    What found the link also tests it. All of the past of both, and of the other parents, would cost
    a short series more samples than it has. The equation frees the effect from its past, not the
    cause: all forms of the cause are tested with the straight effect, and no other; and its last
    value is a condition, as levels that wander are alike by chance (Granger and Newbold 1974).
    Where levels are tested, memory counts as fewer samples instead.
    """
    now = [(series, form) for series, form in equation.now if series != x]
    series = sorted({x, y, *(k for k, _ in now)})
    shown = present.observed[:, series].all(axis=1)
    last = set[Term]() if present.independent is not None else {Term(x, 0, 0)}
    columns = [present.column(term) for term in {*equation.past, *last}]
    columns += [forms(present.now[:, k])[:, form] for k, form in now]
    given = np.reshape(columns, (len(columns), len(present.now))).T[shown]
    left = freed(given, forms(present.now[shown][:, [x, y]]).reshape(len(given), -1))
    both = np.moveaxis(left.reshape(len(left), 2, N_FORMS), 2, 0)
    n_terms = np.full((2, 2), given.shape[1])
    shares = present.shares[np.ix_([x, y], [x, y])]
    p_values, partial = _form_tests(both, np.ones(both.shape[1:], dtype=bool), n_terms, shares)
    p_value = _combined(p_values, _shares(N_FORMS - 1))
    return float(p_value[0, 1]), float(partial[0, 1])


def freed(given: FloatArray, columns: FloatArray) -> FloatArray:
    """Give what the given columns and a constant leave of others."""
    given, columns = given - given.mean(axis=0), columns - columns.mean(axis=0)
    gram = given.T @ given
    gram.flat[:: len(gram) + 1] += 1e-6 * max(len(given), 1)
    return np.asarray(columns - given @ np.linalg.solve(gram, given.T @ columns))


def _pair_tests(
    left: Float[np.ndarray, "form sample series"],
    observed: Bool[np.ndarray, "sample series"],
    n_terms: IntArray,
    shares: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Test all pairs of series for a link; give p-values and correlations ``[series, series]``.

    What the past leaves of the straight values of both is correlated, and of the bent forms of each
    with the straight values of the other.
    """
    (straight, *bent), correlation = _form_tests(left, observed, n_terms, shares)
    p_value = _combined([straight, *bent, *(p.T for p in bent)], _shares(2 * len(bent)))
    p_value = np.maximum(p_value, p_value.T)  # equal but for rounding
    np.fill_diagonal(p_value, 1.0)
    np.fill_diagonal(correlation, 0.0)
    return p_value, correlation


def _shares(n_bent: int) -> list[float]:
    """Say how common a straight link is, and links of so many bent forms."""
    return [POLICY.straight_share, *[POLICY.bent_share / n_bent] * n_bent]


def _combined(p_values: Sequence[FloatArray | float], weights: Sequence[float]) -> FloatArray:
    """Combine p-values by Cauchy's rule; if none was to be had, all are one, and so is theirs."""
    stacked = np.stack([np.asarray(p) for p in p_values])
    combined = cauchy_combination(*stacked, weights=weights)
    return np.where(stacked.min(axis=0) < 1.0, combined, 1.0)


def _form_tests(
    left: Float[np.ndarray, "form sample series"],
    observed: Bool[np.ndarray, "sample series"],
    n_terms: IntArray,
    shares: FloatArray,
) -> tuple[list[FloatArray], FloatArray]:
    """Correlate every form of each series with the straight values of each other.

    Noise whose size changes together is no link: errors of unequal size raise the variance of a
    correlation, that of straight values as it is with the link (`_unequal_with_link`), so that a
    link does not count against itself. A bent form has a few large values, whose errors such a link
    would take to itself; its variance is the one without (White 1980).

    Returns
    -------
    list of array ``[series, series]``, array ``[series, series]``
        The p-values of every form, and the correlations of straight values.
    """
    from scipy.special import stdtr

    seen, straight = observed.astype(np.float64), left[0]
    together = seen.T @ seen
    freedom = shares * together - n_terms - 2.0
    size_of_straight = seen.T @ straight**2  # [x, y]: of y where x was seen
    p_values, correlation = list[FloatArray](), np.zeros(together.shape)
    for form in range(N_FORMS):
        size = np.maximum((left[form] ** 2).T @ seen * size_of_straight, SMALLEST)
        shared = left[form].T @ straight / np.sqrt(size)
        if form == 0:
            correlation = np.clip(shared, -1.0 + _TINY, 1.0 - _TINY)
            unequal = _unequal_with_link(straight, seen, correlation)
        else:
            unequal = together * ((left[form] ** 2).T @ straight**2) / size
        at_least_one = np.maximum(freedom, 1.0)
        t = np.abs(shared) * np.sqrt(at_least_one / np.maximum(1 - shared**2, _TINY))
        t /= np.sqrt(np.maximum(unequal, 1.0))
        p_value = np.maximum(2.0 * stdtr(at_least_one, -t), SMALLEST)
        p_values.append(np.where(freedom < 1.0, 1.0, p_value))
    return p_values, correlation


def _unequal_with_link(
    x: Float[np.ndarray, "sample series"],
    seen: Float[np.ndarray, "sample series"],
    correlation: FloatArray,
) -> FloatArray:
    r"""Say by how much unequal errors raise the variance of correlations, ``[series, series]``.

    In any law the variance of a correlation r of standardised x and y is

    .. math:: E\bigl[xy - r (x^2 + y^2) / 2\bigr]^2 / n ,

    and :math:`(1 - r^2)^2 / n` if it is normal (delta method; DiCiccio and Romano 2017).
    """
    together = np.maximum(seen.T @ seen, 1.0)
    square = np.maximum((x**2).T @ seen / together, _TINY)  # [x, y]: of x where y was seen
    fourth = (x**4).T @ seen / together / square**2
    both = (x**2).T @ x**2 / together / (square * square.T)
    third = (x**3).T @ x / together / np.sqrt(square**3 * square.T)
    r = correlation
    variance = both - r * (third + third.T) + r**2 / 4 * (fourth + fourth.T + 2 * both)
    return np.asarray(variance / (1.0 - r**2) ** 2)


@dataclass(frozen=True, eq=False)
class Equation:
    """The present of a series: its criterion, its terms, and its errors.

    The terms are those of the past, and (series, form) of the present of others.
    """

    cost: float
    past: tuple[Term, ...]
    now: tuple[tuple[int, int], ...]
    errors: FloatArray
    rows: IntArray

    @property
    def parents(self) -> tuple[int, ...]:
        """The series whose present is in it."""
        return tuple(sorted({series for series, _ in self.now}))


class _Equations:
    """The equations of all series, given which others may be in them; each is fitted once.

    Without `eliminate_past` all past terms stay in every equation, so that the past of two series
    says nothing about which of them comes first.
    """

    def __init__(
        self,
        designs: Mapping[int, "_Design"],
        candidate: BoolArray,
        *,
        eliminate_past: bool,
        share: float = 1.0,
    ) -> None:
        self.share = share
        self._designs, self._candidate, self._eliminate = designs, candidate, eliminate_past
        self._known: dict[tuple[int, tuple[int, ...]], Equation] = {}

    def given(self, effect: int, before: Iterable[int]) -> Equation:
        """Fit the equation of a series, with the present of those before it on offer."""
        offered = tuple(sorted(k for k in before if self._candidate[k, effect]))
        key = effect, offered
        if key not in self._known:
            self._known[key] = self._designs[effect].fitted(offered, self._eliminate)
        return self._known[key]

    def n_equations(self, part: list[int]) -> int:
        """Say how many equations all orders of some series take."""
        return int((2 ** self._candidate[np.ix_(part, part)].sum(axis=0)).sum())

    def beside_factors(self, order: tuple[int, ...]) -> BesideFactors | None:
        """Let hidden factors drive some series in an order, beside straight links among them.

        In the place of a factor of four series there are three links at least.
        """
        before = [self.given(i, order[:at]).parents for at, i in enumerate(order)]
        if sum(map(len, before)) < POLICY.least_driven - 1:
            return None
        designs = [self._designs[i] for i in order]
        rows = designs[0].rows
        for design in designs[1:]:
            rows = np.intersect1d(rows, design.rows)
        if len(rows) < 2 * len(order):
            return None
        earlier = np.triu(np.ones((len(order), len(order)), dtype=bool), 1)
        found = links_beside_factors(
            [design.past_in(rows) for design in designs],
            [design.own for design in designs],
            np.column_stack([design.effect_in(rows) for design in designs]),
            earlier & self._candidate[np.ix_(order, order)],
            float(np.mean([design.price for design in designs])),
            float(np.mean([design.price_of_link for design in designs])),
            self.share,
        )
        if found is None:
            return None
        more = float(np.mean([len(design.rows) for design in designs])) / len(rows)
        return replace(found, cost=found.cost * more)  # of as many rows as equations with links

    def price(self, effect: int) -> float:
        """Give what a term of the past costs in an equation."""
        return self._designs[effect].price

    def price_of_link(self, effect: int) -> float:
        """Give what a straight link costs."""
        return self._designs[effect].price_of_link


class _Design:
    """The columns that an equation may have: the past, and the present of its candidates."""

    def __init__(self, present: Present, candidate: BoolArray, effect: int) -> None:
        self._series = np.flatnonzero(candidate[:, effect] | candidate[effect]).tolist()
        self._terms, past = present.past_of([effect, *self._series])
        self.rows = np.flatnonzero(present.observed[:, [effect, *self._series]].all(axis=1))
        others = forms(present.now[:, self._series]).reshape(len(past), -1)
        columns = np.hstack([past, others, present.now[:, [effect]]])[self.rows]
        columns -= columns.sum(axis=0) / max(len(columns), 1)
        n_rows = float(max(len(columns), 2))
        self._n, self._n_past = max(n_rows * present.share, 2.0), len(self._terms)
        gram = columns.T @ columns / n_rows
        scale = np.sqrt(np.maximum(np.diag(gram), _TINY))
        self._columns = columns / scale
        self._gram = gram / np.outer(scale, scale)
        own = [term.cause == effect and term.form == 0 for term in self._terms]
        self.own = np.array(own, dtype=bool)
        self.price = float(np.log(self._n) + np.log(max(columns.shape[1] - 1, 2)))
        share = np.array(_shares(N_FORMS - 1))
        of_forms = np.log(self._n) + np.log(max(len(self._series), 1) / share)
        of_past = np.full(self._n_past, self.price)
        self._prices = np.append(of_past, np.tile(of_forms, len(self._series)))
        self.price_of_link = float(of_forms[0])

    def past_in(self, rows: IntArray) -> FloatArray:
        """Give the past terms in some rows."""
        columns = self._columns[np.searchsorted(self.rows, rows), : self._n_past]
        return np.asarray(columns - columns.mean(axis=0))

    def effect_in(self, rows: IntArray) -> FloatArray:
        """Give the effect in some rows."""
        effect = self._columns[np.searchsorted(self.rows, rows), -1]
        return np.asarray(effect - effect.mean())

    def fitted(self, offered: tuple[int, ...], eliminate_past: bool) -> Equation:
        """Drop terms that do not pay, one by one, but for the straight past of the effect."""
        first = [self._n_past + N_FORMS * self._series.index(k) for k in offered]
        at = np.array([*range(self._n_past), *(a + f for a in first for f in range(N_FORMS))], int)
        kept = np.zeros(len(at), dtype=bool)
        kept[: self._n_past] = self.own if eliminate_past else True
        gram, shared = self._gram[np.ix_(at, at)], self._gram[at, -1]
        prices = self._prices[at]
        stays, weights, left, _ = backward_elimination(gram, shared, 1.0, kept, self._n, prices)
        errors = self._columns[:, -1] - self._columns[:, at[stays]] @ weights[stays]
        past = tuple(self._terms[place] for place in at[stays] if place < self._n_past)
        places = (divmod(int(k) - self._n_past, N_FORMS) for k in at[stays] if k >= self._n_past)
        now = tuple((self._series[place], form) for place, form in places)
        cost = self._n * float(np.log(left)) + float(prices[stays].sum())
        return Equation(cost - 2.0 * self._n * negentropy(errors), past, now, errors, self.rows)


class _Order:
    """An order of some series, and what its equations cost."""

    def __init__(
        self,
        equations: _Equations,
        series: tuple[int, ...],
        all_orders: "_AllOrders | None" = None,
    ) -> None:
        self._equations, self.series, self._all_orders = equations, series, all_orders
        self.cost = sum(equations.given(i, self.before(i)).cost for i in series)

    def before(self, effect: int) -> tuple[int, ...]:
        """Give the series before one of them."""
        return self.series[: self.series.index(effect)]

    def worse_reversed(self, x: int, y: int) -> float:
        """By how much the best order with y before x costs more than the best with x before y."""
        if self._all_orders is not None:
            return self._all_orders.cost(y, x) - self._all_orders.cost(x, y)
        a, b = sorted((self.series.index(x), self.series.index(y)))
        first, last, between = self.series[a], self.series[b], self.series[a + 1 : b]
        ways = ((last, first, *between), (*between, last, first))
        orders = ((*self.series[:a], *way, *self.series[b + 1 :]) for way in ways)
        turned = min(_Order(self._equations, order).cost for order in orders)
        return (turned - self.cost) * (1.0 if first == x else -1.0)

    @cached_property
    def beside_factors(self) -> BesideFactors | None:
        """Hidden drivers of many series, and links beside them, if they cost clearly less."""
        found = self._equations.beside_factors(self.series)
        return found if found and found.cost < self.cost - POLICY.clearly else None


class _AllOrders:
    """The best of all orders of some series, and of all in which one comes before another.

    The best order of every subset follows from those of the subsets with one series less (Silander
    and Myllymäki 2006), and so does the best order of those behind it from the subsets with one
    series more. A subset is a number whose bits say who is in it.
    """

    def __init__(self, equations: _Equations, part: list[int]) -> None:
        self._part, self._subsets = part, np.arange(2 ** len(part))
        self._inside = (self._subsets >> np.arange(len(part))[:, None] & 1) > 0  # place, subset
        members = [tuple(np.array(part)[inside].tolist()) for inside in self._inside.T]
        self._last = np.full(self._inside.shape, np.inf)  # cost of a series right behind a subset
        for place, subset in np.argwhere(~self._inside).tolist():
            self._last[place, subset] = equations.given(part[place], members[subset]).cost
        self._first = np.zeros(len(self._subsets))  # cost of a subset that comes first
        self._rest = np.zeros(len(self._subsets))  # cost of all others behind it
        size = self._inside.sum(axis=0)
        for n_inside in range(1, len(part) + 1):
            here = self._subsets[size == n_inside]
            self._first[here] = self._as_last(here).min(axis=0)
        for n_inside in range(len(part) - 1, -1, -1):
            here = self._subsets[size == n_inside]
            more = here | 1 << np.arange(len(part))[:, None]
            self._rest[here] = (self._last[:, here] + self._rest[more]).min(axis=0)

    def _as_last(self, subset: IntArray) -> FloatArray:
        """Give the cost of subsets if each series is their last, ``[place, subset]``."""
        places = np.arange(len(self._part))[:, None]
        without = subset & ~(1 << places)
        cost = self._first[without] + self._last[places, without]
        return np.where(self._inside[:, subset], cost, np.inf)

    @property
    def best(self) -> tuple[int, ...]:
        """The order that costs least."""
        order, subset = list[int](), int(self._subsets[-1])
        while subset:
            place = int(self._as_last(np.array([subset]))[:, 0].argmin())
            order.append(self._part[place])
            subset &= ~(1 << place)
        return tuple(reversed(order))

    def cost(self, x: int, y: int) -> float:
        """Give the cost of the best order in which x comes before y."""
        at_x, at_y = self._part.index(x), self._part.index(y)
        before = self._subsets[self._inside[at_x] & ~self._inside[at_y]]
        whole = self._first[before] + self._last[at_y, before] + self._rest[before | 1 << at_y]
        return float(whole.min())


def _best_order(equations: _Equations, part: list[int]) -> _Order:
    """Find the order of linked series whose equations cost least.

    If hidden factors cost less than an order that is quickly found, a longer search is idle.
    """
    if equations.n_equations(part) <= _MOST_EXACT and len(part) <= 12:
        every = _AllOrders(equations, part)
        return _Order(equations, every.best, every)
    quick = _Order(equations, tuple(part))
    least = quick.cost - len(part) * equations.price_of_link(part[0])
    if (found := quick.beside_factors) and found.cost < least:
        return quick  # whatever the order, links would have to gain one of them per series
    order = _greedy_order(equations, part)
    return order if order.beside_factors or len(part) > _MOST_MOVED else _climbed(equations, order)


def _greedy_order(equations: _Equations, part: list[int]) -> _Order:
    """Begin with the series that the others explain least beyond those before it."""
    order: tuple[int, ...] = ()
    for _ in part:
        rest = [i for i in part if i not in order]
        gain = {i: equations.given(i, order).cost - equations.given(i, part).cost for i in rest}
        order = (*order, min(rest, key=lambda i: (gain[i], i)))
    return _Order(equations, order)


def _climbed(equations: _Equations, best: _Order) -> _Order:
    """Improve an order by moving single series, as long as that lowers the cost."""
    part = sorted(best.series)
    for _ in range(_ROUNDS):
        before = best.cost
        for series in part:
            without = tuple(i for i in best.series if i != series)
            moved = (
                _Order(equations, (*without[:at], series, *without[at:])) for at in range(len(part))
            )
            best = min(best, *moved, key=lambda order: order.cost)
        if best.cost >= before:
            break
    return best


def _hidden_driver(equations: _Equations, order: _Order, pair: tuple[int, int]) -> float:
    """Say how likely a hidden driver of two series is, in place of the link between them."""
    with_link = [equations.given(i, order.before(i)) for i in pair]
    without = [equations.given(i, set(order.before(i)) - set(pair)) for i in pair]
    rows = _common_rows(without)
    correlation = _correlation(without, rows)
    if correlation is None:
        return 0.0
    shared = len(rows) * equations.share * np.log(max(1.0 - correlation[0, 1] ** 2, _TINY))
    shared += float(np.mean([equations.price_of_link(i) for i in pair]))
    worse = shared + sum(e.cost for e in without) - sum(e.cost for e in with_link)
    direct = POLICY.direct_odds * np.exp(np.clip(worse, -1e3, 1e3) / 2)
    return float(1.0 / (1.0 + direct))


def _common_rows(equations: list[Equation]) -> IntArray:
    """Give the rows that all equations have."""
    rows = equations[0].rows
    for equation in equations[1:]:
        if not np.array_equal(rows, equation.rows):
            rows = np.intersect1d(rows, equation.rows, assume_unique=True)
    return rows


def _errors(equations: list[Equation], rows: IntArray) -> FloatArray:
    """Give the errors in some rows, ``[row, series]``, of mean square one."""
    errors = np.stack([e.errors[np.searchsorted(e.rows, rows)] for e in equations], axis=1)
    square = (errors**2).sum(axis=0) / max(len(rows), 1)
    return np.asarray(errors / np.sqrt(np.maximum(square, _TINY)))


def _correlation(equations: list[Equation], rows: IntArray) -> FloatArray | None:
    """Correlate errors in the rows that all have; None if these are too few."""
    if len(rows) < 2 * len(equations):
        return None
    return np.asarray(np.corrcoef(_errors(equations, rows).T))


def _components(candidate: BoolArray) -> list[list[int]]:
    """Give the series that are joined by candidates, component by component."""
    left, parts = set(np.flatnonzero(candidate.any(axis=0)).tolist()), []
    while left:
        part, new = set[int](), {min(left)}
        while new:
            part |= new
            new = set(np.flatnonzero(candidate[sorted(new)].any(axis=0)).tolist()) - part
        parts.append(sorted(part))
        left -= part
    return parts
