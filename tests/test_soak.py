"""The loops of `make soak`, a few rounds of each."""

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("kill -9, alarms and limits of another process", allow_module_level=True)

from soak.disk import full_disk, locked_folder
from soak.frames import frame_readers
from soak.fuzz import fuzz, readers
from soak.kills import kill_and_resume


@pytest.mark.parametrize(("method", "rounds"), [("default", 2), ("paper-fmri", 1)])
def test_a_killed_run_goes_on_to_the_same_graph(method, rounds, tmp_path):
    assert kill_and_resume(method, tmp_path, rounds).failures == []


def test_a_full_disk_leaves_the_old_results(tmp_path):
    assert full_disk("default", tmp_path, rounds=2).failures == []


def test_a_locked_folder_leaves_the_old_results():
    tally = locked_folder("default")
    assert tally.failures == []
    assert tally.met == {"refused": 1}


def test_every_reader_stands_damaged_files(tmp_path):
    for number, reader in enumerate(readers(tmp_path / "valid")):
        assert fuzz(reader, tmp_path / str(number), examples=10).failures == []


@pytest.mark.parametrize("reader", frame_readers(), ids=lambda reader: reader.name)
def test_any_frame_gives_a_graph_or_a_reason(reader, tmp_path):
    assert fuzz(reader, tmp_path, examples=10).failures == []
