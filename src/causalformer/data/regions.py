"""A part of the sea as series: cut out of a netCDF grid, made coarser, freed from its season.

Made for sea surface temperatures (ERSST, OISST), but nothing hangs on the variable. Every function
takes and gives an ``xarray.DataArray`` with the dimensions time, lat and lon; a cell without a
value is land. `sea_series` does it all.
"""

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.data.grids import open_netcdf
from causalformer.data.series import AnyArray, SeriesTable
from causalformer.data.time_axis import check_increasing
from causalformer.errors import DataError, SettingsError
from causalformer.names import listed

if TYPE_CHECKING:
    import xarray as xr

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

SEA_NAMES: Final = ("sst", "analysed_sst", "tos")
_AXES: Final = {
    "time": ("time", "t"),
    "lat": ("lat", "latitude", "nav_lat", "y"),
    "lon": ("lon", "longitude", "nav_lon", "x"),
}
_DAY: Final = np.timedelta64(1, "D")
_MONTH: Final = (27.5, 31.5)  # days between two dates of a monthly file
_HARMONICS: Final = 3
_LEAST_SHARE: Final = 0.5  # finer cells that must be sea, and slots in which a cell must be there


@dataclass(frozen=True)
class Box:
    """A part of the globe in degrees, its southern and western edge included.

    Parameters
    ----------
    south, north : float
        Latitudes from -90 to 90.
    west, east : float
        Longitudes, in any convention; the box goes eastwards from `west` to `east`.

    Examples
    --------
    >>> Box(20, 70, -80, 0).width, Box(20, 70, 280, 360).width, Box(20, 70, 170, -170).width
    (80, 80, 20)
    """

    south: float
    north: float
    west: float
    east: float

    def __post_init__(self) -> None:
        if not -90 <= self.south < self.north <= 90:
            raise SettingsError(
                f"box from {self.south:g} to {self.north:g} degrees north: south must lie below "
                "north, both between -90 and 90"
            )

    @property
    def width(self) -> float:
        """Degrees of longitude from west to east."""
        return (self.east - self.west) % 360 or 360

    @property
    def left(self) -> float:
        """The western edge, from -180 to 180."""
        return (self.west + 180) % 360 - 180

    def contains(self, lat: FloatArray, lon: FloatArray) -> BoolArray:
        """Say which points lie inside.

        Examples
        --------
        >>> Box(20, 70, -80, 0).contains(np.array([20.0, 30.0, 70.0]), np.array([280.0, 10.0, -5]))
        array([ True, False, False])
        """
        inside = (lat >= self.south) & (lat < self.north) & ((lon - self.west) % 360 < self.width)
        return np.asarray(inside)


NORTH_ATLANTIC: Final = Box(20, 70, -80, 0)
"""The region of the paper's case study."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Where the series of a region lie.

    Attributes
    ----------
    lat, lon : array ``[series]``
        Middle of each cell in degrees; west is negative, and a box across the date line goes on
        beyond 180.
    lat_edges, lon_edges : array ``[row + 1]``, ``[column + 1]``
        Borders of the grid's rows, from the south, and columns, from the west.
    land : array of bool ``[row, column]``
        Cells without a series.
    """

    lat: FloatArray
    lon: FloatArray
    lat_edges: FloatArray
    lon_edges: FloatArray
    land: BoolArray

    @property
    def distance_km(self) -> FloatArray:
        """Great-circle distances ``[series, series]``.

        Examples
        --------
        >>> edges = np.array([0.0, 1.0, 2.0])
        >>> cells = Cells(edges[1:], edges[1:], edges, edges, np.zeros((2, 2), bool))
        >>> cells.distance_km.round().tolist()
        [[0.0, 157.0], [157.0, 0.0]]
        """
        lat, lon = np.radians(self.lat), np.radians(self.lon)
        rise = np.sin((lat[:, None] - lat) / 2) ** 2
        turn = np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
        return np.asarray(2 * 6371.0 * np.arcsin(np.sqrt(np.clip(rise + turn, 0.0, 1.0))))


def sea_series(
    paths: str | Path | Sequence[str | Path],
    box: Box = NORTH_ATLANTIC,
    *,
    degrees: float = 4.0,
    slot_days: float | None = None,
    variable: str | None = None,
    trend: bool = False,
) -> tuple[SeriesTable, Cells]:
    """Read a region from netCDF: one series per sea cell, without its season.

    Parameters
    ----------
    paths : path or sequence of paths
        The file, or files that follow each other in time on the same grid.
    box : Box
        The region; by default the paper's part of the North Atlantic.
    degrees : float
        Width of the cells; those of the file are averaged.
    slot_days : float, optional
        Average over slots of so many days (the paper takes 38); by default the file's own step.
    variable : str, optional
        Name of the variable; by default a known name, or the only one over time, lat and lon.
    trend : bool
        Whether a straight line is taken out, too.

    Returns
    -------
    SeriesTable, Cells
        Names are positions such as ``"45N 31W"``. Cells that are missing in half of the slots are
        land; those that never change are left out as well.

    Raises
    ------
    DataError
        If a file is damaged, holds no such variable or does not reach into the box.
    MissingExtraError
        If the packages of the extra ``netcdf`` are not installed.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    if not paths:
        raise DataError("no netCDF file is given; name at least one")
    source = ", ".join(Path(path).name for path in paths)
    parts = []
    for path in paths:
        with open_netcdf(Path(path)) as dataset:
            cut = cut_box(sea_variable(dataset, variable, str(path)), box, str(path))
            parts.append(coarser(cut, box, degrees))
    field = _one_after_the_other(parts, source)
    if slot_days is not None:
        field = averaged_slots(field, slot_days, source)
    return _as_series(field, box, degrees, trend, source)


def typical_step(path: str | Path, variable: str | None = None) -> float:
    """Give the days from one value to the next in a netCDF file; infinite for one value."""
    with open_netcdf(Path(path)) as dataset:
        time = _dates(sea_variable(dataset, variable, str(path)), str(path))
    return _step(time)


def sea_variable(dataset: "xr.Dataset", name: str | None = None, source: str = "Dataset") -> Any:
    """Choose the variable and bring it to the dimensions time, lat, lon, without levels.

    Examples
    --------
    >>> import xarray
    >>> values = xarray.DataArray(np.zeros((2, 1, 3, 4)), dims=("time", "zlev", "lat", "lon"))
    >>> sea_variable(xarray.Dataset({"sst": values, "depth": 1.0})).dims
    ('time', 'lat', 'lon')
    """
    fields: dict[str, tuple[Any, dict[str, str]]] = {}
    for key, values in dataset.data_vars.items():
        axes = _axes_of(values)
        if axes is not None and values.dtype.kind in "fiu":
            fields[str(key)] = (values, axes)
    if not fields:
        raise DataError(f"{source} has no variable over time, latitude and longitude")
    if name is None:
        name = next((known for known in SEA_NAMES if known in fields), None)
    if name is None and len(fields) > 1:
        raise DataError(
            f"{source} has several variables on a grid, {listed(fields)}; name one as `variable`"
        )
    name = name or next(iter(fields))
    if name not in fields:
        raise DataError(f"{source} has no variable {name!r} on a grid; it has {listed(fields)}")
    values, axes = fields[name]
    levels = {dim: 0 for dim in values.dims if dim not in axes.values()}
    deep = [str(dim) for dim in levels if values.sizes[dim] > 1]
    if deep:
        raise DataError(f"{source}: {name!r} has more than one {listed(deep)}; select one")
    renamed = {dim: axis for axis, dim in axes.items() if dim != axis}
    return values.isel(levels, drop=True).rename(renamed).transpose("time", "lat", "lon")


def _axes_of(values: Any) -> dict[str, str] | None:
    """Find the dimension of each axis by its name; None if one is not there."""
    dims = {str(dim).lower(): str(dim) for dim in values.dims}
    found = {
        axis: next((dims[name] for name in names if name in dims), "")
        for axis, names in _AXES.items()
    }
    return found if all(found.values()) else None


def cut_box(field: Any, box: Box, source: str = "the grid") -> Any:
    """Cut a box out; latitudes rise and longitudes follow each other from its western edge.

    Longitudes may be 0 to 360 or -180 to 180, latitudes rising or falling, and the box may cross
    Greenwich or the date line.

    Examples
    --------
    >>> import xarray
    >>> field = xarray.DataArray(
    ...     np.zeros((1, 3, 4)),
    ...     {"time": [0], "lat": [50.0, 30.0, 10.0], "lon": [5.0, 95.0, 185.0, 355.0]},
    ... )
    >>> around = cut_box(field, Box(20, 60, -10, 10))
    >>> around.lat.values, around.lon.values
    (array([30., 50.]), array([-5.,  5.]))
    """
    for axis in ("lat", "lon"):
        if axis not in field.coords or field.coords[axis].dtype.kind not in "fiu":
            raise DataError(f"{source}: the grid has no numbers for {axis}, so it has no place")
    lat, lon = (field.coords[axis].values.astype(np.float64) for axis in ("lat", "lon"))
    rows = np.flatnonzero((lat >= box.south) & (lat < box.north))
    offset = (lon - box.west) % 360
    columns = np.flatnonzero(offset < box.width)
    if not len(rows) or not len(columns):
        raise DataError(
            f"{source} has no cell from {box.south:g} to {box.north:g} degrees north and "
            f"{box.west:g} to {box.east:g} east; choose another box"
        )
    rows, columns = rows[np.argsort(lat[rows])], columns[np.argsort(offset[columns])]
    cut = field.isel(lat=rows, lon=columns)
    return cut.assign_coords(lat=lat[rows], lon=box.left + offset[columns])


def coarser(field: Any, box: Box, degrees: float) -> Any:
    """Average blocks of cells; a block of which fewer than half have a value has none.

    Parameters
    ----------
    field : DataArray
        What `cut_box` gives.
    box : Box
        The blocks start at its southern and western edge.
    degrees : float
        Width of the blocks.

    Returns
    -------
    DataArray
        Each block lies where the middle of its cells is; blocks without a cell are left out.

    Examples
    --------
    >>> import xarray
    >>> values = np.array([[[1.0, 3.0, np.nan, 4.0], [np.nan, 2.0, np.nan, np.nan]]])
    >>> field = xarray.DataArray(values, {"time": [0], "lat": [1.0, 3], "lon": [1.0, 3, 5, 7]})
    >>> coarser(field, Box(0, 4, 0, 8), 4).values.tolist()
    [[[2.0, nan]]]
    """
    import xarray as xr

    if not degrees > 0:
        raise SettingsError(f"degrees is {degrees!r}; choose a width above 0")
    lat, lon = field.coords["lat"].values, field.coords["lon"].values
    row, column = _block(lat - box.south, degrees), _block(lon - box.left, degrees)
    n_rows, n_columns = row[-1] + 1, column[-1] + 1
    # one block after the other, row by row: rows are few, and whole files need not fit twice
    mean = np.full((field.sizes["time"], n_rows, n_columns), np.nan)
    for r in range(n_rows):
        band = np.asarray(field.isel(lat=np.flatnonzero(row == r)).values, dtype=np.float64)
        for c in range(n_columns):
            block = band[:, :, column == c].reshape(len(band), -1)
            there = np.isfinite(block)
            n_there = there.sum(axis=1)
            total = np.where(there, block, 0.0).sum(axis=1)
            enough = n_there >= max(1.0, _LEAST_SHARE * block.shape[1])
            mean[enough, r, c] = total[enough] / n_there[enough]
    coordinates = {
        "time": field.coords["time"].values,
        "lat": np.array([lat[row == r].mean() for r in range(n_rows)]),
        "lon": np.array([lon[column == c].mean() for c in range(n_columns)]),
    }
    return xr.DataArray(mean, coordinates)


def _block(offset: FloatArray, degrees: float) -> NDArray[np.int64]:
    """Give each cell the number of its block, from 0; a cell's middle says where it belongs."""
    number = np.floor(offset / degrees + 1e-9)
    return np.asarray(np.unique(number, return_inverse=True)[1], dtype=np.int64)


def averaged_slots(field: Any, days: float, source: str = "the grid") -> Any:
    """Average over slots of so many days, dated in their middle; an unfinished last one is dropped.

    Examples
    --------
    >>> import xarray
    >>> time = np.arange("2020-01-01", "2020-01-11", dtype="M8[D]").astype("M8[ns]")
    >>> field = xarray.DataArray(np.arange(10.0)[:, None, None], {"time": time}, ("time", "a", "b"))
    >>> averaged_slots(field, 4).values.ravel()
    array([1.5, 5.5])
    """
    import xarray as xr

    time = _dates(field, source)
    step = _step(time)
    if not days >= 2 * step:
        raise DataError(
            f"{source} has a value every {step:g} days, so slots of {days:g} days cannot be "
            "averaged; take at least twice as many days, or the file's own step"
        )
    number = np.floor((time - time[0]) / _DAY / days + 1e-9).astype(np.int64)
    unfinished = (time[-1] - time[0]) / _DAY + step < (number[-1] + 1) * days - step / 2
    n_slots = int(number[-1] + 1 - unfinished)
    if n_slots < 2:
        raise DataError(f"{source} covers fewer than two slots of {days:g} days")
    values = np.asarray(field.values, dtype=np.float64)
    mean = np.full((n_slots, *values.shape[1:]), np.nan)
    for slot in range(n_slots):
        mine = values[number == slot]
        there = np.isfinite(mine)
        n_there = there.sum(axis=0)
        total = np.where(there, mine, 0.0).sum(axis=0)
        enough = n_there >= max(1.0, _LEAST_SHARE * len(mine))
        mean[slot] = np.where(enough, total / np.maximum(n_there, 1), np.nan)
    middle = ((np.arange(n_slots) + 0.5) * days * 86_400).astype("m8[s]")
    return xr.DataArray(
        mean,
        {"time": time[0].astype("M8[s]") + middle, **_coordinates(field, field.dims[1:])},
        field.dims,
    )


def _step(time: AnyArray) -> float:
    return float(np.median(np.diff(time) / _DAY)) if len(time) > 1 else np.inf


def _coordinates(field: Any, dims: Sequence[str]) -> dict[str, AnyArray]:
    return {dim: field.coords[dim].values for dim in dims if dim in field.coords}


def without_season(values: FloatArray, time: AnyArray, *, trend: bool = False) -> FloatArray:
    """Subtract what the calendar explains of ``values[slot, series]``, by least squares.

    That is the mean of each calendar month where slots are months, else a year's wave with its
    first two overtones.

    Parameters
    ----------
    values : array of float ``[slot, series]``
        NaN is a missing value and stays one.
    time : array of dates ``[slot]``
        When each slot was.
    trend : bool
        Whether a straight line is fitted and subtracted with it.

    Examples
    --------
    >>> time = np.arange("2001-01", "2004-01", dtype="M8[M]")
    >>> season = np.tile(np.arange(12.0), 3)[:, None]
    >>> bool(np.abs(without_season(season, time)).max() < 1e-12)
    True
    """
    days = time.astype("M8[s]")
    step = np.diff(days) / _DAY
    if len(step) and ((step > _MONTH[0]) & (step < _MONTH[1])).all():
        month = time.astype("M8[M]").astype(np.int64) % 12
        columns = [month == m for m in np.unique(month)]
    else:
        year = (days - time.astype("M8[Y]").astype("M8[s]")) / _DAY / 365.2425
        waves = [
            wave(2 * np.pi * k * year)
            for k, wave in itertools.product(range(1, _HARMONICS + 1), (np.cos, np.sin))
        ]
        columns = [np.ones(len(time)), *waves]
    if trend:
        line = (days - days[0]) / _DAY
        columns.append(line / max(float(line[-1]), 1.0) - 0.5)
    design = np.column_stack(columns).astype(np.float64)
    left = np.full(values.shape, np.nan)
    for i, column in enumerate(values.T):
        there = np.isfinite(column)
        fitted = np.linalg.lstsq(design[there], column[there], rcond=None)[0]
        left[there, i] = column[there] - design[there] @ fitted
    return left


def _one_after_the_other(parts: list[Any], source: str) -> Any:
    """Join files along the time, which must increase; a single one passes, too."""
    import xarray as xr

    first = parts[0]
    for part in parts[1:]:
        if part.shape[1:] != first.shape[1:] or any(
            not np.allclose(part.coords[axis], first.coords[axis]) for axis in ("lat", "lon")
        ):
            raise DataError(f"{source} are on different grids; give files of one data set")
    dates = [_dates(part, source) for part in parts]
    order = sorted(range(len(parts)), key=lambda k: dates[k][0])
    time = np.concatenate([dates[k] for k in order])
    check_increasing(time, "time", source)
    values = np.concatenate([parts[k].values for k in order])
    return xr.DataArray(values, {"time": time, **_coordinates(first, ("lat", "lon"))})


def _dates(field: Any, source: str) -> AnyArray:
    """Give the time as dates; those of another calendar are read by their names."""
    if not field.sizes["time"]:
        raise DataError(f"{source} has no time slots")
    time: AnyArray = field.coords["time"].values if "time" in field.coords else np.zeros(0)
    if time.dtype.kind == "O":
        with suppress(AttributeError, ValueError):
            time = np.array([moment.isoformat() for moment in time.tolist()], dtype="M8[s]")
    if time.dtype.kind != "M" or np.isnat(time).any():
        raise DataError(f"{source}: the time axis holds no dates, so no season can be taken out")
    return np.asarray(time.astype("M8[s]"))


def _as_series(
    field: Any, box: Box, degrees: float, trend: bool, source: str
) -> tuple[SeriesTable, Cells]:
    """Turn each sea cell into a series without season."""
    values = np.asarray(field.values)
    sea = np.isfinite(values).mean(axis=0) > _LEAST_SHARE
    if not sea.any():
        raise DataError(f"{source} has no value in the box: land, or another region")
    series = without_season(values[:, sea], field.coords["time"].values, trend=trend)
    varies = np.nanstd(series, axis=0) > 1e-6
    sea[sea] = varies
    if sea.sum() < 2:
        raise DataError(f"{source} has {sea.sum()} cells that change in the box; 2 are needed")
    lat, lon = (
        grid[sea] for grid in np.meshgrid(field.lat.values, field.lon.values, indexing="ij")
    )
    names = tuple(_name(*place) for place in zip(lat, lon, strict=True))
    table = SeriesTable(series[:, varies], names, field.coords["time"].values, source)
    cells = Cells(
        lat,
        lon,
        _edges(field.lat.values, box.south, box.north, degrees),
        _edges(field.lon.values, box.left, box.left + box.width, degrees),
        ~sea,
    )
    return table, cells


def _edges(middles: FloatArray, low: float, high: float, degrees: float) -> FloatArray:
    """Borders of the rows or columns of a grid, within the box."""
    start = low + degrees * np.floor((middles - low) / degrees + 1e-9)
    return np.asarray(np.append(start, min(start[-1] + degrees, high)))


def _name(lat: float, lon: float) -> str:
    """Name a place.

    Examples
    --------
    >>> _name(45.0, -30.5), _name(-2.0, 190.0)
    ('45N 30.5W', '2S 170W')
    """
    east = (lon + 180) % 360 - 180
    return f"{abs(lat):g}{'N' if lat >= 0 else 'S'} {abs(east):g}{'E' if east >= 0 else 'W'}"
