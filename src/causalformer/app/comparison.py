"""Two graphs side by side: which edges both have, and which only one of them."""

import math
from typing import Any

from causalformer.graph import CausalGraph, Edge

Pair = tuple[str, str, str]


def compare_graphs(a: CausalGraph, b: CausalGraph) -> list[dict[str, Any]]:
    """Pair the edges of two graphs by cause and effect; contemporaneous ones on their own.

    A link without direction in one of the graphs is paired with that of the same two series in the
    other, whichever way it was written.

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
    mine = _by_pair(a)
    other = {_as_in(mine, pair, edge): edge for pair, edge in _by_pair(b).items()}
    rows = [
        {
            "cause": cause,
            "effect": effect,
            "kind": kind,
            "a": _facts(mine.get((cause, effect, kind))),
            "b": _facts(other.get((cause, effect, kind))),
        }
        for cause, effect, kind in dict.fromkeys([*mine, *other])
    ]
    return sorted(rows, key=lambda row: (not (row["a"] and row["b"]), not row["a"]))


def _as_in(pairs: dict[Pair, Edge], pair: Pair, edge: Edge) -> Pair:
    """Turn a pair round if that is how `pairs` has it and one of the two has no direction."""
    cause, effect, kind = pair
    turned = pairs.get((effect, cause, kind))
    if pair in pairs or turned is None or (edge.oriented and turned.oriented):
        return pair
    return effect, cause, kind


def _by_pair(graph: CausalGraph) -> dict[Pair, Edge]:
    """Take the strongest edge of each pair; the graph has them in that order."""
    pairs: dict[Pair, Edge] = {}
    for edge in graph:
        pairs.setdefault((edge.cause, edge.effect, edge.kind), edge)
    return pairs


def _facts(edge: Edge | None) -> dict[str, Any] | None:
    if edge is None:
        return None
    values = {name: getattr(edge, name) for name in ("lag", "score", "q_value", "strength")}
    numbers = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return numbers | {"oriented": edge.oriented, "may_be_confounded": edge.may_be_confounded}
