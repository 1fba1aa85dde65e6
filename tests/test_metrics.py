"""Metrics: cases computed by hand, a brute-force twin, and properties that must hold."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from causalformer.errors import DataError
from causalformer.graph import CausalGraph, Edge
from causalformer.metrics import Metrics, auprc, auroc, evaluate

NAMES = ("0", "1", "2", "3")
LOOPS = tuple(Edge(name, name, 1) for name in NAMES)
CROSS = (Edge("0", "1", 1), Edge("0", "2", 2), Edge("1", "3", 1), Edge("2", "3", 1))
DIAMOND = CausalGraph(NAMES, LOOPS + CROSS)


def graph(*triples, names=NAMES):
    """Build from (cause, effect, lag[, score])."""
    return CausalGraph(names, tuple(Edge(str(c), str(e), *rest) for c, e, *rest in triples))


@st.composite
def graphs(draw, names=NAMES):
    triple = st.tuples(st.sampled_from(names), st.sampled_from(names), st.integers(0, 3))
    triples = draw(st.lists(triple, max_size=14, unique=True))
    score = st.one_of(st.just(math.nan), st.integers(0, 3).map(float))
    edges = [Edge(c, e, lag, draw(score)) for c, e, lag in triples if c != e or lag > 0]
    return CausalGraph(names, tuple(edges))


def same(one: Metrics, other: Metrics) -> bool:
    return one.to_dict() == pytest.approx(other.to_dict(), nan_ok=True)


# -------------------------------------------------------------------- the slow twin


def reference(predicted, truth, scores=None):
    """The definitions once more, by loops over all pairs and triples, in float64."""
    names = predicted.names
    pairs = list(itertools.product(names, names))
    lags_of = lambda g, pair: [e.lag for e in g if (e.cause, e.effect) == pair]  # noqa: E731
    found = {pair: lags_of(predicted, pair) for pair in pairs}
    true = {pair: lags_of(truth, pair) for pair in pairs}
    result = {}

    def rates(prefix, hits, wrong, missed):
        p = hits / (hits + wrong) if hits + wrong else 0.0
        r = hits / (hits + missed) if hits + missed else 0.0
        result.update({f"{prefix}precision": p, f"{prefix}recall": r})
        result[f"{prefix}f1"] = 2 * p * r / (p + r) if p + r else 0.0

    for prefix, chosen in (("", pairs), ("off_diagonal_", [q for q in pairs if q[0] != q[1]])):
        hits = sum(1 for q in chosen if found[q] and true[q])
        wrong = sum(1 for q in chosen if found[q] and not true[q])
        missed = sum(1 for q in chosen if true[q] and not found[q])
        rates(prefix, hits, wrong, missed)
    triples = [(q, lag) for q in pairs for lag in range(8)]
    hits = sum(1 for q, lag in triples if lag in found[q] and lag in true[q])
    wrong = sum(1 for q, lag in triples if lag in found[q] and lag not in true[q])
    missed = sum(1 for q, lag in triples if lag not in found[q] and lag in true[q])
    rates("window_", hits, wrong, missed)

    exact = [found[q][0] in true[q] for q in pairs if found[q] and true[q]]
    result["pod"] = np.mean(exact) if exact else math.nan
    exact = [
        found[c, e][0] in true[c, e] for c, e in pairs if c != e and found[c, e] and true[c, e]
    ]
    result["off_diagonal_pod"] = np.mean(exact) if exact else math.nan

    reached = {}
    for c, e in pairs:
        sums = [a + b for m in names for a in true[c, m] for b in true[m, e]]
        reached[c, e] = true[c, e] or sums
    hits = sum(1 for q in pairs if found[q] and reached[q])
    wrong = sum(1 for q in pairs if found[q] and not reached[q])
    missed = sum(1 for q in pairs if true[q] and not found[q])
    kept = dict(result)
    rates("paper_", hits, wrong, missed)
    result = {**kept, "paper_f1": result["paper_f1"]}
    counted = [q for q in pairs if found[q] and any(lag <= 1 for lag in reached[q])]
    exact = [found[q][0] <= 1 and found[q][0] in reached[q] for q in counted]
    result["paper_pod"] = np.mean(exact) if exact else math.nan

    shd = 0
    for a, b in itertools.combinations(names, 2):
        ours, theirs = ([bool(g[a, b]), bool(g[b, a])] for g in (found, true))
        one_each = sum(ours) == sum(theirs) == 1
        shd += (
            (ours != theirs) if one_each else sum(x != y for x, y in zip(ours, theirs, strict=True))
        )
    result["shd"] = shd
    result["n_predicted"] = sum(1 for q in pairs if found[q])
    result["n_true"] = sum(1 for q in pairs if true[q])
    result["n_correct"] = sum(1 for q in pairs if found[q] and true[q])
    for prefix, keep in (("", lambda *_: True), ("off_diagonal_", lambda c, e: c != e)):
        cells = [(i, j) for i, c in enumerate(names) for j, e in enumerate(names) if keep(c, e)]
        labels = [bool(true[names[i], names[j]]) for i, j in cells]
        defined = scores is not None and len(set(labels)) == 2
        values = [scores[i, j] for i, j in cells] if defined else None
        result[f"{prefix}auroc"] = roc_auc_score(labels, values) if defined else math.nan
        result[f"{prefix}auprc"] = average_precision_score(labels, values) if defined else math.nan
    return result


@settings(max_examples=50)
@given(graphs(), graphs(), st.lists(st.integers(0, 5), min_size=16, max_size=16))
def test_every_figure_equals_the_slow_reference(predicted, truth, values):
    scores = np.array(values, dtype=float).reshape(4, 4)
    got = evaluate(predicted, truth, scores).to_dict()
    want = reference(predicted, truth, scores)
    assert got.keys() == want.keys()
    assert got == pytest.approx(want, nan_ok=True, abs=1e-12)


# -------------------------------------------------------------------- by hand


def test_a_link_without_direction_is_one_claim_in_its_likelier_direction():
    def link(cause, effect):
        edges = (*LOOPS, Edge(cause, effect, 0, oriented=False, may_be_confounded="2 drives both"))
        return CausalGraph(NAMES, edges)

    truth = CausalGraph(NAMES, (*LOOPS, Edge("0", "1", 0)))
    right, wrong = evaluate(link("0", "1"), truth), evaluate(link("1", "0"), truth)
    assert (right.n_predicted, right.off_diagonal_f1, right.shd) == (5, 1.0, 0)
    assert (wrong.n_predicted, wrong.off_diagonal_f1, wrong.shd) == (5, 0.0, 1)


def test_a_method_without_lags_is_not_judged_by_lags():
    found = CausalGraph(NAMES, LOOPS, {"lags": False})
    metrics = evaluate(found, DIAMOND)
    assert metrics.f1 == pytest.approx(2 / 3)
    assert all(math.isnan(f) for f in (metrics.pod, metrics.paper_pod, metrics.window_f1))


def test_self_loops_alone_look_good_on_the_diamond():
    metrics = evaluate(CausalGraph(NAMES, LOOPS), DIAMOND)
    assert metrics.precision == 1.0
    assert metrics.recall == 0.5
    assert metrics.f1 == pytest.approx(2 / 3)
    assert metrics.off_diagonal_f1 == 0.0
    assert metrics.pod == 1.0
    assert metrics.shd == 4


def test_a_mixed_prediction_by_hand():
    # Two loops; 0->1 right, 0->2 with the wrong lag, 3->1 turned round, 1->2 invented.
    predicted = graph((0, 0, 1), (1, 1, 1), (0, 1, 1), (0, 2, 1), (3, 1, 1), (1, 2, 1))
    metrics = evaluate(predicted, DIAMOND)
    assert (metrics.n_predicted, metrics.n_true, metrics.n_correct) == (6, 8, 4)
    assert metrics.precision == pytest.approx(4 / 6)
    assert metrics.recall == pytest.approx(4 / 8)
    assert metrics.f1 == pytest.approx(8 / 14)
    assert metrics.off_diagonal_precision == pytest.approx(2 / 4)
    assert metrics.off_diagonal_recall == pytest.approx(2 / 4)
    assert metrics.off_diagonal_f1 == pytest.approx(1 / 2)
    assert metrics.window_precision == pytest.approx(3 / 6)
    assert metrics.window_recall == pytest.approx(3 / 8)
    assert metrics.pod == pytest.approx(3 / 4)
    assert metrics.shd == 3  # turn 3->1, remove 1->2, add 2->3


def test_paper_f1_forgives_indirect_edges_but_counts_direct_misses():
    # 0->3 is linked by 0->1->3 and 0->2->3: right for the paper, wrong strictly.
    metrics = evaluate(graph((0, 3, 2), (0, 1, 1)), DIAMOND)
    assert metrics.precision == 0.5
    precision, recall = 2 / 2, 2 / (2 + 7)
    assert metrics.paper_f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_paper_f1_does_not_reach_three_steps():
    line = graph((0, 1, 1), (1, 2, 1), (2, 3, 1))
    assert evaluate(graph((0, 3, 3)), line).paper_f1 == 0.0
    assert evaluate(graph((0, 2, 2)), line).paper_f1 == pytest.approx(2 * 1 * 0.25 / 1.25)


def test_paper_pod_looks_at_short_true_delays_only():
    # 0->2 has true delay 2 and 0->3 has 2 or 3 by paths: neither is counted, though wrong.
    predicted = graph((0, 0, 1), (0, 1, 2), (0, 2, 1), (0, 3, 1))
    metrics = evaluate(predicted, DIAMOND)
    assert metrics.pod == pytest.approx(1 / 3)
    assert metrics.paper_pod == pytest.approx(1 / 2)


def test_paper_pod_sums_delays_along_instantaneous_paths():
    truth = graph((0, 1, 0), (1, 2, 1), (0, 3, 0), (3, 2, 0))
    assert evaluate(graph((0, 2, 1)), truth).paper_pod == 1.0
    assert evaluate(graph((0, 2, 0)), truth).paper_pod == 1.0
    assert evaluate(graph((0, 2, 2)), truth).paper_pod == 0.0


def test_pod_uses_the_strongest_lag_and_accepts_any_true_lag():
    truth = graph((0, 1, 1), (0, 1, 3))
    assert evaluate(graph((0, 1, 3, 0.9), (0, 1, 2, 0.1)), truth).pod == 1.0
    assert evaluate(graph((0, 1, 3, 0.1), (0, 1, 2, 0.9)), truth).pod == 0.0


@pytest.mark.parametrize(
    ("predicted", "truth", "distance"),
    [
        ([], [], 0),
        ([(0, 1, 1)], [(0, 1, 2)], 0),
        ([(1, 0, 1)], [(0, 1, 1)], 1),
        ([(0, 1, 1), (1, 0, 1)], [(0, 1, 1)], 1),
        ([(0, 1, 1), (1, 0, 1)], [], 2),
        ([(0, 0, 1)], [], 0),
        ([(0, 1, 1)], [(2, 3, 1)], 2),
    ],
)
def test_structural_hamming_distance(predicted, truth, distance):
    assert evaluate(graph(*predicted), graph(*truth)).shd == distance


def test_empty_graphs_earn_zero_and_delays_are_undefined():
    metrics = evaluate(graph(), graph())
    assert (metrics.precision, metrics.recall, metrics.f1, metrics.shd) == (0.0, 0.0, 0.0, 0)
    assert math.isnan(metrics.pod)
    assert math.isnan(metrics.paper_pod)
    assert evaluate(graph(), DIAMOND).f1 == 0.0
    assert evaluate(DIAMOND, graph()).f1 == 0.0
    assert evaluate(graph(names=()), graph(names=()), np.zeros((0, 0))).n_true == 0


# -------------------------------------------------------------------- properties


@given(graphs())
def test_a_perfect_prediction_scores_one_wherever_there_is_something_to_find(truth):
    metrics = evaluate(truth, truth, truth.summary())
    parts = {
        "": truth.edges,
        "window_": truth.edges,
        "off_diagonal_": [e for e in truth if e.kind != "self"],
    }
    for prefix, edges in parts.items():
        for figure in ("precision", "recall", "f1"):
            assert getattr(metrics, prefix + figure) == (1.0 if edges else 0.0)
    assert metrics.shd == 0
    if truth.edges:
        assert metrics.pod == 1.0
        assert metrics.paper_f1 == 1.0
    for area in (metrics.auroc, metrics.auprc):
        assert math.isnan(area) or area == 1.0


@given(graphs(), graphs())
def test_swapping_prediction_and_truth_swaps_precision_and_recall(one, other):
    there, back = evaluate(one, other), evaluate(other, one)
    for prefix in ("", "off_diagonal_", "window_"):
        assert getattr(there, f"{prefix}precision") == getattr(back, f"{prefix}recall")
        assert getattr(there, f"{prefix}f1") == getattr(back, f"{prefix}f1")
    assert there.shd == back.shd


@given(graphs(), graphs(), st.permutations(range(4)), st.integers(0, 2**32 - 1))
def test_the_order_of_the_series_does_not_matter(predicted, truth, order, seed):
    # Distinct scores: among equal ones the order of the series decides which lag is strongest.
    edges = tuple(dataclasses.replace(e, score=float(i)) for i, e in enumerate(predicted))
    names = tuple(NAMES[i] for i in order)
    scores = np.random.default_rng(seed).normal(size=(4, 4))
    straight = evaluate(CausalGraph(NAMES, edges), truth, scores)
    shuffled = evaluate(CausalGraph(names, edges), truth, scores[np.ix_(order, order)])
    assert same(straight, shuffled)


@given(graphs(), graphs())
def test_all_figures_lie_between_zero_and_one(predicted, truth):
    figures = evaluate(predicted, truth, predicted.summary()).to_dict()
    for name, value in figures.items():
        if name != "shd" and not name.startswith("n_"):
            assert math.isnan(value) or 0.0 <= value <= 1.0


# -------------------------------------------------------------------- areas


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 2.0, 1e9])), min_size=1),
)
def test_areas_agree_with_scikit_learn(items):
    labels, scores = zip(*items, strict=True)
    if len(set(labels)) < 2:
        assert math.isnan(auroc(labels, scores))
        assert math.isnan(auprc(labels, scores))
    else:
        assert auroc(labels, scores) == pytest.approx(roc_auc_score(labels, scores))
        assert auprc(labels, scores) == pytest.approx(average_precision_score(labels, scores))


def test_infinite_scores_are_ranked():
    assert auroc([True, False, False], [math.inf, 0.0, -math.inf]) == 1.0


def test_scores_unknown_on_the_diagonal_leave_the_other_areas_defined():
    scores = DIAMOND.summary().astype(float)
    np.fill_diagonal(scores, np.nan)
    metrics = evaluate(DIAMOND, DIAMOND, scores)
    assert math.isnan(metrics.auroc)
    assert math.isnan(metrics.auprc)
    assert metrics.off_diagonal_auroc == 1.0
    assert metrics.off_diagonal_auprc == 1.0


def test_areas_are_undefined_without_scores():
    assert math.isnan(evaluate(DIAMOND, DIAMOND).auroc)


# -------------------------------------------------------------------- bad input


def test_different_series_are_refused_by_name():
    with pytest.raises(
        DataError, match=r"only in the prediction: 'x'; only in the truth: 'y', 'z'"
    ):
        evaluate(CausalGraph(("a", "x")), CausalGraph(("a", "z", "y")))


@pytest.mark.parametrize("scores", [np.zeros((3, 4)), np.zeros(16), np.zeros((4, 4, 2)), 1.0])
def test_scores_of_another_shape_are_refused(scores):
    with pytest.raises(DataError, match=r"not \(4, 4\) = \(cause, effect\)"):
        evaluate(DIAMOND, DIAMOND, scores)


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(DataError, match="numbers only"):
        evaluate(DIAMOND, DIAMOND, [["x"]])
