import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.signal import detrend
from scipy.stats import norm, rankdata

from causalformer.data.preparation import STEPS, Step, parse_step, prepare
from causalformer.errors import DataError, SettingsError

NAMES = ("rain", "runoff", "snow depth")
nan = np.nan


def done(values, *steps, names=None, segments=None):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    return prepare(
        values,
        names or NAMES[: values.shape[1]],
        segments or [slice(0, len(values))],
        [parse_step(step) for step in steps],
    )


def noise(n_slots=40, n_series=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_slots, n_series))


@st.composite
def tables(draw, positive=False):
    """Values with gaps, and two segments."""
    n_slots, n_series = draw(st.integers(16, 30)), draw(st.integers(1, 3))
    shape = (n_slots, n_series)
    elements = st.floats(1e-3, 100) if positive else st.floats(-100, 100)
    scale = 10.0 ** draw(st.integers(-12, 12))
    values = draw(hnp.arrays(float, shape, elements=elements.map(lambda x: x * scale)))
    values[draw(hnp.arrays(bool, shape))] = nan
    cut = draw(st.integers(8, n_slots - 8))
    return values, [slice(0, cut), slice(cut, n_slots)]


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "step"),
        [
            ("detrend", Step("detrend")),
            ("season:12", Step("season", 12)),
            ("log[rain]", Step("log", None, ("rain",))),
            ("log[rain, snow depth]", Step("log", None, ("rain", "snow depth"))),
            (" season : 7 [ rain ,runoff ] ", Step("season", 7, ("rain", "runoff"))),
            ('log["Basel, north", x[1]]', Step("log", None, ("Basel, north", "x[1]"))),
        ],
    )
    def test_steps_are_read(self, text, step):
        assert parse_step(text) == step

    @pytest.mark.parametrize("text", STEPS)
    def test_every_listed_step_is_a_step(self, text):
        assert str(parse_step(text)) == text
        assert done(noise() ** 2, text).values.shape[1] == 3

    @given(
        columns=st.lists(st.text().map(str.strip).filter(bool), min_size=1, max_size=4).map(tuple)
    )
    def test_a_written_step_reads_back(self, columns):
        step = Step("season", 12, columns)
        assert parse_step(str(step)) == step

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("detrnd", "unknown step 'detrnd'; did you mean 'detrend'.*season:12, standardise$"),
            ("", "unknown step ''; the steps are detrend"),
            ("log[rain", "cannot be read; write it like"),
            ("log[a\nb]", "cannot be read"),
            (5, "step 5 cannot be read"),
            ("season", "season needs a whole number of slots from 1, such as season:12"),
            ("mean:0", "mean needs a whole number of slots from 1, such as mean:5"),
            ("season:-3", "'-3' is no whole number"),
            ("every:2.5", "'2.5' is no whole number"),
            ("difference:12", "difference takes no number; write season:12"),
            ("log:2", "log takes no number; write log"),
            ("every:5[rain]", "every changes the slots of all columns; leave the brackets out"),
            ("log[]", "a column has no name; write log"),
            ("log[rain,,runoff]", "a column has no name"),
        ],
    )
    def test_mistakes_are_told_in_one_line(self, text, message):
        with pytest.raises(SettingsError, match=message) as caught:
            parse_step(text)
        assert "\n" not in str(caught.value)

    def test_a_step_made_by_hand_is_checked_as_well(self):
        with pytest.raises(SettingsError, match="unknown step 'smooth'"):
            Step("smooth")


class TestSteps:
    def test_nothing_is_done_unless_asked(self):
        values = noise()
        values[3, 1] = nan
        made = done(values)
        np.testing.assert_array_equal(made.values, values)
        np.testing.assert_array_equal(made.rows, np.arange(40))
        assert made.segments == (slice(0, 40),)

    def test_the_given_array_stays_as_it_is(self):
        values = noise()
        before = values.copy()
        made = done(values)
        made.values[:] = 0
        done(values, "detrend", "standardise")
        np.testing.assert_array_equal(values, before)

    def test_detrend_is_that_of_scipy_in_each_segment(self):
        values = noise(60).cumsum(axis=0)
        made = done(values, "detrend", segments=[slice(0, 25), slice(25, 60)])
        expected = np.vstack([detrend(values[:25], axis=0), detrend(values[25:], axis=0)])
        np.testing.assert_allclose(made.values, expected, atol=1e-12)

    def test_detrend_fits_the_line_to_the_observed_values(self):
        slots = np.arange(30.0)
        wave = np.sin(slots)
        wave[[0, 4, 5, 29]] = nan
        seen = ~np.isnan(wave)
        slope, level = np.polyfit(slots[seen], wave[seen], 1)
        made = done(wave + 3 * slots, "detrend").values[:, 0]
        np.testing.assert_allclose(made, wave - level - slope * slots, atol=1e-10)

    @pytest.mark.parametrize("n_slots", [2, 10, 10_000])
    @pytest.mark.parametrize("scale", [1e-12, 0.1, 1e12])
    def test_nothing_is_left_of_a_line(self, n_slots, scale):
        line = scale * (np.arange(n_slots) + 1000)
        assert not done(line, "detrend", "standardise").values.any()

    def test_difference_and_season(self):
        squares = np.arange(6.0) ** 2
        np.testing.assert_array_equal(done(squares, "difference").values[:, 0], [1, 3, 5, 7, 9])
        made = done(squares, "season:4")
        np.testing.assert_array_equal(made.values[:, 0], [16, 24])
        np.testing.assert_array_equal(made.rows, [4, 5])

    def test_a_difference_misses_only_where_a_partner_does(self):
        made = done([1.0, 2.0, nan, 5.0, 7.0, 11.0], "difference")
        np.testing.assert_array_equal(made.values[:, 0], [1, nan, nan, 2, 4])

    def test_every_keeps_every_nth_slot_of_each_segment(self):
        made = done(np.arange(12.0), "every:3", segments=[slice(0, 7), slice(7, 12)])
        np.testing.assert_array_equal(made.values[:, 0], [0, 3, 6, 7, 10])
        np.testing.assert_array_equal(made.rows, [0, 3, 6, 7, 10])
        assert made.segments == (slice(0, 3), slice(3, 5))

    def test_mean_averages_what_was_observed_in_whole_blocks(self):
        x = [1.0, 3.0, nan, 5.0, nan, nan, 7.0, 8.0, 100.0]
        made = done(x, "mean:2")
        np.testing.assert_array_equal(made.values[:, 0], [2, 5, nan, 7.5])
        np.testing.assert_array_equal(made.rows, [0, 2, 4, 6])

    def test_log_leaves_missing_values_alone(self):
        made = done([1.0, nan, np.e, 1e12], "log").values[:, 0]
        np.testing.assert_allclose(made, [0, nan, 1, np.log(1e12)])

    @pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
    def test_standardise_gives_mean_zero_and_deviation_one_in_each_segment(self, scale):
        values = scale * (5 + noise(50))
        values[::7, 1] = nan
        segments = [slice(0, 20), slice(20, 50)]
        made = done(values, "standardise", segments=segments).values
        for segment in segments:
            np.testing.assert_allclose(np.nanmean(made[segment], axis=0), 0, atol=1e-9)
            np.testing.assert_allclose(np.nanstd(made[segment], axis=0), 1)

    def test_a_constant_series_is_standardised_to_zero(self):
        assert not done(np.full((9, 2), 0.1), "standardise").values.any()

    def test_normal_scores_rank_the_observed_values_of_each_segment(self):
        values = noise(20, 1)[:, 0]
        values[[2, 15]] = nan
        made = done(values, "normal-score", segments=[slice(0, 8), slice(8, 20)]).values[:, 0]
        for segment in (slice(0, 8), slice(8, 20)):
            seen = ~np.isnan(values[segment])
            ranks = rankdata(values[segment][seen])
            expected = norm.ppf((ranks - 0.5) / seen.sum())
            np.testing.assert_allclose(made[segment][seen], expected, atol=1e-12)
            assert np.isnan(made[segment][~seen]).all()


class TestTogether:
    def test_steps_go_in_the_order_given(self):
        x = np.array([1.0, 10.0, 100.0, 1000.0])
        np.testing.assert_allclose(done(x, "log", "difference").values[:, 0], np.log([10] * 3))
        np.testing.assert_allclose(done(x, "difference", "log").values[:, 0], np.log([9, 90, 900]))

    def test_a_limited_step_leaves_the_other_columns_alone(self):
        values = noise() ** 2 + 1
        made = done(values, "log[rain, snow depth]").values
        np.testing.assert_array_equal(made[:, [0, 2]], np.log(values[:, [0, 2]]))
        np.testing.assert_array_equal(made[:, 1], values[:, 1])

    def test_a_limited_difference_shortens_all_columns_alike(self):
        values = noise()
        made = done(values, "difference[runoff]")
        np.testing.assert_array_equal(made.values[:, 1], np.diff(values[:, 1]))
        np.testing.assert_array_equal(made.values[:, 0], values[1:, 0])
        np.testing.assert_array_equal(made.rows, np.arange(1, 40))

    def test_rows_and_segments_follow_through_several_steps(self):
        slots = np.arange(30.0)
        steps = ("season:2", "mean:3", "every:2")
        made = done(slots, *steps, segments=[slice(0, 14), slice(14, 30)])
        np.testing.assert_array_equal(made.rows, [2, 8, 16, 22])
        assert made.segments == (slice(0, 2), slice(2, 4))


class TestRefusals:
    def test_an_unknown_column(self):
        message = "no column 'runof'; did you mean 'runoff'. the columns are rain, runoff, snow dep"
        with pytest.raises(SettingsError, match=message):
            done(noise(), "log[runof]")

    @pytest.mark.parametrize("bad", [0.0, -0.5])
    def test_a_logarithm_names_column_row_and_value(self, bad):
        values = noise() ** 2 + 1
        values[7, 1] = bad
        with pytest.raises(DataError, match=rf"column 'runoff' is {bad} in row 8, .*log\[rain"):
            done(values, "every:1", "log")
        done(values, "log[rain, snow depth]")

    def test_rows_in_messages_are_those_of_the_original_table(self):
        with pytest.raises(DataError, match=r"is -4.0 in row 7"):
            done([1, 2, 3, 4, 5, 6, 1, 9], "every:2", "difference", "log")

    @pytest.mark.parametrize("step", ["season:9", "every:10", "mean:6"])
    def test_a_segment_that_gets_too_short(self, step):
        message = rf"step '{step}' leaves [01] of 10 slots in rows 21 to 30, .*shorter period"
        with pytest.raises(DataError, match=message):
            done(noise(30), step, segments=[slice(0, 20), slice(20, 30)])

    @pytest.mark.parametrize("step", ["season", "every", "mean"])
    def test_a_period_beyond_all_bounds(self, step):
        with pytest.raises(DataError, match=r"leaves [01] of 30 slots in rows 1 to 30"):
            done(noise(30), f"{step}:{10**17}")

    def test_infinite_values(self):
        values = noise()
        values[4, 2] = np.inf
        with pytest.raises(DataError, match="column 'snow depth' is infinite in row 5"):
            done(values, "detrend")


@given(table=tables())
@pytest.mark.parametrize("step", ["detrend", "standardise"])
def test_twice_is_once(step, table):
    values, segments = table
    names = NAMES[: values.shape[1]]
    once = done(values, step, names=names, segments=segments).values
    twice = done(values, step, step, names=names, segments=segments).values
    size = np.abs(np.nan_to_num(once)).max()
    np.testing.assert_allclose(twice, once, atol=1e-9 * size)


@given(table=tables(positive=True))
@pytest.mark.parametrize("step", ["detrend", "log", "standardise", "normal-score"])
def test_missing_values_stay_where_they_are(step, table):
    values, segments = table
    made = done(values, step, segments=segments)
    np.testing.assert_array_equal(np.isnan(made.values), np.isnan(values))
    np.testing.assert_array_equal(made.rows, np.arange(len(values)))


@given(table=tables(), period=st.integers(1, 4))
def test_shortening_steps_miss_only_what_they_must(table, period):
    values, segments = table
    missing = np.isnan(values)
    season = done(values, f"season:{period}", segments=segments)
    expected = missing[season.rows] | missing[season.rows - period]
    np.testing.assert_array_equal(np.isnan(season.values), expected)
    every = done(values, f"every:{period}", segments=segments)
    np.testing.assert_array_equal(every.values, values[every.rows])
    mean = done(values, f"mean:{period}", segments=segments)
    blocks = [missing[row : row + period].all(axis=0) for row in mean.rows]
    np.testing.assert_array_equal(np.isnan(mean.values), blocks)


@given(
    table=tables(), steps=st.lists(st.sampled_from(["season:2", "every:2", "mean:2", "detrend"]))
)
def test_segments_are_the_table_and_rows_increase_in_their_own_segment(table, steps):
    values, segments = table
    made = done(values, *steps[:2], segments=segments)
    assert [s.start for s in made.segments] == [0, made.segments[0].stop]
    assert made.segments[-1].stop == len(made.values) == len(made.rows)
    assert (np.diff(made.rows) > 0).all()
    for old, new in zip(segments, made.segments, strict=True):
        assert old.start <= made.rows[new].min()
        assert made.rows[new].max() < old.stop


@given(table=tables(), scale=st.sampled_from([1e-12, 3.0, 1e12]))
def test_detrend_and_differences_follow_the_scale(table, scale):
    values, segments = table
    for step in ("detrend", "difference", "mean:3"):
        made = done(values, step, segments=segments).values
        scaled = done(values * scale, step, segments=segments).values
        size = np.abs(np.nan_to_num(values)).max() * scale
        np.testing.assert_allclose(scaled, made * scale, rtol=1e-9, atol=1e-12 * size)
