"""The table of series that every later stage works on, and whether it is fit to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from causalformer import scratch
from causalformer.data.quality import idle_columns, warn_of
from causalformer.errors import DataError
from causalformer.names import check_names, listed

AnyArray: TypeAlias = npt.NDArray[Any]

_FILL_THEM: Final = (
    "fill them (for example with pandas "
    '`frame.replace([np.inf, -np.inf], np.nan).interpolate(limit_direction="both")`)'
)


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """Several time series observed at the same slots, in one or more recordings.

    Parameters
    ----------
    values : array of float64, shape (slot, series)
        One row per time slot, one column per series; NaN is a missing value. Kept C-contiguous
        and read-only; an array that somebody else could still change is copied, a mapped file that
        may only be read is not.
    names : sequence of str
        One name per series.
    time : array of shape (slot,), optional
        When each slot was observed: dates, durations or numbers. Time zones are UTC.
    source : str
        Where the series come from, for messages and reports.
    starts : sequence of int
        Slots at which a new segment begins, 0 first: after a gap, or with a new recording.
        Nothing looks across: the first slot of a segment has no past.
    runs : sequence of str
        Name of the recording that each segment belongs to; empty if there is only one.

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
    starts: tuple[int, ...] = (0,)
    runs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        mapped = isinstance(self.values, np.memmap) and self.values.dtype == np.float64
        values = _frozen(self.values if mapped else np.asarray(self.values, dtype=np.float64))
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
        starts = tuple(int(start) for start in self.starts)
        beyond = max(self.n_slots, 1)  # a table without rows has one empty segment
        if starts[:1] != (0,) or (np.diff([*starts, beyond]) < 1).any():
            raise DataError(
                f"starts are {starts}; give the first slot of every segment, 0 first, in order, "
                f"below {self.n_slots}"
            )
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "runs", tuple(map(str, self.runs)))
        if self.runs and len(self.runs) != len(starts):
            raise DataError(f"{len(self.runs)} runs for {len(starts)} segments; name one for each")
        if len(set(self.runs)) != sum(1 for _ in groupby(self.runs)):
            raise DataError("the segments of a run are apart; put them one after the other")

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild through the constructor, so that a pickled table comes back read-only."""
        return SeriesTable, tuple(getattr(self, field.name) for field in fields(self))

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
        return self.take(slice(0, n_slots))

    def _repr_html_(self) -> str:
        """Show the first rows in notebooks."""
        import pandas as pd

        first = self.head(5)
        frame = pd.DataFrame(first.values, columns=list(self.names), index=first.time)
        return f"<p>{self.n_series} series of {self.n_slots} slots</p>\n{frame.to_html()}"

    def take(self, slots: slice) -> "SeriesTable":
        """Return a range of slots, with the segments it cuts through.

        Examples
        --------
        >>> SeriesTable(np.zeros((9, 2)), ("sun", "rain"), starts=(0, 5)).take(slice(3, 9)).starts
        (0, 2)
        """
        first, stop, step = slots.indices(self.n_slots)
        if step != 1:
            raise DataError(f"slots {slots} leave some out; take a range without a step")
        kept = [
            (k, max(segment.start, first) - first)
            for k, segment in enumerate(self.segments)
            if segment.start < stop and segment.stop > first
        ]
        return replace(
            self,
            values=self.values[first:stop],
            time=None if self.time is None else self.time[first:stop],
            starts=tuple(start for _, start in kept) or (0,),
            runs=tuple(self.runs[k] for k, _ in kept) if self.runs else (),
        )

    def select(self, names: Sequence[str]) -> "SeriesTable":
        """Return some series, in this order.

        Examples
        --------
        >>> SeriesTable(np.eye(2), ("sun", "rain")).select(["rain", "sun"]).values[0]
        array([0., 1.])
        """
        at = [self.names.index(name) for name in names]
        values = scratch.empty((self.n_slots, len(at)))
        for rows in scratch.parts(*self.values.shape):
            np.take(self.values[rows], at, axis=1, out=values[rows])
        values.setflags(write=False)  # it is the table's own: no need to copy it once more
        return replace(self, values=values, names=tuple(names))

    @property
    def segments(self) -> tuple[slice, ...]:
        """The unbroken stretches of slots."""
        stops = [*self.starts[1:], self.n_slots]
        return tuple(slice(a, b) for a, b in zip(self.starts, stops, strict=True))

    @property
    def run_of_slot(self) -> npt.NDArray[np.int64]:
        """Number of the recording that each slot belongs to, from 0."""
        lengths = np.diff([*self.starts, self.n_slots])
        numbers = {name: i for i, name in enumerate(dict.fromkeys(self.runs))}
        run = [numbers[name] for name in self.runs] or [0] * len(lengths)
        return np.repeat(np.asarray(run, dtype=np.int64), lengths)

    def recordings(self) -> dict[str, "SeriesTable"]:
        """Return every recording by its name, in order; one without a name is called ``all``.

        Examples
        --------
        >>> table = SeriesTable(np.zeros((9, 2)), ("a", "b"), starts=(0, 5), runs=("anna", "ben"))
        >>> {name: part.n_slots for name, part in table.recordings().items()}
        {'anna': 5, 'ben': 4}
        """
        if not self.runs:
            return {"all": self}
        found = {}
        for name in dict.fromkeys(self.runs):
            mine = [s for s, run in zip(self.segments, self.runs, strict=True) if run == name]
            part = self.take(slice(mine[0].start, mine[-1].stop))
            found[name] = replace(part, runs=(), source=f"{self.source} [{name}]")
        return found

    @property
    def n_missing(self) -> npt.NDArray[np.int64]:
        """How many values of each series are missing."""
        return scratch.n_missing(self.values)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Where a value is missing, ``[slot, series]``."""
        return np.isnan(self.values)


def _frozen(array: AnyArray) -> AnyArray:
    """Return `array` itself if nobody can change it any more, else a read-only copy."""
    flags = array.flags
    alone = flags.owndata or isinstance(array, np.memmap)  # a file is read, not copied
    if flags.writeable or not alone or not flags.c_contiguous:
        array = np.array(array, order="C")
        array.setflags(write=False)
    return array


def check_usable(
    table: SeriesTable, *, min_slots: int, option: str = "window", missing_ok: bool = False
) -> None:
    """Refuse series that nothing can be learned from; warn where the result deserves care.

    Parameters
    ----------
    table : SeriesTable
        The series to look at.
    min_slots : int
        The least number of slots that the settings need, e.g. ``window + 1``.
    option : str
        The option that asks for `min_slots`; the message names it.
    missing_ok : bool
        Whether single values may be missing; a series without any value never is usable.

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
    _refuse_values(table, missing_ok=missing_ok)
    idle = idle_columns(table.values, table.names, table.segments)
    warn_of(idle, table.source, stacklevel=3)


def _refuse_values(table: SeriesTable, *, missing_ok: bool) -> None:
    """Refuse infinite values, series without values, and missing ones unless they are allowed."""
    empty = table.n_missing == table.n_slots
    if empty.any():
        named = listed(repr(table.names[i]) for i in np.flatnonzero(empty))
        raise DataError(f"{table.source}: column {named} has no value at all; drop it")
    found = []
    for name, values in zip(table.names, table.values.T, strict=True):
        refused = np.isinf(values) if missing_ok else ~np.isfinite(values)
        if not refused.any():
            continue
        n_missing, n_infinite = int(np.isnan(values[refused]).sum()), int(np.isinf(values).sum())
        counts = [f"{n_missing} missing"] * (n_missing > 0)
        counts += [f"{n_infinite} infinite"] * (n_infinite > 0)
        first = int(np.argmax(refused)) + 1
        found.append(f"{name!r} ({' and '.join(counts)}, first in row {first})")
    if not found:
        return
    kind = "infinite" if missing_ok else "missing or infinite"
    advice = "replace them by NaN (missing values are fine)" if missing_ok else _FILL_THEM
    raise DataError(
        f"{table.source} has {kind} values in column {listed(found)}; {advice}, cut the rows off, "
        "or drop the column"
    )
