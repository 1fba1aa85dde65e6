"""The bundled example: an invented greenhouse, and the generator that made its file."""

from pathlib import Path
from typing import Final

import numpy as np

from causalformer.data.reading import read_series
from causalformer.datasets.generated import (
    BURN_IN,
    Generated,
    RandomState,
    Triple,
    check_count,
    generated,
    seeded_rng,
)
from causalformer.truth import read_truth

NAMES: Final = ("sun", "temperature", "humidity", "soil_moisture", "growth")
EDGES: Final[tuple[Triple, ...]] = (
    (0, 1, 1),  # sun warms the air
    (1, 2, 1),  # warm air dries
    (2, 3, 2),  # dry air drains the soil
    (3, 4, 3),  # moist soil feeds the plants
    (0, 4, 1),  # sun drives growth, up to a limit
)


def make_greenhouse(n_slots: int = 500, *, random_state: RandomState = 2024) -> Generated:
    """Simulate an invented greenhouse: five series, five causal relations, lags 1 to 3.

    Nothing here was measured: the relations are those of `EDGES`, each series also
    remembers itself, and the sun's effect on growth saturates. Values have three decimals.

    Parameters
    ----------
    n_slots : int
        Length of the series (hours, say).
    random_state : int, Generator or None
        Seed; its default gives the bundled file.

    Returns
    -------
    Generated
        The series and their graph.

    Examples
    --------
    >>> print(*make_greenhouse(50).series.names)
    sun temperature humidity soil_moisture growth
    """
    from scipy.signal import lfilter

    check_count("n_slots", n_slots, 1)
    rng = seeded_rng(random_state)
    x = rng.standard_normal((5, BURN_IN + n_slots))
    strengths = (0.8, -0.8, 0.7, 0.7, 0.8)
    for effect, memory in enumerate((0.7, 0.5, 0.4, 0.6, 0.3)):
        for (cause, target, lag), strength in zip(EDGES, strengths, strict=True):
            if target == effect:
                past = x[cause, :-lag]
                x[effect, lag:] += strength * (np.tanh(past) if (cause, target) == (0, 4) else past)
        x[effect] = lfilter([1.0], [1.0, -memory], x[effect])
    level = np.array([500.0, 24.0, 65.0, 40.0, 20.0])
    spread = np.array([60.0, 1.2, 2.0, 1.0, 1.0])
    values = np.round(level + spread * x[:, BURN_IN:].T, 3)
    loops = tuple((i, i, 1) for i in range(5))
    return generated(values, loops + EDGES, "greenhouse", NAMES)


def load_example() -> Generated:
    """Load the bundled example: an invented greenhouse, 5 series of 500 slots, lags 1 to 3.

    The file was made by `make_greenhouse` with its default seed.

    Returns
    -------
    Generated
        The series and their graph.

    Examples
    --------
    >>> example = load_example()
    >>> example.series.names
    ('sun', 'temperature', 'humidity', 'soil_moisture', 'growth')
    >>> example.series.n_slots
    500
    """
    folder = Path(__file__).parent / "example"
    series = read_series(folder / "greenhouse.csv")
    return Generated(series, read_truth(folder / "truth.csv", series.names))
