import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from causalformer.detect.filling import expected_past, fill_from_past, past_covariance

SEGMENTS = [slice(0, 30), slice(30, 33), slice(33, 60)]


def gappy(seed=0, missing=0.2, n_series=2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((60, n_series))
    x[rng.random(x.shape) < missing] = np.nan
    return x


def sum_of_the_past(past):
    """A fixed prediction for two series: lag 1 of both, and a bit of lag 2."""
    return (past[..., 0].sum(1, keepdim=True) + 0.1 * past[..., 1]).numpy()


def fill(x, segments=SEGMENTS):
    return fill_from_past(x, segments, 2, sum_of_the_past)


def slow_fill(x, segments):
    """Slot by slot from the first; right if no gap is longer than the number of sweeps."""
    filled = np.nan_to_num(x)
    for segment in segments:
        for slot in range(segment.start + 2, segment.stop):
            guess = filled[slot - 1].sum() + 0.1 * filled[slot - 2]
            gap = np.isnan(x[slot])
            filled[slot, gap] = guess.clip(-3.5, 3.5)[gap]
    return filled


@pytest.mark.parametrize("missing", [0.1, 0.5, 0.95])
def test_observed_values_stay_and_all_others_become_finite(missing):
    x = gappy(missing=missing)
    before = x.copy()
    filled = fill(x)
    np.testing.assert_array_equal(x, before)  # the given scores stay as they were
    seen = ~np.isnan(x)
    np.testing.assert_array_equal(filled[seen], x[seen])
    assert np.isfinite(filled).all()
    assert np.abs(filled[~seen]).max() <= 3.5


def test_without_gaps_nothing_happens():
    x = gappy(missing=0.0)
    np.testing.assert_array_equal(fill(x), x)


def test_a_gap_is_filled_with_its_prediction_from_the_past():
    x = gappy(missing=0.0) / 4
    x[10, 0] = x[40:43, 1] = np.nan
    np.testing.assert_allclose(fill(x), slow_fill(x, SEGMENTS), atol=1e-12)
    assert fill(x)[10, 0] == pytest.approx(x[9].sum() + 0.1 * x[8, 0])


@given(slot=st.integers(1, 59), seed=st.integers(0, 20), change=st.floats(-9, 9))
def test_the_future_changes_no_value_that_is_filled_in(slot, seed, change):
    x = gappy(seed)
    changed = x.copy()
    changed[slot:] += change
    np.testing.assert_array_equal(fill(changed)[:slot], fill(x)[:slot])


@given(seed=st.integers(0, 20), change=st.floats(-9, 9))
def test_nothing_is_filled_across_segments(seed, change):
    x = gappy(seed)
    changed = x.copy()
    changed[:30] += change
    np.testing.assert_array_equal(fill(changed)[30:], fill(x)[30:])


def test_without_enough_past_the_mean_is_taken():
    x = gappy(missing=0.0)
    x[[0, 1, 30, 31, 33, 34]] = np.nan
    assert not fill(x)[[0, 1, 30, 31, 33, 34]].any()
    assert fill(x)[[2, 32, 35]].tolist() == x[[2, 32, 35]].tolist()


def test_a_long_gap_fades_to_the_mean():
    x = gappy(missing=0.0)
    x[10:25, 0] = np.nan
    filled = fill_from_past(x, SEGMENTS, 2, lambda past: 0.5 * past[..., 0].numpy())
    np.testing.assert_allclose(filled[10:14, 0], x[9, 0] * 0.5 ** np.arange(1, 5))
    assert not filled[14:25, 0].any()  # a prediction on a prediction, four deep and no more


class TestExpectedPast:
    def covariance(self, seed, n=8):
        factor = np.random.default_rng(seed).standard_normal((n, 2 * n))
        return factor @ factor.T / (2 * n)

    @given(seed=st.integers(0, 30), missing=st.sampled_from([0.1, 0.5, 0.9]))
    def test_equals_the_mean_of_a_normal_law_given_what_was_observed(self, seed, missing):
        rng = np.random.default_rng(seed)
        past, hidden = rng.standard_normal((5, 8)), rng.random((5, 8)) < missing
        s = self.covariance(seed)
        found = expected_past(*map(torch.from_numpy, (past, hidden, s))).numpy()
        for x, h, filled in zip(past, hidden, found, strict=True):
            np.testing.assert_array_equal(filled[~h], x[~h])
            expected = s[np.ix_(h, ~h)] @ np.linalg.solve(s[np.ix_(~h, ~h)], x[~h])
            np.testing.assert_allclose(filled[h], expected, atol=1e-6)

    def test_where_nothing_was_observed_stands_the_mean(self):
        past = torch.ones(1, 8, dtype=torch.float64)
        found = expected_past(past, past > 0, torch.from_numpy(self.covariance(0)))
        assert not found.any()


class TestPastCovariance:
    def test_is_that_of_the_process(self):
        noise = np.random.default_rng(0).standard_normal((20_000, 2))
        x = lfilter([0.6], [1, -0.8], noise, axis=0)
        x[2:, 1] = x[:-2, 0]  # the second follows the first
        x /= x.std(axis=0)
        x[np.random.default_rng(1).random(x.shape) < 0.3] = np.nan
        found = past_covariance(x, [slice(0, len(x))], 3)
        slot = np.array([0, -1, -2, -2, -3, -4])  # (cause, lag); the second shows the first's
        expected = 0.8 ** np.abs(np.subtract.outer(slot, slot))
        np.testing.assert_allclose(found, expected, atol=0.05)

    @given(seed=st.integers(0, 30), missing=st.sampled_from([0.2, 0.6, 0.9]))
    def test_is_possible_however_little_was_observed(self, seed, missing):
        found = past_covariance(gappy(seed, missing, 3), SEGMENTS, 2)
        np.testing.assert_allclose(found, found.T, atol=1e-12)
        assert np.linalg.eigvalsh(found).min() > 0.01

    @given(seed=st.integers(0, 20))
    def test_nothing_is_related_across_segments(self, seed):
        x = gappy(seed, missing=0.0)
        parts = [x[s] for s in (SEGMENTS[1], SEGMENTS[2], SEGMENTS[0])]
        other = past_covariance(
            np.concatenate(parts), [slice(0, 3), slice(3, 30), slice(30, 60)], 2
        )
        np.testing.assert_allclose(past_covariance(x, SEGMENTS, 2), other, atol=1e-12)
