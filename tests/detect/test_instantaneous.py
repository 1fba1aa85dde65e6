import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

from causalformer.detect.instantaneous import instantaneous_evidence


def draw(law="laplace", n_slots=2000, n_series=3, seed=3):
    rng = np.random.default_rng(seed)
    return getattr(rng, law)(size=(n_slots, n_series))


def linked(law):
    """Series 0 drives series 1 within the slot."""
    x = draw(law)
    x[:, 1] += 0.7 * x[:, 0]
    return instantaneous_evidence(x)


PAIR = np.array([[False, True, False], [True, False, False], [False, False, False]])


@pytest.mark.parametrize("law", ["laplace", "exponential"])
def test_a_non_gaussian_edge_is_found_and_oriented(law):
    found = linked(law)
    np.testing.assert_array_equal(found.q_value < 0.01, PAIR)
    assert found.direction[0, 1] > 3
    assert found.oriented[0, 1]


def test_turning_the_edge_around_turns_the_direction():
    x = draw()
    x[:, 0] -= 0.7 * x[:, 1]
    assert instantaneous_evidence(x).direction[1, 0] > 3


def test_a_gaussian_edge_is_found_but_not_oriented():
    found = linked("standard_normal")
    np.testing.assert_array_equal(found.q_value < 0.01, PAIR)
    assert not found.oriented[0, 1]


def test_gaussian_edges_are_oriented_as_rarely_as_chance_has_it():
    oriented = []
    for seed in range(60):
        x = draw("standard_normal", n_slots=300, n_series=2, seed=seed)
        x[:, 1] += x[:, 0]
        oriented.append(instantaneous_evidence(x).oriented[0, 1])
    assert np.mean(oriented) < 0.15


def test_outputs_are_symmetric_and_the_direction_changes_its_sign():
    found = linked("laplace")
    for matrix in (found.p_value, found.q_value, found.partial):
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(found.direction, -found.direction.T, atol=1e-9)
    np.testing.assert_array_equal(np.diag(found.p_value), 1)
    np.testing.assert_array_equal(np.diag(found.q_value), 1)
    np.testing.assert_array_equal(np.diag(found.partial), 0)


def test_the_direction_is_the_mean_of_the_measure_over_its_standard_error():
    x = draw(n_slots=300)
    x[:, 1] += 0.7 * x[:, 0]
    residual = []
    for column in x.T - x.mean(0)[:, None]:
        slope = column[:-1] @ column[1:] / (column[:-1] @ column[:-1])
        left = column[1:] - slope * column[:-1]
        residual.append((left - left.mean()) / left.std())
    found = instantaneous_evidence(x)
    for i in range(3):
        for j in range(3):
            a, b = residual[i], residual[j]
            measure = (a * b).mean() * (a * np.tanh(b) - np.tanh(a) * b)
            error = measure.std() / np.sqrt(len(measure))
            expected = 0.0 if i == j else measure.mean() / error
            assert found.direction[i, j] == pytest.approx(expected, abs=1e-6)


def test_what_a_third_series_explains_is_no_link():
    x = draw()
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1]
    found = instantaneous_evidence(x)
    assert np.corrcoef(x[:, 0], x[:, 2])[0, 1] > 0.3
    assert found.q_value[0, 2] > 0.05
    assert found.q_value[0, 1] < 0.01
    assert found.q_value[1, 2] < 0.01


def test_slow_series_that_are_independent_are_not_linked():
    x = lfilter([1], [1, -0.97], draw("standard_normal", 400), axis=0)
    assert np.abs(np.corrcoef(x.T)[np.triu_indices(3, 1)]).max() > 0.2
    assert instantaneous_evidence(x).q_value.min() > 0.05


@pytest.mark.parametrize("level", [0.0, 0.1, -7.3e10])
def test_constant_series_are_linked_to_nothing(level):
    x = draw(n_slots=200)
    x[:, 1] = level
    found = instantaneous_evidence(x)
    for matrix in (found.p_value, found.q_value, found.partial, found.direction):
        assert np.isfinite(matrix).all()
    assert found.q_value[1].min() > 0.9


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e200])
def test_units_change_nothing(scale):
    x = draw(n_slots=200)
    x[:, 1] += x[:, 0]
    plain, scaled = instantaneous_evidence(x), instantaneous_evidence(x * scale)
    np.testing.assert_allclose(scaled.p_value, plain.p_value, rtol=1e-6)
    np.testing.assert_allclose(scaled.direction, plain.direction, rtol=1e-6)


@pytest.mark.parametrize("copied", [1, -2.0])
def test_a_copy_of_a_series_gives_no_nan(copied):
    x = draw(n_slots=200)
    x[:, 1] = copied * x[:, 0]
    found = instantaneous_evidence(x)
    assert np.isfinite(found.partial).all()
    assert np.isfinite(found.direction).all()


class TestGaps:
    """Missing values, and segments: nothing looks across."""

    def complete_rows(self, x, segments):
        """Standardised residuals on the last value, from slots whose rows are both complete."""
        pairs = [
            (slot - 1, slot)
            for segment in segments
            for slot in range(segment.start + 1, segment.stop)
            if np.isfinite(x[slot - 1 : slot + 1]).all()
        ]
        before, now = (x[list(at)] - np.nanmean(x, axis=0) for at in zip(*pairs, strict=True))
        residual = now - (before * now).sum(0) / (before**2).sum(0) * before
        return (residual - residual.mean(0)) / residual.std(0)

    def twin(self, x, segments):
        residual = self.complete_rows(x, segments)
        n = len(residual)
        precision = np.linalg.inv(residual.T @ residual / n)
        scale = np.sqrt(np.diag(precision))
        partial = -precision / np.outer(scale, scale)
        np.fill_diagonal(partial, 0.0)
        freedom = n - x.shape[1]
        t = np.abs(partial) * np.sqrt(freedom / (1 - partial**2))
        p = 2 * student.sf(t, freedom)
        np.fill_diagonal(p, 1.0)
        return partial, p

    def test_rows_missing_throughout_are_as_if_they_were_not_there(self):
        x = draw("standard_normal", 200) + draw("standard_normal", 200, 1, seed=4)
        x[np.random.default_rng(0).random(200) < 0.2] = np.nan
        segments = [slice(0, 70), slice(70, 71), slice(71, 200)]
        found = instantaneous_evidence(x, segments)
        partial, p = self.twin(x, segments)
        np.testing.assert_allclose(found.partial, partial, atol=1e-9)
        np.testing.assert_allclose(found.p_value, p, rtol=1e-6)

    def test_the_first_slot_of_a_segment_has_no_past(self):
        x = draw("standard_normal", 200)
        segments = [slice(0, 100), slice(100, 200)]
        jump = x.copy()
        jump[100:] += 0.5
        apart = [instantaneous_evidence(v, segments) for v in (x, jump)]
        partial, p = self.twin(jump, segments)
        np.testing.assert_allclose(apart[1].partial, partial, atol=1e-9)
        np.testing.assert_allclose(apart[1].p_value, p, rtol=1e-6)
        joined = instantaneous_evidence(jump)
        assert not np.allclose(joined.p_value, apart[1].p_value)

    def test_one_segment_is_the_same_as_none(self):
        x = draw(n_slots=200)
        first, second = instantaneous_evidence(x), instantaneous_evidence(x, [slice(0, 200)])
        np.testing.assert_array_equal(first.partial, second.partial)
        np.testing.assert_array_equal(first.direction, second.direction)

    def test_an_edge_is_found_and_oriented_in_spite_of_gaps(self):
        x = draw()
        x[:, 1] += 0.7 * x[:, 0]
        x[np.random.default_rng(0).random(x.shape) < 0.3] = np.nan
        found = instantaneous_evidence(x)
        np.testing.assert_array_equal(found.q_value < 0.01, PAIR)
        assert found.direction[0, 1] > 2

    def test_what_stands_in_one_series_changes_no_number_of_the_others(self):
        x = draw(n_slots=200, n_series=2)
        with_third = np.column_stack([x, np.where(np.arange(200) < 20, 1.0 * x[:, 0] ** 2, np.nan)])
        found = instantaneous_evidence(with_third)
        assert np.isfinite(found.p_value).all()
        alone = instantaneous_evidence(x)
        assert found.direction[0, 1] == pytest.approx(alone.direction[0, 1])

    def test_pairs_that_never_meet_are_not_linked(self):
        x = draw(n_slots=200)
        x[::2, 0] = np.nan  # no residual at all: one of two neighbours is always missing
        found = instantaneous_evidence(x)
        assert found.p_value[0].min() > 0.9
        assert np.isfinite(found.direction).all()

    def test_correlations_that_cannot_be_together_are_mended(self):
        n = 3000
        rng = np.random.default_rng(0)
        x, one = np.full((n, 3), np.nan), rng.standard_normal(n)
        noise = 0.1 * rng.standard_normal((n, 3))
        for third, (i, j, sign) in enumerate([(0, 1, 1), (1, 2, 1), (0, 2, -1)]):
            rows = slice(third * n // 3, (third + 1) * n // 3)
            x[rows, i] = one[rows] + noise[rows, i]
            x[rows, j] = sign * one[rows] + noise[rows, j]
        found = instantaneous_evidence(x, [slice(0, n)])
        assert np.isfinite(found.p_value).all()
        assert (np.abs(found.partial) <= 1).all()
        np.testing.assert_allclose(found.partial, found.partial.T)
