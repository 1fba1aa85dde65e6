"""Series that do not drive one another, but look as if."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from causalformer.datasets.generated import BURN_IN, FloatArray, Generated, generated
from causalformer.datasets.violations.base import Rng, Violation, seen, simulate
from causalformer.datasets.violations.dynamics import volatility

_N_SERIES, _N_SLOTS = 5, 500

Share: TypeAlias = Callable[[Rng, FloatArray, int], FloatArray]
"""Gives the series of random numbers, autoregressive noise and a strength."""


def _null(share: Share, rng: Rng, strength: int) -> Generated:
    noise = rng.standard_normal((BURN_IN + _N_SLOTS, _N_SERIES))
    values = share(rng, noise, strength)
    return generated(values, [(i, i, 1) for i in range(_N_SERIES)], "violations")


def _with_memory(noise: FloatArray, memory: FloatArray) -> FloatArray:
    weights = np.zeros((_N_SERIES, _N_SERIES, 2))
    weights[np.arange(_N_SERIES), np.arange(_N_SERIES), 1] = memory
    return seen(simulate(weights, noise))


def _memory(rng: Rng) -> FloatArray:
    return rng.uniform(0.2, 0.7, _N_SERIES)


def _noise(_: Rng, noise: FloatArray, strength: int) -> FloatArray:
    return _with_memory(noise, np.full(_N_SERIES, (0.0, 0.3, 0.6, 0.8, 0.9)[strength]))


def _volatility(rng: Rng, noise: FloatArray, strength: int) -> FloatArray:
    memory = _memory(rng)
    common = volatility(rng, len(noise), (0.0, 0.3, 0.6, 0.9, 1.2)[strength])
    return _with_memory(noise * common, memory)


def _season(rng: Rng, noise: FloatArray, strength: int) -> FloatArray:
    size = (0.0, 0.5, 1.0, 2.0, 4.0)[strength]
    x = _with_memory(noise, _memory(rng))
    phase = rng.uniform(0.0, 2 * np.pi, _N_SERIES)
    wave = np.sqrt(2.0) * np.sin(2 * np.pi * np.arange(_N_SLOTS)[:, None] / 24 + phase)
    return np.asarray(x + size * wave)


def _trend(rng: Rng, noise: FloatArray, strength: int) -> FloatArray:
    rise = (0.0, 1.0, 2.0, 4.0, 8.0)[strength]
    x = _with_memory(noise, _memory(rng))
    slope = rng.uniform(0.7, 1.3, _N_SERIES)
    return np.asarray(x + rise * slope * np.linspace(0.0, 1.0, _N_SLOTS)[:, None])


def _shift(rng: Rng, noise: FloatArray, strength: int) -> FloatArray:
    size = (0.0, 1.0, 2.0, 4.0, 8.0)[strength]
    x = _with_memory(noise, _memory(rng))
    start = rng.uniform(0.3, 0.7) * _N_SLOTS
    height = size * rng.uniform(0.7, 1.3, _N_SERIES)
    return np.asarray(x + height * (np.arange(_N_SLOTS)[:, None] >= start))


def _walks(_: Rng, noise: FloatArray, strength: int) -> FloatArray:
    return _with_memory(noise, np.full(_N_SERIES, (0.9, 0.95, 0.98, 0.99, 1.0)[strength]))


def _of_null(share: Share, about: str) -> Violation:
    return Violation("nulls", about, partial(_null, share), max_lag=3)


NULLS: Final = {
    "null-noise": _of_null(_noise, "independent series with a memory of 0 to .9"),
    "null-volatility": _of_null(_volatility, "independent but for a common volatility, 0 to 1.2"),
    "null-season": _of_null(_season, "independent but for a common season, 0 to 4 deviations"),
    "null-trend": _of_null(_trend, "independent but for a common trend, 0 to 8 deviations"),
    "null-shift": _of_null(_shift, "independent but for a common step, 0 to 8 deviations"),
    "null-walks": _of_null(_walks, "independent, memory .9 up to 1: random walks"),
}
