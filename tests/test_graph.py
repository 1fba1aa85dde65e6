"""The graph: validation, order, arrays, files."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given

from causalformer.errors import DataError, FileFormatError, OutputError, SettingsError
from causalformer.graph import CausalGraph, Edge
from fresh_interpreter import loaded_by
from graph_examples import DOUBT, HOSTILE, chain, doubtful, evident, graphs, ring

# -------------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("edge", "kind"),
    [
        (Edge("a", "a", 1), "self"),
        (Edge("a", "b", 0), "instantaneous"),
        (Edge("a", "b", 3), "lagged"),
    ],
)
def test_kind_follows_from_names_and_lag(edge, kind):
    assert edge.kind == kind


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", "b", -1), "negative"),
        (("a", "b", 1.0), "whole number"),
        (("a", "b", True), "whole number"),
        (("a", "b", "1"), "whole number"),
        (("a", "a", 0), "self edge"),
        ((0, "b", 1), "name"),
        (("a", None, 1), "name"),
        (("a", "b", 1, "high"), "score"),
        (("a", "b", 1, None), "score"),
    ],
)
def test_invalid_edges_are_refused(arguments, problem):
    with pytest.raises(DataError, match=problem):
        Edge(*arguments)


@pytest.mark.parametrize(
    ("lag", "evidence", "problem"),
    [
        (1, {"p_value": 1.5}, "p_value is 1.5, but must be between 0 and 1"),
        (1, {"q_value": -0.1}, "q_value is -0.1, but must be between 0 and 1"),
        (1, {"frequency": math.inf}, "frequency is inf, but must be between 0 and 1"),
        (1, {"strength": -1}, "strength is -1, but must be finite and at least 0"),
        (1, {"strength": math.inf}, "strength is inf, but must be finite"),
        (1, {"q_value": None}, "q_value must be a number, not None"),
        (1, {"strength": 10**400}, "strength must be a number"),
        (0, {"oriented": 0}, "oriented must be True or False, not 0"),
        (2, {"oriented": False}, "oriented is False at lag 2"),
        (2, {"may_be_confounded": True}, "may_be_confounded must be text, not True"),
        (2, {"may_be_confounded": None}, "may_be_confounded must be text, not None"),
    ],
)
def test_impossible_evidence_is_refused_by_edge_and_field(lag, evidence, problem):
    with pytest.raises(DataError, match=re.escape(f"edge 'a' -> 'b': {problem}")):
        Edge("a", "b", lag, **evidence)


def test_evidence_is_unknown_by_default_and_given_by_keyword_only():
    edge = Edge("a", "b", 0)
    assert edge.oriented
    for field in ("p_value", "q_value", "strength", "frequency"):
        assert math.isnan(getattr(edge, field))
        assert edge != Edge("a", "b", 0, **{field: 0.0})
    assert edge != Edge("a", "b", 0, oriented=False)
    assert edge.may_be_confounded == ""
    assert edge != Edge("a", "b", 0, may_be_confounded=DOUBT)
    with pytest.raises(TypeError):
        Edge("a", "b", 0, 0.5, 0.01)


def test_the_sentence_on_a_hidden_driver_is_one_printable_line():
    edge = Edge("a", "b", 1, may_be_confounded=np.str_(" two\nlines \x1b[31m \ud800 "))
    assert edge.may_be_confounded == r"two\x0alines \x1b[31m \ud800"
    assert type(edge.may_be_confounded) is str


def test_numpy_scalars_become_plain_numbers():
    edge = Edge(
        np.str_("a"), "b", np.int64(0), np.float32(0.5), q_value=np.float32(0), oriented=np.False_
    )
    values = (edge.cause, edge.lag, edge.score, edge.q_value, edge.oriented)
    assert [type(value) for value in values] == [str, int, float, float, bool]


def test_edges_with_unknown_scores_are_equal_and_hash_alike():
    one, other = Edge("a", "b", 1), Edge("a", "b", 1, float("nan"))
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != Edge("a", "b", 1, 0.0)
    assert one != "edge"


# -------------------------------------------------------------------- construction


def test_edges_are_sorted_strongest_first_and_unknown_scores_last():
    graph = CausalGraph(
        ("b", "a"),
        (
            Edge("a", "b", 2),
            Edge("a", "b", 1),
            Edge("b", "a", 1),
            Edge("a", "a", 1, 0.1),
            Edge("b", "b", 1, 0.7),
            Edge("b", "b", 2, math.inf),
        ),
    )
    assert [(e.cause, e.effect, e.lag) for e in graph] == [
        ("b", "b", 2),
        ("b", "b", 1),
        ("a", "a", 1),
        ("b", "a", 1),
        ("a", "b", 1),
        ("a", "b", 2),
    ]


@given(graphs())
def test_order_of_edges_given_does_not_matter(graph):
    again = CausalGraph(graph.names, tuple(reversed(graph.edges)))
    assert again == graph
    assert hash(again) == hash(graph)
    assert again.to_json() == graph.to_json()


@pytest.mark.parametrize(
    ("names", "edges", "problem"),
    [
        (("a", "b", "a"), (), "more than once: 'a'"),
        (("a",), (Edge("a", "z", 1),), "no series is called 'z'; series: 'a'"),
        (
            ("a", "b"),
            (Edge("a", "b", 1, 0.1), Edge("a", "b", 1, 0.2)),
            "twice: 'a' -> 'b' at lag 1",
        ),
        (
            ("a", "b"),
            (Edge("a", "b", 0, oriented=False), Edge("b", "a", 0, oriented=False)),
            "link given twice: 'b' -> 'a' within the slot, and back",
        ),
        (
            ("a", "b"),
            (Edge("a", "b", 0), Edge("b", "a", 0, oriented=False)),
            "a link without direction is one edge",
        ),
        (("a", 1), (), "must be text, not 1"),
        ("abc", (), "single text"),
        (("\ud800",), (), "UTF-8"),
        (("a", "b"), (("a", "b", 1),), "Edge objects"),
    ],
)
def test_inconsistent_graphs_are_refused_by_name(names, edges, problem):
    with pytest.raises(DataError, match=re.escape(problem)):
        CausalGraph(names, edges)


def test_several_lags_per_pair_are_allowed():
    assert len(CausalGraph(("a", "b"), (Edge("a", "b", 1), Edge("a", "b", 2)))) == 2


def test_an_empty_graph_is_usable():
    graph = CausalGraph(())
    assert len(graph) == 0
    assert bool(graph)
    assert list(graph.to_frame().columns) == ["cause", "effect", "lag", "kind", "score"]
    assert graph.to_array().shape == (0, 0, 1)
    assert graph.summary().shape == (0, 0)
    assert CausalGraph.from_json(graph.to_json()) == graph


def test_metadata_is_a_copy_in_plain_types():
    settings = {"alpha": np.float64(0.01), "lags": [1, 2], "nested": {"x": None}}
    graph = chain(metadata=settings)
    settings["lags"].append(3)
    settings["nested"]["x"] = 1
    assert graph.metadata == {"alpha": 0.01, "lags": [1, 2], "nested": {"x": None}}
    assert type(graph.metadata["alpha"]) is float


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"loss": math.nan}, "metadata['loss'] is nan"),
        ({"x": [1, {2: 3}]}, "metadata['x'][1]: key 2"),
        ({"x": ["\ud800"]}, "metadata['x'][0] is '\\ud800'"),
        ({"\ud800": 1}, "metadata: key"),
        ({"x": object()}, "metadata['x'] is of type object"),
        ([1], "must be a mapping"),
    ],
)
def test_metadata_that_json_cannot_hold_is_refused(metadata, where):
    with pytest.raises(DataError, match=re.escape(where)):
        chain(metadata=metadata)


def test_graphs_can_be_pickled_and_copied():
    graph = chain(metadata={"nested": {"list": [1, [2]]}})
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert copy.deepcopy(graph) == graph
    assert graph != chain()


def test_text_forms_are_short():
    assert repr(chain()) == "CausalGraph(3 series, 3 edges)"
    assert str(chain()).splitlines()[1:] == [
        "  b → c (lag 2, score 0.9)",
        "  a → b (lag 1, score 0.5)",
        "  c → c (lag 1)",
    ]
    large = CausalGraph(("a", "b"), tuple(Edge("a", "b", lag) for lag in range(30)))
    assert str(large).endswith("... and 10 more")
    assert str(evident()).splitlines()[1:] == [
        "  a → b (lag 2, score 0.9, q 0.003)",
        "  b — c (lag 0, score 0.5, q 0.04)",
        "  c → c (lag 1, score 0.1)",
    ]
    assert str(doubtful()).splitlines()[1:3] == [
        "  a → b (lag 2, score 0.9, q 0.003, may be confounded)",
        "  b — c (lag 0, score 0.5, may be confounded)",
    ]


def test_repr_leaves_out_unknown_evidence():
    assert repr(Edge("a", "b", 1, 0.5)) == "Edge(cause='a', effect='b', lag=1, score=0.5)"
    for edge in (*evident(), *doubtful()):
        assert eval(repr(edge)) == edge


# -------------------------------------------------------------------- arrays


def test_from_arrays_reads_cause_first():
    graph = CausalGraph.from_arrays(
        ["a", "b"], [[True, True], [False, False]], [[1, 2], [-1, -1]], [[0.3, 0.6], [9, 9]]
    )
    assert graph.edges == (Edge("a", "b", 2, 0.6), Edge("a", "a", 1, 0.3))


def test_from_arrays_reads_evidence_where_there_is_an_edge():
    nan = math.nan
    graph = CausalGraph.from_arrays(
        ["a", "b"],
        [[1, 1], [0, 0]],
        [[1, 0], [-1, -1]],
        evidence={
            "p_value": [[0.1, 0.01], [9, nan]],
            "q_value": [[nan, 0.02], [9, nan]],
            "strength": [[0.3, 0.4], [-9, nan]],
            "frequency": [[1, 0.5], [9, nan]],
            "oriented": [[True, False], [False, False]],
            "may_be_confounded": [["", DOUBT], [None, nan]],
        },
    )
    known = {"p_value": 0.01, "q_value": 0.02, "strength": 0.4, "frequency": 0.5}
    assert graph.edges == (
        Edge("a", "a", 1, p_value=0.1, strength=0.3, frequency=1),
        Edge("a", "b", 0, **known, oriented=False, may_be_confounded=DOUBT),
    )


@pytest.mark.parametrize(
    ("evidence", "problem"),
    [
        ({"z_value": [[0]]}, "no evidence called 'z_value'; choose from p_value, q_value"),
        ({"q_value": [[0]]}, "q_value has shape (1, 1), not (2, 2)"),
        ({"oriented": [[1, math.nan], [1, 1]]}, "oriented must hold only 0 and 1"),
        ({"oriented": [[1, 0], [1, 1]]}, "'a' -> 'b': oriented is False at lag 1"),
        ({"q_value": [[0, 2], [0, 0]]}, "'a' -> 'b': q_value is 2"),
        ({"may_be_confounded": [["", ""]]}, "may_be_confounded has shape (1, 2), not (2, 2)"),
        ({"may_be_confounded": [["", 1], ["", ""]]}, "may_be_confounded must be text, not 1"),
    ],
)
def test_from_arrays_refuses_evidence_that_does_not_fit(evidence, problem):
    with pytest.raises(DataError, match=re.escape(problem)):
        CausalGraph.from_arrays(["a", "b"], [[0, 1], [0, 0]], [[0, 1], [0, 0]], evidence=evidence)


@pytest.mark.parametrize(
    ("adjacency", "lag", "scores", "problem"),
    [
        ([[0, 1]], [[1, 1], [1, 1]], None, r"adjacency has shape \(1, 2\), not \(2, 2\)"),
        ([[0, 1], [0, 0]], [1], None, "lag has shape"),
        ([[0, 1], [0, 0]], [[0, 1], [0, 0]], [[1]], "scores has shape"),
        ([[0, 2], [0, 0]], [[0, 1], [0, 0]], None, "only 0 and 1"),
        ([[0, math.nan], [0, 0]], [[0, 1], [0, 0]], None, "only 0 and 1"),
        ([[0, 1], [0, 0]], [[0, -1], [0, 0]], None, "'a' -> 'b': lag -1 is negative"),
        ([[0, 1], [0, 0]], [[0, 1.5], [0, 0]], None, "'a' -> 'b' is no whole number"),
        ([[0, 1], [0, 0]], [[0, math.inf], [0, 0]], None, "'a' -> 'b' is no whole number"),
        ([["x", 1], [0, 0]], [[0, 1], [0, 0]], None, "numbers only"),
        ([[1, 0], [0, 0]], [[0, 0], [0, 0]], None, "self edge"),
    ],
)
def test_from_arrays_refuses_what_does_not_fit(adjacency, lag, scores, problem):
    with pytest.raises(DataError, match=problem):
        CausalGraph.from_arrays(["a", "b"], adjacency, lag, scores)


def test_from_array_refuses_nan_and_wrong_shapes():
    with pytest.raises(DataError, match="NaN"):
        CausalGraph.from_array(["a"], [[[0, math.nan]]])
    with pytest.raises(DataError, match=r"\(2, 2, any\) = \(cause, effect, lag\)"):
        CausalGraph.from_array(["a", "b"], np.zeros((2, 2)))
    with pytest.raises(DataError, match="self edge"):
        CausalGraph.from_array(["a"], [[[1, 0]]])


@given(graphs())
def test_array_round_trip_keeps_every_edge_and_every_score(graph):
    back = CausalGraph.from_array(graph.names, graph.to_array())
    before = {(e.cause, e.effect, e.lag): e.score for e in graph}
    after = {(e.cause, e.effect, e.lag): e.score for e in back}
    assert before.keys() == after.keys()
    for key, score in before.items():
        expected = 1.0 if math.isnan(score) else score or np.finfo(float).tiny
        assert after[key] == expected


@given(graphs())
def test_matrices_agree_with_the_edges(graph):
    summary, lags = graph.summary(), graph.lags()
    for i, cause in enumerate(graph.names):
        for j, effect in enumerate(graph.names):
            edges = [e for e in graph if (e.cause, e.effect) == (cause, effect)]
            assert summary[i, j] == bool(edges)
            assert lags[i, j] == (edges[0].lag if edges else -1)


def test_to_array_takes_a_longer_lag_axis_but_no_shorter_one():
    assert chain().to_array(max_lag=5).shape == (3, 3, 6)
    with pytest.raises(SettingsError, match="max_lag is 1, but the graph has an edge of lag 2"):
        chain().to_array(max_lag=1)


def test_tigramite_marks_tell_what_is_unknown_both_ways():
    marks = doubtful().to_tigramite()
    assert marks.shape == (3, 3, 3)
    assert marks[0, 1].tolist() == ["", "", "o->"]
    assert marks[1, 2, 0] == marks[2, 1, 0] == "o-o"
    assert marks[2, 2].tolist() == ["", "-->", ""]
    assert (marks != "").sum() == 4
    edges = (Edge("a", "b", 0), Edge("b", "c", 0, may_be_confounded=DOUBT))
    within = CausalGraph(("a", "b", "c"), edges).to_tigramite(max_lag=1)
    assert within[..., 0].tolist() == [["", "-->", ""], ["<--", "", "o->"], ["", "<-o", ""]]
    assert not within[..., 1].any()
    both_ways = CausalGraph(("a", "b"), (Edge("a", "b", 0), Edge("b", "a", 0))).to_tigramite()
    assert both_ways[..., 0].tolist() == [["", "x-x"], ["x-x", ""]]


@given(graphs())
def test_tigramite_marks_are_where_the_edges_are(graph):
    marks, array = graph.to_tigramite(), graph.to_array()
    assert ((marks != "") == (array != 0))[..., 1:].all()
    within = (array != 0)[..., 0]
    assert ((marks != "")[..., 0] == within | within.T).all()


def test_a_link_without_direction_has_one_entry_in_matrices():
    graph = doubtful()
    assert graph.summary().sum() == len(graph)
    assert (graph.to_array() != 0).sum() == len(graph)


# -------------------------------------------------------------------- exports


def test_frame_is_tidy_and_typed():
    frame = chain().to_frame()
    assert list(frame.columns) == ["cause", "effect", "lag", "kind", "score"]
    assert frame.iloc[0].tolist() == ["b", "c", 2, "lagged", 0.9]
    assert frame["lag"].dtype == np.int64
    assert frame["score"].dtype == np.float64


@pytest.mark.parametrize(
    ("lag", "evidence", "columns"),
    [
        (0, {}, []),
        (1, {"p_value": 0.5}, ["p_value", "q_value", "strength"]),
        (1, {"strength": 0.5}, ["p_value", "q_value", "strength"]),
        (1, {"frequency": 0.5}, ["frequency"]),
        (0, {"frequency": 0.5}, ["frequency", "oriented"]),
        (0, {"oriented": False}, ["oriented"]),
        (0, {"q_value": 0.5}, ["p_value", "q_value", "strength", "oriented"]),
        (1, {"may_be_confounded": DOUBT}, ["may_be_confounded"]),
        (0, {"may_be_confounded": DOUBT}, ["oriented", "may_be_confounded"]),
    ],
)
def test_frame_has_columns_for_the_evidence_there_is(lag, evidence, columns):
    edges = (Edge("a", "b", lag, **evidence), Edge("b", "a", 1))
    frame = CausalGraph(("a", "b"), edges).to_frame()
    assert list(frame.columns) == ["cause", "effect", "lag", "kind", "score", *columns]
    types = {"oriented": np.bool_, "may_be_confounded": frame["cause"].dtype}
    for name in columns:
        assert frame[name].dtype == types.get(name, np.float64)
        assert frame[name][0] == evidence.get(name, True) or np.isnan(frame[name][0])


def test_networkx_knows_isolated_series_and_all_lags():
    graph = CausalGraph(("a", "b", "lonely"), (Edge("a", "b", 0, 0.1), Edge("a", "b", 2, 0.2)))
    exported = graph.to_networkx()
    assert list(exported.nodes) == ["a", "b", "lonely"]
    assert set(exported["a"]["b"]) == {0, 2}
    assert exported.edges["a", "b", 0] == {"lag": 0, "kind": "instantaneous", "score": 0.1}


@given(graphs())
def test_networkx_has_the_columns_of_the_frame(graph):
    exported = graph.to_networkx()
    for row in graph.to_frame().to_dict("records"):
        cause, effect = row.pop("cause"), row.pop("effect")
        np.testing.assert_equal(exported.edges[cause, effect, row["lag"]], row)


# -------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", [".json", ".csv", ".graphml", ".dot", ".JSON"])
def test_save_picks_the_format_by_suffix(tmp_path, suffix):
    graph = ring(HOSTILE)
    path = graph.save(tmp_path / "new folder" / f"graph{suffix}")
    expected = getattr(graph, f"to_{suffix[1:].lower()}")()
    assert path.read_bytes().decode() == expected
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_save_refuses_unknown_formats_and_places(tmp_path):
    with pytest.raises(SettingsError, match=r"\.json, \.csv, \.graphml, \.dot, \.png, \.svg"):
        chain().save(tmp_path / "graph.xlsx")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(OutputError, match=r"folder\.json"):
        chain().save(tmp_path / "folder.json")


def test_load_reads_what_save_wrote_and_names_the_file_otherwise(tmp_path):
    graph = ring(HOSTILE)
    assert CausalGraph.load(graph.save(tmp_path / "g.json")) == graph
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    for name, problem in [("binary.json", "UTF-8"), ("missing.json", "No such file")]:
        with pytest.raises(FileFormatError, match=rf"{re.escape(name)}: .*{problem}"):
            CausalGraph.load(tmp_path / name)


# -------------------------------------------------------------------- start-up


def test_importing_graph_and_metrics_loads_nothing_heavy():
    heavy = {"torch", "pandas", "matplotlib", "networkx", "rich", "sklearn", "scipy"}
    assert not heavy & loaded_by(
        "import causalformer.graph, causalformer.metrics, causalformer.plot, causalformer.truth"
    )
