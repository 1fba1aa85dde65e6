r"""What a cause adds to the few causes that matter: tests that nothing idle stands in the way of.

A test that holds every lag of every series fixed pays for each of them, though an effect hangs on
few. So the few are looked for first. Every past value x, a normal score, offers four terms: three
Hermite polynomials, which are uncorrelated and of variance one if x has no ties, and a wave,

.. math:: x, \quad (x^2 - 1) / \sqrt 2, \quad (x^3 - 3 x) / \sqrt 6, \quad \sin 2x .

A value that matters is described more closely: once it has one of these terms, also
:math:`\cos 2x` and :math:`|x|` may be chosen. Else what a few terms leave of a common cause would
be filled in by another effect of it. For every effect terms are chosen one by one, beginning with
its own past, as long as they lower the extended information criterion (Chen and Chen 2008, γ = 1/2)

.. math:: (n - k) \log RSS + k \log n - \sum \log \pi

of k terms in n samples, each with the probability π that a link beforehand is this one: straight
ones are commoner (.8 to .2), short lags, too (one over the lag), as in the tests below; were all
equal, −log π would be the logarithm of the number on offer. Then those are dropped that later ones
have made idle.

Not every effect hangs on few values. Behind the chosen terms there may be a crowd of causes too
weak to be chosen one by one. So all straight terms may have random weights of one variance beside
the chosen ones, a mixed model as in genome-wide studies (Segura et al. 2012). The variance is the
one that is likeliest (restricted maximum likelihood), and zero unless that is likelier by more than
a number costs that is estimated, log n; then the terms are chosen again. A straight term that is
tested is not part of the crowd.

Each cause is tested by adding each of its four terms to those chosen from *other* series: chosen
without it, as it may have stood in for one of them; and all of its straight terms at once (Fisher's
F), as an effect may be spread over lags. The p-values (Student's t, Fisher's F) are combined by
Cauchy's rule, weighed by how common such links are. It may as well be that others now stand in for
the cause: if its best term pays beside all of them, those go that it makes idle, and it is tested
again. Which of them is the cause was decided by the first test; so the second p-value counts down
to the square of the first. Memory is the rule, not the exception: its straight terms are tested all
at once, beside those chosen in its presence. Where a cause wanders like a random walk, its level
has no mean, and the t-value of its weight no t distribution: two independent walks seem linked. So
its value before the first of the tested lags is held, too, in every form. The others then count by
how they differ from it, which does not wander, and the usual laws hold (Toda and Yamamoto 1995;
Sims, Stock and Watson 1990). All follows from the products of the terms, which are
summed once, but for one number: by how much the variance of a term's weight is above what errors of
equal size give (White 1980). Rare events that coincide once, and storms that shake all series
together, are no evidence. That number is itself uncertain if it rests on few samples: it is never
below its mean over the lags of a form, as restless times last. A term that does not pay with it is
not chosen.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer import scratch
from causalformer.detect.evidence import SMALLEST, cauchy_combination
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

N_TESTED = 4  # forms that a cause is tested by: straight, bent, turned, wavy
_N_FORMS = 6  # with those that only describe a value that matters
# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_MOST_CHOSEN = 100  # besides its own past
_MOST_SHARED = 16  # effects that may make it worth multiplying all terms with each other
TERMS_IN_ROWS = 2**23  # that the variance of scores is read from, at most
_LEAST_ROWS = 2**10
_MOST_PRODUCTS = 2**24  # that effects share
_MOST_ROWS = 2**14  # that the variance of scores is read from
_LEAST_LEFT = 0.1  # of an error that a term has pulled to itself
_WEIGHINGS = 2  # rounds
_LEAST_VARIANCE = 0.05  # of samples without gaps, as a share of the mean
_CROWDS = np.geomspace(1e-2, 1e2, 17)  # variance of a crowd, in parts of the error's
_ROUNDS = 3  # in which terms and crowd are chosen in turn
_SAME = 1e-6  # share of a term's variance below which others say the same
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class SparseTests:
    """The tests of all pairs.

    Attributes
    ----------
    p_value : array ``[cause, effect]``
        One where nothing was to be tested.
    explained : array ``[cause, effect]``
        Share of what the terms of other causes leave unexplained that the cause's best term
        explains.
    strength : array ``[cause, effect]``
        Weight of that term, in standard deviations of both.
    t : array ``[cause, effect, lag - 1]``
        Largest |t| of the terms of a lag, all other chosen terms given, also the cause's own.
    hangs_on, tested : array of bool ``[cause, effect]``
        Whether a term of the cause was chosen, and whether the pair was tested.
    residual : array of float32 ``[sample, effect]``
        What the chosen terms leave unexplained, in one of `every` samples.
    every : int
        See `residual`.
    """

    p_value: FloatArray
    explained: FloatArray
    strength: FloatArray
    t: FloatArray
    hangs_on: BoolArray
    tested: BoolArray
    residual: NDArray[np.float32]
    every: int = 1

    @classmethod
    def joined(
        cls,
        p_value: FloatArray,
        causes: Int[np.ndarray, "place effect"],
        parts: "Iterable[SparseTests]",
    ) -> "SparseTests":
        """Put the tests of groups of effects together, each for its own causes.

        `p_value`, ``[cause, effect]``, is that of pairs that nobody tested.
        """
        each = list(parts)
        effects = np.arange(causes.shape[1])
        pairs = {}
        for name in _OF_PAIRS:
            found = np.concatenate([getattr(part, name) for part in each], axis=1)
            pairs[name] = np.zeros((*p_value.shape, *found.shape[2:]), dtype=found.dtype)
            if name == "p_value":
                pairs[name][:] = p_value
            pairs[name][causes, effects] = found
        residual = np.concatenate([part.residual for part in each], axis=1)
        return cls(**pairs, residual=residual, every=each[0].every)

    def of(self, causes: Int[np.ndarray, "place effect"], effects: IntArray) -> "SparseTests":
        """Take the tests of some effects, each for its own causes."""
        pairs = {name: getattr(self, name)[causes, effects] for name in _OF_PAIRS}
        return SparseTests(**pairs, residual=self.residual[:, effects], every=self.every)

    def refuted(self, residual: NDArray[np.float32], observed: FloatArray) -> BoolArray:
        """Say of which effects more is known than the terms know, ``[effect]``.

        If the terms are all that an effect hangs on, what they leave has nothing to do with any
        other prediction of it: the test of one forecast encompassing another (Chong and Hendry
        1986), for errors of unequal size. The other prediction, whose `residual` in all samples is
        given, must not have learned from the slots that it predicts; `observed` is one where the
        effect was.
        """
        left, other = self.residual, residual[:: self.every]
        product = np.where(observed[:: self.every] > 0, left * (left - other), 0.0)
        product = product.astype(np.float64)
        spread = np.sqrt(np.maximum((product**2).sum(axis=0), _TINY))
        return np.asarray(product.sum(axis=0) / spread > NormalDist().inv_cdf(1.0 - POLICY.refuted))


_OF_PAIRS = ("p_value", "explained", "strength", "t", "hangs_on", "tested")


def sparse_tests(
    samples: Samples,
    allowed: BoolArray,
    own: BoolArray,
    sources: Int[Tensor, "effect cause"] | None = None,
) -> SparseTests:
    """Test every pair of samples; see the module.

    Parameters
    ----------
    samples : Samples
        The past, and the effects.
    allowed : array of bool ``[cause, effect, lag - 1]``
        Which lags there may be; a cause without any gets p = 1.
    own : array of bool ``[cause, effect]``
        Which cause is the effect itself.
    sources : tensor ``[effect, cause]``, optional
        Which series the causes of each effect are; see `causalformer.model.channels`.

    Examples
    --------
    >>> from causalformer.detect.samples import make_samples
    >>> x, y = np.random.default_rng(0).standard_normal((2, 200))
    >>> y[1:] += x[:-1] ** 2
    >>> values = np.array([x, y]).T
    >>> samples = make_samples(values, [slice(0, 200)], np.zeros(200, int), 1, n_folds=4)
    >>> tests = sparse_tests(samples, np.ones((2, 2, 1), bool), np.eye(2, dtype=bool))
    >>> tests.p_value < 0.01
    array([[False,  True],
           [False, False]])
    """
    n_causes, n_effects, max_lag = allowed.shape
    samples, allowed = _with_levels(samples, allowed)
    found = np.tile(TestOfCause(), (n_causes, n_effects, 1))
    t = np.zeros((n_causes, n_effects, max_lag))
    hangs_on, tested = np.zeros((n_causes, n_effects), dtype=bool), np.asarray(allowed.any(axis=-1))
    residual, every = [], 1
    for i, search in enumerate(_searches(samples, allowed, own, sources)):
        for cause in np.flatnonzero(tested[:, i]).tolist():
            found[cause, i] = search.test(cause)
        t[:, i], hangs_on[:, i], every = search.t_by_lag(), search.hangs_on, search.every
        residual.append(search.residual.astype(np.float32))
    p_value, explained, strength = np.moveaxis(found, -1, 0)
    left = np.stack(residual, axis=1)
    return SparseTests(p_value, explained, strength, t, hangs_on, tested, left, every)


def _with_levels(samples: Samples, allowed: BoolArray) -> tuple[Samples, BoolArray]:
    """Put the values before the past behind it if series wander, as a lag that is not tested."""
    if samples.before is None or samples.wanders is None:
        return samples, allowed
    n_more = samples.n_series - len(samples.wanders)  # causes that were put beside the series
    before = torch.nn.functional.pad(samples.before, (0, n_more))
    past, hidden = torch.cat([samples.past, before[..., None]], dim=-1), samples.hidden
    if hidden is not None:
        hidden = torch.cat([hidden, hidden[..., -1:]], dim=-1)
    none = np.zeros((*allowed.shape[:-1], 1), dtype=bool)
    longer = replace(
        samples, past=past, hidden=hidden, before=None, wanders=np.pad(samples.wanders, (0, n_more))
    )
    return longer, np.concatenate([allowed, none], axis=-1)


def _searches(
    samples: Samples,
    allowed: BoolArray,
    own: BoolArray,
    sources: Int[Tensor, "effect cause"] | None,
) -> Iterator["Search"]:
    """Search the terms of every effect."""
    n_effects, max_lag = allowed.shape[1:]
    itself = own.argmax(axis=0).tolist()
    every = [list(range(samples.n_series))] * n_effects
    causes = every if sources is None else sources.tolist()
    shared = sources is None or _worth_sharing(samples, *sources.shape)
    if samples.complete and shared:
        whole = Products(samples, _shared_rows(samples)).terms()
        for i in range(n_effects):
            terms = whole if sources is None else whole.of(causes[i], max_lag)
            yield Search(terms, i, allowed[:, i], itself[i], wanders=_of(samples, causes[i]))
    elif shared and len(samples) <= _shared_rows(samples):
        products = Products(samples)
        for i in range(n_effects):
            yield _search_with_gaps(products, causes[i], i, allowed[:, i], itself[i])
    else:
        for i in range(n_effects):
            yield search_terms(samples.of(causes[i], [i]), allowed[:, i], itself[i])


def _worth_sharing(samples: Samples, n_effects: int, n_causes: int) -> bool:
    """Say whether to multiply the terms of all series once, in place of those of each effect.

    That must be clearly less work, and the products may not take much memory.
    """
    less = samples.n_series**2 <= n_causes**2 * min(n_effects, _MOST_SHARED)
    return less and n_shared_products(samples.n_series, samples.max_lag) > 0


def _shared_rows(samples: Samples) -> int:
    """Give the number of rows of terms that effects may share."""
    return min(_MOST_ROWS, max(_LEAST_ROWS, TERMS_IN_ROWS // (samples.past[0].numel() * _N_FORMS)))


def n_shared_products(n_series: int, max_lag: int) -> int:
    """Give the number of products that effects with candidates may share; 0 if it is too large.

    Examples
    --------
    >>> [n_shared_products(n_series, 5) for n_series in (10, 100, 1000)]
    [90000, 9000000, 0]
    """
    n_products = (n_series * max_lag * _N_FORMS) ** 2
    return n_products if n_products <= _MOST_PRODUCTS else 0


def search_terms(samples: Samples, allowed: BoolArray, own: int) -> "Search":
    """Search the terms of the only effect."""
    samples, allowed = _with_levels(samples, allowed)
    products = Products(samples)
    if samples.complete:
        return Search(products.terms(), 0, allowed, own, wanders=samples.wanders)
    return _search_with_gaps(products, list(range(samples.n_series)), 0, allowed, own)


def _search_with_gaps(
    products: "Products", causes: list[int], effect: int, allowed: BoolArray, own: int
) -> "Search":
    """Search the terms of an effect if values are missing.

    Samples that lack a past value that matters go wrong more than others. They are weighed
    accordingly, and the search is done again.
    """
    samples = products.samples
    weight = samples.observed[:, effect].cpu().double().numpy()
    observed = weight > 0
    rows = products.rows if products.every == 1 else _columns(samples)
    wanders = _of(samples, causes)
    terms = products.weighed(causes, effect, weight)
    search = Search(terms, 0, allowed, own, POLICY.gap_caution, wanders)
    for _ in range(_WEIGHINGS if observed.sum() >= POLICY.least_samples else 0):
        assert samples.hidden is not None
        hidden = samples.hidden[:, causes].flatten(1).cpu().numpy()
        lacking = hidden[observed][:, search.values]
        weight[observed] = _weights(search.errors(rows)[observed] ** 2, lacking)
        terms = products.weighed(causes, effect, weight)
        search = Search(terms, 0, allowed, own, POLICY.gap_caution, wanders)
    search.judge(products.rows, observed[:: products.every])
    return search


def _of(samples: Samples, causes: list[int]) -> BoolArray | None:
    """Say which causes wander; see `_with_levels`."""
    return None if samples.wanders is None else samples.wanders[causes]


def _weights(square: FloatArray, lacking: Bool[np.ndarray, "sample value"]) -> FloatArray:
    """Weigh every sample by one over the variance that its gaps let expect.

    That is the variance without gaps, and more for every chosen value that is missing; `square`
    are the squared errors.
    """
    from scipy.optimize import nnls

    gaps = np.column_stack([np.ones(len(lacking)), lacking])
    variance = np.ones(len(square))
    chance = POLICY.one_sided * square.std() / np.sqrt(np.maximum(lacking.sum(axis=0), 1.0))
    for _ in range(_WEIGHINGS):
        costs, _ = nnls(gaps / variance[:, None], square / variance)
        costs[1:] = np.maximum(costs[1:] - chance, 0.0)
        least = max(costs[0], _LEAST_VARIANCE * square.mean(), _TINY)
        variance = np.maximum(gaps @ costs, least)
    return np.asarray(least / variance)


class _Crowd(NamedTuple):
    """The straight terms turned to directions in which they are uncorrelated."""

    power: FloatArray  # direction: variance along it
    direction: FloatArray  # straight term, direction
    turned: FloatArray  # direction, term: covariance


@dataclass(frozen=True, eq=False)
class Terms:
    """Standardised terms ``(cause, lag, form)`` of some causes, and effects beside them.

    Attributes
    ----------
    between : array ``[term, term]``
        Correlations.
    shared : array ``[term, effect]``
        Correlations with the effects.
    variance : array ``[effect]``
        Of the effects.
    rows : array ``[sample, column]``
        ``1, term, ..., term, effect, ...``, of some samples only if there are many.
    weight : array ``[sample]`` or None
        How much each of the rows counts; None if all count the same.
    columns, mean, scale : array ``[term or effect]``
        Where terms and effects are among the columns, and what standardises them.
    n_samples : int
        Samples that count.
    every : int
        Of how many samples one is among the rows.
    """

    between: FloatArray
    shared: FloatArray
    variance: FloatArray
    rows: FloatArray
    weight: FloatArray | None
    columns: IntArray
    mean: FloatArray
    scale: FloatArray
    n_samples: int
    every: int

    def of(self, causes: list[int], max_lag: int) -> "Terms":
        """Keep the terms of some causes."""
        per_cause = max_lag * _N_FORMS
        at = (np.array(causes)[:, None] * per_cause + np.arange(per_cause)).ravel()
        both = np.append(at, np.arange(len(self.between), len(self.columns)))
        return replace(
            self,
            between=self.between[np.ix_(at, at)],
            shared=self.shared[at],
            columns=self.columns[both],
            mean=self.mean[both],
            scale=self.scale[both],
        )

    @cached_property
    def crowd(self) -> _Crowd:
        """All straight terms, in uncorrelated directions."""
        among = self.between[::_N_FORMS, ::_N_FORMS]
        power, direction = np.linalg.eigh(among)
        counts = power > _SAME * len(power)
        direction = direction[:, counts]
        return _Crowd(power[counts], direction, direction.T @ self.between[::_N_FORMS])

    def turned(self, rows: FloatArray | None = None) -> FloatArray:
        """Turn the straight terms in rows to the uncorrelated directions."""
        return self._turned if rows is None else self._turn(rows)

    @cached_property
    def _turned(self) -> FloatArray:
        return self._turn(None)

    def _turn(self, rows: FloatArray | None) -> FloatArray:
        straight = self.taken(np.arange(0, len(self.between), _N_FORMS), rows)
        return np.asarray(straight @ self.crowd.direction)

    def taken(self, at: IntArray, rows: FloatArray | None = None) -> FloatArray:
        """Take terms or effects, standardised, out of rows; out of its own, each with its weight.

        Rows that do not count are left out then.
        """
        some = self.rows if rows is None else rows
        taken = (some[:, self.columns[at]] - self.mean[at]) * self.scale[at]
        if rows is None and self.weight is not None:
            counts = self.weight > 0
            return np.asarray(taken[counts] * np.sqrt(self.weight[counts])[:, None])
        return np.asarray(taken)


class Products:
    """Sums of the products of all terms and effects, ``1, term, ..., term, effect, ...``."""

    def __init__(self, samples: Samples, most_rows: int = _MOST_ROWS) -> None:
        self.samples, self.every = samples, -(-len(samples) // most_rows)
        n_effects = samples.now.shape[1]
        self._n_terms = samples.past[0].numel() * _N_FORMS
        n_columns = 1 + self._n_terms + n_effects
        self._sums = np.zeros((n_columns, n_columns))
        for some in scratch.parts(len(samples), self._n_terms):
            columns = _columns(samples, some)
            self._sums += columns.T @ columns
        at_once = len(columns) == len(samples) <= most_rows
        self.rows = columns if at_once else _columns(samples.thinned(most_rows))

    def terms(self) -> Terms:
        """Standardise the terms of all causes; no value is missing. The sums are used up."""
        columns = np.arange(1, len(self._sums))
        return self._standardised(self._sums, columns, self._n_terms, len(self.samples), None)

    def weighed(self, causes: list[int], effect: int, weight: FloatArray) -> Terms:
        """Standardise the terms of some causes beside one effect; samples weigh at most one.

        Where most weigh one, what is too much is taken off the sums.
        """
        per_cause = self.samples.max_lag * _N_FORMS
        terms = (1 + np.array(causes)[:, None] * per_cause + np.arange(per_cause)).ravel()
        columns = np.concatenate([terms, [1 + self._n_terms + effect]])
        at = np.append(0, columns)
        lighter = np.flatnonzero(weight < 1)
        few = 2 * len(lighter) <= len(weight)
        products = self._sums[np.ix_(at, at)] if few else np.zeros((len(at), len(at)))
        which = lighter if few else np.flatnonzero(weight > 0)
        for part in scratch.parts(len(which), len(at)):
            some = which[part]
            rows = self.rows[np.ix_(some, at)] if self.every == 1 else self._columns(some, at)
            if few:
                products -= (rows * (1.0 - weight[some])[:, None]).T @ rows
            else:
                products += (rows * weight[some][:, None]).T @ rows
        n_counted = int((weight > 0).sum())
        return self._standardised(products, columns, len(terms), n_counted, weight[:: self.every])

    def _columns(self, some: IntArray, at: IntArray) -> FloatArray:
        return _columns(self.samples, some)[:, at]

    def _standardised(
        self,
        products: FloatArray,
        columns: IntArray,
        n_terms: int,
        n_samples: int,
        weight: FloatArray | None,
    ) -> Terms:
        total = max(float(products[0, 0]), _TINY)
        mean = products[0, 1:] / total
        covariance = products[1:, 1:]
        covariance /= total
        covariance -= np.outer(mean, mean)
        variance = np.diag(covariance).copy()
        varies = variance > _SAME**2 * np.maximum(mean**2, _SAME)
        scale = np.where(varies, 1.0 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
        covariance *= scale
        covariance *= scale[:, None]
        return Terms(
            between=covariance[:n_terms, :n_terms],
            shared=covariance[:n_terms, n_terms:],
            variance=np.maximum(variance[n_terms:], 0.0),
            rows=self.rows,
            weight=weight,
            columns=columns,
            mean=mean,
            scale=scale,
            n_samples=n_samples,
            every=self.every,
        )


def _columns(
    samples: Samples, some: slice | IntArray = slice(None)
) -> Float[np.ndarray, "sample column"]:
    """Give ``1, term, ..., term, effect, ...`` of some samples; an effect is zero if missing."""
    past, now = (x[some].cpu().double().numpy() for x in (samples.past, samples.now))
    if not samples.complete:
        now = np.where(samples.observed[some].cpu().numpy() > 0, now, 0.0)
    terms = basis_terms(past).reshape(len(past), past[0].size * _N_FORMS)
    return np.hstack([np.ones((len(past), 1)), terms, now])


def basis_terms(values: FloatArray) -> FloatArray:
    """Give the six basis terms of every value along a new last axis; the first four are tested.

    Examples
    --------
    >>> basis_terms(np.array([1.0])).round(2)
    array([[ 1.  ,  0.  , -0.82,  0.91, -0.42,  1.  ]])
    """
    return np.stack([basis_term(values, form) for form in range(_N_FORMS)], axis=-1)


def basis_term(values: FloatArray, form: int) -> FloatArray:
    """Give one of the basis terms of every value."""
    return np.asarray(_FORMS[form](values))


_FORMS: Final[tuple[Callable[[FloatArray], FloatArray], ...]] = (
    lambda x: x,
    lambda x: (x**2 - 1.0) / np.sqrt(2.0),
    lambda x: x * (x**2 - 3.0) / np.sqrt(6.0),
    lambda x: np.sin(2.0 * x),
    lambda x: np.cos(2.0 * x),
    np.abs,
)


class _Beside:
    """What every term says of an effect beside chosen ones; grows with every choice.

    Attributes
    ----------
    variance, shared : array ``[term]``
        What they leave of every term, and its product with what they leave of the effect.
    left : float
        What they leave of the effect.
    """

    def __init__(
        self, terms: Terms, shared: FloatArray, crowd: "_KnownCrowd", chosen: IntArray, room: int
    ) -> None:
        self._between, self._crowd = terms.between, crowd
        self._n_known = len(crowd.of_terms)
        self._known = np.empty((self._n_known + len(chosen) + room, len(shared)))
        self._known[: self._n_known] = crowd.of_terms
        self.variance = np.diag(self._between) - (crowd.of_terms**2).sum(axis=0)
        self.shared = shared - crowd.of_effect @ crowd.of_terms
        self.left = 1.0 - float(crowd.of_effect @ crowd.of_effect)
        for term in chosen.tolist():
            self.add(term)

    @property
    def known(self) -> FloatArray:
        """Directions that the crowd and the chosen terms take, ``[direction, term]``."""
        return self._known[: self._n_known]

    def add(self, term: int) -> None:
        """Choose a term."""
        known, pivot = self.known, np.sqrt(max(self.variance[term], 0.0) + _SAME)
        row = (self._between[term] - known[:, term] @ known) / pivot
        weight = self.shared[term] / pivot
        self._known[self._n_known] = row
        self._n_known += 1
        self.variance = self.variance - row**2
        self.shared = self.shared - weight * row
        self.left = max(self.left - weight**2, _TINY)

    def shares(self) -> FloatArray:
        """Give the share that every term explains of what the chosen ones leave."""
        says_more = self.variance > _SAME
        variance = np.where(says_more, self.variance, 1.0)
        share = self._crowd.share(self.shared, variance, self.left)
        return np.asarray(np.where(says_more, share, 0.0))


@dataclass(frozen=True, eq=False)
class _KnownCrowd:
    """A crowd with weights of a variance, as directions that are known in part."""

    amount: float  # variance of a weight times the samples
    size: FloatArray  # term: the same, zero if it is not of the crowd
    of_terms: FloatArray  # direction, term
    of_effect: FloatArray  # direction
    known: FloatArray  # direction: share of it that is known, root

    def share(
        self, shared: FloatArray, variance: FloatArray, left: FloatArray | float
    ) -> FloatArray:
        """Give the share of the rest that terms explain which are not themselves of the crowd."""
        free = np.maximum(1.0 - self.size * variance, _SAME)
        rest = left + self.size * shared**2 / free
        return np.asarray(np.minimum(shared**2 / (variance * free) / rest, 1.0))

    def at(self, terms: IntArray) -> "_KnownCrowd":
        return replace(self, size=self.size[terms], of_terms=self.of_terms[:, terms])


class TestOfCause(NamedTuple):
    """What a search says of a cause: its p-value, and of its best term what `SparseTests` say."""

    p_value: float = 1.0
    explained: float = 0.0
    strength: float = 0.0


class Search:
    """The terms that one effect hangs on, and tests against them."""

    def __init__(
        self,
        terms: Terms,
        effect: int,
        allowed: BoolArray,
        own: int,
        caution: float = 1.0,
        wanders: BoolArray | None = None,
    ) -> None:
        self._terms, self._caution, self._n = terms, caution, float(terms.n_samples)
        self._shared, self._variance = terms.shared[:, effect], float(terms.variance[effect])
        n_terms = len(self._shared)
        self._effect = n_terms + effect  # its place behind the terms
        self._judged: tuple[FloatArray, float] | None = None
        n_causes, self._max_lag = allowed.shape
        self._cause = np.repeat(np.arange(n_causes), self._max_lag * _N_FORMS)
        self._usable = np.repeat(allowed.ravel(), _N_FORMS) & (terms.scale[:n_terms] > 0)
        form = np.arange(n_terms) % _N_FORMS
        self._value, self._tested = np.arange(n_terms) // _N_FORMS, form < N_TESTED
        self._own, self._first = own, (self._cause == own) & (form == 0)
        self._wanders = wanders
        self._price = np.log(max(self._n, 2.0)) - np.log(self._likely(form))
        self._crowd = self._known_crowd(0.0)
        self._chosen = self._choose(self._usable)
        self._look_for_a_crowd()
        self._beside = self._beside_chosen(self._chosen)
        self._rest = self._beside.shares()

    def _likely(self, form: IntArray) -> FloatArray:
        """Say how likely it is beforehand that a link is this term, as in the tests of causes."""
        likely = np.where(form == 0, POLICY.straight_share, POLICY.bent_share / (N_TESTED - 1))
        likely /= 1.0 + self._value % self._max_lag  # the longer a lag, the rarer
        return np.asarray(likely / likely[self._tested].sum())

    def _look_for_a_crowd(self) -> None:
        """Let straight terms have random weights if that pays; then choose the terms again."""
        for _ in range(_ROUNDS):
            crowd = self._likeliest_crowd()
            if crowd == self._crowd.amount:
                return
            self._crowd = self._known_crowd(crowd)
            self._chosen = self._choose(self._usable)

    def _known_crowd(self, amount: float) -> _KnownCrowd:
        n_terms = len(self._shared)
        if amount == 0:
            nothing = np.empty((0, n_terms))
            return _KnownCrowd(0.0, np.zeros(n_terms), nothing, nothing[:, 0], nothing[:, 0])
        power, direction, turned = self._terms.crowd
        known = np.sqrt(amount / (1.0 + amount * power))
        straight = np.arange(n_terms) % _N_FORMS == 0
        of_effect = known * (direction.T @ self._shared[straight])
        return _KnownCrowd(amount, amount * straight, known[:, None] * turned, of_effect, known)

    def _likeliest_crowd(self) -> float:
        """Give the variance of the straight terms' weights beside the chosen terms, times samples.

        It is zero unless it is likelier by more than the price of a number that is to be estimated.
        """
        power, direction, turned = self._terms.crowd
        chosen, freedom = self._chosen, self._n - len(self._chosen) - 1
        if freedom < 1 or not len(power):
            return 0.0
        of_terms = turned[:, chosen]
        of_effect = direction.T @ self._shared[::_N_FORMS]
        gram, shared = self._gram(chosen, crowd=False), self._shared[chosen]
        sizes = np.append(_CROWDS * self._n / len(direction), 0.0)
        known = sizes[:, None] / (1.0 + sizes[:, None] * power)
        inner = gram - (of_terms.T * known[:, None]) @ of_terms
        outer = shared - (known * of_effect) @ of_terms
        explained = (outer * np.linalg.solve(inner, outer[..., None])[..., 0]).sum(axis=1)
        left = np.maximum(1.0 - known @ of_effect**2 - explained, _TINY)
        spread = np.log1p(sizes[:, None] * power).sum(axis=1) + np.linalg.slogdet(inner)[1]
        doubt = freedom * np.log(left) + spread
        best = int(doubt[:-1].argmin())
        return float(sizes[best]) if doubt[best] + np.log(self._n) < doubt[-1] else 0.0

    def test(self, cause: int) -> TestOfCause:
        """Test what a cause adds to the terms of other series."""
        if cause == self._own:
            return self._test_memory()
        level = self._level(cause)
        if not (self.hangs_on[cause] or len(level)):
            return self._added(cause, self._chosen, self._beside)
        others = self._chosen
        if self.hangs_on[cause]:
            others = self._choose(self._usable & (self._cause != cause))
        others = np.append(others, level)
        beside = self._beside_chosen(others)
        found = self._added(cause, others, beside)
        left = self._without_stand_ins(cause, others, beside.shares())
        if len(left) == len(others):
            return found
        alone = self._added(cause, left, self._beside_chosen(left))
        return alone._replace(p_value=max(alone.p_value, found.p_value**2))

    def _level(self, cause: int) -> IntArray:
        """Give the terms of a cause's level, to be held beside its past if it wanders."""
        if self._wanders is None or not self._wanders[cause]:
            return np.arange(0)
        last = self._value % self._max_lag == self._max_lag - 1
        return np.flatnonzero((self._cause == cause) & last & self._tested)

    @cached_property
    def hangs_on(self) -> BoolArray:
        """Which causes have a chosen term."""
        n_causes = len(self._cause) // (self._max_lag * _N_FORMS)
        return np.isin(np.arange(n_causes), self._cause[self._chosen])

    def _added(self, cause: int, others: IntArray, beside: _Beside) -> TestOfCause:
        """Test what a cause adds to others."""
        rest = self._rest if beside is self._beside else beside.shares()
        terms = np.flatnonzero(self._tests(cause) & (rest > 0))
        freedom = self._n - len(others) - 2
        if not len(terms) or freedom < 1:
            return TestOfCause()
        share = rest[terms]
        if beside is self._beside:
            p_value = float(self._at_first_sight[cause])
        else:
            p_value = self._combined(terms, share, freedom, beside, np.ones(len(terms)))
        if p_value < POLICY.second_look:
            raised = self._unequal(terms, others, beside)
            for form in np.unique(terms % _N_FORMS):
                alike = terms % _N_FORMS == form
                raised[alike] = np.maximum(raised[alike], raised[alike].mean())
            p_value = self._combined(terms, share, freedom, beside, raised**self._caution)
        best = terms[share.argmax()]
        strength = abs(float(beside.shared[best])) / float(beside.variance[best])
        return TestOfCause(p_value, float(rest[best]), strength)

    @cached_property
    def _at_first_sight(self) -> FloatArray:
        """The p-value of every cause beside the chosen terms, as if errors were of equal size.

        That is `_combined` and `_p_value_at_once` for all causes together.
        """
        from scipy.special import fdtrc

        shape = (-1, self._max_lag, _N_FORMS)
        freedom = max(self._n - len(self._chosen) - 2, 1.0)
        p_values = _p_value(_t(self._rest, freedom), freedom).reshape(shape)
        counts = (self._tested & self._usable & (self._rest > 0)).reshape(shape)
        weights = counts / (1.0 + np.arange(self._max_lag)[:, None])
        weights[..., 0] *= (
            POLICY.straight_share / 2 / np.maximum(weights[..., :1].sum(axis=1), _TINY)
        )
        bent = np.maximum(weights[..., 1:].sum(axis=(1, 2), keepdims=True), _TINY)
        weights[..., 1:] *= POLICY.bent_share / bent
        at, straight = np.arange(0, len(self._rest), _N_FORMS).reshape(shape[:2]), counts[..., 0]
        known = np.moveaxis(self._beside.known[:, at], 0, -1)  # cause, lag, direction
        gram = self._terms.between[at[..., None], at[:, None]] - known @ np.swapaxes(known, 1, 2)
        both, identity = straight[..., None] & straight[:, None], np.eye(self._max_lag)
        gram = np.where(both, gram + _SAME * identity, identity)
        alone = gram - (self._crowd.size[at][:, None] * gram) @ gram
        shared = np.where(straight, self._beside.shared[at], 0.0)
        by_itself, beside = (
            (shared * np.linalg.solve(matrix, shared[..., None])[..., 0]).sum(axis=1)
            for matrix in (np.where(both, alone, identity), gram)
        )
        n_terms = np.maximum(straight.sum(axis=1), 1)
        rest = np.maximum(freedom + 1 - n_terms, 1.0)
        left = np.maximum(self._beside.left - beside, _TINY)
        at_once = fdtrc(n_terms, rest, np.maximum(by_itself, 0.0) / left * rest / n_terms)
        over_lags = np.where(
            straight.any(axis=1), POLICY.straight_share / 2, 1.0 * ~counts.any(axis=(1, 2))
        )
        return cauchy_combination(
            *p_values.reshape(len(at), -1).T,
            np.maximum(at_once, SMALLEST),
            weights=np.column_stack([weights.reshape(len(at), -1), over_lags]).T,
        )

    def _combined(
        self,
        terms: IntArray,
        share: FloatArray,
        freedom: float,
        beside: _Beside,
        unequal: FloatArray,
    ) -> float:
        """Combine the p-values of terms, and that of all straight ones at once.

        `share` is what each of them explains, `unequal` how much less it counts; see `_unequal`.
        """
        straight = terms % _N_FORMS == 0
        p_values = _p_value(_t(share, freedom) / np.sqrt(unequal), freedom)
        likely = 1.0 / (1 + terms // _N_FORMS % self._max_lag)  # the longer a lag, the rarer
        weights = np.where(
            straight,
            POLICY.straight_share / 2 * likely / max(float(likely[straight].sum()), _TINY),
            POLICY.bent_share * likely / max(float(likely[~straight].sum()), _TINY),
        )
        if straight.any():
            less = float(np.average(unequal[straight], weights=share[straight]))
            at_once = self._p_value_at_once(terms[straight], freedom, beside, less)
            p_values, weights = (
                np.append(p_values, at_once),
                np.append(weights, POLICY.straight_share / 2),
            )
        return float(cauchy_combination(*p_values, weights=weights))

    def _p_value_at_once(
        self, terms: IntArray, freedom: float, beside: _Beside, unequal: float
    ) -> float:
        """Test straight terms of a cause all at once (Fisher's F)."""
        from scipy.special import fdtrc

        known, shared = beside.known[:, terms], beside.shared[terms]
        gram = self._terms.between[np.ix_(terms, terms)] - known.T @ known
        gram += _SAME * np.eye(len(terms))
        alone = gram - self._crowd.size[terms] * gram @ gram  # without these in the crowd
        gained = max(float(shared @ np.linalg.solve(alone, shared)), 0.0)
        left = max(beside.left - float(shared @ np.linalg.solve(gram, shared)), _TINY)
        freedom = max(freedom + 1 - len(terms), 1.0)
        ratio = gained / left * freedom / len(terms) / unequal
        return max(float(fdtrc(len(terms), freedom, ratio)), SMALLEST)

    def _tests(self, cause: int) -> BoolArray:
        """Say by which terms a cause is tested."""
        return np.asarray((self._cause == cause) & self._tested & self._usable)

    def _without_stand_ins(self, cause: int, others: IntArray, rest: FloatArray) -> IntArray:
        """Drop what the best term of a cause makes idle, if it pays beside all of them."""
        terms, freedom = np.flatnonzero(self._tests(cause)), self._n - len(others) - 2
        if not len(terms):
            return others
        best = int(terms[self._gain(rest[terms], terms, freedom).argmax()])
        if not self._pays(rest[best], best, freedom):
            return others
        kept = self._first.copy()
        kept[best] = kept[self._level(cause)] = True
        return self._without_idle(np.append(others, best), kept)[:-1]

    def _test_memory(self) -> TestOfCause:
        """Test the effect's own past as `test` does others': all straight terms at once.

        Terms chosen without it would stand in for it; so it is tested beside those chosen with it.
        """
        from scipy.special import fdtrc

        terms = np.flatnonzero(self._first & self._usable)
        others = self._chosen[self._cause[self._chosen] != self._own]
        together = np.append(others, terms)
        freedom = self._n - len(together) - 1
        if not len(terms) or freedom < 1:
            return TestOfCause()
        before, after = self._left(others), self._left(together)
        ratio = max(before / after - 1.0, 0.0)
        p_value = max(float(fdtrc(len(terms), freedom, ratio * freedom / len(terms))), SMALLEST)
        explained = max(1.0 - after / before, 0.0)
        return TestOfCause(p_value, explained, float(np.sqrt(explained)))

    def t_by_lag(self) -> FloatArray:
        """Give the largest |t| of every lag ``[cause, lag - 1]``, all other chosen terms given."""
        share = np.where(self._usable & self._tested, self._rest, 0.0)
        share[self._chosen] = self._shares_among(self._chosen)
        t = _t(share, max(self._n - len(self._chosen) - 2, 1.0))
        of_lag = t.reshape(-1, self._max_lag, _N_FORMS).max(axis=-1)
        return np.asarray(of_lag if self._wanders is None else of_lag[:, :-1])

    @property
    def terms(self) -> list[tuple[int, int, int]]:
        """The chosen terms: the place of the cause, the position of the lag, and the form."""
        place = np.unravel_index(self._chosen, (self._cause[-1] + 1, self._max_lag, _N_FORMS))
        return list(zip(*(at.tolist() for at in place), strict=True))

    @property
    def values(self) -> IntArray:
        """Positions (cause, lag) of the past values that the chosen terms are made of, in order."""
        return np.array(list(dict.fromkeys(self._value[self._chosen].tolist())), dtype=np.int64)

    def errors(self, rows: Float[np.ndarray, "sample column"]) -> FloatArray:
        """Give how far the prediction by the chosen terms, and the crowd, is off in every row."""
        wrong = self._freed(np.arange(0), self._chosen, rows)[:, 0]
        return np.asarray(wrong * np.sqrt(self._variance))

    @property
    def residual(self) -> FloatArray:
        """How far the prediction is off, in one of `every` samples."""
        return self.errors(self._terms.rows) if self._judged is None else self._judged[0]

    @property
    def every(self) -> int:
        """See `residual`."""
        return self._terms.every

    @property
    def criterion(self) -> float:
        """The extended information criterion of the chosen terms; small is good."""
        amount, price = self._crowd.amount, float(self._price[self._chosen].sum())
        if amount:
            price += float(np.log1p(amount * self._terms.crowd.power).sum() + np.log(self._n))
        return self._n * float(np.log(self._left(self._chosen))) + price

    @property
    def error(self) -> float:
        """Mean squared error that the chosen terms, and the crowd, let expect in new samples."""
        amount, n = self._crowd.amount, self._n
        k, left = len(self._chosen) + 1.0, self._left(self._chosen)
        if amount:
            power = self._terms.crowd.power
            weights = np.linalg.solve(self._gram(self._chosen), self._both(self._chosen))
            along = self._crowd.of_effect - self._crowd.of_terms[:, self._chosen] @ weights
            left -= float(along**2 @ (1.0 / (1.0 + amount * power)))
            k += float((amount * power / (1.0 + amount * power)).sum())
        wrong = self._variance * left if self._judged is None else self._judged[1]
        return float(wrong * (n + k) / max(n - k, 1.0))

    def judge(self, rows: Float[np.ndarray, "sample column"], observed: BoolArray) -> None:
        """Let the errors be those of rows, of which all that are observed count the same."""
        wrong = self.errors(rows)
        self._judged = wrong, float((wrong[observed] ** 2).mean()) if observed.any() else 0.0

    def _choose(self, usable: BoolArray) -> IntArray:
        """Add terms to the effect's own past, one by one, while they pay; then drop idle ones."""
        most = min(_MOST_CHOSEN, int(self._n) // POLICY.samples_per_weight)
        chosen = np.flatnonzero(self._first & usable)[:most]
        kept, refused = np.isin(np.arange(len(usable)), chosen), list[int]()
        beside = self._beside_chosen(chosen, most)
        matters = np.isin(self._value, self._value[chosen])
        while len(chosen) < kept.sum() + most:
            share = np.where(usable & (self._tested | matters), beside.shares(), 0.0)
            share[chosen] = share[refused] = 0.0
            freedom, every = self._n - len(chosen) - 2, np.arange(len(share))
            best = int(self._gain(share, every, freedom).argmax())
            if not self._pays(share[best], best, freedom):
                break
            robust = self._robust_share(best, chosen, beside, share[best])
            if not self._pays(robust, best, freedom):
                refused.append(best)
                continue
            chosen = np.append(chosen, best)
            matters |= self._value == self._value[best]
            beside.add(best)
        return self._without_idle(chosen, kept)

    def _without_idle(self, chosen: IntArray, kept: BoolArray) -> IntArray:
        """Drop terms that do not pay, one by one, but for those that are to be kept."""
        while not kept[chosen].all():
            share = np.where(kept[chosen], np.inf, self._shares_among(chosen))
            freedom = self._n - len(chosen) - 1
            least = int(self._gain(share, chosen, freedom).argmin())
            if self._pays(share[least], chosen[least], freedom):
                break
            chosen = np.delete(chosen, least)
        return chosen

    def _gain(self, share: FloatArray, terms: IntArray, freedom: float) -> FloatArray:
        """Give by how much terms that explain such shares of the rest lower the criterion.

        The likelihood is that of the errors' `freedom`, as where there is a crowd: else terms of
        noise would pay the more in short series the more are chosen.
        """
        explained = -np.log1p(-np.minimum(share, 1.0 - _TINY))
        return np.asarray(max(freedom, 1.0) * explained - self._price[terms])

    def _pays(self, share: float, term: int, freedom: float) -> bool:
        """Say whether a term that explains such a share of the rest lowers the criterion."""
        return bool(self._gain(np.array([share]), np.array([term]), freedom)[0] > 0)

    def _shares_among(self, chosen: IntArray) -> FloatArray:
        """Give the share that every chosen term explains of what the other ones leave."""
        inverse = np.linalg.inv(self._gram(chosen))
        weights, variance = inverse @ self._both(chosen), 1.0 / np.diag(inverse)
        left = self._left(chosen) + weights**2 * variance
        return self._crowd.at(chosen).share(weights * variance, variance, left)

    def _beside_chosen(self, chosen: IntArray, room: int = 0) -> _Beside:
        """Give what every term says beside the chosen ones."""
        return _Beside(self._terms, self._shared, self._crowd, chosen, room)

    def _unequal(self, terms: IntArray, chosen: IntArray, beside: _Beside) -> FloatArray:
        """Give by how much unequal errors raise the variance of each term's weight, at least one.

        White's estimate, each error raised by what the term took from it (HC3). Equal normal errors
        raise it, too, by chance, the more the fewer samples a term hangs on; it counts if that is
        refuted at 5 %.
        """
        freed = self._freed(terms, chosen)
        term, wrong = freed[:, :-1], freed[:, -1:]
        pull = term**2 / np.maximum((term**2).sum(axis=0), _TINY)
        wrong = wrong - term * (beside.shared[terms] / np.maximum(beside.variance[terms], _TINY))
        robust = (pull * (wrong / np.maximum(1.0 - pull, _LEAST_LEFT)) ** 2).sum(axis=0)
        raised = robust / np.maximum((wrong**2).mean(axis=0), _TINY)
        chance = np.sqrt(2.0 * ((pull - 1.0 / len(pull)) ** 2).sum(axis=0))
        return np.where(raised > 1.0 + POLICY.one_sided * chance, raised, 1.0)

    def _robust_share(self, term: int, chosen: IntArray, beside: _Beside, share: float) -> float:
        """Lower the share that a term explains by how much unequal errors raise its variance."""
        raised = self._unequal(np.array([term]), chosen, beside)
        return float(share / (share + raised[0] ** self._caution * (1.0 - share)))

    def _freed(
        self,
        terms: IntArray,
        chosen: IntArray,
        rows: Float[np.ndarray, "sample column"] | None = None,
    ) -> Float[np.ndarray, "sample column"]:
        """Free standardised terms, and the effect behind them, from the crowd and chosen terms."""
        taken, crowd = self._terms.taken, self._crowd
        freed, others = taken(np.append(terms, self._effect), rows), taken(chosen, rows)
        between = self._terms.between[np.ix_(chosen, terms)]
        both = np.column_stack([between, self._shared[chosen]])
        if len(crowd.known):
            turned = self._terms.turned(rows) * crowd.known
            known = np.column_stack([crowd.of_terms[:, terms], crowd.of_effect])
            freed, others = freed - turned @ known, others - turned @ crowd.of_terms[:, chosen]
            both = both - crowd.of_terms[:, chosen].T @ known
        return np.asarray(freed - others @ np.linalg.solve(self._gram(chosen), both))

    def _left(self, chosen: IntArray) -> float:
        """Give the share of the effect's variance that the chosen terms leave."""
        of_effect, shared = self._crowd.of_effect, self._both(chosen)
        explained = float(shared @ np.linalg.solve(self._gram(chosen), shared))
        return max(1.0 - float(of_effect @ of_effect) - explained, _TINY)

    def _both(self, terms: IntArray) -> FloatArray:
        """Give the products of terms with the effect, beside the crowd."""
        return np.asarray(
            self._shared[terms] - self._crowd.of_effect @ self._crowd.of_terms[:, terms]
        )

    def _gram(self, chosen: IntArray, *, crowd: bool = True) -> FloatArray:
        """Give the products of terms with each other, beside the crowd unless told otherwise."""
        gram = self._terms.between[np.ix_(chosen, chosen)] + _SAME * np.eye(len(chosen))
        if crowd:
            known = self._crowd.of_terms[:, chosen]
            gram -= known.T @ known
        return np.asarray(gram)


def _t(share: FloatArray, freedom: float) -> FloatArray:
    """Turn a share of explained variance into |t|."""
    return np.asarray(np.sqrt(freedom * share / (1.0 - np.minimum(share, 1 - _TINY))))


def _p_value(t: FloatArray, freedom: float) -> FloatArray:
    """Give the two-sided p-value of Student's t."""
    from scipy.special import stdtr

    return np.asarray(np.maximum(2.0 * stdtr(freedom, -t), SMALLEST))
