"""The lags as a heat map, cause × effect."""

from typing import TYPE_CHECKING

import numpy as np

from causalformer.formats import MARK, mark
from causalformer.graph import CausalGraph
from causalformer.plot.matrix import draw_matrix
from causalformer.plot.network import check_truth
from causalformer.plot.scores import edge_matrix, true_pairs
from causalformer.plot.style import CONFOUNDED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_lags(
    graph: CausalGraph, ax: "Axes | None" = None, *, truth: CausalGraph | None = None
) -> "Axes":
    """Write the lag of the strongest edge of every pair into a matrix coloured by its score.

    A question mark follows where the direction is unknown, a star where the edge may be confounded.

    Parameters
    ----------
    graph : CausalGraph
        The edges.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.
    truth : CausalGraph, optional
        The true graph; its pairs have a frame.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> ax = draw_lags(CausalGraph(("rain", "river"), (Edge("rain", "river", 2, 0.9),)))
    >>> [text.get_text() for text in ax.texts]
    ['2']
    """
    check_truth(graph, truth)
    scores, lags = edge_matrix(graph, "score"), graph.lags()
    known = bool(np.isfinite(scores).any())
    number = {name: i for i, name in enumerate(graph.names)}
    texts = [[str(lag) if lag >= 0 else "" for lag in row] for row in lags.tolist()]
    for edge in graph:
        cell = number[edge.cause], number[edge.effect]
        if lags[cell] == edge.lag:
            texts[cell[0]][cell[1]] += ("" if edge.oriented else "?") + mark(edge)
    notes = ["lag of the strongest edge"]
    notes += [] if all(edge.oriented for edge in graph) else ["?: direction unknown"]
    notes += [f"{MARK}: {CONFOUNDED}"] if any(map(mark, graph)) else []
    notes += ["frame: true pair"] if truth is not None else []
    return draw_matrix(
        graph.names,
        scores if known else np.where(lags >= 0, 0.5, np.nan),
        ax,
        label="score" if known else "no score",
        texts=texts,
        framed=None if truth is None else true_pairs(truth, graph.names),
        limits=None if known else (0.0, 1.0),
        note="; ".join(notes),
    )
