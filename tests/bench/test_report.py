"""What a benchmark leaves besides its rows: comparison, tables, pictures and suites."""

import io

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from causalformer.baselines import METHODS
from causalformer.bench.comparison import by_file, compare, comparison_markdown
from causalformer.bench.drawn import Drawn
from causalformer.bench.figures import graphs_beside_truth, save_figure
from causalformer.bench.methods import COMPARED, method_for
from causalformer.bench.paper_tables import paper_markdown, standing
from causalformer.bench.pivots import pivot, pivots_latex, pivots_markdown
from causalformer.bench.report import write_report
from causalformer.bench.result_file import as_row, results_frame
from causalformer.bench.runner import BenchPlan, plan_jobs, run_bench
from causalformer.bench.scaling import exponents
from causalformer.bench.suites import GENERATED, drawn_system, generated_suite, paper_suite
from causalformer.bench.tables import bench_table
from causalformer.datasets import make_structure
from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph


def frame(figures, **common):
    """Rows of ``{method: {file: off-diagonal F1}}``; None is a failure."""
    return results_frame(
        as_row(
            {
                "folder": "fork",
                **common,
                "file": file,
                "method": method,
                "off_diagonal_f1": figure,
                "f1": figure,
                "pod": figure,
                "seconds": 1.0,
                "cpu_seconds": 1.0,
                "error": "" if figure is not None else "DataError: no",
            }
        )
        for method, files in figures.items()
        for file, figure in files.items()
    )


# -------------------------------------------------------------------- comparison


def test_methods_are_compared_file_by_file_and_corrected_for_their_number():
    rng = np.random.default_rng(0)
    ours = rng.uniform(0.7, 1.0, 16)
    figures = {"default": ours, "var": ours - rng.uniform(0.01, 0.3, 16), "cmlp": ours - 0.2}
    figures["tcdf"] = ours + rng.normal(0, 0.1, 16)
    results = frame({m: dict(enumerate(v.tolist())) for m, v in figures.items()})
    table = compare(results).set_index("method")
    assert table.loc["var", ["wins", "ties", "losses"]].tolist() == [16, 0, 0]
    assert table.loc["default", "ties"] == 16
    from scipy.stats import wilcoxon

    others = ["var", "cmlp", "tcdf"]
    raw = [wilcoxon(figures["default"] - figures[m]).pvalue for m in others]
    np.testing.assert_allclose(table.loc[others, "p"], multipletests(raw, method="holm")[1])
    assert "< 0.001" in comparison_markdown(results)


def test_a_failure_counts_as_nothing_found_and_missing_rows_as_not_run():
    results = frame({"default": {"0": 1.0, "1": 0.5}, "var": {"0": 0.5, "1": None}})
    assert by_file(results)["var"].tolist() == [0.5, 0.0]
    part = frame({"default": {"0": 1.0, "1": 0.5}, "var": {"0": 0.5}})
    assert list(by_file(part)) == ["default"]


def test_the_published_orientation_is_no_part_of_the_comparison():
    both = [
        frame({"var": {"0": f}}, orientation=o) for o, f in (("netsim", 1), ("as-published", 0))
    ]
    import pandas as pd

    assert by_file(pd.concat(both))["var"].tolist() == [1.0]


# -------------------------------------------------------------------- tables


def test_the_best_is_bold_and_names_are_safe_in_latex():
    results = frame({"var": {"0": 0.25, "1": 0.75}, "a_b": {"0": 1.0}}, folder="50 % & v_x")
    table = pivot(results, "off_diagonal_f1")
    assert table.to_numpy().tolist() == [["50 % & v_x", "0.50 ± 0.35", "**1.00**"]]
    latex = pivots_latex(results)
    assert r"50 \% \& v\_x & 0.50 $\pm$ 0.35 & \textbf{1.00} \\" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}")


def test_printed_figures_stand_beside_measured_ones():
    results = frame({"cmlp": {"0": 0.5}, "default": {"0": 0.75}, "var": {"0": 1.0}}, folder="fork")
    text = paper_markdown(results)
    assert "| fork | 1.00 | 0.50 (0.51 ± 0.33) | 0.75 |" in text
    ranks = standing(results).set_index("measure")
    assert ranks.loc["F1 without self-loops", "rank"] == 2
    assert ranks.loc["F1 without self-loops", "best other"] == "var"


def test_exponents_need_two_sizes():
    results = frame({"var": {"0": 1.0}}).assign(n_series=3, n_slots=100)
    assert exponents(results)["in N"].isna().all()


@pytest.mark.parametrize("orientation", ["", "netsim", "as-published"])
def test_a_report_is_written_from_rows_alone(tmp_path, orientation):
    write_report(
        frame({"var": {"0": 0.5}, "default": {"0": 1.0}}, orientation=orientation), tmp_path
    )
    assert (tmp_path / "heat-map.png").read_bytes()[1:4] == b"PNG"
    assert "compared with default" in (tmp_path / "comparison.md").read_text()


def test_graphs_are_drawn_beside_the_truth(tmp_path):
    truth = make_structure("fork", 50, random_state=0).truth
    graphs = {name: CausalGraph(truth.names) for name in ("a", "b", "c", "d", "e")}
    path = save_figure(graphs_beside_truth(graphs, truth), tmp_path / "x.png")
    assert path.stat().st_size > 1000


# -------------------------------------------------------------------- suites


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("diamond", "mediator", "v_structure", "fork"):
        make_structure(name, 60, random_state=0).save(folder / name)
    make_structure("fork", 60, random_state=0).save(folder / "lorenz96")
    made = make_structure("fork", 60, random_state=0)
    made.save(folder / "fmri")
    (folder / "fmri" / "data_0.csv").rename(folder / "fmri" / "timeseries15.csv")
    (folder / "fmri" / "truth.csv").rename(folder / "fmri" / "truth15.csv")
    return folder


def test_the_paper_suite_has_every_method_on_every_folder_once(data):
    jobs = plan_jobs(*paper_suite(data, ["all"], quick=False))
    pairs = [(job.folder, job.method.name) for job in jobs]
    assert len(set(pairs)) == len(pairs)
    assert {(f, m) for f in ("diamond", "fmri") for m in COMPARED} <= set(pairs)
    assert ("fmri", "paper-without-bias") in pairs
    assert ("fork", "paper-without-bias") not in pairs
    assert all(len(job.readings) == (2 if job.folder == "fmri" else 1) for job in jobs)
    some = plan_jobs(*paper_suite(data, ["cmlp"], quick=True))
    assert {job.method.name for job in some} == {"self-loops", "var", "cmlp"}
    with pytest.raises(SettingsError, match="--data"):
        paper_suite(None, ["all"], quick=True)


def test_no_part_of_a_method_is_left_out_in_name_only():
    names = [name for name in COMPARED if name not in METHODS]
    names += ["default-without-masked-sources", "default-without-sparse-tests"]
    names += ["default-without-lag-weighting", "default-by-relevance"]
    names += ["paper-with-bias", "paper-without-gradient", "paper-without-relevance"]
    prints = [method_for(name, "fmri").fingerprint for name in names]
    assert len(set(prints)) == len(prints)


def test_generated_data_sets_differ_in_one_respect_and_are_drawn_again_the_same():
    (plan,) = generated_suite(None, ["default"], quick=False)
    assert [item.name for item in plan.folders] == list(GENERATED)
    prints = {file.fingerprint for item in plan.folders for file in item.files}
    assert len(prints) == sum(len(item.files) for item in plan.folders)
    file = plan.folders[0].files[0]
    np.testing.assert_array_equal(file.load().series.values, file.load().series.values)
    links = drawn_system(3, n_instantaneous=4).truth
    assert sum(edge.lag == 0 for edge in links) == 4


def test_holes_are_filled_for_methods_that_take_none(tmp_path):
    (plan,) = generated_suite(None, [], quick=False)
    holed = next(item for item in plan.folders if item.name == "missing 10 %")
    results = run_bench(BenchPlan([Drawn("holes", holed.files[:1])], methods=["var"]), tmp_path)
    assert (results["error"] == "").all()
    assert results["f1"].notna().all()
    assert (tmp_path / "graphs" / "holes" / "system_0" / "var.json").exists()


def test_settings_that_no_method_takes_are_refused(data):
    with pytest.raises(SettingsError, match="max_lag"):
        plan_jobs(BenchPlan([data / "fork"], methods=["dynotears"], overrides={"max_lag": 2}))


def test_a_mean_without_failed_files_is_marked_and_bars_are_escaped():
    results = frame({"var": {"0": 0.5, "1": None}}, folder="a|b")
    assert pivot(results, "off_diagonal_f1")["var"].tolist() == ["**0.50***"]
    assert r"| a\|b |" in pivots_markdown(results)


def test_many_methods_stand_below_one_another_on_a_terminal():
    from rich.console import Console

    results = frame({f"method-{i}": {"0": 0.5} for i in range(15)})
    console = Console(width=80, file=io.StringIO())
    console.print(bench_table(results))
    assert "method-14" in console.file.getvalue()
