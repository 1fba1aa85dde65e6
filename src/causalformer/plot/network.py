"""The summary graph as a picture: series on a circle, one curved arrow per pair, lags as labels.

Lengths are in units of the circle's radius, sizes of text and lines in points; ``_Canvas`` knows
how many points a unit takes.
"""

import io
import math
import textwrap
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import DataError
from causalformer.graph import CausalGraph, Edge
from causalformer.names import printable_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, VERMILLION, BLACK, GREY = "#0072B2", "#D55E00", "#000000", "#999999"
DASHED = (0, (3.5, 2))

_SHORT_NAME = 4  # names up to this length fit into a node
_LINE, _LINES = 14, 3  # longer ones stand beside it, wrapped
_CROWD = 150  # arrows
_LOOP = 2.6  # how far a self-loop reaches, in node radii

Points = NDArray[np.float64]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Arrow:
    """One pair of the summary graph, ready to be drawn along a Bézier ``curve``."""

    pair: Pair
    label: str
    colour: str
    dashed: bool
    head: bool
    width: float
    curve: Points  # 3 control points, or 4 for a self-loop

    def at(self, t: NDArray[np.float64]) -> Points:
        """Points of the curve at parameters ``t`` in [0, 1]."""
        degree = len(self.curve) - 1
        powers = [math.comb(degree, k) * t**k * (1 - t) ** (degree - k) for k in range(degree + 1)]
        return np.stack(powers, axis=1) @ self.curve


@dataclass(frozen=True, slots=True)
class _Canvas:
    """Where the nodes are and how large things may be."""

    centres: dict[str, Points]
    captions: dict[str, str]
    inside: bool  # captions stand in the nodes
    caption_size: float  # in points
    radius: float  # of a node
    unit: float  # points per unit of length
    limits: Points  # [[left, bottom], [right, top]]

    @property
    def label_size(self) -> float:
        """Font size of the lags, in points."""
        return min(9.0, max(4.5, 0.55 * self.radius * self.unit))

    @property
    def weight(self) -> float:
        """Factor for lines and arrow heads: less than one on small axes."""
        return min(1.0, max(0.35, self.unit / 120))


def draw_graph(
    graph: CausalGraph, ax: "Axes | None" = None, *, truth: CausalGraph | None = None
) -> "Axes":
    """Draw the summary graph: one arrow per pair of series, labelled with its lags.

    The series stand on a circle, the first on top, clockwise. Wider arrows have higher scores,
    dashed ones are instantaneous; those without a head have no certain direction.

    Parameters
    ----------
    graph : CausalGraph
        What to draw; readable up to about 15 series.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know (``ax.figure``).
    truth : CausalGraph, optional
        The true graph over the same names. If given, arrows are black where the pair is true and
        red where it is false; missed pairs are dashed grey arrows.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If `truth` is over other series.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> graph = CausalGraph(("rain", "river"), (Edge("rain", "river", 2, 0.9),))
    >>> [text.get_text() for text in draw_graph(graph).texts]
    ['rain', 'river', '2']
    """
    if truth is not None and set(truth.names) != set(graph.names):
        odd = sorted(set(truth.names) ^ set(graph.names))
        raise DataError(f"graph and truth are over different series: {', '.join(map(repr, odd))}")
    axes = _new_figure().axes[0] if ax is None else ax
    edges = graph.edges if truth is None else (*graph.edges, *truth.edges)
    looped = any(edge.kind == "self" for edge in edges)
    canvas = _canvas(graph.names, axes, looped)
    arrows = _arrows(graph, truth, canvas)
    axes.set_aspect("equal")
    axes.set_xlim(*canvas.limits[:, 0])
    axes.set_ylim(*canvas.limits[:, 1])
    axes.set_axis_off()
    for arrow in reversed(arrows):  # the strongest on top
        _draw_arrow(axes, arrow, canvas.weight)
    _draw_nodes(axes, canvas, {arrow.pair[0] for arrow in arrows if len(arrow.curve) == 4})
    _draw_labels(axes, arrows, canvas)
    _draw_legend(axes, arrows, truth is not None, 8 * canvas.weight)
    return axes


def picture(graph: CausalGraph, file_format: str, *, truth: CausalGraph | None = None) -> bytes:
    """Return the drawing of :func:`draw_graph` as the content of a PNG, SVG or PDF file.

    Parameters
    ----------
    graph, truth : CausalGraph
        See :func:`draw_graph`.
    file_format : str
        ``"png"``, ``"svg"`` or ``"pdf"``.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph
    >>> picture(CausalGraph(("a", "b")), "png")[1:4]
    b'PNG'
    """
    figure = _new_figure()
    draw_graph(graph, figure.axes[0], truth=truth)
    stream = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with warnings.catch_warnings():
        # A name may use a script or an emoji that the font lacks: boxes are drawn, which shows.
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from")
        figure.savefig(stream, format=file_format, dpi=150, metadata=dates.get(file_format))
    return stream.getvalue()


def _new_figure() -> "Figure":
    """Return a figure that pyplot does not know, filled by one pair of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.4), facecolor="white")
    figure.add_axes((0.0, 0.0, 1.0, 1.0))
    return figure


# -------------------------------------------------------------------- layout


def _canvas(names: tuple[str, ...], axes: "Axes", looped: bool) -> _Canvas:
    """Fit the circle, its self-loops and its captions into the box of the axes."""
    n = len(names)
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / max(n, 1)
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (n > 1)
    radius = min(0.15, 0.27 * 2 * math.sin(math.pi / max(n, 2)))
    box = axes.get_window_extent()
    size = np.array([box.width, box.height]) * 72 / axes.figure.dpi
    captions, inside = _captions(names)
    caption_size = min(9.0, max(4.5, 0.03 * float(size.min())))
    free = size - 2 * (6.0 if inside else _margins(captions, caption_size))
    corners = np.array([places.min(axis=0), places.max(axis=0)]) if n else np.zeros((2, 2))
    around = radius * (_LOOP + 0.6 if looped else 1.3)
    unit = float((free / (np.ptp(corners, axis=0) + 2 * around)).min())
    unit = min(max(unit, 6.0), 0.45 * max(float(size.min()), 20.0))
    limits = corners.mean(axis=0) + np.array([[-0.5], [0.5]]) * size / unit
    if inside:
        caption_size = min(11.0, max(4.5, 0.6 * radius * unit))
    centres = dict(zip(names, places, strict=True))
    return _Canvas(centres, captions, inside, caption_size, radius, unit, limits)


def _captions(names: tuple[str, ...]) -> tuple[dict[str, str], bool]:
    """Return what to write for each name, and whether all of it fits into the nodes."""
    lines = {name: printable_name(" ".join(name.split())) for name in names}
    if all(len(line) <= _SHORT_NAME for line in lines.values()):
        return lines, True
    return {name: _wrapped(line) for name, line in lines.items()}, False


def _wrapped(caption: str) -> str:
    lines = textwrap.wrap(caption, _LINE)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE - 1] + "…"]
    return "\n".join(lines)


def _margins(captions: dict[str, str], size: float) -> Points:
    """Room for captions outside the circle, in points: at one side, and above or below."""
    lines = [caption.split("\n") for caption in captions.values()]
    widest = max(len(line) for caption in lines for line in caption)
    return size * np.array([0.66 * widest + 1.0, 1.25 * max(map(len, lines)) + 1.0])


def _arrows(graph: CausalGraph, truth: CausalGraph | None, canvas: _Canvas) -> list[_Arrow]:
    """One arrow per pair; pairs that only the truth has come last."""
    found = _by_pair(graph)
    true = {} if truth is None else _by_pair(truth)
    widths = _widths(found)
    pairs = list(dict.fromkeys((*found, *true)))
    arrows = []
    for pair in pairs:
        edges = found.get(pair) or true[pair]
        instantaneous = all(edge.kind == "instantaneous" for edge in edges)
        if truth is None:
            colour = VERMILLION if instantaneous else BLUE
        else:
            colour = GREY if pair not in found else BLACK if pair in true else VERMILLION
        label = ", ".join(str(lag) for lag in sorted(edge.lag for edge in edges))
        both = pair[::-1] in found or pair[::-1] in true
        curve = _loop(pair[0], canvas) if pair[0] == pair[1] else _curve(pair, both, canvas)
        dashed = instantaneous or pair not in found
        head = any(edge.oriented for edge in edges)
        arrows.append(_Arrow(pair, label, colour, dashed, head, widths.get(pair, 1.2), curve))
    return arrows


def _by_pair(graph: CausalGraph) -> dict[Pair, list[Edge]]:
    pairs: dict[Pair, list[Edge]] = {}
    for edge in graph:
        pairs.setdefault((edge.cause, edge.effect), []).append(edge)
    return pairs


def _widths(found: dict[Pair, list[Edge]]) -> dict[Pair, float]:
    """Line widths from 1 to 3 points, linear in the highest score of each pair."""
    scores = np.array([edges[0].score for edges in found.values()], dtype=np.float64)
    finite = scores[np.isfinite(scores)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if high > low:
        # Halved, so that the range of huge scores does not overflow.
        shares = (scores / 2 - low / 2) / (high / 2 - low / 2)
        widths = 1.0 + 2.0 * np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0)
    else:
        widths = np.full(len(scores), 1.6)
    return dict(zip(found, widths.tolist(), strict=True))


def _curve(pair: Pair, both: bool, canvas: _Canvas) -> Points:
    """Quadratic Bézier curve from rim to rim, aimed at the centres of the two nodes."""
    start, end = canvas.centres[pair[0]], canvas.centres[pair[1]]
    middle, away = (start + end) / 2, float(np.linalg.norm(end - start))
    if np.linalg.norm(middle) > 1e-6:
        inward = -_direction(middle)
    else:  # right across the circle: any side will do, if it is the same for both directions
        x, y = next(centre for name, centre in canvas.centres.items() if name in pair)
        inward = np.array([y, -x])
    control = middle + _bend(pair, both, canvas) * away * inward
    return np.array(
        [
            start + canvas.radius * _direction(control - start),
            control,
            end + 1.08 * canvas.radius * _direction(control - end),
        ]
    )


def _bend(pair: Pair, both: bool, canvas: _Canvas) -> float:
    """Bend towards the middle of the picture, as a share of the distance of the two nodes.

    Two opposite arrows bend differently. Between neighbours on the circle one of them may bend
    outwards; elsewhere both must stay clear of the nodes that lie outside of them.
    """
    names = list(canvas.centres)
    first, second = names.index(pair[0]), names.index(pair[1])
    if abs(first - second) in (1, len(names) - 1):
        outer, inner = -0.2, 0.2
    else:
        start, end = canvas.centres[pair[0]], canvas.centres[pair[1]]
        gap = 1.0 - float(np.linalg.norm(start + end)) / 2
        clear = 2 * (1.4 * canvas.radius - gap) / float(np.linalg.norm(end - start))
        outer = max(0.02, clear)
        inner = outer + 0.24
    if not both:
        return max(0.12, outer)
    return outer if first < second else inner


def _loop(name: str, canvas: _Canvas) -> Points:
    """Cubic Bézier curve that leaves the node outwards and comes back."""
    centre, r = canvas.centres[name], canvas.radius
    outward = _outward(centre)
    aside = np.array([-outward[1], outward[0]])
    far = (_LOOP - 0.25 * 0.87) / 0.75 * r  # so that the curve itself reaches _LOOP radii
    rim = [0.87 * r * outward + sign * 0.5 * r * aside for sign in (1, -1)]
    out, back = far * outward + 1.9 * r * aside, far * outward - 1.9 * r * aside
    return np.array([centre + offset for offset in (rim[0], out, back, 1.08 * rim[1])])


def _direction(vector: Points) -> Points:
    return np.asarray(vector / np.linalg.norm(vector))


def _outward(centre: Points) -> Points:
    return _direction(centre) if np.any(centre) else np.array([0.0, 1.0])


def _label_places(arrows: list[_Arrow], canvas: _Canvas) -> list[Points]:
    """Choose a place on every curve, away from other labels and from other curves.

    Greedy, in the order of the arrows: each takes the cheapest of some places around its middle.
    With very many arrows no choice helps, so it is not made.
    """
    if len(arrows) > _CROWD:
        return [arrow.at(np.array([0.5]))[0] for arrow in arrows]
    size = 1.3 * canvas.label_size / canvas.unit
    fine = np.linspace(0.0, 1.0, 24)
    traces = [arrow.at(fine) for arrow in arrows]
    places: list[Points] = []
    for own, arrow in enumerate(arrows):
        if len(arrow.curve) == 4:
            places.append(arrow.at(np.array([0.5]))[0])
            continue
        choices = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74])
        points = arrow.at(choices)
        cost = 0.5 * np.abs(choices - 0.5)
        if places:
            cost += 6.0 * _crowding(points, np.array(places), 1.4 * size)
        others = [trace for other, trace in enumerate(traces) if other != own]
        if others:
            cost += 0.5 * _crowding(points, np.concatenate(others), 0.8 * size)
        places.append(points[int(np.argmin(cost))])
    return places


def _crowding(points: Points, obstacles: Points, near: float) -> NDArray[np.float64]:
    """For every point, how far the obstacles closer than ``near`` intrude, in all."""
    distance = np.linalg.norm(points[:, None, :] - obstacles[None, :, :], axis=2)
    return np.asarray(np.clip(1.0 - distance / near, 0.0, None).sum(axis=1))


# -------------------------------------------------------------------- ink


def _draw_arrow(axes: "Axes", arrow: _Arrow, weight: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    codes = {3: [Path.MOVETO, Path.CURVE3, Path.CURVE3], 4: [Path.MOVETO, *[Path.CURVE4] * 3]}
    path = Path(arrow.curve, codes[len(arrow.curve)])
    width = weight * arrow.width
    if arrow.dashed:  # the line by itself, because dashes would tear the head
        x, y = arrow.at(np.linspace(0.0, 0.95 if arrow.head else 1.0, 60)).T
        line = Line2D(x, y, color=arrow.colour, linewidth=width, linestyle=DASHED, zorder=2)
        axes.add_line(line)
        path = Path(arrow.at(np.array([0.98, 1.0])))
    if not arrow.head:
        return
    axes.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="-|>,head_length=0.5,head_width=0.22",
            mutation_scale=weight * (12 + 2 * arrow.width),
            linewidth=width,
            color=arrow.colour,
            capstyle="butt",
            joinstyle="miter",
            zorder=2,
        )
    )


def _draw_nodes(axes: "Axes", canvas: _Canvas, looped: set[str]) -> None:
    from matplotlib.patches import Circle

    for name, centre in canvas.centres.items():
        axes.add_patch(
            Circle(
                (float(centre[0]), float(centre[1])),
                canvas.radius,
                facecolor="#F0F0F0",
                edgecolor="#444444",
                linewidth=1.0,
                zorder=3,
            )
        )
        x, y, horizontal, vertical = *centre, "center", "center"
        if not canvas.inside:
            outward = _outward(centre)
            away = canvas.radius * (_LOOP + 0.7 if name in looped else 1.0) + 4 / canvas.unit
            x, y = centre + away * outward
            horizontal = _side(outward[0], "right", "center", "left")
            vertical = _side(outward[1], "top", "center", "bottom")
        axes.text(
            x,
            y,
            canvas.captions[name],
            horizontalalignment=horizontal,
            verticalalignment=vertical,
            fontsize=canvas.caption_size,
            parse_math=False,
            zorder=5,
        )


def _side(component: float, low: str, middle: str, high: str) -> str:
    return low if component < -0.3 else high if component > 0.3 else middle


def _draw_labels(axes: "Axes", arrows: list[_Arrow], canvas: _Canvas) -> None:
    for arrow, place in zip(arrows, _label_places(arrows, canvas), strict=True):
        axes.text(
            float(place[0]),
            float(place[1]),
            arrow.label,
            color=arrow.colour if arrow.colour != GREY else "#666666",
            horizontalalignment="center",
            verticalalignment="center",
            fontsize=canvas.label_size,
            bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
            zorder=4,
        )


def _draw_legend(axes: "Axes", arrows: list[_Arrow], compared: bool, size: float) -> None:
    from matplotlib.lines import Line2D

    if compared:
        entries = {"true": (BLACK, False), "false": (VERMILLION, False), "missed": (GREY, True)}
    elif any(arrow.dashed for arrow in arrows):
        entries = {"lagged": (BLUE, False), "instantaneous": (VERMILLION, True)}
    else:
        return
    lines = [
        Line2D([], [], color=colour, linestyle=DASHED if dashed else "-", label=name)
        for name, (colour, dashed) in entries.items()
    ]
    if not all(arrow.head for arrow in arrows):
        lines.append(Line2D([], [], color="none", label="no head: direction unknown"))
    axes.legend(handles=lines, loc="lower left", fontsize=size, frameon=False)
