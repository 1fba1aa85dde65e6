"""Where series act all the time, direct causes are told by what they do during a slot."""

from statistics import NormalDist

import numpy as np
import pytest
import torch

from causalformer import CausalFormer
from causalformer.data.scaling import fit_normal_scores
from causalformer.datasets import make_lorenz96
from causalformer.detect import calibrated, flow
from causalformer.detect.flow import flow_tests
from causalformer.policy import varied
from evidence_examples import samples_of

RING = 6


def ring(n_slots=500, seed=0, n_series=RING, **options):
    """Lorenz-96: ``i - 2, i - 1, i + 1`` drive i."""
    options = {"forcing": 10.0, **options}
    return make_lorenz96(n_series, n_slots, random_state=seed, **options).series.values


def drives(n_series=RING):
    """Which series drive which in the ring, without self-loops."""
    i = np.arange(n_series)
    true = np.zeros((n_series, n_series), dtype=bool)
    for distance in (-2, -1, 1):
        true[(i + distance) % n_series, i] = True
    return true


def judged(x, unexplained=True, allowed=True, sources=None, own=None, **options):
    """The tests of all series, or of those that are said to be unexplained."""
    n_series = x.shape[1]
    own = np.eye(n_series, dtype=bool) if own is None else own
    samples = samples_of(fit_normal_scores(x).apply(x), 2, **options)
    unexplained = np.broadcast_to(unexplained, n_series)
    return flow_tests(
        samples, unexplained, np.broadcast_to(allowed, own.shape), own, sources=sources
    )


def slots(act, n_slots=500, seed=0):
    """Three series, of which the last hangs on a product of the others, as `act` says."""
    x = np.random.default_rng(seed).standard_normal((n_slots, 3))
    for t in range(1, n_slots):
        x[t, :2] += 0.6 * x[t - 1, :2]
        x[t, 2] += 0.5 * x[t - 1, 2] + act(x, t)
    return x


def later(x, t):
    return x[t - 1, 0] * x[t - 1, 1]


def at_once(x, t):
    return x[t, 0] * x[t, 1]


def all_the_time(x, t):
    return (x[t - 1, 0] * x[t - 1, 1] + x[t, 0] * x[t, 1]) / 2


class TestCauses:
    @pytest.mark.parametrize("n_series", [6, 7, 10])
    def test_direct_causes_are_told_from_indirect_ones(self, n_series):
        tests, true = judged(ring(n_series=n_series)), drives(n_series)
        others = ~true & ~np.eye(n_series, dtype=bool)
        assert tests.flows.all()
        assert tests.p_value[true].max() < 1e-20
        assert tests.explained[true].min() > 0.05
        assert tests.explained[others].max() < 0.01

    def test_also_where_a_slot_is_as_long_as_the_memory(self):
        tests, true = judged(ring(1000, forcing=35.0)), drives()
        assert tests.flows.all()
        found = tests.p_value < 0.03
        assert found[true].mean() > 0.8
        assert found[~true & ~np.eye(RING, dtype=bool)].mean() < 0.2

    def test_a_size_is_a_share_of_the_whole_change(self):
        """In a long series all that mends the rule is significant, but explains next to nothing."""
        tests, true = judged(ring(3000)), drives()
        mends = (tests.p_value < 1e-3) & ~true & ~np.eye(RING, dtype=bool)
        assert mends.any()
        assert tests.explained[mends].max() < 0.005

    def test_a_follower_is_no_cause(self):
        fine = ring(5000, step=0.01)
        follower = np.zeros(len(fine))
        for t in range(1, len(fine)):
            follower[t] = follower[t - 1] + 0.05 * (fine[t, 0] - follower[t - 1])
        tests = judged(np.column_stack([fine, follower])[::10])
        assert tests.explained[0, RING] > 0.3
        assert tests.explained[RING, 0] < 0.01

    def test_noise_has_no_causes(self):
        found = []
        for seed in range(20):
            walk = np.random.default_rng(seed).standard_normal((300, 4)).cumsum(axis=0)
            found.append(judged(walk).p_value[~np.eye(4, dtype=bool)] < 0.05)
        assert np.mean(found) <= 0.05

    def test_errors_of_unequal_size_are_no_evidence(self):
        """Errors that grow with a term: by equal variances one of four is significant."""
        rng = np.random.default_rng(0)
        term, noise = rng.standard_normal((2, 300, 400))
        t = np.array(
            [flow._robust_t(x[:, None], x * e)[0] for x, e in zip(term.T, noise.T, strict=True)]
        )
        assert 0.02 < (t > 1.96).mean() < 0.08

    def test_only_those_that_may_be(self):
        allowed = np.ones((RING, RING), dtype=bool)
        allowed[1, 2] = False
        tests = judged(ring(), allowed=allowed)
        assert tests.p_value[1, 2] == 1.0
        assert tests.p_value[1, 3] < 1e-20

    def test_candidates_of_every_effect(self):
        x, place = ring(), np.array([3, 0, 5, 1, 4, 2])
        sources = torch.from_numpy(np.tile(place, (RING, 1)))
        own = place[:, None] == np.arange(RING)
        some, every = judged(x, sources=sources, own=own), judged(x)
        np.testing.assert_allclose(some.p_value, every.p_value[place], rtol=1e-6)
        np.testing.assert_array_equal(some.flows, every.flows)


class TestFlows:
    @pytest.mark.parametrize(
        ("act", "flows"), [(later, False), (at_once, False), (all_the_time, True)]
    )
    def test_means_over_a_slot_must_explain_more_than_both_of_its_ends(self, act, flows):
        tests = judged(slots(act), unexplained=[False, False, True])
        assert tests.flows[2] == flows
        assert (tests.lead[2] > 1.645) == flows

    def test_the_present_of_the_effect_itself_does_not_count(self):
        """Times a value that is never zero it would tell all."""
        start, end = np.random.default_rng(0).normal([0.0, 3.0], size=(2, 400, 2))
        search = flow._Search(start, end, 0)
        product = np.flatnonzero((search._pair == [0, 1]).all(axis=1))
        search._chosen = product
        assert np.abs(search.lead(start[:, :1]).sum(axis=0)).max() < 10.0

    def test_a_level_of_one_in_twenty(self):
        x, only = slots(all_the_time), [False, False, True]
        lead = float(judged(x, unexplained=only).lead[2])
        with varied(level=NormalDist().cdf(-lead - 0.01)):
            assert not judged(x, unexplained=only).flows.any()
        with varied(level=NormalDist().cdf(-lead + 0.01)):
            assert judged(x, unexplained=only).flows[2]

    def test_unexplained_effects_decide_together(self):
        """The first two have no causes to compare: they follow the third."""
        tests = judged(slots(all_the_time))
        assert tests.flows.all()
        assert (tests.lead[:2] < 1.645).all()

    def test_if_they_flow_each_other_effect_decides_for_itself(self):
        one = np.arange(RING) == 2
        assert judged(ring(), unexplained=one).flows.all()
        tests = judged(slots(all_the_time), unexplained=[False, False, True])
        assert tests.flows.tolist() == [False, False, True]

    def test_if_they_do_not_no_other_effect_is_asked(self):
        x = np.column_stack([ring(), slots(later)[:, [0, 1, 2]]])
        unexplained = np.arange(9) == 8
        tests = judged(x, unexplained=unexplained)
        assert not tests.flows.any()
        assert (tests.p_value[:, :RING] == 1.0).all()

    def test_nothing_is_tested_if_all_is_explained(self):
        tests = judged(ring(), unexplained=False)
        assert not tests.flows.any()
        assert (tests.p_value == 1.0).all()

    def test_series_with_gaps_are_not_tested(self):
        x = ring().copy()
        x[100, 0] = np.nan
        assert not judged(x).flows.any()

    def test_too_few_slots_are_not_tested(self):
        assert not judged(ring(21)).flows.any()

    def test_no_change_across_a_break(self):
        scores = fit_normal_scores(ring()).apply(ring())
        scores[250:] += 100.0  # another level: a huge change, if it were one
        own, every = np.eye(RING, dtype=bool), np.ones((RING, RING), dtype=bool)
        samples = samples_of(scores, 2, segments=[slice(0, 250), slice(250, 500)])
        rows = []

        class Search(flow._Search):
            def __init__(self, start, end, own):
                rows.append(np.abs(end - start).max())
                super().__init__(start, end, own)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(flow, "_Search", Search)
            flow_tests(samples, np.ones(RING, dtype=bool), every, own)
        assert max(rows) < 50.0

    def test_long_series_are_thinned(self, monkeypatch):
        monkeypatch.setattr(flow, "_MOST_ROWS", 200)
        assert judged(ring(1000)).flows.all()


class TestGraph:
    @pytest.mark.parametrize(("n_slots", "forcing"), [(500, 10.0), (1500, 10.0), (1000, None)])
    def test_a_ring_of_six(self, n_slots, forcing):
        """Without a warning: what moves together within a slot is no hidden driver's work."""
        made = make_lorenz96(RING, n_slots, forcing=forcing, random_state=0)
        graph = CausalFormer(random_state=0).fit(made.series).graph_
        found = {(e.cause, e.effect) for e in graph if e.cause != e.effect}
        true = {(e.cause, e.effect) for e in made.truth if e.cause != e.effect}
        assert len(found & true) >= 0.8 * len(true)
        assert len(found - true) <= 0.1 * len(found)
        assert all(edge.lag > 0 for edge in graph)

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    @pytest.mark.parametrize("terms", [True, False])
    def test_without_few_terms_the_network_speaks_alone(self, terms, monkeypatch):
        asked = []

        def nothing(samples, unexplained, allowed, own, sources):
            asked.append(bool(unexplained.any()))
            return flow_tests(samples, unexplained & False, allowed, own, sources)

        monkeypatch.setattr(calibrated, "flow_tests", nothing)
        settings = {"sparse_evidence": terms, "n_channels": 16}
        CausalFormer(settings=settings).fit(ring(400))
        assert asked == [terms]
