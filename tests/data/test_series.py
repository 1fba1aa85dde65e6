import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from causalformer.data import SeriesTable, check_usable
from causalformer.errors import DataError, DataWarning


def table(values, names=None, **options):
    values = np.asarray(values, dtype=float)
    return SeriesTable(values, names or tuple("abcdefgh"[: values.shape[1]]), **options)


def random_table(n_slots=20, n_series=3):
    return table(np.random.default_rng(0).normal(size=(n_slots, n_series)), source="some.csv")


class TestSeriesTable:
    def test_values_are_float64_contiguous_and_read_only(self):
        values = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(3, 2))
        made = SeriesTable(values, ("a", "b"))
        assert made.values.dtype == np.float64
        assert made.values.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            made.values[0, 0] = 1.0

    def test_later_changes_to_the_given_array_do_not_reach_the_table(self):
        values = np.zeros((3, 2))
        view = values.view()
        view.setflags(write=False)
        made = [SeriesTable(values, ("a", "b")), SeriesTable(view, ("a", "b"))]
        values[:] = 1.0
        assert all(not m.values.any() for m in made)
        assert values.flags.writeable

    def test_a_frozen_array_is_not_copied(self):
        values = np.zeros((3, 2))
        values.setflags(write=False)
        assert SeriesTable(values, ("a", "b")).values is values

    def test_a_pickled_table_comes_back_read_only(self):
        made = table([[1, 2], [3, 4]], time=np.arange(2), source="some.csv")
        back = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(back.values, made.values)
        assert (back.names, back.source) == (made.names, made.source)
        assert not back.values.flags.writeable
        assert not back.time.flags.writeable

    def test_counts(self):
        made = random_table(7, 2)
        assert (made.n_slots, made.n_series) == (7, 2)

    def test_names_and_time_must_fit(self):
        with pytest.raises(DataError, match="3 names for 2 series"):
            SeriesTable(np.zeros((2, 2)), ("a", "b", "c"))
        with pytest.raises(DataError, match=r"time has shape \(3,\); 2 slots"):
            SeriesTable(np.zeros((2, 2)), ("a", "b"), np.arange(3))
        with pytest.raises(DataError, match="1 axes"):
            SeriesTable(np.zeros(2), ("a", "b"))


class TestSegments:
    def made(self, starts=(0, 5, 7), runs=("anna", "anna", "ben"), **options):
        values = np.arange(24.0).reshape(12, 2)
        return table(values, starts=starts, runs=runs, **options)

    def test_there_is_one_segment_unless_something_is_said(self):
        assert random_table(7).segments == (slice(0, 7),)
        assert random_table(7).run_of_slot.tolist() == [0] * 7
        assert list(random_table(7).recordings()) == ["all"]

    def test_segments_and_recordings_of_the_slots(self):
        assert self.made().segments == (slice(0, 5), slice(5, 7), slice(7, 12))
        assert self.made().run_of_slot.tolist() == [0] * 7 + [1] * 5
        assert self.made(runs=()).run_of_slot.tolist() == [0] * 12

    @pytest.mark.parametrize(
        "starts", [(), (1,), (0, 0), (0, 5, 3), (0, 12), (0, 99), (-1, 0), (5, 0)]
    )
    def test_bad_starts_are_named(self, starts):
        with pytest.raises(DataError, match=r"starts are \(.*0 first, in order, below 12"):
            self.made(starts=starts, runs=())

    def test_runs_must_fit_the_segments(self):
        with pytest.raises(DataError, match="2 runs for 3 segments; name one for each"):
            self.made(runs=("anna", "ben"))
        with pytest.raises(DataError, match="segments of a run are apart"):
            self.made(runs=("anna", "ben", "anna"))

    def test_numbers_of_any_kind_are_starts_and_names(self):
        made = self.made(starts=np.array([0, 5, 7]), runs=[1, 1, 2])
        assert made.starts == (0, 5, 7)
        assert all(type(start) is int for start in made.starts)
        assert made.runs == ("1", "1", "2")

    @pytest.mark.parametrize(
        ("slots", "starts", "runs"),
        [
            (slice(0, 12), (0, 5, 7), ("anna", "anna", "ben")),
            (slice(3, 9), (0, 2, 4), ("anna", "anna", "ben")),
            (slice(5, 7), (0,), ("anna",)),
            (slice(6, None), (0, 1), ("anna", "ben")),
            (slice(-2, None), (0,), ("ben",)),
        ],
    )
    def test_a_range_of_slots_keeps_the_segments_it_cuts(self, slots, starts, runs):
        part = self.made(time=np.arange(12)).take(slots)
        assert (part.starts, part.runs) == (starts, runs)
        np.testing.assert_array_equal(part.values, self.made().values[slots])
        np.testing.assert_array_equal(part.time, np.arange(12)[slots])

    def test_every_other_slot_is_no_range(self):
        with pytest.raises(DataError):
            self.made().take(slice(0, 12, 2))

    def test_the_head_of_several_segments(self):
        assert self.made().head(6).starts == (0, 5)
        assert self.made().head(6).runs == ("anna", "anna")
        for n_slots in (None, 12, 99):
            made = self.made()
            assert made.head(n_slots) is made

    def test_recordings_by_name(self):
        parts = self.made(source="study").recordings()
        assert list(parts) == ["anna", "ben"]
        assert parts["anna"].starts == (0, 5)
        assert parts["ben"].values.tolist() == self.made().values[7:].tolist()
        assert parts["ben"].source == "study [ben]"
        assert all(part.runs == () for part in parts.values())

    def test_a_pickled_table_keeps_its_segments(self):
        back = pickle.loads(pickle.dumps(self.made(time=np.arange(12))))
        assert (back.starts, back.runs) == ((0, 5, 7), ("anna", "anna", "ben"))

    def test_missing_values_are_where_nan_is(self):
        assert table([[1, np.nan], [np.inf, 2]]).missing.tolist() == [[False, True], [False, False]]


class TestCheckUsable:
    def test_missing_values_may_be_allowed(self):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[4:6, 1] = np.nan
        check_usable(table(values), min_slots=2, missing_ok=True)
        with pytest.raises(DataError, match="'b' \\(2 missing"):
            check_usable(table(values), min_slots=2)

    def test_infinite_values_are_never_allowed(self):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[4, 1], values[2, 2] = np.nan, -np.inf
        with pytest.raises(DataError, match=r"has infinite values in column 'c' \(1 inf.* row 3"):
            check_usable(table(values), min_slots=2, missing_ok=True)

    @pytest.mark.parametrize("infinite", [np.inf, -np.inf])
    def test_the_advice_about_infinite_values_works_where_missing_ones_are_fine(self, infinite):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[2, 2] = infinite
        with pytest.raises(
            DataError, match=r"replace them by NaN \(missing values are fine\), cut"
        ):
            check_usable(table(values), min_slots=2, missing_ok=True)
        values[2, 2] = np.nan
        check_usable(table(values), min_slots=2, missing_ok=True)

    def test_the_advice_about_infinite_values_works_where_missing_ones_are_not(self):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[0, 1], values[4, 1], values[8, 2] = np.inf, np.nan, -np.inf
        with pytest.raises(DataError) as caught:
            check_usable(table(values), min_slots=2)
        code = str(caught.value).split("`")[1]
        mended = eval(code, {"np": np, "frame": pd.DataFrame(values)})
        check_usable(table(mended.to_numpy()), min_slots=2)

    @pytest.mark.parametrize("missing_ok", [True, False])
    def test_a_column_without_values_is_never_allowed(self, missing_ok):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[:, 1] = np.nan
        with pytest.raises(DataError, match="column 'b' has no value at all; drop it"):
            check_usable(table(values), min_slots=2, missing_ok=missing_ok)

    def test_good_series_pass_in_silence(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_usable(random_table(), min_slots=20)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.zeros((0, 2)), "some.csv has no rows"),
            (np.zeros((1, 2)), "some.csv has one row"),
            (np.zeros((9, 1)), "needs at least two series.*only 'a'"),
            (np.zeros((9, 0)), "needs at least two series"),
        ],
    )
    def test_too_little_data(self, values, message):
        with pytest.raises(DataError, match=message):
            check_usable(table(values, source="some.csv"), min_slots=2)

    def test_too_few_rows_names_the_option_and_the_numbers(self):
        with pytest.raises(DataError, match=r"20 rows, but `max_lag` needs at least 21.*smaller"):
            check_usable(random_table(), min_slots=21, option="max_lag")

    def test_missing_and_infinite_values_name_column_count_and_row(self):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[4:6, 1] = np.nan
        values[2, 2], values[3, 2] = np.inf, np.nan
        with pytest.raises(DataError) as caught:
            check_usable(table(values), min_slots=2)
        message = str(caught.value)
        assert "'b' (2 missing, first in row 5)" in message
        assert "'c' (1 missing and 1 infinite, first in row 3)" in message
        assert "'a'" not in message
        assert "interpolate" in message

    def test_many_bad_columns_are_summed_up(self):
        with pytest.raises(DataError, match="and 3 more"):
            check_usable(table(np.full((9, 8), np.nan)), min_slots=2)

    def test_duplicate_names_are_named_with_their_columns(self):
        with pytest.raises(DataError, match=r"'a' \(columns 1, 3\)"):
            check_usable(table(np.zeros((9, 3)), ("a", "b", "a")), min_slots=2)

    def test_a_constant_column_is_a_warning_that_names_it(self):
        values = np.random.default_rng(0).normal(size=(9, 3))
        values[:, 1] = 4.0
        with pytest.warns(DataWarning, match="constant column 'b'"):
            check_usable(table(values), min_slots=2)

    def test_identical_columns_are_a_warning_that_names_both(self):
        values = np.random.default_rng(0).normal(size=(9, 4))
        values[:, 3] = values[:, 1]
        with pytest.warns(DataWarning, match="identical columns 'b' = 'd'"):
            check_usable(table(values), min_slots=2)

    def test_two_constant_columns_are_not_called_identical(self):
        values = np.random.default_rng(0).normal(size=(9, 4))
        values[:, 2:] = 1.0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_usable(table(values), min_slots=2)
        assert [str(w.message).split(";")[0] for w in caught] == ["array: constant column 'c', 'd'"]
