"""The graph: validation, order, exports that survive hostile names, truth files."""

import copy
import csv
import io
import json
import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from causalformer.errors import DataError, FileFormatError, OutputError, SettingsError
from causalformer.graph import CausalGraph, Edge, printable_name, read_truth

HOSTILE = (
    "<script>alert('x')</script>",
    'quote " and \\ backslash',
    "emoji 😀👩‍👩‍👧",
    "two\nlines",
    "carriage\rreturn\r\n",
    "tab\tand nul\x00 and bell\x07",
    "\\x00",
    "\x1b[31mred\x1b[0m",
    "=1+1",
    "comma, semicolon;",
    "$\\frac{1}{0$ {braces} %s",
    "&amp; & &lt;",
    "[bold]markup[/bold]",
    "\u2028line separator\x85\x1c",
    "\ufffe\uffff",
    "]]> -- -->",
    " padded ",
    "",
)


def chain(names=("a", "b", "c"), **kwargs):
    a, b, c = names
    return CausalGraph(names, (Edge(a, b, 1, 0.5), Edge(b, c, 2, 0.9), Edge(c, c, 1)), **kwargs)


def ring(names, score=math.nan):
    """Every series drives the next one, at growing lags."""
    return CausalGraph(
        tuple(names),
        tuple(Edge(name, names[i - 1], i + 1, score) for i, name in enumerate(names)),
    )


few = settings(max_examples=30, deadline=None)


@st.composite
def graphs(draw, alphabet=None):
    text = st.text(alphabet, max_size=6) if alphabet else st.text(max_size=6)
    names = tuple(draw(st.lists(text, min_size=1, max_size=5, unique=True)))
    triple = st.tuples(st.sampled_from(names), st.sampled_from(names), st.integers(0, 4))
    triples = draw(st.lists(triple, max_size=10, unique=True))
    edges = [Edge(c, e, lag, draw(st.floats())) for c, e, lag in triples if c != e or lag > 0]
    return CausalGraph(names, tuple(edges))


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


def test_numpy_scalars_become_plain_numbers():
    edge = Edge(np.str_("a"), "b", np.int64(2), np.float32(0.5))
    assert [type(value) for value in (edge.cause, edge.lag, edge.score)] == [str, int, float]


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


@few
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


def test_metadata_is_a_read_only_copy():
    settings_ = {"alpha": np.float64(0.01), "lags": [1, 2], "nested": {"x": None}}
    graph = chain(metadata=settings_)
    settings_["lags"].append(3)
    assert graph.metadata["lags"] == (1, 2)
    assert type(graph.metadata["alpha"]) is float
    with pytest.raises(TypeError):
        graph.metadata["alpha"] = 1
    with pytest.raises(TypeError):
        graph.metadata["nested"]["x"] = 1


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


# -------------------------------------------------------------------- arrays


def test_from_arrays_reads_cause_first():
    graph = CausalGraph.from_arrays(
        ["a", "b"], [[True, True], [False, False]], [[1, 2], [-1, -1]], [[0.3, 0.6], [9, 9]]
    )
    assert graph.edges == (Edge("a", "b", 2, 0.6), Edge("a", "a", 1, 0.3))


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


@few
@given(graphs())
def test_array_round_trip_keeps_every_edge_and_every_score(graph):
    back = CausalGraph.from_array(graph.names, graph.to_array())
    before = {(e.cause, e.effect, e.lag): e.score for e in graph}
    after = {(e.cause, e.effect, e.lag): e.score for e in back}
    assert before.keys() == after.keys()
    for key, score in before.items():
        expected = 1.0 if math.isnan(score) else score or np.finfo(float).tiny
        assert after[key] == expected


@few
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


# -------------------------------------------------------------------- exports


def test_frame_is_tidy_and_typed():
    frame = chain().to_frame()
    assert list(frame.columns) == ["cause", "effect", "lag", "kind", "score"]
    assert frame.iloc[0].tolist() == ["b", "c", 2, "lagged", 0.9]
    assert frame["lag"].dtype == np.int64
    assert frame["score"].dtype == np.float64


def test_networkx_knows_isolated_series_and_all_lags():
    graph = CausalGraph(("a", "b", "lonely"), (Edge("a", "b", 0, 0.1), Edge("a", "b", 2, 0.2)))
    exported = graph.to_networkx()
    assert list(exported.nodes) == ["a", "b", "lonely"]
    assert set(exported["a"]["b"]) == {0, 2}
    assert exported.edges["a", "b", 0] == {"lag": 0, "kind": "instantaneous", "score": 0.1}


@few
@given(graphs())
def test_json_round_trip_for_any_names_and_scores(graph):
    assert CausalGraph.from_json(graph.to_json()) == graph


def test_json_is_strict_and_documented():
    text = CausalGraph(("a", "b"), (Edge("a", "b", 1), Edge("a", "b", 2, math.inf))).to_json()
    content = json.loads(text, parse_constant=pytest.fail)
    assert content == {
        "format": "causalformer-graph",
        "version": 1,
        "names": ["a", "b"],
        "edges": [
            {"cause": "a", "effect": "b", "lag": 2, "score": "inf"},
            {"cause": "a", "effect": "b", "lag": 1, "score": None},
        ],
        "metadata": {},
    }


def altered(**changes):
    return json.dumps({**json.loads(chain().to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no valid JSON"),
        (chain().to_json()[:-20], "no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        (altered(metadata={"x": math.nan}), "NaN is no JSON"),
        ("[]", "not a causal graph"),
        ('{"format": "other"}', "not a causal graph"),
        (altered(version=2), "version 2, but this release reads versions up to 1; update"),
        (altered(version="1"), "version is '1'"),
        (altered(version=0), "version is 0"),
        (altered(names="abc"), "must be lists"),
        (altered(edges={}), "must be lists"),
        (altered(names=["a"]), "no series is called 'b'"),
        (altered(names=[["a"]]), "must be text"),
        (altered(edges=[1]), "must be an object"),
        (altered(edges=[{"cause": "a"}]), "lacks effect, lag"),
        (altered(edges=[{"cause": "a", "effect": "b", "lag": 1.5}]), "whole number"),
        (altered(edges=[{"cause": "a", "effect": "b", "lag": 1, "score": "nan"}]), "no number"),
        (altered(edges=[{"cause": "a", "effect": "b", "lag": 1, "score": [1]}]), "score"),
        (altered(edges=[{"cause": "a", "effect": "b", "lag": 1, "score": 10**400}]), "score"),
        (altered(metadata=[]), "mapping"),
    ],
)
def test_foreign_damaged_and_newer_json_is_refused(text, problem):
    with pytest.raises(FileFormatError, match=re.escape(problem)):
        CausalGraph.from_json(text)


def test_unknown_fields_of_later_releases_are_ignored():
    content = json.loads(chain().to_json())
    content["later"] = 1
    content["edges"][0]["q_value"] = 0.01
    assert CausalGraph.from_json(json.dumps(content)) == chain()


def test_hostile_names_survive_json_csv_frame_and_networkx():
    graph = ring(HOSTILE)
    assert CausalGraph.from_json(graph.to_json()) == graph
    rows = list(csv.reader(io.StringIO(graph.to_csv(), newline="")))
    assert [tuple(row[:3]) for row in rows[1:]] == [(e.cause, e.effect, str(e.lag)) for e in graph]
    assert graph.to_frame()["cause"].tolist() == [e.cause for e in graph]
    assert tuple(graph.to_networkx().nodes) == HOSTILE


def unescaped(name):
    """Undo the documented escapes of GraphML."""
    return re.sub(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})", lambda m: chr(int(m[1] or m[2], 16)), name)


def check_graphml(graph):
    back = nx.read_graphml(io.BytesIO(graph.to_graphml().encode()), force_multigraph=True)
    assert [unescaped(node) for node in back.nodes] == list(graph.names)
    edges = {
        (unescaped(c), unescaped(e), data["lag"], data["kind"], data.get("score"))
        for c, e, data in back.edges(data=True)
    }
    assert edges == {
        (e.cause, e.effect, e.lag, e.kind, None if math.isnan(e.score) else e.score) for e in graph
    }


@few
@given(graphs())
def test_graphml_round_trip_for_any_names(graph):
    check_graphml(graph)


@few
@given(graphs(alphabet="\\x0u5c\x00"))
def test_graphml_escapes_never_collide(graph):
    check_graphml(graph)


def test_graphml_keeps_legal_names_as_they_are_and_has_unique_edge_ids():
    names = tuple(
        n for n in HOSTILE if not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\ufffe\uffff]", n)
    )
    names = tuple(n for n in names if n != "\\x00")
    back = nx.read_graphml(io.BytesIO(ring(names).to_graphml().encode()))
    assert tuple(back.nodes) == names
    check_graphml(ring(HOSTILE, score=0.5))
    ids = re.findall(r'<edge [^>]*id="(e\d+)"', ring(HOSTILE).to_graphml())
    assert len(set(ids)) == len(HOSTILE)


def test_dot_escapes_names_and_dashes_instantaneous_edges():
    graph = CausalGraph(('a"]; b [x="', "l\n\\N&lt;\x00"), ())
    assert graph.to_dot().splitlines()[1:3] == [
        r'  n0 [label="a\"]; b [x=\""];',
        r'  n1 [label="l\n\\N&amp;lt;\\x00"];',
    ]
    dashed = CausalGraph(("a", "b"), (Edge("a", "b", 0),)).to_dot()
    assert 'n0 -> n1 [label="0", style=dashed];' in dashed
    text = ring(HOSTILE).to_dot()
    assert len(text.rstrip("\n").split("\n")) == 2 + 2 * len(HOSTILE)  # a line per statement
    strings = r'"(?:[^"\\]|\\.)*"'
    assert '"' not in re.sub(strings, "", text)


def test_csv_leaves_unknown_scores_empty():
    assert chain().to_csv().splitlines() == [
        "cause,effect,lag,kind,score",
        "b,c,2,lagged,0.9",
        "a,b,1,lagged,0.5",
        "c,c,1,self,",
    ]


# -------------------------------------------------------------------- files, terminal


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


def printed(table):
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    console.print(table)
    return console.file.getvalue()


def test_table_shows_the_strongest_edges_and_says_how_many_there_are():
    text = printed(chain().table(limit=2))
    assert text.index("b → c") < text.index("a → b")
    assert "c → c" not in text
    assert "2 of 3 edges" in text
    assert "–" in printed(chain().table())


def test_table_shows_hostile_names_without_obeying_them():
    text = printed(ring(HOSTILE).table())
    assert "[bold]markup[/bold]" in text
    assert "\x1b" not in text
    assert r"\x1b[31mred" in text
    assert printable_name("a\u202eb") == r"a\u202eb"


# -------------------------------------------------------------------- truth files


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "truth.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "0,0,1\n0,1,2\n",
        "\ufeff0,0,1\r\n0,1,2",
        " 0 , 0 , 1\n\n 0,1, 2\n",
        "cause,effect,lag\n0,0,1\n0,1,2\n",
        "x,x,1\nx,y,2\n",
        "cause,effect,lag,kind,score\nx,y,2,lagged,0.5\nx,x,1,self,\n",
        "Lag, Effect, Cause\n2,y,x\n1,x,x\n",
    ],
)
def test_truth_files_of_every_form(tmp_path, text):
    graph = read_truth(written(tmp_path, text), ["x", "y"])
    assert graph == CausalGraph(("x", "y"), (Edge("x", "x", 1), Edge("x", "y", 2)))


def test_truth_without_names_counts_the_columns(tmp_path):
    graph = read_truth(written(tmp_path, "0,3,1\n"))
    assert graph.names == ("0", "1", "2", "3")
    named = read_truth(written(tmp_path, "cause,effect\nrain,river\n"))
    assert named == CausalGraph(("rain", "river"), (Edge("rain", "river", 1),))


def test_truth_can_be_reversed(tmp_path):
    path = written(tmp_path, "0,1,2\n")
    assert read_truth(path, ["x", "y"], reverse=True).edges == (Edge("y", "x", 2),)


def test_numbers_win_without_header_and_names_with_header(tmp_path):
    names = ["1", "0"]
    assert read_truth(written(tmp_path, "0,1,1\n"), names).edges == (Edge("1", "0", 1),)
    with_header = written(tmp_path, "cause,effect,lag\n0,1,1\n")
    assert read_truth(with_header, names).edges == (Edge("0", "1", 1),)
    years = read_truth(written(tmp_path, "2001,2002,1\n"), ["2001", "2002"])
    assert years.edges == (Edge("2001", "2002", 1),)


def test_saved_csv_can_be_read_as_truth(tmp_path):
    graph = ring(HOSTILE)
    assert read_truth(graph.save(tmp_path / "edges.csv"), HOSTILE) == graph
    empty = CausalGraph(("a", "b"))
    assert read_truth(empty.save(tmp_path / "none.csv"), ["a", "b"]) == empty


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "truth.csv: the file is empty"),
        ("\n \n", "truth.csv: the file is empty"),
        ("0,1,1\n0,1\n", "line 2: 2 columns instead of 3"),
        ("0,1,1,7\n", "line 1: 4 columns instead of 3"),
        ("0,1,1\n\n0,2,1\n", "line 3: column number 2 is not between 0 and 1"),
        ("-1,1,1\n", "line 1: column number -1 is not between"),
        ("0,1,1\nx,z,1\n", "line 2: no series is called 'z' (series: 'x', 'y')"),
        ("0,y,1\n", "line 1: no series is called '0'"),
        ("x,z,1\n", "line 1: no series is called 'z'"),
        ("0,1,-1\n", "line 1: edge 'x' -> 'y': lag -1 is negative"),
        ("0,1,1.5\n", "line 1: lag '1.5' is no whole number"),
        ("0,1,\n", "line 1: lag '' is no whole number"),
        ("0,0,0\n", "line 1: edge 'x' -> 'x': a self edge needs a lag"),
        ("0,1,1\n0,1,1\n", "line 2: the edge was given before, on line 1"),
        ("cause,effect,effect\n0,1,1\n", "line 1: two columns are called effect"),
        ("cause,effect,lag\n0,1\n", "line 2: 2 columns instead of 3"),
        ('0,1,1\n"0,1,1\n', "broken CSV"),
        ("0,٣,1\n", "no series is called '٣'"),
    ],
)
def test_wrong_truth_files_are_refused_by_line(tmp_path, text, problem):
    with pytest.raises(FileFormatError, match=re.escape(problem)) as caught:
        read_truth(written(tmp_path, text), ["x", "y"])
    assert "truth.csv" in str(caught.value)
    assert "expected cause,effect,lag" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b,1\n", "'a' is no column number and no names of series are given"),
        ("0,999999999,1\n", "too large"),
        ("-1,-1,1\n", "column number -1"),
        ("cause,effect,lag\n", "no edge and no names"),
    ],
)
def test_truth_files_that_need_names_say_so(tmp_path, text, problem):
    with pytest.raises(FileFormatError, match=problem):
        read_truth(written(tmp_path, text))


def test_unreadable_truth_files_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match=r"missing\.csv: cannot read .*No such file"):
        read_truth(tmp_path / "missing.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\xff\xfe0")
    with pytest.raises(FileFormatError, match="UTF-8"):
        read_truth(path)


@few
@given(graphs())
def test_any_graph_survives_csv(tmp_path_factory, graph):
    path = graph.save(tmp_path_factory.mktemp("csv") / "edges.csv")
    back = read_truth(path, graph.names)
    assert {(e.cause, e.effect, e.lag) for e in back} == {(e.cause, e.effect, e.lag) for e in graph}


# -------------------------------------------------------------------- start-up


def test_importing_graph_and_metrics_loads_nothing_heavy():
    code = (
        "import sys, causalformer.graph, causalformer.metrics, causalformer.plot\n"
        "heavy = {'torch', 'pandas', 'matplotlib', 'networkx', 'rich', 'sklearn', 'scipy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
