"""What is too large for memory lies on disk, and nothing else changes."""

import errno
import os

import numpy as np
import pandas as pd
import pytest

from causalformer import CausalFormer, scratch
from causalformer.data import SeriesTable, read_series
from causalformer.datasets import make_random_system
from causalformer.errors import OutputError
from causalformer.parallel import threads

OPTIONS = {"max_lag": 2, "random_state": 0, "settings": {"max_epochs": 3, "n_channels": 4}}


@pytest.fixture
def everything_on_disk(monkeypatch):
    """Every array of more than a few numbers is large; count those that were asked for."""
    made = []
    empty = scratch.empty

    def counted(shape, dtype=np.float64):
        made.append(empty(shape, dtype))
        return made[-1]

    monkeypatch.setattr(scratch, "_LARGE", 1e-9)
    monkeypatch.setattr(scratch, "is_large", lambda n_bytes: n_bytes > 16)
    monkeypatch.setattr(scratch, "empty", counted)
    return made


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
@pytest.mark.parametrize("n_series", [4, 24], ids=["together", "in blocks"])
def test_the_graph_is_the_same(everything_on_disk, tmp_path, n_series, monkeypatch):
    series = make_random_system(n_series, 150, random_state=1).series
    path = tmp_path / "series.npy"
    np.save(path, series.values)
    on_disk = CausalFormer(**OPTIONS).fit(path)
    assert isinstance(on_disk._table.values, np.memmap)
    assert sum(isinstance(array, np.memmap) for array in everything_on_disk) >= 6
    monkeypatch.undo()
    usual = CausalFormer(**OPTIONS).fit(path)
    assert not isinstance(usual._table.values, np.memmap)
    for name, matrix in usual.scores_.items():
        np.testing.assert_array_equal(matrix, on_disk.scores_[name], name)
    pd.testing.assert_frame_equal(usual.predict(path), on_disk.predict(path))


def test_a_large_array_is_a_file_that_can_be_filled():
    with scratch.memory_limited(1000):
        array = scratch.empty((3, 4), np.float32)
        assert isinstance(array, np.memmap)
        assert not isinstance(scratch.empty((2,), np.float32), np.memmap)
        assert scratch.empty((0, 4)).shape == (0, 4)
    array[:] = np.arange(12).reshape(3, 4)
    assert array.sum() == 66
    assert not isinstance(scratch.empty((3, 4)), np.memmap)


def test_parts_cover_all_rows_once():
    for n_rows, n_columns in ((0, 3), (1, 1), (2**20, 3), (10, 2**21)):
        rows = [i for part in scratch.parts(n_rows, n_columns) for i in (part.start, part.stop)]
        assert rows[:1] == [0][: len(rows)]
        assert rows[1:-1:2] == rows[2::2]
        assert rows[-1:] == [n_rows][: len(rows)]


def test_a_full_disk_is_said_before_anything_is_written(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with (
        scratch.memory_limited(1e6),
        pytest.raises(OutputError, match=r"has no room for 0.0008 GB .* set TMPDIR"),
    ):
        scratch.empty((100_000,))


def test_the_limits_of_two_threads_do_not_mix():
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    together = Barrier(2)

    def seen(limit):
        with scratch.memory_limited(limit):
            together.wait()
            return scratch.largest_in_memory() * 40

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(seen, [1e6, 4e6])) == [1e6, 4e6]
    assert not scratch.is_large(1e6)


def test_threads_that_share_work_share_the_limit():
    with scratch.memory_limited(4e6), threads(2, most=2) as shared:
        assert set(shared(lambda _: scratch.largest_in_memory(), range(8))) == {1e5}


class TestParquet:
    def both(self, frame, path, monkeypatch, **options):
        frame.to_parquet(path)
        usual = read_series(path, **options)
        monkeypatch.setattr(scratch, "is_large", lambda n_bytes: n_bytes > 16)
        return usual, read_series(path, **options)

    def assert_same(self, usual, on_disk):
        assert isinstance(on_disk.values, np.memmap)
        np.testing.assert_array_equal(usual.values, on_disk.values)
        assert usual.names == on_disk.names
        assert (usual.time is None) == (on_disk.time is None)
        if usual.time is not None:
            np.testing.assert_array_equal(usual.time, on_disk.time)

    def test_column_by_column_reads_the_same(self, tmp_path, monkeypatch):
        days = pd.date_range("2020-01-01", periods=30, tz="Europe/Paris")
        values = np.random.default_rng(0).standard_normal((30, 3))
        values[3, 1] = np.nan
        frame = pd.DataFrame(values, columns=["a", "b", "c"]).assign(
            n=pd.array([1, None, *range(28)], dtype="Int64"), yes=[True, False] * 15
        )
        frame.insert(0, "date", days)
        self.assert_same(*self.both(frame, tmp_path / "x.parquet", monkeypatch))

    def test_the_index_of_a_frame_is_its_time(self, tmp_path, monkeypatch):
        frame = pd.DataFrame(
            np.random.default_rng(0).standard_normal((30, 2)),
            columns=["a", "b"],
            index=pd.date_range("2020-01-01", periods=30, name="day"),
        )
        usual, on_disk = self.both(frame, tmp_path / "x.parquet", monkeypatch)
        assert usual.time is not None
        self.assert_same(usual, on_disk)

    def test_types_of_columns_are_kept(self, tmp_path, monkeypatch):
        frame = pd.DataFrame({"t": np.arange(30) + 2**60, "a": np.arange(30.0), "b": range(30)})
        usual, on_disk = self.both(frame, tmp_path / "x.parquet", monkeypatch)
        assert usual.names == ("a", "b")
        self.assert_same(usual, on_disk)
        assert usual.time.dtype == on_disk.time.dtype == np.int64

    def test_groups_of_truth_values_keep_their_names(self, tmp_path, monkeypatch):
        frame = pd.DataFrame({"who": [True] * 10 + [False] * 10, "x": range(20), "y": range(20)})
        usual, on_disk = self.both(frame, tmp_path / "x.parquet", monkeypatch, group="who")
        assert usual.runs == on_disk.runs == ("True", "False")

    def test_groups_are_told_apart(self, tmp_path, monkeypatch):
        frame = pd.DataFrame({"who": ["a"] * 10 + ["b"] * 10, "x": range(20), "y": range(20)})
        usual, on_disk = self.both(frame, tmp_path / "x.parquet", monkeypatch, group="who")
        assert usual.runs == on_disk.runs == ("a", "b")
        np.testing.assert_array_equal(usual.values, on_disk.values)


def test_a_table_keeps_a_read_only_file_as_it_is(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 2)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert SeriesTable(mapped, ("a", "b")).values is mapped
