import numpy as np
import pytest
import torch

from causalformer.config import DetectorSettings
from causalformer.data.windows import lagged_samples
from causalformer.detect.calibrated import detect, gather_evidence, lag_weights, train_network
from causalformer.detect.evidence import cauchy_combination, edge_q, normal_p
from causalformer.detect.folds import blocked_folds
from causalformer.detect.granger import granger_tests
from causalformer.explain.channel_relevance import channel_relevance
from small_models import make_channels

TINY = DetectorSettings(max_epochs=3, n_channels=4)


def series(n_slots=200):
    """Series 0 drives series 1 by its square, and series 2 straight."""
    x = np.random.default_rng(0).standard_normal((n_slots, 3))
    x[1:, 1] = x[:-1, 0] ** 2 - 1 + 0.3 * x[1:, 1]
    x[1:, 2] += 0.5 * x[:-1, 0]
    return x


def evidence_of(model, settings, x):
    past, now = lagged_samples(torch.from_numpy(x).float(), 2)
    fold = blocked_folds(len(now), settings.n_folds)
    return past, gather_evidence(model, past, now, fold, settings)


def network_p(evidence):
    return normal_p(evidence.removal.gain / evidence.removal.gain_error)


def test_linear_tests_count_only_where_the_network_is_hardly_better():
    bent = DetectorSettings(max_epochs=30, n_channels=16)
    x = series(400)
    _, _, evidence = detect(x, 2, bent, random_state=0)
    better = 1 - evidence.removal.error / evidence.removal.linear_error
    assert (better < 0.05).tolist() == [True, False, True]
    linear_p = np.exp(granger_tests(x, 2).log_p)
    np.testing.assert_allclose(evidence.linear_p, linear_p, rtol=1e-3)
    both = cauchy_combination(network_p(evidence), evidence.linear_p)
    np.testing.assert_allclose(evidence.p_value[:, [0, 2]], both[:, [0, 2]])
    np.testing.assert_array_equal(evidence.p_value[:, 1], network_p(evidence)[:, 1])
    np.testing.assert_array_equal(evidence.size[:, 1], evidence.effect[:, 1])
    np.testing.assert_array_equal(evidence.q_value, edge_q(evidence.p_value))
    assert evidence.q_value[0, 1] < 1e-3


def test_strength_and_lags_are_those_of_the_relevance():
    model = make_channels(n_folds=4)
    settings = TINY.model_copy(update={"linear_margin": 0.0})
    x = series()
    with torch.no_grad():
        model.absent.zero_()
    past, evidence = evidence_of(model, settings, x)
    share = channel_relevance(model, past)[0].numpy()
    np.testing.assert_allclose(evidence.strength, share.sum(2).std(0), rtol=1e-3)
    expected = (share**2).mean(0).transpose(0, 2, 1)
    by_network = evidence.removal.error < evidence.removal.linear_error  # no linear test counts
    assert by_network.any()
    np.testing.assert_allclose(
        evidence.lag_profile[:, by_network], expected[:, by_network], rtol=1e-3
    )


def test_where_the_linear_test_is_the_better_witness_it_names_the_lag():
    model, x = make_channels(n_folds=4), series()
    settings = TINY.model_copy(update={"linear_margin": 0.999})
    _, evidence = evidence_of(model, settings, x)
    assert evidence.linear_p[0, 2] < network_p(evidence)[0, 2]
    np.testing.assert_allclose(evidence.lag_profile[0, 2], evidence.linear_t[0, 2] ** 2)
    assert evidence.lag_profile[0, 2].argmax() == 0


def test_long_lags_cost_more():
    assert lag_weights(3, TINY).tolist() == [1, 4, 9]
    assert lag_weights(3, TINY.model_copy(update={"lag_power": 0.0})).tolist() == [1, 1, 1]


def test_what_a_fold_may_not_learn_from_changes_nothing_in_it():
    x = torch.from_numpy(series(120)).float()
    past, now = lagged_samples(x, 2)
    fold = blocked_folds(len(now), 4)
    elsewhere = now.clone()
    elsewhere[fold == 1] += 5
    kernels = [
        train_network(past, target, fold, TINY, torch.Generator().manual_seed(0))[0].kernel
        for target in (now, elsewhere)
    ]
    moved = (kernels[0] - kernels[1]).abs().amax((0, 1, 3, 4))
    assert moved[1] < 1e-6
    assert moved[[0, 2, 3]].min() > 1e-4


@pytest.mark.parametrize("n_folds", [2, 5])
def test_any_number_of_folds(n_folds):
    settings = TINY.model_copy(update={"n_folds": n_folds})
    model, history, evidence = detect(series(), 2, settings, random_state=0)
    assert model.n_folds == n_folds
    assert len(history.epochs) == 3
    assert evidence.q_value[0, 2] < 0.05


def test_slots_pick_the_samples():
    x = series()
    all_slots = np.arange(198)
    plain = detect(x, 2, TINY, random_state=0)[2].p_value
    np.testing.assert_array_equal(
        detect(x, 2, TINY, random_state=0, slots=all_slots)[2].p_value, plain
    )
    first_half = detect(x, 2, TINY, random_state=0, slots=all_slots[:99])[2].p_value
    np.testing.assert_allclose(
        first_half, detect(x[:101], 2, TINY, random_state=0)[2].p_value, rtol=1e-3
    )
