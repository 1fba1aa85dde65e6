r"""What a cause adds to the few causes that matter: tests that nothing idle stands in the way of.

A test that holds every lag of every series fixed pays for each of them, though an effect hangs on
few. So the few are looked for first. Every past value x, a normal score, offers four terms: three
Hermite polynomials, which are uncorrelated and of variance one if x has no ties, and a wave,

.. math:: x, \quad (x^2 - 1) / \sqrt 2, \quad (x^3 - 3 x) / \sqrt 6, \quad \sin 2x .

A value that matters is described more closely: once it has one of these terms, also
:math:`\cos 2x` and :math:`|x|` may be chosen. Else what a few terms leave of a common cause would
be filled in by another effect of it. For every effect terms are chosen one by one, beginning with
its own past, as long as they lower the extended information criterion (Chen and Chen 2008, γ = 1/2)

.. math:: n \log(RSS / n) + k (\log n + \log p)

of k terms in n samples, p of them on offer; then those are dropped that later ones have made idle.
Each cause is tested by adding each of its four terms to those chosen from *other* series: chosen
without it, as it may have stood in for one of them. The p-values of the terms (Student's t) are
combined by Cauchy's rule. It may as well be that others now stand in for the cause: if its best
term pays beside all of them, those go that it makes idle, and it is tested again. Which of them is
the cause was decided by the first test; so the second p-value counts down to the square of the
first. Memory is the rule, not the exception: its straight terms are tested all at once (Fisher's
F), beside those chosen in its presence. All follows from the products of the terms, which are
summed once, but for one number: by how much the variance of a term's weight is above what errors of
equal size give (White 1980). Rare events that coincide once, and storms that shake all series
together, are no evidence. That number is itself uncertain if it rests on few samples: it is never
below its mean over the lags of a form, as restless times last, and Student's freedom is that of the
sum of both parts of the variance (Satterthwaite 1946). A term that does not pay with it is not
chosen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer import scratch
from causalformer.detect.evidence import SMALLEST, cauchy_combination
from causalformer.detect.samples import Samples

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_N_TESTED = 4  # forms that a cause is tested by: straight, bent, turned, wavy
_N_FORMS = 6  # with those that only describe a value that matters
_MOST_CHOSEN = 25  # besides its own past
_MOST_SHARED = 16  # effects that may make it worth multiplying all terms with each other
_MOST_TERMS = 2**23  # that effects share, in all rows
_MOST_PRODUCTS = 2**24  # that effects share
_MOST_ROWS = 2**14  # that the variance of scores is read from
_LEAST_SAMPLES = 20
_CAUTION_WITH_GAPS = 0.5  # power of the correction for unequal errors: weights did a part of it
_LEAST_LEFT = 0.1  # of an error that a term has pulled to itself
_SAMPLES_PER_TERM = 8
_SOME_EVIDENCE = 0.1  # a p-value above is not worth a second look
_WEIGHINGS = 2  # rounds
_SPREADS = 2.0  # of chance: what a gap costs is believed beyond that
_LEAST_VARIANCE = 0.05  # of samples without gaps, as a share of the mean
_SAME = 1e-6  # share of a term's variance below which others say the same
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class SparseTests:
    """The tests of all pairs.

    Attributes
    ----------
    p_value : array ``[cause, effect]``
        One where nothing was to be tested.
    explained : array ``[cause, effect]``
        Share of what the terms of other causes leave unexplained that the cause's best term
        explains.
    t : array ``[cause, effect, lag - 1]``
        Largest |t| of the terms of a lag, all other chosen terms given, also the cause's own.
    error : array ``[effect]``
        Mean squared error that the chosen terms let expect in new samples (Akaike's final
        prediction error).
    """

    p_value: FloatArray
    explained: FloatArray
    t: FloatArray
    error: FloatArray


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
    p_value, explained = np.ones((n_causes, n_effects)), np.zeros((n_causes, n_effects))
    t, error = np.zeros((n_causes, n_effects, max_lag)), np.zeros(n_effects)
    for i, search in enumerate(_searches(samples, allowed, own, sources)):
        for cause in np.flatnonzero(allowed[:, i].any(axis=-1)).tolist():
            p_value[cause, i], explained[cause, i] = search.test(cause)
        t[:, i], error[i] = search.t_by_lag(), search.error
    return SparseTests(p_value, explained, t, error)


def causes_that_matter(
    samples: Samples, allowed: BoolArray, pool: Int[Tensor, "effect place"]
) -> Iterator[list[int]]:
    """Name the series of its pool that each effect hangs on, in the order of their choice.

    The first of a pool is the effect itself; `allowed`, ``[place, effect]``, says which may be.
    """
    usable = np.repeat(allowed[..., None], samples.max_lag, axis=2)
    own = np.zeros_like(allowed)
    own[0] = True
    for series, search in zip(pool, _searches(samples, usable, own, pool), strict=True):
        yield list(dict.fromkeys(series[search.values // samples.max_lag].tolist()))


def _searches(
    samples: Samples,
    allowed: BoolArray,
    own: BoolArray,
    sources: Int[Tensor, "effect cause"] | None,
) -> Iterator["Search"]:
    """Search the terms of every effect."""
    n_causes, n_effects, max_lag = allowed.shape
    itself = own.argmax(axis=0).tolist()
    shared = samples.complete and (sources is None or _worth_sharing(samples, *sources.shape))
    if sources is None:
        sources = torch.arange(n_causes).expand(n_effects, -1)
    series = sources.cpu().numpy()
    if not shared:
        for i in range(n_effects):
            yield search_terms(samples.of(series[i].tolist(), [i]), allowed[:, i], itself[i])
        return
    products, rows = _summed(samples)
    per_cause = max_lag * _N_FORMS
    n_terms = samples.n_series * per_cause
    for i in range(n_effects):
        terms = 1 + (series[i][:, None] * per_cause + np.arange(per_cause)).ravel()
        columns = np.concatenate([[0], terms, [1 + n_terms + i]])
        of_effect = products[np.ix_(columns, columns)]
        yield Search(of_effect, rows, len(samples), allowed[:, i], itself[i], columns=columns)


def _worth_sharing(samples: Samples, n_effects: int, n_causes: int) -> bool:
    """Say whether to multiply the terms of all series once, in place of those of each effect.

    That must be clearly less work, and neither terms nor products may take much memory.
    """
    less = samples.n_series**2 <= n_causes**2 * min(n_effects, _MOST_SHARED)
    n_rows = min(len(samples), _MOST_ROWS)
    few = n_rows * samples.past[0].numel() * _N_FORMS <= _MOST_TERMS
    return less and few and n_shared_products(samples.n_series, samples.max_lag) > 0


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
    """Search the terms of the only effect.

    If past values are missing, samples that lack one of those that matter go wrong more than
    others. They are weighed accordingly, and the search is done again.
    """
    n_counted = int((samples.observed > 0).sum())

    def searched() -> Search:
        products, rows = _summed(samples)
        if not samples.complete:
            weight = samples.thinned(_MOST_ROWS).observed.cpu().double().numpy()
            rows = rows[weight[:, 0] > 0] * np.sqrt(weight[weight > 0])[:, None]
        caution = 1.0 if samples.complete else _CAUTION_WITH_GAPS
        return Search(products, rows, n_counted, allowed, own, caution)

    search = searched()
    for _ in range(0 if samples.complete or n_counted < _LEAST_SAMPLES else _WEIGHINGS):
        samples = replace(samples, observed=_weighed(samples, search))
        search = searched()
    if not samples.complete and n_counted:
        search.judge(_columns(samples)[samples.observed[:, 0].cpu().numpy() > 0])
    return search


def _weighed(samples: Samples, search: "Search") -> Float[Tensor, "sample one"]:
    """Weigh every observed sample by one over the variance that its gaps let expect.

    That is the variance without gaps, and more for every chosen value that is missing.
    """
    from scipy.optimize import nnls

    observed = samples.observed[:, 0].cpu().numpy() > 0
    square = search.errors(_columns(samples)[observed]) ** 2
    assert samples.hidden is not None
    lacking = samples.hidden.flatten(1).cpu().numpy()[observed][:, search.values]
    gaps = np.column_stack([np.ones(len(lacking)), lacking])
    variance, weight = np.ones(len(square)), np.zeros(len(observed), dtype=np.float32)
    chance = _SPREADS * square.std() / np.sqrt(np.maximum(lacking.sum(axis=0), 1.0))
    for _ in range(_WEIGHINGS):
        costs, _ = nnls(gaps / variance[:, None], square / variance)
        costs[1:] = np.maximum(costs[1:] - chance, 0.0)
        least = max(costs[0], _LEAST_VARIANCE * square.mean(), _TINY)
        variance = np.maximum(gaps @ costs, least)
    weight[observed] = least / variance
    return torch.from_numpy(weight)[:, None].to(samples.observed)


def _summed(
    samples: Samples,
) -> tuple[Float[np.ndarray, "column column"], Float[np.ndarray, "sample column"]]:
    """Sum the products of ``1, term, ..., term, effect, ...``; a term is (cause, lag, form).

    Also give these columns themselves, of no more than `_MOST_ROWS` samples.
    """
    n_effects, n_terms = samples.now.shape[1], samples.past[0].numel() * _N_FORMS
    products = np.zeros((1 + n_terms + n_effects, 1 + n_terms + n_effects))
    for some in scratch.parts(len(samples), n_terms):
        columns = _columns(samples, some)
        if samples.complete:
            products += columns.T @ columns
        else:  # then there is one effect
            products += (columns * samples.observed[some].cpu().double().numpy()).T @ columns
    at_once = len(columns) == len(samples) <= _MOST_ROWS
    return products, columns if at_once else _columns(samples.thinned(_MOST_ROWS))


def _columns(samples: Samples, some: slice = slice(None)) -> Float[np.ndarray, "sample column"]:
    """Give ``1, term, ..., term, effect, ...`` of some samples."""
    past, now = (x[some].cpu().double().numpy() for x in (samples.past, samples.now))
    square = past**2
    forms = (
        past,
        (square - 1.0) / np.sqrt(2.0),
        past * (square - 3.0) / np.sqrt(6.0),
        np.sin(2.0 * past),
        np.cos(2.0 * past),
        np.abs(past),
    )
    terms = np.stack(forms, axis=-1).reshape(len(past), past[0].size * _N_FORMS)
    return np.hstack([np.ones((len(past), 1)), terms, now])


class Search:
    """The terms that one effect hangs on, and tests against them."""

    def __init__(
        self,
        products: Float[np.ndarray, "column column"],
        rows: Float[np.ndarray, "sample column"],
        n_samples: int,
        allowed: BoolArray,
        own: int,
        caution: float = 1.0,
        columns: IntArray | None = None,
    ) -> None:
        self._caution = caution
        self._columns = np.arange(len(products)) if columns is None else columns  # in the rows
        self._n = float(n_samples)
        total = max(float(products[0, 0]), _TINY)
        mean = products[0] / total
        covariance = products / total - np.outer(mean, mean)
        variance = np.diag(covariance)
        varies = variance > _SAME**2 * np.maximum(mean**2, _SAME)
        scale = np.where(varies, 1.0 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
        correlation = covariance * np.outer(scale, scale)
        self._all = correlation[1:-1, 1:]  # of terms with terms and the effect
        self._between, self._shared = self._all[:, :-1], self._all[:, -1]
        self._variance = float(max(variance[-1], 0.0))
        self._wrong: float | None = None
        self._rows, self._mean, self._scale = rows, mean, scale
        n_causes, self._max_lag = allowed.shape
        self._cause = np.repeat(np.arange(n_causes), self._max_lag * _N_FORMS)
        self._usable = np.repeat(allowed.ravel(), _N_FORMS) & varies[1:-1]
        form = np.arange(len(self._cause)) % _N_FORMS
        self._value, self._tested = np.arange(len(self._cause)) // _N_FORMS, form < _N_TESTED
        self._own, self._first = own, (self._cause == own) & (form == 0)
        n_tested = max(int(self._tested.sum()), 1)
        self._price = float(np.log(max(self._n, 2.0)) + np.log(n_tested))
        self._chosen = self._choose(self._usable)
        self._rest = self._shares_beside(self._chosen)

    def test(self, cause: int) -> tuple[float, float]:
        """Give the p-value of a cause, and the share that its best term explains."""
        if cause == self._own:
            return self._test_memory()
        if not (self._cause[self._chosen] == cause).any():
            return self._added(cause, self._chosen, self._rest)
        others = self._choose(self._usable & (self._cause != cause))
        rest = self._shares_beside(others)
        p_value, explained = self._added(cause, others, rest)
        left = self._without_stand_ins(cause, others, rest)
        if len(left) == len(others):
            return p_value, explained
        alone, explained = self._added(cause, left, self._shares_beside(left))
        return max(alone, p_value**2), explained

    def _added(self, cause: int, others: IntArray, rest: FloatArray) -> tuple[float, float]:
        """Test what a cause adds to others; `rest` is what every term explains beside them."""
        terms = np.flatnonzero(self._tests(cause) & (rest > 0))
        freedom = self._n - len(others) - 2
        if not len(terms) or freedom < 1:
            return 1.0, 0.0
        t = _t(rest[terms], freedom)
        p_value = float(cauchy_combination(*_p_value(t, freedom)))
        if p_value < _SOME_EVIDENCE:
            raised, known = self._unequal(terms, others)
            for form in np.unique(terms % _N_FORMS):
                alike = terms % _N_FORMS == form
                raised[alike] = np.maximum(raised[alike], raised[alike].mean())
                known[alike] = np.minimum(known[alike], known[alike].mean())
            known = raised**2 / (1.0 / freedom + (raised - 1.0) ** 2 / known)
            t = t / raised ** (self._caution / 2)
            p_value = float(cauchy_combination(*_p_value(t, np.minimum(known, freedom))))
        return p_value, float(rest[terms].max())

    def _tests(self, cause: int) -> BoolArray:
        """Say by which terms a cause is tested."""
        return np.asarray((self._cause == cause) & self._tested & self._usable)

    def _without_stand_ins(self, cause: int, others: IntArray, rest: FloatArray) -> IntArray:
        """Drop what the best term of a cause makes idle, if it pays beside all of them."""
        best = int(np.where(self._tests(cause), rest, 0.0).argmax())
        if not self._pays(rest[best]):
            return others
        kept = self._first.copy()
        kept[best] = True
        return self._without_idle(np.append(others, best), kept)[:-1]

    def _test_memory(self) -> tuple[float, float]:
        """Test the effect's own past as `test` does others': all straight terms at once.

        Terms chosen without it would stand in for it; so it is tested beside those chosen with it.
        """
        from scipy.special import fdtrc

        terms = np.flatnonzero(self._first & self._usable)
        others = self._chosen[self._cause[self._chosen] != self._own]
        together = np.append(others, terms)
        freedom = self._n - len(together) - 1
        if not len(terms) or freedom < 1:
            return 1.0, 0.0
        before, after = self._left(others), self._left(together)
        ratio = max(before / after - 1.0, 0.0)
        p_value = float(fdtrc(len(terms), freedom, ratio * freedom / len(terms)))
        return max(p_value, SMALLEST), max(1.0 - after / before, 0.0)

    def t_by_lag(self) -> FloatArray:
        """Give the largest |t| of every lag ``[cause, lag - 1]``, all other chosen terms given."""
        share = np.where(self._usable & self._tested, self._rest, 0.0)
        share[self._chosen] = self._shares_among(self._chosen)
        t = _t(share, max(self._n - len(self._chosen) - 2, 1.0))
        return np.asarray(t.reshape(-1, self._max_lag, _N_FORMS).max(axis=-1))

    @property
    def values(self) -> IntArray:
        """Positions (cause, lag) of the past values that the chosen terms are made of, in order."""
        return np.array(list(dict.fromkeys(self._value[self._chosen].tolist())), dtype=np.int64)

    def errors(self, rows: Float[np.ndarray, "sample column"]) -> FloatArray:
        """Give how far the chosen terms' prediction is off in every row."""
        wrong = self._beside(rows, np.array([len(self._mean) - 2]), self._chosen)[:, 0]
        return np.asarray(wrong * np.sqrt(self._variance))

    @property
    def residual(self) -> FloatArray:
        """How far the chosen terms' prediction is off in every row that the search was given."""
        return self.errors(self._rows)

    @property
    def criterion(self) -> float:
        """The extended information criterion of the chosen terms; small is good."""
        return self._n * float(np.log(self._left(self._chosen))) + len(self._chosen) * self._price

    @property
    def error(self) -> float:
        """Mean squared error that the chosen terms let expect in new samples."""
        n, k = self._n, len(self._chosen) + 1
        wrong = self._variance * self._left(self._chosen) if self._wrong is None else self._wrong
        return wrong * (n + k) / max(n - k, 1.0)

    def judge(self, rows: Float[np.ndarray, "sample column"]) -> None:
        """Let the error be that of rows that all count the same."""
        self._wrong = float((self.errors(rows) ** 2).mean())

    def _choose(self, usable: BoolArray) -> IntArray:
        """Add terms to the effect's own past, one by one, while they pay; then drop idle ones."""
        most = min(_MOST_CHOSEN, int(self._n) // _SAMPLES_PER_TERM)
        chosen = np.flatnonzero(self._first & usable)[:most]
        kept, refused = np.isin(np.arange(len(usable)), chosen), list[int]()
        while len(chosen) < kept.sum() + most:
            matters = np.isin(self._value, self._value[chosen])
            open_to_choice = usable & (self._tested | matters)
            share = np.where(open_to_choice, self._shares_beside(chosen), 0.0)
            share[chosen] = share[refused] = 0.0
            best = int(share.argmax())
            if not self._pays(share[best]):
                break
            if self._pays(self._robust_share(best, chosen, share[best])):
                chosen = np.append(chosen, best)
            else:
                refused.append(best)
        return self._without_idle(chosen, kept)

    def _without_idle(self, chosen: IntArray, kept: BoolArray) -> IntArray:
        """Drop terms that do not pay, one by one, but for those that are to be kept."""
        while not kept[chosen].all():
            share = np.where(kept[chosen], np.inf, self._shares_among(chosen))
            least = int(share.argmin())
            if self._pays(share[least]):
                break
            chosen = np.delete(chosen, least)
        return chosen

    def _pays(self, share: float) -> bool:
        """Say whether a term that explains such a share of the rest lowers the criterion."""
        return -self._n * float(np.log1p(-min(share, 1 - _TINY))) > self._price

    def _shares_among(self, chosen: IntArray) -> FloatArray:
        """Give the share that every chosen term explains of what the other ones leave."""
        inverse = np.linalg.inv(self._gram(chosen))
        weights = inverse @ self._shared[chosen]
        left = self._left(chosen)
        lost = weights**2 / np.diag(inverse)
        return np.asarray(lost / (lost + left))

    def _shares_beside(self, chosen: IntArray) -> FloatArray:
        """Give the share that every term explains of what the chosen ones leave."""
        with_terms, with_effect = self._between[chosen], self._shared[chosen]
        solved = np.linalg.solve(self._gram(chosen), np.column_stack([with_terms, with_effect]))
        variance = np.diag(self._between) - (with_terms * solved[:, :-1]).sum(axis=0)
        shared = self._shared - with_terms.T @ solved[:, -1]
        says_more = variance > _SAME
        share = shared**2 / np.where(says_more, variance, 1.0) / self._left(chosen)
        return np.asarray(np.where(says_more, np.minimum(share, 1.0), 0.0))

    def _unequal(self, terms: IntArray, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """Give by how much unequal errors raise the variance of each term's weight, at least one.

        White's estimate, each error raised by what the term took from it (HC3). It rests on few
        samples if errors are large where the term is. So also give the freedom of a chi-square law
        of the same mean and variance (Satterthwaite 1946), if errors are normal.
        """
        freed = self._beside(self._rows, np.append(terms, len(self._mean) - 2), chosen)
        term, wrong = freed[:, :-1], freed[:, -1:]
        pull = term**2 / np.maximum((term**2).sum(axis=0), _TINY)
        wrong = wrong - term * (term * wrong).sum(axis=0) / np.maximum((term**2).sum(axis=0), _TINY)
        parts = pull * (wrong / np.maximum(1.0 - pull, _LEAST_LEFT)) ** 2
        robust = parts.sum(axis=0)
        freedom = 3.0 * robust**2 / np.maximum((parts**2).sum(axis=0), _TINY)
        raised = np.maximum(robust / np.maximum((wrong**2).mean(axis=0), _TINY), 1.0)
        return raised, freedom

    def _robust_share(self, term: int, chosen: IntArray, share: float) -> float:
        """Lower the share that a term explains by how much unequal errors raise its variance."""
        raised, _ = self._unequal(np.array([term]), chosen)
        return float(share / (share + raised[0] ** self._caution * (1.0 - share)))

    def _beside(
        self, rows: Float[np.ndarray, "sample column"], columns: IntArray, chosen: IntArray
    ) -> Float[np.ndarray, "sample column"]:
        """Free standardised columns from the chosen terms; the last column is the effect."""
        both = self._all[np.ix_(chosen, columns)]
        weights = np.linalg.solve(self._gram(chosen), both)
        return np.asarray(self._taken(rows, 1 + columns) - self._taken(rows, 1 + chosen) @ weights)

    def _taken(
        self, rows: Float[np.ndarray, "sample column"], at: IntArray
    ) -> Float[np.ndarray, "sample column"]:
        """Take columns and standardise them."""
        return np.asarray(
            (rows[:, self._columns[at]] - rows[:, :1] * self._mean[at]) * self._scale[at]
        )

    def _left(self, chosen: IntArray) -> float:
        """Give the share of the effect's variance that the chosen terms leave."""
        shared = self._shared[chosen]
        return max(1.0 - float(shared @ np.linalg.solve(self._gram(chosen), shared)), _TINY)

    def _gram(self, chosen: IntArray) -> FloatArray:
        return np.asarray(self._between[np.ix_(chosen, chosen)] + _SAME * np.eye(len(chosen)))


def _t(share: FloatArray, freedom: float) -> FloatArray:
    """Turn a share of explained variance into |t|."""
    return np.asarray(np.sqrt(freedom * share / (1.0 - np.minimum(share, 1 - _TINY))))


def _p_value(t: FloatArray, freedom: FloatArray | float) -> FloatArray:
    """Give the two-sided p-value of Student's t."""
    from scipy.special import stdtr

    return np.asarray(np.maximum(2.0 * stdtr(freedom, -t), SMALLEST))
