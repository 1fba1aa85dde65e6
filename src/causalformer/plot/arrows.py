"""Arrows along Bézier curves: how they bend around what is in their way, and their ink."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.plot.style import SOLID, Dashes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]
Pair = tuple[str, str]

LOOP: Final = 2.6  # how far a self-loop reaches, in node radii
_FINE: Final = np.linspace(0.0, 1.0, 24)


@dataclass(frozen=True, slots=True)
class Arrow:
    """One link, ready to be drawn along a Bézier ``curve``."""

    pair: Pair
    label: str
    colour: str
    dashes: Dashes
    head: bool
    width: float
    curve: Points  # 3 control points, or 4 for a self-loop

    def at(self, t: NDArray[np.float64]) -> Points:
        """Points of the curve at parameters ``t`` in [0, 1]."""
        return bezier(self.curve, t)

    def trace(self) -> Points:
        """Points all along the curve."""
        return bezier(self.curve, _FINE)


def bezier(curve: Points, t: NDArray[np.float64]) -> Points:
    """Points of the Bézier curve with these control points.

    Examples
    --------
    >>> bezier(np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]]), np.array([0.0, 0.5]))
    array([[0., 0.], [1., 1.]])
    """
    degree = len(curve) - 1
    powers = [math.comb(degree, k) * t**k * (1 - t) ** (degree - k) for k in range(degree + 1)]
    return np.stack(powers, axis=1) @ curve


def between(start: Points, end: Points, control: Points, radius: float) -> Points:
    """Quadratic curve from rim to rim, aimed at the centres of the two nodes."""
    return np.array(
        [
            start + radius * direction(control - start),
            control,
            end + 1.08 * radius * direction(control - end),
        ]
    )


def around(
    start: Points,
    end: Points,
    obstacles: Points,
    radius: float,
    box: Points,
    *,
    bends: tuple[float, ...],
) -> Points:
    """Quadratic curve that passes beside the obstacles and stays inside ``box``, if any does.

    A positive bend leads to the right, as seen by who walks along; earlier bends are preferred
    where several are free.
    """
    along = end - start
    aside = np.array([along[1], -along[0]])
    best, least = None, math.inf
    for rank, bend in enumerate(bends):
        curve = between(start, end, (start + end) / 2 + bend * aside, radius)
        points = bezier(curve, _FINE)
        cost = 0.05 * rank + 4 * float(((points < box[0]) | (points > box[1])).any())
        if len(obstacles):
            distance = np.linalg.norm(points[:, None] - obstacles[None], axis=2).min(axis=0)
            cost += float(np.clip(1.6 - distance / radius, 0, None).sum())
        if cost < least:
            best, least = curve, cost
    assert best is not None
    return best


def loop(centre: Points, outward: Points, radius: float) -> Points:
    """Cubic curve that leaves a node outwards and comes back."""
    aside = np.array([-outward[1], outward[0]])
    far = (LOOP - 0.25 * 0.87) / 0.75 * radius  # so that the curve itself reaches LOOP radii
    rim = [0.87 * radius * outward + sign * 0.5 * radius * aside for sign in (1, -1)]
    out, back = far * outward + 1.9 * radius * aside, far * outward - 1.9 * radius * aside
    return np.array([centre + offset for offset in (rim[0], out, back, 1.08 * rim[1])])


def direction(vector: Points) -> Points:
    """Return the vector with length one; any of that length for none."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length) if length else np.array([0.0, 1.0])


def draw_arrow(
    axes: "Axes", arrow: Arrow, weight: float, *, alpha: float = 1.0, zorder: float = 2.0
) -> None:
    """Draw one arrow; ``weight`` scales its line and head."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    codes = {3: [Path.MOVETO, Path.CURVE3, Path.CURVE3], 4: [Path.MOVETO, *[Path.CURVE4] * 3]}
    path = Path(arrow.curve, codes[len(arrow.curve)])
    width = weight * arrow.width
    if (
        arrow.dashes != SOLID or not arrow.head
    ):  # the line by itself, because dashes would tear the head
        x, y = arrow.at(np.linspace(0.0, 0.95 if arrow.head else 1.0, 60)).T
        axes.add_line(
            Line2D(
                x,
                y,
                color=arrow.colour,
                linewidth=width,
                linestyle=arrow.dashes,
                alpha=alpha,
                zorder=zorder,
            )
        )
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
            alpha=alpha,
            zorder=zorder,
        )
    )
