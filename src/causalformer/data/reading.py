"""One reader for every form in which series come: files, frames and arrays."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from causalformer import scratch
from causalformer.data.columns import RawColumns
from causalformer.data.conversion import table_from_columns
from causalformer.data.csv_files import read_text_columns
from causalformer.data.grids import read_netcdf, table_from_xarray
from causalformer.data.recordings import join_recordings, split_by_group
from causalformer.data.series import AnyArray, SeriesTable
from causalformer.data.time_axis import AUTO, TimeColumn
from causalformer.data.time_grid import Gaps, split_at_gaps
from causalformer.data.time_grid import resample as resampled
from causalformer.errors import CausalFormerError, DataError
from causalformer.files import home_expanded

Read: TypeAlias = RawColumns | SeriesTable | dict[str, Any]
"""What a reader hands on: columns, a finished table, or recordings by name."""


def read_series(
    source: object,
    *,
    time_column: TimeColumn = AUTO,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    group: str | None = None,
    gaps: Gaps = "auto",
    resample: str | float | None = None,
) -> SeriesTable:
    """Read series from a file, a frame or an array: one row per time slot, one column per series.

    Parameters
    ----------
    source : path, frame or array
        - A path to a text file (``.csv``, ``.tsv``, ``.txt``), ``.parquet``, ``.npy``, ``.npz``
          or ``.nc`` file. In text files the separator (comma, semicolon, tab, spaces) and the
          decimal mark are found out; a comma is a decimal mark only where it does not separate.
          Text is UTF-8 or UTF-16 with its byte order mark, else Latin-1. Empty cells become NaN.
          There are no comment lines.
        - A frame of pandas, polars or pyarrow; an xarray ``DataArray`` or ``Dataset``, whose
          dimensions other than time are stacked into columns such as ``sst[lat=2 lon=180]``
          (cells that are missing throughout are dropped, with a warning).
        - A mapping of names to columns, a 2-D array or a list of rows. Without names the series
          are called ``x0``, ``x1``, ...
        - Several recordings of the same series: a folder of such files, a list or a mapping of
          frames, arrays or paths, a 3-D array ``[recording, slot, series]``.
    time_column : str, int or None
        Name or zero-based position of the column (for xarray: the dimension) that holds the time.
        By default it is recognised: a column called time, date, datetime, timestamp, t, slot,
        index, or a first column without a name, if it holds increasing numbers or dates; a first
        column of dates under any name; a frame's index of dates. None: every column is a series.
    header : bool, optional
        Text files only: whether the first line holds names. By default it does if any of its cells
        is neither a number nor missing nor a date that goes on below, or if it counts 0, 1, 2, ...
        or 1, 2, 3, ... while the values below have fractions (as in the NetSim files).
    names : sequence of str, optional
        Names that replace those of the source: one per series, or one per column if the time
        column is to be counted too.
    group : str, optional
        The column that says which recording (subject, run, site) a row belongs to.
    gaps : {"auto", "split", "ignore"}
        What to do where the time steps are longer than usual; see
        `causalformer.data.time_grid.split_at_gaps`.
    resample : str or float, optional
        Average over steps of this length first; see `causalformer.data.time_grid.resample`.

    Returns
    -------
    SeriesTable
        The series as float64, their names, and the time if there is one.

    Raises
    ------
    DataError
        The source cannot be read as series; the message names the file, the line or column, and
        what to do.
    MissingExtraError
        A netCDF file without the packages of the extra ``netcdf``.

    Examples
    --------
    >>> table = read_series({"t": [1, 2, 3], "sun": [0.1, 0.5, 0.2], "rain": [3, 0, 1]})
    >>> table.names
    ('sun', 'rain')
    >>> table.time.tolist()
    [1, 2, 3]
    >>> read_series([[1, 2], [3, 4]]).names
    ('x0', 'x1')
    >>> read_series({"who": ["a", "a", "b"], "x": [1, 2, 3], "y": [3, 2, 1]}, group="who").starts
    (0, 2)
    """
    if isinstance(source, SeriesTable) and group is not None:
        raise DataError(
            f"a SeriesTable has no column {group!r} to group by; name the group when it is read"
        )
    if isinstance(source, SeriesTable) and resample is None:
        return source if names is None else replace(source, names=tuple(names))
    if isinstance(source, str) and not source:
        raise DataError("the path is empty; name a file or a folder")
    if isinstance(source, str | os.PathLike):
        raw = _from_file(home_expanded(source), time_column, header)
    else:
        raw = _from_object(source, time_column)
    if isinstance(raw, RawColumns) and group is not None:
        where, raw, group = raw.source, dict(split_by_group(raw, group)), None
    elif isinstance(raw, dict):
        where = str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    if isinstance(raw, dict):
        options: dict[str, Any] = {"gaps": gaps, "resample": resample, "names": names}
        options |= {"time_column": time_column, "header": header, "group": group}
        return join_recordings({k: read_series(v, **options) for k, v in raw.items()}, where)
    if isinstance(raw, RawColumns):
        table = table_from_columns(raw, time_column=time_column, names=names)
    else:
        table = raw if names is None else replace(raw, names=tuple(names))
    if resample is not None:
        table = resampled(table, resample)
    return split_at_gaps(table, gaps)


# --- Files ----------------------------------------------------------------------------------------


def _from_file(path: Path, time_column: TimeColumn, header: bool | None) -> Read:
    suffix = path.suffix.lower()
    try:
        if path.is_dir():
            return _from_folder(path)
        if not path.exists():
            raise DataError(f"{path} does not exist; check the path (now in {Path.cwd()})")
        if suffix in TEXT_SUFFIXES:
            return read_text_columns(path, header=header)
        if suffix == ".nc":
            return _from_binary(path, partial(read_netcdf, time_column=time_column))
        if suffix in _BINARY_READERS:
            return _from_binary(path, _BINARY_READERS[suffix])
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path} cannot be read: {reason}; check the file") from error
    supported = ", ".join([*TEXT_SUFFIXES, *_BINARY_READERS, ".nc"])
    raise DataError(f"{path}: unknown kind of file {suffix!r}; supported are {supported}")


def _from_folder(folder: Path) -> dict[str, Any]:
    """Take every file of a known kind as one recording, in the order of their names."""
    known = (*TEXT_SUFFIXES, *_BINARY_READERS, ".nc")
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in known and p.is_file())
    if not files:
        raise DataError(f"{folder} is a folder without a file of series ({', '.join(known)})")
    stems = [file.stem for file in files]
    return {f.stem if stems.count(f.stem) == 1 else f.name: f for f in files}


def _from_binary(path: Path, reader: Callable[[Path], Read]) -> Read:
    """Let a parser loose on bytes that may be anything: whatever it raises, they are damaged."""
    try:
        return reader(path)
    except (CausalFormerError, OSError):
        raise
    except Exception as error:
        reason = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        raise DataError(
            f"{path} is no intact {path.suffix} file ({reason}); write it anew"
        ) from error


def _from_parquet(path: Path) -> RawColumns:
    """Read a table; what is large for the memory comes column by column and goes to disk.

    Columns of one name cannot be asked for by name: they come at once.
    """
    import pandas as pd
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        n_rows, names = file.metadata.num_rows, file.schema_arrow.names
        if len(set(names)) < len(names):
            return replace(_from_pandas(file.read().to_pandas()), source=str(path))
    if not scratch.is_large(8 * n_rows * len(names)):
        return replace(_from_pandas(pd.read_parquet(path, engine="pyarrow")), source=str(path))
    wide = scratch.empty((len(names), n_rows))
    labels: tuple[str, ...] = ()
    cells: tuple[AnyArray, ...] = ()
    for name, room in zip(names, wide, strict=True):
        raw = _from_pandas(pd.read_parquet(path, engine="pyarrow", columns=[name]))
        for label, column in zip(raw.names, raw.cells, strict=True):  # none for an index
            labels += (label,)
            if column.dtype.kind in "fiub" and column.dtype.itemsize <= 8:
                place = room.view(np.uint8)[: column.nbytes].view(column.dtype)
                place[:] = column
                column = place
            cells += (column,)
    return RawColumns(labels, cells, str(path), raw.index)


def _from_numpy(path: Path) -> RawColumns | dict[str, Any]:
    """Read an array, or an archive of one array, of one-dimensional columns or of recordings.

    A large array is mapped, so that it is never in memory beside the table made of it.
    """
    try:
        if path.suffix.lower() == ".npy" and path.stat().st_size > _MAPPED_BYTES:
            return _from_array(np.load(path, mmap_mode="r", allow_pickle=False), str(path))
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _from_array(loaded, str(path))
            arrays = {str(name): np.asarray(loaded[name]) for name in loaded.files}
    except ValueError as error:
        if str(error).startswith("Object arrays") or "Python objects in dtype" in str(error):
            raise DataError(f"{path} holds Python objects; save an array of float64") from error
        raise
    if len(arrays) == 1:
        return _from_array(next(iter(arrays.values())), str(path))
    return _from_mapping(arrays, str(path))


_MAPPED_BYTES = 2**26
TEXT_SUFFIXES: Final = (".csv", ".tsv", ".txt")
_BINARY_READERS: Final[dict[str, Callable[[Path], Read]]] = {
    ".parquet": _from_parquet,
    ".npy": _from_numpy,
    ".npz": _from_numpy,
}


# --- Objects --------------------------------------------------------------------------------------


def _from_object(source: Any, time_column: TimeColumn) -> Read:
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    if isinstance(source, RawColumns | SeriesTable):
        return source
    kind = type(source).__name__
    if type(source).__module__.partition(".")[0] == "xarray":
        return table_from_xarray(source, kind, time_column)
    if nw.dependencies.is_pandas_dataframe(source):
        return _from_pandas(source)
    if nw.dependencies.is_into_series(source) and not isinstance(source, np.ndarray):
        raise DataError(f"{kind} is one series; give a frame with a column for each series")
    if isinstance(source, Mapping):
        return _from_mapping(source, kind)
    try:
        frame = nw.from_native(source, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise DataError(f"{kind} is lazy; collect it first")
        if isinstance(frame, nw.DataFrame):
            return _from_narwhals(frame, kind)
    except NarwhalsError as error:
        raise DataError(f"{kind} cannot be read: {error}; rename or convert columns") from error
    return _from_array(source, "array" if isinstance(source, np.ndarray) else kind)


def _is_table(source: Any) -> bool:
    """Say whether something is a recording of its own rather than a row or a column."""
    if isinstance(source, str | os.PathLike | SeriesTable):
        return True
    return getattr(source, "ndim", len(getattr(source, "shape", ()))) == 2


def _from_mapping(columns: Mapping[Any, Any], source: str) -> RawColumns | dict[str, Any]:
    if columns and all(map(_is_table, columns.values())):
        return {str(name): part for name, part in columns.items()}
    cells = tuple(np.asarray(column) for column in columns.values())
    for name, column in zip(columns, cells, strict=True):
        if column.ndim != 1:
            raise DataError(
                f"{source}: {str(name)!r} has {column.ndim} axes; give one 2-D array, "
                "or 1-D arrays only, one per series"
            )
    return RawColumns(tuple(map(str, columns)), cells, source)


def _from_array(source: Any, where: str) -> RawColumns | dict[str, Any]:
    """Split an array of shape (slot, series), a record array, or a list of rows into columns.

    A list of tables and an array of three axes are recordings, named by their number from 1.
    """
    if isinstance(source, list | tuple) and source and all(map(_is_table, source)):
        numbers = [str(i + 1) for i in range(len(source))]
        named = all(isinstance(part, str | os.PathLike) for part in source)
        stems = [Path(part).stem for part in source] if named else numbers
        return dict(zip(stems if len(set(stems)) == len(stems) else numbers, source, strict=True))
    if isinstance(source, np.ma.MaskedArray):
        source = np.ma.filled(source.astype(np.float64), np.nan)
    try:
        array = source if isinstance(source, np.ndarray) else np.asarray(source, _list_type(source))
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{where} is no table of numbers ({error}); give a 2-D array with one row per slot, "
            "a frame, or a path"
        ) from error
    if array.dtype.names:
        return _from_mapping({name: array[name] for name in array.dtype.names}, where)
    if array.dtype.kind not in "fiubc":
        raise DataError(
            f"{where} holds {array.dtype} instead of numbers; convert it with .astype(float), "
            "or give a frame if one column is the time"
        )
    if array.ndim == 3:
        return {str(i + 1): part for i, part in enumerate(array)}
    if array.ndim != 2:
        raise DataError(
            f"{where} has {array.ndim} axes; give two: one row per time slot, one column per series"
        )
    return RawColumns(tuple(f"x{i}" for i in range(array.shape[1])), tuple(array.T), where)


def _list_type(source: Any) -> type[np.float64] | None:
    return np.float64 if isinstance(source, Sequence) else None


# --- Frames ---------------------------------------------------------------------------------------


def _from_pandas(frame: Any) -> RawColumns:
    import pandas as pd

    if isinstance(frame.index, pd.MultiIndex):
        raise DataError(
            "DataFrame has an index of several levels; select one realisation, or reset the index"
        )
    names = tuple(" ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns)
    cells = tuple(_pandas_cells(frame.iloc[:, i]) for i in range(frame.shape[1]))
    index = None
    if not isinstance(frame.index, pd.RangeIndex):
        label = "index" if frame.index.name is None else str(frame.index.name)
        index = (label, _pandas_cells(frame.index.to_series()))
    return RawColumns(names, cells, "DataFrame", index)


def _pandas_cells(column: Any) -> AnyArray:
    """Return one column as an array of NumPy's own types, times in UTC."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    elif isinstance(dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    elif pd.api.types.is_extension_array_dtype(dtype) and pd.api.types.is_numeric_dtype(dtype):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy())


def _from_narwhals(frame: Any, source: str) -> RawColumns:
    cells = tuple(_narwhals_cells(column) for column in frame.iter_columns())
    return RawColumns(tuple(map(str, frame.columns)), cells, source)


def _narwhals_cells(column: Any) -> AnyArray:
    import narwhals as nw

    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if dtype.is_temporal() and dtype != nw.Time:
        return np.asarray(column.to_numpy()).astype("M8[ns]" if dtype != nw.Duration else "m8[ns]")
    return np.array(column.to_list(), dtype=object)
