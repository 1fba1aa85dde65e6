"""``results.csv``: one row per method, file and seed, kept so that a killed benchmark goes on."""

import csv
import dataclasses
import io
import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from causalformer.bench.methods import method_names
from causalformer.errors import FileFormatError
from causalformer.files import write_text
from causalformer.metrics import Metrics

if TYPE_CHECKING:
    import pandas as pd

IDENTITY: Final = ("folder", "orientation", "file", "method", "seed")
"""What a row is about; there is never more than one row of the same identity."""

STAMP: Final = ("settings", "data", "version")
"""What it was measured with; if any of it has changed, the row is out of date."""

FIGURES: Final = tuple(item.name for item in dataclasses.fields(Metrics))
PARITY: Final = ("parity_f1", "parity_off_diagonal_f1", "parity_pod")
"""Figures of the graph that the paper's k-means reads from a method's scores."""

NUMBERS: Final = (
    *("n_series", "n_slots", "seed"),
    *FIGURES,
    *PARITY,
    *("seconds", "cpu_seconds", "peak_gb", "epochs"),
)
COLUMNS: Final = (
    *("folder", "orientation", "file", "n_series", "n_slots", "method", "seed"),
    *FIGURES,
    *PARITY,
    *("seconds", "cpu_seconds", "peak_gb", "epochs", "stopped", "warning", "error"),
    *STAMP,
)

_QUICK: Final = 0.01  # seconds of writing for which no addition waits

Row = dict[str, str]
Key = tuple[str, ...]


def as_row(values: Mapping[str, object]) -> Row:
    """Turn values into the text of a row: unknown numbers are empty, floats exact.

    Examples
    --------
    >>> row = as_row({"folder": "fork", "f1": 0.75, "pod": float("nan"), "seed": None})
    >>> row["f1"], row["pod"], row["seed"], row["error"]
    ('0.75', '', '', '')
    """

    def text(value: object) -> str:
        unknown = value is None or (isinstance(value, float) and math.isnan(value))
        return "" if unknown else str(value)

    return {name: text(values.get(name)) for name in COLUMNS}


def results_frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """Return rows as a table, numbers as numbers.

    Examples
    --------
    >>> results_frame([as_row({"folder": "fork", "f1": 0.75})])["f1"].tolist()
    [0.75]
    """
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    for name in NUMBERS:
        frame[name] = pd.to_numeric(frame[name].replace("", None))
    return frame


class ResultFile:
    """The rows of one ``results.csv``, always whole on disk.

    An addition is written at once while that is quick; of a long file at the latest with `flush`,
    and before if ten times as long has passed as writing takes.

    Parameters
    ----------
    path : Path
        The file; read if it exists.

    Raises
    ------
    FileFormatError
        If the file exists but is none of ours.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[Key, Row] = {}
        self._due = 0.0
        self._waiting = False
        if path.exists():
            self._rows = {_key(row, IDENTITY): row for row in read_rows(path)}

    def has(self, wanted: Row) -> bool:
        """Whether there is a row of this identity that is up to date and no failure."""
        row = self._rows.get(_key(wanted, IDENTITY))
        return row is not None and not row["error"] and _key(row, STAMP) == _key(wanted, STAMP)

    def add(self, row: Row) -> None:
        """Put a row in, in place of an older one of the same identity."""
        self._rows[_key(row, IDENTITY)] = row
        self._waiting = True
        if time.perf_counter() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Write what waits to be written."""
        if not self._waiting:
            return
        started = time.perf_counter()
        self._write()
        now = time.perf_counter()
        took = now - started
        self._due, self._waiting = now + (10 * took if took > _QUICK else 0.0), False

    def drop(self, rows: Iterable[Row]) -> None:
        """Forget the rows of these identities; written with the next addition."""
        for row in rows:
            self._rows.pop(_key(row, IDENTITY), None)

    def frame(self) -> "pd.DataFrame":
        """Return all rows as a table, in a fixed order, numbers as numbers."""
        return results_frame(self._sorted())

    def _sorted(self) -> list[Row]:
        rank = {name: i for i, name in enumerate(method_names())}

        def place(row: Row) -> tuple[object, ...]:
            order = rank.get(row["method"], len(rank))
            file = (len(row["file"]), row["file"])  # data_2 before data_10
            return row["folder"], row["orientation"], order, file, len(row["seed"]), row["seed"]

        return sorted(self._rows.values(), key=place)

    def _write(self) -> None:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._sorted())
        write_text(self.path, stream.getvalue())


def _key(row: Row, names: tuple[str, ...]) -> Key:
    return tuple(row[name] for name in names)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a ``results.csv``; refuse a file that is not one."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            columns = tuple(reader.fieldnames or ())
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(
            f"{path} cannot be read ({error}); delete it, or choose another output folder"
        ) from error
    if columns != COLUMNS or any(None in row.values() for row in rows):
        raise FileFormatError(
            f"{path} holds no results of this version; delete it, or choose another output folder"
        )
    return rows
