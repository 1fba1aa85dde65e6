"""Which column is the time, and what moments it holds."""

import re
import warnings
from enum import Enum
from typing import Final, Literal, TypeAlias

import numpy as np

from causalformer.data.columns import RawColumns
from causalformer.data.series import AnyArray
from causalformer.errors import DataError, DataWarning
from causalformer.names import listed


class Auto(Enum):
    """The type of `AUTO`: the reader shall find out for itself."""

    AUTO = "auto"

    def __repr__(self) -> str:
        return "AUTO"


AUTO: Final[Literal[Auto.AUTO]] = Auto.AUTO
TimeColumn: TypeAlias = str | int | Auto | None

CLEAR_TIME_NAMES: Final = frozenset({"time", "date", "datetime", "timestamp"})
TIME_NAMES: Final = CLEAR_TIME_NAMES | {"t", "slot", "index"}

_DATE_TEXT = re.compile(r"\d{4}|\d+[-/.]\w+[-/.]\d+")
_LONGEST_DATE = 64  # characters; what parses dates takes minutes over a long text
_CLOCK_TEXT = re.compile(r"\d+:\d\d(:\d\d(\.\d+)?)?")


def find_time(
    raw: RawColumns, time_column: TimeColumn = AUTO
) -> tuple[int | None, AnyArray | None]:
    """Return the position of the time column (None for a frame's index) and the time itself.

    Parameters
    ----------
    raw : RawColumns
        The columns to look at.
    time_column : str, int, AUTO or None
        Which one it is; see `causalformer.data.read_series` for the rules.

    Examples
    --------
    >>> find_time(RawColumns(("a", "t"), (np.array([0.5, 0.7]), np.array([1, 2])), "x.csv"))
    (1, array([1, 2]))
    """
    if time_column is None:
        return None, None
    if isinstance(time_column, Auto):
        return _recognise_time(raw)
    if raw.index is not None and time_column == raw.index[0] and time_column not in raw.names:
        position, (name, cells) = None, raw.index
    else:
        position = _position(raw, time_column)
        name, cells = raw.names[position] or f"x{position}", raw.cells[position]
    time = as_time(cells, name, raw.source)
    if time is None:
        found = f"it begins with {str(cells[0])[:40]!r}" if len(cells) else "it is empty"
        raise DataError(
            f"{raw.source}: column {name!r} cannot be read as time ({found}); "
            "give numbers or dates such as 2024-01-31"
        )
    check_increasing(time, name, raw.source)
    return position, time


def _position(raw: RawColumns, time_column: str | int) -> int:
    if isinstance(time_column, str) and time_column in raw.names:
        return raw.names.index(time_column)
    if (
        isinstance(time_column, int)
        and not isinstance(time_column, bool)
        and 0 <= time_column < len(raw.names)
    ):
        return time_column
    labels = [name or f"(no name, position {i})" for i, name in enumerate(raw.names)]
    raise DataError(
        f"{raw.source} has no column {time_column!r} to take as `time_column`; "
        f"its columns are {listed(labels, most=20)}"
    )


def _recognise_time(raw: RawColumns) -> tuple[int | None, AnyArray | None]:
    dated = [i for i, cells in enumerate(raw.cells) if cells.dtype.kind in "Mm"]
    # beside a column of dates the numbers of rows, even if some rows were dropped, are no time
    if raw.index is not None and not (dated and raw.index[1].dtype.kind in "iuf"):
        time = _time_if_recognised(*raw.index, raw.source)
        if time is not None:
            return None, time
    for i, (name, cells) in enumerate(zip(raw.names, raw.cells, strict=True)):
        first_text = i == 0 and cells.dtype.kind in "OSU"
        if _named_like_time(name, i) or first_text or dated == [i]:
            time = _time_if_recognised(name, cells, raw.source, position=i)
            if time is not None:
                return i, time
    return None, None


def _named_like_time(name: str, position: int = 0) -> bool:
    word = name.strip().lower()
    return word in TIME_NAMES or (position == 0 and word in {"", "unnamed: 0"})


def _time_if_recognised(
    name: str, cells: AnyArray, source: str, position: int = 0
) -> AnyArray | None:
    """Return the time that a candidate holds, or None if it is a series after all."""
    time = as_time(cells, name, source)
    if time is None:
        return None
    if time.dtype.kind in "Mm":  # dates can be no series: a step back is an error
        check_increasing(time, name, source)
        return time
    if not _named_like_time(name, position):
        return None
    if _first_step_back(time) is None:
        return time
    if name.strip().lower() in CLEAR_TIME_NAMES:
        warnings.warn(
            f"{source}: column {name!r} is named like a time but does not increase, so it is kept "
            "as a series; sort the rows if it is the time, choose `time_column=None` if it is not",
            DataWarning,
            stacklevel=2,
        )
    return None


def as_time(cells: AnyArray, name: str, source: str) -> AnyArray | None:
    """Read `cells` as time: dates, durations or numbers; None if they are nothing of the kind.

    Examples
    --------
    >>> as_time(np.array([0.0, 1.0]), "t", "example")
    array([0, 1])
    >>> as_time(np.array(["2024-01-31", "2024-02-29"]), "date", "example").astype("M8[D]")
    array(['2024-01-31', '2024-02-29'], dtype='datetime64[D]')
    """
    kind = cells.dtype.kind
    if kind in "Mmiu":
        return cells
    if kind == "f":
        whole = np.isfinite(cells).all() and (np.abs(cells) < 2**53).all()
        return cells.astype(np.int64) if whole and (cells == np.rint(cells)).all() else cells
    if kind not in "OSU" or not len(cells):
        return None
    texts = cells.astype(object)
    if all(isinstance(cell, int | float) for cell in texts):
        try:
            return as_time(texts.astype(np.float64), name, source)
        except OverflowError:  # whole numbers of hundreds of digits
            return None
    if isinstance(texts[0], str) and _CLOCK_TEXT.fullmatch(texts[0].strip()):
        return _clock_times(texts)
    return _dates(texts, name, source) if _DATE_TEXT.search(str(texts[0])) else None


def _clock_times(texts: AnyArray) -> AnyArray | None:
    import pandas as pd

    full = [f"{t}:00" if str(t).count(":") == 1 else str(t) for t in texts]
    durations = pd.to_timedelta(pd.Series(full), errors="coerce")
    return None if durations.isna().any() else np.asarray(durations)


def _dates(texts: AnyArray, name: str, source: str) -> AnyArray | None:
    """Read dates, month first or day first, whichever fits more rows and increases."""
    import pandas as pd

    readings = []
    for dayfirst in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas' advice on formats is not for our user
            column = pd.Series(map(_cut, texts), dtype=object)
            parsed = pd.to_datetime(column, utc=True, errors="coerce", dayfirst=dayfirst)
        dates = np.asarray(parsed.dt.tz_localize(None))
        readings.append((int(np.isnat(dates).sum()), _first_step_back(dates) is not None, dates))
        if readings[-1][:2] == (0, False):
            return dates
    n_bad, _, dates = min(readings, key=lambda reading: reading[:2])
    if n_bad > len(dates) // 2:
        return None
    if n_bad:
        row = int(np.argmax(np.isnat(dates)))
        raise DataError(
            f"{source}: column {name!r} holds dates, but {str(texts[row])[:40]!r} in row {row + 1} "
            "is none; mend the cell or drop the row"
        )
    return dates


def _cut(cell: object) -> object:
    return cell[:_LONGEST_DATE] if isinstance(cell, str) else cell


def check_increasing(time: AnyArray, name: str, source: str) -> None:
    """Raise `DataError` at the first slot whose time is not later than the one before.

    Examples
    --------
    >>> check_increasing(np.array([1, 2, 2]), "t", "x.csv")
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: x.csv: time column 't' does not increase: 2 in row 3 follows 2;
    sort the rows, keep one row per time, or choose `time_column=None` and drop the column
    """
    row = _first_step_back(time)
    if row is not None:
        raise DataError(
            f"{source}: time column {name!r} does not increase: {time[row]!s} in row {row + 1} "
            f"follows {time[row - 1]!s}; sort the rows, keep one row per time, or choose "
            "`time_column=None` and drop the column"
        )


def _first_step_back(time: AnyArray) -> int | None:
    """Return the row of the first time that is not later than the one before (or is missing)."""
    later = time[1:] > time[:-1]
    return None if later.all() else int(np.argmin(later)) + 1
