"""Series around one slot, with what each past value added to a prediction."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import DataError
from causalformer.names import did_you_mean, printable_name
from causalformer.plot.style import (
    BLACK,
    FAINT,
    GREY,
    INK,
    NORMAL,
    SMALL,
    axes_for,
    caption,
    size_in_points,
    two_sided,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

    from causalformer.explain.local import LocalExplanation

FloatArray = NDArray[np.float64]

_AFTER = 3  # slots after the explained one
_AT_LEAST = 12  # slots before it


def draw_series(
    explanation: "LocalExplanation",
    values: FloatArray,
    ax: "Axes | None" = None,
    *,
    effect: str | None = None,
    predicted: FloatArray | None = None,
    time: NDArray[np.generic] | None = None,
    most: int = 8,
) -> "Axes":
    """Draw series before a slot; the colour of a past value is its share in the prediction.

    Every series has its own scale, from its least to its greatest value in sight; the effect
    comes first, then the causes, those that matter most on top.

    Parameters
    ----------
    explanation : LocalExplanation
        Of the slot; see `CausalFormer.explain`.
    values : array ``[slot, series]``
        The series, in the order of ``explanation.names``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.
    effect : str, optional
        The series whose prediction to explain; by default the one predicted to be farthest from
        its usual level.
    predicted : array ``[series]``, optional
        The prediction, in the units of `values`.
    time : array ``[slot]``, optional
        What to write below the slots instead of their numbers.
    most : int
        How many series to show.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If no series is called `effect`.
    """
    names, slot = explanation.names, explanation.slot
    target = _target(explanation, effect)
    share = explanation.relevance[:, target]  # [cause, lag - 1]
    n_lags = share.shape[1]
    by_weight = np.argsort(-np.abs(share).sum(axis=1), kind="stable")
    chosen = [target, *(j for j in by_weight if j != target)][: max(most, 1)]
    first = max(0, slot - max(_AT_LEAST, 3 * n_lags))
    last = min(len(values) - 1, slot + _AFTER)
    axes = axes_for(ax, (7.0, min(1.4 + 0.62 * len(chosen), 12.0)))
    image = _draw_shares(axes, share[chosen], slot)
    for row, j in enumerate(chosen):
        guess = predicted[j] if predicted is not None and row == 0 else np.nan
        _draw_row(axes, -row, values[first : last + 1, j], first, slot, guess)
    axes.axvline(slot, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xlim(first - 0.5, last + 0.5)
    axes.set_ylim(-len(chosen) + 0.45, 0.55)
    axes.set_yticks(
        -np.arange(len(chosen)), [caption(names[j], 18) for j in chosen], parse_math=False
    )
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.tick_params(labelsize=SMALL, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    _label_slots(axes, first, last, time)
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=axes, aspect=24, pad=0.02, shrink=0.9)
    bar.set_label("added to the prediction (sd)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    axes.set_title(
        f"What drove {caption(names[target])} at {_slot_name(slot, time)}",
        fontsize=NORMAL,
        loc="left",
        pad=6.0 if predicted is None else 2.6 * SMALL,  # the legend stands between
        parse_math=False,
    )
    if predicted is not None:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderpad=0,
            fontsize=SMALL,
            frameon=False,
            ncols=2,
        )
    return axes


def _target(explanation: "LocalExplanation", effect: str | None) -> int:
    if effect is None:
        return int(np.abs(explanation.prediction).argmax())
    if effect not in explanation.names:
        raise DataError(
            f"no series is called {effect!r};{did_you_mean(effect, explanation.names)} "
            f"the model knows {', '.join(map(repr, explanation.names[:10]))}"
        )
    return explanation.names.index(effect)


def _draw_shares(axes: "Axes", share: FloatArray, slot: int) -> "QuadMesh":
    """Colour the past of every row by what it added."""
    largest = float(np.abs(share).max()) or 1.0
    n_rows, n_lags = share.shape
    for row in range(n_rows):
        image = axes.pcolormesh(
            np.arange(slot - n_lags, slot + 1) - 0.5,
            [-row - 0.42, -row + 0.42],
            share[row][None, ::-1],
            cmap=two_sided(),
            vmin=-largest,
            vmax=largest,
            zorder=0,
        )
        axes.axhline(-row - 0.5, color=FAINT, linewidth=0.6, zorder=0)
    return image


def _draw_row(
    axes: "Axes", middle: float, values: FloatArray, first: int, slot: int, guess: float
) -> None:
    """Draw one series into a band of height 0.7; missing values leave gaps."""
    seen = np.append(values, guess)
    seen = seen[np.isfinite(seen)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    spread = (high - low) or 1.0

    def height(value: FloatArray) -> FloatArray:
        return middle - 0.35 + 0.7 * (value - low) / spread

    slots = first + np.arange(len(values))
    axes.plot(slots, height(values), "-", color=INK, linewidth=1.0, marker=".", markersize=3)
    if np.isfinite(guess):
        now = height(values[slot - first : slot - first + 1])
        axes.plot([slot], now, "o", color=BLACK, markersize=5, linestyle="", label="observed")
        axes.plot(
            [slot],
            height(np.array([guess])),
            "D",
            markerfacecolor="white",
            markeredgecolor=BLACK,
            markersize=5,
            linestyle="",
            label="predicted",
            zorder=4,
        )


def _label_slots(axes: "Axes", first: int, last: int, time: NDArray[np.generic] | None) -> None:
    from matplotlib.ticker import MaxNLocator

    letter, gap = 0.6 * SMALL, 2 * SMALL  # points
    room = size_in_points(axes)[0] / (letter * len(_slot_name(first, time, "")) + gap)
    locator = MaxNLocator(int(np.clip(room, 2, 6)), integer=True)
    ticks = [int(tick) for tick in locator.tick_values(first, last) if first <= tick <= last]
    axes.set_xticks(ticks, [_slot_name(tick, time, "") for tick in ticks], parse_math=False)
    axes.set_xlabel("slot" if time is None else "time", fontsize=SMALL)


def _slot_name(slot: int, time: NDArray[np.generic] | None, word: str = "slot ") -> str:
    if time is None:
        return f"{word}{slot}"
    text = str(time[slot])
    if np.issubdtype(time.dtype, np.datetime64):
        text = text.rstrip("0").rstrip(".") if "." in text else text
        text = text.removesuffix("T00:00:00").removesuffix("T00:00").replace("T", " ")
    return printable_name(text)
