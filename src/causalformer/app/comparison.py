"""Two graphs side by side: which edges both have, and which only one of them."""

import math
from typing import Any

from causalformer.graph import CausalGraph, Edge


def compare_graphs(a: CausalGraph, b: CausalGraph) -> list[dict[str, Any]]:
    """Pair the edges of two graphs by cause and effect; edges within a slot are pairs of their own.

    Returns
    -------
    list of dict
        One per pair: cause, effect, kind, and the edge of each graph or None; those in both first.

    Examples
    --------
    >>> a = CausalGraph(("x", "y"), (Edge("x", "y", 1), Edge("x", "x", 1)))
    >>> b = CausalGraph(("x", "y"), (Edge("x", "y", 2),))
    >>> for row in compare_graphs(a, b):
    ...     print(row["effect"], row["a"]["lag"], row["b"] and row["b"]["lag"])
    y 1 2
    x 1 None
    """
    mine, other = _by_pair(a), _by_pair(b)
    rows = [
        {
            "cause": cause,
            "effect": effect,
            "kind": kind,
            "a": _numbers(mine.get((cause, effect, kind))),
            "b": _numbers(other.get((cause, effect, kind))),
        }
        for cause, effect, kind in dict.fromkeys([*mine, *other])
    ]
    return sorted(rows, key=lambda row: (not (row["a"] and row["b"]), not row["a"]))


def _by_pair(graph: CausalGraph) -> dict[tuple[str, str, str], Edge]:
    """Take the strongest edge of each pair; the graph has them in that order."""
    pairs: dict[tuple[str, str, str], Edge] = {}
    for edge in graph:
        pairs.setdefault((edge.cause, edge.effect, edge.kind), edge)
    return pairs


def _numbers(edge: Edge | None) -> dict[str, Any] | None:
    if edge is None:
        return None
    values = {name: getattr(edge, name) for name in ("lag", "score", "q_value", "strength")}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
