"""Gaps in the time, and steps of another length."""

import warnings

import numpy as np
import pandas as pd
import pytest

from causalformer.data import SeriesTable, read_series
from causalformer.data.time_grid import resample, split_at_gaps
from causalformer.errors import DataError, DataWarning

WITH_GAP = np.r_[0:40, 90:110]


def table(time, **options):
    time = np.asarray(time)
    values = np.arange(2.0 * len(time)).reshape(-1, 2)
    return SeriesTable(values, ("a", "b"), time, **options)


def days(*ranges):
    """Every ``(first day, number)`` of days, one after the other."""
    parts = [pd.date_range(first, periods=n).to_numpy() for first, n in ranges]
    return np.concatenate(parts)


class TestGaps:
    @pytest.mark.parametrize("kind", ["i8", "u1", "f8", "M8[D]", "M8[ns]", "m8[s]", "m8[h]"])
    def test_a_gap_begins_a_segment_whatever_the_time_is_made_of(self, kind):
        with pytest.warns(DataWarning, match=r"the time has 1 gap \(the longest before"):
            found = split_at_gaps(table(WITH_GAP.astype(kind)))
        assert found.starts == (0, 40)
        np.testing.assert_array_equal(found.values, table(WITH_GAP).values)

    def test_the_longest_gap_is_named(self):
        time = days(("2024-01-01", 30), ("2024-02-03", 30), ("2024-06-01", 30))
        with pytest.warns(DataWarning, match=r"2 gaps \(the longest before 2024-06-01"):
            assert split_at_gaps(table(time)).starts == (0, 30, 60)

    @pytest.mark.parametrize(
        "time",
        [
            np.arange(30.0) * 0.1,
            np.arange("1999-01", "2005-01", dtype="M8[M]"),
            pd.date_range("1999-01-31", periods=70, freq="ME").to_numpy(),
            pd.date_range("1890-01-01", periods=60, freq="YS").to_numpy(),
            pd.date_range("2024-03-30", periods=80, freq="h", tz="Europe/Berlin")
            .tz_convert("UTC")
            .tz_localize(None)
            .to_numpy(),
            np.cumsum(1 + 0.2 * np.random.default_rng(0).random(50)),  # a clock that jitters
            np.arange(2),
            np.array([5.0]),
            np.arange(0),
        ],
        ids=["tenths", "M", "month ends", "years", "clock change", "jitter", "two", "one", "none"],
    )
    def test_regular_times_are_left_in_silence(self, time):
        made = table(time)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert split_at_gaps(made) is made

    def test_without_a_time_there_are_no_gaps(self):
        made = SeriesTable(np.zeros((9, 2)), ("a", "b"))
        assert split_at_gaps(made, "split") is made

    def test_gaps_can_be_ignored(self):
        made = table(WITH_GAP)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert split_at_gaps(made, "ignore") is made

    def test_working_days_are_taken_as_equally_far_apart_with_a_word(self):
        made = table(pd.bdate_range("2024-01-01", periods=100).to_numpy())
        with pytest.warns(DataWarning, match="19% of the time steps are longer than usual"):
            assert split_at_gaps(made).starts == (0,)
        with pytest.warns(DataWarning, match="19 gaps"):
            assert split_at_gaps(made, "split").starts == tuple(range(0, 100, 5))

    def test_segments_and_recordings_stay_as_they_were(self):
        time = np.r_[0:30, 0:20, 50:80, 3:23]
        made = table(time, starts=(0, 30, 80), runs=("anna", "ben", "cleo"))
        with pytest.warns(DataWarning, match="1 gap"):
            found = split_at_gaps(made)
        assert found.starts == (0, 30, 50, 80)
        assert found.runs == ("anna", "ben", "ben", "cleo")

    @pytest.mark.parametrize("gaps", ["often", None, True])
    def test_other_words_are_refused(self, gaps):
        with pytest.raises(DataError, match=f"gaps is {gaps!r}; choose 'auto'"):
            split_at_gaps(table(WITH_GAP), gaps)

    @pytest.mark.parametrize(
        ("options", "starts"), [({}, (0, 40)), ({"gaps": "ignore"}, (0,)), ({"resample": 1}, (0,))]
    )
    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_reading_looks_for_gaps(self, options, starts):
        source = {"t": WITH_GAP, "a": WITH_GAP * 1.0, "b": WITH_GAP * 2.0}
        assert read_series(source, **options).starts == starts


class TestResampling:
    @pytest.mark.parametrize("step", ["2D", "48h", "2880min"])
    def test_dates(self, step):
        found = resample(table(days(("2024-02-27", 5))), step)
        np.testing.assert_array_equal(found.values[:, 0], [1, 5, 8])
        assert found.time.astype("M8[D]").astype(str).tolist() == [
            *("2024-02-27", "2024-02-29", "2024-03-02"),
        ]

    def test_months(self):
        found = resample(table(days(("2024-01-01", 366))), "MS")
        assert found.n_slots == 12
        assert found.values[1, 0] == np.mean(np.arange(31, 60)) * 2

    def test_durations(self):
        found = resample(table(np.array([0, 1, 2, 5], dtype="m8[h]")), "2h")
        np.testing.assert_array_equal(found.values[:, 0], [1, 4, 6])
        assert (found.time / np.timedelta64(1, "h")).tolist() == [0, 2, 4]

    @pytest.mark.parametrize("step", [2, 2.0, "2"])
    def test_numbers(self, step):
        found = resample(table([10, 11, 12, 17]), step)
        np.testing.assert_array_equal(found.values[:, 0], [1, 4, np.nan, 6])
        assert found.time.tolist() == [10, 12, 14, 16]

    def test_a_step_without_a_row_is_missing(self):
        found = resample(table(days(("2024-01-01", 3), ("2024-01-08", 2))), "1D")
        assert found.n_slots == 9
        assert found.missing.all(axis=1).nonzero()[0].tolist() == [3, 4, 5, 6]
        assert found.missing.any(axis=1).nonzero()[0].tolist() == [3, 4, 5, 6]

    def test_missing_values_do_not_spoil_the_mean(self):
        made = table([0, 1, 2, 3])
        values = made.values.copy()
        values[1, 0] = np.nan
        found = resample(SeriesTable(values, made.names, made.time), 2)
        np.testing.assert_array_equal(found.values, [[0, 2], [5, 6]])

    @pytest.mark.parametrize(
        "step",
        [
            0.25,
            7.0,
            0.1,
        ],
    )
    def test_the_datas_own_step_changes_nothing(self, step):
        made = table(np.round(np.arange(100) * step, 9))
        np.testing.assert_array_equal(resample(made, step).values, made.values)

    def test_recordings_are_resampled_one_by_one(self):
        made = table(np.r_[0:5, 3:8], starts=(0, 5), runs=("anna", "ben"))
        found = resample(made, 2)
        assert found.starts == (0, 3)
        assert found.runs == ("anna", "ben")
        assert found.time.tolist() == [0, 2, 4, 3, 5, 7]
        np.testing.assert_array_equal(found.values[:, 0], [1, 5, 8, 11, 15, 18])

    @pytest.mark.parametrize("step", ["1ns", "1us"])
    def test_too_many_rows_are_refused_before_they_are_made(self, step):
        with pytest.raises(DataError, match=r"would make .* rows of 9.*choose a longer step"):
            resample(table(days(("2000-01-01", 9))), step)

    def test_too_many_rows_of_numbers(self):
        with pytest.raises(DataError, match=r"would make 5e\+09 rows"):
            resample(table([0.0, 5.0]), 1e-9)

    @pytest.mark.parametrize("step", ["often", "", "-1D", "1x", 3])
    def test_what_is_no_span_of_dates(self, step):
        with pytest.raises(DataError, match=f"cannot resample to {step!r} .*give a span"):
            resample(table(days(("2024-01-01", 9))), step)

    @pytest.mark.parametrize("step", [0, -1, "1h", np.nan])
    def test_what_is_no_step_of_numbers(self, step):
        with pytest.raises(DataError, match=f"cannot resample to {step!r}; .*numbers"):
            resample(table([0, 1, 2]), step)

    def test_without_a_time(self):
        with pytest.raises(DataError, match="no time column; without one it cannot be resampled"):
            resample(SeriesTable(np.zeros((3, 2)), ("a", "b")), 2)

    @pytest.mark.parametrize(
        ("time", "step"),
        [
            pytest.param(days(("2024-01-01", 9)), "0h", id="a step of nothing"),
            pytest.param(np.arange(3.0), np.inf, id="an endless step"),
        ],
    )
    def test_odd_steps_are_named(self, time, step):
        with pytest.raises(DataError, match="cannot resample"):
            resample(table(time), step)

    @pytest.mark.parametrize("kind", ["f8", "M8[D]"])
    def test_no_rows_are_left_to_the_check(self, kind):
        assert resample(table(np.arange(0).astype(kind)), 2).n_slots == 0

    def test_too_many_rows_by_a_span_without_a_number(self):
        with pytest.raises(DataError, match="longer step"):
            resample(table(days(("2024-01-01", 9))), "s")
