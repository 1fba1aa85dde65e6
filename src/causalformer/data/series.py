"""The table of series that every later stage works on, and whether it is fit to learn from."""

import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from causalformer.errors import DataError, DataWarning
from causalformer.names import check_names, listed

AnyArray: TypeAlias = npt.NDArray[Any]


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

    def head(self, n_slots: int | None) -> "SeriesTable":
        """Return the first slots; all of them for None.

        Examples
        --------
        >>> SeriesTable(np.zeros((3, 2)), ("sun", "rain")).head(2).n_slots
        2
        """
        if n_slots is None or n_slots >= self.n_slots:
            return self
        time = None if self.time is None else self.time[:n_slots]
        return SeriesTable(self.values[:n_slots], self.names, time, self.source)


def _frozen(array: AnyArray) -> AnyArray:
    """Return `array` itself if nobody can change it any more, else a read-only copy."""
    flags = array.flags
    if flags.writeable or not flags.owndata or not flags.c_contiguous:
        array = np.array(array, order="C")
        array.setflags(write=False)
    return array


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
    check_names(table.names, where)
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
