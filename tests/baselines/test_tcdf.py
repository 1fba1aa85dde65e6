"""TCDF: the gap rule, the shuffling and the lags against plain loops; directions on toys."""

import numpy as np
import pytest
import torch

from causalformer.baselines import TCDF
from causalformer.baselines.contract import windows_of
from causalformer.baselines.tcdf import _Networks, candidates_by_gap, lags_of_kernels
from causalformer.errors import DataError, SettingsError


def driven(n_slots=400, lag=2, seed=0):
    """A series with memory and one that follows it."""
    x = np.random.default_rng(seed).normal(size=(n_slots, 2))
    for t in range(lag, n_slots):
        x[t] += [0.6 * x[t - 1, 0], 1.5 * np.tanh(x[t - lag, 0])]
    return x


@pytest.mark.parametrize(
    ("attention", "chosen"),
    [
        ([1.2, 0.9, 1.0], [0]),  # up to five series: above 1, exactly 1 is not
        ([0.9, 0.8, 0.7], []),
        ([1.1, 1.2, 1.3, 1.4, 1.5], [0, 1, 2, 3, 4]),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], []),  # all below 1
        ([1.9, 2.0, 0.5, 0.4, 0.3, 0.2], [0, 1]),
        ([3.0, 0.9, 0.8, 0.7, 0.6, 0.5], [0]),  # the only gap is before the second: the first alone
        ([3.0, 2.0, 1.9, 0.5, 0.4, 0.3, 0.2], [0, 1, 2]),  # largest gap second in position
        ([3.0, 2.9, 2.8, 2.6, 0.1, 0.0], [0, 1, 2]),  # the largest would leave more than half
        ([2.0, 1.5, 1.4, 0.95, 0.1, 0.0], [0, 1, 2]),  # the gap below 0.95 does not count
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0, 1]),  # equal gaps: the first that is allowed
    ],
)
def test_the_gap_rule_on_vectors_made_by_hand(attention, chosen):
    assert candidates_by_gap(np.array(attention)).nonzero()[0].tolist() == chosen


def test_lags_count_back_from_the_newest_tap_and_own_ones_from_one():
    kernel = np.zeros((2, 2, 4))
    kernel[0, 1] = [0.1, -0.9, 0.3, 0.2]
    kernel[1, 0] = [0.0, 0.5, -0.5, 0.1]  # a tie
    kernel[0, 0] = [0.0, 0.0, 0.1, 0.2]
    kernel[1, 1] = [0.7, 0.0, 0.1, 0.2]
    assert lags_of_kernels(kernel).tolist() == [[1, 2], [0, 4]]


def test_losses_and_shuffled_losses_equal_a_plain_loop():
    n, taps = 3, 4
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, n))
    segments = [slice(0, 8), slice(8, 20)]
    shuffled = values[rng.permutation(20)]
    nets = _Networks(n, taps, torch.Generator().manual_seed(0))
    with torch.no_grad():
        nets.attention += torch.arange(9.0).reshape(3, 3) / 5
        windows = windows_of(values, segments, taps)
        losses = nets.losses(windows).numpy()
        without = nets.losses_without(windows, windows_of(shuffled, segments, taps)).numpy()
    w = {k: v.detach().double().numpy() for k, v in nets.state_dict().items()}

    def loss(effect, series):
        soft = np.exp(w["attention"][effect]) / np.exp(w["attention"][effect]).sum()
        errors = []
        for segment in segments:
            for t in range(segment.start + taps, segment.stop):
                predicted = w["bias"][effect]
                for cause in range(n):
                    z = w["kernel_bias"][effect, cause]
                    for back in range(taps):
                        x = series[t - back - (cause == effect), cause]
                        z += w["kernel"][effect, cause, taps - 1 - back] * soft[cause] * x
                    z = z if z > 0 else w["slope"][effect, cause] * z
                    predicted += w["weight"][effect, cause] * z
                errors.append((values[t, effect] - predicted) ** 2)
        return np.mean(errors)

    for effect in range(n):
        assert losses[effect] == pytest.approx(loss(effect, values), rel=1e-5)
        for cause in range(n):
            mixed = values.copy()
            mixed[:, cause] = shuffled[:, cause]
            assert without[cause, effect] == pytest.approx(loss(effect, mixed), rel=1e-5)


def test_finds_direction_and_exact_lag():
    graph = TCDF(n_epochs=300).fit(driven()).graph_
    assert [(e.cause, e.effect, e.lag) for e in graph if e.cause != e.effect] == [("x0", "x1", 2)]
    assert ("x0", "x0", 1) in {(e.cause, e.effect, e.lag) for e in graph}


def test_a_cause_within_the_slot_has_lag_zero():
    x = np.random.default_rng(0).normal(size=(400, 2))
    x[:, 1] = 2 * x[:, 0] + 0.1 * x[:, 1]
    graph = TCDF(n_epochs=200).fit(x).graph_
    assert ("x0", "x1", 0) in {(e.cause, e.effect, e.lag) for e in graph}


def test_the_same_seed_gives_the_same_graph():
    x = driven(200)
    first, second = (TCDF(n_epochs=50, random_state=3).fit(x) for _ in range(2))
    np.testing.assert_array_equal(first.scores_, second.scores_)
    assert first.graph_ == second.graph_
    assert not np.array_equal(TCDF(n_epochs=50).fit(x).scores_, first.scores_)


def test_no_window_reaches_across_segments():
    values = driven(100)
    segments = [slice(0, 40), slice(50, 100)]
    learned = []
    for between in (0.0, 1e3):
        values[40:50] = between
        model = TCDF(n_epochs=20)
        model.discover(values, segments)
        learned.append(model.attention_)
    np.testing.assert_array_equal(*learned)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_lag": -1}, "max_lag"),
        ({"significance": 0}, "significance"),
        ({"significance": 1.5}, "significance"),
        ({"n_epochs": 0}, "n_epochs"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"n_permutations": 0}, "n_permutations"),
    ],
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        TCDF(**options).fit(driven(50))


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="needs at least 6"):
        TCDF().fit(driven(5))
