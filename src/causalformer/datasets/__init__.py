"""Data whose causal graph is known: generators, benchmark folders and a bundled example."""

from pathlib import Path

from causalformer.data.reading import read_series
from causalformer.datasets.folders import BenchmarkFile, load_folder
from causalformer.datasets.generators import (
    GENERATORS,
    Generated,
    make_dataset,
    make_greenhouse,
    make_lorenz96,
    make_structure,
    make_var,
)
from causalformer.graph import read_truth

__all__ = [
    "GENERATORS",
    "BenchmarkFile",
    "Generated",
    "load_example",
    "load_folder",
    "make_dataset",
    "make_greenhouse",
    "make_lorenz96",
    "make_structure",
    "make_var",
]


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
