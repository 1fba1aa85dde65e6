"""Where the series stand in the drawing: linked ones close together, drivers to the left."""

import math

import numpy as np
from numpy.typing import NDArray

from causalformer.graph import CausalGraph

FloatArray = NDArray[np.float64]

_PRECISE = 60  # series up to which distances are fitted, not only simulated
_STRONG = 150  # links that the page shows first if there are many
_WIDTH = 1.5  # of the whole drawing, its height being 1


def positions(graph: CausalGraph) -> FloatArray:
    """Place every series, ``[series, (x, y)]``, in a box from (0, 0) to (1, 1); y points down.

    The same graph always gives the same drawing.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> positions(CausalGraph(("a", "b"), (Edge("b", "a", 1),))).round(2).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    import networkx as nx

    number = {name: i for i, name in enumerate(graph.names)}
    links = [(number[e.cause], number[e.effect]) for e in graph if e.kind != "self"]
    net = nx.Graph(links)
    flow = np.zeros(len(number))  # how much more a series drives than it is driven
    for edge in graph:
        if edge.kind != "self" and edge.oriented:
            flow[number[edge.cause]] += 1
            flow[number[edge.effect]] -= 1
    parts = [sorted(part) for part in nx.connected_components(net)]
    parts.sort(key=lambda part: (-len(part), part))
    boxes = [(part, _component(part, links, flow)) for part in parts]
    alone = [i for i in range(len(number)) if i not in net]
    placed = _packed(boxes, alone, len(number))
    low, high = placed.min(axis=0), placed.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.asarray(np.where(high > low, (placed - low) / span, 0.5))


def _component(part: list[int], links: list[tuple[int, int]], flow: FloatArray) -> FloatArray:
    """Place linked series within a box whose area grows with their number."""
    import networkx as nx

    inside = set(part)
    net = nx.Graph()
    net.add_nodes_from(part)
    for rank, (cause, effect) in reversed(list(enumerate(links))):
        if cause in inside:  # the strongest links pull most
            net.add_edge(cause, effect, weight=1.0 if rank < _STRONG else 0.05)
    if len(part) <= _PRECISE:
        found = nx.kamada_kawai_layout(net, weight=None)
    else:
        found = nx.spring_layout(net, seed=0, iterations=80, k=2 / math.sqrt(len(part)))
    points = np.array([found[i] for i in part])
    points -= points.mean(axis=0)
    axes = np.linalg.svd(points, full_matrices=False)[2]
    points = points @ axes.T  # the longer side lies flat
    for axis in range(2):
        column = points[:, axis]
        drivers_first = float(column @ flow[part]) if axis == 0 else float(column @ -np.array(part))
        if drivers_first > 0:
            points[:, axis] = -column
    points -= points.min(axis=0)
    side = math.sqrt(len(part))
    size = points.max(axis=0)
    least = np.array([side, 0.35 * side])
    return np.asarray(points / np.maximum(size, 1e-9) * np.where(size > 1e-9, least + side / 2, 0))


def _packed(
    boxes: list[tuple[list[int], FloatArray]], alone: list[int], n_series: int
) -> FloatArray:
    """Put the boxes into rows, the largest first; series without a link follow in a grid."""
    placed = np.zeros((n_series, 2))
    width = max([_WIDTH * math.sqrt(n_series), *(box[:, 0].max() for _, box in boxes)])
    x, y, row = 0.0, 0.0, 0.0
    for part, box in boxes:
        across, down = box.max(axis=0)
        if x > 0 and x + across > width:
            x, y, row = 0.0, y + row + 1.0, 0.0
        placed[part] = box + np.array([x, y])
        x, row = x + across + 1.0, max(row, down)
    y += row + 1.0 if boxes else 0.0
    n_rows = math.ceil(len(alone) / (int(width) + 1))
    per_row = math.ceil(len(alone) / max(1, n_rows))
    for k, i in enumerate(alone):
        placed[i] = width * (k % per_row + 0.5) / per_row, y + k // per_row
    return placed
