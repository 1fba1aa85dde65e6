"""A graph on a map: arrows between places, northward and southward ones in two colours."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import DataError
from causalformer.graph import CausalGraph, Edge
from causalformer.names import listed
from causalformer.plot.style import (
    BLUE,
    CONFOUNDED,
    DASH_DOT,
    INK,
    SOLID,
    VERMILLION,
    axes_for,
    new_figure,
    picture_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

NORTHWARD, SOUTHWARD, ALONG = VERMILLION, BLUE, "#8C8C8C"
_SEA, _LAND, _COAST, _PLACE = "#EAF2F7", "#D9D3C7", "#A79F90", "#9DB4C2"
_BEND: Final = 0.18  # of an arrow, as a share of its length
_WIDTH: Final = (0.7, 2.2)  # points
_INCHES: Final = 10.0
_UNKNOWN: Final = "direction unknown"


@dataclass(frozen=True, eq=False)
class Ground:
    """What lies below the arrows: a grid of sea and land.

    Attributes
    ----------
    lat_edges, lon_edges : array ``[row + 1]``, ``[column + 1]``
        Borders of the rows, from the south, and columns, from the west, in degrees.
    land : array of bool ``[row, column]``
        Which cells are land.
    """

    lat_edges: FloatArray
    lon_edges: FloatArray
    land: NDArray[np.bool_]


def direction_of(cause_lat: float, effect_lat: float) -> str:
    """Say where an edge leads, as the paper does: by the latitudes of its two ends.

    Examples
    --------
    >>> direction_of(40.0, 44.0), direction_of(44.0, 40.0), direction_of(44.0, 44.0)
    ('S→N', 'N→S', 'E–W')
    """
    if abs(effect_lat - cause_lat) < 1e-6:
        return "E–W"
    return "S→N" if effect_lat > cause_lat else "N→S"


def draw_map(
    graph: CausalGraph,
    places: Mapping[str, tuple[float, float]],
    ground: Ground | None = None,
    ax: "Axes | None" = None,
    *,
    most: int = 300,
    title: str = "",
) -> "Axes":
    """Draw the edges between different places as arrows from cause to effect.

    Wider arrows have higher scores. Edges from south to north are red, from north to south blue,
    along a parallel thin and grey, and so are links without direction, which have no head. Edges
    that may be confounded are dash-dotted. Each pair is drawn once, self-loops are not; the legend
    counts all pairs.

    Parameters
    ----------
    graph : CausalGraph
        The edges.
    places : mapping
        Latitude and longitude in degrees of every series.
    ground : Ground, optional
        Sea and land.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know (``ax.figure``).
    most : int
        How many pairs to draw, strongest first; the title says so if there are more.
    title : str
        What the map shows.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If a series has no place.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> graph = CausalGraph(("south", "north"), (Edge("south", "north", 1, 0.9),))
    >>> ax = draw_map(graph, {"south": (40.0, -30.0), "north": (44.0, -26.0)})
    >>> [text.get_text() for text in ax.get_legend().texts]
    ['S→N: 1', 'N→S: 0', 'E–W: 0']
    """
    lost = [name for name in graph.names if name not in places]
    if lost:
        raise DataError(f"no place is given for {listed(map(repr, lost))}")
    pairs = _pairs(graph)
    limits = _limits(places, ground)
    axes = _new_figure(limits).axes[0] if ax is None else axes_for(ax, (1, 1))
    _draw_ground(axes, ground, limits)
    lat, lon = np.array([places[name] for name in graph.names]).reshape(-1, 2).T
    axes.plot(lon, lat, ".", color=_PLACE, markersize=2.5, zorder=2)
    drawn = pairs[: max(most, 0)]
    for rank, (edge, width) in enumerate(zip(drawn, _widths(drawn), strict=True)):
        _draw_arrow(axes, edge, places, width, rank / max(len(drawn), 1))
    _draw_legend(axes, pairs, places)
    notes = [title] if title else []
    if len(drawn) < len(pairs):
        notes.append(f"the strongest {len(drawn)} of {len(pairs)} links")
    if not pairs:
        notes.append("no link between places")
    axes.set_title(", ".join(notes), fontsize=11, loc="left")
    return axes


def map_picture(
    graph: CausalGraph,
    places: Mapping[str, tuple[float, float]],
    ground: Ground | None = None,
    *,
    most: int = 300,
    title: str = "",
    file_format: str = "png",
) -> bytes:
    """Return the map of :func:`draw_map` as the content of a PNG, SVG or PDF file.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph
    >>> map_picture(CausalGraph(("a", "b")), {"a": (0.0, 0.0), "b": (4.0, 4.0)})[1:4]
    b'PNG'
    """
    figure = _new_figure(_limits(places, ground), for_file=True)
    draw_map(graph, places, ground, figure.axes[0], most=most, title=title)
    return picture_of(figure, file_format)


def _pairs(graph: CausalGraph) -> list[Edge]:
    """Give the strongest edge of every pair of different series, strongest first."""
    strongest: dict[tuple[str, str], Edge] = {}
    for edge in graph:
        if edge.cause != edge.effect:
            strongest.setdefault((edge.cause, edge.effect), edge)
    return list(strongest.values())


def _direction(edge: Edge, places: Mapping[str, tuple[float, float]]) -> str:
    if not edge.oriented:
        return _UNKNOWN
    return direction_of(places[edge.cause][0], places[edge.effect][0])


def _limits(places: Mapping[str, tuple[float, float]], ground: Ground | None) -> FloatArray:
    """West, east, south and north of the map."""
    if ground is not None:
        lat, lon, room = ground.lat_edges, ground.lon_edges, 0.0
    else:
        lat, lon = np.array(list(places.values()), dtype=np.float64).reshape(-1, 2).T
        room = 2.0
    return np.array([lon.min() - room, lon.max() + room, lat.min() - room, lat.max() + room])


def _stretch(limits: FloatArray) -> float:
    """Length of a degree of latitude in degrees of longitude, in the middle of the map."""
    middle = np.clip(limits[2:].mean(), -80.0, 80.0)
    return float(1 / np.cos(np.radians(middle)))


def _new_figure(limits: FloatArray, *, for_file: bool = False) -> "Figure":
    """Return a figure as high as the map needs."""
    share = _stretch(limits) * float(limits[3] - limits[2]) / float(limits[1] - limits[0])
    height = _INCHES * min(max(share, 0.3), 2.0)
    figure = new_figure((_INCHES, height), for_file=for_file)
    figure.add_subplot()
    return figure


def _draw_ground(axes: "Axes", ground: Ground | None, limits: FloatArray) -> None:
    axes.set_facecolor(_SEA)
    axes.set_xlim(limits[0], limits[1])
    axes.set_ylim(limits[2], limits[3])
    axes.set_aspect(_stretch(limits))
    axes.xaxis.set_major_formatter(lambda x, _: _degrees((x + 180) % 360 - 180, "E", "W"))
    axes.yaxis.set_major_formatter(lambda y, _: _degrees(y, "N", "S"))
    axes.tick_params(labelsize=9)
    if ground is None:
        return
    from matplotlib.colors import ListedColormap

    axes.pcolormesh(
        ground.lon_edges,
        ground.lat_edges,
        np.where(ground.land, 1.0, np.nan),
        cmap=ListedColormap([_LAND]),
        zorder=1,
    )
    _draw_coast(axes, ground)


def _draw_coast(axes: "Axes", ground: Ground) -> None:
    """Draw a line wherever sea and land cells touch."""
    land, lat, lon = ground.land, ground.lat_edges, ground.lon_edges
    for r, c in np.argwhere(land[1:] != land[:-1]):
        axes.plot([lon[c], lon[c + 1]], [lat[r + 1]] * 2, color=_COAST, linewidth=0.8, zorder=1.5)
    for r, c in np.argwhere(land[:, 1:] != land[:, :-1]):
        axes.plot([lon[c + 1]] * 2, [lat[r], lat[r + 1]], color=_COAST, linewidth=0.8, zorder=1.5)


def _degrees(value: float, positive: str, negative: str) -> str:
    side = "" if value == 0 else positive if value > 0 else negative
    return f"{abs(value):g}°{side}"


def _widths(edges: list[Edge]) -> FloatArray:
    """Line widths in points by the rank of the score: scores may spread over any scale."""
    low, high = _WIDTH
    return np.linspace(high, low, len(edges)) if len(edges) > 1 else np.full(len(edges), high)


def _draw_arrow(
    axes: "Axes",
    edge: Edge,
    places: Mapping[str, tuple[float, float]],
    width: float,
    rank: float,
) -> None:
    from matplotlib.patches import FancyArrowPatch

    direction = _direction(edge, places)
    colour = {"S→N": NORTHWARD, "N→S": SOUTHWARD}.get(direction, ALONG)
    if colour == ALONG:
        width = 0.5 * width
    (start_lat, start_lon), (end_lat, end_lon) = places[edge.cause], places[edge.effect]
    axes.add_patch(
        FancyArrowPatch(
            (start_lon, start_lat),
            (end_lon, end_lat),
            connectionstyle=f"arc3,rad={_BEND}",
            arrowstyle="-|>,head_length=0.42,head_width=0.2" if edge.oriented else "-",
            mutation_scale=6 + 3 * width,
            linewidth=width,
            linestyle=DASH_DOT if edge.may_be_confounded else SOLID,
            color=colour,
            alpha=0.85,
            shrinkA=1.5,
            shrinkB=1.5,
            # grey below, then the weaker below the stronger
            zorder=(3 if colour == ALONG else 4) + 0.9 * (1 - rank),
        )
    )


def _draw_legend(
    axes: "Axes", pairs: list[Edge], places: Mapping[str, tuple[float, float]]
) -> None:
    from matplotlib.lines import Line2D

    count = Counter(_direction(edge, places) for edge in pairs)
    entries = {"S→N": (NORTHWARD, 2.0), "N→S": (SOUTHWARD, 2.0), "E–W": (ALONG, 1.0)}
    if count[_UNKNOWN]:
        entries[_UNKNOWN] = (ALONG, 1.0)
    lines = [
        Line2D([], [], color=colour, linewidth=width, label=f"{name}: {count[name]}")
        for name, (colour, width) in entries.items()
    ]
    n_confounded = sum(bool(edge.may_be_confounded) for edge in pairs)
    if n_confounded:
        label = f"{CONFOUNDED}: {n_confounded}"
        lines.append(Line2D([], [], color=INK, linestyle=DASH_DOT, label=label))
    legend = axes.legend(handles=lines, loc="lower right", fontsize=10, framealpha=0.92)
    legend.set_zorder(6)
