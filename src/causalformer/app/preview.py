"""What a file holds, before anything is computed: columns, time, series, and what deserves care."""

import re
import warnings
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from causalformer.app.runs import Run
from causalformer.app.settings import Columns
from causalformer.data import AUTO, SeriesTable, read_series
from causalformer.data.columns import RawColumns
from causalformer.data.csv_files import read_text_columns
from causalformer.data.quality import inspect
from causalformer.data.reading import TEXT_SUFFIXES
from causalformer.data.time_axis import TimeColumn, find_time
from causalformer.errors import CausalFormerError, DataError, DataWarning
from causalformer.files import read_text

_ROWS: Final = 6
_SHOWN_COLUMNS: Final = 40
_LISTED_COLUMNS: Final = 1000
_LONGEST_CELL: Final = 60
_LABELS: Final = {"time_column": "Time column", "group": "Recordings", "max_lag": "Lags"}
_KEYWORD: Final = re.compile(r"`(\w+)(?:=[^`]*)?`")


def preview(folder: Path, **chosen: Any) -> dict[str, Any]:
    """Look at the file of a run, with the choices of `causalformer.app.settings.Columns`."""
    run = Run.model_validate_json(read_text(folder / "run.json"))
    source = folder / run.file

    def readable(message: object) -> str:
        return in_labels(str(message).replace(str(source), run.name))

    found: dict[str, Any] = {"columns": [], "rows": [], "notes": [], "error": None}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            table = _look(source, Columns(**chosen), found)
            findings = inspect(table.values, table.names, table.segments)
    except CausalFormerError as error:
        return found | {"error": readable(error)}
    notes = [{"kind": "reading", "text": readable(w.message)} for w in caught]
    notes += [{"kind": each.kind, "text": readable(each.text)} for each in findings]
    return found | _facts(table) | {"notes": list({note["text"]: note for note in notes}.values())}


def time_column(chosen: int | Literal["auto", "none"]) -> TimeColumn:
    """Translate the choice of the form into that of `read_series`."""
    if chosen == "none":
        return None
    return AUTO if chosen == "auto" else int(chosen)


def in_labels(message: str) -> str:
    """Name the fields of the form where a message of the library names keywords.

    Examples
    --------
    >>> in_labels("choose `time_column='when'`, or `detrend` it")
    'choose “Time column”, or “detrend” it'
    """
    return _KEYWORD.sub(lambda match: f"“{_LABELS.get(match[1], match[1])}”", message)


def _look(source: Path, columns: Columns, found: dict[str, Any]) -> SeriesTable:
    """Read the file, noting the columns on the way: they are of use even if it cannot be read."""
    chosen = time_column(columns.time_column)
    if source.suffix not in TEXT_SUFFIXES:
        table = read_series(source, time_column=chosen, group=columns.group)
        found |= {"columns": list(table.names[:_LISTED_COLUMNS])}
        found |= {"n_columns": table.n_series, "rows": _rows(list(table.values.T))}
        return table
    raw = read_text_columns(source)
    found |= {
        "columns": [name or f"(column {i + 1})" for i, name in enumerate(raw.names)][
            :_LISTED_COLUMNS
        ],
        "n_columns": len(raw.names),
        "rows": _rows(list(raw.cells)),
        "groups": _groups(raw),
    }
    if columns.group is None:
        found["time_position"] = _time_position(raw, chosen)
    return read_series(raw, time_column=chosen, group=columns.group)


def _time_position(raw: RawColumns, chosen: TimeColumn) -> int | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return find_time(raw, chosen)[0]
    except DataError:
        return None


def _groups(raw: RawColumns) -> list[str]:
    """Name the columns of text that repeat: they may tell recordings apart."""
    return [
        name
        for name, cells in zip(raw.names[:_LISTED_COLUMNS], raw.cells, strict=False)
        if name and cells.dtype.kind in "OSU" and len(set(cells[:2000].tolist())) * 5 <= len(cells)
    ]


def _rows(columns: list[Any]) -> list[list[str]]:
    shown = [[_cell(cell) for cell in column[:_ROWS]] for column in columns[:_SHOWN_COLUMNS]]
    return [list(row) for row in zip(*shown, strict=True)]


def _cell(cell: Any) -> str:
    """Return a cell as text, numbers as short as they can be."""
    if isinstance(cell, float | np.floating):
        return "" if np.isnan(cell) else f"{float(cell):.6g}"
    return "" if cell is None else str(cell)[:_LONGEST_CELL]


def _facts(table: SeriesTable) -> dict[str, Any]:
    time = table.time
    return {
        "n_slots": table.n_slots,
        "n_series": table.n_series,
        "series": list(table.names[:_LISTED_COLUMNS]),
        "n_recordings": len(table.recordings()),
        "n_segments": len(table.segments),
        "missing_share": float(table.missing.mean()) if table.values.size else 0.0,
        "time": None if time is None or not len(time) else [_moment(time[0]), _moment(time[-1])],
    }


def _moment(time: Any) -> str:
    """Write a time, of a date no more than is needed.

    Examples
    --------
    >>> _moment(np.datetime64("2024-01-31T00:00:00.000")), _moment(7)
    ('2024-01-31', '7')
    """
    is_date = isinstance(time, np.datetime64)
    return str(np.datetime_as_string(time, unit="auto")) if is_date else str(time)
