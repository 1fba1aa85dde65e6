import pytest

from causalformer.datasets import load_folder, make_structure
from causalformer.errors import DataError, SettingsError


def edges(file):
    return {(e.cause, e.effect) for e in file.load().truth.edges if e.cause != e.effect}


@pytest.fixture
def netsim(tmp_path):
    """A folder like the fMRI benchmark, with a truth file each."""
    folder = tmp_path / "my-fMRI-copy"
    folder.mkdir()
    for k in (1, 2, 10):
        (folder / f"timeseries{k}.csv").write_text("0,1\n0.5,0.25\n0.125,1.5\n")
        (folder / f"truth{k}.csv").write_text("0,0,1\n1,1,1\n0,1,1\n")
    return folder


class TestCommonTruth:
    def test_files_come_in_natural_order(self, tmp_path):
        for index in (0, 10, 2):
            make_structure("fork", 20, random_state=index).save(tmp_path, index)
        files = load_folder(tmp_path)
        assert [file.name for file in files] == ["data_0", "data_2", "data_10"]
        assert {file.truth_path.name for file in files} == {"truth.csv"}
        assert edges(files[0]) == {("x0", "x1"), ("x0", "x2")}
        assert files[1].load().series.n_slots == 20

    def test_the_other_name_of_data_files(self, tmp_path):
        made = make_structure("fork", 20, random_state=0).save(tmp_path)
        made.rename(tmp_path / "timeseries0.csv")
        assert [file.name for file in load_folder(str(tmp_path))] == ["timeseries0"]

    def test_edges_are_never_turned_round(self, tmp_path):
        folder = tmp_path / "fmri"  # the name alone does not make it the fMRI benchmark
        make_structure("fork", 20, random_state=0).save(folder)
        assert not load_folder(folder)[0].reverse_truth


class TestTruthEach:
    def test_each_file_has_its_own(self, netsim):
        files = load_folder(netsim)
        assert [(f.name, f.truth_path.name) for f in files] == [
            ("timeseries1", "truth1.csv"),
            ("timeseries2", "truth2.csv"),
            ("timeseries10", "truth10.csv"),
        ]
        assert files[0].load().series.names == ("0", "1")

    def test_netsim_orientation_turns_edges_round(self, netsim):
        assert all(edges(file) == {("1", "0")} for file in load_folder(netsim))

    def test_published_orientation_keeps_them(self, netsim):
        files = load_folder(netsim, orientation="as-published")
        assert all(edges(file) == {("0", "1")} for file in files)

    def test_the_rule_can_be_overruled(self, netsim):
        assert edges(load_folder(netsim, fmri=False)[0]) == {("0", "1")}
        plain = netsim.rename(netsim.with_name("plain"))
        assert edges(load_folder(plain)[0]) == {("0", "1")}
        assert edges(load_folder(plain, fmri=True)[0]) == {("1", "0")}

    def test_the_name_is_seen_from_inside(self, netsim, monkeypatch):
        monkeypatch.chdir(netsim)
        assert load_folder(".")[0].reverse_truth


class TestBadFolders:
    def test_missing_folder(self, tmp_path):
        with pytest.raises(DataError, match="nowhere does not exist; name a folder"):
            load_folder(tmp_path / "nowhere")

    def test_a_file(self, netsim):
        with pytest.raises(DataError, match=r"truth1\.csv is a file; name a folder"):
            load_folder(netsim / "truth1.csv")

    def test_no_data_files(self, tmp_path):
        (tmp_path / "truth.csv").write_text("0,0,1\n")
        with pytest.raises(DataError, match=r"expected data_\*\.csv or timeseries\*\.csv"):
            load_folder(tmp_path)

    def test_missing_truth_names_the_file(self, netsim):
        (netsim / "truth2.csv").unlink()
        with pytest.raises(
            DataError, match=r"timeseries2\.csv .*expected truth2\.csv or one truth"
        ):
            load_folder(netsim)

    def test_unknown_orientation(self, netsim):
        with pytest.raises(SettingsError, match="'sideways'; choose among netsim, as-published"):
            load_folder(netsim, orientation="sideways")
