"""Rows of a regression, and that no method built on them looks beyond a stretch."""

import numpy as np
import pytest

from causalformer.baselines import DYNOTEARS, TiMINo, VarLasso, VARLiNGAM, VarRidge
from causalformer.baselines.lagged import lagged_rows
from causalformer.datasets import make_var
from causalformer.errors import DataError


@pytest.mark.parametrize("lags", [range(3), range(-2, 3), range(1, 2)])
def test_rows_are_those_of_a_plain_loop(lags):
    values = np.random.default_rng(0).standard_normal((12, 2))
    segments = [slice(0, 7), slice(7, 8), slice(8, 12)]
    expected = []
    for segment in segments:
        for t in range(segment.start, segment.stop):
            places = [t - lag for lag in lags]
            if all(segment.start <= place < segment.stop for place in [t, *places]):
                expected.append([values[place] for place in places])
    expected = np.array(expected) - np.mean(expected, axis=0)
    np.testing.assert_allclose(lagged_rows(values, segments, lags, least=1), expected)


def test_too_short_stretches_are_refused():
    values = np.zeros((9, 2))
    assert len(lagged_rows(values, [slice(0, 9)], range(3), least=7)) == 7
    with pytest.raises(DataError, match=r"3 unbroken stretches.*smaller `max_lag`"):
        lagged_rows(values, [slice(0, 3), slice(3, 6), slice(6, 9)], range(3), least=7)


@pytest.mark.parametrize("method", [DYNOTEARS, TiMINo, VARLiNGAM, VarLasso, VarRidge])
def test_the_order_of_unbroken_stretches_does_not_matter(method):
    values = make_var(3, 180, random_state=2).series.values
    one = method().discover(values, [slice(0, 100), slice(100, 180)])
    turned = np.vstack([values[100:], values[:100]])
    other = method().discover(turned, [slice(0, 80), slice(80, 180)])
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(one.adjacency, other.adjacency)
    unbroken = method().discover(values, [slice(0, 180)])
    assert not np.allclose(one.scores, unbroken.scores, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", [DYNOTEARS, TiMINo, VARLiNGAM, VarLasso, VarRidge])
def test_the_same_series_give_the_same_graph(method):
    made = make_var(4, 200, random_state=3)
    one, other = method().fit(made.series), method().fit(made.series)
    assert one.graph_ == other.graph_
    np.testing.assert_array_equal(one.scores_, other.scores_)


@pytest.mark.parametrize("method", [DYNOTEARS, TiMINo, VARLiNGAM, VarLasso, VarRidge])
def test_series_in_another_order_give_the_same_edges(method):
    made = make_var(4, 300, density=0.3, random_state=4)
    turn = [2, 0, 3, 1]
    one = method().fit(made.series.values)
    other = method().fit(made.series.values[:, turn])
    np.testing.assert_allclose(one.scores_[np.ix_(turn, turn)], other.scores_, rtol=1e-3, atol=1e-3)
