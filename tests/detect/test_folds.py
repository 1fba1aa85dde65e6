from hypothesis import given
from hypothesis import strategies as st

from causalformer.detect.folds import blocked_folds


@given(n_slots=st.integers(1, 200), n_folds=st.integers(2, 6))
def test_folds_are_blocks_in_time_of_nearly_equal_length(n_slots, n_folds):
    fold = blocked_folds(n_slots, n_folds).tolist()
    assert fold == sorted(fold)
    lengths = [fold.count(k) for k in range(n_folds)]
    assert sum(lengths) == n_slots
    assert max(lengths) - min(lengths) <= 1
