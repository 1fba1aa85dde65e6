import numpy as np
import pytest

from causalformer.config import DetectorSettings
from causalformer.detect.edges import found_edges, lagged_edges, main_lag
from causalformer.graph import CausalGraph
from causalformer.knowledge import KnownGraph, PriorKnowledge
from evidence_examples import make_evidence, make_within

SETTINGS = DetectorSettings()
BOTH = {(0, 1): 0.5}


def found(evidence, within=None, instantaneous="auto", known=None):
    known = known or KnownGraph.anything(3, 3)
    return found_edges(evidence, within or make_within(), known, 0.05, SETTINGS, instantaneous)


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

    def test_what_all_series_share_within_a_slot_is_asked_for_on_top(self):
        pairs = ((j, i) for j in range(3) for i in range(3) if j != i)
        evidence = make_evidence(
            p_value={(0, 1): 1e-6, (1, 2): 1e-6},
            size={(0, 1): 0.18, (1, 2): 0.2},
            residual_correlation=dict.fromkeys(pairs, 0.3),
        )
        assert evidence.removal.shared == pytest.approx(0.09)
        assert lagged(found(evidence)) == [(1, 2, 1)]

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

    def test_a_lag_that_alone_leaves_the_least_error_is_taken_before_the_profile(self):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6},
            profile={(0, 1): [1.0, 0.2, 0.1]},
            lag_error={(0, 1): [0.9, 0.5, 0.7]},
        )
        everything = np.ones((3, 3, 3), dtype=bool)
        assert main_lag(evidence, everything)[0, 1] == 1
        assert [lag for *_, lag in lagged(found(evidence))] == [2]

    def test_a_second_lag_needs_a_share_of_the_evidence_and_a_clear_t(self):
        assert self.one_edge([1.0, 0.1, 0.7], t=[9, 1, 8]) == [1, 3]
        assert self.one_edge([1.0, 0.1, 0.7], t=[9, 1, 5]) == [1]  # |t| too small
        assert self.one_edge([1.0, 0.1, 0.7], t=[20, 1, 8]) == [1]  # much smaller than the other
        assert self.one_edge([1.0, 0.1, 0.4], t=[9, 1, 8]) == [1]  # the network hardly uses it


class TestWithinASlot:
    def test_auto_draws_links_that_explain_more_than_the_past_does(self):
        within = make_within(partial=BOTH, direction={(0, 1): 3.0})  # explains 0.25
        weak, strong = (
            make_evidence(p_value={(1, 2): 1e-6}, size={(1, 2): size}) for size in (0.2, 0.3)
        )
        assert within_edges(found(weak, within)) == [[0, 1]]
        assert within_edges(found(strong, within)) == []

    def test_self_loops_are_no_reason_against_links_within_a_slot(self):
        within = make_within(partial=BOTH, direction={(0, 1): 3.0})
        evidence = make_evidence(p_value={(0, 0): 1e-6}, size={(0, 0): 1.0})
        assert within_edges(found(evidence, within)) == [[0, 1]]

    @pytest.mark.parametrize(
        ("option", "expected"),
        [(True, 1), (False, 0), (np.True_, 1), (np.False_, 0), (1, 1), (0, 0)],
    )
    def test_yes_and_no_are_taken_at_their_word(self, option, expected):
        within = make_within(partial=BOTH, direction={(0, 1): 3.0})
        evidence = make_evidence(p_value={(1, 2): 1e-6}, size={(1, 2): 0.2})
        assert len(within_edges(found(evidence, within, instantaneous=option))) == expected

    @pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
    def test_a_pair_with_an_edge_from_the_past_gets_no_second_one(self, pair):
        within = make_within(partial=BOTH | {(1, 2): 0.5}, direction={(0, 1): 3.0, (1, 2): 3.0})
        evidence = make_evidence(p_value={pair: 1e-6}, size={pair: 0.3})
        result = found(evidence, within, instantaneous=True)
        assert lagged(result) == [(*pair, 1)]
        assert within_edges(result) == [[1, 2]]

    def test_a_link_goes_in_its_likelier_direction_only(self):
        within = make_within(partial=BOTH, direction={(1, 0): 0.1})
        assert within_edges(found(make_evidence(), within)) == [[1, 0]]

    def test_a_tiny_partial_correlation_is_no_link(self):
        within = make_within(
            partial={(0, 1): 0.09, (0, 2): -0.11}, direction={(0, 2): 3, (0, 1): 3}
        )
        assert within_edges(found(make_evidence(), within)) == [[0, 2]]


class TestGraph:
    NAMES = ("a", "b", "c")

    def graph(self, frequency=None):
        evidence = make_evidence(
            p_value={(0, 1): 1e-6, (2, 2): 1e-4},
            size={(0, 1): 0.3},
            profile={(0, 1): [0.0, 1.0, 0.64]},
            t={(0, 1): [0, 9, 9]},
        )
        within = make_within(
            partial={(0, 2): -0.5, (1, 2): 0.3}, direction={(0, 2): 2.5, (2, 1): 1}
        )
        result = found(evidence, within, instantaneous=True)
        return result, CausalGraph(self.NAMES, result.edges(self.NAMES, frequency))

    def test_edges_carry_their_evidence(self):
        result, graph = self.graph()
        edges = {(e.cause, e.effect, e.lag): e for e in graph}
        assert set(edges) == {
            *(("a", "b", 2), ("a", "b", 3), ("c", "c", 1)),
            *(("a", "c", 0), ("c", "b", 0)),
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
        assert not edges["c", "b"].oriented
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

    def test_a_link_within_a_slot_takes_the_only_direction_that_is_allowed(self):
        within = make_within(partial=BOTH, direction={(0, 1): 3.0})
        assert self.edges(make_evidence(), within) == ([], [[0, 1]])
        told = {"forbidden": ["a -> b @ 0"]}
        assert self.edges(make_evidence(), within, **told) == ([], [[1, 0]])
        both = {"forbidden": ["a -> b @ 0", "b -> a @ 0"]}
        assert self.edges(make_evidence(), within, **both) == ([], [])

    def test_a_direction_that_is_known_is_no_guess(self):
        within = make_within(partial=BOTH, direction={(0, 1): 0.5})
        assert not found(make_evidence(), within).oriented[0, 1]
        known = self.known(forbidden=["b -> a @ 0"])
        assert found(make_evidence(), within, known=known).oriented[0, 1]

    @pytest.mark.parametrize("option", [True, False, "auto"])
    def test_a_required_link_within_a_slot_is_there_whatever_is_asked_for(self, option):
        within = make_within(partial=BOTH, direction={(0, 1): 3.0})
        told = {"required": ["b -> a @ 0"]}
        assert self.edges(make_evidence(), within, option, **told) == ([], [[1, 0]])

    def test_an_edge_without_an_allowed_past_must_be_within_the_slot(self):
        lags = [f"a -> b @ {lag}" for lag in (1, 2, 3)]
        assert self.edges(make_evidence(), required=["a -> b"], forbidden=lags) == ([], [[0, 1]])

    def test_a_required_self_loop_is_at_a_lag(self):
        assert self.edges(make_evidence(), required=["c -> c"]) == ([(2, 2, 1)], [])
