"""Two graphs side by side."""

from causalformer.app.comparison import compare_graphs
from causalformer.graph import CausalGraph, Edge


def test_edges_are_paired_by_cause_effect_and_kind():
    a = CausalGraph(("x", "y"), (Edge("x", "y", 1, 3.0), Edge("x", "y", 2, 9.0), Edge("y", "y", 1)))
    b = CausalGraph(("x", "y", "z"), (Edge("x", "y", 0, 1.0), Edge("x", "y", 3), Edge("z", "x", 1)))
    rows = compare_graphs(a, b)
    found = [(r["cause"], r["effect"], r["kind"], bool(r["a"]), bool(r["b"])) for r in rows]
    assert found == [
        ("x", "y", "lagged", True, True),
        ("y", "y", "self", True, False),
        ("x", "y", "instantaneous", False, True),
        ("z", "x", "lagged", False, True),
    ]
    assert (rows[0]["a"]["lag"], rows[0]["b"]["lag"]) == (2, 3)  # the strongest of several
    assert rows[0]["b"]["score"] is None


def test_a_link_without_direction_is_the_same_link_either_way():
    a = CausalGraph(("x", "y"), (Edge("x", "y", 0, oriented=False),))
    doubtful = Edge("y", "x", 0, may_be_confounded="z precedes both")
    (row,) = compare_graphs(a, CausalGraph(("x", "y"), (doubtful,)))
    assert (row["cause"], row["effect"]) == ("x", "y")
    assert (row["a"]["oriented"], row["b"]["oriented"]) == (False, True)
    assert (row["a"]["may_be_confounded"], row["b"]["may_be_confounded"]) == (
        *("", "z precedes both"),
    )
    oriented = CausalGraph(("x", "y"), (Edge("x", "y", 0),))
    assert len(compare_graphs(oriented, CausalGraph(("x", "y"), (doubtful,)))) == 2


def test_graphs_without_edges_have_nothing_to_compare():
    empty = CausalGraph(("x",), ())
    assert compare_graphs(empty, empty) == []
