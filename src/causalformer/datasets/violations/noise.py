"""Innovations that are not those that methods assume, and noise on what is observed."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from causalformer.datasets.generated import BURN_IN, FloatArray, Generated
from causalformer.datasets.violations.base import (
    Base,
    Rng,
    Violation,
    made_of,
    on_base,
    seen,
    simulate,
)

Noise: TypeAlias = Callable[[Base, int], FloatArray]


def standardised(values: FloatArray) -> FloatArray:
    """Give every column mean zero and variance one."""
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def floods(rng: Rng, shape: tuple[int, int]) -> FloatArray:
    """Draw noise like river levels: sudden rises after rare rain that recede slowly.

    It stands in for recorded levels, which are no part of the package.

    Examples
    --------
    >>> levels = floods(np.random.default_rng(0), (2000, 1))[:, 0]
    >>> float((levels**3).mean()) > 1, float(np.corrcoef(levels[1:], levels[:-1])[0, 1]) > 0.5
    (True, True)
    """
    from scipy.signal import lfilter

    rain = rng.gamma(0.7, 1.0, shape) * (rng.random(shape) < 0.15) + 0.05 * rng.random(shape)
    return standardised(np.asarray(lfilter([1.0], [1.0, -0.8], rain, axis=0)))


def autoregressive(noise: FloatArray, memory: float) -> FloatArray:
    """Give white noise a memory, at the same variance."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], noise, axis=0))


def mixed(one: FloatArray, other: FloatArray, share: float) -> FloatArray:
    """Add two kinds of noise; `share` of the variance is the other's."""
    return np.asarray(np.sqrt(1.0 - share) * one + np.sqrt(share) * other)


# ------------------------------------------------------------------ innovations


def _uniforms(base: Base) -> FloatArray:
    from scipy.special import ndtr

    return np.clip(ndtr(base.noise), 1e-12, 1.0 - 1e-12)


def _weibull(base: Base, strength: int) -> FloatArray:
    shape = (0.0, 2.0, 1.5, 1.0, 0.6)[strength]
    quantiles = (-np.log1p(-_uniforms(base))) ** (1.0 / (shape or 1.0))
    return standardised(quantiles) if strength else base.noise


def _uniform(base: Base, strength: int) -> FloatArray:
    from scipy.stats import gennorm

    shape = (2.0, 3.0, 5.0, 10.0, 100.0)[strength]
    return standardised(gennorm.ppf(_uniforms(base), shape)) if strength else base.noise


def _variances(base: Base, strength: int) -> FloatArray:
    ratio = (1.0, 2.0, 4.0, 7.0, 10.0)[strength]
    return base.noise * ratio ** base.rng.uniform(-0.5, 0.5, base.n_series)


def _autoregressive(base: Base, strength: int) -> FloatArray:
    return autoregressive(base.noise, (0.0, 0.3, 0.5, 0.7, 0.9)[strength])


def _shocks(base: Base, strength: int) -> FloatArray:
    share = (0.0, 0.005, 0.01, 0.02, 0.04)[strength]
    size = base.rng.normal(0.0, 8.0, base.noise.shape)
    return np.asarray(base.noise + size * (base.rng.random(base.noise.shape) < share))


def _stepped(base: Base, strength: int) -> FloatArray:
    """Change the variance of each series at four points of its own."""
    n_slots, n_series = base.noise.shape
    breaks = base.rng.integers(n_slots, size=(4, n_series))
    stage = (np.arange(n_slots)[:, None, None] >= breaks).sum(axis=1)
    powers = base.rng.uniform(-1.0, 1.0, (5, n_series))
    ratio = (1.0, 1.5, 2.5, 4.0, 6.0)[strength]
    return np.asarray(base.noise * ratio ** powers[stage, np.arange(n_series)])


def _seasonal(base: Base, strength: int) -> FloatArray:
    """Let the variance follow a season of 24 slots, with a phase of each series' own."""
    phase = base.rng.uniform(0.0, 2 * np.pi, base.n_series)
    angle = 2 * np.pi * np.arange(len(base.noise))[:, None] / 24 + phase
    ratio = (1.0, 1.5, 2.5, 4.0, 6.0)[strength]
    return np.asarray(base.noise * ratio ** np.sin(angle))


def _growing(base: Base, strength: int) -> FloatArray:
    ratio = (1.0, 2.0, 4.0, 10.0, 25.0)[strength]
    time = np.clip((np.arange(len(base.noise)) - BURN_IN) / base.n_slots, 0.0, 1.0)
    return np.asarray(base.noise * ratio ** time[:, None])


def _common(base: Base, strength: int) -> FloatArray:
    shared = base.rng.standard_normal((len(base.noise), 1))
    return mixed(base.noise, shared, (0.0, 0.2, 0.4, 0.6, 0.8)[strength])


def _flood(base: Base, strength: int) -> FloatArray:
    levels = floods(base.rng, base.noise.shape)
    return mixed(base.noise, levels, (0.0, 0.25, 0.5, 0.75, 1.0)[strength])


def _with_innovations(draw: Noise, base: Base, strength: int) -> Generated:
    return made_of(seen(simulate(base.weights, draw(base, strength))), base.weights)


def _multiplicative(base: Base, strength: int) -> Generated:
    """Scale the innovations by the level that the series had in the slot before."""
    growth = (0.0, 0.3, 0.7, 1.2, 2.0)[strength]

    def scale(x: FloatArray, t: int) -> FloatArray:
        return np.asarray(1.0 + growth * np.minimum(np.abs(x[t - 1]), 3.0))

    return made_of(seen(simulate(base.weights, base.noise, scale=scale)), base.weights)


def _innovation(draw: Noise, about: str) -> Violation:
    make = on_base(partial(_with_innovations, draw))
    return Violation("innovations", about, make, from_base=True)


# ------------------------------------------------------------------ measurement

_SNR: Final = (np.inf, 1.0, 0.5, 0.2, 0.05)


def _measured(draw: Noise, base: Base, strength: int) -> Generated:
    """Add noise to what is observed; the system itself does not feel it."""
    x = seen(simulate(base.weights, base.noise))
    noise = standardised(draw(base, strength)) * x.std(axis=0)
    return made_of(x + noise / np.sqrt(_SNR[strength]), base.weights)


def _white_on(base: Base, _: int) -> FloatArray:
    return base.rng.standard_normal((base.n_slots, base.n_series))


def _multiplied_on(base: Base, _: int) -> FloatArray:
    x = seen(simulate(base.weights, base.noise))
    return np.asarray(x * base.rng.standard_normal(x.shape))


def _changing_on(base: Base, _: int) -> FloatArray:
    growth = 10.0 ** np.linspace(-0.5, 0.5, base.n_slots)[:, None]
    return np.asarray(base.rng.standard_normal((base.n_slots, base.n_series)) * growth)


def _autoregressive_on(base: Base, _: int) -> FloatArray:
    return autoregressive(base.rng.standard_normal((base.n_slots, base.n_series)), 0.8)


def _shocks_on(base: Base, _: int) -> FloatArray:
    shape = (base.n_slots, base.n_series)
    return np.asarray(
        base.rng.standard_normal(shape) * np.where(base.rng.random(shape) < 0.05, 10.0, 0.3)
    )


def _common_on(base: Base, _: int) -> FloatArray:
    return np.repeat(base.rng.standard_normal((base.n_slots, 1)), base.n_series, axis=1)


def _flood_on(base: Base, _: int) -> FloatArray:
    return floods(base.rng, (base.n_slots, base.n_series))


def _measurement(draw: Noise, what: str) -> Violation:
    about = f"{what} noise on what is observed, not fed back; SNR infinite, 1, .5, .2, .05"
    return Violation("measurement", about, on_base(partial(_measured, draw)), from_base=True)


INNOVATIONS: Final = {
    "innovations-weibull": _innovation(_weibull, "Weibull innovations, shape 2 down to .6"),
    "innovations-uniform": _innovation(_uniform, "innovations from normal to uniform"),
    "innovations-variances": _innovation(
        _variances, "standard deviations that differ by a factor of up to 10 between series"
    ),
    "innovations-autoregressive": _innovation(
        _autoregressive, "autoregressive innovations, memory 0 to .9"
    ),
    "innovations-multiplicative": Violation(
        "innovations",
        "innovations scaled by the level of the series",
        on_base(_multiplicative),
        from_base=True,
    ),
    "innovations-shocks": _innovation(_shocks, "shocks of 8 deviations in 0 to 4 % of all slots"),
    "innovations-steps": _innovation(
        _stepped, "variances that change at four points; deviations within a factor of 6"
    ),
    "innovations-season": _innovation(
        _seasonal, "variances with a season of 24 slots; deviations within a factor of 6"
    ),
    "innovations-growth": _innovation(_growing, "deviations that grow up to 25-fold"),
    "innovations-common": _innovation(_common, "0 to 80 % of the variance common to all series"),
    "innovations-flood": _innovation(
        _flood,
        "0 to 100 % of the variance from flood-like series (skewed, with memory; they stand in "
        "for recorded river levels)",
    ),
}

MEASUREMENT: Final = {
    "measurement-additive": _measurement(_white_on, "white"),
    "measurement-multiplicative": _measurement(_multiplied_on, "multiplicative"),
    "measurement-changing": _measurement(_changing_on, "growing"),
    "measurement-autoregressive": _measurement(_autoregressive_on, "autoregressive"),
    "measurement-shocks": _measurement(_shocks_on, "spiky"),
    "measurement-common": _measurement(_common_on, "the same (all series share it)"),
    "measurement-flood": _measurement(_flood_on, "flood-like"),
}
