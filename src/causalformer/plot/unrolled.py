"""The graph unrolled over time: a column per time slot, a row per series."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from causalformer.graph import CausalGraph, Edge
from causalformer.plot.arrows import Arrow, Points, around, draw_arrow
from causalformer.plot.network import check_truth, dashes_of, key_to, widths
from causalformer.plot.style import (
    BLACK,
    BLUE,
    FAINT,
    GREY,
    INK,
    NORMAL,
    PALE,
    VERMILLION,
    Dashes,
    axes_for,
    caption,
    legend_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BENDS = (0.0, 0.08, -0.08, 0.15, -0.15, 0.22, -0.22, 0.3, -0.3)
_WITHIN = (0.5, -0.5, 0.7, -0.7, 0.9, -0.9)  # of the way to the next column

Key = tuple[str, str, int]


def draw_unrolled(
    graph: CausalGraph, ax: "Axes | None" = None, *, truth: CausalGraph | None = None
) -> "Axes":
    """Draw every edge as an arrow from its cause at ``t - lag`` to its effect at ``t``.

    The same edges between earlier slots are faint. Wider arrows are stronger, dashed ones
    contemporaneous, dash-dotted ones may be confounded; those without a head have no certain
    direction.

    Parameters
    ----------
    graph : CausalGraph
        The edges.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.
    truth : CausalGraph, optional
        The true graph over the same names. If given, arrows are black where edge and lag are true
        and red where not; missed edges are dashed grey arrows.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> ax = draw_unrolled(CausalGraph(("rain", "river"), (Edge("rain", "river", 2),)))
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['t−2', 't−1', 't']
    """
    check_truth(graph, truth)
    true = {} if truth is None else {_key(edge): edge for edge in truth}
    found = {_key(edge): edge for edge in graph}
    n_back = max([1, *(lag for *_, lag in (*found, *true))])
    grid = _Grid(graph.names, n_back)
    sizes = dict(zip(found, widths(list(graph)), strict=True))
    arrows = {}
    for key, edge in reversed({**true, **found}.items()):
        colour = VERMILLION if edge.lag == 0 else BLUE
        if truth is not None:
            colour = GREY if key not in found else BLACK if key in true else VERMILLION
        dashes = dashes_of([edge], missed=key not in found)
        arrows[edge] = grid.arrow(edge, colour, sizes.get(key, 1.2), dashes)
    entries = key_to(list(arrows.values()), compared=truth is not None)
    columns, rows = np.ptp(grid.box, axis=0)
    inch = min(0.5, 12.0 / max(columns, rows))
    least = 5.5 + 2.0 * max(len(entries) - 3, 0) if entries else 0.0
    axes = axes_for(ax, (max(1.4 + inch * columns, least), 0.8 + inch * rows))
    weight = max(0.4, 2 * inch)
    for edge, arrow in arrows.items():
        faint = replace(arrow, colour=FAINT, width=1.0, dashes=dashes_of([edge]))
        for back in range(1, n_back - edge.lag + 1):
            earlier = arrow.curve - [back * grid.wide, 0.0]
            draw_arrow(axes, replace(faint, curve=earlier), 0.8 * weight)
        draw_arrow(axes, arrow, weight, zorder=2.5)
    _draw_grid(axes, grid)
    if entries:
        legend_of(axes, entries, columns=5)
        axes.set_ylim(grid.box[0, 1] - 0.35 / inch, grid.box[1, 1])
    return axes


def _key(edge: Edge) -> Key:
    return edge.cause, edge.effect, edge.lag


class _Grid:
    """Places of all nodes, by series and slots before ``t``."""

    def __init__(self, names: tuple[str, ...], n_back: int) -> None:
        self.names, self.n_back = names, n_back
        self.wide = max(1.5, 0.6 * len(names) / n_back)  # rows are 1 apart
        self.radius = min(0.2, 0.11 * max(1.0, len(names) / 20))
        self.row = {name: len(names) - 1 - i for i, name in enumerate(names)}
        x, y = np.meshgrid(np.arange(n_back + 1.0), np.arange(float(len(names))))
        self.nodes: Points = np.stack([self.wide * x.ravel(), y.ravel()], axis=1)
        self.box = np.array([[-0.5, -0.6], [self.wide * n_back + 0.5, len(names) - 0.4]])

    def place(self, name: str, back: int) -> Points:
        """Where a series stands so many slots before ``t``."""
        return np.array([self.wide * (self.n_back - back), float(self.row[name])])

    def arrow(self, edge: Edge, colour: str, width: float, dashes: Dashes) -> Arrow:
        """Return the arrow of an edge into ``t``."""
        start, end = self.place(edge.cause, edge.lag), self.place(edge.effect, 0)
        apart = np.minimum(*(np.abs(self.nodes - p).sum(axis=1) for p in (start, end))) > 0
        low, high = np.minimum(start, end) - 0.5, np.maximum(start, end) + 0.5
        near = ((self.nodes >= low) & (self.nodes <= high)).all(axis=1)
        bends: tuple[float, ...] = _BENDS
        if edge.lag == 0:
            bends = tuple(bend * self.wide / abs(float(end[1] - start[1])) for bend in _WITHIN)
        curve = around(start, end, self.nodes[apart & near], self.radius, self.box, bends=bends)
        return Arrow((edge.cause, edge.effect), "", colour, dashes, edge.oriented, width, curve)


def _draw_grid(axes: "Axes", grid: _Grid) -> None:
    from matplotlib.patches import Circle

    for x, y in grid.nodes:
        now = x == grid.wide * grid.n_back
        axes.add_patch(
            Circle((x, y), grid.radius, facecolor=PALE, edgecolor=INK if now else GREY, zorder=3)
        )
    axes.set_aspect("equal")
    axes.set_xlim(*grid.box[:, 0])
    axes.set_ylim(*grid.box[:, 1])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=NORMAL)
    slots = ["t" if back == 0 else f"t−{back}" for back in range(grid.n_back, -1, -1)]
    axes.set_xticks(grid.wide * np.arange(len(slots)), slots, fontstyle="italic")
    axes.xaxis.tick_top()
    rows = [caption(name) for name in reversed(grid.names)]
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
