"""The chaotic Lorenz-96 model of the atmosphere."""

from typing import Final

import numpy as np

from causalformer.datasets.generated import (
    FloatArray,
    Generated,
    RandomState,
    check_count,
    generated,
    seeded_rng,
)
from causalformer.errors import SettingsError

_STEP: Final = 0.01
_BURN_IN: Final = 10.0


def make_lorenz96(
    n_series: int = 10,
    n_slots: int = 1000,
    *,
    forcing: float | None = None,
    step: float = 0.1,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> Generated:
    """Integrate the Lorenz-96 model of the atmosphere along a circle of latitude.

    ``dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F``, by Runge-Kutta steps of at most 0.01.

    Parameters
    ----------
    n_series : int
        Places on the circle, at least 4.
    n_slots : int
        Length of the series.
    forcing : float, optional
        F; drawn from 30 to 40 if None.
    step : float
        Time between two slots.
    noise : float
        Standard deviation of normal noise added to each observation.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series; ``i-2, i-1, i, i+1`` cause ``i``, all at lag 1 by convention.

    Examples
    --------
    >>> made = make_lorenz96(5, 50, random_state=0)
    >>> sorted(e.cause for e in made.truth.edges if e.effect == "x2")
    ['x0', 'x1', 'x2', 'x3']
    """
    check_count("n_series", n_series, 4)
    check_count("n_slots", n_slots, 1)
    if step <= 0 or noise < 0:
        raise SettingsError(f"step is {step} and noise {noise}; choose step > 0 and noise >= 0")
    rng = seeded_rng(random_state)
    force = rng.uniform(30.0, 40.0) if forcing is None else float(forcing)
    n_inner = int(np.ceil(step / _STEP - 1e-9))
    state = force + rng.standard_normal(n_series)
    state = runge_kutta_steps(state, force, _STEP, round(_BURN_IN / _STEP))
    values = np.empty((n_slots, n_series))
    for slot in range(n_slots):
        state = runge_kutta_steps(state, force, step / n_inner, n_inner)
        values[slot] = state
    if not np.isfinite(values).all():
        raise SettingsError(f"forcing is {force}; the model blows up, choose a smaller one")
    values += noise * rng.standard_normal(values.shape)
    edges = [((i + d) % n_series, i, 1) for i in range(n_series) for d in (-2, -1, 0, 1)]
    return generated(values, edges, "lorenz96")


def runge_kutta_steps(state: FloatArray, force: float, step: float, n_steps: int) -> FloatArray:
    """Integrate from `state` by `n_steps` classical Runge-Kutta steps of length `step`."""
    n_series = len(state)
    ring = np.empty(n_series + 3)  # x_{-2}, x_{-1}, x_0 ... x_{n-1}, x_n

    def velocity(x: FloatArray) -> FloatArray:
        ring[2:-1] = x
        ring[:2] = x[-2:]
        ring[-1] = x[0]
        return np.asarray((ring[3:] - ring[:n_series]) * ring[1:-2] - x + force)

    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for a blow-up
        for _ in range(n_steps):
            k1 = velocity(state)
            k2 = velocity(state + 0.5 * step * k1)
            k3 = velocity(state + 0.5 * step * k2)
            k4 = velocity(state + step * k3)
            state = state + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
    return state
