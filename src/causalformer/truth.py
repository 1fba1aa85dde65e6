"""True graphs in files: one line ``cause,effect,lag`` per edge."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from causalformer.errors import DataError, FileFormatError
from causalformer.files import read_text
from causalformer.formats import COLUMNS
from causalformer.graph import CausalGraph, Edge
from causalformer.names import listed

_MOST_INFERRED_SERIES = 100_000
_INTEGER = re.compile(r"\s*-?[0-9]{1,9}\s*")
_EXPECTED = "expected cause,effect,lag, for example 0,1,2"


def read_truth(
    path: str | Path, names: Sequence[str] | None = None, *, reverse: bool = False
) -> CausalGraph:
    r"""Read a true graph from CSV lines ``cause,effect,lag``.

    Two forms are read. Without a header line, every line holds two column numbers (from 0) and
    the lag; series names do as well, but where both readings are possible the fields are numbers.
    With a header line that names at least ``cause`` and ``effect``, such as the CSV that
    :meth:`CausalGraph.save` writes, columns may be in any order, others are ignored, a missing
    ``lag`` column means lag 1, and names take precedence over numbers. Empty lines are skipped.

    Parameters
    ----------
    path : str or Path
        The file.
    names : sequence of str, optional
        The series. By default column numbers up to the largest one in the file, or with a header
        line the names in the order in which they occur.
    reverse : bool, default False
        Swap cause and effect, for files that list them the other way round.

    Returns
    -------
    CausalGraph
        Its scores are unknown (NaN).

    Raises
    ------
    FileFormatError
        Naming the file, the line, the problem and what is expected.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> _ = path.write_text("0,0,1\n0,1,2\n")
    >>> print(read_truth(path, ["rain", "river"]))
    CausalGraph(2 series, 2 edges)
      rain → rain (lag 1)
      rain → river (lag 2)
    """
    path = Path(path)
    rows, has_header = _truth_rows(path)
    series, name_of = _truth_series(path, rows, None if names is None else tuple(names), has_header)
    edges: dict[Edge, int] = {}
    for row in rows:
        cause, effect = name_of[row.cause], name_of[row.effect]
        try:
            edge = Edge(effect, cause, row.lag) if reverse else Edge(cause, effect, row.lag)
        except DataError as error:
            _refuse(path, row.line, str(error))
        if edge in edges:
            _refuse(path, row.line, f"the edge was given before, on line {edges[edge]}")
        edges[edge] = row.line
    return CausalGraph(series, tuple(edges))


@dataclass(frozen=True, slots=True)
class _TruthRow:
    line: int
    cause: str
    effect: str
    lag: int


def _refuse(path: Path, line: int | None, problem: str) -> NoReturn:
    where = str(path) if line is None else f"{path}, line {line}"
    raise FileFormatError(f"{where}: {problem}; {_EXPECTED}")


def _truth_rows(path: Path) -> tuple[list[_TruthRow], bool]:
    """Split the file into rows, and tell whether it began with a header line."""
    lines = _csv_rows(path)
    if not lines:
        _refuse(path, None, "the file is empty")
    header = [cell.strip().lower() for cell in lines[0][1]]
    has_header = {"cause", "effect"} <= set(header)
    if has_header:
        lines = lines[1:]
        repeated = [name for name in COLUMNS if header.count(name) > 1]
        if repeated:
            _refuse(path, 1, f"two columns are called {repeated[0]}")
    else:
        header = ["cause", "effect", "lag"]
    rows = []
    for line, cells in lines:
        if len(cells) != len(header):
            _refuse(path, line, f"{len(cells)} columns instead of {len(header)}")
        entry = dict(zip(header, cells, strict=True))
        lag = entry.get("lag", "1")
        if not _INTEGER.fullmatch(lag):
            _refuse(path, line, f"lag {lag!r} is no whole number")
        rows.append(_TruthRow(line, entry["cause"], entry["effect"], int(lag)))
    return rows, has_header


def _csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """All lines that are not blank, each with its number."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        _refuse(path, reader.line_num, f"broken CSV ({error})")


def _truth_series(
    path: Path, rows: list[_TruthRow], names: tuple[str, ...] | None, has_header: bool
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return all series, and the name that each field of the file stands for."""
    fields = [(row.line, cell) for row in rows for cell in (row.cause, row.effect)]
    all_numbers = all(_INTEGER.fullmatch(cell) for _, cell in fields)
    if names is None:
        names = _inferred_names(path, fields, all_numbers, has_header)
    known = {**{name.strip(): name for name in names}, **{name: name for name in names}}

    def by_name(cell: str) -> str | None:
        return known.get(cell, known.get(cell.strip()))

    def by_number(cell: str) -> str | None:
        number = int(cell) if _INTEGER.fullmatch(cell) else -1
        return names[number] if 0 <= number < len(names) else None

    for reading in (by_name, by_number) if has_header else (by_number, by_name):
        meant = {cell: reading(cell) for _, cell in fields}
        if None not in meant.values():
            return names, {cell: str(name) for cell, name in meant.items()}
    unknown = [item for item in fields if by_name(item[1]) is None]
    line, cell = next((item for item in unknown if by_number(item[1]) is None), unknown[0])
    if all_numbers:
        _refuse(path, line, f"column number {cell} is not between 0 and {len(names) - 1}")
    _refuse(
        path, line, f"no series is called {cell!r} (series: {listed(map(repr, names), most=10)})"
    )


def _inferred_names(
    path: Path, fields: list[tuple[int, str]], all_numbers: bool, has_header: bool
) -> tuple[str, ...]:
    """Return the names of the series as far as the file itself tells them."""
    if not fields:
        _refuse(path, None, "the file holds no edge and no names of series are given")
    if all_numbers:
        line, largest = max(fields, key=lambda item: int(item[1]))
        if int(largest) >= _MOST_INFERRED_SERIES:
            _refuse(path, line, f"column number {largest} is too large")
        return tuple(str(number) for number in range(int(largest) + 1))
    if has_header:
        return tuple(dict.fromkeys(cell for _, cell in fields))
    line, cell = next(item for item in fields if not _INTEGER.fullmatch(item[1]))
    _refuse(path, line, f"{cell!r} is no column number and no names of series are given")
