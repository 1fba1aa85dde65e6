"""A graph in plain words: what was found, and what it does not prove."""

import unicodedata
from collections.abc import Iterable, Sequence

from causalformer.graph import CausalGraph, Edge
from causalformer.names import listed, printable_name

_TOLD = 4  # edges that are told one by one
_LONG = 40  # characters of a name in a sentence

TESTED_CAVEATS = (
    "An edge means: the past of one series helps to predict the other, beyond the past of all "
    "series measured here. That is evidence for a cause, not proof of one.",
    "Something unmeasured that drives two series at different delays looks like an edge from the "
    "earlier to the later one.",
    "Trends, breaks and seasons that series share make everything predict everything; remove them "
    "first.",
    "If the system moves faster than it was sampled, lagged edges fade, and contemporaneous "
    "links remain, whose direction is hard to tell.",
    "Two series that carry the same information hide one another: removing one costs nothing.",
    "No edge is no proof of absence: short or noisy series lose weak edges.",
)
PAPER_CAVEATS = (
    "This is the method of the CausalFormer paper. Its scores rank the causes of one effect; they "
    "are no probabilities, and nothing here says how many edges are false.",
    "Edges are the pairs whose score falls into the upper class of a k-means clustering, so every "
    "effect gets at least one cause, also if the data hold none.",
    "Something unmeasured that drives two series looks like an edge between them.",
    "The default method (no preset) tests every edge on held-out data.",
)


def shown_name(name: str, most: int | None = None) -> str:
    """Return a name for reading: on one line, never empty, right-to-left script kept apart.

    Examples
    --------
    >>> shown_name("flow"), shown_name(""), shown_name("temperature", 5)
    ('flow', '(no name)', 'temp…')
    """
    text = printable_name(name).strip() or "(no name)"
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        return f"\u2068{text}\u2069"
    return text


def delay(lag: int) -> str:
    """Say a lag.

    Examples
    --------
    >>> delay(0), delay(1), delay(3)
    ('within the slot', 'after 1 slot', 'after 3 slots')
    """
    if lag == 0:
        return "within the slot"
    return f"after {lag} slot" + "s" * (lag > 1)


def told(edge: Edge) -> str:
    """Say an edge.

    Examples
    --------
    >>> told(Edge("rain", "river", 2))
    'rain drives river after 2 slots'
    >>> told(Edge("rain", "river", 0, oriented=False))
    'rain and river move together within the slot'
    """
    cause, effect = (shown_name(name, _LONG) for name in (edge.cause, edge.effect))
    if not edge.oriented:
        return f"{cause} and {effect} move together {delay(edge.lag)}"
    return f"{cause} drives {effect} {delay(edge.lag)}"


def summary(graph: CausalGraph, alpha: float | None) -> list[str]:
    """Tell a graph in a few sentences, the strongest edges first, and which may be confounded.

    Parameters
    ----------
    graph : CausalGraph
        What was found.
    alpha : float, optional
        The tolerated share of false edges, if edges were tested.

    Examples
    --------
    >>> graph = CausalGraph(("a", "b", "c"), (Edge("a", "b", 2, 0.9), Edge("a", "a", 1, 0.5)))
    >>> for sentence in summary(graph, None):
    ...     print(sentence)
    a drives b after 2 slots.
    a depends on its own past.
    Nothing was found that drives c or is driven by it.
    """
    between = [edge for edge in graph if edge.kind != "self"]
    selves = [
        shown_name(name) for name in dict.fromkeys(e.cause for e in graph if e.kind == "self")
    ]
    sentences = [_between(between)]
    if selves:
        sentences.append(_memory(selves, len(graph.names)))
    linked = {name for edge in between for name in (edge.cause, edge.effect)}
    alone = _short(name for name in graph.names if name not in linked)
    if between and alone:
        it = "it" if len(alone) == 1 else "them"
        sentences.append(f"Nothing was found that drives {listed(alone)} or is driven by {it}.")
    confounded = dict.fromkeys(_arrow(edge) for edge in between if edge.may_be_confounded)
    if confounded:
        sentences.append(f"A hidden common driver may be behind {listed(confounded, most=_TOLD)}.")
    if alpha is not None and len(graph):
        sentences.append(
            f"At most about {100 * alpha:g}\u00a0% of the edges found this way should be false."
        )
    return sentences


def _arrow(edge: Edge) -> str:
    cause, effect = _short((edge.cause, edge.effect))
    return f"{cause} {'→' if edge.oriented else '—'} {effect}"


def _short(names: Iterable[str]) -> list[str]:
    return [shown_name(name, _LONG) for name in names]


def _memory(names: Sequence[str], n_series: int) -> str:
    if len(names) == n_series:
        return "Every series depends on its own past."
    if len(names) == 1:
        return f"{names[0]} depends on its own past."
    return f"{listed(names)} depend on their own past."


def _between(edges: Sequence[Edge]) -> str:
    if not edges:
        return "No series was found to drive another one."
    n_more = len(edges) - _TOLD
    more = f"; and {n_more} more edge{'s' * (n_more > 1)} between series" if n_more > 0 else ""
    return "; ".join(map(told, edges[:_TOLD])) + more + "."
