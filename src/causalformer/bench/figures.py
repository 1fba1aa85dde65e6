"""Pictures of a benchmark: accuracy against time, methods × data, and graphs beside the truth."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from causalformer.bench.tables import summarise
from causalformer.config import DEFAULT
from causalformer.files import write_atomically
from causalformer.graph import CausalGraph
from causalformer.plot import draw_graph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_OURS, _OTHER = "#d55e00", "#56708c"  # told apart by the colour-blind


def accuracy_against_time(results: "pd.DataFrame") -> "Figure":
    """Draw the off-diagonal F1 of every method over its CPU seconds, means of all data sets."""
    from matplotlib.figure import Figure

    summary = _shown(results)
    means = summary.groupby("method", sort=False)[
        ["cpu_seconds_mean", "off_diagonal_f1_mean"]
    ].mean()
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    labelled: list[tuple[float, float]] = []
    for method, row in means.iterrows():
        x, y = max(row["cpu_seconds_mean"], 1e-4), row["off_diagonal_f1_mean"]
        colour = _OURS if method == DEFAULT else _OTHER
        axes.plot(x, y, "o", color=colour, markersize=8)
        near = any(abs(math.log(x / u)) < 0.5 and abs(y - v) < 0.04 for u, v in labelled)
        axes.annotate(
            str(method),
            (x, y),
            xytext=(6, -13 if near else 4),  # below where a label stands above already
            textcoords="offset points",
            color=colour,
            fontsize=9,
        )
        labelled.append((x, y))
    axes.set(
        xscale="log",
        ylim=(-0.03, 1.03),
        xlabel="CPU seconds of one fit on one core, mean over data sets",
        ylabel="F1 without self-loops, mean over data sets",
    )
    axes.margins(x=0.15)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def heat_map(results: "pd.DataFrame", measure: str = "off_diagonal_f1") -> "Figure":
    """Draw a measure as methods × data sets, the best method first."""
    from matplotlib.figure import Figure

    summary = _shown(results)
    wide = summary.pivot_table(
        index="method", columns="folder", values=f"{measure}_mean", sort=False, dropna=False
    )
    wide = wide.loc[wide.mean(axis=1).sort_values(ascending=False, kind="stable").index]
    figure = Figure(
        figsize=(2.5 + 0.8 * wide.shape[1], 1.2 + 0.35 * len(wide)), layout="constrained"
    )
    axes = figure.subplots()
    image = axes.imshow(wide.to_numpy(), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(wide.shape[1]), [str(c) for c in wide.columns], rotation=40, ha="right")
    axes.set_yticks(range(len(wide)), [str(m) for m in wide.index])
    for i, row in enumerate(wide.to_numpy()):
        for j, value in enumerate(row):
            text = "–" if math.isnan(value) else f"{value:.2f}"
            colour = "black" if value > 0.55 else "white" if value == value else "black"
            axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(image, label="F1 without self-loops")
    return figure


def graphs_beside_truth(graphs: Mapping[str, CausalGraph], truth: CausalGraph) -> "Figure":
    """Draw the graph of every method: true edges, false ones and missed ones told apart."""
    from matplotlib.figure import Figure

    n_columns = min(4, len(graphs))
    n_rows = -(-len(graphs) // n_columns)
    figure = Figure(figsize=(3 * n_columns, 3 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in panels[len(graphs) :]:
        axes.set_axis_off()
    for axes, (method, graph) in zip(panels, graphs.items(), strict=False):
        draw_graph(graph, axes, truth=truth)
        axes.set_title(method)
    return figure


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """Write a picture at once and whole."""
    return write_atomically(Path(path), lambda temporary: figure.savefig(temporary, dpi=150))


def _shown(results: "pd.DataFrame") -> "pd.DataFrame":
    """Take NetSim's reading of a truth, the published one only where there is no other."""
    published = results["orientation"] == "as-published"
    return summarise(results if published.all() else results[~published])
