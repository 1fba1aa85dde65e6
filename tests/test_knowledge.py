"""Prior knowledge: every form is read, a slow twin agrees, and contradictions are named."""

import copy
import json
import os
import pickle
import sys
from itertools import pairwise, product
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalformer.errors import DataError, FileFormatError, MissingExtraError, SettingsError
from causalformer.graph import CausalGraph, Edge
from causalformer.knowledge import (
    KnownEdge,
    KnownGraph,
    PriorKnowledge,
    knowledge_from_options,
    read_knowledge,
)
from graph_examples import HOSTILE

NAMES = ("rain", "river", "wind")
RAIN, RIVER, WIND = range(3)


def resolved(max_lag=2, names=NAMES, **statements):
    return PriorKnowledge(**statements).resolve(names, max_lag)


def refusal(kind, action, *args, **kwargs):
    """Return the message of an error, which has one line of moderate length."""
    with pytest.raises(kind) as caught:
        action(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message


# --- What users write -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        KnownEdge("heavy rain", "river", 2),
        ("heavy rain", "river", 2),
        ["heavy rain", "river", np.int64(2)],
        "heavy rain -> river @ 2",
        "  heavy rain->river@2 ",
    ],
)
def test_an_edge_in_every_form(form):
    (edge,) = PriorKnowledge(required=[form]).required
    assert edge == KnownEdge("heavy rain", "river", 2)
    assert type(edge.lag) is int


@pytest.mark.parametrize("form", [("rain", "river"), ["rain", "river", None], "rain -> river"])
def test_an_edge_without_a_lag(form):
    assert PriorKnowledge(forbidden=[form]).forbidden == (KnownEdge("rain", "river"),)


def test_what_is_said_twice_is_kept_once():
    twice = PriorKnowledge(["a -> b", ("a", "b")], exogenous=["a", "a"], tiers=[["a", "a"]])
    assert twice == PriorKnowledge(["a -> b"], exogenous=["a"], tiers=[["a"]])
    assert hash(twice) == hash(PriorKnowledge(["a -> b"], exogenous=["a"], tiers=[["a"]]))


def test_copies_are_equal():
    knowledge = PriorKnowledge(["a -> b @ 2"], tiers=[["a"], ["b"]])
    assert copy.deepcopy(knowledge) == pickle.loads(pickle.dumps(knowledge)) == knowledge


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            {"required": "a -> b"},
            "required must be a list of edges such as 'rain -> river', not 'a -> b'",
        ),
        ({"required": None}, "required must be a list of edges such as 'rain -> river', not None"),
        ({"forbidden": {"a": "b"}}, "forbidden must be a list of edges"),
        (
            {"required": ["a -> b", "a b"]},
            "required, entry 2: 'a b' is no edge; write 'cause -> effect' or 'cause -> effect @ 2',"
            " and, if a name holds -> or @, as a list [cause, effect, 2]",
        ),
        ({"required": ["a -> b -> c"]}, "'a -> b -> c' is no edge"),
        ({"required": [" -> b"]}, "' -> b' is no edge"),
        ({"required": ["a -> @ 2"]}, "'a -> @ 2' is no edge"),
        ({"required": ["a -> b @ -1"]}, "'a -> b @ -1' is no edge"),
        ({"required": ["a -> b @"]}, "'a -> b @' is no edge"),
        ({"required": ["a -> b @ " + "9" * 5000]}, "…' is no edge"),
        (
            {"required": [("a", "b", 1, 1)]},
            "required, entry 1: write 'cause -> effect @ 2' or [cause, effect, 2] in place of "
            "tuple of length 4",
        ),
        ({"required": [7]}, "in place of int"),
        ({"required": [{"cause": "a"}]}, "in place of dict of length 1"),
        (
            {"forbidden": [("a", 7)]},
            "forbidden, entry 1: effect must be the name of a series in quotes, not int",
        ),
        ({"forbidden": [(None, "a")]}, "cause must be the name of a series in quotes, not None"),
        (
            {"forbidden": [("a", "b", 1.5)]},
            "forbidden, entry 1: edge 'a -> b': lag must be a whole number, not float",
        ),
        ({"forbidden": [("a", "b", True)]}, "lag must be a whole number, not bool"),
        ({"forbidden": [("a", "b", "2")]}, "lag must be a whole number, not '2'"),
        ({"forbidden": [("a", "b", -1)]}, "edge 'a -> b': lag must lie between 0 and 1000000"),
        ({"forbidden": [("a", "b", 10**5000)]}, "lag must lie between 0 and 1000000"),
        ({"forbidden": ["a -> a @ 0"]}, "edge 'a -> a @ 0': a self edge needs a lag of at least 1"),
        (
            {"required": ["* -> b"]},
            "required, entry 1: '* -> b' uses *, which only forbidden edges may; name the series",
        ),
        (
            {"exogenous": ["a", "*"]},
            "exogenous, entry 2: only forbidden edges may use *; name the series",
        ),
        ({"exogenous": "rain"}, "exogenous must be a list of names, not 'rain'"),
        ({"effects_only": [1]}, "effects_only, entry 1: a name must be text in quotes, not int"),
        ({"tiers": 3}, "tiers must be a list of lists of names, not int"),
        ({"tiers": [["a"], "b"]}, "tiers, entry 2 must be a list of names, not 'b'"),
        (
            {"tiers": [["a", False]]},
            "tiers, entry 1, entry 2: a name must be text in quotes, not bool",
        ),
    ],
)
def test_statements_that_cannot_be_read(statements, problem):
    assert problem in refusal(SettingsError, PriorKnowledge, **statements)


# --- What follows for given series ----------------------------------------------------------------


def test_nothing_is_known_by_default():
    known = resolved()
    assert known.is_trivial
    assert known.allowed.shape == (3, 3, 3)
    assert not known.allowed[range(3), range(3), 0].any()
    assert known.allowed.sum() == 27 - 3
    assert not known.required.any()
    assert not known.required_lags.any()


@pytest.mark.parametrize(
    "statements", [{"required": ["rain -> wind"]}, {"forbidden": ["rain -> rain @ 2"]}]
)
def test_anything_known_is_not_trivial(statements):
    assert not resolved(**statements).is_trivial


def test_required_edges_at_some_lag_and_at_one():
    known = resolved(required=["rain -> river", "wind -> river @ 2", "wind -> wind"])
    assert np.argwhere(known.required).tolist() == [[RAIN, RIVER], [WIND, RIVER], [WIND, WIND]]
    assert np.argwhere(known.required_lags).tolist() == [[WIND, RIVER, 2]]


def test_a_required_lag_leaves_the_others_allowed():
    assert resolved(required=["rain -> river @ 2"]).allowed[RAIN, RIVER].all()


def test_forbidden_edges_at_every_lag_and_at_one():
    known = resolved(forbidden=["rain -> river", "river -> wind @ 1", "wind -> wind"])
    nothing = KnownGraph.anything(3, 2).allowed
    assert np.argwhere(nothing & ~known.allowed).tolist() == [
        [RAIN, RIVER, 0],
        [RAIN, RIVER, 1],
        [RAIN, RIVER, 2],
        [RIVER, WIND, 1],
        [WIND, WIND, 1],
        [WIND, WIND, 2],
    ]


def test_forbidding_a_lag_that_is_not_looked_at_is_harmless():
    assert resolved(forbidden=["rain -> river @ 3"]).is_trivial


@pytest.mark.parametrize(
    "wild", ["* -> rain", "rain -> *", "* -> *", "* -> * @ 0", "* -> rain @ 1"]
)
def test_the_wildcard_spares_self_loops(wild):
    allowed = resolved(forbidden=[wild]).allowed
    assert allowed[range(3), range(3), 1:].all()
    assert not resolved(forbidden=[wild]).is_trivial


def test_the_shorthands_are_wildcards():
    exogenous = resolved(exogenous=["rain"]).allowed
    np.testing.assert_array_equal(exogenous, resolved(forbidden=["* -> rain"]).allowed)
    effects_only = resolved(effects_only=["rain"]).allowed
    np.testing.assert_array_equal(effects_only, resolved(forbidden=["rain -> *"]).allowed)


def test_exogenous_and_effects_only_is_linked_to_nothing():
    allowed = resolved(exogenous=["rain"], effects_only=["rain"]).allowed
    assert not allowed[RAIN, [RIVER, WIND]].any()
    assert not allowed[[RIVER, WIND], RAIN].any()
    assert allowed[RAIN, RAIN, 1:].all()


def test_later_tiers_do_not_cause_earlier_ones():
    allowed = resolved(names=("a", "b", "c", "free"), tiers=[["a"], ["b", "c"]]).allowed
    ruled_out = ~allowed.any(axis=-1)
    assert np.argwhere(ruled_out).tolist() == [[1, 0], [2, 0]]


def test_two_series_may_drive_each_other_after_a_while():
    known = resolved(required=["rain -> river @ 0", "river -> rain @ 1", "rain -> wind"])
    assert known.required_lags.sum() == 2


def test_one_series_alone():
    assert resolved(names=("a",), exogenous=["a"], forbidden=["* -> *"]).is_trivial


def test_hostile_names():
    known = PriorKnowledge(
        required=[(HOSTILE[0], name) for name in HOSTILE[1:]], exogenous=HOSTILE[:1]
    ).resolve(HOSTILE, 1)
    assert known.required.sum() == len(HOSTILE) - 1


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            {"required": ["ran -> river"]},
            "required 'ran -> river': no series is called 'ran'; did you mean 'rain'? "
            "the series are 'rain', 'river', 'wind'",
        ),
        ({"forbidden": ["* -> x"]}, "forbidden '* -> x': no series is called 'x'; the series are"),
        ({"exogenous": ["Wind"]}, "exogenous: no series is called 'Wind'; did you mean 'wind'?"),
        ({"effects_only": ["x"]}, "effects_only: no series is called 'x'"),
        ({"tiers": [["rain"], ["x"]]}, "tiers, entry 2: no series is called 'x'"),
        ({"exogenous": ["x" * 10**6]}, "exogenous: no series is called 'xxx"),
        (
            {"required": ["rain -> river @ 3"]},
            "required 'rain -> river @ 3' needs a lag of 3, but max_lag is 2; raise max_lag to 3",
        ),
        (
            {"required": ["rain -> river"], "forbidden": ["rain -> river"]},
            "required 'rain -> river' contradicts forbidden 'rain -> river'; drop one of them",
        ),
        (
            {"required": ["rain -> river @ 1"], "forbidden": ["rain -> river"]},
            "required 'rain -> river @ 1' contradicts forbidden 'rain -> river'; ",
        ),
        (
            {"required": ["rain -> rain @ 1"], "forbidden": ["rain -> rain @ 1"]},
            "required 'rain -> rain @ 1' contradicts forbidden 'rain -> rain @ 1'; ",
        ),
        (
            {"required": ["rain -> rain"], "forbidden": ["rain -> rain"]},
            "required 'rain -> rain' contradicts forbidden 'rain -> rain'; ",
        ),
        (
            {
                "required": ["rain -> river"],
                "forbidden": ["* -> river @ 9", *(f"rain -> river @ {lag}" for lag in range(3))],
            },
            "required 'rain -> river' contradicts forbidden 'rain -> river @ 0', "
            "forbidden 'rain -> river @ 1', forbidden 'rain -> river @ 2'; ",
        ),
        (
            {"required": ["rain -> river"], "forbidden": ["wind -> river", "* -> river"]},
            "required 'rain -> river' contradicts forbidden '* -> river'; ",
        ),
        (
            {"required": ["rain -> river"], "exogenous": ["wind", "river"]},
            "required 'rain -> river' contradicts exogenous 'river'; ",
        ),
        (
            {"required": ["rain -> river"], "effects_only": ["rain"]},
            "required 'rain -> river' contradicts effects_only 'rain'; ",
        ),
        (
            {"required": ["rain -> river"], "tiers": [["wind", "river"], ["rain"]]},
            "required 'rain -> river' contradicts tiers "
            "(nothing in a later tier causes 'wind', 'river'); drop one of them",
        ),
        (
            {"tiers": [["rain"], ["wind"], ["rain"]]},
            "tiers: 'rain' is in tier 1 and in tier 3; keep it in one of them",
        ),
        (
            {"required": ["rain -> river @ 0", "river -> rain @ 0"]},
            "required edges form a cycle within a time slot: ",
        ),
    ],
)
def test_what_cannot_be_resolved(statements, problem):
    assert problem in refusal(SettingsError, resolved, **statements)


def test_a_cycle_is_named_along_its_arrows():
    cycle = ["rain -> river @ 0", "river -> wind @ 0", "wind -> rain @ 0"]
    message = refusal(SettingsError, resolved, required=cycle)
    named = message.split(": ")[1].split(";")[0].replace("'", "").split(" -> ")
    assert {f"{a} -> {b} @ 0" for a, b in pairwise(named)} == set(cycle)


def test_a_cycle_of_edges_that_have_no_other_lag_left():
    later = [f"{pair} @ {lag}" for pair in ("rain -> river", "river -> rain") for lag in (1, 2)]
    both = ["rain -> river", "river -> rain"]
    assert "cycle within a time slot" in refusal(
        SettingsError, resolved, required=both, forbidden=later
    )
    assert resolved(required=both, forbidden=later[:3]).required.sum() == 2


def test_a_required_self_loop_needs_a_past():
    message = refusal(SettingsError, resolved, 0, required=["rain -> rain"])
    assert message == (
        "required 'rain -> rain' needs a lag of 1, but max_lag is 0; raise max_lag to 1 "
        "(with a preset of the paper: window to 2)"
    )


@pytest.mark.parametrize("max_lag", [-1, 1.5, "auto"])
def test_the_longest_lag_is_a_whole_number(max_lag):
    assert f"max_lag is {max_lag!r}" in refusal(SettingsError, resolved, max_lag)


def test_series_have_one_name_each():
    assert "given more than once: 'a'" in refusal(DataError, resolved, names=("a", "a"))


# --- A slow twin ----------------------------------------------------------------------------------

LETTERS = ("a", "b", "c", "d")


def edges_between(ends, most):
    triple = st.tuples(ends, ends, st.none() | st.integers(0, 4))
    possible = triple.filter(lambda t: t[0] != t[1] or t[0] == "*" or t[2] != 0)
    return st.lists(possible, max_size=most)


@st.composite
def statements(draw):
    """Any knowledge about `LETTERS` whose series are in one tier each."""
    ends = st.sampled_from(LETTERS)
    wild = st.sampled_from((*LETTERS, "*"))
    someone = st.lists(ends, max_size=2)
    tier_of = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    return PriorKnowledge(
        required=draw(edges_between(ends, 3)),
        forbidden=draw(edges_between(wild, 3)),
        tiers=[[x for x, t in zip(LETTERS, tier_of, strict=True) if t == tier] for tier in (1, 2)],
        exogenous=draw(someone),
        effects_only=draw(someone),
    )


def is_forbidden(knowledge, cause, effect, lag):
    """Say from the definitions whether an edge is ruled out."""
    for edge in knowledge.forbidden:
        ends = edge.cause in (cause, "*") and edge.effect in (effect, "*")
        is_self = cause == effect and "*" in (edge.cause, edge.effect)
        if ends and not is_self and edge.lag in (None, lag):
            return True
    if cause == effect:
        return lag == 0
    tier = {name: number for number, names in enumerate(knowledge.tiers) for name in names}
    backwards = cause in tier and effect in tier and tier[cause] > tier[effect]
    return backwards or effect in knowledge.exogenous or cause in knowledge.effects_only


def is_possible(knowledge, max_lag):
    """Say from the definitions whether all required edges can be there together."""
    within_a_slot = nx.DiGraph()
    for edge in knowledge.required:
        wanted = range(max_lag + 1) if edge.lag is None else [edge.lag]
        lags = [x for x in wanted if not is_forbidden(knowledge, edge.cause, edge.effect, x)]
        if not lags or lags[0] > max_lag:
            return False
        if lags == [0]:
            within_a_slot.add_edge(edge.cause, edge.effect)
    return nx.is_directed_acyclic_graph(within_a_slot)


@given(statements(), st.integers(0, 3))
def test_resolving_agrees_with_the_definitions(knowledge, max_lag):
    if not is_possible(knowledge, max_lag):
        refusal(SettingsError, knowledge.resolve, LETTERS, max_lag)
        return
    known = knowledge.resolve(LETTERS, max_lag)
    required = {(edge.cause, edge.effect, edge.lag) for edge in knowledge.required}
    for (i, cause), (j, effect) in product(enumerate(LETTERS), repeat=2):
        assert known.required[i, j] == any((cause, effect) == edge[:2] for edge in required)
        for lag in range(max_lag + 1):
            assert known.allowed[i, j, lag] != is_forbidden(knowledge, cause, effect, lag)
            assert known.required_lags[i, j, lag] == ((cause, effect, lag) in required)
    assert (known.required <= known.allowed.any(axis=-1)).all()
    assert (known.required_lags <= known.allowed).all()


@given(statements())
def test_knowledge_survives_json(knowledge):
    plain = json.loads(json.dumps(knowledge.to_dict()))
    assert PriorKnowledge.from_dict(plain) == knowledge


@given(st.text(), st.text(), st.none() | st.integers(1, 10**6))
def test_any_name_survives_a_round_trip(cause, effect, lag):
    knowledge = PriorKnowledge(forbidden=[(cause, effect, lag)])
    assert PriorKnowledge.from_dict(json.loads(json.dumps(knowledge.to_dict()))) == knowledge


plain_names = st.text("ab c.é", min_size=1).map(str.strip).filter(bool)


@given(plain_names, plain_names, st.none() | st.integers(1, 99))
def test_an_edge_reads_its_own_text(cause, effect, lag):
    edge = KnownEdge(cause, effect, lag)
    assert KnownEdge.from_text(str(edge)) == edge


@given(st.text())
def test_any_text_is_an_edge_or_refused(text):
    try:
        edge = KnownEdge.from_text(text)
    except SettingsError:
        return
    assert edge.cause in text
    assert edge.effect in text


# --- Does a graph respect it? ---------------------------------------------------------------------


def graph(*edges):
    return CausalGraph(NAMES, edges)


@pytest.mark.parametrize(
    ("statements", "edges", "words"),
    [
        ({}, [Edge("rain", "rain", 2), Edge("wind", "rain", 0)], []),
        (
            {"exogenous": ["rain"]},
            [Edge("wind", "rain", 1), Edge("rain", "rain", 1)],
            ["wind → rain at lag 1 is not allowed"],
        ),
        ({"required": ["rain -> river"]}, [], ["rain → river is required"]),
        ({"required": ["rain -> river"]}, [Edge("rain", "river", 2)], []),
        (
            {"required": ["rain -> river @ 1", "rain -> river"]},
            [Edge("rain", "river", 2)],
            ["rain → river at lag 1 is required"],
        ),
        ({"required": ["rain -> river @ 1"]}, [], ["rain → river at lag 1 is required"]),
        ({}, [Edge("rain", "wind", 3)], ["rain → wind at lag 3 is beyond the longest lag, 2"]),
        ({"exogenous": ["rain"]}, [Edge("wind", "rain", 0, oriented=False)], []),
        ({"exogenous": ["rain"]}, [Edge("rain", "wind", 0, oriented=False)], []),
        (
            {"forbidden": ["* -> * @ 0"]},
            [Edge("rain", "wind", 0, oriented=False)],
            ["rain — wind at lag 0 is not allowed"],
        ),
        (
            {"required": ["rain -> wind @ 0"]},
            [Edge("rain", "wind", 0, oriented=False)],
            ["rain → wind at lag 0 is required"],
        ),
    ],
)
def test_violations_in_words(statements, edges, words):
    assert resolved(**statements).violations(graph(*edges)) == words


@given(statements(), st.integers(1, 3))
def test_a_graph_of_all_that_is_allowed_violates_nothing(knowledge, max_lag):
    try:
        known = knowledge.resolve(LETTERS, max_lag)
    except SettingsError:
        return
    full = CausalGraph.from_array(LETTERS, known.allowed)
    assert known.violations(full) == []
    everything = CausalGraph.from_array(LETTERS, KnownGraph.anything(4, max_lag).allowed)
    assert len(known.violations(everything)) == len(everything) - len(full)
    missing = known.violations(CausalGraph(LETTERS))
    assert bool(missing) == bool(knowledge.required)


def test_violations_of_another_set_of_series():
    message = refusal(DataError, resolved().violations, CausalGraph(("a",)))
    assert message == (
        "the graph has 1 series and the knowledge 3; resolve it for those of the graph"
    )


# --- Files and options ----------------------------------------------------------------------------

AS_JSON = """{
  "required": ["rain -> river @ 2", ["rain", "wind"]],
  "forbidden": ["* -> rain"],
  "tiers": [["rain"], ["river", "wind"]],
  "exogenous": ["rain"],
  "effects_only": ["wind"]
}"""
AS_YAML = """
required:
  - rain -> river @ 2
  - [rain, wind]
forbidden:
  - "* -> rain"
tiers:
  - [rain]
  - [river, wind]
exogenous: [rain]
effects_only: [wind]
"""
AS_OBJECT = PriorKnowledge(
    required=["rain -> river @ 2", "rain -> wind"],
    forbidden=["* -> rain"],
    tiers=[["rain"], ["river", "wind"]],
    exogenous=["rain"],
    effects_only=["wind"],
)


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("k.json", AS_JSON),
        ("k.JSON", "\ufeff" + AS_JSON),
        ("k.yaml", AS_YAML),
        ("k.yml", AS_YAML.replace("\n", "\r\n")),
        ("json is nearly.yml", AS_JSON),
    ],
)
def test_files_of_every_form(write, name, text):
    path = write(name, text)
    assert read_knowledge(path) == read_knowledge(str(path)) == AS_OBJECT


def test_sources_that_are_no_files():
    assert read_knowledge(None) == PriorKnowledge()
    assert read_knowledge(AS_OBJECT) is AS_OBJECT
    assert read_knowledge(AS_OBJECT.to_dict()) == AS_OBJECT
    assert read_knowledge({}) == PriorKnowledge()


def test_a_source_of_another_kind():
    assert refusal(SettingsError, read_knowledge, 3) == (
        "knowledge must be a PriorKnowledge, a mapping or a path, not int"
    )
    assert refusal(SettingsError, read_knowledge, AS_JSON).startswith("cannot tell the format of")
    assert refusal(SettingsError, read_knowledge, "k.toml") == (
        "cannot tell the format of 'k.toml': end its name with .json, .yaml or .yml"
    )


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ({"require": []}, "unknown key 'require'; did you mean 'required'? the keys are required,"),
        (
            {10**5000: []},
            "unknown key int; the keys are required, forbidden, tiers, exogenous, effect",
        ),
        ([], "knowledge must be a mapping, not list; the keys are required, forbidden"),
    ],
)
def test_mappings_that_cannot_be_read(mapping, problem):
    assert problem in refusal(SettingsError, PriorKnowledge.from_dict, mapping)


LAUGHS = "\n".join(
    ["a: &a [x, x]", *(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefgh", "bcdefghi", strict=1))]
)
MERGES = "a: &a {x: 1}\n" + "\n".join(
    f"{b}: &{b} {{<<: [*{a}, *{a}]}}" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("k.json", "", "k.json: no valid JSON: Expecting value: line 1 column 1"),
        ("k.json", "{", "k.json: no valid JSON: "),
        ("k.json", "[]", "k.json: knowledge must be a mapping, not list; the keys are required"),
        ("k.json", "null", "k.json: knowledge must be a mapping, not None"),
        ("k.json", '{"exogenous": "rain"}', "k.json: exogenous must be a list of names, not"),
        ("k.json", '{"exogenous": null}', "exogenous must be a list of names, not None"),
        ("k.json", '{"exogenus": []}', "unknown key 'exogenus'; did you mean 'exogenous'?"),
        (
            "k.json",
            '{"tiers": [], "tiers": []}',
            "k.json: no valid JSON: the key 'tiers' is given twice; join its lists",
        ),
        ("k.json", '{"required": [{"a": 1, "a": 2}]}', "the key 'a' is given twice"),
        ("k.json", '{"required": [["a", "b", NaN]]}', "lag must be a whole number, not float"),
        ("k.json", '{"required": [["a", "b", ' + "9" * 5000 + "]]}", "k.json: no valid JSON: "),
        ("k.json", '{"required": ' + "[" * 400_000, "k.json: nested too deeply for knowledge"),
        ("k.json", '{"tiers": ' + "[" * 500 + "]" * 500 + "}", "a name must be text in quotes"),
        ("k.json", '{"exogenous": ["' + "\\n" * 9999 + '", 3]}', "entry 2: a name must be text"),
        ("k.json", '{"' + "x" * 9999 + '": 3}', "k.json: unknown key 'xxx"),
        ("k.json", b"\xff\xfe{\x00}\x00", "k.json: not a text file in UTF-8"),
        ("k.json", " " * 1_000_001, "k.json: 1000001 bytes, but knowledge has at most 1000000; us"),
        ("k.yaml", "", "k.yaml: knowledge must be a mapping, not None; the keys are"),
        ("k.yaml", "rain", "k.yaml: knowledge must be a mapping, not 'rain'"),
        ("k.yaml", "- rain", "k.yaml: knowledge must be a mapping, not list"),
        ("k.yaml", "exogenous:", "exogenous must be a list of names, not None"),
        ("k.yaml", "exogenous: [no]", "a name must be text in quotes, not bool"),
        ("k.yaml", "exogenous: [2024-01-01]", "a name must be text in quotes, not date"),
        (
            "k.yaml",
            "tiers: []\nforbidden:\n  - * -> rain\n",
            "k.yaml, line 3: no valid YAML: expected alphabetic or numeric character, but found "
            "' '; put texts with special characters in quotes",
        ),
        ("k.yaml", "forbidden: [*rain]", "k.yaml, line 1: no valid YAML: found undefined alias"),
        ("k.yaml", "tiers: [\n", "k.yaml, line 2: no valid YAML: "),
        ("k.yaml", "tiers: []\n---\ntiers: []\n", "k.yaml, line 2: no valid YAML: "),
        ("k.yaml", "tiers: []\ntiers: []\n", "k.yaml: no valid YAML: the key 'tiers' is given twi"),
        ("k.yaml", "a: &a [x]\nb: *a\n", "k.yaml: no valid YAML: it holds an alias (*name); write"),
        ("k.yaml", "a: &a [*a]\n", "it holds an alias"),
        ("k.yaml", LAUGHS, "it holds an alias"),
        ("k.yaml", MERGES, "it holds an alias"),
        ("k.yaml", "tiers:\n" + "- " * 400_000, "k.yaml: nested too deeply for knowledge"),
        ("k.yaml", "tiers: !!python/object/apply:os.getcwd []", "k.yaml, line 1: no valid YAML: "),
        ("k.yaml", "tiers: !" + "x" * 9999, "k.yaml, line 1: no valid YAML: "),
        ("k.yaml", "tiers: !!int x", "k.yaml: no valid YAML: "),
        ("k.yaml", "tiers: !!int ''", "k.yaml: no valid YAML: "),
        ("k.yaml", "tiers: !!bool x", "k.yaml: no valid YAML: "),
        ("k.yaml", "tiers: !!timestamp x", "k.yaml: no valid YAML: "),
        ("k.yaml", "tiers: 2024-99-99", "k.yaml: no valid YAML: "),
        ("k.yaml", "tiers: !!float " + "x" * 9999, "k.yaml: no valid YAML: "),
        ("k.yaml", "? [a]\n: b", "k.yaml, line 1: no valid YAML: found unhashable key"),
        ("k.yaml", "7: b", "k.yaml: unknown key int; the keys are"),
        (
            "k.yaml",
            "tiers: 1" + ":1" * 99_999,
            "k.yaml: no valid YAML: it holds a number of 199999",
        ),
        ("k.yaml", f"required: [[a, b, 0x{'f' * 9999}]]", "it holds a number of 10001 characters"),
        ("k.yaml", "tiers: \x00", "k.yaml: no valid YAML: "),
    ],
    ids=lambda part: ascii(part)[:40],
)
def test_files_that_cannot_be_read(write, name, content, problem):
    path = write(name, content)
    message = refusal(FileFormatError, read_knowledge, path)
    assert message.startswith(str(path))
    assert problem in message


def test_files_that_are_no_files(tmp_path):
    missing = tmp_path / "none.json"
    assert refusal(FileFormatError, read_knowledge, missing) == (
        f"{missing}: cannot read the file: No such file or directory"
    )
    assert "null" in refusal(FileFormatError, read_knowledge, "a\x00b.json")
    folder = tmp_path / "folder.yaml"
    folder.mkdir()
    endless = tmp_path / "endless.json"
    os.mkfifo(endless)
    for path in (folder, endless):
        assert refusal(FileFormatError, read_knowledge, path) == (
            f"{path}: not a file; give one that ends with .json, .yaml or .yml"
        )


def test_yaml_without_the_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    path = write("k.yaml", AS_YAML)
    assert refusal(MissingExtraError, read_knowledge, path) == (
        f"{path}: YAML files need one more package: pip install causalformer[yaml]"
    )
    assert read_knowledge(write("k.json", AS_JSON)) == AS_OBJECT


def test_options_add_to_a_file(write):
    known = knowledge_from_options(
        write("k.json", AS_JSON),
        require=["rain -> river", "rain -> wind"],
        forbid=["wind -> river @ 1"],
        exogenous=["sun"],
        effects_only=["wind", "mud"],
    )
    assert known == PriorKnowledge(
        required=["rain -> river @ 2", "rain -> wind", "rain -> river"],
        forbidden=["* -> rain", "wind -> river @ 1"],
        tiers=AS_OBJECT.tiers,
        exogenous=["rain", "sun"],
        effects_only=["wind", "mud"],
    )


def test_options_without_a_file():
    assert knowledge_from_options() == PriorKnowledge()
    assert knowledge_from_options(None, ["a -> b"], [], [], []) == PriorKnowledge(["a -> b"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"require": ["a b"]}, "--require, entry 1: 'a b' is no edge; write"),
        ({"require": ["a -> *"]}, "--require, entry 1: 'a -> *' uses *, which only forbidden"),
        ({"forbid": ["* -> a", "b"]}, "--forbid, entry 2: 'b' is no edge"),
        ({"exogenous": ["*"]}, "--exogenous, entry 1: only forbidden edges may use *"),
        ({"effects_only": ["*"]}, "--effects-only, entry 1: only forbidden edges may use *"),
        ({"file": Path("k.txt")}, "cannot tell the format of 'k.txt'"),
    ],
)
def test_options_that_cannot_be_read(options, problem):
    assert problem in refusal(SettingsError, knowledge_from_options, **options)
