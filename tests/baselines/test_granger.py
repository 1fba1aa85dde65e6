"""Granger's tests by numbers; `VarGranger` tests what a graph takes from them."""

import numpy as np
import pytest
from scipy.stats import t as student

from causalformer.baselines import granger
from causalformer.baselines.granger import granger_tests, lagged_tests


def lagged(n_slots=200, seed=0):
    x = np.random.default_rng(seed).standard_normal((n_slots, 3))
    x[1:, 1] += 0.3 * x[:-1, 0]
    return x


def test_with_one_lag_the_f_test_is_the_squared_t_test():
    tests = granger_tests(lagged(), 1)
    np.testing.assert_allclose(tests.t[..., 0] ** 2, tests.f, rtol=1e-9)
    p = 2 * student.sf(tests.t[..., 0], 199 - 3 - 1)
    np.testing.assert_allclose(np.exp(tests.log_p), p, rtol=1e-6)


@pytest.mark.parametrize("n_series", [9, 10, 11, 30])
def test_where_no_row_is_left_to_judge_by_nothing_is_found(n_series):
    x = np.random.default_rng(0).standard_normal((11, n_series))
    tests = granger_tests(x, 1)
    assert not tests.f.any()
    assert not tests.log_p.any()
    assert tests.t.shape == (n_series, n_series, 1)


def test_no_lag_reaches_across_segments():
    x = np.random.default_rng(0).standard_normal((200, 2))
    x[100, 1] = 9 * x[99, 0]  # only from the end of one to the start of the next
    segments = [slice(0, 100), slice(100, 200)]
    found = granger_tests(x, 1, segments)
    lagged_rows = np.r_[0:99, 100:199]
    expected = lagged_tests(x[lagged_rows], x[lagged_rows + 1], 1)
    np.testing.assert_allclose(found.f, expected.f)


def test_very_long_series_give_finite_logarithms_that_fall_with_the_statistic():
    f = np.array([[10.0, 1e3, 1e5, 1e7, 1e9]])
    for freedom in (100, 10_000, 1_000_000, 100_000_000):
        log_p = granger._log_p(f, np.array([[5]]), freedom)
        assert np.isfinite(log_p).all()
        assert (np.diff(log_p[0]) < 0).all()


def test_many_rows_are_replaced_by_few_that_say_the_same(monkeypatch):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((700, 3)) * [1e-9, 1.0, 1e9]
    x[1:, 1] += 1e9 * x[:-1, 0]
    x = np.column_stack([x, np.full(700, 3.0)])  # a constant column
    whole = granger_tests(x, 2)
    monkeypatch.setattr(granger, "_MANY_ROWS", 90)
    parts = granger_tests(x, 2)
    for name in ("f", "log_p", "t"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-6, atol=1e-9)
