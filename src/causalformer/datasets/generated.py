"""Series with the graph that made them, and what all generators share."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from causalformer.data.series import SeriesTable
from causalformer.errors import SettingsError
from causalformer.files import write_text
from causalformer.graph import CausalGraph, Edge

FloatArray: TypeAlias = npt.NDArray[np.float64]
RandomState: TypeAlias = int | np.random.Generator | None
Triple: TypeAlias = tuple[int, int, int]

BURN_IN: Final = 200


@dataclass(frozen=True, eq=False)
class Generated:
    """Series together with the graph that made them.

    Parameters
    ----------
    series : SeriesTable
        The series.
    truth : CausalGraph
        The graph, self-loops included.

    Examples
    --------
    >>> from causalformer.datasets import make_structure
    >>> made = make_structure("fork", 100, random_state=0)
    >>> made.series.n_slots, len(made.truth.edges)
    (100, 5)
    """

    series: SeriesTable
    truth: CausalGraph

    def save(self, folder: str | Path, index: int = 0) -> Path:
        """Write ``data_<index>.csv`` and ``truth.csv``, the form that `load_folder` reads.

        Parameters
        ----------
        folder : str or Path
            Made if it does not exist.
        index : int
            Number of the data file, for several realisations of one graph.

        Returns
        -------
        Path
            The data file: a header and one row per slot. The truth file has no header and one line
            ``cause,effect,lag`` per edge, with zero-based column numbers.

        Raises
        ------
        OutputError
            If the folder cannot be written.
        """
        position = {name: i for i, name in enumerate(self.series.names)}
        edges = sorted((position[e.cause], position[e.effect], e.lag) for e in self.truth.edges)
        write_text(Path(folder) / "truth.csv", "".join(f"{c},{e},{lag}\n" for c, e, lag in edges))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.series.names)
        writer.writerows(self.series.values.tolist())
        return write_text(Path(folder) / f"data_{index}.csv", text.getvalue())


def generated(
    values: FloatArray, edges: Sequence[Triple], source: str, names: Sequence[str] | None = None
) -> Generated:
    """Join ``values[slot, series]`` and edges ``(cause, effect, lag)`` by position.

    Examples
    --------
    >>> generated(np.zeros((9, 2)), [(0, 1, 3)], "zeros").truth.edges
    (Edge(cause='x0', effect='x1', lag=3, score=nan),)
    """
    names = tuple(names or (f"x{i}" for i in range(values.shape[1])))
    named = tuple(Edge(names[cause], names[effect], lag) for cause, effect, lag in edges)
    return Generated(SeriesTable(values, names, None, source), CausalGraph(names, named))


def check_count(option: str, value: int, least: int) -> None:
    """Raise `SettingsError` if an option is below its least value."""
    if value < least:
        raise SettingsError(f"{option} is {value}; choose at least {least}")


def seeded_rng(random_state: RandomState) -> np.random.Generator:
    """Return a generator of random numbers, or raise `SettingsError` for what is no seed."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"random_state is {random_state!r}; choose a whole number from 0, or None"
        ) from error
