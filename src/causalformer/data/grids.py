"""Grids over time, from xarray or netCDF: every cell becomes a series."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from causalformer.data.series import AnyArray, SeriesTable
from causalformer.data.time_axis import AUTO, TIME_NAMES, Auto, TimeColumn, check_increasing
from causalformer.errors import DataError, DataWarning, MissingExtraError
from causalformer.names import listed


def read_netcdf(path: Path, time_column: TimeColumn = AUTO) -> SeriesTable:
    """Read a netCDF file; see `table_from_xarray`.

    Raises
    ------
    DataError
        The file is damaged or holds no series.
    MissingExtraError
        The packages of the extra ``netcdf`` are not installed.
    """
    with open_netcdf(path) as dataset:
        return table_from_xarray(dataset, str(path), time_column)


@contextmanager
def open_netcdf(path: Path) -> Iterator[Any]:
    """Open a netCDF file as an xarray.Dataset; values are read when they are needed.

    Raises
    ------
    DataError, MissingExtraError
        As `read_netcdf`.
    """
    try:
        import h5netcdf  # noqa: F401
        import h5py
        import xarray as xr
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: netCDF files need more packages: pip install causalformer[netcdf]"
        ) from error
    try:
        if path.is_file() and h5py.is_hdf5(path):
            with h5py.File(path) as file:  # where this fails, h5netcdf would print a trace
                file.visititems(lambda *_: None)
        dataset = xr.open_dataset(path, decode_timedelta=False)
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is no intact netCDF file ({reason}); write it anew") from error
    with dataset:
        yield dataset


def table_from_xarray(
    grid: Any, source: str = "Dataset", time_column: TimeColumn = AUTO
) -> SeriesTable:
    """Stack every variable that has the time dimension into columns.

    Parameters
    ----------
    grid : xarray.Dataset or xarray.DataArray
        Numbers over time and any other dimensions.
    source : str
        Where it comes from, for messages.
    time_column : str, AUTO or None
        The dimension that is the time; None if the table shall have none.

    Returns
    -------
    SeriesTable
        One series per cell, named by its coordinates; cells that are missing throughout are
        dropped with a warning.

    Examples
    --------
    >>> import xarray
    >>> table_from_xarray(xarray.DataArray(np.eye(3, 2), dims=("time", "place"))).names
    ('x0', 'x1')
    """
    dataset = grid
    if not hasattr(grid, "data_vars"):
        dataset = grid.to_dataset(name="x" if grid.name is None else grid.name)
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
            f"{source} has no dimension {time_column!r} to take as `time_column`; "
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
        "name it with `time_column`"
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
