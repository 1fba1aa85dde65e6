from dataclasses import replace

import numpy as np
import pytest
import torch

from causalformer.config import DetectorSettings
from causalformer.detect.calibrated import (
    detect_together,
    gather_evidence,
    lag_weights,
    new_network,
    train_network,
)
from causalformer.detect.evidence import edge_q, half_cauchy_combination, normal_p
from causalformer.detect.few_terms import sparse_tests
from causalformer.explain.channel_relevance import channel_relevance
from evidence_examples import make_evidence, samples_of
from small_models import make_channels

TINY = DetectorSettings(max_epochs=3, n_channels=4)
EVERYTHING = np.ones((3, 3, 2), dtype=bool)


def series(n_slots=200):
    """Series 0 drives series 1 by its square, and series 2 straight."""
    x = np.random.default_rng(0).standard_normal((n_slots, 3))
    x[1:, 1] = x[:-1, 0] ** 2 - 1 + 0.3 * x[1:, 1]
    x[1:, 2] += 0.5 * x[:-1, 0]
    return x


def evidence_of(model, settings, x):
    samples = samples_of(x, 2, settings.n_folds)
    return samples.past, gather_evidence(model, samples, settings, EVERYTHING)


def network_p(evidence):
    return normal_p(evidence.removal.gain / evidence.removal.gain_error)


def test_sparse_tests_count_unless_the_network_knows_more():
    x = series(400)
    x[2:, 1] = x[1:-1, 0] * x[1:-1, 2] + 0.3 * x[2:, 1]  # no sum of terms
    bent = DetectorSettings(max_epochs=60, n_channels=32)
    _, _, evidence = detect_together(samples_of(x, 2), bent, EVERYTHING, random_state=0)
    tests = sparse_tests(samples_of(x, 2), EVERYTHING, np.eye(3, dtype=bool))
    refuted = tests.refuted(evidence.removal.residual, np.ones(evidence.removal.residual.shape))
    assert refuted.tolist() == [False, True, False]
    np.testing.assert_array_equal(evidence.sparse_p, tests.p_value)
    both = half_cauchy_combination(tests.p_value, network_p(evidence), weights=(0.8, 0.2))
    np.testing.assert_array_equal(evidence.p_value[:, [0, 2]], both[:, [0, 2]])
    found = network_p(evidence)[[0, 2], 1]
    confirmed = np.clip(both[[0, 2], 1], found**2, found)  # by terms that are not believed
    np.testing.assert_array_equal(evidence.p_value[[0, 2], 1], confirmed)
    np.testing.assert_array_equal(evidence.size[[0, 2], 1], evidence.effect[[0, 2], 1])
    assert evidence.p_value[1, 1] == both[1, 1]  # of its own memory both speak
    np.testing.assert_array_equal(evidence.q_value, edge_q(evidence.p_value, EVERYTHING[..., 0]))
    assert evidence.q_value[0, 1] < 1e-3


def test_of_what_a_cause_that_wanders_does_the_terms_speak_alone():
    x = series()
    samples = samples_of(x, 2, wanders=np.array([True, False, False]))
    model = make_channels(n_folds=4)
    evidence = gather_evidence(model, samples, TINY, EVERYTHING)
    network = network_p(evidence)
    network[0] = 1.0
    both = half_cauchy_combination(evidence.sparse_p, network, weights=(0.8, 0.2))
    np.testing.assert_array_equal(evidence.p_value[0, 2], both[0, 2])
    np.testing.assert_array_equal(evidence.p_value[1:, 2], both[1:, 2])


def test_without_sparse_evidence_the_network_speaks_alone():
    alone = TINY.model_copy(update={"sparse_evidence": False})
    _, evidence = evidence_of(make_channels(n_folds=4), alone, series())
    np.testing.assert_array_equal(evidence.p_value, network_p(evidence))
    np.testing.assert_array_equal(evidence.size, evidence.effect)


def test_strength_and_lags_are_those_of_the_relevance():
    model = make_channels(n_folds=4)
    settings = TINY.model_copy(update={"sparse_evidence": False})
    x = series()
    with torch.no_grad():
        model.absent.zero_()
    past, evidence = evidence_of(model, settings, x)
    share = channel_relevance(model, past)[0].numpy()
    np.testing.assert_allclose(evidence.strength, share.sum(2).std(0), rtol=1e-3)
    expected = (share**2).mean(0).transpose(0, 2, 1)
    np.testing.assert_allclose(evidence.lag_profile, expected, rtol=1e-3)


def test_where_the_sparse_test_is_the_stronger_witness_it_names_the_lag():
    model, x = make_channels(n_folds=4), series()
    _, evidence = evidence_of(model, TINY, x)
    assert evidence.sparse_p[0, 2] < network_p(evidence)[0, 2]
    np.testing.assert_allclose(evidence.lag_profile[0, 2], evidence.sparse_t[0, 2] ** 2)
    assert not np.isfinite(evidence.lag_error[0, 2]).any()
    assert evidence.lag_profile[0, 2].argmax() == 0


def test_long_lags_cost_more():
    assert lag_weights(3, TINY).tolist() == [1, 4, 9]
    assert lag_weights(3, TINY.model_copy(update={"lag_power": 0.0})).tolist() == [1, 1, 1]


def test_what_a_fold_may_not_learn_from_changes_nothing_in_it():
    samples = samples_of(series(120), 2)
    elsewhere = samples.now.clone()
    elsewhere[samples.fold == 1] += 5
    kernels = []
    for now in (samples.now, elsewhere):
        generator = torch.Generator().manual_seed(0)
        model = new_network(3, 2, TINY, generator)
        train_network(model, replace(samples, now=now), TINY, EVERYTHING, generator)
        kernels.append(model.kernel)
    moved = (kernels[0] - kernels[1]).abs().amax((0, 1, 3, 4))
    assert moved[1] < 1e-6
    assert moved[[0, 2, 3]].min() > 1e-4


@pytest.mark.parametrize("n_folds", [2, 5])
def test_any_number_of_folds(n_folds):
    settings = TINY.model_copy(update={"n_folds": n_folds})
    samples = samples_of(series(), 2, n_folds)
    model, history, evidence = detect_together(samples, settings, EVERYTHING, random_state=0)
    assert model.n_folds == n_folds
    assert len(history.epochs) == 3
    assert evidence.q_value[0, 2] < 0.05


def test_picked_samples_are_those_that_are_tested():
    samples = samples_of(series(), 2)

    def p_value(samples):
        return detect_together(samples, TINY, EVERYTHING, random_state=0)[2].p_value

    positions = np.arange(198)
    np.testing.assert_array_equal(p_value(samples.pick(positions)), p_value(samples))
    np.testing.assert_allclose(
        p_value(samples.pick(positions[:99])), p_value(samples_of(series()[:101], 2)), rtol=1e-3
    )


class TestMissingValues:
    def x(self, n_slots=240):
        x = series(n_slots)
        x[np.random.default_rng(1).random(x.shape) < 0.15] = np.nan
        x[50:70, 1] = np.nan
        return x

    @pytest.mark.parametrize("number", [0.0, 1e4])
    def test_whatever_stands_in_an_unobserved_slot_changes_nothing(self, number):
        samples = samples_of(self.x(), 2)
        other = replace(samples, now=torch.where(samples.observed > 0, samples.now, number))
        first, second = (
            detect_together(s, TINY, EVERYTHING, random_state=0) for s in (samples, other)
        )
        for a, b in zip(first[0].parameters(), second[0].parameters(), strict=True):
            assert torch.equal(a, b)
        for name in ("p_value", "q_value", "effect", "size", "strength", "lag_profile"):
            np.testing.assert_array_equal(getattr(first[2], name), getattr(second[2], name))

    def test_what_was_not_observed_does_not_count(self):
        samples = samples_of(self.x(), 2)
        _, _, evidence = detect_together(samples, TINY, EVERYTHING, random_state=0)
        counts = samples.observed.numpy() > 0
        assert (counts.sum(0) < len(samples)).all()
        assert (np.diag(evidence.removal.n_together) <= counts.sum(0)).all()

    def test_the_edges_are_found_in_spite_of_gaps(self):
        _, _, evidence = detect_together(
            samples_of(self.x(400), 2), TINY, EVERYTHING, random_state=0
        )
        assert evidence.q_value[0, 2] < 1e-3
        assert evidence.q_value[[1, 2], [0, 1]].min() > 0.05


class TestForbiddenPairs:
    def evidence(self):
        allowed = EVERYTHING.copy()
        allowed[0, 2] = allowed[1, 1] = allowed[2, 0, 1] = False
        return detect_together(samples_of(series(), 2), TINY, allowed, random_state=0)[2]

    def test_they_are_not_tested(self):
        evidence = self.evidence()
        for cause, effect in ((0, 2), (1, 1)):
            assert evidence.p_value[cause, effect] == evidence.q_value[cause, effect] == 1
            assert evidence.sparse_p[cause, effect] == 1
            assert evidence.effect[cause, effect] == evidence.strength[cause, effect] == 0

    def test_the_others_share_the_rate_without_them(self):
        evidence, tested = self.evidence(), np.ones((3, 3), dtype=bool)
        tested[0, 2] = tested[1, 1] = False
        np.testing.assert_array_equal(evidence.q_value, edge_q(evidence.p_value, tested))


def test_the_largest_size_that_the_data_allow_holds_the_true_one_in_75_of_100_samples():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 500))
    y = np.sqrt(0.01) * x + np.sqrt(0.99) * rng.standard_normal(x.shape)
    size = ((x * y).mean(axis=1) ** 2 / (x**2).mean(axis=1) / (y**2).mean(axis=1))[:, None]
    evidence = make_evidence(1, n_slots=500)
    allowed = [replace(evidence, size=one[None]).largest_size[0, 0] for one in size]
    assert np.mean(np.array(allowed) > 0.01) == pytest.approx(0.75, abs=0.02)
    beyond = replace(evidence, size=np.array([[-0.1]])).largest_size
    assert beyond == pytest.approx(0.6745**2 / 500, rel=1e-3)


def test_few_values_of_an_effect_are_no_evidence():
    """A mean of two differences has no standard error to speak of."""
    x = np.random.default_rng(3).standard_normal((400, 3))
    x[:, 1] = np.where(np.isin(np.arange(400), (100, 300)), x[:, 1], np.nan)
    _, _, evidence = detect_together(samples_of(x, 2), TINY, EVERYTHING, random_state=0)
    assert evidence.removal.gain[2, 1] > 50 * evidence.removal.gain_error[2, 1]  # as it seems
    assert evidence.p_value[[0, 2], 1].min() > 0.2
