"""One reader for every form in which series come: files, frames and arrays."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from causalformer.data.csv_files import read_text_columns
from causalformer.data.series import (
    AUTO,
    TIME_NAMES,
    AnyArray,
    Auto,
    RawColumns,
    SeriesTable,
    TimeColumn,
    check_increasing,
    listed,
    table_from_columns,
)
from causalformer.errors import DataError, DataWarning, MissingExtraError


def read_series(
    source: object,
    *,
    time_column: TimeColumn = AUTO,
    header: bool | None = None,
    names: Sequence[str] | None = None,
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
    """
    if isinstance(source, SeriesTable):
        return source if names is None else replace(source, names=tuple(names))
    if isinstance(source, str | os.PathLike):
        raw = _from_file(Path(source).expanduser(), time_column, header)
    else:
        raw = _from_object(source, time_column)
    if isinstance(raw, SeriesTable):
        return raw if names is None else replace(raw, names=tuple(names))
    return table_from_columns(raw, time_column=time_column, names=names)


# --- Files ----------------------------------------------------------------------------------------


def _from_file(
    path: Path, time_column: TimeColumn, header: bool | None
) -> RawColumns | SeriesTable:
    suffix = path.suffix.lower()
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder; name one file in it")
        if not path.exists():
            raise DataError(f"{path} does not exist; check the path (now in {Path.cwd()})")
        if suffix in TEXT_SUFFIXES:
            return read_text_columns(path, header=header)
        if suffix == ".nc":
            return _from_netcdf(path, time_column)
        if suffix in _BINARY_READERS:
            return _BINARY_READERS[suffix](path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path} cannot be read: {reason}; check the file") from error
    supported = ", ".join([*TEXT_SUFFIXES, *_BINARY_READERS, ".nc"])
    raise DataError(f"{path}: unknown kind of file {suffix!r}; supported are {supported}")


def _from_parquet(path: Path) -> RawColumns:
    import pandas as pd
    import pyarrow as pa

    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except pa.ArrowException as error:
        raise DataError(f"{path} is no intact parquet file ({error}); write it anew") from error
    return replace(_from_pandas(frame), source=str(path))


def _from_numpy(path: Path) -> RawColumns:
    """Read an array, or an archive of one array or of one-dimensional columns."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _from_array(loaded, str(path))
        with loaded:
            arrays = {str(name): np.asarray(loaded[name]) for name in loaded.files}
    except DataError:
        raise
    except (ValueError, EOFError, BadZipFile) as error:
        if str(error).startswith("Object arrays"):
            raise DataError(f"{path} holds Python objects; save an array of float64") from error
        raise DataError(f"{path} is no intact NumPy file; save it anew with numpy") from error
    if len(arrays) == 1:
        return _from_array(next(iter(arrays.values())), str(path))
    return _from_mapping(arrays, str(path))


def _from_netcdf(path: Path, time_column: TimeColumn) -> SeriesTable:
    try:
        import h5netcdf  # noqa: F401
        import xarray as xr
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: netCDF files need more packages: pip install causalformer[netcdf]"
        ) from error
    try:
        dataset = xr.open_dataset(path, decode_timedelta=False)
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is no intact netCDF file ({reason}); write it anew") from error
    with dataset:
        return _from_xarray(dataset, str(path), time_column)


TEXT_SUFFIXES: Final = (".csv", ".tsv", ".txt")
_BINARY_READERS: Final[dict[str, Callable[[Path], RawColumns]]] = {
    ".parquet": _from_parquet,
    ".npy": _from_numpy,
    ".npz": _from_numpy,
}


# --- Objects --------------------------------------------------------------------------------------


def _from_object(source: Any, time_column: TimeColumn) -> RawColumns | SeriesTable:
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    kind = type(source).__name__
    if type(source).__module__.partition(".")[0] == "xarray":
        dataset = source if hasattr(source, "data_vars") else _as_dataset(source)
        return _from_xarray(dataset, kind, time_column)
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


def _from_mapping(columns: Mapping[Any, Any], source: str) -> RawColumns:
    cells = tuple(np.asarray(column) for column in columns.values())
    for name, column in zip(columns, cells, strict=True):
        if column.ndim != 1:
            raise DataError(
                f"{source}: {str(name)!r} has {column.ndim} axes; give one 2-D array, "
                "or 1-D arrays only, one per series"
            )
    return RawColumns(tuple(map(str, columns)), cells, source)


def _from_array(source: Any, where: str) -> RawColumns:
    """Split an array of shape (slot, series), a record array, or a list of rows into columns."""
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


# --- xarray ---------------------------------------------------------------------------------------


def _as_dataset(array: Any) -> Any:
    return array.to_dataset(name=array.name if array.name is not None else "x")


def _from_xarray(dataset: Any, source: str, time_column: TimeColumn) -> SeriesTable:
    """Stack every variable that has the time dimension into columns."""
    variables = {
        str(name): variable
        for name, variable in dataset.data_vars.items()
        if variable.dtype.kind in "fiub"
    }
    time_dim = _time_dimension(dataset, variables, source, time_column)
    variables = {name: v for name, v in variables.items() if time_dim in v.dims}
    names: list[str] = []
    blocks: list[AnyArray] = []
    n_dropped = 0
    for name, variable in variables.items():
        stacked = variable.squeeze(
            [d for d in variable.dims if d != time_dim and variable.sizes[d] == 1]
        )
        stacked = stacked.transpose(time_dim, ...)
        values = np.asarray(stacked.values, dtype=np.float64).reshape(stacked.sizes[time_dim], -1)
        kept = np.atleast_1d(~np.isnan(values).all(axis=0)) | (stacked.ndim == 1)
        n_dropped += int((~kept).sum())
        labels = _cell_names(stacked, name, time_dim, alone=len(variables) == 1)
        names += [label for label, keep in zip(labels, kept, strict=True) if keep]
        blocks.append(values[:, kept])
    if n_dropped:
        note = f"{n_dropped} of {n_dropped + len(names)} cells are missing throughout and dropped"
        warnings.warn(f"{source}: {note}", DataWarning, stacklevel=2)
        source = f"{source} ({note})"
    time = None if time_column is None else _xarray_time(dataset, time_dim, source)
    return SeriesTable(np.concatenate(blocks, axis=1), tuple(names), time, source)


def _time_dimension(
    dataset: Any, variables: Mapping[str, Any], source: str, time_column: TimeColumn
) -> str:
    dims = [str(dim) for variable in variables.values() for dim in variable.dims]
    dims = list(dict.fromkeys(dims))
    if not dims:
        raise DataError(f"{source} has no variable that holds numbers over time")
    if isinstance(time_column, str) and time_column in dims:
        return time_column
    if time_column is not None and not isinstance(time_column, Auto):
        raise DataError(
            f"{source} has no dimension {time_column!r} to take as time_column; "
            f"its dimensions are {listed(dims, most=20)}"
        )
    for dim in dims:
        dated = dim in dataset.coords and dataset.coords[dim].dtype.kind in "Mm"
        if dated or dim.lower() in TIME_NAMES:
            return dim
    if len(dims) == 1 or dims[0] == "dim_0":
        return dims[0]
    raise DataError(
        f"{source} has no dimension that looks like time among {listed(dims, most=20)}; "
        "name it with time_column"
    )


def _cell_names(variable: Any, name: str, time_dim: str, *, alone: bool) -> list[str]:
    """Name each stacked cell by its coordinates; the coordinates alone where that is enough."""
    dims = [dim for dim in variable.dims if dim != time_dim]
    if not dims:
        return [name]
    if len(dims) == 1 and alone:
        if dims[0] not in variable.coords:
            return [f"x{i}" for i in range(variable.sizes[dims[0]])]
        return [_label(value) for value in variable.coords[dims[0]].values]
    labels = [
        [
            f"{dim}={_label(value)}"
            for value in (
                variable.coords[dim].values
                if dim in variable.coords
                else range(variable.sizes[dim])
            )
        ]
        for dim in dims
    ]
    return [f"{name}[{' '.join(cell)}]" for cell in product(*labels)]


def _label(value: Any) -> str:
    if isinstance(value, np.floating):
        return np.format_float_positional(value, trim="-")
    return str(value)


def _xarray_time(dataset: Any, time_dim: str, source: str) -> AnyArray | None:
    if time_dim not in dataset.coords:
        return None
    time = np.asarray(dataset.coords[time_dim].values)
    if time.dtype.kind == "O":  # dates of another calendar
        try:
            time = np.array([moment.isoformat() for moment in time], dtype="M8[s]")
        except (AttributeError, ValueError):
            return None
    check_increasing(time, time_dim, source)
    return time
