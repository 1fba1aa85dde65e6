"""What the page tells of the graphs of single recordings, and how far they agree."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from causalformer.report.numbers import number
from causalformer.report.words import shown_name

if TYPE_CHECKING:
    from causalformer.each import EachRecording
    from causalformer.graph import Edge


def recording_facts(each: "EachRecording", series: Mapping[str, int]) -> dict[str, Any]:
    """Give every graph and the agreement.

    An edge is ``[cause, effect, lag, oriented, may_be_confounded, strength, q]``.

    Parameters
    ----------
    each : EachRecording
        The graphs of single recordings.
    series : mapping of str to int
        The number of every series.

    Examples
    --------
    >>> from causalformer.each import EachRecording
    >>> from causalformer.graph import CausalGraph, Edge
    >>> graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, q_value=0.01),))
    >>> facts = recording_facts(EachRecording({"anna": graph}, {}), {"a": 0, "b": 1})
    >>> facts["graphs"], facts["agreement"]
    ([[[0, 1, 2, True, '', None, 0.01]]], [[0, 1, 2, 1]])
    """

    def told(edge: "Edge") -> list[Any]:
        known = (edge.oriented, edge.may_be_confounded, number(edge.strength), number(edge.q_value))
        return [series[edge.cause], series[edge.effect], edge.lag, *known]

    return {
        "names": [shown_name(name) for name in each.graphs],
        "graphs": [[told(edge) for edge in graph] for graph in each.graphs.values()],
        "agreement": [
            [series[row["cause"]], series[row["effect"]], row["lag"], row["recordings"]]
            for row in each.agreement().to_dict("records")
        ],
        "refused": [[shown_name(name), reason] for name, reason in each.refused.items()],
    }
