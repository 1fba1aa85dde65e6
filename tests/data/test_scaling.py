import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm, rankdata

from causalformer.data.scaling import fit_normal_scores

columns = hnp.arrays(
    float,
    st.tuples(st.integers(2, 15), st.just(1)),
    elements=st.integers(-20, 20).map(float),  # small whole numbers: ties are frequent
)


def scores_of(x):
    return fit_normal_scores(x).apply(x)


@given(x=columns)
def test_scores_are_normal_quantiles_of_the_middle_ranks(x):
    expected = norm.ppf((rankdata(x[:, 0]) - 0.5) / len(x))
    np.testing.assert_allclose(scores_of(x)[:, 0], expected, atol=1e-12)


@given(x=columns)
def test_larger_values_get_larger_scores_and_equal_values_equal_ones(x):
    scores = scores_of(x)[:, 0]
    difference = np.sign(x[:, 0][:, None] - x[:, 0])
    assert (np.sign(scores[:, None] - scores) == difference).all()


@given(x=columns)
def test_undo_brings_the_data_back_where_no_value_is_tied(x):
    scaling = fit_normal_scores(x)
    _, first, count = np.unique(x[:, 0], return_index=True, return_counts=True)
    alone = first[count == 1]
    np.testing.assert_allclose(scaling.undo(scaling.apply(x))[alone], x[alone], atol=1e-9)


@pytest.mark.parametrize(
    "transform", [np.exp, np.arctan, lambda x: x**3, lambda x: 1e-12 * x - 5.0]
)
def test_increasing_transforms_change_nothing(transform):
    x = np.random.default_rng(0).standard_normal((50, 2))
    np.testing.assert_array_equal(scores_of(transform(x)), scores_of(x))


def test_values_beyond_the_data_get_the_outermost_score():
    scaling = fit_normal_scores(np.arange(10.0)[:, None])
    inside = scaling.apply(np.array([[0.0], [9.0]]))
    np.testing.assert_array_equal(scaling.apply(np.array([[-1e9], [1e9]])), inside)
    np.testing.assert_array_equal(scaling.undo(np.array([[-9.0], [9.0]])), [[0.0], [9.0]])


def test_values_between_the_data_lie_between_their_scores():
    scaling = fit_normal_scores(np.arange(10.0)[:, None])
    low, between, high = scaling.apply(np.array([[3.0], [3.5], [4.0]]))[:, 0]
    assert low < between < high


def test_a_constant_column_becomes_zero_and_comes_back():
    scaling = fit_normal_scores(np.full((6, 1), 3.7))
    assert not scaling.apply(np.full((6, 1), 3.7)).any()
    np.testing.assert_array_equal(scaling.undo(np.zeros((2, 1))), 3.7)


def test_every_series_has_ranks_of_its_own():
    x = np.random.default_rng(0).standard_normal((30, 3)) * [1, 1e6, 1e-6]
    together = scores_of(x)
    for i in range(3):
        np.testing.assert_array_equal(together[:, [i]], scores_of(x[:, [i]]))
