"""Several recordings in one table: how they are joined, and how they are read."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from causalformer.data import SeriesTable, read_series
from causalformer.data.columns import RawColumns
from causalformer.data.recordings import join_recordings, split_by_group
from causalformer.errors import DataError, DataWarning


def part(n_slots=3, names=("a", "b"), **options):
    values = np.arange(float(n_slots * len(names))).reshape(n_slots, len(names))
    return SeriesTable(values, names, **options)


def frame(n_slots=3, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n_slots, 2)), columns=["a", "b"])


class TestJoining:
    def test_one_after_the_other(self):
        made = join_recordings({"anna": part(3), "ben": part(2)}, "study")
        assert (made.n_slots, made.starts, made.runs) == (5, (0, 3), ("anna", "ben"))
        assert made.source == "study"
        np.testing.assert_array_equal(made.values[3:], part(2).values)

    def test_columns_are_brought_into_one_order(self):
        made = join_recordings({"anna": part(), "ben": part(names=("b", "a"))}, "study")
        assert made.names == ("a", "b")
        np.testing.assert_array_equal(made.values[3:], part().values[:, ::-1])

    def test_segments_of_a_recording_stay(self):
        made = join_recordings({"anna": part(5, starts=(0, 2)), "ben": part(4)}, "study")
        assert (made.starts, made.runs) == ((0, 2, 5), ("anna", "anna", "ben"))

    def test_the_time_is_kept_if_all_have_one_of_a_kind(self):
        numbers = [part(time=np.arange(3)), part(time=np.arange(3) + 0.5)]
        dates = part(time=np.arange(3).astype("M8[D]"))
        joined = join_recordings(dict(enumerate(numbers)), "study")
        assert joined.time.tolist() == [0, 1, 2, 0.5, 1.5, 2.5]
        assert join_recordings({"a": numbers[0], "b": part()}, "study").time is None
        assert join_recordings({"a": numbers[0], "b": dates}, "study").time is None

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (part(names=("a", "c")), "'ben' lacks column 'b' and has column 'c' besides"),
            (part(names=("a", "b", "c")), "'ben' has column 'c' besides, compared with 'anna'"),
            (part(names=("a",)), "'ben' lacks column 'b', compared with 'anna'"),
            (part(0), "recording 'ben' has no rows; leave it out"),
        ],
    )
    def test_what_does_not_fit_is_named(self, other, message):
        with pytest.raises(DataError, match=message):
            join_recordings({"anna": part(), "ben": other}, "study")

    def test_no_recording(self):
        with pytest.raises(DataError, match="study holds no recording"):
            join_recordings({}, "study")

    def test_recordings_come_back_as_they_were(self):
        tables = {"anna": part(5, starts=(0, 2), time=np.arange(5)), "ben": part(4, time=np.r_[:4])}
        back = join_recordings(tables, "study").recordings()
        assert list(back) == ["anna", "ben"]
        for name, table in tables.items():
            np.testing.assert_array_equal(back[name].values, table.values)
            np.testing.assert_array_equal(back[name].time, table.time)
            assert (back[name].starts, back[name].runs) == (table.starts, ())
            assert back[name].source == f"study [{name}]"


class TestGroupColumn:
    def test_rows_need_not_be_together(self):
        source = {"who": ["x", "y", "x", "y", "x"], "a": [1, 2, 3, 4, 5], "b": [0, 0, 1, 1, 0]}
        made = read_series(source, group="who")
        assert (made.names, made.starts, made.runs) == (("a", "b"), (0, 3), ("x", "y"))
        np.testing.assert_array_equal(made.values[:, 0], [1, 3, 5, 2, 4])

    @pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
    @pytest.mark.parametrize(
        ("labels", "runs"),
        [
            ([2, 2, 1], ("2", "1")),
            ([2.0, 2.0, 1.5], ("2", "1.5")),
            (["s 1", "s 1", "s 2"], ("s 1", "s 2")),
        ],
    )
    def test_labels_of_any_kind(self, make, labels, runs):
        made = read_series(make({"a": [1, 2, 3], "g": labels, "b": [3, 2, 1]}), group="g")
        assert (made.starts, made.runs, made.names) == ((0, 2), runs, ("a", "b"))

    def test_every_recording_has_a_time_of_its_own(self):
        source = {"g": [1, 1, 1, 2, 2, 2], "t": [0, 1, 2, 0, 1, 2], "a": range(6), "b": range(6)}
        made = read_series(source, group="g")
        assert made.time.tolist() == [0, 1, 2, 0, 1, 2]
        assert made.names == ("a", "b")

    def test_the_index_of_a_frame_is_split_too(self):
        index = pd.DatetimeIndex(
            [*pd.date_range("2024", periods=3), *pd.date_range("2024", periods=3)]
        )
        made = read_series(frame(6).assign(g=[1] * 3 + [2] * 3).set_index(index), group="g")
        assert made.starts == (0, 3)
        assert made.time[0] == made.time[3]

    def test_gaps_are_found_within_a_recording(self):
        time = np.r_[0:40, 90:110, 0:30]
        source = {"g": np.repeat([1, 2], [60, 30]), "t": time, "a": time * 1.0, "b": time * 2.0}
        with pytest.warns(DataWarning, match=r"\[1\]: the time has 1 gap"):
            made = read_series(source, group="g")
        assert (made.starts, made.runs) == ((0, 40, 60), ("1", "1", "2"))

    def test_a_column_that_is_not_there(self):
        with pytest.raises(
            DataError, match="no column 'who' to group by; its columns are 'a', 'b'"
        ):
            read_series(frame(), group="who")

    @pytest.mark.parametrize("empty", [None, np.nan, "", " "])
    def test_rows_without_a_recording_are_named(self, empty):
        source = {"g": np.array(["x", empty, "y"], dtype=object), "a": [1, 2, 3]}
        with pytest.raises(DataError, match="column 'g' is empty in row 2"):
            read_series(source, group="g")

    def test_a_csv_file(self, write):
        made = read_series(write("who,a,b\ny,1,2\ny,3,4\nx,5,6\n"), group="who")
        assert (made.starts, made.runs) == ((0, 2), ("y", "x"))

    def test_the_source_names_the_recording(self):
        raw = RawColumns(("g", "a"), (np.array([1, 2]), np.array([3, 4])), "f.csv")
        assert [p.source for p in split_by_group(raw, "g").values()] == ["f.csv [1]", "f.csv [2]"]


class TestSources:
    def test_a_folder_of_files_in_the_order_of_their_names(self, tmp_path):
        frame(3).to_csv(tmp_path / "ben.csv", index=False)
        frame(4).to_csv(tmp_path / "anna.tsv", index=False, sep="\t")
        frame(2).to_parquet(tmp_path / "cleo.parquet")
        (tmp_path / "notes.md").write_text("not a recording")
        (tmp_path / "more.csv").mkdir()
        made = read_series(tmp_path)
        assert (made.starts, made.runs) == ((0, 4, 7), ("anna", "ben", "cleo"))
        assert made.source == str(tmp_path)

    def test_files_of_one_stem_are_told_apart_by_their_suffix(self, tmp_path):
        frame(3).to_csv(tmp_path / "anna.csv", index=False)
        frame(3).to_csv(tmp_path / "ben.csv", index=False)
        frame(2).to_parquet(tmp_path / "anna.parquet")
        assert read_series(tmp_path).runs == ("anna.csv", "anna.parquet", "ben")

    def test_a_list_of_paths(self, tmp_path):
        paths = [tmp_path / "2.csv", str(tmp_path / "1.csv")]
        for path in paths:
            frame().to_csv(path, index=False)
        assert read_series(paths).runs == ("2", "1")
        (tmp_path / "old").mkdir()
        frame().to_csv(tmp_path / "old" / "2.csv", index=False)
        assert read_series([*paths, tmp_path / "old" / "2.csv"]).runs == ("1", "2", "3")

    @pytest.mark.parametrize(
        "make", [lambda f: f, pl.from_pandas, lambda f: f.to_numpy(), read_series]
    )
    @pytest.mark.parametrize("kind", [list, tuple])
    def test_a_list_of_frames_arrays_or_tables(self, make, kind):
        made = read_series(kind([make(frame(3)), make(frame(2, seed=1))]))
        assert (made.starts, made.runs) == ((0, 3), ("1", "2"))
        np.testing.assert_array_equal(made.values[3:], frame(2, seed=1))

    def test_a_mapping_of_frames(self):
        made = read_series({"anna": frame(3), 7: frame(2)})
        assert (made.starts, made.runs) == ((0, 3), ("anna", "7"))

    def test_an_array_of_three_axes(self):
        made = read_series(np.arange(24.0).reshape(2, 4, 3), names=["a", "b", "c"])
        assert (made.names, made.starts, made.runs) == (("a", "b", "c"), (0, 4), ("1", "2"))

    def test_options_hold_for_every_recording(self, tmp_path):
        (tmp_path / "1.csv").write_text("1,10,5\n2,20,7\n3,30,6\n")
        (tmp_path / "2.csv").write_text("1,11,5\n2,21,7\n")
        made = read_series(tmp_path, header=False, names=["when", "a", "b"], time_column=0)
        assert (made.names, made.starts) == (("a", "b"), (0, 3))
        assert made.time.tolist() == [1, 2, 3, 1, 2]
        with_steps = read_series(tmp_path, header=False, time_column=0, resample=2)
        assert with_steps.starts == (0, 2)
        np.testing.assert_array_equal(with_steps.values[:, 0], [15, 30, 16])

    def test_an_empty_folder(self, tmp_path):
        with pytest.raises(DataError, match=r"is a folder without a file of series \(\.csv"):
            read_series(tmp_path)

    def test_a_bad_file_of_a_folder_is_named(self, tmp_path):
        frame().to_csv(tmp_path / "1.csv", index=False)
        frame().rename(columns={"b": "c"}).to_csv(tmp_path / "2.csv", index=False)
        with pytest.raises(DataError, match="recording '2' lacks column 'b'"):
            read_series(tmp_path)

    def test_a_folder_of_folders_is_refused_by_name(self, tmp_path):
        (tmp_path / "inner").mkdir()
        with pytest.raises(DataError, match="without a file of series"):
            read_series(tmp_path)

    def test_a_table_is_not_grouped_again(self):
        with pytest.raises(DataError, match="no column 'g' to group by; name the group when"):
            read_series(read_series(frame()), group="g")

    def test_a_list_of_one_frame(self):
        assert read_series([frame()]).runs == ("1",)

    def test_a_group_column_in_every_file(self):
        one, two = frame(4).assign(g=[1, 1, 2, 2]), frame(2).assign(g=3)
        made = read_series([one, two], group="g")
        assert made.names == ("a", "b")
