import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from causalformer.detect.folds import blocked_folds, folds_of_runs


@given(n_slots=st.integers(1, 200), n_folds=st.integers(2, 6))
def test_folds_are_blocks_in_time_of_nearly_equal_length(n_slots, n_folds):
    fold = blocked_folds(n_slots, n_folds).tolist()
    assert fold == sorted(fold)
    lengths = [fold.count(k) for k in range(n_folds)]
    assert sum(lengths) == n_slots
    assert max(lengths) - min(lengths) <= 1


class TestRecordings:
    lengths = st.lists(st.integers(1, 40), min_size=1, max_size=12)

    @given(lengths=lengths, n_folds=st.integers(2, 5))
    def test_either_whole_recordings_are_held_out_or_blocks_of_time(self, lengths, n_folds):
        run = np.repeat(np.arange(len(lengths)), lengths)
        fold = folds_of_runs(run, n_folds)
        assert (np.diff(fold) >= 0).all()
        whole = all(len(set(fold[run == r])) == 1 for r in set(run))
        if whole:
            assert len(set(fold)) == min(n_folds, len(run))
        else:
            np.testing.assert_array_equal(fold, blocked_folds(len(run), n_folds))

    @given(length=st.integers(1, 30), per_fold=st.integers(1, 4), n_folds=st.integers(2, 5))
    def test_recordings_of_equal_length_are_dealt_out_evenly(self, length, per_fold, n_folds):
        run = np.repeat(np.arange(per_fold * n_folds), length)
        fold = folds_of_runs(run, n_folds)
        np.testing.assert_array_equal(fold, np.repeat(np.arange(n_folds), per_fold * length))

    def test_one_recording_is_cut_into_blocks(self):
        np.testing.assert_array_equal(
            folds_of_runs(np.zeros(50, dtype=np.int64), 4), blocked_folds(50, 4)
        )

    def test_one_long_recording_among_short_ones_is_cut_into_blocks(self):
        run = np.repeat([0, 1, 2, 3], [100, 5, 5, 5])
        np.testing.assert_array_equal(folds_of_runs(run, 4), blocked_folds(115, 4))

    def test_numbers_of_recordings_need_not_be_dense(self):
        fold = folds_of_runs(np.repeat([3, 7], 10), 2)
        np.testing.assert_array_equal(fold, np.repeat([0, 1], 10))

    def test_no_samples_have_no_folds(self):
        assert len(folds_of_runs(np.arange(0), 4)) == 0
