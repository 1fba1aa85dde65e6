"""A matrix ``[cause, effect]`` as a picture: the frame that lags, scores and p-values share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causalformer.plot.style import (
    BLACK,
    FAINT,
    NORMAL,
    SMALL,
    axes_for,
    caption,
    rising,
    size_in_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_LEGIBLE = 4.0  # points
_HUGE = 1e300  # so that the range of all colours does not overflow


def draw_matrix(
    names: Sequence[str],
    values: FloatArray,
    ax: "Axes | None" = None,
    *,
    label: str,
    texts: Sequence[Sequence[str]] = (),
    framed: NDArray[np.bool_] | None = None,
    limits: tuple[float, float] | None = None,
    mark: tuple[float, str] | None = None,
    note: str = "",
) -> "Axes":
    """Draw a matrix, causes down, effects across; grey where a number is missing (NaN).

    Parameters
    ----------
    names : sequence of str
        The series.
    values : array ``[cause, effect]``
        What the colours mean.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.
    label : str
        Text beside the colour bar.
    texts : sequence of sequences of str, optional
        What to write into the cells, where they are large enough for it.
    framed : array of bool ``[cause, effect]``, optional
        Cells to draw a frame around.
    limits : (float, float), optional
        Numbers of the first and the last colour; by default the smallest (0 if all are above) and
        the largest.
    mark : (float, str), optional
        A line across the colour bar, and what it says.
    note : str
        Stands above the matrix.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = draw_matrix(("a", "b"), np.eye(2), label="weight", texts=[["1", ""], ["", "1"]])
    >>> [text.get_text() for text in ax.texts]
    ['1', '1']
    """
    n = len(names)
    side = min(1.6 + max(0.42 * n if n < 12 else 3.0 + 0.17 * n, 1.4), 14.0)
    axes = axes_for(ax, (side + 1.2, side))
    low, high = limits or _limits(values)
    _draw_cells(axes, values, (low, high), label, mark)
    _label_axes(axes, [caption(name) for name in names])
    cell = min(size_in_points(axes)) / max(n, 1)
    if texts:
        longest = max((len(text) for row in texts for text in row), default=1)
        size = min(NORMAL, 0.62 * cell, 1.25 * cell / max(longest, 1))
        middle = low + 0.5 * (high - low)
        for i, j in np.argwhere(np.array(texts) != "") if size >= _LEGIBLE else ():
            colour = "white" if values[i, j] > middle else BLACK
            axes.text(j, i, texts[i][j], ha="center", va="center", color=colour, fontsize=size)
    if framed is not None:
        _draw_frames(axes, framed, width=min(1.4, 0.12 * cell))
    if note:
        axes.set_title(note, fontsize=SMALL, loc="left")
    return axes


def _limits(values: FloatArray) -> tuple[float, float]:
    finite = np.clip(values[np.isfinite(values)], -_HUGE, _HUGE)
    if not finite.size:
        return 0.0, 1.0
    low, high = min(float(finite.min()), 0.0), float(finite.max())
    return (low, high) if high > low else (low, low + 1.0)


def _draw_cells(
    axes: "Axes",
    values: FloatArray,
    limits: tuple[float, float],
    label: str,
    mark: tuple[float, str] | None,
) -> None:
    from matplotlib.colors import Normalize

    colours = rising().with_extremes(bad="#F2F2F2")
    edges = np.arange(len(values) + 1) - 0.5
    image = axes.pcolormesh(
        edges,
        edges,
        np.ma.masked_invalid(np.where(np.isposinf(values), limits[1], values)),
        cmap=colours,
        norm=Normalize(*limits),
        edgecolors="white",
        linewidth=0.6,
    )
    axes.set_aspect("equal")
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.set_ylim(len(values) - 0.5, -0.5)
    beyond = bool((values > limits[1]).any())
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(
        image, ax=axes, shrink=0.8, aspect=24, pad=0.03, extend="max" if beyond else "neither"
    )
    bar.set_label(label, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    if mark is not None and limits[0] < mark[0] < limits[1]:
        far = (0.16 if len(values) < 12 else 0.06) * (limits[1] - limits[0])  # a short bar, or long
        ticks = [t for t in bar.get_ticks() if limits[0] <= t <= limits[1]]
        ticks = [t for t in ticks if abs(t - mark[0]) > far]
        bar.ax.axhline(mark[0], color=BLACK, linewidth=1.5)
        bar.set_ticks([*ticks, mark[0]], labels=[*(f"{t:g}" for t in ticks), mark[1]])


def _label_axes(axes: "Axes", captions: list[str]) -> None:
    n = len(captions)
    size = min(NORMAL, max(_LEGIBLE, 320 / max(n, 1)))
    long = n > 8 or max(map(len, captions), default=0) > 4
    axes.set_xticks(range(n), captions, rotation=90 if long else 0, parse_math=False)
    axes.set_yticks(range(n), captions, parse_math=False)
    axes.tick_params(length=0, labelsize=size)
    axes.set_xlabel("effect", fontsize=NORMAL)
    axes.set_ylabel("cause", fontsize=NORMAL)
    axes.spines[:].set_color(FAINT)


def _draw_frames(axes: "Axes", framed: NDArray[np.bool_], width: float) -> None:
    from matplotlib.patches import Rectangle

    for i, j in np.argwhere(framed):
        axes.add_patch(
            Rectangle(
                (j - 0.44, i - 0.44), 0.88, 0.88, fill=False, edgecolor=BLACK, linewidth=width
            )
        )
