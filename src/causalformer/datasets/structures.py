"""The four basic structures: diamond, mediator, v-structure and fork, with nonlinear links."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np

from causalformer.datasets.generated import (
    BURN_IN,
    FloatArray,
    Generated,
    RandomState,
    Triple,
    check_count,
    generated,
    seeded_rng,
)
from causalformer.errors import SettingsError

STRUCTURES: Final[Mapping[str, tuple[Triple, ...]]] = MappingProxyType(
    {
        "diamond": ((0, 1, 1), (0, 2, 2), (1, 3, 1), (2, 3, 1)),
        "mediator": ((0, 1, 1), (0, 2, 2), (1, 2, 1)),
        "v_structure": ((0, 2, 2), (1, 2, 1)),
        "fork": ((0, 1, 1), (0, 2, 2)),
    }
)
"""Edges ``(cause, effect, lag)`` of the four structures; every series also drives itself, lag 1."""


def _softplus(x: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, 2.0 * x))


def _wavelet(x: FloatArray) -> FloatArray:
    return np.asarray(x * np.exp(-0.5 * x * x))


def _well(x: FloatArray) -> FloatArray:
    return np.asarray(1.0 - np.exp(-0.5 * x * x))


def _tanh(x: FloatArray) -> FloatArray:
    return np.asarray(np.tanh(1.5 * x))


def _sine(x: FloatArray) -> FloatArray:
    return np.asarray(np.sin(1.5 * x))


# smooth links; `_well` is even, so that no linear test sees it
BOUNDED_LINKS: Final[tuple[Callable[[FloatArray], FloatArray], ...]] = (
    *(_tanh, _sine, _wavelet, _well),
)
LINKS: Final = (_tanh, _sine, _wavelet, _softplus, _well)
_NORMAL_GRID: Final = np.linspace(-6.0, 6.0, 1201)
_NORMAL_WEIGHTS: Final = np.exp(-0.5 * _NORMAL_GRID**2) / np.exp(-0.5 * _NORMAL_GRID**2).sum()


@cache
def _mean_and_deviation(link: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
    grid = link(_NORMAL_GRID)
    mean = float(grid @ _NORMAL_WEIGHTS)
    return mean, float(np.sqrt((grid - mean) ** 2 @ _NORMAL_WEIGHTS))


def standard_link(link: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
    """Apply `link`, scaled to mean zero and variance one for a standard normal cause."""
    mean, deviation = _mean_and_deviation(link)
    return np.asarray((link(x) - mean) / deviation)


def make_structure(
    name: str,
    n_slots: int = 1000,
    *,
    coupling: tuple[float, float] = (0.6, 1.2),
    memory: tuple[float, float] = (0.2, 0.6),
    random_state: RandomState = None,
) -> Generated:
    """Draw one of the four basic structures, with nonlinear links and additive normal noise.

    ``x_e[t] = a_e x_e[t-1] + Σ_c b_ce f_ce(x_c[t - lag]) + ε_e[t]``

    Each link ``f`` is drawn among smooth functions (tanh, sine, ``x exp(-x²/2)``, softplus, and
    the even ``1 - exp(-x²/2)``, which linear tests miss) and scaled to unit variance. As the
    structures have no loops but ``|a| < 1``, the series are stationary for every seed.

    Parameters
    ----------
    name : {"diamond", "mediator", "v_structure", "fork"}
        The structure, see `STRUCTURES`.
    n_slots : int
        Length of the series.
    coupling : (float, float)
        Range of ``|b|``; the sign is drawn too.
    memory : (float, float)
        Range of ``a``, below one.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series ``x0``, ``x1``, ... and their graph.

    Examples
    --------
    >>> made = make_structure("v_structure", 500, random_state=1)
    >>> sorted((e.cause, e.effect, e.lag) for e in made.truth.edges if e.cause != e.effect)
    [('x0', 'x2', 2), ('x1', 'x2', 1)]
    """
    from scipy.signal import lfilter

    if name not in STRUCTURES:
        raise SettingsError(
            f"no structure is called {name!r}; choose among {', '.join(STRUCTURES)}"
        )
    check_count("n_slots", n_slots, 1)
    if not -1.0 < min(memory) <= max(memory) < 1.0:
        raise SettingsError(f"memory is {memory}; both ends must lie between -1 and 1")
    rng = seeded_rng(random_state)
    edges = STRUCTURES[name]
    n_series = 1 + max(effect for _, effect, _ in edges)
    x = rng.standard_normal((n_series, BURN_IN + n_slots))
    for effect in range(n_series):  # causes come first in every structure
        for cause, _, lag in (edge for edge in edges if edge[1] == effect):
            link = LINKS[rng.integers(len(LINKS))]
            strength = rng.uniform(*coupling) * rng.choice((-1.0, 1.0))
            x[effect, lag:] += strength * standard_link(link, x[cause, :-lag])
        x[effect] = lfilter([1.0], [1.0, -rng.uniform(*memory)], x[effect])
    loops = tuple((i, i, 1) for i in range(n_series))
    return generated(x[:, BURN_IN:].T, loops + edges, name)
