"""What the default detector needs of Granger's tests; `VarGranger` tests the rest."""

import numpy as np
import pytest
from scipy.stats import t as student

from causalformer.detect.granger import granger_tests


def lagged(n_slots=200, seed=0):
    x = np.random.default_rng(seed).standard_normal((n_slots, 3))
    x[1:, 1] += 0.3 * x[:-1, 0]
    return x


def test_with_one_lag_the_f_test_is_the_squared_t_test():
    tests = granger_tests(lagged(), 1)
    np.testing.assert_allclose(tests.t[..., 0] ** 2, tests.f, rtol=1e-9)
    p = 2 * student.sf(tests.t[..., 0], 199 - 3 - 1)
    np.testing.assert_allclose(np.exp(tests.log_p), p, rtol=1e-6)


def test_explained_is_the_share_of_the_error_that_a_cause_takes_away():
    x = lagged()
    past, now = x[:-1] - x[:-1].mean(0), x[1:, 1] - x[1:, 1].mean()
    error = []
    for kept in ([0, 1, 2], [1, 2]):
        fit = past[:, kept] @ np.linalg.lstsq(past[:, kept], now, rcond=None)[0]
        error.append(((now - fit) ** 2).sum())
    assert granger_tests(x, 1).explained[0, 1] == pytest.approx(1 - error[0] / error[1])


@pytest.mark.parametrize("n_series", [9, 10, 11, 30])
def test_where_no_row_is_left_to_judge_by_nothing_is_found(n_series):
    x = np.random.default_rng(0).standard_normal((11, n_series))
    tests = granger_tests(x, 1)
    assert not tests.f.any()
    assert not tests.log_p.any()
    assert tests.t.shape == (n_series, n_series, 1)
