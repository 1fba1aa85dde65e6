"""The table of series that every later stage works on: how it is built, and when it is usable."""

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from causalformer.errors import DataError, DataWarning

AnyArray: TypeAlias = npt.NDArray[Any]


class Auto(Enum):
    """The type of `AUTO`: the reader shall find out for itself."""

    AUTO = "auto"

    def __repr__(self) -> str:
        return "AUTO"


AUTO: Final[Literal[Auto.AUTO]] = Auto.AUTO
TimeColumn: TypeAlias = str | int | Auto | None

MISSING_MARKS: Final = (
    *("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "None"),
)
CLEAR_TIME_NAMES: Final = frozenset({"time", "date", "datetime", "timestamp"})
TIME_NAMES: Final = CLEAR_TIME_NAMES | {"t", "slot", "index"}

_DATE_TEXT = re.compile(r"\d{4}|\d+[-/.]\w+[-/.]\d+")
_CLOCK_TEXT = re.compile(r"\d+:\d\d(:\d\d(\.\d+)?)?")


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """Several time series observed at the same slots.

    Parameters
    ----------
    values : array of float64, shape (slot, series)
        One row per time slot, one column per series. Kept C-contiguous and read-only; an array
        that somebody else could still change is copied.
    names : sequence of str
        One name per series.
    time : array of shape (slot,), optional
        When each slot was observed: dates, durations or numbers. Time zones are UTC.
    source : str
        Where the series come from, for messages and reports.

    Examples
    --------
    >>> table = SeriesTable(np.zeros((3, 2)), ("sun", "rain"))
    >>> table.n_slots, table.n_series
    (3, 2)
    >>> table.values.flags.writeable
    False
    """

    values: npt.NDArray[np.float64]
    names: tuple[str, ...]
    time: AnyArray | None = None
    source: str = "array"

    def __post_init__(self) -> None:
        values = _frozen(np.asarray(self.values, dtype=np.float64))
        if values.ndim != 2:
            raise DataError(f"values need the shape (slot, series); they have {values.ndim} axes")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "names", tuple(self.names))
        if len(self.names) != self.n_series:
            raise DataError(f"{len(self.names)} names for {self.n_series} series; give one each")
        if self.time is not None:
            time = _frozen(np.asarray(self.time))
            if time.shape != (self.n_slots,):
                raise DataError(f"time has shape {time.shape}; {self.n_slots} slots need one each")
            object.__setattr__(self, "time", time)

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild through the constructor, so that a pickled table comes back read-only."""
        return SeriesTable, (self.values, self.names, self.time, self.source)

    @property
    def n_slots(self) -> int:
        """How many time slots (rows) there are."""
        return int(self.values.shape[0])

    @property
    def n_series(self) -> int:
        """How many series (columns) there are."""
        return int(self.values.shape[1])


def _frozen(array: AnyArray) -> AnyArray:
    """Return `array` itself if nobody can change it any more, else a read-only copy."""
    flags = array.flags
    if flags.writeable or not flags.owndata or not flags.c_contiguous:
        array = np.array(array, order="C")
        array.setflags(write=False)
    return array


# --- Is the table usable? -------------------------------------------------------------------------


def check_usable(table: SeriesTable, *, min_slots: int, option: str = "window") -> None:
    """Refuse series that nothing can be learned from; warn where the result deserves care.

    Parameters
    ----------
    table : SeriesTable
        The series to look at.
    min_slots : int
        The least number of slots that the settings need, e.g. ``window + 1``.
    option : str
        The option that asks for `min_slots`; the message names it.

    Raises
    ------
    DataError
        No rows, one row, fewer rows than `min_slots`, fewer than two series, two series of one
        name, or values that are missing or infinite.

    Warns
    -----
    DataWarning
        Constant series, and series that are exact copies of one another.

    Examples
    --------
    >>> table = SeriesTable(np.eye(4, 2), ("a", "b"), source="tiny.csv")
    >>> check_usable(table, min_slots=3)
    >>> check_usable(table, min_slots=17)
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: tiny.csv has 4 rows, but `window` needs at least 17; give more
    rows or choose a smaller `window`
    """
    where = table.source
    check_distinct(table.names, where)
    if table.n_series < 2:
        found = f"only {table.names[0]!r}" if table.n_series else "none"
        raise DataError(
            f"{where} needs at least two series, one per column; it has {found}: add a column, "
            "or check the separator and the time column"
        )
    if table.n_slots == 0:
        raise DataError(f"{where} has no rows; give one row per time slot")
    if table.n_slots == 1:
        raise DataError(f"{where} has one row; a series needs many: one row per time slot")
    if table.n_slots < min_slots:
        raise DataError(
            f"{where} has {table.n_slots} rows, but `{option}` needs at least {min_slots}; "
            f"give more rows or choose a smaller `{option}`"
        )
    _refuse_gaps(table)
    _warn_of_idle_columns(table)


def check_distinct(names: Sequence[str], source: str) -> None:
    """Raise `DataError` if a column name occurs more than once.

    Examples
    --------
    >>> check_distinct(("a", "b", "a"), "x.csv")
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: x.csv has several columns of one name: 'a' (columns 1, 3);
    rename them, or pass `names`
    """
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        places = [
            f"{name!r} (columns {', '.join(str(i + 1) for i, n in enumerate(names) if n == name)})"
            for name in repeated
        ]
        raise DataError(
            f"{source} has several columns of one name: {listed(places)}; "
            "rename them, or pass `names`"
        )


def _refuse_gaps(table: SeriesTable) -> None:
    finite = np.isfinite(table.values)
    if finite.all():
        return
    found = []
    for column in np.flatnonzero(~finite.all(axis=0)):
        values = table.values[:, column]
        n_missing, n_infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        counts = [f"{n_missing} missing"] * (n_missing > 0)
        counts += [f"{n_infinite} infinite"] * (n_infinite > 0)
        first = int(np.argmin(finite[:, column])) + 1
        found.append(f"{table.names[column]!r} ({' and '.join(counts)}, first in row {first})")
    raise DataError(
        f"{table.source} has missing or infinite values in column {listed(found)}; fill them "
        "(for example with pandas `interpolate`), cut the rows off, or drop the column"
    )


def _warn_of_idle_columns(table: SeriesTable) -> None:
    """Warn of columns that can show no cause (constant) or that share one (copies)."""
    constant = (table.values == table.values[:1]).all(axis=0)
    if constant.any():
        named = listed(repr(table.names[i]) for i in np.flatnonzero(constant))
        warnings.warn(
            f"{table.source}: constant column {named}; it can neither cause nor be caused, "
            "so consider dropping it",
            DataWarning,
            stacklevel=4,
        )
    alike: dict[bytes, list[str]] = defaultdict(list)
    for i in np.flatnonzero(~constant):
        alike[(table.values[:, i] + 0.0).tobytes()].append(table.names[i])
    copies = [" = ".join(map(repr, names)) for names in alike.values() if len(names) > 1]
    if copies:
        warnings.warn(
            f"{table.source}: identical columns {listed(copies)}; their effects cannot be told "
            "apart, so keep one of each",
            DataWarning,
            stacklevel=4,
        )


def listed(items: Iterable[str], most: int = 5) -> str:
    """Join `items` by commas, naming at most `most` of them.

    Examples
    --------
    >>> listed("abcdefg")
    'a, b, c, d, e and 2 more'
    """
    every = list(items)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


# --- From raw columns to a table ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns as a file or a frame holds them: any type, time not yet told from the series.

    Parameters
    ----------
    names : tuple of str
        One per column; an empty name means that the column has none.
    cells : tuple of arrays, each of shape (slot,)
        Numbers, dates or text.
    source : str
        Where they come from.
    index : (name, array), optional
        The row labels of a frame; they can be the time but never a series.
    """

    names: tuple[str, ...]
    cells: tuple[AnyArray, ...]
    source: str
    index: tuple[str, AnyArray] | None = None


def table_from_columns(
    raw: RawColumns, *, time_column: TimeColumn = AUTO, names: Sequence[str] | None = None
) -> SeriesTable:
    """Tell the time from the series and turn the series into numbers.

    See `causalformer.data.read_series` for the rules; a column without a name becomes ``x0``,
    ``x1``, ... by its position.

    Examples
    --------
    >>> raw = RawColumns(("t", "a"), (np.array([1, 2]), np.array([0.5, 0.7])), "example")
    >>> table = table_from_columns(raw)
    >>> table.names, table.time.tolist()
    (('a',), [1, 2])
    """
    if isinstance(names, str):
        raise DataError(f"`names` is the text {names!r}; give a list with one name per series")
    if names is not None and len(names) == len(raw.cells):
        raw, names = replace(raw, names=tuple(map(str, names))), None
    if names is None:
        check_distinct([name for name in raw.names if name], raw.source)
    position, time = _find_time(raw, time_column)
    kept = [i for i in range(len(raw.cells)) if i != position]
    if names is None:
        names = [raw.names[i] or f"x{i}" for i in kept]
    elif len(names) != len(kept):
        raise DataError(
            f"`names` has {len(names)} names, but {raw.source} has {len(kept)} series; "
            "give one per series"
        )
    check_distinct(names, raw.source)
    values = np.empty((_n_slots(raw), len(kept)))
    for target, i in enumerate(kept):
        values[:, target] = _numbers(raw.names[i] or f"x{i}", raw.cells[i], raw.source)
    values.setflags(write=False)
    return SeriesTable(values, tuple(map(str, names)), time, raw.source)


def _n_slots(raw: RawColumns) -> int:
    lengths = {len(cells) for cells in raw.cells}
    if len(lengths) > 1:
        sizes = (f"{n!r} ({len(c)})" for n, c in zip(raw.names, raw.cells, strict=True))
        raise DataError(f"{raw.source}: columns differ in length: {listed(sizes)}; cut them alike")
    return lengths.pop() if lengths else 0


def _numbers(name: str, cells: AnyArray, source: str) -> npt.NDArray[np.float64]:
    kind = cells.dtype.kind
    if kind in "fiub":
        return cells.astype(np.float64, copy=False)
    if kind == "c":
        raise DataError(
            f"{source}: column {name!r} holds complex numbers; "
            "give its real part, its modulus or its phase"
        )
    if kind in "Mm":
        raise DataError(
            f"{source}: column {name!r} holds dates or durations; "
            f"pass time_column={name!r} if it is the time, else drop it"
        )
    return _numbers_from_text(name, cells, source)


def _numbers_from_text(name: str, cells: AnyArray, source: str) -> npt.NDArray[np.float64]:
    """Read text or mixed objects as numbers; true and false count as one and zero."""
    import pandas as pd

    column = pd.Series(cells.astype(object), dtype=object)
    values = np.array(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    known = column.isna() | column.isin(MISSING_MARKS)
    for row in np.flatnonzero(np.isnan(values) & ~known.to_numpy()):
        text = str(cells[row]).strip()
        if text.lower() not in {"true", "false", *MISSING_MARKS}:
            raise DataError(
                f"{source}: column {name!r} holds text: {text[:40]!r} in row {row + 1}; "
                f"a series needs numbers: mend the cell or drop the column "
                f"(or pass time_column={name!r} if it is the time)"
            )
        values[row] = {"true": 1.0, "false": 0.0}.get(text.lower(), np.nan)
    return values


# --- Which column is the time? --------------------------------------------------------------------


def _find_time(raw: RawColumns, time_column: TimeColumn) -> tuple[int | None, AnyArray | None]:
    """Return the position of the time column (None for the index) and the time itself."""
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
        raise DataError(
            f"{raw.source}: column {name!r} cannot be read as time (it begins with "
            f"{str(cells[0])[:40]!r}); give numbers or dates such as 2024-01-31"
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
        f"{raw.source} has no column {time_column!r} to take as time_column; "
        f"its columns are {listed(labels, most=20)}"
    )


def _recognise_time(raw: RawColumns) -> tuple[int | None, AnyArray | None]:
    if raw.index is not None:
        time = _time_if_recognised(*raw.index, raw.source)
        if time is not None:
            return None, time
    dated = [i for i, cells in enumerate(raw.cells) if cells.dtype.kind in "Mm"]
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
            "as a series; sort the rows if it is the time, pass time_column=None if it is not",
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
        return as_time(texts.astype(np.float64), name, source)
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
            column = pd.Series(texts, dtype=object)
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


def check_increasing(time: AnyArray, name: str, source: str) -> None:
    """Raise `DataError` at the first slot whose time is not later than the one before.

    Examples
    --------
    >>> check_increasing(np.array([1, 2, 2]), "t", "x.csv")
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: x.csv: time column 't' does not increase: 2 in row 3 follows 2;
    sort the rows, keep one row per time, or pass time_column=None and drop the column
    """
    row = _first_step_back(time)
    if row is not None:
        raise DataError(
            f"{source}: time column {name!r} does not increase: {time[row]!s} in row {row + 1} "
            f"follows {time[row - 1]!s}; sort the rows, keep one row per time, or pass "
            "time_column=None and drop the column"
        )


def _first_step_back(time: AnyArray) -> int | None:
    """Return the row of the first time that is not later than the one before (or is missing)."""
    later = time[1:] > time[:-1]
    return None if later.all() else int(np.argmin(later)) + 1
