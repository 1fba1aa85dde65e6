r"""Hidden drivers of lagged edges: an effect follows the level of a cause, or its surprises.

A cause acts by its value, whatever that value comes from. A hidden driver that reaches x first and
y later acts on y, too, but only its own share of x foretells y: the part of x that the past does
not explain. What x keeps of its own past is idle. So two models of an edge have the same number of
weights, and the better one is told by the errors they leave:

.. math:: y(t) = \dots + w\, x(t - l) \qquad\text{or}\qquad y(t) = \dots + w\, u_x(t - l) ,

with :math:`u_x` the error of x given its past. This is the comparison behind Durbin, Wu and
Hausman's test of exogeneity, with the past of x as its instrument. Where x has no memory the two
are the same, and nothing can be said. Nor if the noise of y remembers as x does: a direct edge
whose effect has autoregressive noise is a third model, in which x passes through the memory of y,
:math:`x(t - l) - \sum_k a_k x(t - l - k)` with the weights a of y's own past (Cochrane and Orcutt
1949). How many edges of a graph are a hidden driver's is estimated from all of them together
(empirical Bayes, as if four direct ones more had been found: with a single edge, it is a hidden
driver's with one chance in five beforehand).

A hidden driver of many series that has a memory, or noise that all measurements share, is another
matter: then the past of every series tells something of the driver, and so of all others. What all
tell together is a factor of their errors, and its past is one more series. If that lowers the
information criterion of few terms, summed over all effects, edges are tested anew beside it.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.detect.calibrated import Evidence
from causalformer.detect.contemporaneous import (
    LEAST_DRIVEN,
    LEVEL,
    MOST_SAMPLES,
    Present,
    Term,
    causes_of,
    factor_model,
    freed,
)
from causalformer.detect.few_terms import Search, basis_terms, search_terms
from causalformer.detect.present import beside_the_present
from causalformer.detect.samples import Samples

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_ROUNDS = 50
_DIRECT = 4  # edges that are direct beforehand
_LEAST_SAMPLES = 30


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
    >>> bool(hidden_drivers(present, edges, np.zeros((2, 2), int))[0, 1] > 0.9)
    True
    """
    likely = np.zeros(edges.shape)
    pairs = np.argwhere(edges).tolist()
    if not pairs:
        return likely
    causes = {cause for cause, _ in pairs}
    surprise = {cause: _surprise(present, cause) for cause in causes}
    row_of_slot = np.full(int(present.slot.max()) + 1, -1)
    row_of_slot[present.slot] = np.arange(len(present.slot))
    odds = np.array(
        [_log_odds(present, c, e, int(lag[c, e]), surprise[c], row_of_slot) for c, e in pairs]
    )
    likelihood, least, most = np.exp(np.clip(odds, -50, 50)), 0.0, 1.0
    for _ in range(_ROUNDS):  # the share that the posterior has on average is the likeliest one
        share = (least + most) / 2
        posterior = share * likelihood / (share * likelihood + 1.0 - share)
        rises = float(posterior.sum()) > share * (len(pairs) + _DIRECT)
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
    row_of_slot: IntArray,
) -> float:
    """Compare the surprises of a cause with its values as what an effect hangs on."""
    before = present.slot - lag - 1
    row = np.where(before >= 0, row_of_slot[np.maximum(before, 0)], -1)
    then = np.where(row >= 0, surprise[row], np.nan)
    shown = present.observed[:, effect] & np.isfinite(then)
    if shown.sum() < _LEAST_SAMPLES:
        return 0.0
    others = [term for term in present.terms[effect] if term.cause != cause]
    own = [k for k, term in enumerate(others) if term.cause == effect and term.form == 0]
    given = np.column_stack([np.zeros(len(shown)), *map(present.column, others)])[shown]
    level = present.column(Term(cause, lag, 0))[shown]
    now = present.now[shown, effect]
    reach = {k: Term(cause, lag + others[k].lag + 1, 0) for k in own if others[k].lag >= 0}
    earlier = {
        k: present.column(term)[shown] for k, term in reach.items() if term.lag < present.max_lag
    }
    both = np.column_stack([given, level, *earlier.values()])
    weights = np.linalg.lstsq(both, now, rcond=None)[0][1:]
    carried = level - sum(weights[k] * value for k, value in earlier.items())
    of_cause = {
        term.form for term in present.terms[effect] if (term.cause, term.lag) == (cause, lag)
    }
    bent = sorted(of_cause | {0})
    by_surprise, *direct = (
        _log_error(given, basis_terms(x / max(float(x.std()), 1e-12))[:, bent], now)
        for x in (then[shown], level, carried)
    )
    return 0.5 * len(now) * (min(direct) - by_surprise)


def _log_error(given: FloatArray, columns: FloatArray, effect: FloatArray) -> float:
    """Give the logarithm of the squared error that given columns and some more leave."""
    left = freed(np.hstack([given, columns]), effect[:, None])
    return float(np.log(max(float((left**2).sum()), 1e-12)))


def explained_by_a_factor(
    evidence: Evidence,
    present: Present,
    allowed: BoolArray,
    chosen: BoolArray,
    within: BoolArray,
    alpha: float,
    least: float,
) -> BoolArray | None:
    """Say which lagged edges the past of a hidden driver of all series explains.

    Parameters
    ----------
    evidence : Evidence
        What the edges rest on.
    present : Present
        All series, and the past terms they hang on.
    allowed : array of bool ``[cause, effect, lag - 1]``
        Which lagged edges may be.
    chosen, within : array of bool ``[cause, effect]``
        The lagged edges, and the links within a slot: what comes through those is no driver's work.
    alpha, least : float
        Beside the driver an edge needs this p-value, and must explain so much.

    Returns
    -------
    array of bool ``[cause, effect]`` or None
        None if there is no such driver.
    """
    n_series = len(chosen)
    weight = _weights_of_factor(present) if n_series >= LEAST_DRIVEN else None
    if weight is None:
        return None
    samples = evidence.samples.thinned(MOST_SAMPLES)
    driver = torch.einsum("sil,i->sl", samples.past, torch.from_numpy(weight).to(samples.past))
    driver = driver / driver.std().clamp(min=1e-6)
    causes = [causes_of(chosen, effect) for effect in range(n_series)]
    gain, beside = 0.0, []
    for effect in range(n_series):
        some, usable = beside_the_present(samples, allowed, causes[effect], within)
        beside.append(_beside_driver(some, driver, usable))
        gain += search_terms(some, usable, 0).criterion - beside[-1].criterion
    if gain < 2.0 * np.log(LEVEL / (1.0 - LEVEL)):
        return None
    explained = np.zeros_like(chosen)
    for effect in range(n_series):
        for place, cause in enumerate(causes[effect]):
            if cause != effect:
                test = beside[effect].test(place)
                explained[cause, effect] = test.p_value > alpha or test.explained < least
    return explained


def _weights_of_factor(present: Present) -> FloatArray | None:
    """Give the weights of all series in the factor of their errors."""
    errors = np.stack([_surprise(present, i) for i in range(present.n_series)], axis=1)
    errors = errors[np.isfinite(errors).all(axis=1)]
    if len(errors) < 2 * present.n_series:
        return None
    spread = np.maximum(errors.std(axis=0), 1e-12)
    _, weight = factor_model(np.asarray(np.nan_to_num(np.corrcoef(errors.T))))
    return np.asarray(weight[0] / spread)


def _beside_driver(samples: Samples, driver: torch.Tensor, allowed: BoolArray) -> Search:
    """Search the terms of the only effect, the past of a driver among them as one more cause."""
    past = torch.cat([samples.past, driver[:, None]], dim=1)
    hidden = samples.hidden
    if hidden is not None:
        hidden = torch.cat([hidden, torch.zeros_like(hidden[:, :1])], dim=1)
    usable = np.vstack([allowed, np.ones((1, samples.max_lag), dtype=bool)])
    return search_terms(replace(samples, past=past, hidden=hidden), usable, 0)
