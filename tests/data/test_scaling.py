import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm, rankdata

from causalformer.data import SeriesTable
from causalformer.data.scaling import (
    fit_normal_scores,
    fit_run_scaling,
    fit_scaling,
    fit_table_scaling,
    levelled,
)

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


class TestMissingValues:
    def test_they_stay_missing_and_change_no_score_of_the_others(self):
        x = np.random.default_rng(0).standard_normal((40, 2))
        x[np.random.default_rng(1).random(x.shape) < 0.3] = np.nan
        scores = scores_of(x)
        np.testing.assert_array_equal(np.isnan(scores), np.isnan(x))
        for i in range(2):
            seen = ~np.isnan(x[:, i])
            np.testing.assert_array_equal(scores[seen, i], scores_of(x[seen][:, [i]])[:, 0])

    def test_undo_brings_back_what_was_there(self):
        x = np.random.default_rng(0).standard_normal((40, 2))
        x[::3, 0] = np.nan
        scaling = fit_normal_scores(x)
        np.testing.assert_allclose(scaling.undo(scaling.apply(x)), x)

    @pytest.mark.parametrize("kind", ["minmax", "standard", "none"])
    def test_the_papers_scalings_leave_them_out(self, kind):
        x = np.random.default_rng(0).standard_normal((40, 2)) * 3 + 5
        x[::3, 0] = np.nan
        scaling = fit_scaling(x, kind)
        seen = fit_scaling(x[~np.isnan(x[:, 0])], kind)
        assert scaling.offset[0] == pytest.approx(seen.offset[0])
        assert scaling.factor[0] == pytest.approx(seen.factor[0])
        np.testing.assert_allclose(scaling.undo(scaling.apply(x)), x)


class TestRecordings:
    def table(self, lengths=(60, 80), level=100.0, spread=5.0, missing=0.0):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((sum(lengths), 2))
        x[lengths[0] :] = x[lengths[0] :] * spread + level
        x[rng.random(x.shape) < missing] = np.nan
        starts = (0, *np.cumsum(lengths)[:-1].tolist())
        return SeriesTable(x, ("a", "b"), starts=starts, runs=tuple(map(str, range(len(lengths)))))

    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_levels_and_spreads_of_recordings_are_removed(self, missing):
        plain, moved = (self.table(level=lev, missing=missing) for lev in (0.0, 1e6))
        scores = fit_table_scaling(moved).apply(moved)
        np.testing.assert_allclose(scores, fit_table_scaling(plain).apply(plain), atol=1e-9)
        np.testing.assert_array_equal(np.isnan(scores), moved.missing)
        level = levelled(moved)
        for rows in (slice(0, 60), slice(60, None)):
            np.testing.assert_allclose(np.nanmean(level[rows], axis=0), 0, atol=1e-9)
            np.testing.assert_allclose(np.nanstd(level[rows], axis=0), 1)

    @pytest.mark.parametrize("missing", [0.0, 0.2])
    @pytest.mark.parametrize("lengths", [(60, 80), (60, 20), (140,)])
    def test_undo_brings_back_the_units_of_the_data(self, missing, lengths):
        table = self.table(lengths, missing=missing)
        scaling = fit_table_scaling(table)
        np.testing.assert_allclose(scaling.undo(scaling.apply(table), table), table.values)

    def test_recordings_too_short_to_know_their_level_keep_it(self):
        assert fit_table_scaling(self.table((20, 50))).by_run
        short = self.table((60, 19))
        assert not fit_table_scaling(short).by_run
        np.testing.assert_array_equal(
            fit_table_scaling(short).apply(short), scores_of(short.values)
        )

    def test_one_recording_is_not_levelled(self):
        table = self.table((140,))
        assert not fit_table_scaling(table).by_run
        np.testing.assert_array_equal(
            fit_table_scaling(table).apply(table), scores_of(table.values)
        )

    def test_gaps_within_a_recording_share_its_level(self):
        x = np.r_[np.zeros(50), np.ones(50)][:, None] * [1.0, 2.0]
        table = SeriesTable(x, ("a", "b"), starts=(0, 50), runs=("anna", "anna"))
        np.testing.assert_array_equal(levelled(table), np.sign(x - x.mean(0)))

    def test_constant_and_empty_recordings_become_zero_or_stay_missing(self):
        x = np.random.default_rng(0).standard_normal((120, 2))
        x[:60, 0], x[60:, 1] = 7.0, np.nan
        run = np.repeat([0, 1], 60)
        scaled = fit_run_scaling(x, run).apply(x)
        assert not scaled[:60, 0].any()
        assert np.isnan(scaled[60:, 1]).all()
        np.testing.assert_allclose(fit_run_scaling(x, run).undo(scaled), x)

    @given(scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
    def test_units_change_nothing(self, scale, shift):
        x, run = self.table().values, self.table().run_of_slot
        moved = x * scale + shift
        np.testing.assert_allclose(
            fit_run_scaling(moved, run).apply(moved), fit_run_scaling(x, run).apply(x), atol=1e-6
        )


def test_few_quantiles_of_a_long_series_bring_nearly_the_same_back():
    x = np.random.default_rng(0).standard_normal((5000, 2)) ** 3
    whole = fit_normal_scores(x)
    few = whole.thinned(500)
    assert len(few.ordered) == 500
    np.testing.assert_array_equal(few.ordered[[0, -1]], whole.ordered[[0, -1]])
    scores = np.linspace(-2, 2, 21)[:, None].repeat(2, axis=1)
    np.testing.assert_allclose(few.undo(scores), whole.undo(scores), atol=0.4)
    assert whole.thinned(5000) is whole
    gappy = fit_normal_scores(np.where(x > 1, np.nan, x))
    assert gappy.thinned(500) is gappy
