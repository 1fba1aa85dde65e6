"""The scale benchmark: what it measures, how it goes on, and what its tables say."""

from dataclasses import replace

import numpy as np
import pytest

from causalformer.bench import scale, scale_jobs
from causalformer.bench.figures import save_figure
from causalformer.bench.processes import Measured
from causalformer.bench.result_file import as_row, results_frame
from causalformer.bench.scale import run_scale
from causalformer.bench.scale_jobs import (
    GROWTH_IN_N,
    GROWTH_IN_T,
    PARTS,
    WITHOUT_SCREENING,
    Store,
    folder_name,
    jobs_on,
    method_named,
    prepared_fit,
    system,
)
from causalformer.bench.scale_tables import growth_figure, missed_limits, scale_markdown
from causalformer.datasets import make_random_system, make_structure
from causalformer.errors import DataError


@pytest.fixture
def measurements(monkeypatch):
    """Stand in for new processes: a fixed clock, and a list of what was measured."""
    made = []

    def measured(prepare, method, seed, data, *, time_limit):
        made.append((method.name, time_limit))
        if method.name == "pcmci":
            return Measured(seconds=time_limit, peak_gb=0.5, stopped=True)
        if method.name == "var-ridge":
            return Measured(peak_gb=0.5, error=f"DataError: {data.path} is short")
        value = prepare(method, seed, data)()
        return Measured(value, seconds=20.0, cpu_seconds=30.0, peak_gb=0.5)

    monkeypatch.setattr(scale_jobs, "measured", measured)
    return made


def tiny(*methods):
    return jobs_on([system("nonlinear", 5, 120)], methods)


def test_a_job_is_measured_in_a_process_of_its_own(tmp_path):
    results = run_scale(tiny("var"), tmp_path, time_limit=600).frame()
    (row,) = results.to_dict("records")
    assert (row["n_series"], row["n_slots"], row["error"], row["stopped"]) == (5, 120, "", "")
    assert row["folder"] == "nonlinear, N = 5, T = 120"
    assert 0 <= row["off_diagonal_f1"] <= row["f1"] <= 1
    assert min(row["seconds"], row["cpu_seconds"], row["peak_gb"]) > 0


def test_finished_and_stopped_jobs_are_kept_and_failures_tried_again(tmp_path, measurements):
    jobs = tiny("self-loops", "pcmci", "var-ridge")
    run_scale([*jobs, *jobs], tmp_path, time_limit=600)
    assert measurements == [("self-loops", 600), ("pcmci", 600), ("var-ridge", 600)]
    measurements.clear()
    results = run_scale(jobs, tmp_path, time_limit=300).frame()
    assert [name for name, _ in measurements] == ["var-ridge"]
    assert sorted(results["stopped"]) == ["", "", "after 600 s"]
    assert "DataError: system_0 is short" in results["error"].tolist()
    measurements.clear()
    run_scale(jobs, tmp_path, time_limit=300, fresh=True)
    assert len(measurements) == 3


def test_linear_rivals_have_ten_times_the_seconds_of_the_default(tmp_path, measurements):
    quick = {"max_epochs": 1, "n_channels": 2}
    default, *others = tiny("default", "var-lasso", "self-loops")
    method = replace(default.method, settings={**default.method.settings, **quick})
    run_scale([replace(default, method=method), *others], tmp_path, time_limit=3600)
    assert measurements == [("default", 3600), ("var-lasso", 200.0), ("self-loops", 3600)]


def test_the_default_has_two_processes_and_screening_can_be_left_out():
    assert method_named("default").options["n_jobs"] == 2
    plain, whole = method_named("default"), method_named(WITHOUT_SCREENING)
    assert {**plain.settings, "screen_above": 100_000} == dict(whole.settings)
    assert whole.name == WITHOUT_SCREENING
    assert method_named("cmlp").options == {}


def test_series_are_read_from_a_file_under_their_own_names(tmp_path):
    make_structure("fork", 120, random_state=0).save(tmp_path)
    from causalformer.datasets import load_folder

    (file,) = load_folder(tmp_path)
    data = Store(tmp_path).get(file)
    graph, scores = prepared_fit(method_named("var"), None, data)()
    assert graph.names == data.truth.names
    assert scores.shape == (3, 3)
    np.testing.assert_array_equal(np.load(data.path), file.load().series.values)


def test_every_part_lists_each_job_once_and_the_references_beside_it(tmp_path):
    folder = tmp_path / "fmri"
    with pytest.raises(DataError, match="fmri"):
        PARTS["limits"](tmp_path)
    made = make_structure("fork", 60, random_state=0)
    made.save(folder)
    (folder / "data_0.csv").rename(folder / "timeseries4.csv")
    (folder / "truth.csv").rename(folder / "truth4.csv")
    for part, listed in PARTS.items():
        jobs = listed(tmp_path)
        names = [(job.folder, job.file.name, job.method.name) for job in jobs]
        assert len(set(names)) == len(names), part
        for place, file, _ in names:
            assert {(place, file, m) for m in ("default", "self-loops", "var")} <= set(names)
    assert len(PARTS["limits"](tmp_path)) == 15


@pytest.mark.parametrize("links", ["linear", "nonlinear"])
def test_large_systems_stay_within_bounds_from_beginning_to_end(links):
    made = make_random_system(300, 400, n_edges=600, links=links, random_state=60_000)
    spread = made.series.values.std(axis=0)
    assert spread.max() < 5
    halves = [half.std(axis=0) for half in np.split(made.series.values, 2)]
    assert 0.9 < np.median(halves[0] / halves[1]) < 1.1


# -------------------------------------------------------------------- tables


def rows(folder, figures, n_series=100, n_slots=1000, file="system_0"):
    """Rows of ``{method: (seconds, GB, F1 off the diagonal)}``; text is why there is none."""
    for method, figure in figures.items():
        row = {"folder": folder, "file": file, "method": method}
        row |= {"n_series": n_series, "n_slots": n_slots}
        if isinstance(figure, str):
            row["stopped" if figure.startswith("after") else "error"] = figure
        else:
            seconds, gb, f1 = figure
            row |= {"seconds": seconds, "cpu_seconds": seconds, "peak_gb": gb}
            row |= {"f1": f1, "off_diagonal_f1": f1}
        yield as_row(row)


def test_limits_are_met_or_missed():
    slow = folder_name("nonlinear", 1000, 1000)
    frame = results_frame(
        [
            *rows("fmri", {"default": (19.0, 9.0, 0.5), "self-loops": (0.1, 0.1, 0.0)}),
            *rows("sst", {"default": (110.0, 2.5, None)}),
            *rows(slow, {"default": "after 3600 s", "var": "DataError: " + "too short " * 20}),
        ]
    )
    text = scale_markdown(frame)
    assert "| fmri | default | 0.500 | 0.500 | 19.000 | 19.000 | 9.000 |  | 20 s | met |" in text
    assert "| 2.500 |  | 120 s, 2 GB | MISSED |" in text
    assert "stopped after 3600 s | 900 s, 4 GB | MISSED |" in text
    assert "| fmri | self-loops | 0.000 |" in text
    assert "..." in text
    assert missed_limits(frame) == ["sst", slow]
    assert "## Peers" not in text


def test_growth_is_fitted_over_one_size_at_a_time(tmp_path):
    made = []
    for n, t in GROWTH_IN_N:
        figures = {"default": (0.001 * n**1.2, 0.01 * n**0.5, 0.9), "var-lasso": (1.0, 1.0, 0.9)}
        made += rows(folder_name("nonlinear", n, t), figures, n, t)
    for n, t in GROWTH_IN_T:
        made += rows(folder_name("nonlinear", n, t), {"default": (t**1.2, 1.0, 0.9)}, n, t)
    frame = results_frame(made)
    text = scale_markdown(frame)
    assert "| seconds in N | 100 | 1000 | 1.200 | 1.3 | met |" in text
    assert "| peak memory in GB in N | 100 | 1000 | 0.500 |  |  |" in text
    assert "| seconds in T | 1000 | 1000000 | 1.200 | 1.1 | MISSED |" in text
    assert "seconds in T" in missed_limits(frame)
    assert save_figure(growth_figure(frame), tmp_path / "growth.png").stat().st_size > 1000


def test_accuracy_says_what_screening_costs_and_whom_the_default_is_ahead_of():
    name = folder_name("linear", 100, 1000)
    figures = {"default": (9.0, 1.0, 0.8), WITHOUT_SCREENING: (90.0, 1.0, 0.83)}
    figures |= {"var-lasso": (1.0, 1.0, 0.9), "var-ridge": (1.0, 1.0, 0.7), "pcmci": "after 90 s"}
    frame = results_frame(rows(name, figures))
    text = scale_markdown(frame)
    assert f"| {name} | +0.030 MISSED | -0.100 MISSED | +0.100 met | – |" in text
    second = results_frame([*rows(name, figures), *rows(name, figures, file="system_1")])
    assert f"| {name} | var-ridge | 2 | 0.700 |" in scale_markdown(second)


def test_peers_are_compared_with_the_fastest_of_them():
    name = folder_name("nonlinear", 20, 1000)
    figures = {"cmlp": (30.0, 1.0, 0.5), "tcdf": (20.0, 1.0, 0.5), "cuts": "after 3600 s"}
    frame = results_frame(rows(name, {**figures, "default": (5.0, 1.0, 0.9)}))
    text = scale_markdown(frame)
    assert f"| {name} | tcdf | 20.000 | 5.000 | met |" in text
    assert text.index("| default |") < text.index("| cmlp |")
    assert "lost by screening" not in text


def test_nothing_measured_is_a_table_of_nothing(tmp_path):
    frame = results_frame([])
    assert "##" not in scale_markdown(frame)
    assert missed_limits(frame) == []
    save_figure(growth_figure(frame), tmp_path / "growth.png")


def test_wrong_use_is_told_in_one_line(tmp_path, monkeypatch, capsys):
    options = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--part", "limits"]
    monkeypatch.setattr("sys.argv", ["scale", *options])
    assert scale.main() == 2
    assert "fmri" in capsys.readouterr().err


def test_the_command_writes_rows_tables_and_a_picture(tmp_path, monkeypatch, measurements, capsys):
    monkeypatch.setattr(scale, "PARTS", {"growth": lambda _: tiny("self-loops", "var")})
    options = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--methods", "var"]
    monkeypatch.setattr("sys.argv", ["scale", *options])
    assert scale.main() == 0
    assert "system_0 var: 20.0 s, 0.50 GB, F1 off the diagonal" in capsys.readouterr().out
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"results.csv", "table.md", "growth.png", "environment.json"}
