"""Where the series of a summary graph stand: few on a circle, many where forces move them.

On the circle lengths are in units of its radius, else in points; `Canvas.unit` tells.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from causalformer.graph import CausalGraph
from causalformer.plot.arrows import LOOP, Pair, Points, around, between, direction, loop
from causalformer.plot.style import caption

CIRCLE: Final = 15  # series up to which the circle is readable

_PRECISE = 80  # linked series up to which distances are fitted, not simulated
SIDEWAYS: Final = 0.3  # how far a direction must lean for a caption to stand at that side
_SHORT_NAME = 4  # names up to this length fit into a node
_ONE_WAY = (0.07, -0.07, 0.16, -0.16, 0.27, -0.27, 0.4, -0.4)
_TWO_WAYS = (0.1, 0.16, 0.24, 0.34, 0.46)


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where the nodes are and how large things may be."""

    centres: dict[str, Points]
    loops: dict[str, Points]  # where a self-loop leaves each node
    captions: dict[str, str]
    inside: bool  # captions stand in the nodes
    caption_size: float  # in points
    radius: float  # of a node
    label_size: float  # of the lags, in points
    weight: float  # factor for lines and arrow heads: less than one where there is little room
    unit: float  # points per unit of length
    limits: Points  # [[left, bottom], [right, top]]
    on_circle: bool

    def curve(self, pair: Pair, both: bool) -> Points:
        """Control points of the arrow of a pair; ``both`` if there is one back, too."""
        if pair[0] == pair[1]:
            return loop(self.centres[pair[0]], self.loops[pair[0]], self.radius)
        start, end = (self.centres[name] for name in pair)
        if self.on_circle:
            return between(start, end, _control(pair, both, self), self.radius)
        others = [centre for name, centre in self.centres.items() if name not in pair]
        bends = _TWO_WAYS if both else _ONE_WAY
        return around(start, end, np.array(others), self.radius, self.limits, bends=bends)


def make_canvas(graph: CausalGraph, size: Points, looped: bool) -> Canvas:
    """Place the series of a graph in a box of ``size`` points; self-loops need room."""
    if len(graph.names) <= CIRCLE:
        return _circle(graph.names, size, looped)
    return _moved_by_forces(graph, size)


def _captions(names: tuple[str, ...], lines: int) -> tuple[dict[str, str], bool]:
    """Return what to write for each name, and whether all of it fits into the nodes."""
    short = {name: caption(name) for name in names}
    if all(len(text) <= _SHORT_NAME for text in short.values()):
        return short, True
    return {name: caption(name, 14, lines) for name in names}, False


def extent(text: str, size: float) -> Points:
    """Guess width and height of a text, in points."""
    lines = text.split("\n")
    return size * np.array([0.62 * max(1, *map(len, lines)), 1.25 * len(lines)])


# -------------------------------------------------------------------- circle


def _circle(names: tuple[str, ...], size: Points, looped: bool) -> Canvas:
    """Fit the circle, its self-loops and its captions into the box."""
    n = len(names)
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / max(n, 1)
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (n > 1)
    radius = min(0.15, 0.27 * 2 * math.sin(math.pi / max(n, 2)))
    captions, inside = _captions(names, 3)
    caption_size = min(9.0, max(4.5, 0.03 * float(size.min())))
    centres = dict(zip(names, places, strict=True))
    loops = {name: direction(centre) for name, centre in centres.items()}
    middle = (places.min(axis=0) + places.max(axis=0)) / 2 if n else np.zeros(2)
    unit = 0.45 * max(float(size.min()), 20.0)
    for name, outward in loops.items():  # caption and self-loop of every node must fit
        share = np.where(np.abs(outward) > SIDEWAYS, 1.0, 0.5)
        room = 6.0 if inside else share * extent(captions[name], caption_size) + caption_size
        reach = np.maximum(radius * ((LOOP + 0.6) if looped else 1.0) * np.abs(outward), radius)
        need = np.abs(centres[name] - middle) + reach
        unit = min(unit, float(((size / 2 - room) / need).min()))
    unit = max(unit, 6.0)
    limits = middle + np.array([[-0.5], [0.5]]) * size / unit
    if inside:
        caption_size = min(11.0, max(4.5, 0.6 * radius * unit))
    return Canvas(
        centres,
        loops,
        captions,
        inside,
        caption_size,
        radius,
        label_size=min(9.0, max(4.5, 0.55 * radius * unit)),
        weight=min(1.0, max(0.35, unit / 120)),
        unit=unit,
        limits=limits,
        on_circle=True,
    )


def _control(pair: Pair, both: bool, canvas: Canvas) -> Points:
    """Control point of a curve across the circle."""
    start, end = canvas.centres[pair[0]], canvas.centres[pair[1]]
    middle, away = (start + end) / 2, float(np.linalg.norm(end - start))
    if np.linalg.norm(middle) > 1e-6:
        inward = -direction(middle)
    else:  # right across the circle: any side will do, if it is the same for both directions
        x, y = next(centre for name, centre in canvas.centres.items() if name in pair)
        inward = np.array([y, -x])
    return np.asarray(middle + _bend(pair, both, canvas) * away * inward)


def _bend(pair: Pair, both: bool, canvas: Canvas) -> float:
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


# -------------------------------------------------------------------- forces


def _moved_by_forces(graph: CausalGraph, size: Points) -> Canvas:
    """Bring linked series together, then apart as far as they need; the others stand on top."""
    names = graph.names
    size = np.maximum(size, 1.0)
    spacing = math.sqrt(float(size.prod()) / len(names))
    captions, inside = _captions(names, 2)
    radius = min(14.0, (0.17 if inside else 0.1) * spacing)
    caption_size = min(8.5, 0.62 * radius) if inside else min(8.0, 0.095 * spacing)
    apart = np.full(2, 3.6 * radius)
    margins = np.full(2, (LOOP + 0.4) * radius)
    if not inside:
        width, height = np.max([extent(text, caption_size) for text in captions.values()], axis=0)
        apart = np.array([max(apart[0], 0.8 * width + radius), 2.2 * radius + 1.5 * height])
        margins = np.maximum(margins, [width / 2, height + radius])
    margins = np.minimum(margins, 0.3 * size)
    box = np.array([margins, size - margins])
    box[0, 1] += min(14.0, 0.05 * float(size[1]))  # for a legend
    linked = {name for edge in graph if edge.kind != "self" for name in (edge.cause, edge.effect)}
    centres = _rows([name for name in names if name not in linked], box, spacing)
    if centres:
        box[1, 1] = max(min(y for _, y in centres.values()) - 0.75 * spacing, box[0, 1])
    links = [(e.cause, e.effect) for e in graph if e.kind != "self"]
    centres |= _apart(_pulled([name for name in names if name in linked], links, box), apart, box)
    return Canvas(
        {name: centres[name] for name in names},
        {name: _free_side(name, links, centres) for name in names},
        captions,
        inside,
        caption_size,
        radius,
        label_size=min(7.0, 0.085 * spacing),
        weight=min(0.8, max(0.3, spacing / 110)),
        unit=1.0,
        limits=np.array([[0.0, 0.0], size]),
        on_circle=False,
    )


def _rows(names: list[str], box: Points, spacing: float) -> dict[str, Points]:
    """Put series side by side in rows, from the top."""
    (left, _), (right, top) = box
    per_row = max(1, int((right - left) / spacing))
    n_rows = -(-len(names) // per_row)
    per_row = -(-len(names) // max(n_rows, 1))
    step = (right - left) / max(per_row, 1)
    return {
        name: np.array([left + (k % per_row + 0.5) * step, top - (k // per_row) * 0.8 * spacing])
        for k, name in enumerate(names)
    }


def _pulled(names: list[str], links: list[Pair], box: Points) -> dict[str, Points]:
    """Places whose distances follow the number of links between the series, all over the box."""
    import networkx as nx

    if not names:
        return {}
    net = nx.Graph()
    net.add_nodes_from(names)
    net.add_edges_from(links)
    paths = dict(nx.all_pairs_shortest_path_length(net))
    far = 1 + max(max(each.values()) for each in paths.values()) / 2
    distances = {a: {b: paths[a].get(b, far) for b in names} for a in names}
    if len(names) <= _PRECISE:
        found = nx.kamada_kawai_layout(net, dist=distances)
    else:
        found = nx.spring_layout(net, k=2 / math.sqrt(len(names)), iterations=100, seed=0)
    places = np.array([found[name] for name in names])
    low, high = places.min(axis=0), places.max(axis=0)
    shares = np.where(high - low > 1e-9, (places - low) / np.maximum(high - low, 1e-9), 0.5)
    return dict(zip(names, box[0] + shares * (box[1] - box[0]), strict=True))


def _apart(centres: dict[str, Points], least: Points, box: Points) -> dict[str, Points]:
    """Push nodes apart that are closer than ``least``, as far as the box has room."""
    places = np.array(list(centres.values())).reshape(-1, 2) / least
    for _ in range(300):
        gaps = places[:, None] - places[None]
        distance = np.linalg.norm(gaps, axis=2) + 2.0 * np.eye(len(places))
        lacking = np.clip(1.0 - distance, 0.0, None)
        if not lacking.any():
            break
        ways = gaps / np.maximum(distance, 1e-9)[..., None]
        places = places + 0.3 * (lacking[..., None] * ways).sum(axis=1)
        places = np.clip(places, box[0] / least, box[1] / least)
    return dict(zip(centres, places * least, strict=True))


def _free_side(name: str, links: list[Pair], centres: dict[str, Points]) -> Points:
    """Direction in the middle of the widest angle between the links of a series."""
    ends = {end for pair in links if name in pair for end in pair} - {name}
    if not ends:
        return np.array([0.0, 1.0])
    ways = [centres[end] - centres[name] for end in ends]
    angles = np.sort([math.atan2(y, x) for x, y in ways])
    gaps = np.diff([*angles, angles[0] + 2 * np.pi])
    widest = int(gaps.argmax())
    middle = angles[widest] + gaps[widest] / 2
    return np.array([math.cos(middle), math.sin(middle)])
