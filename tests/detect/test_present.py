"""What comes through the present is no edge from the past, and both kinds stand in one graph."""

from dataclasses import replace

import numpy as np
import pytest

from causalformer import CausalFormer, PriorKnowledge
from causalformer.data.scaling import fit_normal_scores
from causalformer.detect.present import beside_the_present, explained_by_the_present
from evidence_examples import make_evidence, samples_of

ANY_LAG = np.ones((3, 3, 2), dtype=bool)
THROUGH = [(0, 1), (0, 2), (1, 2)]


def chain(n_slots=500, seed=0, law="standard_normal", within=0.7, later=0.0):
    """0 drives 1 after a slot, 1 drives 2 within the slot, all remember; 3 series."""
    rng = np.random.default_rng(seed)
    x = getattr(rng, law)(size=(n_slots, 3))
    for t in range(1, n_slots):
        x[t] += 0.5 * x[t - 1]
        x[t, 1] += 0.6 * x[t - 1, 0]
        x[t, 2] += within * x[t, 1] + later * x[t - 1, 1]
    return x


def explained(x, chosen=THROUGH, within=((1, 2),), allowed=ANY_LAG, alpha=0.05):
    """The edges, of some that were chosen, that come through links within the slot."""
    samples = samples_of(fit_normal_scores(x).apply(x), 2)
    evidence = replace(make_evidence(3, 2), samples=samples)
    edges, links = np.zeros((2, 3, 3), dtype=bool)
    edges[tuple(np.transpose(chosen))] = True
    for link in within:
        links[link] = True
    found = explained_by_the_present(evidence, allowed, edges, links, alpha)
    return [tuple(pair) for pair in np.argwhere(found).tolist()]


class TestExplained:
    def test_what_comes_through_the_present(self):
        assert explained(chain()) == [(0, 2), (1, 2)]

    def test_an_edge_beside_the_link_is_kept(self):
        assert explained(chain(later=0.6)) == [(0, 2)]

    def test_without_links_nothing_is(self):
        assert explained(chain(), within=()) == []

    def test_only_edges_that_were_chosen(self):
        assert explained(chain(), chosen=[(0, 2)]) == [(0, 2)]

    def test_the_level_is_the_users(self):
        x = chain()
        assert explained(x, alpha=0.0) == [(0, 2), (1, 2)]
        assert explained(x, alpha=1.0) == []

    def test_self_loops_are_kept(self):
        assert explained(chain(), chosen=[(2, 2), (1, 2)]) == [(1, 2)]

    @pytest.mark.parametrize(("later", "expected"), [(0.0, True), (0.8, False)])
    def test_in_spite_of_missing_values(self, later, expected):
        x = chain(1500, later=later)
        x[np.random.default_rng(3).random(x.shape) < 0.1] = np.nan
        assert ((1, 2) in explained(x)) == expected

    def test_only_samples_count_in_which_the_present_was_observed(self):
        """A guess in its place would leave to the past what the present explains."""
        kept = []
        for seed in range(6):
            x = chain(2000, seed, within=0.9)
            x[np.random.default_rng(seed).random(x.shape) < 0.2] = np.nan
            kept += set(THROUGH) - {(0, 1)} - set(explained(x))
        assert len(kept) <= 2  # of twelve, at a level of 5 %

    def test_the_present_stands_beside_the_past(self):
        x = chain(200)
        x[5, 1] = np.nan
        samples = samples_of(x, 2)
        links = np.zeros((3, 3), dtype=bool)
        links[1, 2] = True
        some, usable = beside_the_present(samples, ANY_LAG, [2, 0], links)
        assert usable.tolist() == [[True, True], [True, True], [True, False]]
        np.testing.assert_array_equal(some.past[:, 2, 0], samples.now[:, 1])
        assert np.flatnonzero(some.observed[:, 0] == 0).tolist() == [3]  # slot 5
        assert not some.hidden[:, 2].any()
        alone, usable = beside_the_present(samples, ANY_LAG, [0, 1], links)
        assert alone.past.shape == (198, 2, 2)
        assert usable.shape == (2, 2)


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
def test_a_pair_may_have_both_kinds():
    assert {(1, 2, 0), (1, 2, 1)} <= edges(CausalFormer(), chain(1000, later=0.8))


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_weak_links_are_drawn_if_they_are_significant_but_not_if_none_are_wanted():
    x = chain(1000, within=0.2)
    kinds = {
        choice: {e.kind for e in CausalFormer(instantaneous=choice).fit(x).graph_}
        for choice in ("auto", False)
    }
    assert "instantaneous" in kinds["auto"]
    assert "instantaneous" not in kinds[False]


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_a_forbidden_direction_is_not_drawn():
    knowledge = PriorKnowledge(forbidden=[("x1", "x2")])
    found = edges(CausalFormer(instantaneous=True, knowledge=knowledge), chain())
    assert (1, 2) not in {(cause, effect) for cause, effect, _ in found}
    assert (2, 1, 0) in found


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_with_missing_values_links_are_found_too():
    x = chain(1000)
    x[np.random.default_rng(3).random(x.shape) < 0.1] = np.nan
    found = edges(CausalFormer(), x)
    assert (1, 2, 0) in found
    assert (0, 1, 1) in found
