"""How training went, and what the network predicts of data that it has not seen."""

from typing import TYPE_CHECKING

import numpy as np

from causalformer.plot.style import (
    BLACK,
    BLUE,
    GREY,
    NORMAL,
    SMALL,
    VERMILLION,
    axes_for,
    caption,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from causalformer.diagnostics import Diagnostics
    from causalformer.training import History


def draw_training(history: "History", ax: "Axes | None" = None) -> "Axes":
    """Draw the losses over the epochs: of training, and of validation where there was one.

    Parameters
    ----------
    history : History
        The losses.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from causalformer.training import Epoch, History
    >>> epochs = tuple(Epoch(k, 1 / (k + 1), 2 / (k + 1), 0.1, True) for k in range(3))
    >>> ax = draw_training(History(epochs, "max_epochs"))
    >>> [line.get_label() for line in ax.lines]
    ['training', 'validation', 'kept: epoch 3']
    """
    from matplotlib.ticker import MaxNLocator

    axes = axes_for(ax, (4.6, 3.2))
    number = [epoch.number + 1 for epoch in history.epochs]
    training = np.array([epoch.train_loss for epoch in history.epochs])
    validation = np.array([epoch.validation_loss for epoch in history.epochs])
    marker = "o" if len(number) < 4 else ""
    axes.plot(number, training, color=BLUE, linewidth=1.4, marker=marker, label="training")
    if history.validated:
        axes.plot(
            number, validation, color=VERMILLION, linewidth=1.4, marker=marker, label="validation"
        )
        best = history.best
        axes.plot(
            [best.number + 1],
            [best.validation_loss],
            "o",
            markerfacecolor="white",
            markeredgecolor=BLACK,
            linestyle="",
            label=f"kept: epoch {best.number + 1}",
        )
        axes.legend(fontsize=SMALL, frameon=False)
    both = np.concatenate([training, validation])
    both = both[np.isfinite(both)]
    if both.size and both.min() > 0 and both.max() > 10 * both.min():
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _plain(axes)
    axes.set_xlabel("epoch", fontsize=NORMAL)
    axes.set_ylabel("loss", fontsize=NORMAL)
    return axes


def draw_held_out(diagnostics: "Diagnostics", ax: "Axes | None" = None) -> "Axes":
    """Draw the held-out R² of every series as a bar, that of a linear model as a line beside it.

    Parameters
    ----------
    diagnostics : Diagnostics
        Of the default method.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.

    Returns
    -------
    matplotlib.axes.Axes
    """
    names, r2 = diagnostics.names, np.asarray(diagnostics.r2)
    axes = axes_for(ax, (4.6, min(1.3 + 0.24 * len(names), 12.0)))
    rows = np.arange(len(names))
    bars = axes.barh(rows, r2, height=0.62, color=BLUE, label="network")
    linear = linear_r2(diagnostics)
    (ticks,) = axes.plot(
        linear,
        rows,
        linestyle="",
        marker="|",
        markersize=min(12.0, 200 / max(len(names), 1)),
        markeredgewidth=2.2,
        color=VERMILLION,
        label="linear model",
    )
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    known = np.concatenate([r2, linear])
    axes.set_xlim(max(-1.0, min(0.0, 1.1 * float(np.nanmin(known, initial=0.0)))), 1.0)
    axes.set_yticks(rows, [caption(name, 18) for name in names], parse_math=False)
    _plain(axes)
    if len(names) > 30:
        axes.tick_params(axis="y", labelsize=5)
    axes.set_xlabel("held-out R²", fontsize=NORMAL)
    axes.legend(
        handles=[bars, ticks],
        fontsize=SMALL,
        frameon=False,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=2,
    )
    return axes


def linear_r2(diagnostics: "Diagnostics") -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the held-out R² of the linear model, from how much better the network is."""
    ratio = np.maximum(1.0 - np.asarray(diagnostics.better_than_linear), 1e-12)
    return np.asarray(1.0 - (1.0 - np.asarray(diagnostics.r2)) / ratio)


def _plain(axes: "Axes") -> None:
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
