"""The command line: what it prints and writes, its exit codes, and how it refuses bad input."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from causalformer import CausalFormer, __version__
from causalformer.cli import app, main
from causalformer.config import PRESETS
from causalformer.datasets import make_structure
from causalformer.graph import CausalGraph
from graph_examples import DOUBT, HOSTILE
from waiting import PATIENCE, wait_until

TINY = [
    *("--preset", "paper-fmri"),
    *("--set", "max_epochs=2", "--set", "window=4", "--set", "d_model=8"),
    *("--set", "d_ffn=32", "--set", "n_heads=2"),
]
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1"}
RESULTS = {
    *("graph.json", "edges.csv", "graph.graphml", "graph.dot", "graph.png"),
    *("scores.csv", "run.json", "report.html"),
}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def run_process(*words):
    command = [sys.executable, "-m", "causalformer", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ONE_CORE)


@pytest.fixture
def data(tmp_path):
    """A good file of three series."""
    return make_structure("fork", 80, random_state=0).save(tmp_path / "data")


def names_in(folder):
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


# -------------------------------------------------------------------- in processes of their own


def test_help_and_version_come_without_loading_torch():
    code = (
        "import sys; sys.argv[1:] = {words}\n"
        "import causalformer.cli\n"
        "try: causalformer.cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {{'torch', 'pandas', 'sklearn', 'matplotlib'}} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    for words, expected in ((["--help"], "discover"), (["--version"], __version__)):
        command = [sys.executable, "-c", code.format(words=words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


def test_discover_as_a_user_runs_it(data, tmp_path):
    out = tmp_path / "results"
    done = run_process("discover", data, *TINY, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "→" in done.stdout
    assert "depend on the seed" in " ".join(done.stdout.split())
    assert names_in(out) == RESULTS
    assert CausalGraph.load(out / "graph.json").names == ("x0", "x1", "x2")


def test_an_error_as_a_user_sees_it(tmp_path):
    done = run_process("discover", tmp_path / "missing.csv")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "missing.csv" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_the_best_model_so_far(data, tmp_path):
    out = tmp_path / "results"
    endless = ["--set", "max_epochs=1000000", "--set", "patience=1000000"]
    command = [sys.executable, "-m", "causalformer", "discover", str(data), *TINY, *endless]
    process = subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ONE_CORE,
    )
    checkpoint = out / "checkpoint.safetensors"  # shows that training is well under way
    try:
        wait_until(lambda: checkpoint.exists() or process.poll() is not None, "a checkpoint")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, stderr
    assert "note: training was stopped; the best model so far" in stderr
    assert "Traceback" not in stderr
    assert "ended by interrupted" in stdout
    assert names_in(out) == RESULTS
    assert json.loads((out / "run.json").read_text())["training"]["stopped"] == "interrupted"


# -------------------------------------------------------------------- discover


def test_discover_prints_a_table_and_writes_nothing_without_out(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("discover", data, *TINY)
    assert done.exit_code == 0
    assert "lag" in done.stdout
    assert names_in(tmp_path) == {"data"}


def test_discover_json_prints_only_the_graph(data):
    done = run("discover", data, *TINY, "--json", "--seed", 3)
    graph = CausalGraph.from_json(done.stdout)
    assert graph.metadata["random_state"] == 3
    assert graph.metadata["settings"]["window"] == 4
    assert done.stderr == ""
    assert run("discover", data, *TINY, "--json", "--seed", 3).stdout == done.stdout


def test_discover_quietly_writes_everything(data, tmp_path):
    out = tmp_path / "deep" / "results"
    done = run("discover", data, *TINY, "--out", out, "--quiet", "--save-model")
    assert (done.exit_code, done.output) == (0, "")
    assert names_in(out) == {*RESULTS, "model"}
    facts = json.loads((out / "run.json").read_text())
    assert facts["settings"]["max_epochs"] == 2
    assert facts["training"]["epochs"] == 2
    assert (facts["n_series"], facts["n_slots"], facts["seed"]) == (3, 80, 0)
    from causalformer import CausalFormer

    assert CausalFormer.load(out / "model").graph_ == CausalGraph.load(out / "graph.json")


def test_results_of_an_earlier_run_are_replaced(data, tmp_path):
    run("discover", data, *TINY, "--out", tmp_path / "r", "--quiet")
    run("discover", data, *TINY, "--out", tmp_path / "r", "--quiet", "--seed", 1)
    assert json.loads((tmp_path / "r" / "run.json").read_text())["seed"] == 1
    assert names_in(tmp_path / "r") == RESULTS


def test_a_checkpoint_is_used_only_if_asked_for(data, tmp_path):
    from causalformer import CausalFormer
    from causalformer.training import CheckpointFile

    out = tmp_path / "results"
    checkpoint = out / "checkpoint.safetensors"
    done = run("discover", data, *TINY, "--out", out, "--resume")
    assert "note: there is no checkpoint" in done.stderr
    assert not checkpoint.exists()
    # a run that was killed after its first epoch
    settings = {key: int(value) for key, value in (pair.split("=") for pair in TINY[3::2])}
    every_epoch = CheckpointFile.__dataclass_fields__["every_seconds"].default
    assert every_epoch > 0
    model = CausalFormer("paper-fmri", settings=settings, checkpoint=checkpoint)
    original = CausalFormer._checkpoint_file

    def eager(self, *args):
        made = original(self, *args)
        return CheckpointFile(made.path, made.fingerprint, every_seconds=0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CausalFormer, "_checkpoint_file", eager)
        model.fit(data)
    assert checkpoint.exists()
    content = checkpoint.read_bytes()
    resumed = run("discover", data, *TINY, "--out", out, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert resumed.stderr == ""
    checkpoint.write_bytes(content)
    other = run("discover", data, *TINY, "--out", out, "--resume", "--seed", 5)
    assert other.exit_code == 2
    assert "checkpoint" in other.stderr
    assert checkpoint.exists()
    fresh = run("discover", data, *TINY, "--out", out)
    assert "note: an earlier run's checkpoint was deleted" in fresh.stderr
    assert not checkpoint.exists()


def test_a_graph_without_edges_is_said_to_have_none(data, monkeypatch):
    monkeypatch.setattr(
        "causalformer.paper.select_by_clusters",
        lambda scores, *_: np.zeros_like(scores, dtype=bool),
    )
    done = run("discover", data, *TINY)
    assert done.exit_code == 0
    assert "No edge was found." in done.stdout


# -------------------------------------------------------------------- discover, by default

QUICK = ["--set", "max_epochs=3", "--set", "n_channels=4"]


@pytest.fixture
def long_data(tmp_path):
    """Three series that are long enough to be used without a warning."""
    return make_structure("fork", 200, random_state=0).save(tmp_path / "long")


def test_discover_without_a_preset_prints_q_values_and_writes_results(long_data, tmp_path):
    out = tmp_path / "results"
    done = run("discover", long_data, *QUICK, "--out", out)
    assert (done.exit_code, done.stderr) == (0, "")
    header = next(line for line in done.stdout.splitlines() if "lag" in line)
    assert {"q", "strength"} <= set(header.split())
    assert "At most 5% of the edges should be false" in done.stdout
    assert "epochs in" in done.stdout
    assert names_in(out) == RESULTS
    graph = CausalGraph.load(out / "graph.json")
    assert len(graph) > 0
    assert all(0 <= edge.q_value <= 0.05 for edge in graph)
    assert "q_value" in (out / "edges.csv").read_text().splitlines()[0]
    facts = json.loads((out / "run.json").read_text())
    assert (facts["preset"], facts["training"]["epochs"]) == ("default", 3)


def test_discover_tells_hidden_drivers_and_what_was_accounted_for(long_data, tmp_path, monkeypatch):
    fit = CausalFormer.fit

    def doubt(model, table):
        fit(model, table)
        edges = tuple(replace(edge, may_be_confounded=DOUBT) for edge in model.graph_)
        terms = ["a season of 24 slots in x0, x1", "a trend in x\x1b2"]
        about = {**model.graph_.metadata, "time_terms": terms}
        model.graph_ = CausalGraph(model.names_, edges, about)
        return model

    monkeypatch.setattr(CausalFormer, "fit", doubt)
    monkeypatch.setattr("causalformer.cli.fitting._FOOTNOTES", 1)
    done = run("discover", long_data, *QUICK, "--out", tmp_path / "results")
    assert (done.exit_code, done.stderr) == (0, "")
    graph = CausalGraph.load(tmp_path / "results" / "graph.json")
    said = " ".join(done.stdout.split())
    assert said.count(f"{graph.edges[0].arrow} *") == 1
    assert "* may come from a hidden common driver" in said
    assert f"* {graph.edges[0].arrow} (lag {graph.edges[0].lag}): {DOUBT}" in said
    assert f"… and {len(graph) - 1} more" in said
    assert r"Accounted for: a season of 24 slots in x0, x1; a trend in x\x1b2." in said
    rows = csv.DictReader(StringIO((tmp_path / "results" / "edges.csv").read_text()))
    assert {row["may_be_confounded"] for row in rows} == {DOUBT}


def test_options_of_the_default_method_reach_it(long_data, tmp_path):
    options = ["--max-lag", "auto", "--alpha", 0.2, "--stability", 2, "--instantaneous", "yes"]
    options += ["--season", "12,24"]
    done = run("discover", long_data, *QUICK, *options, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    graph = CausalGraph.from_json(done.stdout)
    chosen = {name: graph.metadata[name] for name in ("max_lag", "alpha", "instantaneous")}
    assert chosen == {"max_lag": "auto", "alpha": 0.2, "instantaneous": True}
    assert graph.metadata["season"] == [12, 24]
    assert "best BIC" in graph.metadata["max_lag_reason"]
    assert all(0 <= edge.frequency <= 1 for edge in graph if edge.lag > 0)
    longer = run("discover", long_data, *QUICK, "--max-lag", 7, "--json")
    assert CausalGraph.from_json(longer.stdout).metadata["max_lag_used"] == 7


def test_edges_within_a_slot_can_be_declined(tmp_path):
    noise = np.random.default_rng(0).laplace(size=(300, 2))
    noise[:, 1] += noise[:, 0]
    path = tmp_path / "within.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in noise.tolist()))

    def lags(*options):
        done = run("discover", path, *QUICK, "--json", "--quiet", *options)
        graph = CausalGraph.from_json(done.stdout)
        return [edge.lag for edge in graph if edge.cause != edge.effect]

    assert lags() == [0]
    assert lags("--instantaneous", "yes") == [0]
    assert lags("--instantaneous", "no") == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--alpha", "2"], "alpha is 2.0"),
        (["--alpha", "nan"], "alpha is nan"),
        (["--max-lag", "often"], "max_lag is 'often'"),
        (["--max-lag", "0"], "max_lag is 0"),
        (["--max-lag", "-3"], "max_lag is '-3'"),
        (["--n-jobs", "0"], "n_jobs is 0"),
        (["--set", "window=8"], "unknown setting 'window'"),
        (["--set", "n_chanels=8"], "did you mean 'n_channels'?"),
        (["--set", "n_folds=1"], "n_folds"),
    ],
)
def test_bad_options_of_the_default_method_are_refused_in_one_line(data, tmp_path, options, named):
    done = run("discover", data, *options, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_an_unknown_choice_of_instantaneous_is_refused(data):
    done = run("discover", data, "--instantaneous", "maybe")
    assert done.exit_code == 2
    assert "--instantaneous" in done.stderr


def test_short_series_are_warned_of_in_one_line_each(data):
    done = run("discover", data, *QUICK)
    assert done.exit_code == 0
    said = done.stderr.splitlines()
    assert said[0].startswith("warning: 80 slots are few")
    assert all(line.startswith("warning: ") for line in said)
    assert run("discover", data, *QUICK, "--quiet").output == ""


def test_too_few_rows_for_the_default_method(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("a,b\n" + "".join(f"{i % 5},{i * 7 % 11}\n" for i in range(12)))
    done = run("discover", path)
    assert done.exit_code == 2
    assert "short.csv has 12 rows" in done.stderr
    assert "window" not in done.stderr


def test_time_column_and_header_reach_the_reader(tmp_path):
    values = np.random.default_rng(0).standard_normal((60, 2))
    path = tmp_path / "plain.csv"
    path.write_text("".join(f"{i},{a},{b}\n" for i, (a, b) in enumerate(values)))
    read = lambda *options: run("discover", path, *TINY, "--json", *options)  # noqa: E731
    assert len(json.loads(read("--no-header", "--time-column", "none").stdout)["names"]) == 3
    assert len(json.loads(read("--no-header", "--time-column", "0").stdout)["names"]) == 2
    wrong = read("--time-column", "when")
    assert wrong.exit_code == 2
    assert "'when'" in wrong.stderr


def test_names_that_look_like_markup_are_printed_literally(data, tmp_path):
    text = data.read_text().replace("x0,x1", "[red]a,[/b]", 1)
    path = tmp_path / "markup.csv"
    path.write_text(text)
    done = run("discover", path, *TINY, "--set", "n_clusters=3", "--set", "top_clusters=2")
    assert done.exit_code == 0
    assert "[red]a" in done.stdout
    flat = tmp_path / "flat.csv"
    flat.write_text("[red]a,b\n" + "".join(f"1,{i % 7}\n" for i in range(60)))
    assert "constant column '[red]a'" in run("discover", flat, *TINY).stderr


# -------------------------------------------------------------------- bad input

GOOD = [f"{i % 5},{(i * 7) % 11},{(i * 3) % 13}" for i in range(60)]
BAD_FILES = {
    "empty": ("", "bad.csv"),
    "one row": ("a,b,c\n1,2,3\n", "one row"),
    "one column": ("a\n" + "1\n2\n4\n" * 20, "'a'"),
    "fewer rows than the window": ("a,b\n" + "1,2\n3,5\n2,2\n", "`window`"),
    "no value": ("a,b,c\n" + "1,,3\n2,,5\n4,,1\n" * 20, "'b' has no value at all"),
    "inf": ("\n".join(["a,b,c", *GOOD, "1,2,inf"]), "'c' is infinite in row 61"),
    "text": ("\n".join(["a,b,c", *GOOD, "1,warm,3"]), "'b' holds text: 'warm'"),
    "duplicate names": ("\n".join(["a,b,a", *GOOD]), "'a' (columns 1, 3)"),
    "ragged": ("\n".join(["a,b,c", *GOOD, "1,2"]), "line 62"),
}


@pytest.mark.parametrize(("text", "named"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_refused_by_name_and_leave_nothing(tmp_path, text, named):
    path, out = tmp_path / "bad.csv", tmp_path / "out"
    path.write_text(text)
    done = run("discover", path, *TINY, "--out", out)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--preset", "paper-mri"], "unknown preset 'paper-mri'; did you mean 'paper-fmri'?"),
        (
            ["--preset", "paper-fmri", "--set", "top_clusters=2"],
            "top_clusters (m = 2) must be smaller than n_clusters",
        ),
        (
            ["--preset", "paper-fmri", "--set", "widnow=3"],
            "unknown setting 'widnow'; did you mean 'window'?",
        ),
        (["--set", "window=long"], "window"),
        (["--set", "window"], "KEY=VALUE"),
        (["--seed", "-1"], "--seed"),
        (["--device", "abacus"], "there is no device 'abacus'; choose 'auto' or"),
        (["--device", "cuda:77"], "as --device"),
        ([*TINY, "--max-lag", "4"], "the preset 'paper-fmri' has no --max-lag; leave it"),
        ([*TINY, "--alpha", "0.01", "--stability", "3"], "no --alpha, --stability; leave it"),
        (["--season", "weekly"], "season is 'weekly'; choose 'auto', 'none', a number of slots"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_bad_options_are_refused_by_name_and_leave_nothing(data, tmp_path, options, named):
    done = run("discover", data, *options, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert named in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--resume", "--save-model"])
def test_options_that_need_a_folder_say_so(data, option):
    done = run("discover", data, option)
    assert done.exit_code == 2
    assert f"{option} needs a folder" in done.stderr


def test_an_unwritable_output_folder_is_found_before_training(data, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("trained")

    monkeypatch.setattr("causalformer.cli.fitting._fit", never)
    (tmp_path / "file").write_text("in the way")
    done = run("discover", data, *TINY, "--out", tmp_path / "file" / "out")
    assert done.exit_code == 2
    assert "error: cannot write into the output folder" in done.stderr
    if os.name != "nt" and os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert run("discover", data, *TINY, "--out", locked / "out").exit_code == 2


def test_a_failure_while_writing_leaves_the_old_results(data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run("discover", data, *TINY, "--out", out, "--quiet")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    save = CausalGraph.save

    def full_disk(self, path):
        if str(path).endswith(".png"):
            raise OSError(28, "No space left on device")
        return save(self, path)

    monkeypatch.setattr(CausalGraph, "save", full_disk)
    done = run("discover", data, *TINY, "--out", out, "--seed", 1)
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    assert after.pop("checkpoint.safetensors")  # the run can go on
    assert after == before


def test_a_constant_column_is_a_warning_in_one_line(tmp_path):
    path = tmp_path / "flat.csv"
    path.write_text("\n".join(["a,flat", *(f"{i % 5},2" for i in range(60))]))
    done = run("discover", path, *TINY)
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: ")
    assert "constant column 'flat'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert run("discover", path, *TINY, "--quiet").output == ""


def test_unexpected_errors_point_to_debug(monkeypatch, capsys):
    def broken(**_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("causalformer.cli.program.app", broken)
    monkeypatch.setattr(sys, "argv", ["causalformer", "presets"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "error: unexpected ZeroDivisionError: by zero" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["causalformer", "--debug", "presets"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_debug_shows_where_an_error_came_from(tmp_path):
    done = run("--debug", "discover", tmp_path / "missing.csv")
    assert done.exit_code == 2
    assert "Traceback" in done.stderr
    assert "error: " in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--colour"], "No such option: --colour"),
        (["discver"], "Did you mean 'discover'? (see causalformer --help)"),
        (["discover"], "Missing argument"),
        (["discover", "x.csv", "--require"], "requires an argument"),
        (["discover", "x.csv", "--seed", "-1"], "--seed"),
        (["discover", "x.csv", "--device", "a\nb"], "--device"),
        (["datasets", "make"], "(see causalformer datasets make --help)"),
        (["discover", "~nobody/x.csv"], "does not exist"),
    ],
)
def test_wrong_usage_takes_one_line(words, said):
    done = CliRunner().invoke(app, words, prog_name="causalformer")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_an_error_right_after_reading_ends_the_process_in_order(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("a,a\n" + "1,2\n2,1\n" * 20)
    command = [sys.executable, "-m", "causalformer", "discover", str(path)]
    ends = [subprocess.run(command, capture_output=True, check=False) for _ in range(5)]
    assert [end.returncode for end in ends] == [2] * 5
    assert {end.stderr.count(b"\n") for end in ends} == {1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,place\n1,north\n2,south\n", "or choose --time-column 'place' if it is the time"),
        ("a,place\n1,north\n2,south\n", "--group 'place' if it says which recording"),
        ("date,a\n2024-01-02,1\n2024-01-01,2\n", "or choose --time-column none and drop"),
        ("time,a\n2,1\n1,2\n", "choose --time-column none if it is not"),
        ("0,1\n5,6\n", "choose --header if it holds names"),
        ("1.5,abc\n1,2\n3,4\n", "choose --no-header if it is data"),
    ],
)
def test_messages_name_options_where_python_has_keywords(tmp_path, text, said):
    path = tmp_path / "some.csv"
    path.write_text(text)
    done = run("discover", path)
    assert done.exit_code == 2
    assert said in done.stderr


def test_an_endless_name_does_not_flood_the_terminal(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a," + "b" * 100_000 + "\n1,north\n")
    done = run("discover", path)
    assert done.exit_code == 2
    assert len(done.stderr) < 2500


@pytest.mark.skipif(sys.platform != "linux", reason="file names that are no UTF-8")
def test_file_names_that_are_no_text(data, tmp_path):
    path, out = tmp_path / os.fsdecode(b"\xff.csv"), tmp_path / os.fsdecode(b"out\xff")
    path.write_bytes(data.read_bytes())
    done = run("discover", path, *TINY, "--out", out)
    assert done.exit_code == 0, done.output
    assert json.loads((out / "run.json").read_text())["source"] == str(path)


def test_hostile_names_pass_unharmed_through_every_result(tmp_path):
    from causalformer import CausalFormer
    from causalformer.results import read_scores

    odd = ("../../etc/passwd", "/root", "NUL", "=cmd()", "n" * 5000, "<b>", "😀", "a\rb", "a\nb")
    names = (*(name for name in HOSTILE if name), *odd)
    values = np.random.default_rng(0).standard_normal((40, len(names)))
    path, out = tmp_path / "odd.parquet", tmp_path / "out"
    pd.DataFrame(values, columns=names).to_parquet(path)
    done = run("discover", path, *TINY, "--out", out, "--save-model")
    assert done.exit_code == 0, done.output
    graph = CausalGraph.load(out / "graph.json")
    assert graph.names == names
    assert CausalFormer.load(out / "model").graph_ == graph
    assert json.loads((out / "run.json").read_text())["names"] == list(names)
    assert read_scores(out / "scores.csv", names).shape == (len(names), len(names))
    with (out / "edges.csv").open(newline="") as file:
        edges = list(csv.DictReader(file))
    assert [(e["cause"], e["effect"]) for e in edges] == [(e.cause, e.effect) for e in graph]
    assert names_in(out) == {*RESULTS, "model"}


def test_what_a_killed_run_left_half_written_is_removed(data, tmp_path):
    out = tmp_path / "out"
    (out / ".unfinished-1" / "deep").mkdir(parents=True)
    (out / ".checkpoint.safetensors.unfinished-2.safetensors").touch()
    run("discover", data, *TINY, "--out", out)
    assert names_in(out) == RESULTS


# -------------------------------------------------------------------- the other commands


def test_evaluate_prints_every_measure(data, tmp_path):
    out, truth = tmp_path / "out", data.with_name("truth.csv")
    run("discover", data, *TINY, "--out", out, "--quiet")
    graph, scores = out / "graph.json", out / "scores.csv"
    figures = json.loads(run("evaluate", graph, truth, "--json").stdout)
    assert figures["n_true"] == 5
    assert figures["auroc"] is None
    scored = json.loads(run("evaluate", graph, truth, "--scores", scores, "--json").stdout)
    assert 0 <= scored["auroc"] <= 1
    assert all(name in run("evaluate", graph, truth).stdout for name in figures)
    backwards = json.loads(run("evaluate", graph, truth, "--reverse", "--json").stdout)
    assert backwards["n_true"] == 5


@pytest.mark.parametrize(
    ("truth", "named"),
    [
        ("0,1\n", "truth.csv, line 1"),
        ("0,9,1\n", "9"),
        ("a,b,c\n1,2,3\n", "truth.csv"),
        ("", "empty"),
    ],
)
def test_a_wrong_truth_file_is_refused_by_name(tmp_path, truth, named):
    graph = CausalGraph(("a", "b")).save(tmp_path / "graph.json")
    path = tmp_path / "truth.csv"
    path.write_text(truth)
    done = run("evaluate", graph, path)
    assert done.exit_code == 2
    assert named in done.stderr


def test_evaluate_refuses_what_is_no_graph_and_no_scores(tmp_path):
    graph, other = CausalGraph(("a", "b")).save(tmp_path / "graph.json"), tmp_path / "other.json"
    other.write_text("{}")
    (tmp_path / "truth.csv").write_text("0,1,1\n")
    done = run("evaluate", other, tmp_path / "truth.csv")
    assert done.exit_code == 2
    assert "not a causal graph" in done.stderr
    for text in ("", "cause,a\na,1\n", "cause,a,b\na,1\nb,1,2\n", "cause,a,b\na,1,x\nb,1,2\n"):
        (tmp_path / "scores.csv").write_text(text)
        done = run("evaluate", graph, tmp_path / "truth.csv", "--scores", tmp_path / "scores.csv")
        assert done.exit_code == 2
        assert "scores.csv" in done.stderr


def test_datasets_make_writes_what_bench_reads(tmp_path):
    from causalformer.datasets import load_folder

    assert "lorenz96" in run("datasets", "list").stdout
    made = run(
        "datasets", "make", "fork", "--out", tmp_path / "fork", "--n-slots", 90, "--count", 2
    )
    assert made.exit_code == 0
    assert names_in(tmp_path / "fork") == {"data_0.csv", "data_1.csv", "truth.csv"}
    again = run("datasets", "make", "fork", "--out", tmp_path / "fork")
    assert again.exit_code == 2
    assert "--force" in again.stderr
    forced = run("datasets", "make", "fork", "--out", tmp_path / "fork", "--force", "--quiet")
    assert (forced.exit_code, forced.output) == (0, "")
    # random systems have a truth each
    options = ["--set", "n_series=4", "--set", "density=0.5", "--n-slots", 50, "--count", 3]
    run("datasets", "make", "var", "--out", tmp_path / "var", *options)
    files = load_folder(tmp_path / "var")
    assert [file.truth_path.name for file in files] == ["truth0.csv", "truth1.csv", "truth2.csv"]
    assert files[0].load().series.n_series == 4


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["forc"], "'forc'"),
        (["fork", "--set", "sides=3"], "'sides'"),
        (["lorenz96", "--set", "n_series=many"], "lorenz96"),
        (["lorenz96", "--set", "n_series=2"], "n_series"),
    ],
)
def test_datasets_make_names_what_is_wrong(tmp_path, words, named):
    done = run("datasets", "make", *words, "--out", tmp_path / "x")
    assert done.exit_code == 2
    assert named in done.stderr
    assert not (tmp_path / "x").exists()


def test_bench_writes_a_table_with_the_reference_rows(tmp_path):
    run("datasets", "make", "fork", "--out", tmp_path / "fork", "--n-slots", 80, "--count", 2)
    options = ["--methods", "paper", *TINY[2:], "--seed", "0,1", "--files", 1]
    done = run("bench", tmp_path / "fork", *options, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "4 of 4: fork/data_0 paper" in done.stderr
    assert "sample standard deviation" in done.stdout
    assert names_in(tmp_path / "out") == {
        *("results.csv", "results.parquet", "table.md", "environment.json", "graphs"),
        *("methods.md", "methods.tex", "comparison.md", "f1-against-time.png", "heat-map.png"),
    }
    table = (tmp_path / "out" / "table.md").read_text()
    assert all(f"| {name} | 1 |" in table for name in ("self-loops", "var", "paper"))
    again = run("bench", tmp_path / "fork", *options, "--out", tmp_path / "out", "--json")
    assert again.stderr == ""
    assert [row["method"] for row in json.loads(again.stdout)] == ["self-loops", "var", "paper"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "--suite"),
        (["fork", "--suite", "paper"], "not both"),
        (["--suite", "paper"], "--data"),
        (["--suite", "paper", "--data", "nowhere"], "nowhere"),
        (["--suite", "sst"], "--data"),
        (["--suite", "generated", "--methods", "nonsense"], "nonsense"),
    ],
)
def test_bench_names_what_is_wrong_with_a_suite(tmp_path, words, named):
    done = run("bench", *words, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert named in done.stderr
    assert not (tmp_path / "out").exists()


def test_bench_runs_a_suite_that_is_drawn(tmp_path):
    words = ["--suite", "scaling", "--quick", "--methods", "var", "--out", tmp_path]
    done = run("bench", *words)
    assert done.exit_code == 0, done.output
    assert "| var |" in (tmp_path / "scaling.md").read_text()


def test_bench_reports_failures_and_goes_on(tmp_path):
    run("datasets", "make", "fork", "--out", tmp_path / "fork", "--n-slots", 80, "--count", 2)
    (tmp_path / "fork" / "data_0.csv").write_text("a,b,c\n")
    done = run("bench", tmp_path / "fork", "--methods", "var", "--out", tmp_path / "out", "-q")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "warning: 2 jobs failed" in done.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--methods", "magic"], "'magic'"),
        (["--seed", "one"], "--seed one"),
        (["--files", "0"], "--files"),
        (["--n-jobs", "0"], "n_jobs"),
        (["--orientation", "north"], "--orientation"),
        (["--methods", "paper"], "no paper preset belongs to the folder 'mine'"),
    ],
)
def test_bench_names_what_is_wrong(tmp_path, options, named):
    run("datasets", "make", "fork", "--out", tmp_path / "mine", "--n-slots", 30)
    done = run("bench", tmp_path / "mine", *options, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert named in done.stderr
    assert not (tmp_path / "out").exists()


def test_presets_lists_every_setting():
    assert json.loads(run("presets", "--json").stdout) == {
        name: settings.model_dump() for name, settings in PRESETS.items()
    }
    assert "temperature" in run("presets").stdout


def test_demo_judges_itself_by_the_truth(tmp_path):
    done = run("demo", "--out", tmp_path / "demo")
    assert done.exit_code == 0, done.output
    assert "self-loops only" in done.stdout
    assert "causalformer discover" in done.stdout
    assert names_in(tmp_path / "demo") == RESULTS


# -------------------------------------------------------------------- progress


def epochs(*losses):
    from causalformer.training import Epoch

    best = np.minimum.accumulate(losses)
    return [
        Epoch(number, loss, loss, 2.0, bool(loss == best[number]))
        for number, loss in enumerate(losses)
    ]


def test_progress_shows_epoch_losses_and_time_left():
    from causalformer.progress import TrainingProgress

    stream = StringIO()
    with TrainingProgress(12, Console(file=stream, force_terminal=True, width=200)) as progress:
        for epoch in epochs(0.5, 0.25, 0.75):
            progress(epoch)
    shown = stream.getvalue()
    for text in ("epoch 3 of 12", "validation loss 0.75", "best 0.25", "≤ 18 s left"):
        assert text in shown


def test_progress_is_silent_without_a_terminal():
    from causalformer.progress import TrainingProgress

    stream = StringIO()
    with TrainingProgress(3, Console(file=stream)) as progress:
        for epoch in epochs(0.5, 0.25):
            progress(epoch)
    assert stream.getvalue() == ""


def test_each_recording_is_fitted_on_its_own_and_shown(tmp_path):
    frame = pd.concat(
        pd.DataFrame(
            make_structure("fork", 80, random_state=i).series.values, columns=list("abc")
        ).assign(subject=f"s{i}")
        for i in range(3)
    )
    frame.to_csv(tmp_path / "long.csv", index=False)
    quick = ["--set", "max_epochs=2", "--set", "n_channels=4", "--max-lag", "1"]
    out = tmp_path / "out"
    words = ("discover", tmp_path / "long.csv", "--group", "subject", "--each", "--out", out)
    result = run(*words, *quick)  # with its progress bar
    assert result.exit_code == 0, result.output
    assert "of 3 recordings on their own" in result.output
    assert {"agreement.csv", "recordings.json"} <= names_in(out)
    assert set(json.loads((out / "recordings.json").read_text())["graphs"]) == {"s0", "s1", "s2"}
    alone = run("discover", tmp_path / "long.csv", "--each", "--time-column", "none", *quick)
    assert alone.exit_code == 2
