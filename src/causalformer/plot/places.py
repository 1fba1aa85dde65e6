"""Where series lie on the globe: told by their names, as on a grid, or by a file."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from causalformer.errors import DataError, FileFormatError
from causalformer.files import read_text
from causalformer.names import listed

Places = dict[str, tuple[float, float]]

_COMPASS = re.compile(r"(\d+(?:\.\d+)?)°?([NS])[ _,]*(\d+(?:\.\d+)?)°?([EW])")
_GRID = re.compile(r"lat(?:itude)?=(-?\d+(?:\.\d+)?)\b.*?\blon(?:gitude)?=(-?\d+(?:\.\d+)?)\b")


def places_in_names(names: Sequence[str]) -> Places:
    """Read latitude and longitude out of names such as ``"44N 26W"`` and ``"sst[lat=2 lon=180]"``.

    Raises
    ------
    DataError
        If a name holds no place.

    Examples
    --------
    >>> places_in_names(["44N 26.5W", "sst[lat=-2 lon=180]"])
    {'44N 26.5W': (44.0, -26.5), 'sst[lat=-2 lon=180]': (-2.0, 180.0)}
    """
    found = {name: _place(name) for name in names}
    lost = [name for name, place in found.items() if place is None]
    if lost:
        raise DataError(
            f"the names of {listed(map(repr, lost), 3)} tell no place such as '44N 26W'; give "
            "`places`: latitude and longitude of every series"
        )
    return {name: place for name, place in found.items() if place is not None}


def read_places(path: str | Path) -> Places:
    r"""Read a CSV file of lines ``name,latitude,longitude``, in degrees; a header may be there.

    Raises
    ------
    FileFormatError
        Naming the line that is none.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "places.csv"
    >>> _ = path.write_text("name,lat,lon\nrain,47.5,8.0\n")
    >>> read_places(path)
    {'rain': (47.5, 8.0)}
    """
    places: Places = {}
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            try:
                name, latitude, longitude = cells
                places[name] = float(latitude), float(longitude)
            except ValueError:
                if reader.line_num > 1:
                    raise FileFormatError(
                        f"{path}, line {reader.line_num}: expected name,latitude,longitude, for "
                        "example rain,47.5,8.0"
                    ) from None
    except csv.Error as error:
        raise FileFormatError(f"{path}: broken CSV ({error})") from error
    return places


def _place(name: str) -> tuple[float, float] | None:
    if match := _COMPASS.search(name):
        latitude, south, longitude, west = match.groups()
        return (
            float(latitude) * (-1 if south == "S" else 1),
            float(longitude) * (-1 if west == "W" else 1),
        )
    if match := _GRID.search(name):
        return float(match[1]), float(match[2])
    return None
