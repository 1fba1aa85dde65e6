"""Contemporaneous links: colliders, forks, beside a lagged link, and by six laws."""

from functools import partial
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from causalformer.datasets.generated import (
    BURN_IN,
    FloatArray,
    Generated,
    RandomState,
    check_count,
    seeded_rng,
)
from causalformer.datasets.violations.base import (
    GRID,
    Rng,
    Violation,
    coefficients,
    made_of,
    seen,
    simulate,
    stable,
    standard_curve,
)
from causalformer.errors import SettingsError

SlotLaw: TypeAlias = Literal[
    "gaussian", "laplace", "uniform", "nonlinear", "lagged-gaussian", "lagged-laplace"
]

_CURVES: Final = tuple(map(standard_curve, (np.tanh(2 * GRID), np.sin(1.5 * GRID), GRID**2)))


def make_slot_system(
    law: SlotLaw,
    n_series: int = 6,
    n_slots: int = 1000,
    *,
    memory: tuple[float, float] = (0.3, 0.7),
    coupling: tuple[float, float] = (0.4, 0.8),
    random_state: RandomState = None,
) -> Generated:
    """Draw a system whose series act on one another within the slot.

    About as many links as series follow a random order of the series; every series also drives
    itself at lag 1.

    Parameters
    ----------
    law : str
        ``"gaussian"``, ``"laplace"`` and ``"uniform"``: straight links and that noise;
        ``"nonlinear"``: bent links and normal noise; ``"lagged-gaussian"`` and
        ``"lagged-laplace"``: as many links at lags 1 and 2 as well.
    n_series, n_slots : int
        Number and length of the series.
    memory : (float, float)
        Range of the self-links, below one.
    coupling : (float, float)
        Range of the size of the other coefficients.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Examples
    --------
    >>> made = make_slot_system("uniform", 5, 300, random_state=0)
    >>> {e.lag for e in made.truth if e.cause != e.effect}
    {0}
    """
    if law not in get_args(SlotLaw):
        raise SettingsError(f"no law {law!r}; choose among {', '.join(get_args(SlotLaw))}")
    check_count("n_series", n_series, 2)
    check_count("n_slots", n_slots, 1)
    if not 0 <= min(memory) <= max(memory) < 1:
        raise SettingsError(f"memory is {memory}; both ends must lie from 0 to below 1")
    rng, noise_rng = seeded_rng(random_state).spawn(2)
    order = rng.permutation(n_series)
    pairs = [(order[i], order[j]) for j in range(n_series) for i in range(j)]
    chosen = rng.permutation(len(pairs))[:n_series]
    weights = np.zeros((n_series, n_series, 3))
    own = np.arange(n_series)
    weights[own, own, 1] = rng.uniform(size=n_series) * (memory[1] - memory[0]) + memory[0]
    for number in chosen:
        weights[*pairs[number], 0] = coefficients(rng, 1, *coupling)[0]
    if law.startswith("lagged"):
        for _ in range(n_series):
            cause, effect = rng.choice(n_series, 2, replace=False)
            weights[cause, effect, rng.integers(1, 3)] = coefficients(rng, 1, 0.3, 0.5)[0]
    curves = {}
    if law == "nonlinear":
        within = [(int(pairs[i][0]), int(pairs[i][1]), 0) for i in chosen]
        curves = {link: _CURVES[rng.integers(len(_CURVES))] for link in within}
    noise = _drawn(law, noise_rng, (BURN_IN + n_slots, n_series))
    weights = stable(weights)
    return made_of(seen(simulate(weights, noise, links=curves)), weights)


def _drawn(law: str, rng: Rng, shape: tuple[int, int]) -> FloatArray:
    if law.endswith("laplace"):
        return rng.laplace(0.0, np.sqrt(0.5), shape)
    if law == "uniform":
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)
    return rng.standard_normal(shape)


_MEMORY: Final = ((0.7, 0.9), (0.5, 0.7), (0.3, 0.5), (0.2, 0.3), (0.1, 0.2))
_SIZE: Final = (0.3, 0.5, 0.7, 0.9, 1.1)
_N_SLOTS = 1000


def _by_law(law: SlotLaw, rng: Rng, strength: int) -> Generated:
    return make_slot_system(law, memory=_MEMORY[strength], random_state=rng)


def _three(links: tuple[tuple[int, int], ...], rng: Rng, strength: int) -> Generated:
    """Join three series with memory within the slot only."""
    weights = np.zeros((3, 3, 2))
    weights[np.arange(3), np.arange(3), 1] = rng.uniform(0.3, 0.6, 3)
    signs = rng.choice((-1.0, 1.0), len(links))
    for (cause, effect), sign in zip(links, signs, strict=True):
        weights[cause, effect, 0] = sign * _SIZE[strength]
    noise = rng.standard_normal((BURN_IN + _N_SLOTS, 3))
    shuffled = rng.permutation(3)
    return made_of(seen(simulate(weights, noise))[:, shuffled], weights[shuffled][:, shuffled])


def _beside(rng: Rng, strength: int) -> Generated:
    """Let pairs be linked at lag 0 and, by ±.4, at lag 1."""
    n_series = 5
    order = rng.permutation(n_series)
    weights = np.zeros((n_series, n_series, 2))
    weights[np.arange(n_series), np.arange(n_series), 1] = rng.uniform(0.2, 0.5, n_series)
    pairs = np.array([(order[i], order[j]) for j in range(n_series) for i in range(j)])
    for cause, effect in pairs[rng.permutation(len(pairs))[:4]]:
        within, later = rng.choice((-1.0, 1.0), 2)
        weights[cause, effect] = within * (0.2, 0.35, 0.5, 0.7, 0.9)[strength], later * 0.4
    noise = rng.standard_normal((BURN_IN + _N_SLOTS, n_series))
    return made_of(seen(simulate(weights, noise)), weights)


_HOW = "within the slot, memory .8 down to .15"
_LAWS: Final[dict[SlotLaw, str]] = {
    "gaussian": f"straight links and normal noise {_HOW}",
    "laplace": f"straight links and Laplace noise {_HOW}",
    "uniform": f"straight links and uniform noise {_HOW}",
    "nonlinear": f"bent links and normal noise {_HOW}",
    "lagged-gaussian": f"straight lagged links, too, and normal noise {_HOW}",
    "lagged-laplace": f"straight lagged links, too, and Laplace noise {_HOW}",
}

SLOT: Final = {
    **{
        f"slot-{law}": Violation("slot", about, partial(_by_law, law), max_lag=3)
        for law, about in _LAWS.items()
    },
    "slot-collider": Violation(
        "slot",
        "two independent causes of a third series within the slot, by .3 up to 1.1",
        partial(_three, ((0, 2), (1, 2))),
        max_lag=2,
    ),
    "slot-fork": Violation(
        "slot",
        "one cause of two series within the slot, by .3 up to 1.1",
        partial(_three, ((2, 0), (2, 1))),
        max_lag=2,
    ),
    "slot-beside-lag": Violation(
        "slot", "links at lag 0, .2 up to .9, beside lag 1 of the same pairs", _beside, max_lag=2
    ),
}
