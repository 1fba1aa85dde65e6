"""Evidence made by hand, shared by the tests of edges and diagnostics; ``[cause, effect]``."""

import numpy as np

from causalformer.detect.contemporaneous import ContemporaneousEvidence, Present
from causalformer.detect.pair_tests import Evidence, PairTests
from causalformer.detect.removal import RemovalErrors
from causalformer.detect.samples import make_samples


def filled(n_series, value, entries):
    """A matrix of one value, with some entries replaced: ``{(cause, effect): value}``."""
    matrix = np.full((n_series, n_series), float(value))
    for place, other in (entries or {}).items():
        matrix[place] = other
    return matrix


def samples_of(scores, max_lag, n_folds=4, segments=None, run=None, wanders=None):
    """The samples of one recording without a gap, unless something else is said."""
    segments = [slice(0, len(scores))] if segments is None else segments
    run = np.zeros(len(scores), dtype=np.int64) if run is None else run
    return make_samples(scores, segments, run, max_lag, n_folds, wanders=wanders)


def make_evidence(
    n_series=3,
    max_lag=3,
    *,
    p_value=None,
    size=None,
    profile=None,
    t=None,
    residual_correlation=None,
    n_slots=10**9,
):
    """No evidence for anything but what is named; edges are at lag 1 unless `profile` says else."""
    scores = np.zeros((max_lag + 1, n_series))
    p = filled(n_series, 0.9, p_value)
    by_lag = np.zeros((n_series, n_series, max_lag))
    by_lag[..., 0] = 1.0
    sparse_t = np.zeros_like(by_lag)
    for place, values in (profile or {}).items():
        by_lag[place] = values
    for place, values in (t or {}).items():
        sparse_t[place] = values
    sizes = filled(n_series, 0.5, size)
    return Evidence(
        pairs=PairTests(
            p_value=p,
            relative_gain=sizes,
            size=sizes,
            strength=np.full((n_series, n_series), 0.4),
            terms_p=p,
            t=sparse_t,
            lag_profile=by_lag,
            tested=np.ones_like(p, dtype=bool),
            candidates=np.ones_like(p, dtype=bool),
            flows=np.zeros_like(p, dtype=bool),
        ),
        family=np.ones_like(p, dtype=bool),
        samples=samples_of(scores, max_lag),
        removal=RemovalErrors(
            error=np.ones(n_series),
            linear_error=np.ones(n_series),
            gain=sizes,
            gain_error=sizes,
            residual_correlation=filled(n_series, 0, residual_correlation),
            n_together=np.full((n_series, n_series), float(n_slots)),
            residual=np.zeros((len(scores) - max_lag, n_series), dtype=np.float32),
        ),
    )


def make_within(
    n_series=3, linked=None, *, p_value=1e-6, partial=0.5, hidden=None, factor=(), named_p=None
):
    """Links within a slot: ``{(cause, effect): probability of the direction}``.

    All have the same p-value but for those of `named_p`, and the same partial correlation; `hidden`
    names pairs and how likely a hidden driver is, `factor` the series that are driven together.
    """
    p, correlation = np.ones((n_series, n_series)), np.zeros((n_series, n_series))
    probability, by_hidden = np.zeros((n_series, n_series)), np.zeros((n_series, n_series))
    drawn = np.zeros((n_series, n_series), dtype=bool)
    for (cause, effect), likely in (linked or {}).items():
        drawn[cause, effect] = True
        probability[cause, effect], probability[effect, cause] = likely, 1.0 - likely
        for pair in ((cause, effect), (effect, cause)):
            p[pair], correlation[pair] = (named_p or {}).get((cause, effect), p_value), partial
            by_hidden[pair] = (hidden or {}).get((cause, effect), 0.0)
    driven = np.isin(np.arange(n_series), factor)
    return ContemporaneousEvidence(p, correlation, drawn, probability, by_hidden, driven)


def make_present(values=None, terms=None, *, n_series=3, max_lag=3, shown=None):
    """The present of series, and past terms of each; noise that hangs on nothing if none is given.

    `shown` says where there is a value; terms are straight, whatever their form.
    """
    if values is None:
        values = np.random.default_rng(0).standard_normal((200, n_series))
    x = (values - values.mean(axis=0)) / values.std(axis=0)
    slot = np.arange(max_lag, len(x))
    observed = np.ones(x.shape, dtype=bool) if shown is None else shown
    return Present(
        now=np.where(observed, x, 0.0)[slot],
        observed=observed[slot],
        terms=[[] for _ in x.T] if terms is None else terms,
        column=lambda term: x[slot - term.lag - 1, term.cause],
        slot=slot,
        max_lag=max_lag,
    )
