"""What the default detector needs of Granger's tests; `VarGranger` tests the rest."""

import numpy as np
import pytest
from scipy.stats import t as student

from causalformer.detect import granger
from causalformer.detect.granger import granger_tests, lagged_tests, separate_tests


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


def test_no_lag_reaches_across_segments():
    x = np.random.default_rng(0).standard_normal((200, 2))
    x[100, 1] = 9 * x[99, 0]  # only from the end of one to the start of the next
    segments = [slice(0, 100), slice(100, 200)]
    found = granger_tests(x, 1, segments)
    lagged_rows = np.r_[0:99, 100:199]
    expected = lagged_tests(x[lagged_rows], x[lagged_rows + 1], 1)
    np.testing.assert_allclose(found.f, expected.f)


class TestFirstLags:
    """A cause with its first lags only, all others with all of theirs."""

    def past_and_now(self):
        x = lagged()
        past = np.stack([x[2:-1], x[1:-2], x[:-3]], axis=-1).reshape(197, 9)
        return past, x[3:]

    @pytest.mark.parametrize("cause", [0, 1, 2])
    @pytest.mark.parametrize("n_lags", [1, 2])
    def test_are_those_of_a_regression_without_its_later_lags(self, cause, n_lags):
        past, now = self.past_and_now()
        found = lagged_tests(past, now, 3).first_log_p[cause, :, n_lags - 1]
        past[:, 3 * cause + n_lags : 3 * cause + 3] = 0.0
        np.testing.assert_allclose(found, lagged_tests(past, now, 3).log_p[cause], rtol=1e-6)

    def test_with_all_lags_they_are_the_test_itself(self):
        tests = lagged_tests(*self.past_and_now(), 3)
        np.testing.assert_allclose(tests.first_log_p[..., -1], tests.log_p, rtol=1e-9)

    def test_lags_that_are_tied_together_are_tested_at_once(self):
        past, now = self.past_and_now()
        past[:, 1] = past[:, 0]
        tests = lagged_tests(past, now, 3)
        for lag in range(3):
            np.testing.assert_allclose(tests.first_log_p[0, :, lag], tests.log_p[0], rtol=1e-9)


class TestSeparateTests:
    """Every effect with rows and regressors of its own."""

    def arguments(self):
        x = lagged()
        past = np.stack([x[1:-1], x[:-2]], axis=-1).reshape(198, 6)
        counts = np.random.default_rng(1).random((198, 3)) < 0.7
        allowed = np.ones((3, 3, 2), dtype=bool)
        allowed[0, 1] = allowed[2, 0, 1] = False
        return past, x[2:], counts, allowed

    def test_with_all_rows_and_regressors_they_are_those_of_all_effects_together(self):
        past, now, counts, allowed = self.arguments()
        every = np.ones_like(counts), np.ones_like(allowed)
        separate, together = separate_tests(past, now, 2, *every), lagged_tests(past, now, 2)
        for name in ("f", "log_p", "t", "explained"):
            np.testing.assert_allclose(getattr(separate, name), getattr(together, name), atol=1e-9)

    def test_each_effect_is_tested_on_its_own_rows(self):
        past, now, counts, allowed = self.arguments()
        found = separate_tests(past, now, 2, counts, np.ones_like(allowed))
        for i in range(3):
            rows = counts[:, i]
            alone = lagged_tests(past[rows], now[rows, i : i + 1], 2)
            np.testing.assert_allclose(found.f[:, i], alone.f[:, 0])
            np.testing.assert_allclose(found.t[:, i], alone.t[:, 0])

    def test_a_forbidden_cause_has_p_one_and_takes_nothing_from_the_others(self):
        past, now, counts, allowed = self.arguments()
        found = separate_tests(past, now, 2, counts, allowed)
        assert found.log_p[0, 1] == found.f[0, 1] == found.explained[0, 1] == 0
        rows = counts[:, 1]
        alone = lagged_tests(past[rows, 2:], now[rows, 1:2], 2)  # a regression without series 0
        np.testing.assert_allclose(found.f[1:, 1], alone.f[:, 0], rtol=1e-9)
        np.testing.assert_allclose(found.log_p[1:, 1], alone.log_p[:, 0], rtol=1e-9)

    def test_a_forbidden_lag_is_no_regressor(self):
        past, now, counts, allowed = self.arguments()
        found = separate_tests(past, now, 2, counts, allowed)
        other = past.copy()
        other[:, 5] = 1e3  # series 2, lag 2
        again = separate_tests(other, now, 2, counts, allowed)
        np.testing.assert_array_equal(again.f[:, 0], found.f[:, 0])

    def test_what_is_no_regressor_has_no_t(self):
        past, now, counts, allowed = self.arguments()
        found = separate_tests(past, now, 2, counts, allowed)
        assert not found.t[~allowed].any()
        assert found.t[allowed].all()

    @pytest.mark.parametrize("n_rows", [0, 1, 5])
    def test_too_few_rows_of_one_effect_are_no_evidence(self, n_rows):
        past, now, counts, allowed = self.arguments()
        counts[n_rows:, 2] = False
        counts[:n_rows, 2] = True
        found = separate_tests(past, now, 2, counts, allowed)
        assert not found.log_p[:, 2].any()
        assert (found.f[1, :2] > 0).all()


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
    for name in ("f", "log_p", "t", "explained"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-6, atol=1e-9)
