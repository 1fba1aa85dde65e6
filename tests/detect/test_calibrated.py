from dataclasses import replace

import numpy as np
import pytest
import torch

from causalformer.config import DetectorSettings
from causalformer.detect import calibrated
from causalformer.detect.calibrated import judge_pairs
from causalformer.detect.evidence import edge_q, half_cauchy_combination, normal_p
from causalformer.detect.few_terms import sparse_tests
from causalformer.detect.networks import lag_weights, new_network, train_network
from causalformer.detect.pair_tests import Evidence
from causalformer.explain.channel_relevance import channel_relevance
from evidence_examples import samples_of
from small_models import make_channels

TINY = DetectorSettings(max_epochs=3, n_channels=4)
EVERYTHING = np.ones((3, 3, 2), dtype=bool)


def series(n_slots=200):
    """Series 0 drives series 1 by its square, and series 2 straight."""
    x = np.random.default_rng(0).standard_normal((n_slots, 3))
    x[1:, 1] = x[:-1, 0] ** 2 - 1 + 0.3 * x[1:, 1]
    x[1:, 2] += 0.5 * x[:-1, 0]
    return x


def terms_of(samples, allowed=EVERYTHING):
    return sparse_tests(samples, allowed, np.eye(samples.n_series, dtype=bool))


def detect_together(samples, settings, allowed):
    family = allowed.any(axis=-1)
    return calibrated.detect_together(
        samples, settings, allowed, terms_of(samples, allowed), family, random_state=0
    )


def judged(model, samples, settings=TINY):
    """The evidence of a network, which looks at every pair."""
    pairs, removal = judge_pairs(model, samples, settings, EVERYTHING, terms_of(samples))
    return Evidence(pairs, EVERYTHING[..., 0], samples, removal)


def evidence_of(model, settings, x):
    samples = samples_of(x, 2, settings.n_folds)
    return samples.past, judged(model, samples, settings)


def network_p(evidence):
    return normal_p(evidence.removal.gain / evidence.removal.gain_error)


def test_sparse_tests_count_unless_the_network_knows_more():
    x = series(400)
    x[2:, 1] = x[1:-1, 0] * x[1:-1, 2] + 0.3 * x[2:, 1]  # no sum of terms
    bent = DetectorSettings(max_epochs=60, n_channels=32)
    _, _, evidence = detect_together(samples_of(x, 2), bent, EVERYTHING)
    tests = terms_of(samples_of(x, 2))
    refuted = tests.refuted(evidence.removal.residual, np.ones(evidence.removal.residual.shape))
    assert refuted.tolist() == [False, True, False]
    np.testing.assert_array_equal(evidence.pairs.terms_p, tests.p_value)
    both = half_cauchy_combination(tests.p_value, network_p(evidence), weights=(0.8, 0.2))
    np.testing.assert_array_equal(evidence.pairs.p_value[:, [0, 2]], both[:, [0, 2]])
    found = network_p(evidence)[[0, 2], 1]
    confirmed = np.clip(both[[0, 2], 1], found**2, found)  # by terms that are not believed
    np.testing.assert_array_equal(evidence.pairs.p_value[[0, 2], 1], confirmed)
    np.testing.assert_array_equal(
        evidence.pairs.size[[0, 2], 1], evidence.pairs.relative_gain[[0, 2], 1]
    )
    assert evidence.pairs.p_value[1, 1] == both[1, 1]  # of its own memory both speak
    np.testing.assert_array_equal(
        evidence.q_value, edge_q(evidence.pairs.p_value, EVERYTHING[..., 0])
    )
    assert evidence.q_value[0, 1] < 1e-3


def test_of_what_a_cause_that_wanders_does_the_terms_speak_alone():
    x = series()
    samples = samples_of(x, 2, wanders=np.array([True, False, False]))
    model = make_channels(n_folds=4)
    evidence = judged(model, samples)
    network = network_p(evidence)
    network[0] = 1.0
    both = half_cauchy_combination(evidence.pairs.terms_p, network, weights=(0.8, 0.2))
    np.testing.assert_array_equal(evidence.pairs.p_value[0, 2], both[0, 2])
    np.testing.assert_array_equal(evidence.pairs.p_value[1:, 2], both[1:, 2])


def test_without_sparse_evidence_the_network_speaks_alone():
    alone = TINY.model_copy(update={"sparse_evidence": False})
    _, evidence = evidence_of(make_channels(n_folds=4), alone, series())
    np.testing.assert_array_equal(evidence.pairs.p_value, network_p(evidence))
    np.testing.assert_array_equal(evidence.pairs.size, evidence.pairs.relative_gain)


def test_strength_and_lags_are_those_of_the_relevance():
    model = make_channels(n_folds=4)
    settings = TINY.model_copy(update={"sparse_evidence": False})
    x = series()
    with torch.no_grad():
        model.absent.zero_()
    past, evidence = evidence_of(model, settings, x)
    share = channel_relevance(model, past)[0].numpy()
    np.testing.assert_allclose(evidence.pairs.strength, share.sum(2).std(0), rtol=1e-3)
    expected = (share**2).mean(0).transpose(0, 2, 1)
    np.testing.assert_allclose(evidence.pairs.lag_profile, expected, rtol=1e-3)


def test_lags_are_those_of_the_terms_unless_the_network_knows_more(monkeypatch):
    model, x = make_channels(n_folds=4), series()
    monkeypatch.setattr(calibrated.SparseTests, "refuted", lambda *_: np.array([1, 0, 0]) > 0)
    past, evidence = evidence_of(model, TINY, x)
    pairs = evidence.pairs
    by_terms = np.array([[True, True, True], [False, True, True], [False, True, True]])
    np.testing.assert_array_equal(pairs.lag_profile[by_terms], pairs.t[by_terms] ** 2)
    relevance = calibrated.contributions(model, past)[1]
    np.testing.assert_array_equal(pairs.lag_profile[~by_terms], relevance[~by_terms])
    assert pairs.lag_profile[0, 2].argmax() == 0


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
    model, history, evidence = detect_together(samples, settings, EVERYTHING)
    assert model.n_folds == n_folds
    assert len(history.epochs) == 3
    assert evidence.q_value[0, 2] < 0.05


def test_picked_samples_are_those_that_are_tested():
    samples = samples_of(series(), 2)

    def p_value(samples):
        return detect_together(samples, TINY, EVERYTHING)[2].pairs.p_value

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
        first, second = (detect_together(s, TINY, EVERYTHING) for s in (samples, other))
        for a, b in zip(first[0].parameters(), second[0].parameters(), strict=True):
            assert torch.equal(a, b)
        for name, array in vars(first[2].pairs).items():
            np.testing.assert_array_equal(array, getattr(second[2].pairs, name), name)
        np.testing.assert_array_equal(first[2].q_value, second[2].q_value)

    def test_what_was_not_observed_does_not_count(self):
        samples = samples_of(self.x(), 2)
        _, _, evidence = detect_together(samples, TINY, EVERYTHING)
        counts = samples.observed.numpy() > 0
        assert (counts.sum(0) < len(samples)).all()
        assert (np.diag(evidence.removal.n_together) <= counts.sum(0)).all()

    def test_the_edges_are_found_in_spite_of_gaps(self):
        _, _, evidence = detect_together(samples_of(self.x(400), 2), TINY, EVERYTHING)
        assert evidence.q_value[0, 2] < 1e-3
        assert evidence.q_value[[1, 2], [0, 1]].min() > 0.05


class TestForbiddenPairs:
    def evidence(self):
        allowed = EVERYTHING.copy()
        allowed[0, 2] = allowed[1, 1] = allowed[2, 0, 1] = False
        return detect_together(samples_of(series(), 2), TINY, allowed)[2]

    def test_they_are_not_tested(self):
        evidence = self.evidence()
        for cause, effect in ((0, 2), (1, 1)):
            assert evidence.pairs.p_value[cause, effect] == evidence.q_value[cause, effect] == 1
            assert evidence.pairs.terms_p[cause, effect] == 1
            assert (
                evidence.pairs.relative_gain[cause, effect]
                == evidence.pairs.strength[cause, effect]
                == 0
            )

    def test_the_others_share_the_rate_without_them(self):
        evidence, tested = self.evidence(), np.ones((3, 3), dtype=bool)
        tested[0, 2] = tested[1, 1] = False
        np.testing.assert_array_equal(evidence.q_value, edge_q(evidence.pairs.p_value, tested))


def test_few_values_of_an_effect_are_no_evidence():
    """A mean of two differences has no standard error to speak of."""
    x = np.random.default_rng(3).standard_normal((400, 3))
    x[:, 1] = np.where(np.isin(np.arange(400), (100, 300)), x[:, 1], np.nan)
    _, _, evidence = detect_together(samples_of(x, 2), TINY, EVERYTHING)
    assert evidence.removal.gain[2, 1] > 50 * evidence.removal.gain_error[2, 1]  # as it seems
    assert evidence.pairs.p_value[[0, 2], 1].min() > 0.2
