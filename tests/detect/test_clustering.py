import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from causalformer.detect.clustering import select_by_clusters
from causalformer.errors import SettingsError

SCORES = np.array([[9.0, 0.1, 5.0], [1.0, 8.0, 5.1], [1.1, 0.2, 0.0]])


def test_the_top_class_of_two_keeps_what_stands_out():
    chosen = select_by_clusters(SCORES, 2, 1, random_state=0)
    assert chosen.tolist() == [[True, False, True], [False, True, True], [False, False, False]]


def test_two_of_three_classes_keep_more_than_one_of_three():
    scores = np.array([[9.0], [5.0], [5.2], [0.1]]) * np.ones(4)
    strict = select_by_clusters(scores, 3, 1, random_state=0)
    loose = select_by_clusters(scores, 3, 2, random_state=0)
    assert strict[:, 0].tolist() == [True, False, False, False]
    assert loose[:, 0].tolist() == [True, True, True, False]


def test_equal_scores_give_no_edge():
    assert not select_by_clusters(np.ones((3, 3)), 2, 1, random_state=0).any()


def test_more_classes_than_series_name_the_option():
    with pytest.raises(SettingsError, match="n_clusters = 4"):
        select_by_clusters(SCORES, 4, 1, random_state=0)


@given(
    scores=hnp.arrays(float, (4, 4), elements=st.floats(0, 1e6, width=32)),
    scale=st.sampled_from([1e-9, 1.0, 1e9]),
)
def test_the_choice_keeps_the_highest_and_ignores_the_unit(scores, scale):
    chosen = select_by_clusters(scores, 2, 1, random_state=0)
    for effect in range(4):
        kept, left = scores[chosen[:, effect], effect], scores[~chosen[:, effect], effect]
        assert len(left) >= 1
        if len(kept):
            assert kept.min() >= left.max()
    np.testing.assert_array_equal(chosen, select_by_clusters(scores * scale, 2, 1, random_state=0))


def test_fewer_distinct_scores_than_classes_still_leave_some_cause_out():
    scores = np.array([[1.0], [0.0], [0.0]])
    assert select_by_clusters(scores, 3, 2, random_state=0).ravel().tolist() == [True, False, False]
