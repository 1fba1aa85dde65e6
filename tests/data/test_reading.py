import csv
import io
import subprocess
import sys
import time
import warnings
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from causalformer.data import SeriesTable, read_series
from causalformer.errors import DataError, DataWarning, MissingExtraError


@pytest.fixture
def write(tmp_path):
    def write(text, name="some.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def rows(made: SeriesTable):
    return made.values.tolist()


class TestSeparators:
    @pytest.mark.parametrize("separator", [",", ";", "\t", " ", "   ", ", ", " ; ", " \t "])
    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    def test_each_is_found(self, write, separator, line_end):
        lines = [["a", "b", "c"], ["1.5", "-2", "3e-1"], ["4", "5.25", "6"]]
        made = read_series(write(line_end.join(separator.join(line) for line in lines)))
        assert made.names == ("a", "b", "c")
        assert rows(made) == [[1.5, -2, 0.3], [4, 5.25, 6]]

    @pytest.mark.parametrize("separator", [";", "\t", " "])
    def test_decimal_comma(self, write, separator):
        text = f"a{separator}b\n1,5{separator}2\n-0,25{separator}3,125\n"
        assert rows(read_series(write(text))) == [[1.5, 2], [-0.25, 3.125]]

    def test_decimal_comma_that_shows_late(self, write):
        text = "a;b\n" + "1;2\n" * 100 + "1,5;2\n"
        assert rows(read_series(write(text)))[-1] == [1.5, 2.0]

    def test_decimal_comma_beside_truth_values(self, write):
        made = read_series(write("a;b\n1,5;True\n2,5;false\n"))
        assert rows(made) == [[1.5, 1.0], [2.5, 0.0]]

    def test_dates_with_spaces_do_not_split(self, write):
        made = read_series(write("date,a,b\n2024-01-01 00:00,1,2\n2024-01-01 01:00,3,4\n"))
        assert made.names == ("a", "b")
        assert made.time is not None
        assert str(made.time[1]).startswith("2024-01-01T01:00")

    def test_a_separator_at_every_line_end(self, write):
        assert read_series(write("a;b;\n1;2;\n3;4;\n")).names == ("a", "b")

    def test_blank_lines_are_skipped(self, write):
        assert rows(read_series(write("\n\na,b\n\n1,2\n\n3,4\n\n  \n"))) == [[1, 2], [3, 4]]

    def test_savetxt_output_reads_back(self, tmp_path):
        values = np.random.default_rng(0).normal(size=(50, 4))
        np.savetxt(tmp_path / "a.txt", values, fmt="%25.17g")
        made = read_series(tmp_path / "a.txt")
        assert made.names == ("x0", "x1", "x2", "x3")
        np.testing.assert_array_equal(made.values, values)


class TestHeader:
    def test_numbers_alone_are_data(self, write):
        made = read_series(write("1.5,2\n3,4\n"))
        assert made.names == ("x0", "x1")
        assert made.n_slots == 2

    @pytest.mark.parametrize("first", ["1.5,,2", "NA,1.5,nan", "inf,-1e5,+2", "True,false,1"])
    def test_missing_infinite_and_truth_values_are_data(self, write, first):
        assert read_series(write(f"{first}\n1,2,3.5\n")).n_slots == 2

    @pytest.mark.parametrize("start", [0, 1])
    def test_counted_columns_over_fractions_are_a_header(self, write, start):
        names = tuple(str(i + start) for i in range(5))
        made = read_series(write(",".join(names) + "\n" + "0.5,1,2,3,4\n" * 3))
        assert made.names == names
        assert made.n_slots == 3

    def test_the_fraction_may_come_late(self, write):
        made = read_series(write("0,1\n" + "5,6\n" * 1000 + "0.5,1\n"))
        assert made.names == ("0", "1")
        assert made.n_slots == 1001

    def test_counted_columns_over_whole_numbers_are_data_with_a_warning(self, write):
        path = write("0,1,2\n5,6,7\n8,9,10\n")
        with pytest.warns(DataWarning, match="kept as data: pass header=True"):
            made = read_series(path)
        assert made.n_slots == 3
        assert read_series(path, header=True).names == ("0", "1", "2")
        assert read_series(path, header=False).n_slots == 3

    def test_one_counted_row_alone_is_data(self, write):
        assert read_series(write("0,1,2\n")).n_slots == 1

    @pytest.mark.parametrize("first", ["0,2,1", "0.0,1.0,2.0", "1,2,4", "0,0,0"])
    def test_other_whole_numbers_are_data(self, write, first):
        assert read_series(write(f"{first}\n0.5,1.5,2.5\n")).n_slots == 2

    def test_a_frame_written_with_its_index(self, tmp_path):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)))
        frame.to_csv(tmp_path / "a.csv")
        made = read_series(tmp_path / "a.csv")
        assert made.names == ("0", "1", "2")
        np.testing.assert_array_equal(made.values, frame.to_numpy())
        assert made.time is not None
        assert made.time.tolist() == list(range(9))

    @pytest.mark.parametrize("dates", [("2024-01-01", "2024-01-02"), ("Jan 2024", "Feb 2024")])
    def test_dates_do_not_make_a_header(self, write, dates):
        made = read_series(write(f"{dates[0]},1,2\n{dates[1]},3,4\n"))
        assert made.names == ("x1", "x2")
        assert rows(made) == [[1, 2], [3, 4]]
        assert made.time is not None

    def test_text_among_fractions_is_a_header_with_a_warning(self, write):
        with pytest.warns(DataWarning, match=r"taken as the header.*1\.5.*header=False"):
            assert read_series(write("1.5,abc\n1,2\n3,4\n")).names == ("1.5", "abc")

    @pytest.mark.parametrize("first", ["0x10,2", "1_000,2", "1.2.3,4"])
    def test_a_misspelt_number_does_not_lose_its_row_in_silence(self, write, first):
        with pytest.warns(DataWarning, match="taken as the header"):
            read_series(write(f"{first}\n3,4\n5,6\n"))

    def test_one_counted_cell_is_no_header(self, write):
        assert read_series(write("1\n2\n3.5\n")).n_slots == 3

    def test_years_may_be_names(self, write):
        made = read_series(write("t,2010,2011\n1,5,6\n2,7,8\n"))
        assert made.names == ("2010", "2011")

    def test_header_forced(self, write):
        path = write("1.5,2.5\n3,4\n")
        assert read_series(path, header=True).names == ("1.5", "2.5")
        with pytest.raises(DataError, match="column 'x0' holds text: 'a' in row 1"):
            read_series(write("a,b\n3,4\n"), header=False)

    def test_names_replace_the_header(self, write):
        assert read_series(write("a,b\n1,2\n"), names=["c", "d"]).names == ("c", "d")

    def test_names_may_count_the_time_or_not(self, write):
        path = write("2024-01-01,1,2\n2024-01-02,3,4\n")
        assert read_series(path, names=["a", "b"]).names == ("a", "b")
        assert read_series(path, names=["day", "a", "b"]).names == ("a", "b")

    def test_names_mend_a_double_header(self, write):
        assert read_series(write("a,a\n1,2\n"), names=["a", "b"]).names == ("a", "b")

    @pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], "ab"])
    def test_names_that_do_not_fit(self, write, names):
        with pytest.raises(DataError, match=r"`names`.*one (per|name per) series"):
            read_series(write("5,2\n3,4\n"), names=names)

    def test_names_given_twice(self):
        with pytest.raises(DataError, match="'a'"):
            read_series(np.zeros((2, 2)), names=["a", "a"])


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
    def test_names_with_accents(self, write, encoding):
        made = read_series(write("température,sol\n1.5,2\n3,4\n", encoding=encoding))
        assert made.names == ("température", "sol")

    def test_binary_files_are_refused(self, write):
        with pytest.raises(DataError, match=r"some\.csv is not a text file"):
            read_series(write(b"PK\x03\x04\x00\x00\x00"))


name_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8
).map(str.strip)
odd_names = st.lists(
    # a name must not read as a value, and not as time
    name_texts.map(lambda text: f"s{text}"),
    min_size=2,
    max_size=5,
    unique=True,
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=120, deadline=None)
@given(data=st.data(), names=odd_names, separator=st.sampled_from([",", ";", "\t"]))
def test_csv_round_trip(tmp_path_factory, data, names, separator):
    row = st.lists(finite, min_size=len(names), max_size=len(names))
    values = data.draw(st.lists(row, min_size=1, max_size=6))
    with_header = data.draw(st.booleans())
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=separator,
        lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])),
        quoting=data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    if with_header:
        writer.writerow(names)
    writer.writerows(values)
    path = tmp_path_factory.mktemp("trip") / "a.csv"
    path.write_bytes(text.getvalue().encode("utf-8"))
    made = read_series(path, header=with_header or None)
    assert made.names == (
        tuple(names) if with_header else tuple(f"x{i}" for i in range(len(names)))
    )
    np.testing.assert_array_equal(made.values, values)
    if with_header:
        assert read_series(path).names == tuple(names)


class TestBadFiles:
    def test_missing_file(self, tmp_path):
        with pytest.raises(DataError, match=r"no\.csv does not exist"):
            read_series(tmp_path / "no.csv")

    def test_folder(self, tmp_path):
        with pytest.raises(DataError, match="is a folder"):
            read_series(tmp_path)

    @pytest.mark.parametrize("text", ["", "\n\n", "  \n", "\ufeff"])
    def test_empty_file(self, write, text):
        with pytest.raises(DataError, match=r"some\.csv is empty"):
            read_series(write(text))

    @pytest.mark.parametrize("header", [None, True])
    def test_header_only(self, write, header):
        with pytest.raises(DataError, match="header but no rows"):
            read_series(write("a,b\n"), header=header)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b,c\n1,2,3\n1,2\n", "line 3: 2 fields found, 3 expected"),
            ("a,b,c\n\n1,2,3\n1,2,3,4\n", "line 4: 4 fields found, 3 expected as in line 1"),
            ("a b c\n1 2 3\n1 2\n", "line 3: 2 fields found, 3 expected"),
            ("a,b\n1,2,3\n1,2,3\n", "line 2: 3 fields found, 2 expected"),
            ("a,b\n" + "1,2\n" * 500 + "1,2,3\n", "line 502: 3 fields found"),
            ("# a b\n1.5 2\n2 3\n", "remove comment lines"),
        ],
    )
    def test_ragged_lines_are_named(self, write, text, message):
        with pytest.raises(DataError, match=message) as caught:
            read_series(write(text))
        assert "some.csv" in str(caught.value)

    @pytest.mark.parametrize("row", [1, 400])
    def test_text_names_column_value_and_row(self, write, row):
        lines = ["1.5,2.5"] * (row - 1) + ["1.5,abc", "1,2"]
        with pytest.raises(DataError, match=f"column 'b' holds text: 'abc' in row {row};"):
            read_series(write("a,b\n" + "\n".join(lines)))

    def test_a_text_column_is_no_time(self, write):
        with pytest.raises(DataError, match="column 'place' holds text: 'north' in row 1"):
            read_series(write("place,a\nnorth,1\nsouth,2\n"))

    def test_duplicate_names(self, write):
        with pytest.raises(DataError, match=r"'a' \(columns 1, 3\).*'b' \(columns 2, 4\)"):
            read_series(write("a,b,a,b\n1,2,3,4\n"))

    def test_unknown_suffix_lists_the_supported_ones(self, write):
        with pytest.raises(DataError, match=r"'\.xlsx'; supported are \.csv, .*\.nc"):
            read_series(write("a", "some.xlsx"))

    @pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "nc"])
    def test_damaged_files(self, write, suffix):
        with pytest.raises(DataError, match=rf"some\.{suffix} is no intact"):
            read_series(write("rubbish", f"some.{suffix}"))

    def test_spaces_within_numbers_are_text(self, write):
        with pytest.raises(DataError, match="column 'a' holds text: '1 000'"):
            read_series(write("a,b\n1 000,5\n2 000,6\n"))

    def test_an_endless_path(self):
        with pytest.raises(DataError, match=r"cannot be read|does not exist"):
            read_series("a" * 5000 + ".csv")

    def test_empty_cells_become_nan(self, write):
        made = read_series(write("a,b\n1,\nNA,2\n,null\n"))
        np.testing.assert_array_equal(made.values, [[1, np.nan], [np.nan, 2], [np.nan, np.nan]])

    def test_huge_numbers(self, write):
        made = read_series(write("a,b\n123456789012345678901234567890,1e400\n-1,5e-324\n"))
        assert rows(made) == [[123456789012345678901234567890.0, np.inf], [-1.0, 5e-324]]


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


class TestArrays:
    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "bool"])
    def test_numbers_of_any_kind(self, dtype):
        array = np.array([[1, 0], [0, 1]], dtype=dtype)
        made = read_series(array)
        assert made.names == ("x0", "x1")
        assert made.source == "array"
        assert rows(made) == [[1, 0], [0, 1]]

    def test_lists(self):
        made = read_series([[1, None], [True, 2.5]])
        np.testing.assert_array_equal(made.values, [[1, np.nan], [1, 2.5]])

    def test_masked_values_become_nan(self):
        masked = np.ma.masked_equal([[1, 2], [3, -9]], -9)
        np.testing.assert_array_equal(read_series(masked).values, [[1, 2], [3, np.nan]])

    def test_records(self):
        array = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
        assert read_series(array).names == ("a", "b")

    def test_mapping(self):
        made = read_series({"date": ["2024-01-01", "2024-01-02"], "a": [1, 2], 7: [3, 4]})
        assert made.names == ("a", "7")
        assert made.time is not None

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (np.zeros(3), "1 axes"),
            (np.zeros((2, 2, 2)), "3 axes"),
            (np.zeros((2, 2), dtype=complex), "column 'x0' holds complex numbers"),
            (np.array([[1, "a"]], dtype=object), "holds object instead of numbers"),
            (np.array([["a", "b"]]), "instead of numbers"),
            ([[1, 2], [3]], "list is no table of numbers"),
            ([["a"]], "list is no table of numbers"),
            (object(), "instead of numbers"),
            (None, "instead of numbers"),
            ({"a": np.zeros((2, 2)), "b": np.zeros(2)}, "'a' has 2 axes"),
            (pd.Series([1.0, 2.0]), "one series"),
            (pl.Series([1.0, 2.0]), "one series"),
        ],
    )
    def test_bad_ones(self, source, message):
        with pytest.raises(DataError, match=message):
            read_series(source)

    def test_time_by_position(self):
        made = read_series(np.array([[1.0, 5], [2, 6]]), time_column=0)
        assert made.names == ("x1",)

    def test_a_table_passes_through(self):
        made = read_series([[1, 2], [3, 4]])
        assert read_series(made) is made
        assert read_series(made, names=["a", "b"]).names == ("a", "b")


class TestBinaryFiles:
    values = np.arange(6.0).reshape(3, 2)

    def test_npy(self, tmp_path):
        np.save(tmp_path / "a.npy", self.values)
        made = read_series(str(tmp_path / "a.npy"))
        np.testing.assert_array_equal(made.values, self.values)
        assert made.source.endswith("a.npy")

    def test_npy_of_objects_is_refused(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
        with pytest.raises(DataError, match=r"a\.npy holds Python objects"):
            read_series(tmp_path / "a.npy")

    def test_the_content_decides_between_npy_and_npz(self, tmp_path):
        np.save(tmp_path / "a.npy", self.values)
        (tmp_path / "a.npy").rename(tmp_path / "b.npz")
        np.testing.assert_array_equal(read_series(tmp_path / "b.npz").values, self.values)

    def test_npz_of_one_array(self, tmp_path):
        np.savez(tmp_path / "a.npz", data=self.values)
        np.testing.assert_array_equal(read_series(tmp_path / "a.npz").values, self.values)

    def test_npz_of_columns(self, tmp_path):
        np.savez(tmp_path / "a.npz", t=np.arange(3), sun=self.values[:, 0], rain=self.values[:, 1])
        made = read_series(tmp_path / "a.npz")
        assert made.names == ("sun", "rain")
        assert made.time is not None

    def test_npz_of_several_tables_is_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", train=self.values, test=self.values)
        with pytest.raises(DataError, match="'train' has 2 axes"):
            read_series(tmp_path / "a.npz")

    @pytest.mark.parametrize("index", [None, pd.date_range("2024", periods=3)])
    def test_parquet(self, tmp_path, index):
        frame = pd.DataFrame(self.values, columns=["a", "b"], index=index)
        frame.to_parquet(tmp_path / "a.parquet")
        made = read_series(tmp_path / "a.parquet")
        assert made.names == ("a", "b")
        assert (made.time is None) == (index is None)
        np.testing.assert_array_equal(made.values, self.values)


class TestFrames:
    columns = MappingProxyType({"a": [1, 2, 3], "b": [0.5, None, 2.5], "c": [True, False, True]})
    values = ((1, 0.5, 1), (2, np.nan, 0), (3, 2.5, 1))

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_every_library(self, make):
        made = read_series(make(dict(self.columns)))
        assert made.names == ("a", "b", "c")
        np.testing.assert_array_equal(made.values, self.values)
        assert made.time is None

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_dates_in_a_column(self, make):
        dates = pd.date_range("2024-01-01", periods=3).to_pydatetime()
        made = read_series(make({"a": [1, 2, 3], "b": [1, 2, 3], "when": list(dates)}))
        assert made.names == ("a", "b")
        assert made.time is not None
        assert made.time.astype("M8[D]").astype(str)[0] == "2024-01-01"

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_text_in_a_column(self, make):
        with pytest.raises(DataError, match="column 'b' holds text: 'x' in row 2"):
            read_series(make({"a": [1, 2], "b": ["1", "x"]}))

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_zones_are_turned_to_utc(self, make):
        zoned = pd.date_range("2024-01-01", periods=2, tz="Europe/Berlin")
        table = pa.table({"when": pa.array(zoned), "a": [1, 2]})
        frame = {pd.DataFrame: table.to_pandas, pl.DataFrame: lambda: pl.from_arrow(table)}
        made = read_series(frame.get(make, lambda: table)())
        assert made.time is not None
        assert str(made.time[0]).startswith("2023-12-31T23:00")

    def test_arrow_backed_pandas(self):
        dates = pd.date_range("2024-01-01", periods=3)
        frame = pd.DataFrame({"date": dates, **self.columns})
        frame = pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype)
        made = read_series(frame)
        np.testing.assert_array_equal(made.values, self.values)
        assert made.time is not None

    def test_nullable_pandas_types(self):
        frame = pd.DataFrame(dict(self.columns)).convert_dtypes()
        np.testing.assert_array_equal(read_series(frame).values, self.values)

    @pytest.mark.parametrize(
        "index",
        [
            pd.date_range("2024", periods=3),
            pd.date_range("2024", periods=3, tz="Europe/Berlin"),
            pd.period_range("2024-01", periods=3, freq="M"),
            pd.Index([3, 5, 8], name="time"),
            pd.Index(["2024-01", "2024-02", "2024-03"]),
        ],
    )
    def test_the_index_is_the_time(self, index):
        made = read_series(pd.DataFrame(dict(self.columns), index=index))
        assert made.n_series == 3
        assert made.time is not None
        assert (
            read_series(pd.DataFrame(dict(self.columns), index=index), time_column=None).time
            is None
        )

    def test_an_index_of_labels_is_ignored(self):
        made = read_series(pd.DataFrame(dict(self.columns), index=["x", "y", "z"]))
        assert made.time is None

    def test_the_index_by_name(self):
        frame = pd.DataFrame(dict(self.columns), index=pd.Index([3, 5, 8], name="year"))
        assert read_series(frame).time is None
        made = read_series(frame, time_column="year")
        assert made.time is not None
        assert made.time.tolist() == [3, 5, 8]

    def test_an_index_that_steps_back(self):
        frame = pd.DataFrame(dict(self.columns), index=pd.date_range("2024", periods=3)[::-1])
        with pytest.raises(DataError, match="does not increase"):
            read_series(frame)

    def test_a_multi_index_is_refused(self):
        index = pd.MultiIndex.from_product([["s1"], [1, 2, 3]])
        with pytest.raises(DataError, match="several levels"):
            read_series(pd.DataFrame(dict(self.columns), index=index))

    def test_column_labels_become_text(self):
        assert read_series(pd.DataFrame({1: [1, 2], ("a", "b"): [3, 4]})).names == ("1", "a b")

    @pytest.mark.parametrize(
        "frame",
        [
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            pd.DataFrame([[1, 2]], columns=["1", 1]),
            pa.table([[1], [2]], names=["a", "a"]),
        ],
    )
    def test_duplicate_names(self, frame):
        with pytest.raises(DataError, match=r"'(a|1)'|names.*a"):
            read_series(frame)

    def test_lazy_frames_are_refused(self):
        with pytest.raises(DataError, match="lazy; collect it first"):
            read_series(pl.LazyFrame(dict(self.columns)))

    def test_no_rows_are_left_to_the_check(self):
        assert read_series(pd.DataFrame({"a": [], "b": []})).n_slots == 0


class TestXarray:
    def grid(self):
        values = np.arange(24.0).reshape(4, 2, 3)
        values[:, 0, 1] = np.nan
        return xr.Dataset(
            {"sst": (("time", "lat", "lon"), values), "area": (("lat", "lon"), values[0])},
            {
                "time": pd.date_range("2020", periods=4, freq="MS"),
                "lat": [1.5, -0.5],
                "lon": np.array([0, 2.1, 4], dtype="f4"),
            },
        )

    def check_grid(self, source):
        with pytest.warns(DataWarning, match="1 of 6 cells are missing throughout"):
            made = read_series(source)
        assert made.names[:2] == ("sst[lat=1.5 lon=0]", "sst[lat=1.5 lon=4]")
        assert rows(made)[0] == [0, 2, 3, 4, 5]
        assert "1 of 6 cells" in made.source
        assert made.time is not None
        assert str(made.time[1]).startswith("2020-02-01")

    def test_netcdf(self, tmp_path):
        self.grid().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
        self.check_grid(tmp_path / "a.nc")

    def test_netcdf_without_the_extra(self, write, monkeypatch):
        monkeypatch.setitem(sys.modules, "xarray", None)
        with pytest.raises(MissingExtraError, match=r"pip install causalformer\[netcdf\]"):
            read_series(write("", "some.nc"))

    def test_dataset(self):
        self.check_grid(self.grid())

    def test_time_need_not_come_first(self):
        self.check_grid(self.grid().transpose("lat", "lon", "time"))

    def test_variables_of_one_dimension(self):
        data = xr.Dataset({"a": ("time", [1.0, 2]), "b": ("time", [3, 4]), "c": 5.0})
        made = read_series(data)
        assert made.names == ("a", "b")
        assert made.time is None

    def test_array_with_named_series(self):
        array = xr.DataArray(
            np.eye(3, 2), dims=("t", "place"), coords={"place": ["north", "south"], "t": [1, 2, 4]}
        )
        made = read_series(array)
        assert made.names == ("north", "south")
        assert made.time is not None
        assert made.time.tolist() == [1, 2, 4]
        assert read_series(array, names=["a", "b"]).names == ("a", "b")
        assert read_series(array, time_column=None).time is None

    def test_plain_array(self):
        assert read_series(xr.DataArray(np.eye(3, 2))).names == ("x0", "x1")

    def test_the_time_dimension_must_be_known(self):
        array = xr.DataArray(np.eye(3, 2), dims=("year", "place"))
        with pytest.raises(DataError, match="looks like time among year, place"):
            read_series(array)
        with pytest.raises(DataError, match=r"no dimension 'yr'.*year, place"):
            read_series(array, time_column="yr")
        assert read_series(array, time_column="year").n_slots == 3

    def test_time_must_increase(self):
        array = xr.DataArray(np.eye(2), dims=("time", "p"), coords={"time": [2, 1]})
        with pytest.raises(DataError, match="'time' does not increase"):
            read_series(array)

    def test_nothing_to_read(self):
        with pytest.raises(DataError, match="no variable that holds numbers"):
            read_series(xr.Dataset({"a": ("time", ["x", "y"])}))
        with pytest.raises(DataError, match="no variable that holds numbers over time"):
            read_series(xr.Dataset({"a": 1.0}))


def test_reading_is_quick(tmp_path):
    values = np.random.default_rng(0).normal(size=(4000, 10))
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(map(repr, row)) for row in values.tolist()))
    read_series(path)
    began = time.perf_counter()
    for _ in range(3):
        np.testing.assert_array_equal(read_series(path).values, values)
    assert (time.perf_counter() - began) / 3 < 0.25  # about 10 ms on an idle machine


def test_importing_loads_no_heavy_package():
    code = (
        "import sys, causalformer.data, causalformer.datasets; "
        "print({'pandas', 'torch', 'xarray', 'scipy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_good_files_read_without_a_warning(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_series(write("date;a;b\n1.2.2024;1,5;2\n13.2.2024;2,5;3\n"))
