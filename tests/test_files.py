"""Files appear whole or not at all, wherever and whatever they are."""

import os
import stat

import pytest

from causalformer.errors import FileFormatError, OutputError
from causalformer.files import read_text, write_atomically, write_text


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_text(tmp_path / "a.txt", "old")

    def fail(temporary):
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"a\.txt: No space left on device"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "n" * 300, "a/../b/" + "c" * 300, "."])
def test_impossible_names_are_refused(tmp_path, name):
    with pytest.raises(OutputError, match="cannot write"):
        write_text(tmp_path / name, "x")
    with pytest.raises(FileFormatError, match="cannot read"):
        read_text(tmp_path / name)


@pytest.mark.parametrize("name", ["CON", "NUL.txt", "=cmd()", "😀", "a\nb", "n" * 200, "..."])
def test_odd_names_are_names(tmp_path, name):
    assert read_text(write_text(tmp_path / name, "x")) == "x"


@pytest.mark.skipif(os.name == "nt", reason="permissions")
def test_new_files_have_the_permissions_that_the_user_gives_to_them(tmp_path):
    before = os.umask(0o077)
    try:
        path = write_text(tmp_path / "a.txt", "private")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
