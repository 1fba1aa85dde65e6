"""Graphs that several tests share: a chain, a ring over hostile names, and any graph."""

import math

from hypothesis import strategies as st

from causalformer.graph import CausalGraph, Edge

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


DOUBT = "Wind, 1 slot before, predicts both."


def evident():
    """A tested lagged edge, and a contemporaneous one whose direction is a guess."""
    return CausalGraph(
        ("a", "b", "c"),
        (
            Edge("a", "b", 2, 0.9, p_value=0.001, q_value=0.003, strength=0.25),
            Edge("b", "c", 0, 0.5, q_value=0.04, oriented=False),
            Edge("c", "c", 1, 0.1),
        ),
    )


def doubtful():
    """An edge, a link without direction and a self-loop; the first two may be confounded."""
    return CausalGraph(
        ("a", "b", "c"),
        (
            Edge("a", "b", 2, 0.9, q_value=0.003, may_be_confounded=DOUBT),
            Edge("b", "c", 0, 0.5, oriented=False, may_be_confounded='b, "c" & <d> share it'),
            Edge("c", "c", 1, 0.1),
        ),
    )


@st.composite
def graphs(draw, alphabet=None):
    text = st.text(alphabet, max_size=6) if alphabet else st.text(max_size=6)
    names = tuple(draw(st.lists(text, min_size=1, max_size=5, unique=True)))
    triple = st.tuples(st.sampled_from(names), st.sampled_from(names), st.integers(0, 4))
    triples = draw(st.lists(triple, max_size=10, unique=True))
    with_evidence = draw(st.booleans())
    edges = []
    for c, e, lag in triples:
        known = draw(evidence(lag)) if with_evidence else {}
        if (e, c, lag) in triples and known:
            known["oriented"] = True  # a link without direction comes alone
        if c != e or lag > 0:
            edges.append(Edge(c, e, lag, draw(st.floats()), **known))
    return CausalGraph(names, tuple(edges))


@st.composite
def evidence(draw, lag):
    """Any of the optional fields of an edge, some of them unknown."""
    shares = st.floats(0, 1) | st.just(math.nan)
    return {
        "p_value": draw(shares),
        "q_value": draw(shares),
        "strength": draw(st.floats(0, allow_infinity=False) | st.just(math.nan)),
        "frequency": draw(shares),
        "oriented": lag > 0 or draw(st.booleans()),
        "may_be_confounded": draw(st.just("") | st.text(max_size=12)),
    }
