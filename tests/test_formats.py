"""The forms of a graph: strict, reversible, and safe for hostile names."""

import csv
import io
import json
import math
import re

import networkx as nx
import pytest
from hypothesis import given
from rich.console import Console

from causalformer.errors import FileFormatError
from causalformer.formats import footnotes, to_html
from causalformer.graph import CausalGraph, Edge
from graph_examples import DOUBT, HOSTILE, chain, doubtful, evident, graphs, ring


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


def test_json_holds_evidence_only_where_it_is_known():
    assert json.loads(evident().to_json())["edges"] == [
        {"cause": "a", "effect": "b", "lag": 2, "score": 0.9}
        | {"p_value": 0.001, "q_value": 0.003, "strength": 0.25},
        {"cause": "b", "effect": "c", "lag": 0, "score": 0.5, "q_value": 0.04, "oriented": False},
        {"cause": "c", "effect": "c", "lag": 1, "score": 0.1},
    ]


def test_json_has_the_sentence_only_where_there_is_one():
    edges = json.loads(doubtful().to_json())["edges"]
    assert [edge.get("may_be_confounded") for edge in edges] == [
        DOUBT,
        'b, "c" & <d> share it',
        None,
    ]
    assert CausalGraph.from_json(doubtful().to_json()) == doubtful()


def test_json_of_earlier_releases_is_read():
    text = """{"format": "causalformer-graph", "version": 1, "names": ["a", "b"], "edges":
        [{"cause": "a", "effect": "b", "lag": 0, "score": null}], "metadata": {}}"""
    assert CausalGraph.from_json(text).edges == (Edge("a", "b", 0),)


def with_edge(**fields):
    return altered(edges=[{"cause": "a", "effect": "b", "lag": 1, **fields}])


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
        (with_edge(lag=1.5), "whole number"),
        (with_edge(score="nan"), "no number"),
        (with_edge(score=[1]), "score"),
        (with_edge(score=10**400), "score"),
        (with_edge(q_value="0.5"), "q_value '0.5' is no number"),
        (with_edge(strength="inf"), "strength 'inf' is no number"),
        (with_edge(p_value=2), "'a' -> 'b': p_value is 2, but must be between 0 and 1"),
        (with_edge(oriented="no"), "oriented must be True or False, not 'no'"),
        (with_edge(oriented=False), "oriented is False at lag 1"),
        (with_edge(may_be_confounded=1), "may_be_confounded must be text, not 1"),
        (altered(metadata=[]), "mapping"),
    ],
)
def test_foreign_damaged_and_newer_json_is_refused(text, problem):
    with pytest.raises(FileFormatError, match=re.escape(problem)):
        CausalGraph.from_json(text)


def test_unknown_fields_of_later_releases_are_ignored():
    content = json.loads(chain().to_json())
    content["later"] = 1
    content["edges"][0]["later"] = 0.01
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
    edges = set()
    for cause, effect, data in back.edges(data=True):
        kind = data.pop("kind")
        edges.add((Edge(unescaped(cause), unescaped(effect), **data), kind))
    assert edges == {(edge, edge.kind) for edge in graph}


@given(graphs())
def test_graphml_round_trip_for_any_names(graph):
    check_graphml(graph)


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
    assert evident().to_dot().splitlines()[4:7] == [
        '  n0 -> n1 [label="2"];',
        '  n1 -> n2 [label="0", style=dashed, dir=none];',
        '  n2 -> n2 [label="1"];',
    ]
    assert doubtful().to_dot().splitlines()[4:6] == [
        f'  n0 -> n1 [label="2*", tooltip="{DOUBT}"];',
        '  n1 -> n2 [label="0*", style=dashed, dir=none, tooltip="b, \\"c\\" &amp; <d> share it"];',
    ]
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


def test_csv_has_columns_for_evidence():
    assert evident().to_csv().splitlines() == [
        "cause,effect,lag,kind,score,p_value,q_value,strength,oriented",
        "a,b,2,lagged,0.9,0.001,0.003,0.25,True",
        "b,c,0,instantaneous,0.5,,0.04,,False",
        "c,c,1,self,0.1,,,,True",
    ]


def test_csv_has_a_column_for_the_sentence():
    assert doubtful().to_csv().splitlines() == [
        "cause,effect,lag,kind,score,p_value,q_value,strength,oriented,may_be_confounded",
        f'a,b,2,lagged,0.9,,0.003,,True,"{DOUBT}"',
        'b,c,0,instantaneous,0.5,,,,False,"b, ""c"" & <d> share it"',
        "c,c,1,self,0.1,,,,True,",
    ]


def test_graphml_has_the_sentence_and_reads_without_it():
    check_graphml(doubtful())
    assert doubtful().to_graphml().count("Wind, 1 slot before") == 1
    assert "may_be_confounded" not in evident().to_graphml()


@given(graphs())
def test_csv_holds_what_the_frame_holds(graph):
    frame = graph.to_frame()
    rows = csv.DictReader(io.StringIO(graph.to_csv(), newline=""))
    assert rows.fieldnames == list(frame.columns)
    for row, expected in zip(rows, frame.to_dict("records"), strict=True):
        assert row == {name: "" if v != v else str(v) for name, v in expected.items()}


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


def test_table_shows_what_is_known_of_q_and_strength():
    rows = [
        re.findall(r"[^\s│┃]+(?: [→—] \w)?", line)
        for line in printed(evident().table()).split("\n")
    ]
    assert rows[1] == ["edge", "lag", "kind", "score", "q", "strength"]
    assert rows[3] == ["a → b", "2", "lagged", "0.9", "0.003", "0.25"]
    assert rows[4] == ["b — c", "0", "contemporaneous", "0.5", "0.04", "–"]
    assert rows[5] == ["c → c", "1", "self", "0.1", "–", "–"]
    only_q = CausalGraph(("a", "b"), (Edge("a", "b", 1, q_value=0.5, p_value=0.1),))
    assert [column.header for column in only_q.table().columns] == rows[1][:5]


def test_table_and_notebook_mark_what_may_be_confounded_and_say_why():
    text = printed(doubtful().table())
    assert "a → b *" in text
    assert "b — c *" in text
    assert "c → c *" not in text
    assert "* may come from a hidden common driver" in text
    assert "*" not in printed(evident().table())
    assert footnotes(doubtful(), limit=1) == [f"* a → b (lag 2): {DOUBT}"]
    page = to_html(doubtful())
    assert "<td>a → b *</td>" in page
    assert page.endswith("* b — c (lag 0): b, &quot;c&quot; &amp; &lt;d&gt; share it</p>")
    assert "*" not in to_html(evident())


def test_table_shows_hostile_names_without_obeying_them():
    text = printed(ring(HOSTILE).table())
    assert "[bold]markup[/bold]" in text
    assert "\x1b" not in text
    assert r"\x1b[31mred" in text
