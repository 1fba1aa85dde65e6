"""Dense, weak, short, market-like, periodic and chaotic systems; columns that are no numbers."""

from functools import partial
from typing import Final

import numpy as np

from causalformer.datasets.generated import (
    BURN_IN,
    FloatArray,
    Generated,
    Triple,
    generated,
)
from causalformer.datasets.lorenz96 import make_lorenz96
from causalformer.datasets.violations.base import (
    Base,
    Rng,
    Violation,
    coefficients,
    links_of,
    loops_of,
    made_of,
    on_base,
    seen,
    simulate,
    stable,
)
from causalformer.datasets.violations.noise import autoregressive, standardised

# ------------------------------------------------------------------ structure


def _dense(rng: Rng, strength: int) -> Generated:
    """Draw many causes per effect, at lag 1."""
    n_series = (10, 20, 30, 50, 100)[strength]
    weights = np.zeros((n_series, n_series, 2))
    for effect in range(n_series):
        others = np.delete(np.arange(n_series), effect)
        causes = rng.choice(others, n_series // 5, replace=False)
        weights[causes, effect, 1] = coefficients(rng, len(causes))
        weights[effect, effect, 1] = rng.uniform(0.3, 0.5)
    weights = stable(weights)
    noise = rng.standard_normal((BURN_IN + 600, n_series))
    return made_of(seen(simulate(weights, noise)), weights)


def _market(rng: Rng, strength: int) -> Generated:
    """Draw returns that share three factors within the slot, and few lagged links."""
    n_series, n_slots = 25, 4000
    weights = np.zeros((n_series, n_series, 3))
    effects = rng.permutation(n_series)[:20]  # one cause each, so that shares of variance add up
    for effect in effects:
        cause = rng.choice(np.delete(np.arange(n_series), effect))
        share = rng.uniform(0.03, 0.15)
        weights[cause, effect, rng.integers(1, 3)] = np.sqrt(share) * rng.choice((-1.0, 1.0))
    own = rng.standard_t(5, (BURN_IN + n_slots, n_series)) / np.sqrt(5 / 3)
    factors = rng.standard_t(5, (BURN_IN + n_slots, 3)) / np.sqrt(5 / 3)
    loading = rng.standard_normal((3, n_series)) + np.array([[1.5], [0.0], [0.0]])
    loading /= np.sqrt((loading**2).sum(axis=0))
    share = (0.0, 0.2, 0.4, 0.6, 0.8)[strength]
    noise = np.sqrt(1.0 - share) * own + np.sqrt(share) * factors @ loading
    weights = stable(weights)
    return made_of(seen(simulate(weights, noise)), weights)


def _sparse(rng: Rng, n_series: int, size: float) -> FloatArray:
    """Draw one link per series at lag 1 or 2, and self-links."""
    weights = np.zeros((n_series, n_series, 3))
    weights[np.arange(n_series), np.arange(n_series), 1] = rng.uniform(0.2, 0.6, n_series)
    for effect in range(n_series):
        cause = rng.choice(np.delete(np.arange(n_series), effect))
        weights[cause, effect, rng.integers(1, 3)] = size * rng.choice((-1.0, 1.0))
    return weights


def _weak(rng: Rng, strength: int) -> Generated:
    """Let every link explain so many percent of the noise of its effect."""
    share = (0.05, 0.04, 0.03, 0.02, 0.01)[strength]
    weights = _sparse(rng, 6, np.sqrt(share / (1.0 - share)))
    spread = 1.0 / np.sqrt(1.0 - np.diag(weights[:, :, 1]) ** 2)
    for cause, effect, lag in links_of(weights):
        weights[cause, effect, lag] /= spread[cause]
    n_slots = int(rng.integers(500, 1001))
    noise = rng.standard_normal((BURN_IN + n_slots, 6))
    return made_of(seen(simulate(stable(weights), noise)), weights)


def _brief(rng: Rng, strength: int) -> Generated:
    weights = stable(_sparse(rng, 6, 0.5))
    noise = rng.standard_normal((BURN_IN + 250, 6))
    return made_of(simulate(weights, noise)[-(250, 100, 87, 73, 60)[strength] :], weights)


def _sharp_fork(rng: Rng, strength: int) -> Generated:
    """Let one series drive two others at lags 1 and 2, almost without noise in the end."""
    noise = rng.standard_normal((BURN_IN + 500, 3))
    noise[:, 1:] *= (1.0, 0.5, 0.2, 0.1, 0.05)[strength]
    weights = np.zeros((3, 3, 3))
    weights[0, 0, 1] = 0.4
    weights[0, 1, 1], weights[0, 2, 2] = coefficients(rng, 2, 0.6, 1.0)
    return made_of(seen(simulate(weights, noise)), weights)


# ------------------------------------------------------------------ time


def _season(base: Base, strength: int) -> Generated:
    """Add a season of 24 slots to all series, after the dynamics."""
    size = (0.0, 0.5, 1.0, 2.0, 4.0)[strength]
    phase = base.rng.uniform(0.0, 1.0, base.n_series)
    wave = np.sqrt(2.0) * np.sin(2 * np.pi * np.arange(base.n_slots)[:, None] / 24 + phase)
    x = standardised(seen(simulate(base.weights, base.noise)))
    return made_of(x + size * wave, base.weights)


def _trend(base: Base, strength: int) -> Generated:
    """Add a straight line to all series, after the dynamics."""
    rise = (0.0, 1.0, 2.0, 4.0, 8.0)[strength]
    slope = base.rng.uniform(0.7, 1.3, base.n_series)
    x = standardised(seen(simulate(base.weights, base.noise)))
    return made_of(x + rise * slope * np.linspace(0.0, 1.0, base.n_slots)[:, None], base.weights)


def _coarser(sums: bool, base: Base, strength: int) -> Generated:
    """See only every k-th slot, or the sum of k slots; a lag of l becomes ⌈l / k⌉."""
    every = (1, 2, 3, 4, 6)[strength]
    noise = base.rng.standard_normal((BURN_IN + 6 * base.n_slots, base.n_series))
    noise[: len(base.noise)] = base.noise
    x = seen(simulate(base.weights, noise))[: every * base.n_slots]
    parts = x.reshape(base.n_slots, every, base.n_series)
    values = parts.sum(axis=1) if sums else parts[:, -1]
    edges = loops_of(base.weights) + links_of(base.weights)
    coarse = dict.fromkeys((c, e, -(-lag // every)) for c, e, lag in edges)
    return generated(values, list(coarse), "violations")


def _outliers(base: Base, strength: int) -> Generated:
    """Replace single observations by far ones, not fed back."""
    x = standardised(seen(simulate(base.weights, base.noise)))
    chosen = base.rng.random(x.shape) < (0.0, 0.002, 0.005, 0.015, 0.05)[strength]
    return made_of(np.where(chosen, coefficients(base.rng, x.shape, 8.0, 12.0), x), base.weights)


def _without_lag_0(base: Base) -> FloatArray:
    """Give the lagged coefficients; a system without any gets one."""
    weights = base.weights.copy()
    weights[:, :, 0] = 0.0
    if not links_of(weights):
        weights[0, 1, 1] = 0.4
    return weights


def _spill_over(base: Base, strength: int) -> Generated:
    """Let a share of the lagged links act on the size of the innovations, not on the mean."""
    weights = _without_lag_0(base)
    links = links_of(weights)
    order = [links[i] for i in base.rng.permutation(len(links))]
    chosen = order[: int(np.ceil((0.0, 0.25, 0.5, 0.75, 1.0)[strength] * len(links)))]
    mean = weights.copy()
    for link in chosen:
        mean[link] = 0.0

    def scale(x: FloatArray, t: int) -> FloatArray:
        variance = np.full(base.n_series, 0.3)
        for cause, effect, lag in chosen:
            variance[effect] += 0.7 * min(x[t - lag, cause] ** 2, 9.0)
        driven = np.isin(np.arange(base.n_series), [effect for _, effect, _ in chosen])
        return np.sqrt(np.where(driven, variance, 1.0))

    x = simulate(stable(mean), base.noise, scale=scale)
    return generated(seen(x), loops_of(weights) + links, "violations")


def volatility(rng: Rng, n_slots: int, size: float) -> FloatArray:
    """Draw a common size of all innovations that changes slowly: ``[slot, 1]``."""
    return np.exp(size * autoregressive(rng.standard_normal((n_slots, 1)), 0.95))


def _common_volatility(base: Base, strength: int) -> Generated:
    common = volatility(base.rng, len(base.noise), (0.0, 0.3, 0.6, 0.9, 1.2)[strength])
    return made_of(seen(simulate(base.weights, base.noise * common)), base.weights)


# ------------------------------------------------------------------ columns


def _hawkes(base: Base, strength: int) -> Generated:
    """Draw counts whose rate rises with past counts, self-exciting; fewer and fewer of them."""
    mean = (8.0, 4.0, 2.0, 1.0, 0.4)[strength]
    weights = stable(0.8 * np.abs(_without_lag_0(base)), 0.7)
    ground = mean * (1.0 - weights.sum(axis=(0, 2)))  # rates where all means are the same
    rate = np.tile(np.maximum(ground, 0.2 * mean), (len(base.noise), 1))

    def emit(rates: FloatArray) -> FloatArray:
        return np.asarray(base.rng.poisson(np.minimum(rates, 1e4)), dtype=float)

    return made_of(seen(simulate(weights, rate, emit=emit)), weights)


def _columns(kinds: tuple[str, ...], base: Base, strength: int) -> Generated:
    """Let a share of the series be binary or counts, and be handed on as such."""
    weights = _without_lag_0(base)
    share = (0.0, 0.25, 0.5, 0.75, 1.0)[strength]
    rank = base.rng.permutation(base.n_series)
    changed = rank < np.ceil(share * base.n_series)
    kind = np.array(kinds)[rank % len(kinds)]
    binary, counts = changed & (kind == "binary"), changed & (kind == "counts")

    def emit(x: FloatArray) -> FloatArray:
        rounded = np.where(counts, np.maximum(np.rint(x), -1.0), x)  # 0, 1, 2, ... less one
        return np.where(binary, np.where(x > 0, 1.0, -1.0), rounded)

    return made_of(seen(simulate(stable(weights, 0.8), base.noise, emit=emit)), weights)


# ------------------------------------------------------------------ near-periodic and chaotic


def _kuramoto(rng: Rng, strength: int) -> Generated:
    """Couple the phases of rotators; seen are the sines, with less and less noise."""
    n_series, n_slots = 6, 1000
    linked = (rng.random((n_series, n_series)) < 0.25) & ~np.eye(n_series, dtype=bool)
    linked[0, 1] = True
    coupling = linked * rng.uniform(0.3, 0.6, linked.shape)
    speed = rng.uniform(0.4, 1.2, n_series)
    steps = rng.standard_normal((BURN_IN + n_slots, n_series))
    steps *= (1.0, 0.5, 0.25, 0.1, 0.05)[strength]
    phase = np.empty_like(steps)
    state = rng.uniform(0.0, 2 * np.pi, n_series)
    for t, step in enumerate(steps):
        pull = (coupling * np.sin(state[:, None] - state[None, :])).sum(axis=0)
        state = state + speed + pull + step
        phase[t] = state
    edges: list[Triple] = [(i, i, 1) for i in range(n_series)]
    edges += [(int(c), int(e), 1) for c, e in np.argwhere(linked)]
    return generated(np.sin(seen(phase)), edges, "violations")


def _ring(rng: Rng, strength: int) -> Generated:
    """Couple six oscillators in a ring, one way; with less and less damping."""
    n_series, damping = 6, (0.8, 0.9, 0.95, 0.98, 0.99)[strength]
    weights = np.zeros((n_series, n_series, 3))
    angle = rng.uniform(0.5, 1.0, n_series)
    push = rng.uniform(0.2, 0.4, n_series)
    for i in range(n_series):
        weights[i, i, 1:] = 2 * damping * np.cos(angle[i]), -(damping**2)
        weights[i, (i + 1) % n_series, 1] = push[i]
    noise = rng.standard_normal((BURN_IN + 1000, n_series))
    weights = stable(weights, 0.995)
    return made_of(seen(simulate(weights, noise)), weights)


def _lorenz(rng: Rng, strength: int) -> Generated:
    return make_lorenz96(
        10, 500, forcing=(40.0, 30.0, 20.0, 15.0, 10.0)[strength], random_state=rng
    )


STRUCTURE: Final = {
    "dense": Violation(
        "structure",
        "2 of 10, 4 of 20, 6 of 30, 10 of 50 and 20 of 100 series cause each, at lag 1; 600 slots",
        _dense,
        max_lag=2,
        large=True,
    ),
    "market": Violation(
        "structure",
        "25 series, 4000 slots; 20 lagged links explain 3 to 15 %, three factors within the slot "
        "0 to 80 % of the innovations",
        _market,
        max_lag=3,
        large=True,
    ),
    "weak": Violation(
        "structure", "links that explain 5, 4, 3, 2 and 1 % of 500 to 1000 slots", _weak, max_lag=3
    ),
    "brief": Violation("structure", "250, 100, 87, 73 and 60 slots of 6 series", _brief, max_lag=3),
    "sharp-fork": Violation(
        "structure",
        "one cause of two series at lags 1 and 2, whose noise falls from 1 to .05",
        _sharp_fork,
        max_lag=3,
    ),
}

TIME: Final = {
    "season": Violation(
        "time",
        "a common season of 0 to 4 standard deviations",
        on_base(_season),
        from_base=True,
    ),
    "trend": Violation(
        "time",
        "a common trend of 0 to 8 standard deviations",
        on_base(_trend),
        from_base=True,
    ),
    "aggregated": Violation(
        "time",
        "sums of 1, 2, 3, 4 and 6 slots; a lag of l becomes ⌈l / k⌉",
        on_base(partial(_coarser, True)),
        from_base=True,
    ),
    "subsampled": Violation(
        "time",
        "every 1st, 2nd, 3rd, 4th and 6th slot; a lag of l becomes ⌈l / k⌉",
        on_base(partial(_coarser, False)),
        from_base=True,
    ),
    "outliers": Violation(
        "time",
        "0 to 5 % of the values replaced by 8 to 12 deviations, not fed back",
        on_base(_outliers),
        from_base=True,
    ),
    "volatility-spill-over": Violation(
        "time",
        "0 to 100 % of the lagged links act on the size of the innovations, not on the mean",
        on_base(_spill_over),
    ),
    "volatility-common": Violation(
        "time",
        "a size common to all innovations; its logarithm varies by 0 to 1.2",
        on_base(_common_volatility),
        from_base=True,
    ),
}

COLUMNS: Final = {
    "counts": Violation("columns", "self-exciting counts, 8 down to .4 per slot", on_base(_hawkes)),
    "binary": Violation(
        "columns", "0 to 100 % of the series are binary", on_base(partial(_columns, ("binary",)))
    ),
    "mixed": Violation(
        "columns",
        "0 to 100 % of the series are binary, or counts",
        on_base(partial(_columns, ("binary", "counts"))),
    ),
}

DYNAMICS: Final = {
    "kuramoto": Violation(
        "dynamics", "coupled rotators, noise 1 down to .05", _kuramoto, max_lag=3
    ),
    "ring": Violation(
        "dynamics", "six oscillators in a ring, damping .8 up to .99", _ring, max_lag=3
    ),
    "lorenz96": Violation(
        "dynamics", "Lorenz-96, 10 series of 500 slots, forcing 40 down to 10", _lorenz, max_lag=3
    ),
}
