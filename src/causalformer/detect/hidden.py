r"""Hidden drivers of lagged edges: an effect follows the level of a cause, or its surprises.

A cause acts by its value, whatever that value comes from. A hidden driver that reaches x first and
y later acts on y, too, but only its own share of x foretells y: the part of x that the past does
not explain. What x keeps of its own past is idle. So two models of an edge have the same number of
weights, and the better one is told by the errors they leave:

.. math:: y(t) = \dots + w\, x(t - l) \qquad\text{or}\qquad y(t) = \dots + w\, u_x(t - l) ,

with :math:`u_x` the error of x given its past. This is the comparison behind Durbin, Wu and
Hausman's test of exogeneity, with the past of x as its instrument. Where x has no memory the two
are the same, and nothing can be said. Nor if the noise of y remembers as x does: in a direct edge x
can pass through the memory of that noise, :math:`x(t - l) - r x(t - l - 1)` with a root r of the
polynomial of y's own past (Cochrane and Orcutt 1949). Nor if x acts at two lags that follow each
other, which costs one more weight in the criterion. How many edges of a graph are a hidden driver's
is estimated from all of them together (empirical Bayes, as if four direct ones more had been found:
with a single edge, it is a hidden driver's with one chance in five beforehand). Of effects that the
network predicts better than the terms nothing is said.

A hidden driver of many series that has a memory, or noise that all measurements share, is another
matter: then the past of every series tells something of the driver, and so of all others. What all
tell together is a factor of their errors, and its past is one more series; there may be several. If
that lowers the
information criterion of few terms, summed over all effects, all pairs are tested anew beside it. An
effect that the network predicts better than the terms is left out: there the terms leave something
of its causes unexplained, and a sum of all series makes up for it.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from causalformer.detect.contemporaneous import (
    MOST_SAMPLES,
    Present,
    causes_of,
    freed,
)
from causalformer.detect.factors import MOST_FACTORS, factor_model, misfit
from causalformer.detect.few_terms import Search, basis_terms, search_terms
from causalformer.detect.pair_tests import Evidence
from causalformer.detect.present import beside_the_present
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_ROUNDS = 50
_FACTOR_ROUNDS = 4
_TINY = 1e-12


def hidden_drivers(present: Present, edges: BoolArray, lag: IntArray) -> FloatArray:
    """Say how likely each edge is the work of a hidden driver, ``[cause, effect]``.

    Parameters
    ----------
    present : Present
        All series, and the past terms they hang on.
    edges : array of bool ``[cause, effect]``
        The lagged edges between series; zero elsewhere.
    lag : array of int ``[cause, effect]``
        Position of the lag of each.

    Examples
    --------
    >>> from causalformer.detect.contemporaneous import Term
    >>> rng = np.random.default_rng(0)
    >>> driver, x, y = rng.standard_normal((3, 2000))
    >>> for t in range(2, 2000):
    ...     x[t] += 0.6 * x[t - 1] + driver[t - 1]
    ...     y[t] += driver[t - 2]
    >>> values = np.array([x, y]).T / [x.std(), y.std()]
    >>> slot = np.arange(1, 2000)
    >>> present = Present(
    ...     values[1:], np.ones((1999, 2), bool), [[Term(0, 0, 0)], [Term(0, 0, 0)]],
    ...     lambda term: values[slot - 1 - term.lag, term.cause], slot, 1,
    ... )
    >>> edges = np.array([[False, True], [False, False]])
    >>> bool(hidden_drivers(present, edges, np.zeros((2, 2), int))[0, 1] > 0.8)
    True
    """
    likely = np.zeros(edges.shape)
    pairs = np.argwhere(edges & ~present.by_network).tolist()
    if not pairs:
        return likely
    causes = {cause for cause, _ in pairs}
    surprise = {cause: _surprise(present, cause) for cause in causes}
    odds = np.array([_log_odds(present, c, e, int(lag[c, e]), surprise[c]) for c, e in pairs])
    likelihood, least, most = np.exp(np.clip(odds, -50, 50)), 0.0, 1.0
    for _ in range(_ROUNDS):  # the share that the posterior has on average is the likeliest one
        share = (least + most) / 2
        posterior = share * likelihood / (share * likelihood + 1.0 - share)
        rises = float(posterior.sum()) > share * (len(pairs) + POLICY.direct_odds)
        least, most = (share, most) if rises else (least, share)
    likely[tuple(np.transpose(pairs))] = posterior
    return likely


def _surprise(present: Present, series: int) -> FloatArray:
    """Give the error of a series given its past; NaN where it was not observed."""
    shown = present.observed[:, series]
    _, past = present.past_of([series])
    left = np.full(len(shown), np.nan)
    left[shown] = freed(past[shown], present.now[shown, series][:, None])[:, 0]
    return left


def _log_odds(
    present: Present,
    cause: int,
    effect: int,
    lag: int,
    surprise: FloatArray,
) -> float:
    """Compare the surprises of a cause with its values as what an effect hangs on."""
    then = present.before(surprise, lag)
    value = np.where(present.observed[:, cause], present.now[:, cause], np.nan)
    levels = [present.before(value, lag + k) for k in range(present.max_lag + 1)]
    shown = present.observed[:, effect] & np.isfinite(then) & np.isfinite(levels[1])
    if shown.sum() < POLICY.least_samples:
        return 0.0
    others = [term for term in present.terms[effect] if term.cause != cause]
    given = np.column_stack([np.zeros(len(shown)), *map(present.column, others)])[shown]
    past, now = np.nan_to_num(np.column_stack(levels))[shown], present.now[shown, effect]
    memory = np.zeros(present.max_lag)
    own = [k for k, t in enumerate(others) if t.cause == effect and t.form == 0 and t.lag >= 0]
    weights = np.linalg.lstsq(np.column_stack([given, past[:, :2]]), now, rcond=None)[0]
    memory[[others[k].lag for k in own]] = weights[1:][own]
    bent = sorted({t.form for t in present.terms[effect] if (t.cause, t.lag) == (cause, lag)} | {0})
    by_surprise, by_two, *direct = (
        _log_error(given, basis_terms(x / max(float(x.std()), _TINY))[:, bent], now)
        for x in (then[shown], past[:, :2] @ weights[-2:], *_direct(past, memory))
    )
    by_two += float(np.log(len(now))) / len(now)  # the price of one more weight
    return 0.5 * len(now) * (min(by_two, *direct) - by_surprise)


def _direct(past: Float[np.ndarray, "sample lag"], memory: FloatArray) -> list[FloatArray]:
    """Give what an effect sees of a cause: its value, or that through the memory of its own noise.

    The weights of the effect's own past, `memory`, are a polynomial of the lag, with a root for
    every memory that the effect, or its noise, has. Through the noise's it sees
    ``x(t) - r x(t - 1)``, with one root r, or what all of them leave.
    """
    roots = np.roots(np.append(1.0, -memory))
    real = [float(r.real) for r in roots if abs(r.imag) < _TINY]
    return [past[:, 0], past[:, 0] - past[:, 1:] @ memory, *(past[:, :2] @ [1.0, -r] for r in real)]


def _log_error(given: FloatArray, columns: FloatArray, effect: FloatArray) -> float:
    """Give the logarithm of the squared error that given columns and some more leave."""
    left = freed(np.hstack([given, columns]), effect[:, None])
    return float(np.log(max(float((left**2).sum()), _TINY)))


def beside_a_driver(
    evidence: Evidence,
    present: Present,
    allowed: BoolArray,
    chosen: BoolArray,
    within: BoolArray,
) -> Evidence | None:
    """Test all lagged edges anew, the past of hidden drivers of all series among the conditions.

    Parameters
    ----------
    evidence : Evidence
        What is known without such a driver.
    present : Present
        All series, and the past terms they hang on.
    allowed : array of bool ``[cause, effect, lag - 1]``
        Which lagged edges may be.
    chosen, within : array of bool ``[cause, effect]``
        The lagged edges, and the contemporaneous links. What reaches an effect through the present
        of its causes is no hidden driver's work, so their present is a condition.

    Returns
    -------
    Evidence or None
        None if there is no such driver.
    """
    drivers = _past_of_factors(present) if len(chosen) >= POLICY.least_driven else None
    if drivers is None:
        return None
    samples = evidence.samples.thinned(MOST_SAMPLES)
    effects = np.flatnonzero(~present.by_network).tolist()
    gain = 0.0
    for effect in effects:
        causes = causes_of(chosen, effect)
        some, usable = beside_the_present(samples, allowed, causes, within)
        gain += search_terms(some, usable, 0).criterion
        gain -= _beside(some, drivers, usable).criterion
    if gain < POLICY.clearly:
        return None
    pairs = evidence.pairs.copy()
    for effect in effects:
        causes = causes_of(evidence.pairs.tested | chosen, effect)
        some, usable = beside_the_present(samples, allowed, causes, within)
        search = _beside(some, drivers, usable)
        t = search.t_by_lag()
        for place, cause in enumerate(causes):
            if cause != effect:
                test = search.test(place)
                pairs.p_value[cause, effect] = pairs.terms_p[cause, effect] = test.p_value
                pairs.size[cause, effect] = test.explained
                pairs.t[cause, effect] = t[place]
                pairs.lag_profile[cause, effect] = t[place] ** 2
    return replace(evidence, pairs=pairs)


def _past_of_factors(present: Present) -> Float[np.ndarray, "sample factor lag"] | None:
    """Estimate the past of factors that the series share.

    The factors are those of the errors of all series, as many as pay for their loadings (Schwarz
    1978); there is none if errors have nothing in common. What the past of the factors explains is
    no part of the past terms of a series, and stays in its errors; so errors and factors are found
    in turn.
    """
    n_samples, n_series = present.now.shape
    past = np.zeros((n_samples, 0, present.max_lag))
    errors = np.full(present.now.shape, np.nan)
    for _ in range(_FACTOR_ROUNDS):
        for i in range(n_series):
            shown, (_, columns) = present.observed[:, i], present.past_of([i])
            of_factors = past.reshape(n_samples, past.shape[1] * past.shape[2])
            given = np.column_stack([np.ones(n_samples), columns, of_factors])[shown]
            weights = np.linalg.lstsq(given, present.now[shown, i], rcond=None)[0]
            n_own = 1 + columns.shape[1]
            errors[shown, i] = present.now[shown, i] - given[:, :n_own] @ weights[:n_own]
        complete = np.isfinite(errors).all(axis=1)
        if complete.sum() < 2 * n_series:
            return None
        spread = np.maximum(errors[complete].std(axis=0), _TINY)
        scaled = (errors - errors[complete].mean(axis=0)) / spread
        weight = _weights_of_factors(scaled[complete])
        if weight is None:
            return None
        scores = np.where(complete[:, None], np.nan_to_num(scaled) @ weight.T, np.nan)
        lags = [
            [present.before(score, lag) for lag in range(present.max_lag)] for score in scores.T
        ]
        past = np.nan_to_num(np.moveaxis(np.array(lags), 2, 0))
        past /= np.maximum(past.std(axis=(0, 2), keepdims=True), 1e-6)
    return np.asarray(past)


def _weights_of_factors(errors: Float[np.ndarray, "sample series"]) -> FloatArray | None:
    """Give the weights of the scores of as many factors as pay, ``[factor, series]``."""
    n_samples, n_series = errors.shape
    correlation = errors.T @ errors / n_samples
    best, least = None, 0.0
    for n_factors in range(1, MOST_FACTORS + 1):
        n_loadings = n_series * n_factors - n_factors * (n_factors - 1) // 2
        if n_loadings >= n_series * (n_series - 1) // 2:
            break
        loading, weight = factor_model(correlation, n_factors)
        cost = n_samples * misfit(correlation, loading) + n_loadings * np.log(n_samples)
        if cost >= least:
            break
        best, least = weight, cost
    return best


def _beside(
    samples: Samples, drivers: Float[np.ndarray, "sample factor lag"], allowed: BoolArray
) -> Search:
    """Search the terms of the only effect, the past of drivers among them as further causes."""
    further = torch.from_numpy(drivers).to(samples.past)
    past, hidden = torch.cat([samples.past, further], dim=1), samples.hidden
    if hidden is not None:
        hidden = torch.cat([hidden, torch.zeros_like(further, dtype=torch.bool)], dim=1)
    usable = np.vstack([allowed, np.ones(drivers.shape[1:], dtype=bool)])
    return search_terms(replace(samples, past=past, hidden=hidden), usable, 0)
