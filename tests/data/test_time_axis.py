"""Which column is the time, and what moments it holds."""

import numpy as np
import pandas as pd
import pytest

from causalformer.data import read_series
from causalformer.data.columns import RawColumns
from causalformer.data.conversion import table_from_columns
from causalformer.errors import DataError, DataWarning


def raw(**columns):
    return RawColumns(tuple(columns), tuple(map(np.asarray, columns.values())), "raw")


class TestTimeColumn:
    @pytest.mark.parametrize(
        "name", ["time", "Date", "DATETIME", "timestamp", "t", "Slot", "index"]
    )
    def test_recognised_by_name(self, write, name):
        made = read_series(write(f"a,{name},b\n1,10,2\n3,20,4\n"))
        assert made.names == ("a", "b")
        assert made.time is not None
        assert made.time.tolist() == [10, 20]

    @pytest.mark.parametrize("name", ["", "Unnamed: 0"])
    def test_recognised_without_name(self, write, name):
        assert read_series(write(f"{name},a,b\n0,1,2\n1,3,4\n")).names == ("a", "b")

    def test_an_unnamed_column_that_does_not_increase_is_a_series(self, write):
        assert read_series(write(",a,b\n1,1,2\n0,3,4\n")).names == ("x0", "a", "b")

    def test_switched_off(self, write):
        made = read_series(write("t,a\n1,2\n3,4\n"), time_column=None)
        assert made.names == ("t", "a")
        assert made.time is None

    @pytest.mark.parametrize("which", ["year", 1])
    def test_named_or_counted(self, write, which):
        made = read_series(write("a,year,b\n1,2010,2\n3,2011,4\n"), time_column=which)
        assert made.names == ("a", "b")
        assert made.time is not None
        assert made.time.tolist() == [2010, 2011]

    @pytest.mark.parametrize("which", ["year", 5, -1, True])
    def test_absent_lists_the_columns(self, write, which):
        with pytest.raises(DataError, match=f"no column {which!r} .*columns are a, b"):
            read_series(write("a,b\n1,2\n3,4\n"), time_column=which)

    def test_named_but_not_increasing(self, write):
        with pytest.raises(DataError, match="time column 'a' does not increase: 1 in row 2"):
            read_series(write("a,b\n1,2\n1,4\n"), time_column="a")

    def test_named_but_text(self, write):
        with pytest.raises(DataError, match=r"column 'a' cannot be read as time.*'north'"):
            read_series(write("a,b\nnorth,2\nsouth,4\n"), time_column="a")


class TestMoments:
    def test_a_time_that_steps_back_is_kept_as_a_series_with_a_warning(self):
        with pytest.warns(DataWarning, match="'time' is named like a time but does not increase"):
            made = table_from_columns(raw(time=[1.0, 3.0, 2.0], a=[1, 2, 3]))
        assert made.names == ("time", "a")

    @pytest.mark.parametrize("name", ["t", "T", "index"])
    def test_a_series_that_only_might_be_time_is_kept_in_silence(self, name):
        made = table_from_columns(raw(**{name: [1.0, 3.0, 2.0], "a": [1, 2, 3]}))
        assert made.names == (name, "a")

    @pytest.mark.parametrize("column", [["2024-01-02", "2024-01-01"], ["2024-01-02"] * 2])
    def test_dates_that_do_not_increase_are_an_error(self, column):
        with pytest.raises(DataError, match=r"time column 'when' does not increase.*row 2"):
            table_from_columns(raw(when=column, a=[1, 2], b=[1, 2]))

    def test_a_bad_date_is_named(self):
        dates = ["2024-01-01", "2024-01-02", "soon", "2024-01-04"]
        with pytest.raises(DataError, match="'date' holds dates, but 'soon' in row 3"):
            table_from_columns(raw(date=dates, a=range(4)))

    def test_days_may_come_before_months(self):
        made = table_from_columns(raw(date=["01/02/2024", "13/02/2024"], a=[1, 2]))
        assert made.time is not None
        assert (
            made.time.astype("M8[D]").tolist()
            == np.array(["2024-02-01", "2024-02-13"], dtype="M8[D]").tolist()
        )

    def test_clock_times_are_durations(self):
        made = table_from_columns(raw(time=["00:10", "00:20", "01:00"], a=[1, 2, 3]))
        assert made.time is not None
        assert (made.time / np.timedelta64(1, "m")).tolist() == [10.0, 20.0, 60.0]

    def test_zones_are_turned_to_utc(self):
        dates = ["2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00"]
        made = table_from_columns(raw(when=dates, a=[1, 2]))
        assert made.time is not None
        assert made.time.astype("M8[m]").astype(str).tolist() == [
            "2024-10-27T00:30",
            "2024-10-27T01:30",
        ]


def test_dates_are_the_time_even_if_rows_were_dropped():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)})
    frame.insert(0, "day", pd.date_range("2020-01-01", periods=9))
    table = read_series(frame.drop(index=[8]).drop(index=[0]).rename(index={3: 30}))
    assert table.names == ("a", "b")
    assert table.time.dtype.kind == "M"
