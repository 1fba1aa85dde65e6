"""Bent links, hidden causes, graphs that change, effects that cancel or are weak."""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from causalformer.datasets.generated import BURN_IN, FloatArray, Generated, generated
from causalformer.datasets.violations.base import (
    GRID,
    Base,
    Rng,
    Violation,
    coefficients,
    links_of,
    loops_of,
    made_of,
    on_base,
    redrawn,
    seen,
    simulate,
    stable,
    standard_curve,
)
from causalformer.datasets.violations.noise import autoregressive

# ------------------------------------------------------------------ function


def _composition(rng: Rng) -> FloatArray:
    parts: list[Callable[[FloatArray], FloatArray]] = [
        np.sin,
        np.tanh,
        np.square,
        np.abs,
        lambda x: x * np.exp(-0.5 * x * x),
        lambda x: np.logaddexp(0.0, x),
    ]
    values = GRID * rng.uniform(1.0, 2.0)
    for number in rng.choice(len(parts), size=3, replace=False):
        values = standard_curve(parts[number](values + rng.uniform(-0.5, 0.5)))
    return values


def _power(rng: Rng) -> FloatArray:
    return np.asarray(np.sign(GRID) * np.abs(GRID) ** rng.choice((2.0, 3.0, 5.0)))


def _bump(rng: Rng) -> FloatArray:
    return np.exp(-(((GRID - rng.uniform(-1.0, 1.0)) / rng.uniform(0.4, 1.0)) ** 2))


def _spline(rng: Rng) -> FloatArray:
    from scipy.interpolate import CubicSpline

    knots = np.linspace(-3.0, 3.0, 7)
    return np.asarray(CubicSpline(knots, rng.standard_normal(7))(np.clip(GRID, -3.0, 3.0)))


def _bent(curve: Callable[[Rng], FloatArray], base: Base, strength: int) -> Generated:
    """Bend a share of the links between series; the series are in units of their deviation."""
    spread = seen(simulate(base.weights, base.noise)).std(axis=0)
    weights = base.weights * spread[:, None, None] / spread[None, :, None]
    links = links_of(weights)
    order = base.rng.permutation(len(links))
    share = (0.0, 0.05, 0.3, 0.65, 1.0)[strength]
    curves = {links[i]: standard_curve(curve(base.rng)) for i in order}
    kept = dict(list(curves.items())[: int(np.ceil(share * len(links)))])
    straight = weights.copy()
    for link in kept:
        straight[link] = 0.0
    weights = np.where(straight == 0.0, weights, stable(straight))
    return made_of(seen(simulate(weights, base.noise / spread, links=kept)), weights)


def _function(curve: Callable[[Rng], FloatArray], what: str) -> Violation:
    about = f"{what}; 0, 5, 30, 65 and 100 % of the links"
    return Violation("function", about, on_base(partial(_bent, curve)), from_base=True)


# ------------------------------------------------------------------ hidden


def _driver(base: Base, strength: int) -> Generated:
    """Add a hidden series with memory to a share of the series, within the slot."""
    driver = autoregressive(base.rng.standard_normal((len(base.noise), 1)), 0.6)
    size = coefficients(base.rng, base.n_series, 0.7, 1.2)
    rank = base.rng.permutation(base.n_series)
    share = (0.0, 0.4, 0.6, 0.8, 1.0)[strength]
    driven = rank < np.ceil(share * base.n_series)
    return made_of(seen(simulate(base.weights, base.noise + driver * size * driven)), base.weights)


def _removed(base: Base, strength: int) -> Generated:
    """Leave out a series with memory that drives 0 to all of the others at lags of 1 to 3."""
    n_series = base.n_series
    weights = np.zeros((n_series + 1, n_series + 1, base.weights.shape[2]))
    weights[:-1, :-1] = base.weights
    weights[-1, -1, 1] = 0.7
    driven = base.rng.permutation(n_series)
    lags = base.rng.integers(1, 4, n_series)
    size = coefficients(base.rng, n_series, 0.5, 0.9)
    for effect in driven[: int(np.ceil((0.0, 0.4, 0.6, 0.8, 1.0)[strength] * n_series))]:
        weights[-1, effect, lags[effect]] = size[effect]
    hidden = base.rng.standard_normal((len(base.noise), 1))
    x = simulate(weights, np.hstack((base.noise, hidden)))
    return made_of(seen(x)[:, :-1], base.weights)


# ------------------------------------------------------------------ change


def _in_pieces(pieces: list[tuple[int, FloatArray]], noise: FloatArray) -> FloatArray:
    """Let coefficients hold from slots on, each until the next; the first from the start."""
    starts = [start for start, _ in pieces]
    x = np.empty((0, noise.shape[1]))
    for start, stop, (_, weights) in zip(starts, [*starts[1:], len(noise)], pieces, strict=True):
        past = x if len(x) >= weights.shape[2] - 1 else None
        x = np.concatenate((x, simulate(weights, noise[start:stop], past=past)))
    return x


def _breaks(base: Base, n_breaks: int) -> list[int]:
    """Spread break points over the slots that are seen, at places that vary a little."""
    places = (np.arange(n_breaks) + base.rng.uniform(0.75, 1.25, n_breaks)) / (n_breaks + 1)
    return [BURN_IN + int(place * base.n_slots) for place in places]


def _coefficients(base: Base, strength: int) -> Generated:
    share = (0.0, 0.25, 0.5, 0.75, 1.0)[strength]
    pieces = [(0, base.weights)]
    for start in _breaks(base, 3):
        other = coefficients(base.rng, base.weights.shape) * (base.weights != 0)
        pieces.append((start, stable((1.0 - share) * base.weights + share * other)))
    return made_of(seen(_in_pieces(pieces, base.noise)), base.weights)


def _graphs(base: Base, strength: int) -> Generated:
    graphs = [base.weights, *(redrawn(base) for _ in range(5))]
    starts = [0, *_breaks(base, (0, 1, 2, 3, 5)[strength])]
    pieces = list(zip(starts, graphs, strict=False))
    union = np.max([np.abs(weights) for _, weights in pieces], axis=0)
    return made_of(seen(_in_pieces(pieces, base.noise)), union)


def _switched(base: Base, strength: int) -> Generated:
    """Switch all links between series off in three windows."""
    off = base.weights * np.eye(base.n_series)[:, :, None]
    length = int((0.0, 0.2, 0.4, 0.6, 0.8)[strength] * base.n_slots / 3)
    pieces = [(0, base.weights)]
    for window in range(3):
        start = BURN_IN + window * base.n_slots // 3
        pieces += [(start, off), (start + length, base.weights)]
    return made_of(seen(_in_pieces(pieces, base.noise)), base.weights)


# ------------------------------------------------------------------ faithfulness

_CANCELLED: Final = (-1.0, 0.4, 0.6, 0.8, 0.97)


def _cancelling(lags: tuple[int, int, int], base: Base, strength: int) -> Generated:
    """Join three series by a direct link and one through a third, of opposite sign."""
    weights = base.weights.copy()
    weights[:, :, 0] = 0.0
    for first, middle, last in base.rng.permutation(base.n_series)[
        : 6 if base.n_series > 5 else 3
    ].reshape(-1, 3):
        for cause, effect in ((first, middle), (middle, last), (first, last)):
            weights[cause, effect] = weights[effect, cause] = 0.0
        weights[first, middle, lags[0]] = 0.65
        weights[middle, last, lags[1]] = 0.65
        weights[first, last, lags[2]] = -(0.65**2) * _CANCELLED[strength]
    return made_of(seen(simulate(stable(weights), base.noise)), weights)


def _weak(base: Base, strength: int) -> Generated:
    size = (0.0, 0.24, 0.12, 0.06, 0.03)[strength]
    between = ~np.eye(base.n_series, dtype=bool)[:, :, None] & (base.weights != 0)
    weak = np.where(between, size * np.sign(base.weights), base.weights)
    weights = weak if strength else base.weights
    return made_of(seen(simulate(stable(weights), base.noise)), weights)


# ------------------------------------------------------------------ interactions


def _interactions(base: Base, strength: int) -> Generated:
    """Let two series drive a third by their sum, by their product, or by both."""
    share = (0.0, 0.25, 0.5, 0.75, 1.0)[strength]
    own = base.weights * np.eye(base.n_series)[:, :, None]
    order = base.rng.permutation(base.n_series)
    effects, causes = order[: base.n_series // 2], order[base.n_series // 2 :]
    pairs = [base.rng.choice(causes, 2, replace=False) for _ in effects]
    lags = base.rng.integers(1, base.weights.shape[2], (len(effects), 2))
    spread = 1.0 / np.sqrt(1.0 - np.diag(own[:, :, 1]) ** 2)
    x = simulate(own, base.noise)
    edges = loops_of(own)
    for effect, (one, other), (lag, other_lag) in zip(effects, pairs, lags, strict=True):
        first = np.roll(x[:, one], lag) / spread[one]
        second = np.roll(x[:, other], other_lag) / spread[other]
        both = (1.0 - share) * (first + second) / np.sqrt(2.0) + share * first * second
        noise = base.noise[:, [effect]] + both[:, None]
        x[:, effect] = simulate(own[effect : effect + 1, effect : effect + 1], noise)[:, 0]
        edges += [(int(one), int(effect), int(lag)), (int(other), int(effect), int(other_lag))]
    return generated(seen(x), edges, "violations")


FUNCTION: Final = {
    "function-compositions": _function(_composition, "links that compose several functions"),
    "function-powers": _function(_power, "links that are steep monotone powers"),
    "function-bumps": _function(_bump, "links that are radial bumps"),
    "function-splines": _function(_spline, "links that are smooth splines"),
}

HIDDEN: Final = {
    "hidden-driver": Violation(
        "hidden",
        "a hidden driver of 0, 40, 60, 80 and 100 % of the series within the slot",
        on_base(_driver),
        from_base=True,
    ),
    "hidden-removed": Violation(
        "hidden",
        "a series that drives 0, 40, 60, 80 and 100 % of the others at lags 1 to 3 is removed",
        on_base(_removed),
        from_base=True,
    ),
}

CHANGE: Final = {
    "change-coefficients": Violation(
        "change",
        "coefficients redrawn at three break points, by 0 to 100 %",
        on_base(_coefficients),
        from_base=True,
    ),
    "change-graph": Violation(
        "change",
        "the graph redrawn at 0, 1, 2, 3 and 5 break points; the truth is the union of all graphs",
        on_base(_graphs),
        from_base=True,
    ),
    "change-off": Violation(
        "change",
        "links switched off in three windows, 0 to 80 % of the time",
        on_base(_switched),
        from_base=True,
    ),
}

FAITHFULNESS: Final = {
    "faithfulness-slot": Violation(
        "faithfulness",
        "two paths within the slot that cancel by 40, 60, 80 and 97 %; at strength 0 they add up",
        on_base(partial(_cancelling, (0, 0, 0))),
    ),
    "faithfulness-lagged": Violation(
        "faithfulness",
        "two lagged paths that cancel by 40, 60, 80 and 97 %; at strength 0 they add up",
        on_base(partial(_cancelling, (1, 1, 2))),
    ),
    "faithfulness-weak": Violation(
        "faithfulness",
        "links of .24, .12, .06 and .03",
        on_base(_weak),
        from_base=True,
    ),
}

INTERACTIONS: Final = {
    "interactions": Violation(
        "structure",
        "two causes that act by their sum (strength 0) up to by their product alone",
        on_base(_interactions),
    ),
}
