"""Links within a slot beside links from the past: found, oriented, and not told twice."""

from dataclasses import replace

import numpy as np
import pytest

from causalformer import CausalFormer, PriorKnowledge
from causalformer.data.scaling import fit_normal_scores
from causalformer.detect.present import explained_by_the_present, present_evidence
from evidence_examples import make_evidence, make_within, samples_of

ANY_LAG = np.ones((3, 3, 2), dtype=bool)


def chain(n_slots=500, seed=0, law="standard_normal", within=0.7):
    """0 drives 1 after a slot, 1 drives 2 within the slot, all remember; 3 series."""
    rng = np.random.default_rng(seed)
    x = getattr(rng, law)(size=(n_slots, 3))
    for t in range(1, n_slots):
        x[t] += 0.5 * x[t - 1]
        x[t, 1] += 0.6 * x[t - 1, 0]
        x[t, 2] += within * x[t, 1]
    return x


def evidence_of(x, chosen=(), max_lag=2):
    """Evidence whose held-out errors are those of a regression on the past."""
    scores = fit_normal_scores(x).apply(x)
    samples = samples_of(scores, max_lag)
    past = np.column_stack([np.ones(len(samples)), samples.past.flatten(1).numpy()])
    now = samples.now.numpy()
    wrong = now - past @ np.linalg.lstsq(past, now, rcond=None)[0]
    made = make_evidence(3, max_lag, p_value=dict.fromkeys(chosen, 1e-6), n_slots=len(samples))
    removal = replace(
        made.removal,
        residual_correlation=np.corrcoef(wrong.T),
        residual=wrong.astype(np.float32),
        error=(wrong**2).mean(axis=0),
    )
    return replace(made, samples=samples, removal=removal)


@pytest.mark.parametrize("law", ["standard_normal", "laplace", "uniform"])
def test_a_link_within_a_slot_is_found_and_points_the_right_way(law):
    found = present_evidence(evidence_of(chain(law=law)), make_within(), ANY_LAG, 0.05, 0.05)
    assert np.argwhere(found.linked(0.05, 0.05)).tolist() == [[1, 2], [2, 1]]
    assert found.direction[1, 2] > 3
    assert found.direction[2, 1] == -found.direction[1, 2]
    assert found.oriented[1, 2]


def test_errors_that_are_larger_than_need_be_are_no_evidence():
    x = chain(within=0.0)
    evidence = evidence_of(x)
    shared = np.random.default_rng(5).standard_normal((len(evidence.samples), 1))
    wrong = evidence.removal.residual + shared.astype(np.float32)
    removal = replace(
        evidence.removal,
        residual=wrong,
        residual_correlation=np.corrcoef(wrong.T),
        error=(wrong**2).mean(axis=0),
    )
    found = present_evidence(replace(evidence, removal=removal), make_within(), ANY_LAG, 0.05, 0.05)
    assert not found.linked(0.05, 0.05).any()


def test_the_order_of_the_series_does_not_matter():
    x, order = chain(), [2, 0, 1]
    plain = present_evidence(evidence_of(x), make_within(), ANY_LAG, 0.05, 0.05)
    other = present_evidence(evidence_of(x[:, order]), make_within(), ANY_LAG, 0.05, 0.05)
    at = np.ix_(order, order)
    np.testing.assert_allclose(other.partial, plain.partial[at], atol=1e-9)
    np.testing.assert_allclose(other.direction, plain.direction[at], atol=1e-5)


def test_where_the_past_does_not_tell_the_shape_of_the_noise_is_asked():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((500, 3))
    x[:, 2] += x[:, 1]
    for way, oriented in ((0.4, False), (4.0, True)):
        within = make_within(direction={(1, 2): way})
        found = present_evidence(evidence_of(x), within, ANY_LAG, 0.05, 0.05)
        assert found.linked(0.05, 0.05)[1, 2]
        assert found.direction[1, 2] == way
        assert found.oriented[1, 2] == oriented


def test_what_comes_through_the_present_is_no_edge_from_the_past():
    through = [(0, 1), (0, 2), (1, 2)]
    evidence = evidence_of(chain(), chosen=through)
    chosen, within = np.zeros((2, 3, 3), dtype=bool)
    chosen[tuple(np.transpose(through))] = True
    within[1, 2] = True
    explained = explained_by_the_present(evidence, ANY_LAG, chosen, within, 0.05)
    assert np.argwhere(explained).tolist() == [[0, 2], [1, 2]]


def edges(model, x):
    graph = model.fit(x).graph_
    place = graph.names.index
    return {(place(e.cause), place(e.effect), e.lag) for e in graph if e.cause != e.effect}


@pytest.mark.parametrize("choice", ["auto", True])
def test_a_graph_holds_both_kinds_of_edges(choice):
    model = CausalFormer(instantaneous=choice)
    assert edges(model, chain()) == {(0, 1, 1), (1, 2, 0)}
    link = next(e for e in model.graph_ if e.kind == "instantaneous")
    assert link.oriented
    assert link.p_value < 1e-6


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_weak_links_within_a_slot_are_drawn_only_if_asked_for():
    x = chain(2000, within=0.15)
    kinds = {
        choice: {e.kind for e in CausalFormer(instantaneous=choice).fit(x).graph_}
        for choice in ("auto", True, False)
    }
    assert "instantaneous" in kinds[True]
    assert "instantaneous" not in kinds["auto"] | kinds[False]


def test_a_forbidden_direction_is_not_drawn():
    knowledge = PriorKnowledge(forbidden=[("x1", "x2")])
    found = edges(CausalFormer(instantaneous=True, knowledge=knowledge), chain())
    assert (1, 2) not in {(cause, effect) for cause, effect, _ in found}
    assert (2, 1, 0) in found


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_with_missing_values_links_beside_the_past_are_left_out_unless_asked_for():
    x = chain()
    x[np.random.default_rng(3).random(x.shape) < 0.1] = np.nan
    kinds = {
        choice: {e.kind for e in CausalFormer(instantaneous=choice).fit(x).graph_}
        for choice in ("auto", True)
    }
    assert "instantaneous" in kinds[True]
    assert "instantaneous" not in kinds["auto"]
