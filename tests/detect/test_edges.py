from dataclasses import replace

import numpy as np
import pytest

from causalformer.config import DetectorSettings
from causalformer.detect import edges
from causalformer.detect.edges import (
    contemporaneous_q,
    family_counts,
    found_edges,
    lagged_edges,
    main_lag,
)
from causalformer.graph import CausalGraph
from causalformer.knowledge import KnownGraph, PriorKnowledge
from evidence_examples import make_evidence, make_present, make_within

SETTINGS = DetectorSettings()
CLEAR, UNCLEAR = {(0, 1): 0.99}, {(0, 1): 0.6}  # how likely a link within a slot points so
PAIRS = [(j, i) for j in range(3) for i in range(3) if j != i]


def found(evidence, within=None, instantaneous="auto", known=None, alpha=0.05):
    known = known or KnownGraph.anything(3, 3)
    return found_edges(evidence, within, make_present(), known, alpha, SETTINGS, instantaneous)


def lagged(result):
    """The edges from the past as ``(cause, effect, lag)``."""
    return [(int(j), int(i), int(k) + 1) for j, i, k in np.argwhere(result.lagged)]


def within_edges(result):
    return np.argwhere(result.within).tolist()


class TestSelection:
    def test_without_evidence_there_is_no_edge(self):
        result = found(make_evidence())
        assert lagged(result) == []
        assert within_edges(result) == []

    def test_significant_edges_of_some_size_are_kept(self):
        evidence = make_evidence(p_value={(0, 1): 1e-6, (2, 2): 1e-6})
        assert lagged(found(evidence)) == [(0, 1, 1), (2, 2, 1)]

    def test_the_level_is_that_of_q_not_of_p(self):
        evidence = make_evidence(p_value={(0, 1): 0.03})
        assert evidence.q_value[0, 1] > 0.05
        assert lagged(found(evidence)) == []

    def test_a_tiny_effect_is_no_edge_between_series_but_a_self_loop(self):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6, (1, 2): 1e-6, (0, 0): 1e-6},
            size={(0, 1): 0.009, (1, 2): 0.011, (0, 0): 1e-4},
        )
        assert lagged(found(evidence)) == [(0, 0, 1), (1, 2, 1)]

    def test_an_edge_goes_only_if_it_is_shown_to_be_small(self):
        known = {"p_value": {(0, 1): 1e-6, (1, 2): 1e-6}, "size": {(0, 1): 0.009, (1, 2): 0.007}}
        assert lagged(found(make_evidence(**known, n_slots=5000))) == [(0, 1, 1)]
        assert lagged(found(make_evidence(**known, n_slots=500))) == [(0, 1, 1), (1, 2, 1)]

    def test_what_all_series_share_within_a_slot_is_not_asked_for_on_top(self):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6, (1, 2): 1e-6},
            size={(0, 1): 0.02, (1, 2): 0.2},
            residual_correlation=dict.fromkeys(PAIRS, 0.3),
        )
        assert lagged(found(evidence)) == [(0, 1, 1), (1, 2, 1)]

    def test_the_last_of_many_edges_must_be_more_likely_true_than_not(self):
        pairs = [(j, i) for j in range(12) for i in range(12) if j != i]
        noise = dict(zip(pairs[40:], np.linspace(0.01, 1, len(pairs) - 40), strict=True))
        evidence = make_evidence(12, p_value={**dict.fromkeys(pairs[:40], 1e-9), **noise})
        assert evidence.q_value[pairs[40]] < 0.05
        kept = lagged_edges(evidence, 0.05, SETTINGS)
        assert {(j, i) for j, i in np.argwhere(kept).tolist()} == set(pairs[:40])

    def test_the_level_is_the_users(self):
        evidence = make_evidence(p_value={(0, 1): 1e-3})
        q = evidence.q_value[0, 1]
        for alpha, expected in ((q * 0.99, False), (q, True)):
            assert lagged_edges(evidence, alpha, SETTINGS)[0, 1] == expected


class TestLags:
    def one_edge(self, profile, t=None):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6}, profile={(0, 1): profile}, t={(0, 1): t or [0, 0, 0]}
        )
        return [lag for *_, lag in lagged(found(evidence))]

    def test_the_strongest_lag_is_taken(self):
        assert self.one_edge([0.1, 0.2, 1.0]) == [3]

    def test_among_near_equals_the_earliest_is_taken(self):
        assert self.one_edge([0.1, 0.9, 1.0]) == [2]
        assert self.one_edge([1.0, 1.0, 1.0]) == [1]
        assert self.one_edge([0.7, 0.0, 1.0]) == [3]

    def test_a_lag_that_may_not_be_is_not_taken(self):
        profile, allowed = np.array([[[0.9, 0.5, 1.0]]]), np.array([[[False, True, True]]])
        assert main_lag(profile, allowed).tolist() == [[2]]

    def test_a_second_lag_needs_a_share_of_the_evidence_and_a_clear_t(self):
        assert self.one_edge([1.0, 0.1, 0.7], t=[9, 1, 8]) == [1, 3]
        assert self.one_edge([1.0, 0.1, 0.7], t=[9, 1, 5]) == [1]  # |t| too small
        assert self.one_edge([1.0, 0.1, 0.7], t=[20, 1, 8]) == [1]  # much smaller than the other
        assert self.one_edge([1.0, 0.1, 0.4], t=[9, 1, 8]) == [1]  # the network hardly uses it


class TestWithinASlot:
    def test_links_are_drawn_in_their_likelier_direction(self):
        result = found(make_evidence(), make_within(linked={(0, 1): 0.99, (2, 1): 0.51}))
        assert within_edges(result) == [[0, 1], [2, 1]]
        assert result.oriented[0, 1]
        assert not result.oriented[2, 1]

    @pytest.mark.parametrize("probability", [0.94, 0.95])
    def test_a_direction_is_claimed_at_a_level(self, probability):
        result = found(make_evidence(), make_within(linked={(0, 1): probability}))
        assert result.oriented[0, 1] == (probability >= 0.95)

    @pytest.mark.parametrize("option", [True, False, "auto"])
    def test_nobody_has_looked(self, option):
        result = found(make_evidence(p_value={(0, 1): 1e-6}), None, option)
        assert lagged(result) == [(0, 1, 1)]
        assert within_edges(result) == []
        assert (result.within_q == 1).all()

    @pytest.mark.parametrize("size", [0.1, 1.0])
    def test_lagged_edges_of_any_size_are_no_reason_against_links(self, size):
        evidence = make_evidence(p_value={(1, 2): 1e-6}, size={(1, 2): size})
        result = found(evidence, make_within(linked=CLEAR))
        assert lagged(result) == [(1, 2, 1)]
        assert within_edges(result) == [[0, 1]]

    def test_a_weak_link_is_a_link_if_it_is_significant(self):
        within = make_within(linked=CLEAR, partial=0.03)
        assert within_edges(found(make_evidence(), within)) == [[0, 1]]

    @pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
    def test_a_pair_may_have_both_kinds_of_edges(self, pair, monkeypatch):
        monkeypatch.setattr(edges, "explained_by_the_present", lambda *_: np.zeros((3, 3), bool))
        result = found(make_evidence(p_value={pair: 1e-6}), make_within(linked=CLEAR))
        assert lagged(result) == [(*pair, 1)]
        assert within_edges(result) == [[0, 1]]

    def test_what_the_present_explains_goes(self, monkeypatch):
        asked = []

        def explained(evidence, allowed, chosen, within, alpha):
            asked.append((allowed.shape, np.argwhere(within).tolist(), alpha))
            return chosen & (np.arange(3) == 1)

        monkeypatch.setattr(edges, "explained_by_the_present", explained)
        evidence = make_evidence(p_value={(0, 1): 1e-6, (1, 2): 1e-6})
        assert lagged(found(evidence, make_within(linked=CLEAR))) == [(1, 2, 1)]
        assert asked == [((3, 3, 3), [[0, 1]], 0.05)]

    def test_links_need_a_q_value_at_the_level(self):
        """0.04 of one pair is 0.12 of three; beside a clear one it is 0.06."""
        within = make_within(linked={(0, 1): 0.99, (1, 2): 0.99}, named_p={(1, 2): 0.04})
        assert contemporaneous_q(within, np.ones((3, 3), bool))[1, 2] == pytest.approx(0.06)
        assert within_edges(found(make_evidence(), within)) == [[0, 1]]
        assert within_edges(found(make_evidence(), within, alpha=0.07)) == [[0, 1], [1, 2]]

    def test_only_pairs_that_may_be_are_counted(self):
        within, allowed = make_within(linked=CLEAR, p_value=0.02), np.ones((3, 3), dtype=bool)
        for effect, q in ((None, 0.06), (2, 0.02)):
            if effect is not None:
                allowed[effect] = allowed[:, effect] = False
            found_q = contemporaneous_q(within, allowed)
            assert found_q[0, 1] == found_q[1, 0] == pytest.approx(q)
        assert (found_q[2] == 1).all()


class TestFamilies:
    """Lagged edges and links within a slot: each must find something at half the level."""

    def test_half_the_level(self):
        for smallest, two, expected in (
            (0.026, True, False),
            (0.025, True, True),
            (0.026, False, True),
            (0.051, False, False),
        ):
            assert family_counts(np.array([1.0, smallest, 0.06]), 0.05, two) == expected

    def links(self, p_value):
        return make_within(linked=CLEAR, p_value=p_value)  # q is three times p

    def test_links_count_only_then(self):
        assert within_edges(found(make_evidence(), self.links(0.0083))) == [[0, 1]]
        for option in ("auto", True):
            assert within_edges(found(make_evidence(), self.links(0.0085), option)) == []

    def lagged_pair(self, q_value, self_loop=None, other=None):
        """An edge and a self-loop, the best of six and of three tests; or an edge before that."""
        p_value = {(0, 1): q_value / 6, (2, 2): (self_loop or q_value) / 3}
        if other:
            p_value |= {(1, 0): other / 6, (0, 1): q_value / 3}
        return make_evidence(p_value=p_value)

    @pytest.mark.parametrize("option", ["auto", True])
    def test_edges_between_series_count_only_then_but_self_loops_do(self, option):
        assert lagged(found(self.lagged_pair(0.025), None, option)) == [(0, 1, 1), (2, 2, 1)]
        assert lagged(found(self.lagged_pair(0.026), None, option)) == [(2, 2, 1)]

    def test_a_self_loop_is_none_of_the_family(self):
        assert lagged(found(self.lagged_pair(0.04, self_loop=1e-9))) == [(2, 2, 1)]

    def test_one_is_enough_for_the_others(self):
        found_anyway = lagged(found(self.lagged_pair(0.04, other=0.02)))
        assert found_anyway == [(0, 1, 1), (1, 0, 1), (2, 2, 1)]

    def test_a_single_family_has_the_whole_level(self):
        result = found(self.lagged_pair(0.04), None, instantaneous=False)
        assert lagged(result) == [(0, 1, 1), (2, 2, 1)]


class TestHiddenDrivers:
    def within(self, hidden, probability=0.99):
        return make_within(linked={(0, 1): probability}, hidden={(0, 1): hidden})

    def test_what_a_hidden_driver_explains_is_a_link_only_if_asked_for(self):
        for option, expected in (("auto", []), (True, [[0, 1]])):
            result = found(make_evidence(), self.within(0.95), option)
            assert within_edges(result) == expected
            assert not result.oriented[0, 1]

    def test_what_it_may_explain_is_drawn_and_marked(self):
        for hidden, marked in ((0.94, True), (0.5, True), (0.49, False)):
            result = found(make_evidence(), self.within(hidden))
            assert within_edges(result) == [[0, 1]]
            assert result.oriented[0, 1] == (not marked)  # no arrow
            assert result.may_be_hidden[0, 1] == marked
            (edge,) = result.edges(("a", "b", "c"), None)
            assert bool(edge.may_be_confounded) == marked
            assert (f"probability {hidden:.2f}" in edge.may_be_confounded) == marked

    def lagged_result(self, monkeypatch, hidden, **others):
        likely = np.zeros((3, 3))
        likely[0, 1] = hidden
        monkeypatch.setattr(edges, "hidden_drivers", lambda *_: likely)
        return found(make_evidence(p_value={(0, 1): 1e-6, (1, 2): 1e-6}), **others)

    @pytest.mark.parametrize("option", ["auto", True, False])
    @pytest.mark.parametrize(("hidden", "marked"), [(0.99, True), (0.5, True), (0.49, False)])
    def test_a_lagged_edge_that_may_be_a_hidden_drivers_is_drawn_and_marked(
        self, monkeypatch, hidden, marked, option
    ):
        result = self.lagged_result(monkeypatch, hidden, instantaneous=option)
        assert lagged(result) == [(0, 1, 1), (1, 2, 1)]
        assert not result.by_hidden_driver.any()
        assert np.argwhere(result.may_be_hidden).tolist() == ([[0, 1]] if marked else [])
        first, second = result.edges(("a", "b", "c"), None)
        assert bool(first.may_be_confounded) == marked
        if marked:
            assert "b follows what is unexpected in a" in first.may_be_confounded
        assert second.may_be_confounded == ""

    def test_links_that_are_not_drawn_are_kept_in_mind(self):
        for option, expected in (("auto", [[0, 1]]), (True, [])):
            result = found(make_evidence(), self.within(0.95), option)
            assert np.argwhere(result.by_hidden_driver).tolist() == expected

    def test_how_many_edges_are_a_hidden_drivers_is_the_sum_of_those_marked(self, monkeypatch):
        within = make_within(linked={(0, 2): 0.99}, hidden={(0, 2): 0.7})
        assert self.lagged_result(monkeypatch, 0.6).n_hidden == pytest.approx(0.6)
        assert self.lagged_result(monkeypatch, 0.4).n_hidden == 0
        result = self.lagged_result(monkeypatch, 0.6, within=within)
        assert result.n_hidden == pytest.approx(1.3 if result.lagged[0, 1].any() else 0.7)

    def test_only_edges_between_series_at_their_main_lag_are_asked_for(self, monkeypatch):
        asked = []

        def nothing(present, some, lag):
            asked.append((np.argwhere(some).tolist(), int(lag[0, 1])))
            return np.zeros((3, 3))

        monkeypatch.setattr(edges, "hidden_drivers", nothing)
        found(make_evidence(p_value={(0, 1): 1e-6, (2, 2): 1e-6}, profile={(0, 1): [0, 1, 0]}))
        assert asked == [([[0, 1]], 1)]

    def test_beside_a_driver_of_all_series_its_evidence_counts(self, monkeypatch):
        asked = []
        beside = make_evidence(p_value={(1, 2): 1e-6, (2, 0): 1e-6, (1, 1): 1e-6})

        def tested_anew(evidence, present, allowed, chosen, within):
            asked.append((np.argwhere(chosen).tolist(), np.argwhere(within).tolist()))
            return beside

        monkeypatch.setattr(edges, "beside_a_driver", tested_anew)
        result = found(make_evidence(p_value={(0, 1): 1e-6, (1, 2): 1e-6, (1, 1): 1e-6}))
        assert lagged(result) == [(1, 1, 1), (1, 2, 1), (2, 0, 1)]
        assert asked == [([[0, 1], [1, 2]], [])]
        assert result.driven
        assert result.evidence is beside
        monkeypatch.setattr(edges, "beside_a_driver", lambda *_: None)
        assert not found(make_evidence()).driven


class TestAlongLaggedEdges:
    """A link whose direction is not claimed goes along the lagged edge of the pair."""

    def turned(self, links, lagged, oriented=(), forbidden=()):
        matrices = np.zeros((4, 3, 3), dtype=bool)
        for matrix, some in zip(matrices, (links, oriented, lagged, forbidden), strict=True):
            for pair in some:
                matrix[pair] = True
        found = edges.along_lagged_edges(*matrices[:3], ~matrices[3])
        return [tuple(pair) for pair in np.argwhere(found).tolist()]

    def test_it_is_turned(self):
        assert self.turned([(0, 1), (1, 2)], lagged=[(1, 0), (1, 2)]) == [(1, 0), (1, 2)]

    def test_not_if_its_direction_is_claimed(self):
        assert self.turned([(0, 1)], lagged=[(1, 0)], oriented=[(0, 1)]) == [(0, 1)]

    def test_not_if_there_are_lagged_edges_both_ways_or_none(self):
        assert self.turned([(0, 1)], lagged=[(1, 0), (0, 1)]) == [(0, 1)]
        assert self.turned([(0, 1)], lagged=[(0, 2), (2, 1)]) == [(0, 1)]

    def test_not_if_that_may_not_be(self):
        assert self.turned([(0, 1)], lagged=[(1, 0)], forbidden=[(1, 0)]) == [(0, 1)]

    def test_not_if_it_would_close_a_cycle(self):
        links = [(0, 1), (0, 2), (2, 1)]
        assert self.turned(links, lagged=[(1, 0)]) == links

    def test_the_graph_has_it_and_tests_the_lagged_edge_beside_it(self, monkeypatch):
        asked = []

        def explained(_evidence, _allowed, chosen, within, _alpha):
            asked.append(np.argwhere(within).tolist())
            return chosen & False

        monkeypatch.setattr(edges, "explained_by_the_present", explained)
        evidence = make_evidence(p_value={(1, 0): 1e-6})
        result = found(evidence, make_within(linked={(0, 1): 0.6}))
        assert within_edges(result) == [[1, 0]]
        assert asked == [[[1, 0]]]
        assert within_edges(found(evidence, make_within(linked={(0, 1): 0.99}))) == [[0, 1]]


class TestScore:
    def test_without_links_it_is_that_of_the_past(self):
        evidence = make_evidence(p_value={(0, 1): 1e-6})
        np.testing.assert_allclose(found(evidence).score, -np.log10(evidence.pairs.p_value))

    def test_links_count_in_each_direction_by_how_likely_it_is(self):
        within = make_within(linked={(0, 1): 0.8}, p_value=1e-10)
        score = found(make_evidence(p_value={(1, 0): 1e-3}), within).score
        assert score[0, 1] == pytest.approx(8)
        assert score[1, 0] == pytest.approx(3)
        assert score[0, 2] == pytest.approx(-np.log10(0.9))


class TestGraph:
    NAMES = ("a", "b", "c")

    def graph(self, frequency=None):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6, (2, 2): 1e-4},
            size={(0, 1): 0.3},
            profile={(0, 1): [0.0, 1.0, 0.64]},
            t={(0, 1): [0, 9, 9]},
        )
        within = make_within(linked={(0, 2): 0.99, (1, 2): 0.6}, partial=-0.5)
        result = found(evidence, within, instantaneous=True)
        return result, CausalGraph(self.NAMES, result.edges(self.NAMES, frequency))

    def test_edges_carry_their_evidence(self):
        result, graph = self.graph()
        edges = {(e.cause, e.effect, e.lag): e for e in graph}
        assert set(edges) == {
            *(("a", "b", 2), ("a", "b", 3), ("c", "c", 1)),
            *(("a", "c", 0), ("b", "c", 0)),
        }
        main = edges["a", "b", 2]
        assert main.score == pytest.approx(6)
        assert (main.p_value, main.q_value) == (1e-6, result.evidence.q_value[0, 1])
        assert main.strength == pytest.approx(0.4)
        assert np.isnan(main.frequency)

    def test_a_second_lag_ranks_below_the_main_one(self):
        _, graph = self.graph()
        edges = {e.lag: e for e in graph if (e.cause, e.effect) == ("a", "b")}
        assert edges[3].score == pytest.approx(0.64 * 6)
        assert edges[3].strength == pytest.approx(0.8 * 0.4)

    def test_a_later_lag_never_ranks_above_the_main_one(self):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6}, profile={(0, 1): [0.9, 1.0, 0.0]}, t={(0, 1): [9, 9, 0]}
        )
        graph = CausalGraph(self.NAMES, found(evidence).edges(self.NAMES, None))
        assert [e.lag for e in graph] == [1, 2]

    def test_links_within_a_slot_say_whether_the_direction_is_known(self):
        _, graph = self.graph()
        edges = {(e.cause, e.effect): e for e in graph if e.lag == 0}
        assert edges["a", "c"].oriented
        assert not edges["b", "c"].oriented
        assert edges["a", "c"].strength == 0.5

    def test_frequencies_belong_to_edges_from_the_past(self):
        _, graph = self.graph(frequency=np.full((3, 3), 0.75))
        assert {e.frequency for e in graph if e.lag > 0} == {0.75}
        assert all(np.isnan(e.frequency) for e in graph if e.lag == 0)


class TestKnowledge:
    """What is known beforehand comes first; see also `test_known_edges`."""

    NAMES = ("a", "b", "c")

    def known(self, **statements):
        return PriorKnowledge(**statements).resolve(self.NAMES, 3)

    def edges(self, evidence, within=None, instantaneous=True, **statements):
        known = self.known(**statements)
        result = found(evidence, within, instantaneous, known)
        assert known.violations(CausalGraph(self.NAMES, result.edges(self.NAMES, None))) == []
        return lagged(result), within_edges(result)

    def test_a_required_edge_is_there_at_its_likeliest_lag(self):
        evidence = make_evidence(profile={(0, 1): [0.1, 0.2, 1.0]})
        assert self.edges(evidence, required=["a -> b"]) == ([(0, 1, 3)], [])

    def test_a_required_lag_is_there_besides_the_one_that_is_found(self):
        evidence = make_evidence(p_value={(0, 1): 1e-6})
        assert self.edges(evidence, required=["a -> b @ 2"]) == ([(0, 1, 1), (0, 1, 2)], [])

    def test_a_required_lag_alone_where_nothing_is_found(self):
        assert self.edges(make_evidence(), required=["a -> b @ 2"]) == ([(0, 1, 2)], [])

    def test_a_found_edge_takes_the_best_lag_that_is_allowed(self):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6}, profile={(0, 1): [1.0, 0.2, 0.3]}, t={(0, 1): [9, 8, 8]}
        )
        assert self.edges(evidence, forbidden=["a -> b @ 1"]) == ([(0, 1, 3)], [])

    def test_a_direction_that_is_known_is_no_guess(self):
        within = make_within(linked=UNCLEAR)
        assert not found(make_evidence(), within).oriented[0, 1]
        known = self.known(forbidden=["b -> a @ 0"])
        assert found(make_evidence(), within, known=known).oriented[0, 1]

    def test_a_pair_that_may_not_be_linked_is_not(self):
        both = {"forbidden": ["a -> b @ 0", "b -> a @ 0"]}
        within = make_within()  # that nothing is found there, `test_contemporaneous` says
        assert self.edges(make_evidence(), within, **both) == ([], [])

    @pytest.mark.parametrize("option", [True, False, "auto"])
    def test_a_required_link_within_a_slot_is_there_whatever_is_asked_for(self, option):
        within = make_within(linked=CLEAR)
        told = {"required": ["b -> a @ 0"]}
        assert self.edges(make_evidence(), within, option, **told) == ([], [[1, 0]])

    def test_an_edge_without_an_allowed_past_must_be_within_the_slot(self):
        lags = [f"a -> b @ {lag}" for lag in (1, 2, 3)]
        assert self.edges(make_evidence(), required=["a -> b"], forbidden=lags) == ([], [[0, 1]])

    def test_a_required_self_loop_is_at_a_lag(self):
        assert self.edges(make_evidence(), required=["c -> c"]) == ([(2, 2, 1)], [])


class TestSeriesThatFlow:
    """Pairs judged by what a cause does during the slot."""

    @staticmethod
    def evidence(*flows):
        evidence = make_evidence(p_value={(0, 1): 1e-6, (1, 2): 1e-6})
        judged = np.zeros((3, 3), dtype=bool)
        judged[tuple(np.transpose(flows))] = True
        return replace(evidence, pairs=replace(evidence.pairs, flows=judged))

    def test_the_present_takes_none_of_their_edges(self, monkeypatch):
        monkeypatch.setattr(edges, "explained_by_the_present", lambda *given: given[2])
        assert lagged(found(self.evidence((0, 1)))) == [(0, 1, 1)]

    def test_nor_is_a_driver_of_all_series_looked_for(self, monkeypatch):
        monkeypatch.setattr(edges, "beside_a_driver", lambda *_: make_evidence())
        result = found(self.evidence((0, 1)))
        assert lagged(result) == [(0, 1, 1), (1, 2, 1)]
        assert not result.driven

    @pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
    def test_their_links_within_a_slot_are_explained(self, pair):
        within = make_within(linked=CLEAR)
        assert within_edges(found(self.evidence(pair), within)) == []
        assert within_edges(found(self.evidence((0, 2)), within)) == [[0, 1]]

    @pytest.mark.parametrize("pair", [(0, 2), (2, 0)])
    def test_nor_are_they_a_hidden_drivers(self, pair):
        within = make_within(linked={(0, 2): 0.99}, hidden={(0, 2): 0.999})
        assert found(self.evidence((0, 1)), within).by_hidden_driver.any()
        assert not found(self.evidence(pair), within).by_hidden_driver.any()

    def test_unless_links_are_asked_for(self):
        within = make_within(linked=CLEAR)
        assert within_edges(found(self.evidence((0, 1)), within, instantaneous=True)) == [[0, 1]]


@pytest.mark.parametrize("levels", [False, True])
def test_no_hidden_series_is_sought_where_levels_show_more_than_surprises(monkeypatch, levels):
    asked = []
    monkeypatch.setattr(edges, "find_hidden_series", lambda *given: asked.append(given))
    found(make_evidence(), replace(make_within(), levels=levels))
    assert len(asked) == (not levels)
