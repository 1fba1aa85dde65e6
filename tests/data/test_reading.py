"""Files, arrays and frames of every kind, and the options that hold for all of them."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causalformer.data import read_series
from causalformer.errors import DataError
from fresh_interpreter import loaded_by


class TestNames:
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


class TestBadFiles:
    def test_missing_file(self, tmp_path):
        with pytest.raises(DataError, match=r"no\.csv does not exist"):
            read_series(tmp_path / "no.csv")

    def test_folder(self, tmp_path):
        with pytest.raises(DataError, match="is a folder"):
            read_series(tmp_path)

    def test_unknown_suffix_lists_the_supported_ones(self, write):
        with pytest.raises(DataError, match=r"'\.xlsx'; supported are \.csv, .*\.nc"):
            read_series(write("a", "some.xlsx"))

    @pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "nc"])
    def test_damaged_files(self, write, suffix):
        with pytest.raises(DataError, match=rf"some\.{suffix} is no intact"):
            read_series(write("rubbish", f"some.{suffix}"))

    def test_an_endless_path(self):
        with pytest.raises(DataError, match=r"cannot be read|does not exist"):
            read_series("a" * 5000 + ".csv")


class TestArrays:
    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "bool"])
    def test_numbers_of_any_kind(self, dtype):
        array = np.array([[1, 0], [0, 1]], dtype=dtype)
        made = read_series(array)
        assert made.names == ("x0", "x1")
        assert made.source == "array"
        assert made.values.tolist() == [[1, 0], [0, 1]]

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
            (np.zeros((2, 2, 2, 2)), "4 axes"),
            (np.zeros((2, 2), dtype=complex), "column 'x0' holds complex numbers"),
            (np.array([[1, "a"]], dtype=object), "holds object instead of numbers"),
            (np.array([["a", "b"]]), "instead of numbers"),
            ([[1, 2], [3]], "list is no table of numbers"),
            ([["a"]], "list is no table of numbers"),
            (object(), "instead of numbers"),
            (None, "instead of numbers"),
            ({"a": np.zeros((2, 2)), "b": np.zeros(2)}, "'a' has 2 axes"),
            ({"a": [10**400, 1], "b": [1, 2]}, "'a' holds a number beyond 1e308"),
            ({"t": [10**400, 1], "b": [1, 2]}, "'t' holds a number beyond 1e308"),
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

    def test_a_large_npy_is_mapped_and_gives_the_same(self, tmp_path, monkeypatch):
        monkeypatch.setattr("causalformer.data.reading._MAPPED_BYTES", 0)
        x = np.arange(12, dtype=np.float32).reshape(6, 2)
        np.save(tmp_path / "a.npy", x)
        table = read_series(tmp_path / "a.npy")
        np.testing.assert_array_equal(table.values, x)
        assert type(table.values) is np.ndarray  # nothing hangs on the file any more
        np.save(tmp_path / "o.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
        with pytest.raises(DataError, match="holds Python objects"):
            read_series(tmp_path / "o.npy")

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

    def test_npz_of_several_tables_are_recordings(self, tmp_path):
        np.savez(tmp_path / "a.npz", train=self.values, test=self.values + 1)
        made = read_series(tmp_path / "a.npz")
        assert (made.starts, made.runs) == ((0, 3), ("train", "test"))
        np.testing.assert_array_equal(made.values[3:], self.values + 1)
        assert made.source.endswith("a.npz")

    def test_npz_of_tables_and_columns_is_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", train=self.values, test=self.values[:, 0])
        with pytest.raises(DataError, match="'train' has 2 axes"):
            read_series(tmp_path / "a.npz")

    def test_npy_of_three_axes_are_recordings(self, tmp_path):
        np.save(tmp_path / "a.npy", np.stack([self.values, self.values + 1]))
        made = read_series(tmp_path / "a.npy")
        assert (made.starts, made.runs) == ((0, 3), ("1", "2"))
        assert made.names == ("x0", "x1")

    @pytest.mark.parametrize("index", [None, pd.date_range("2024", periods=3)])
    def test_parquet(self, tmp_path, index):
        frame = pd.DataFrame(self.values, columns=["a", "b"], index=index)
        frame.to_parquet(tmp_path / "a.parquet")
        made = read_series(tmp_path / "a.parquet")
        assert made.names == ("a", "b")
        assert (made.time is None) == (index is None)
        np.testing.assert_array_equal(made.values, self.values)

    def test_parquet_with_a_name_twice_is_refused_by_name_unless_names_mend_it(self, tmp_path):
        path = tmp_path / "a.parquet"
        pq.write_table(pa.Table.from_arrays([*self.values.T], ["a", "a"]), path)
        with pytest.raises(DataError, match=r"a\.parquet: names .* once: 'a' \(columns 1, 2\)"):
            read_series(path)
        made = read_series(path, names=["a", "b"])
        assert made.source == str(path)
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


def test_importing_loads_no_heavy_package():
    heavy = {"pandas", "torch", "xarray", "scipy", "pyarrow"}
    assert not heavy & loaded_by("import causalformer.data, causalformer.datasets")
