"""From raw columns to a table: the time is told from the series, text becomes numbers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from causalformer import scratch
from causalformer.data.columns import MISSING_MARKS, RawColumns
from causalformer.data.series import AnyArray, SeriesTable
from causalformer.data.time_axis import AUTO, TimeColumn, find_time
from causalformer.errors import DataError
from causalformer.names import check_names, listed


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
        check_names([name for name in raw.names if name], raw.source)
    position, time = find_time(raw, time_column)
    kept = [i for i in range(len(raw.cells)) if i != position]
    if names is None:
        names = [raw.names[i] or f"x{i}" for i in kept]
    elif len(names) != len(kept):
        raise DataError(
            f"`names` has {len(names)} names, but {raw.source} has {len(kept)} series; "
            "give one per series"
        )
    check_names(names, raw.source)
    n_slots = _n_slots(raw)
    values = scratch.empty((n_slots, len(kept)))
    plain = all(raw.cells[i].dtype.kind in "fiub" for i in kept)
    # a file of rows is read once, not once for every column
    for rows in scratch.parts(n_slots, len(kept)) if plain else [slice(n_slots)]:
        for target, i in enumerate(kept):
            cells = raw.cells[i][rows]
            values[rows, target] = _numbers(raw.names[i] or f"x{i}", cells, raw.source)
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
            f"choose `time_column={name!r}` if it is the time, else drop it"
        )
    return _numbers_from_text(name, cells, source)


def _numbers_from_text(name: str, cells: AnyArray, source: str) -> npt.NDArray[np.float64]:
    """Read text or mixed objects as numbers; true and false count as one and zero."""
    import pandas as pd

    column = pd.Series(cells.astype(object), dtype=object)
    try:
        values = np.array(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    except OverflowError as error:
        raise DataError(
            f"{source}: column {name!r} holds a number beyond 1e308; divide it by a power of ten"
        ) from error
    known = column.isna() | column.isin(MISSING_MARKS)
    for row in np.flatnonzero(np.isnan(values) & ~known.to_numpy()):
        text = str(cells[row]).strip()
        if text.lower() not in {"true", "false", *MISSING_MARKS}:
            raise DataError(
                f"{source}: column {name!r} holds text: {text[:40]!r} in row {row + 1}; "
                f"a series needs numbers: mend the cell or drop the column "
                f"(or choose `time_column={name!r}` if it is the time, `group={name!r}` if it says "
                "which recording a row belongs to)"
            )
        values[row] = {"true": 1.0, "false": 0.0}.get(text.lower(), np.nan)
    return values
