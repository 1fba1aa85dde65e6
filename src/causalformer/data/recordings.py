"""Several recordings of the same series (subjects, runs, sites) in one table."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from causalformer.data.columns import RawColumns
from causalformer.data.series import AnyArray, SeriesTable
from causalformer.errors import DataError
from causalformer.names import listed


def join_recordings(tables: Mapping[str, SeriesTable], source: str) -> SeriesTable:
    """Put recordings one after the other; nothing looks across from one to the next.

    Columns may come in another order, but each recording needs all of them.

    Examples
    --------
    >>> anna = SeriesTable(np.zeros((3, 2)), ("heart", "breath"))
    >>> ben = SeriesTable(np.ones((2, 2)), ("breath", "heart"))
    >>> table = join_recordings({"anna": anna, "ben": ben}, "study")
    >>> table.starts, table.runs
    ((0, 3), ('anna', 'ben'))
    """
    if not tables:
        raise DataError(f"{source} holds no recording; give at least one")
    (first_name, first), *_ = tables.items()
    ordered = {
        name: _in_order(table, first.names, name, first_name) for name, table in tables.items()
    }
    starts, runs, n_slots = [], [], 0
    for name, table in ordered.items():
        starts += [n_slots + start for start in table.starts]
        parts = table.runs or ("",) * len(table.starts)  # recordings within a recording
        runs += [f"{name}/{part}" if part else name for part in parts]
        n_slots += table.n_slots
    return SeriesTable(
        np.concatenate([table.values for table in ordered.values()]),
        first.names,
        _joined_time([table.time for table in ordered.values()]),
        source,
        tuple(starts),
        tuple(runs),
    )


def _in_order(
    table: SeriesTable, names: tuple[str, ...], name: str, first_name: str
) -> SeriesTable:
    if not table.n_slots:
        raise DataError(f"recording {name!r} has no rows; leave it out")
    if table.names == names:
        return table
    if sorted(table.names) != sorted(names):
        lacking = [repr(n) for n in names if n not in table.names]
        extra = [repr(n) for n in table.names if n not in names]
        differences = [f"lacks column {listed(lacking)}"] * bool(lacking)
        differences += [f"has column {listed(extra)} besides"] * bool(extra)
        raise DataError(
            f"recording {name!r} {' and '.join(differences)}, compared with {first_name!r}; "
            "give the same columns in every recording"
        )
    order = [table.names.index(n) for n in names]
    return replace(table, values=table.values[:, order], names=names)


def _joined_time(times: list[AnyArray | None]) -> AnyArray | None:
    known = [time for time in times if time is not None]
    if len(known) < len(times) or len({time.dtype.kind in "Mm" for time in known}) > 1:
        return None
    return np.concatenate(known)


def split_by_group(raw: RawColumns, group: str) -> dict[str, RawColumns]:
    """Split long columns into recordings by one of them, in the order they appear.

    Examples
    --------
    >>> raw = RawColumns(("who", "x"), (np.array(["a", "b", "a"]), np.array([1, 2, 3])), "f.csv")
    >>> {who: part.cells[0].tolist() for who, part in split_by_group(raw, "who").items()}
    {'a': [1, 3], 'b': [2]}
    """
    if group not in raw.names:
        raise DataError(
            f"{raw.source} has no column {group!r} to group by; its columns are "
            f"{listed(map(repr, raw.names), most=20)}"
        )
    at = raw.names.index(group)
    labels = np.array([_label(cell) for cell in raw.cells[at].tolist()], dtype=object)
    empty = np.flatnonzero(labels == "")
    if len(empty):
        raise DataError(
            f"{raw.source}: column {group!r} is empty in row {empty[0] + 1}; name the recording "
            "of every row"
        )
    others = [i for i in range(len(raw.cells)) if i != at]
    parts = {}
    for label in dict.fromkeys(labels.tolist()):
        rows = labels == label
        parts[label] = RawColumns(
            tuple(raw.names[i] for i in others),
            tuple(raw.cells[i][rows] for i in others),
            f"{raw.source} [{label}]",
            None if raw.index is None else (raw.index[0], raw.index[1][rows]),
        )
    return parts


def _label(cell: object) -> str:
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
