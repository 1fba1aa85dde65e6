import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from causalformer.detect.filling import fill_between, fill_from_past

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


both = pytest.mark.parametrize(
    "filling", [fill, lambda x: fill_between(x, SEGMENTS)], ids=["from the past", "between"]
)


@both
@pytest.mark.parametrize("missing", [0.1, 0.5, 0.95])
def test_observed_values_stay_and_all_others_become_finite(filling, missing):
    x = gappy(missing=missing)
    before = x.copy()
    filled = filling(x)
    np.testing.assert_array_equal(x, before)  # the given scores stay as they were
    seen = ~np.isnan(x)
    np.testing.assert_array_equal(filled[seen], x[seen])
    assert np.isfinite(filled).all()
    assert np.abs(filled[~seen]).max() <= 3.5


@both
def test_without_gaps_nothing_happens(filling):
    x = gappy(missing=0.0)
    np.testing.assert_array_equal(filling(x), x)


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


class TestMemory:
    """Between two values stands what an autoregression of order one expects."""

    def test_equals_the_mean_of_a_normal_law_given_the_neighbours(self):
        x = lfilter([1.0], [1, -0.8], np.random.default_rng(0).standard_normal((300, 1)), axis=0)
        x /= x.std()
        seen = x.copy()
        seen[[100, 101, 102, 200, 299]] = np.nan
        pairs = [(seen[t - 1, 0], seen[t, 0]) for t in range(1, 300)]
        pairs = np.array([pair for pair in pairs if not np.isnan(pair).any()])
        rho = pairs.prod(1).sum() / ((pairs**2).sum() / 2)
        known = np.flatnonzero(~np.isnan(seen[:, 0]))
        covariance = rho ** np.abs(np.subtract.outer(np.arange(300), np.arange(300)))
        weights = np.linalg.solve(covariance[np.ix_(known, known)], seen[known, 0])
        expected = covariance[:, known] @ weights
        filled = fill_between(seen, [slice(0, 300)])[:, 0]
        np.testing.assert_allclose(filled, expected, atol=1e-8)

    @given(seed=st.integers(0, 20))
    def test_series_are_filled_one_by_one(self, seed):
        x = gappy(seed, missing=0.5)
        filled = fill_between(x, SEGMENTS)
        for i in range(2):
            np.testing.assert_array_equal(filled[:, [i]], fill_between(x[:, [i]], SEGMENTS))

    def test_a_segment_of_its_own_has_no_neighbours_elsewhere(self):
        x = gappy(missing=0.0)
        x[31:33, 0] = np.nan  # all but the first slot of a segment
        memory = fill_between(x, SEGMENTS)[31, 0] / x[30, 0]
        np.testing.assert_allclose(fill_between(x, SEGMENTS)[32, 0], memory**2 * x[30, 0])

    def test_far_inside_a_long_gap_stands_the_mean(self):
        x = np.sin(np.arange(400) / 3)[:, None]
        x[100:300] = np.nan
        assert abs(fill_between(x, [slice(0, 400)])[200, 0]) < 1e-2

    def test_a_segment_without_values_gets_the_mean(self):
        x = gappy(missing=0.0)
        x[30:33, 0] = np.nan
        assert not fill_between(x, SEGMENTS)[30:33, 0].any()
