"""The systems that are violated: sparse, linear, stable, some with contemporaneous links."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from causalformer.datasets.generated import BURN_IN, FloatArray, Generated, Triple, generated
from causalformer.datasets.var import spectral_radius

Rng: TypeAlias = np.random.Generator
Make: TypeAlias = Callable[[Rng, int], Generated]
"""Draws a system from random numbers and a strength from 0 to 4."""

SIZES: Final = ((5, 3, 250), (5, 3, 1000), (7, 4, 250), (7, 4, 1000))
"""Series, largest lag and slots of the systems."""

LONGEST: Final = max(max_lag for _, max_lag, _ in SIZES)
RADIUS: Final = 0.95
GRID: Final = np.linspace(-4.0, 4.0, 321)
"""Where bent links are tabulated; beyond its ends they are constant."""

_NORMAL: Final = np.exp(-0.5 * GRID**2) / np.exp(-0.5 * GRID**2).sum()
_TRIES = 300


@dataclass(frozen=True)
class Violation:
    """A way in which data differ from what methods assume.

    Parameters
    ----------
    group : str
        The kind of assumption.
    about : str
        What differs, and what the strengths 0 to 4 stand for.
    make : callable
        Draws a system from random numbers and a strength.
    max_lag : int
        The lags that a method should look at: the largest true one, and one more.
    from_base : bool
        Whether strength 0 is the base system itself, the same for all such violations.
    large : bool
        Whether a fit may take minutes.
    """

    group: str
    about: str
    make: Make = field(repr=False)
    max_lag: int = LONGEST + 1
    from_base: bool = False
    large: bool = False


@dataclass(frozen=True, eq=False)
class Base:
    """A base system, and random numbers for what violates it.

    Attributes
    ----------
    weights : array ``[cause, effect, lag]``
        The coefficients, lag 0 first.
    noise : array ``[slot, series]``
        Standard normal innovations; the first `BURN_IN` slots are not seen.
    rng : Generator
        For everything else; equal seeds give the same one at every strength.
    """

    weights: FloatArray
    noise: FloatArray
    rng: Rng

    @property
    def n_series(self) -> int:
        """The number of series."""
        return len(self.weights)

    @property
    def n_slots(self) -> int:
        """The number of slots that are seen."""
        return len(self.noise) - BURN_IN


def draw_base(rng: Rng, sizes: tuple[tuple[int, int, int], ...] = SIZES) -> Base:
    """Draw one of the base systems.

    Each ordered pair is linked with a probability of .075 to .15 per lag, in half of the systems
    also at lag 0, by a coefficient of ±.3 to ±.5; every series drives itself at lag 1. Systems
    whose companion matrix has a spectral radius above .95 are drawn again.

    Examples
    --------
    >>> base = draw_base(np.random.default_rng(0))
    >>> base.n_series, base.n_slots, base.weights.shape
    (7, 1000, (7, 7, 5))
    """
    graph_rng, noise_rng, rest = rng.spawn(3)
    n_series, max_lag, n_slots = sizes[graph_rng.integers(len(sizes))]
    within = bool(graph_rng.integers(2))
    for _ in range(_TRIES):
        weights = _weights(graph_rng, n_series, max_lag, within)
        if links_of(weights) and radius_of(weights) <= RADIUS:
            break
    noise = noise_rng.standard_normal((BURN_IN + n_slots, n_series))
    return Base(stable(weights), noise, rest)


def redrawn(base: Base) -> FloatArray:
    """Draw another graph of the same size, as `draw_base` does."""
    n_series, _, n_lags = base.weights.shape
    within = bool(base.weights[:, :, 0].any())
    return stable(_weights(base.rng, n_series, n_lags - 1, within))


def _weights(rng: Rng, n_series: int, max_lag: int, within: bool) -> FloatArray:
    density = rng.uniform(0.075, 0.15)
    shape = (n_series, n_series, max_lag + 1)
    linked = rng.random(shape) < density
    before = np.argsort(rng.permutation(n_series))
    earlier = before[:, None] < before[None, :]
    linked[:, :, 0] = within & earlier & (rng.random((n_series, n_series)) < 2 * density)
    own = np.arange(n_series)
    linked[own, own] = False
    linked[own, own, 1] = True
    return np.asarray(linked * coefficients(rng, shape))


def coefficients(
    rng: Rng, shape: int | tuple[int, ...], low: float = 0.3, high: float = 0.5
) -> FloatArray:
    """Draw coefficients of either sign."""
    return np.asarray(rng.uniform(low, high, shape) * rng.choice((-1.0, 1.0), shape))


def radius_of(weights: FloatArray) -> float:
    """Give the spectral radius of a system with contemporaneous links.

    Examples
    --------
    >>> radius_of(np.array([[[0.0, 0.5]]]))
    0.5
    """
    through = np.linalg.inv(np.eye(len(weights)) - weights[:, :, 0])
    return spectral_radius(np.einsum("cml,me->cel", weights[:, :, 1:], through))


def stable(weights: FloatArray, radius: float = RADIUS) -> FloatArray:
    """Shrink lagged coefficients so that the spectral radius is at most `radius`.

    Examples
    --------
    >>> stable(np.array([[[0.0, 2.0]]]))
    array([[[0. , 0.95]]])
    """
    rho = radius_of(weights)
    if rho <= radius:
        return weights
    return np.asarray(weights * (radius / rho) ** np.arange(weights.shape[2]))


def links_of(weights: FloatArray) -> list[Triple]:
    """List the links ``(cause, effect, lag)`` between two series."""
    return [(int(c), int(e), int(lag)) for c, e, lag in np.argwhere(weights) if c != e]


def loops_of(weights: FloatArray) -> list[Triple]:
    """List the self-links ``(series, series, lag)``."""
    return [(int(c), int(e), int(lag)) for c, e, lag in np.argwhere(weights) if c == e]


def made_of(values: FloatArray, weights: FloatArray) -> Generated:
    """Join the series with the graph of their coefficients."""
    return generated(values, loops_of(weights) + links_of(weights), "violations")


def simulate(
    weights: FloatArray,
    noise: FloatArray,
    *,
    links: Mapping[Triple, FloatArray] | None = None,
    scale: Callable[[FloatArray, int], FloatArray] | None = None,
    emit: Callable[[FloatArray], FloatArray] | None = None,
    past: FloatArray | None = None,
) -> FloatArray:
    """Let a system run: ``x_e[t] = Σ w f(x_c[t - lag]) + noise_e[t]``.

    Parameters
    ----------
    weights : array ``[cause, effect, lag]``
        Coefficients, lag 0 first; the links at lag 0 make no loop.
    noise : array ``[slot, series]``
        The innovations.
    links : mapping, optional
        Values on `GRID` of the links ``f`` that are not straight.
    scale : callable, optional
        Gives, from the series and the slot, what the innovations are multiplied by.
    emit : callable, optional
        Turns the values of a slot to what is seen and handed on; for systems without links at
        lag 0.
    past : array ``[slot, series]``, optional
        At least so many slots before the first one as the largest lag; they are not returned.

    Examples
    --------
    >>> simulate(np.array([[[0.0, 0.5]]]), np.array([[8.0], [0.0], [0.0]]))[:, 0].tolist()
    [8.0, 4.0, 2.0]
    """
    bent = links or {}
    straight = weights.copy()
    for link in bent:
        straight[link] = 0.0
    n_series, _, n_lags = weights.shape
    max_lag = n_lags - 1
    before = np.zeros((max_lag, n_series)) if past is None else past[len(past) - max_lag :]
    x = np.concatenate((before, noise))
    step = straight[:, :, :0:-1].transpose(2, 0, 1).reshape(max_lag * n_series, n_series)
    lagged = [(*link, weights[link], table) for link, table in bent.items() if link[2]]
    within = [(c, e, weights[c, e, 0], bent.get((c, e, 0))) for c, e in _in_order(weights)]
    for t in range(max_lag, len(x)):
        driven = x[t - max_lag : t].reshape(-1) @ step
        for cause, effect, lag, weight, table in lagged:
            driven[effect] += weight * np.interp(x[t - lag, cause], GRID, table)
        x[t] = driven + (x[t] if scale is None else x[t] * scale(x, t))
        for cause, effect, weight, curve in within:
            value = x[t, cause] if curve is None else np.interp(x[t, cause], GRID, curve)
            x[t, effect] += weight * value
        if emit is not None:
            x[t] = emit(x[t])
    return x[max_lag:]


def _in_order(weights: FloatArray) -> list[tuple[int, int]]:
    """List the pairs that are linked at lag 0, causes before their effects."""
    pairs = [(int(c), int(e)) for c, e in np.argwhere(weights[:, :, 0])]
    depth = np.zeros(len(weights), dtype=int)
    for _ in range(len(weights)):
        for cause, effect in pairs:
            depth[effect] = max(depth[effect], depth[cause] + 1)
    return sorted(pairs, key=lambda pair: int(depth[pair[1]]))


def standard_curve(values: FloatArray) -> FloatArray:
    """Scale a curve on `GRID` to mean zero and variance one for a standard normal cause.

    It is cut off at ±4, so that nothing explodes.
    """
    centred = values - values @ _NORMAL
    return np.asarray(np.clip(centred / np.sqrt(centred**2 @ _NORMAL), -4.0, 4.0))


def seen(values: FloatArray) -> FloatArray:
    """Leave out the slots that are not seen."""
    return values[BURN_IN:]


def on_base(
    function: Callable[[Base, int], Generated],
    sizes: tuple[tuple[int, int, int], ...] = SIZES,
) -> Make:
    """Turn what violates a base system into what draws it from random numbers."""

    def make(rng: Rng, strength: int) -> Generated:
        return function(draw_base(rng, sizes), strength)

    return make
