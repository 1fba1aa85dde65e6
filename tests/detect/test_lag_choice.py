import numpy as np
import pytest

from causalformer.detect.lag_choice import (
    LagChoice,
    affordable,
    network_lags,
    suggest_max_lag,
)


def noise(n_slots=500, n_series=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n_slots, n_series))


@pytest.mark.parametrize("lag", [2, 4, 7])
def test_the_longest_lag_of_a_single_edge_decides_with_one_to_spare(lag):
    x = noise()
    x[lag:, 2] += 0.8 * x[:-lag, 0]
    choice = suggest_max_lag(x)
    assert choice.max_lag == lag + 1
    assert f"order {lag} has the best BIC" in choice.reason


def test_noise_needs_no_more_than_the_least():
    assert suggest_max_lag(noise()).max_lag == 2


def test_no_more_than_ten_lags_are_suggested():
    x = noise()
    x[10:, 1] += 0.8 * x[:-10, 0]
    assert suggest_max_lag(x).max_lag == 10


def test_short_series_are_tried_with_few_lags():
    choice = suggest_max_lag(noise(40, 5))
    assert choice.max_lag <= 2
    assert "orders up to 1" in choice.reason


def test_constant_series_ask_for_nothing():
    x = noise()
    x[3:, 1] += x[:-3, 0]
    x[:, 2] = 0
    assert suggest_max_lag(x).max_lag == 4


def test_what_can_be_afforded_is_left_alone():
    wanted = LagChoice(5, "chosen by the user")
    assert affordable(wanted, 20) is wanted


@pytest.mark.parametrize(("n_slots", "most"), [(19, 4), (12, 3), (3, 1)])
def test_short_series_lower_the_number_of_lags_and_say_so(n_slots, most):
    choice = affordable(LagChoice(5, "chosen by the user"), n_slots)
    assert choice.max_lag == most
    assert choice.reason == f"lowered from 5: {n_slots} slots allow no more"
    assert choice.lowered


@pytest.mark.parametrize(("n_slots", "n_causes", "most"), [(59, 3, 4), (200, 20, 2), (20, 30, 1)])
def test_the_network_looks_at_fewer_lags_the_more_causes_there_may_be(n_slots, n_causes, most):
    assert network_lags(5, n_slots, n_causes) == most


def test_no_lag_is_taken_from_another_segment():
    segments = [slice(start, start + 25) for start in range(0, 500, 25)]
    x = noise(seed=1)
    for segment in segments:
        x[segment.start + 3 : segment.stop, 2] += 0.8 * x[segment.start : segment.stop - 3, 0]
    assert suggest_max_lag(x, segments).max_lag == 4
    turned = x.reshape(20, 25, 3)[::-1].reshape(500, 3)  # the segments, last one first
    assert suggest_max_lag(turned, segments) == suggest_max_lag(x, segments)
