"""Evidence as a matrix, cause × effect: of the edges alone, or of all pairs of a fitted model."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph
from causalformer.names import did_you_mean
from causalformer.plot.matrix import draw_matrix
from causalformer.plot.network import check_truth
from causalformer.plot.style import short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

EVIDENCE: Final = ("score", "p_value", "q_value", "strength", "frequency")
_CLEAR = 10.0  # -log10 of a p-value below which nobody asks how small it is


def draw_scores(
    graph: CausalGraph,
    ax: "Axes | None" = None,
    *,
    evidence: str = "score",
    matrices: Mapping[str, ArrayLike] | None = None,
    truth: CausalGraph | None = None,
    alpha: float | None = None,
) -> "Axes":
    """Draw a number of every edge as a matrix; p- and q-values on the scale of ``-log10``.

    Parameters
    ----------
    graph : CausalGraph
        The edges.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure that pyplot does not know.
    evidence : str
        ``"score"``, ``"p_value"``, ``"q_value"``, ``"strength"``, ``"frequency"``, or a name in
        `matrices`.
    matrices : mapping of str to array ``[cause, effect]``, optional
        Numbers of all pairs, by name; pairs with an edge then have a dot.
    truth : CausalGraph, optional
        The true graph; its pairs have a frame.
    alpha : float, optional
        A level to mark on the scale of p- and q-values.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    SettingsError
        If there is no such evidence.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> graph = CausalGraph(("rain", "river"), (Edge("rain", "river", 2, p_value=0.001),))
    >>> [text.get_text() for text in draw_scores(graph, evidence="p_value").texts]
    ['.001']
    """
    check_truth(graph, truth)
    values, is_full = _values(graph, evidence, matrices or {})
    present = graph.summary()
    is_p = evidence.endswith(("p_value", "q_value"))
    if is_full:
        texts = np.where(present, "•", "").tolist()
    else:
        texts = [[short_number(v) if v == v else "" for v in row] for row in values.tolist()]
    shown, label = (
        (_rarity(values), _rarity_label(evidence)) if is_p else (values, _words(evidence))
    )
    finite = shown[np.isfinite(shown)]
    top = min(_CLEAR, max(2.0, *finite)) if is_p and finite.size else None
    notes = ["• edge"] if is_full else []
    notes += ["frame: true pair"] if truth is not None else []
    return draw_matrix(
        graph.names,
        shown,
        ax,
        label=label,
        texts=texts,
        framed=None if truth is None else true_pairs(truth, graph.names),
        limits=None if top is None else (0.0, top),
        mark=None if alpha is None or not is_p else (-math.log10(alpha), f"α = {alpha:g}"),
        note="; ".join(notes),
    )


def edge_matrix(graph: CausalGraph, evidence: str) -> FloatArray:
    """Return a number of the strongest edge of every pair, ``[cause, effect]``, else NaN.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> edge_matrix(CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)), "score")
    array([[nan, 0.5], [nan, nan]])
    """
    number = {name: i for i, name in enumerate(graph.names)}
    matrix = np.full((len(number), len(number)), np.nan)
    for edge in reversed(graph.edges):
        matrix[number[edge.cause], number[edge.effect]] = getattr(edge, evidence)
    return matrix


def true_pairs(truth: CausalGraph, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which pairs a truth links, in the order of ``names``."""
    at = [truth.names.index(name) for name in names]
    return truth.summary()[np.ix_(at, at)]


def _values(
    graph: CausalGraph, evidence: str, matrices: Mapping[str, ArrayLike]
) -> tuple[FloatArray, bool]:
    """Find the matrix of that name, and say whether it is of all pairs."""
    shape = (len(graph.names), len(graph.names))
    full = {name: np.asarray(m, dtype=np.float64) for name, m in matrices.items()}
    full = {name: matrix for name, matrix in full.items() if matrix.shape == shape}
    if evidence in full:
        return full[evidence], True
    choices = tuple(dict.fromkeys((*full, *EVIDENCE)))
    if evidence not in EVIDENCE:
        raise SettingsError(
            f"there is no evidence called {evidence!r};{did_you_mean(evidence, choices)} "
            f"choose from {', '.join(choices)}"
        )
    values = edge_matrix(graph, evidence)
    if len(graph) and np.isnan(values).all():
        raise SettingsError(f"the edges of this graph have no {evidence}; choose another evidence")
    return values, False


def _rarity(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.abs(np.log10(p)))


def _rarity_label(evidence: str) -> str:
    letter = evidence.removesuffix("_value")[-1]
    rest = _words(evidence.removesuffix(f"{letter}_value"))
    return rf"$-\log_{{10}}\,{letter}$" + (f", {rest.strip()}" if rest else "")


def _words(name: str) -> str:
    return name.replace("_", " ").strip()
