"""The summary graph: one curved arrow per pair of series, lags as labels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import DataError
from causalformer.graph import CausalGraph, Edge
from causalformer.names import listed
from causalformer.plot.arrows import LOOP, Arrow, Pair, Points, draw_arrow
from causalformer.plot.canvas import CIRCLE, SIDEWAYS, Canvas, extent, make_canvas
from causalformer.plot.style import (
    BLACK,
    BLUE,
    CONFOUNDED,
    DASH_DOT,
    DASHED,
    GREY,
    INK,
    NO_HEAD,
    PALE,
    SMALL,
    SOLID,
    VERMILLION,
    Dashes,
    axes_for,
    legend_of,
    new_figure,
    picture_of,
    size_in_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MANY = 150  # arrows


def draw_graph(
    graph: CausalGraph, ax: "Axes | None" = None, *, truth: CausalGraph | None = None
) -> "Axes":
    """Draw the summary graph: one arrow per pair of series, labelled with its lags.

    Up to 15 series stand on a circle, the first on top, clockwise; more of them where linked ones
    are close together, with lags where there is room. Wider arrows are stronger (`Edge.strength`
    if all edges have one, else their score), dashed ones are contemporaneous, dash-dotted ones may
    be confounded; those without a head have no certain direction.

    Parameters
    ----------
    graph : CausalGraph
        What to draw; readable up to about 50 series.
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
    check_truth(graph, truth)
    axes = _new_figure(graph).axes[0] if ax is None else axes_for(ax, (1, 1))
    edges = graph.edges if truth is None else (*graph.edges, *truth.edges)
    looped = any(edge.kind == "self" for edge in edges)
    # found and true edges together: what has no direction in one of them may have one in the other
    every = {(e.cause, e.effect, e.lag): replace(e, oriented=True) for e in edges}
    canvas = make_canvas(
        CausalGraph(graph.names, tuple(every.values())), np.array(size_in_points(axes)), looped
    )
    arrows = _arrows(graph, truth, canvas)
    axes.set_aspect("equal")
    axes.set_xlim(*canvas.limits[:, 0])
    axes.set_ylim(*canvas.limits[:, 1])
    axes.set_axis_off()
    crowded = len(arrows) > _MANY
    for rank, arrow in reversed(list(enumerate(arrows))):  # the strongest on top
        alpha = 0.9 - 0.6 * rank / len(arrows) if crowded else 1.0
        draw_arrow(axes, arrow, canvas.weight, alpha=alpha)
    _draw_nodes(axes, canvas)
    if canvas.on_circle:
        _draw_captions_outside(axes, canvas, {a.pair[0] for a in arrows if len(a.curve) == 4})
        labels = list(zip(arrows, _label_places(arrows, canvas), strict=True))
    else:
        labels = _draw_captions_beside(axes, canvas, arrows)
    for arrow, place in labels:
        _draw_label(axes, arrow, place, canvas.label_size)
    _draw_legend(axes, key_to(arrows, compared=truth is not None), canvas)
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
    figure = _new_figure(graph, for_file=True)
    draw_graph(graph, figure.axes[0], truth=truth)
    return picture_of(figure, file_format)


def check_truth(graph: CausalGraph, truth: CausalGraph | None) -> None:
    """Refuse a truth over other series than the graph's."""
    if truth is not None and set(truth.names) != set(graph.names):
        odd = sorted(set(truth.names) ^ set(graph.names))
        raise DataError(f"graph and truth are over different series: {listed(map(repr, odd))}")


def _new_figure(graph: CausalGraph, *, for_file: bool = False) -> "Figure":
    """Return a figure filled by one pair of axes; many series need more room."""
    side = 6.4 if len(graph.names) <= CIRCLE else min(6.0 + 0.08 * len(graph.names), 14.0)
    figure = new_figure((side, side), for_file=for_file)
    figure.set_layout_engine("none")
    figure.add_axes((0.0, 0.0, 1.0, 1.0))
    return figure


# -------------------------------------------------------------------- arrows


def _arrows(graph: CausalGraph, truth: CausalGraph | None, canvas: Canvas) -> list[Arrow]:
    """One arrow per pair; pairs that only the truth has come last."""
    found = _by_pair(graph)
    true = {} if truth is None else _by_pair(truth)
    widths = _widths(found)
    arrows = []
    for pair in dict.fromkeys((*found, *true)):
        edges = found.get(pair) or true[pair]
        contemporaneous = all(edge.kind == "instantaneous" for edge in edges)
        if truth is None:
            colour = VERMILLION if contemporaneous else BLUE
        else:
            colour = GREY if pair not in found else BLACK if pair in true else VERMILLION
        label = ", ".join(str(lag) for lag in sorted(edge.lag for edge in edges))
        both = pair[::-1] in found or pair[::-1] in true
        dashes = dashes_of(edges, missed=pair not in found)
        head = any(edge.oriented for edge in edges)
        curve = canvas.curve(pair, both)
        arrows.append(Arrow(pair, label, colour, dashes, head, widths.get(pair, 1.2), curve))
    return arrows


def dashes_of(edges: Sequence[Edge], *, missed: bool = False) -> Dashes:
    """Dashes of the arrow for these edges of one pair.

    Examples
    --------
    >>> dashes_of([Edge("a", "b", 2)])
    '-'
    >>> dashes_of([Edge("a", "b", 2, may_be_confounded="C precedes both.")]) == DASH_DOT
    True
    """
    if any(edge.may_be_confounded for edge in edges):
        return DASH_DOT
    contemporaneous = all(edge.kind == "instantaneous" for edge in edges)
    return DASHED if missed or contemporaneous else SOLID


def key_to(arrows: Sequence[Arrow], *, compared: bool) -> dict[str, tuple[str, Dashes]]:
    """Say what colours and lines mean, where there are several: name, colour, dashes.

    Examples
    --------
    >>> arrow = Arrow(("a", "b"), "0", VERMILLION, DASHED, False, 1.0, np.zeros((3, 2)))
    >>> list(key_to([arrow], compared=False))
    ['lagged', 'contemporaneous', 'no head: direction unknown']
    """
    entries: dict[str, tuple[str, Dashes]] = {}
    if compared:
        entries = {"true": (BLACK, SOLID), "false": (VERMILLION, SOLID), "missed": (GREY, DASHED)}
    elif any(arrow.colour == VERMILLION for arrow in arrows):
        entries = {"lagged": (BLUE, SOLID), "contemporaneous": (VERMILLION, DASHED)}
    if any(arrow.dashes == DASH_DOT for arrow in arrows):
        entries[CONFOUNDED] = (BLACK if compared else BLUE, DASH_DOT)
    if not all(arrow.head for arrow in arrows):
        entries[NO_HEAD] = ("none", SOLID)
    return entries


def _by_pair(graph: CausalGraph) -> dict[Pair, list[Edge]]:
    pairs: dict[Pair, list[Edge]] = {}
    for edge in graph:
        pairs.setdefault((edge.cause, edge.effect), []).append(edge)
    return pairs


def _widths(found: dict[Pair, list[Edge]]) -> dict[Pair, float]:
    """Line widths from 1 to 3 points, linear in the strength of the best edge of each pair."""
    best = widths([edges[0] for edges in found.values()])
    return dict(zip(found, best, strict=True))


def widths(edges: list[Edge]) -> list[float]:
    """Line widths from 1 to 3 points, linear in strength if all edges have one, else in score.

    Examples
    --------
    >>> widths([Edge("a", "b", 1, 0.9), Edge("b", "a", 1, 0.5), Edge("b", "b", 1)])
    [3.0, 1.0, 1.0]
    """
    sizes = np.array([edge.strength for edge in edges], dtype=np.float64)
    if np.isnan(sizes).any():
        sizes = np.array([edge.score for edge in edges], dtype=np.float64)
    finite = sizes[np.isfinite(sizes)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if high > low:
        # Halved, so that the range of huge scores does not overflow.
        shares = (sizes / 2 - low / 2) / (high / 2 - low / 2)
        wide = 1.0 + 2.0 * np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0)
        return [float(width) for width in wide]
    return [1.6] * len(edges)


# -------------------------------------------------------------------- places of labels


def _label_places(arrows: list[Arrow], canvas: Canvas) -> list[Points]:
    """Choose a place on every curve, away from other labels and from other curves.

    Greedy, in the order of the arrows: each takes the cheapest of some places around its middle.
    With very many arrows no choice helps, so it is not made.
    """
    if len(arrows) > _MANY:
        return [arrow.at(np.array([0.5]))[0] for arrow in arrows]
    size = 1.3 * canvas.label_size / canvas.unit
    traces = [arrow.trace() for arrow in arrows]
    places: list[Points] = []
    for own, arrow in enumerate(arrows):
        if len(arrow.curve) == 4:
            places.append(arrow.at(np.array([0.5]))[0])
            continue
        points = arrow.at(_CHOICES)
        cost = 0.5 * np.abs(_CHOICES - 0.5)
        if places:
            cost += 6.0 * _crowding(points, np.array(places), 1.4 * size)
        others = [trace for other, trace in enumerate(traces) if other != own]
        if others:
            cost += 0.5 * _crowding(points, np.concatenate(others), 0.8 * size)
        places.append(points[int(np.argmin(cost))])
    return places


_CHOICES = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74])


def _crowding(points: Points, obstacles: Points, near: float) -> NDArray[np.float64]:
    """For every point, how far the obstacles closer than ``near`` intrude, in all."""
    distance = np.linalg.norm(points[:, None, :] - obstacles[None, :, :], axis=2)
    return np.asarray(np.clip(1.0 - distance / near, 0.0, None).sum(axis=1))


class _Room:
    """Boxes ``[left, bottom, right, top]`` that are taken, and points that should stay visible."""

    def __init__(self, boxes: Points, points: Points, limits: Points) -> None:
        self.boxes, self.points, self.limits = boxes, points, limits

    def overlap(self, boxes: Points) -> NDArray[np.float64]:
        """How much of each box is taken or outside, as a share of its area."""
        low = np.maximum(boxes[:, None, :2], self.boxes[None, :, :2])
        high = np.minimum(boxes[:, None, 2:], self.boxes[None, :, 2:])
        taken = np.clip(high - low, 0.0, None).prod(axis=2).sum(axis=1)
        out = (boxes[:, :2] < self.limits[0]).any(axis=1) | (boxes[:, 2:] > self.limits[1]).any(
            axis=1
        )
        return np.asarray(taken / (boxes[:, 2:] - boxes[:, :2]).prod(axis=1) + 2.0 * out)

    def hidden(self, boxes: Points) -> NDArray[np.float64]:
        """How many of the points each box would hide."""
        inside = (self.points[None] > boxes[:, None, :2]) & (self.points[None] < boxes[:, None, 2:])
        return np.asarray(inside.all(axis=2).sum(axis=1, dtype=np.float64))

    def take(self, box: Points) -> None:
        self.boxes = np.concatenate([self.boxes, box[None]])


_EIGHT = np.array(
    [(0, -1), (1, 0), (-1, 0), (0, 1), (0.8, -0.8), (-0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)]
)


def _draw_captions_beside(
    axes: "Axes", canvas: Canvas, arrows: list[Arrow]
) -> list[tuple[Arrow, Points]]:
    """Write captions where least is hidden; return the arrows whose lags find room, and where."""
    centres = np.array(list(canvas.centres.values()))
    points = np.concatenate([np.zeros((0, 2)), *(arrow.trace() for arrow in arrows)])
    nodes = np.hstack([centres - canvas.radius, centres + canvas.radius])
    room = _Room(nodes, points, canvas.limits)
    for name, centre in canvas.centres.items():
        text, place = canvas.captions[name], centre
        if not canvas.inside:
            half = extent(text, canvas.caption_size) / 2
            places = centre + _EIGHT * (half + canvas.radius + 1.0)
            boxes = np.hstack([places - half, places + half])
            cost = 6.0 * room.overlap(boxes) + 0.25 * room.hidden(boxes) + 0.05 * np.arange(8)
            best = int(cost.argmin())
            place = places[best]
            room.take(boxes[best])
        _draw_caption(axes, text, place, canvas.caption_size)
    if len(arrows) > 2 * _MANY:
        return []
    labels = []
    for arrow in arrows:
        half = extent(arrow.label, canvas.label_size) / 2
        places = arrow.at(np.array([0.5]) if len(arrow.curve) == 4 else _CHOICES - 0.06)
        boxes = np.hstack([places - half, places + half])
        overlap = room.overlap(boxes)
        best = int((overlap + 0.02 * room.hidden(boxes)).argmin())
        length = float(np.linalg.norm(np.diff(arrow.trace(), axis=0), axis=1).sum())
        if overlap[best] < 0.05 and length > 4 * canvas.label_size:
            room.take(boxes[best])
            labels.append((arrow, places[best]))
    return labels


# -------------------------------------------------------------------- ink


def _draw_nodes(axes: "Axes", canvas: Canvas) -> None:
    from matplotlib.patches import Circle

    for x, y in canvas.centres.values():
        axes.add_patch(
            Circle(
                (float(x), float(y)),
                canvas.radius,
                facecolor=PALE,
                edgecolor=INK,
                linewidth=min(1.0, 1.3 * canvas.weight),
                zorder=3,
            )
        )


def _draw_captions_outside(axes: "Axes", canvas: Canvas, looped: set[str]) -> None:
    """Write captions into the nodes, or outside of the circle and its self-loops."""
    for name, centre in canvas.centres.items():
        place, horizontal, vertical = centre, "center", "center"
        if not canvas.inside:
            outward = canvas.loops[name]
            away = canvas.radius * (LOOP + 0.7 if name in looped else 1.0) + 4 / canvas.unit
            place = centre + away * outward
            horizontal = _side(outward[0], "right", "center", "left")
            vertical = _side(outward[1], "top", "center", "bottom")
        _draw_caption(axes, canvas.captions[name], place, canvas.caption_size, horizontal, vertical)


def _side(component: float, low: str, middle: str, high: str) -> str:
    return low if component < -SIDEWAYS else high if component > SIDEWAYS else middle


def _draw_caption(
    axes: "Axes",
    text: str,
    place: Points,
    size: float,
    horizontal: str = "center",
    vertical: str = "center",
) -> None:
    from matplotlib.patheffects import withStroke

    axes.text(
        float(place[0]),
        float(place[1]),
        text,
        horizontalalignment=horizontal,
        verticalalignment=vertical,
        fontsize=size,
        parse_math=False,
        linespacing=1.05,
        zorder=5,
        path_effects=[withStroke(linewidth=1.5, foreground="#FFFFFFB0")],
    )


def _draw_label(axes: "Axes", arrow: Arrow, place: Points, size: float) -> None:
    axes.text(
        float(place[0]),
        float(place[1]),
        arrow.label,
        color=arrow.colour if arrow.colour != GREY else "#666666",
        horizontalalignment="center",
        verticalalignment="center",
        fontsize=size,
        bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
        zorder=4,
    )


def _draw_legend(axes: "Axes", entries: dict[str, tuple[str, Dashes]], canvas: Canvas) -> None:
    if entries:
        size = SMALL * (canvas.weight if canvas.on_circle else max(0.85, canvas.weight))
        if canvas.on_circle:
            legend_of(axes, entries, size, place="best")  # a corner without a node
        else:
            legend_of(axes, entries, size, columns=5)
