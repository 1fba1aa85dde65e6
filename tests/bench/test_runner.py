"""The benchmark: what it runs, what it keeps, and what it does with failures."""

import csv
import json

import pytest

from causalformer.bench import BenchPlan, method_for, method_names, run_bench
from causalformer.bench import runner as runner_module
from causalformer.bench.environment import describe_environment
from causalformer.bench.result_file import COLUMNS, ResultFile, as_row
from causalformer.bench.runner import plan_jobs, run_job
from causalformer.config import PRESETS
from causalformer.datasets import make_structure
from causalformer.errors import DataError, FileFormatError, OutputError, SettingsError

TINY = {"max_epochs": 1, "window": 4, "d_model": 4, "d_ffn": 4, "n_heads": 1}


@pytest.fixture(scope="module")
def fork(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "fork"
    for index in range(2):
        make_structure("fork", 120, random_state=index).save(folder, index)
    return folder


@pytest.fixture
def counted(monkeypatch):
    """Count the jobs that are really run."""
    jobs = []

    def run(job):
        jobs.append((job.method.name, job.file.name, job.seed))
        return run_job(job)

    monkeypatch.setattr(runner_module, "run_job", run)
    return jobs


def rows_of(out):
    with (out / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# -------------------------------------------------------------------- methods


def test_paper_means_the_preset_of_the_folder():
    assert method_for("paper", "Mediator").preset == "paper-diamond-mediator"
    assert method_for("paper", "lorenz96").settings == PRESETS["paper-lorenz96"].model_dump()
    with pytest.raises(SettingsError, match=r"'weather'.*paper-fmri"):
        method_for("paper", "weather")


def test_unknown_methods_and_settings_are_named():
    with pytest.raises(SettingsError, match=r"'vra'.*self-loops, var, .*default, paper"):
        method_for("vra", "fork")
    with pytest.raises(SettingsError, match="widnow"):
        method_for("paper", "fork", {"widnow": 3})


@pytest.mark.parametrize("name", method_names())
def test_every_method_can_be_built(name):
    changed = "n_folds" if name.startswith("default") else "window"
    method = method_for(name, "fmri", {changed: "8"})
    estimator = method.build(3)
    if method.seeded:
        assert estimator.random_state == 3
    if method.preset:
        assert method.settings[changed] == 8


def test_fingerprints_tell_settings_apart_but_not_names():
    plain = method_for("paper-fmri", "fork")
    assert method_for("paper", "fmri").fingerprint == plain.fingerprint
    assert method_for("paper-fmri", "fork", {"window": 8}).fingerprint != plain.fingerprint


# -------------------------------------------------------------------- running


def test_every_file_and_seed_has_a_row_and_references_are_always_there(fork, tmp_path):
    plan = BenchPlan([fork], methods=["paper"], seeds=[0, 1], overrides=TINY)
    frame = run_bench(plan, tmp_path)
    assert tuple(frame.columns) == COLUMNS
    assert frame.groupby("method").size().to_dict() == {"self-loops": 2, "var": 2, "paper": 4}
    assert (frame["error"] == "").all()
    assert frame.loc[frame["method"] == "self-loops", "f1"].tolist() == [0.75, 0.75]
    paper = frame[frame["method"] == "paper"]
    assert paper["file"].tolist() == ["data_0", "data_0", "data_1", "data_1"]
    assert paper["epochs"].tolist() == [1] * 4
    assert (paper["seconds"] > 0).all()
    assert "| self-loops | 2 |" in (tmp_path / "table.md").read_text()
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert environment["methods"][paper["settings"].iloc[0]]["settings"]["window"] == 4


def test_a_killed_benchmark_goes_on_where_it_was(fork, tmp_path, counted):
    plan = BenchPlan([fork], methods=[])

    def killed(done, total, row):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bench(plan, tmp_path, on_result=killed)
    assert len(rows_of(tmp_path)) == 3
    counted.clear()
    run_bench(plan, tmp_path)
    assert counted == [("var", "data_1", None)]
    counted.clear()
    before = (tmp_path / "results.csv").read_bytes()
    run_bench(plan, tmp_path)
    assert counted == []
    assert (tmp_path / "results.csv").read_bytes() == before
    run_bench(plan, tmp_path, fresh=True)
    assert len(counted) == 4
    assert len(rows_of(tmp_path)) == 4


def test_rows_are_out_of_date_if_data_settings_or_version_change(tmp_path, counted, monkeypatch):
    folder, out = tmp_path / "fork", tmp_path / "out"
    make_structure("fork", 80, random_state=0).save(folder, 0)
    run_bench(BenchPlan([folder], methods=["paper"], overrides=TINY), out)
    counted.clear()
    run_bench(BenchPlan([folder], methods=["paper"], overrides={**TINY, "window": 3}), out)
    assert [job[0] for job in counted] == ["paper"]
    counted.clear()
    make_structure("fork", 80, random_state=1).save(folder, 0)
    run_bench(BenchPlan([folder], methods=[]), out)
    assert [job[0] for job in counted] == ["self-loops", "var"]
    counted.clear()
    monkeypatch.setattr(runner_module, "__version__", "99")
    run_bench(BenchPlan([folder], methods=[]), out)
    assert [job[0] for job in counted] == ["self-loops", "var"]
    assert len(rows_of(out)) == 3


def test_a_failure_is_a_row_and_is_tried_again(tmp_path, counted):
    folder, out = tmp_path / "fork", tmp_path / "out"
    for index in range(2):
        make_structure("fork", 80, random_state=index).save(folder, index)
    (folder / "data_1.csv").write_text("a,b,c\n1,2\n")
    frame = run_bench(BenchPlan([folder], methods=[]), out)
    bad = frame[frame["file"] == "data_1"]
    assert bad["error"].str.contains("data_1.csv").all()
    assert bad["f1"].isna().all()
    assert (frame.loc[frame["file"] == "data_0", "error"] == "").all()
    counted.clear()
    run_bench(BenchPlan([folder], methods=[]), out)
    assert [job[1] for job in counted] == ["data_1", "data_1"]


def test_warnings_become_part_of_the_row(tmp_path):
    folder = tmp_path / "fork"
    make_structure("fork", 80, random_state=0).save(folder, 0)
    lines = (folder / "data_0.csv").read_text().splitlines()
    flat = [lines[0], *(",".join(["5", *line.split(",")[1:]]) for line in lines[1:])]
    (folder / "data_0.csv").write_text("\n".join(flat))
    frame = run_bench(BenchPlan([folder], methods=[]), tmp_path / "out")
    assert frame["warning"].str.contains("constant column 'x0'").all()


def test_several_processes_give_the_same_rows(fork, tmp_path):
    plan = BenchPlan([fork], methods=[])
    one = run_bench(plan, tmp_path / "one").drop(columns=["seconds", "cpu_seconds", "peak_gb"])
    two = run_bench(plan, tmp_path / "two", n_jobs=2).drop(
        columns=["seconds", "cpu_seconds", "peak_gb"]
    )
    assert one.equals(two)


def test_an_interrupted_training_ends_the_benchmark_instead_of_counting(fork, monkeypatch):
    from causalformer.estimator import CausalFormer

    def interrupted(self, X, y=None):
        self.history_ = type("History", (), {"stopped": "interrupted"})()
        return self

    monkeypatch.setattr(runner_module, "warm_up", lambda: None)
    monkeypatch.setattr(CausalFormer, "fit", interrupted)
    job = plan_jobs(BenchPlan([fork], overrides=TINY))[-1]
    with pytest.raises(KeyboardInterrupt):
        run_job(job)


# -------------------------------------------------------------------- plans


def test_only_the_first_files_if_asked_for(fork):
    jobs = plan_jobs(BenchPlan([fork, fork], methods=[], max_files=1))
    assert [(job.method.name, job.file.name) for job in jobs] == [
        ("self-loops", "data_0"),
        ("var", "data_0"),
    ]


def test_the_orientation_is_told_apart_for_fmri_only(fork, tmp_path, counted):
    folder = tmp_path / "fmri"
    folder.mkdir()
    (folder / "timeseries1.csv").write_bytes((fork / "data_0.csv").read_bytes())
    (folder / "truth1.csv").write_text("0,1,1\n")
    plans = [
        BenchPlan([folder, fork], methods=[], orientation=o) for o in ("netsim", "as-published")
    ]
    labels = [{(j.folder, j.file.orientation) for j in plan_jobs(plan)} for plan in plans]
    assert labels == [{("fmri", "netsim"), ("fork", "")}, {("fmri", "as-published"), ("fork", "")}]
    for plan in plans:
        frame = run_bench(plan, tmp_path / "out")
    assert set(frame["orientation"]) == {"", "netsim", "as-published"}
    counted.clear()
    both = BenchPlan([folder, fork], methods=[], orientation="both")
    again = run_bench(both, tmp_path / "both")
    assert len(counted) == 2 + 4  # one fit for two truths
    assert again.drop(columns=["seconds", "cpu_seconds", "peak_gb"]).equals(
        frame.drop(columns=["seconds", "cpu_seconds", "peak_gb"])
    )


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"methods": ["nonsense"]}, SettingsError, "nonsense"),
        ({"seeds": []}, SettingsError, "seeds"),
        ({"seeds": [-1]}, SettingsError, "seeds"),
        ({"max_files": 0}, SettingsError, "files"),
        ({"overrides": {"window": "long"}}, SettingsError, "window"),
        ({"folders": ["no-such-folder"]}, DataError, "no-such-folder"),
    ],
)
def test_a_plan_that_cannot_be_run_leaves_nothing_behind(fork, tmp_path, change, error, named):
    options = {"folders": [fork], **change}
    with pytest.raises(error, match=named):
        run_bench(BenchPlan(**options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_of_one_name_are_refused(fork, tmp_path):
    twin = tmp_path / "fork"
    make_structure("fork", 30, random_state=0).save(twin)
    with pytest.raises(SettingsError, match="different names"):
        plan_jobs(BenchPlan([fork, twin]))
    with pytest.raises(SettingsError, match="n_jobs"):
        run_bench(BenchPlan([fork]), tmp_path, n_jobs=0)


def test_an_output_folder_that_cannot_be_written_is_found_before_any_job(fork, tmp_path, counted):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        run_bench(BenchPlan([fork]), tmp_path / "file" / "out")
    assert counted == []


# -------------------------------------------------------------------- files


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", ",".join(COLUMNS) + "\nfork\n", "\xff"])
def test_a_foreign_results_file_is_refused(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(FileFormatError, match=r"results\.csv"):
        ResultFile(path)
    assert path.read_text(encoding="latin-1") == text


def test_rows_come_back_exactly_and_in_natural_order(tmp_path):
    file = ResultFile(tmp_path / "results.csv")
    common = {
        "folder": "fork",
        "method": "var",
        "f1": 0.1 + 0.2,
        "error": "",
        "warning": 'a "b", c',
    }
    for name in ("data_10", "data_2"):
        file.add(as_row({**common, "file": name}))
    again = ResultFile(tmp_path / "results.csv").frame()
    assert again["file"].tolist() == ["data_2", "data_10"]
    assert again["f1"].tolist() == [0.1 + 0.2] * 2
    assert again["warning"].tolist() == ['a "b", c'] * 2


def test_the_environment_names_versions_but_no_machine():
    import platform

    facts = json.dumps(describe_environment(["bench"], seeds=[1]))
    assert "torch" in facts
    assert platform.node() not in facts or not platform.node()
