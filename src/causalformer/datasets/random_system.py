"""Random systems: any number of series and edges, linear or not, with or without hidden drivers."""

from typing import Literal, TypeAlias

import numpy as np

from causalformer.datasets.generated import (
    BURN_IN,
    FloatArray,
    Generated,
    RandomState,
    check_count,
    generated,
    seeded_rng,
)
from causalformer.datasets.structures import BOUNDED_LINKS, standard_link
from causalformer.datasets.var import NoiseLaw, draw_noise
from causalformer.errors import SettingsError

Links: TypeAlias = Literal["linear", "nonlinear", "mixed"]


def make_random_system(
    n_series: int = 10,
    n_slots: int = 1000,
    *,
    n_edges: int | None = None,
    max_lag: int = 3,
    links: Links = "mixed",
    noise_law: NoiseLaw = "gaussian",
    memory: tuple[float, float] = (0.2, 0.6),
    coupling: tuple[float, float] = (0.3, 0.6),
    n_instantaneous: int = 0,
    n_hidden: int = 0,
    hidden_share: float = 0.5,
    random_state: RandomState = None,
) -> Generated:
    """Draw a random structural model over time.

    ``x_e[t] = a_e x_e[t-1] + Σ_c b_ce f_ce(x_c[t - lag]) + ε_e[t]``

    Pairs, lags, signs and links are drawn at random; loops between series are allowed. Linear
    links are limited to ±4 standard deviations and the sum of all couplings into a series to 1.5,
    so the series stay bounded for every seed.

    Parameters
    ----------
    n_series, n_slots : int
        Number and length of the series.
    n_edges : int, optional
        Edges between two series; ``n_series`` unless given. Self-loops come on top.
    max_lag : int
        The largest lag.
    links : {"linear", "nonlinear", "mixed"}
        Whether the links ``f`` are straight, bent, or drawn from both.
    noise_law : {"gaussian", "laplace", "student", "skewed"}
        Law of the noise, see `make_var`.
    memory : (float, float)
        Range of the self-loops ``a``, below one.
    coupling : (float, float)
        Range of ``|b|``, in standard deviations of the effect's noise.
    n_instantaneous : int
        Straight contemporaneous links, lag 0, between pairs that have no other edge; they make no
        loop. They come on top of `n_edges`.
    n_hidden : int
        Hidden common drivers: unseen series with a memory of 0.8 that enter the noise of all.
    hidden_share : float
        Largest share of the variance of a series' noise that comes from hidden drivers.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series ``x0``, ``x1``, ... and their graph, without the hidden drivers.

    Examples
    --------
    >>> made = make_random_system(5, 300, n_edges=4, random_state=0)
    >>> made.series.values.shape, len(made.truth.edges)
    ((300, 5), 9)
    """
    for option, value in (("n_series", n_series), ("n_slots", n_slots), ("max_lag", max_lag)):
        check_count(option, value, 1)
    n_edges = n_series if n_edges is None else n_edges
    if not 0 <= n_edges <= n_series * (n_series - 1):
        raise SettingsError(
            f"n_edges is {n_edges}; {n_series} series have {n_series * (n_series - 1)} pairs"
        )
    if not 0 <= min(memory) <= max(memory) < 1:
        raise SettingsError(f"memory is {memory}; both ends must lie from 0 to below 1")
    if not 0 <= hidden_share < 1:
        raise SettingsError(f"hidden_share is {hidden_share}; choose from 0 to below 1")
    rng = seeded_rng(random_state)
    pairs = rng.choice(n_series * (n_series - 1), size=n_edges, replace=False)
    causes, effects = pairs // (n_series - 1), pairs % (n_series - 1)
    effects = effects + (effects >= causes)
    lags = rng.integers(1, max_lag + 1, size=n_edges)
    strength = rng.uniform(*coupling, size=n_edges) * rng.choice((-1.0, 1.0), size=n_edges)
    into = np.bincount(effects, np.abs(strength), minlength=n_series)
    strength /= np.maximum(1.0, into / 1.5)[effects]
    bent = rng.integers(len(BOUNDED_LINKS), size=n_edges)
    straight = {"linear": 1.0, "nonlinear": 0.0, "mixed": 0.5}[links]
    kind = np.where(rng.random(n_edges) < straight, -1, bent)
    own = rng.uniform(*memory, size=n_series)
    x = _noise(rng, BURN_IN + n_slots, n_series, noise_law, n_hidden, hidden_share)
    scale = 1.0 / np.sqrt(1.0 - own**2)  # spread of a series that nothing else drives
    within = _within_slot(rng, n_series, set(zip(causes, effects, strict=True)), n_instantaneous)
    push_within = rng.uniform(*coupling, len(within)) * rng.choice((-1.0, 1.0), len(within))
    by_kind = [(k, np.flatnonzero(kind == k)) for k in np.unique(kind)]
    push = np.zeros(n_edges)
    for t in range(max_lag, len(x)):
        past = x[t - lags, causes] / scale[causes]
        for k, which in by_kind:
            driving = past[which]
            push[which] = (
                np.clip(driving, -4, 4) if k < 0 else standard_link(BOUNDED_LINKS[k], driving)
            )
        x[t] += own * x[t - 1] + np.bincount(effects, strength * push, minlength=n_series)
        for (cause, effect), size in zip(within, push_within, strict=True):
            x[t, effect] += size * np.clip(x[t, cause] / scale[cause], -4, 4)
    edges = [(i, i, 1) for i in range(n_series) if own[i] > 0]
    edges += zip(causes.tolist(), effects.tolist(), lags.tolist(), strict=True)
    edges += [(cause, effect, 0) for cause, effect in within]
    return generated(x[-n_slots:], edges, "random-system")


def _within_slot(
    rng: np.random.Generator, n_series: int, taken: set[tuple[int, int]], n_edges: int
) -> list[tuple[int, int]]:
    """Draw contemporaneous links, causes before effects in a random order of the series."""
    order = rng.permutation(n_series).tolist() if n_edges else []  # nothing drawn for nothing
    free = [
        (cause, effect)
        for place, cause in enumerate(order)
        for effect in order[place + 1 :]
        if (cause, effect) not in taken and (effect, cause) not in taken
    ]
    if n_edges > len(free):
        raise SettingsError(
            f"n_instantaneous is {n_edges}; only {len(free)} pairs have no edge from the past"
        )
    if not n_edges:
        return []
    chosen = rng.choice(len(free), size=n_edges, replace=False)
    return sorted((free[i] for i in chosen), key=lambda pair: order.index(pair[1]))


def _noise(
    rng: np.random.Generator,
    n_slots: int,
    n_series: int,
    noise_law: NoiseLaw,
    n_hidden: int,
    hidden_share: float,
) -> FloatArray:
    """Draw noise of variance one, part of it from hidden drivers that all series share."""
    from scipy.signal import lfilter

    own = draw_noise(noise_law, rng, (n_slots, n_series))
    if not n_hidden:
        return own
    drivers = lfilter([0.6], [1.0, -0.8], rng.standard_normal((n_slots, n_hidden)), axis=0)
    loading = rng.standard_normal((n_hidden, n_series))
    share = rng.uniform(0.2, 1.0, size=n_series) * hidden_share
    loading *= np.sqrt(share / (loading**2).sum(0))
    return np.asarray(own * np.sqrt(1.0 - share) + drivers @ loading)
