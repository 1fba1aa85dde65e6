import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.data.windows import lagged_samples, slots_with_past


@given(n_slots=st.integers(2, 12), n_series=st.integers(1, 3), data=st.data())
def test_the_past_holds_exactly_the_slots_before_lag_one_first(n_slots, n_series, data):
    max_lag = data.draw(st.integers(1, n_slots - 1))
    x = torch.arange(float(n_slots * n_series)).reshape(n_slots, n_series)
    past, now = lagged_samples(x, max_lag)
    assert len(past) == len(now) == n_slots - max_lag
    for sample, slot in enumerate(range(max_lag, n_slots)):
        assert torch.equal(now[sample], x[slot])
        for lag in range(1, max_lag + 1):
            assert torch.equal(past[sample, :, lag - 1], x[slot - lag])


@given(slot=st.integers(0, 9), max_lag=st.integers(1, 5))
def test_no_past_holds_the_predicted_slot_or_a_later_one(slot, max_lag):
    x = torch.zeros(10, 2)
    x[slot] = 1
    past, _ = lagged_samples(x, max_lag)
    touched = past.flatten(1).any(dim=1).nonzero()[:, 0] + max_lag
    assert all(slot < predicted <= slot + max_lag for predicted in touched.tolist())


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6), n_past=st.integers(0, 9))
def test_slots_with_past_have_it_in_their_own_segment(lengths, n_past):
    stops = np.cumsum(lengths).tolist()
    segments = [slice(stop - n, stop) for stop, n in zip(stops, lengths, strict=True)]
    expected = [t for s in segments for t in range(s.start, s.stop) if t - s.start >= n_past]
    found = slots_with_past(segments, n_past)
    assert found.tolist() == expected
    assert found.dtype == np.int64
