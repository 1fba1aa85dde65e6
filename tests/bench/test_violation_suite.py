"""The suite of violated assumptions: what runs, what counts as a claim, what the tables say."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from causalformer.bench.runner import plan_jobs, run_bench
from causalformer.bench.suites import SUITES
from causalformer.bench.violation_tables import (
    better_level,
    summary,
    violations_markdown,
    write_violations_report,
)
from causalformer.bench.violations import PEERS, SEED_SETS, claims, violations_suite
from causalformer.datasets import VIOLATIONS
from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph, Edge


def graph(*edges):
    return CausalGraph(tuple("abc"), edges)


def outcome(method, family="trend", **figures):
    """One row of ``outcomes.csv``."""
    return {
        "group": VIOLATIONS[family].group,
        "family": family,
        "strength": 2,
        "seed": 0,
        "method": method,
        "f1": 0.5,
        "auroc": 0.9,
        "auprc": 0.8,
        "false_share": 0.0,
        "n_true": 4,
        "n_claimed": 2,
        "n_right": 2,
        "n_directed": 0,
        "n_directed_right": 0,
        "seconds": 1.0,
        "warning": "",
        "error": "",
        **figures,
    }


# ------------------------------------------------------------------ which systems


def test_every_family_is_there_with_its_lags_and_all_methods():
    plans = violations_suite(None, ["all"], quick=False)
    assert {item.name for plan in plans for item in plan.folders} == set(VIOLATIONS)
    small, large = plans
    assert {*PEERS, "var@bh", "pcmci@bh", "pcmci-plus@bh", "default"} == set(small.all_methods)
    assert "pcmci" not in large.all_methods
    for job in plan_jobs(violations_suite(None, ["default"], quick=True, families=["trend"])[0]):
        lags = {**job.method.settings, **job.method.options}.get("max_lag")
        assert lags == (None if job.method.name == "self-loops" else 5)


def test_the_base_system_is_run_once_for_all_families_that_start_from_it():
    (trend, *_), _ = (
        plan.folders for plan in violations_suite(None, [], quick=False, families=["trend"])
    )
    assert {file.name.split("_")[0] for file in trend.files} == {
        f"strength-{s}" for s in range(1, 5)
    }
    (slot,) = violations_suite(None, [], quick=True, families=["slot-fork"])[0].folders
    assert [file.name.split("_")[0] for file in slot.files] == [f"strength-{s}" for s in (0, 2, 4)]


def test_systems_to_choose_on_are_not_those_to_report():
    drawn = [
        {
            file.fingerprint
            for plan in SUITES["violations"](None, [], quick=False, seeds=seeds)
            for item in plan.folders
            for file in item.files
        }
        for seeds in SEED_SETS
    ]
    assert not set.intersection(*drawn)


@pytest.mark.parametrize(
    ("options", "named"), [({"seeds": "mine"}, "mine"), ({"families": ["rain"]}, "rain")]
)
def test_unknown_seeds_and_families_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        violations_suite(None, ["var"], quick=True, **options)


# ------------------------------------------------------------------ what counts


def test_a_link_without_direction_is_one_claim_and_right_either_way():
    truth = graph(Edge("a", "b", 0), Edge("b", "c", 1), Edge("a", "a", 1))
    for cause, effect in (("a", "b"), ("b", "a")):
        found = claims(graph(Edge(cause, effect, 0, oriented=False)), truth)
        assert (found.n_claimed, found.n_right, found.n_directed) == (1, 1, 0)
        assert found.f1 == pytest.approx(2 / 3)
    beside = claims(graph(Edge("a", "b", 0, oriented=False), Edge("a", "b", 1)), truth)
    assert (beside.n_claimed, beside.n_right) == (1, 1)


def test_directions_within_the_slot_are_judged_at_lag_zero():
    truth = graph(Edge("a", "b", 0), Edge("b", "c", 1))
    found = claims(graph(Edge("a", "b", 0), Edge("b", "c", 0), Edge("c", "a", 0)), truth)
    assert (found.n_claimed, found.n_right) == (3, 2)
    assert (found.n_directed, found.n_directed_right) == (3, 1)
    assert found.false_share == pytest.approx(1 / 3)


def test_nothing_claimed_of_nothing_is_perfect():
    nothing = claims(graph(), graph(Edge("a", "a", 1)))
    assert (nothing.f1, nothing.false_share, nothing.n_true) == (1.0, 0.0, 0)


# ------------------------------------------------------------------ tables


def test_each_family_takes_the_better_level_of_a_test():
    rows = pd.DataFrame(
        [
            outcome("var", "trend", f1=0.4),
            outcome("var@bh", "trend", f1=0.6),
            outcome("var", "season", f1=0.7),
            outcome("var@bh", "season", f1=0.3),
            outcome("default", "season"),
        ]
    )
    best = better_level(rows).groupby(["family", "method"])["f1"].mean().to_dict()
    assert best == {("trend", "var"): 0.6, ("season", "var"): 0.7, ("season", "default"): 0.5}


def test_the_summary_compares_with_the_best_other_method():
    rows = pd.DataFrame(
        [
            outcome("default", "trend", f1=0.69, n_claimed=4, n_right=3, false_share=0.25),
            outcome("default", "hidden-driver", f1=0.2, n_claimed=6, n_right=3, false_share=0.5),
            outcome("var", "trend", f1=0.7),
            outcome("var", "hidden-driver", f1=0.8),
            outcome("default", "null-trend", n_true=0, n_claimed=9, n_right=0, false_share=1.0),
        ]
    )
    rows.loc[1, "warning"] = "beware"
    lines = summary(rows).set_index("method")
    assert lines.index.tolist() == ["var", "default"]
    assert lines.loc["default", "F1 close"] == 0.5
    assert lines.loc["default", "F1 rank"] == 2.0
    assert lines.loc["default", "false share"] == pytest.approx(0.4)
    assert lines.loc["default", "without hidden"] == pytest.approx(0.25)
    assert lines.loc["default", "warned"] == "1 of 2"


def test_null_families_count_graphs_with_an_edge_and_methods_that_never_worked_are_left_out():
    rows = pd.DataFrame(
        [
            outcome("default", "null-walks", n_true=0, n_claimed=1, n_right=0),
            outcome("default", "null-walks", n_true=0, n_claimed=0, n_right=0, seed=1),
            outcome("default", "trend", warning="a trend is there"),
            outcome("pcmci", "trend", error="MissingExtraError: no", f1=0.0),
        ]
    )
    text = violations_markdown(rows)
    assert "| null-walks | 0.500 |" in text
    assert "a trend is there" in text
    assert "| pcmci |" not in text
    assert VIOLATIONS["trend"].about in text


# ------------------------------------------------------------------ all of it


def test_the_suite_runs_from_end_to_end_and_failures_are_chance(tmp_path):
    families = ["short", "slot-fork", "null-noise"]
    plans = violations_suite(None, ["varlingam"], quick=True, families=families)
    results = run_bench(plans, tmp_path)
    rows = write_violations_report(results, tmp_path)
    assert len(rows) == 3 * 3 * 4
    failed = rows[rows["error"] != ""]
    assert set(failed["family"]) == {"short"}
    assert set(failed["auroc"]) == {0.5}
    assert (failed["f1"] == 0).all()
    fork = rows[(rows["family"] == "slot-fork") & (rows["method"] == "var")]
    assert np.isfinite(fork["auroc"]).all()
    text = (tmp_path / "table.md").read_text()
    assert "## F1 by family" in text
    assert "| null-noise |" in text
    again = write_violations_report(run_bench(plans, tmp_path), tmp_path)
    pd.testing.assert_frame_equal(rows, again)


def test_the_command_runs_a_family_of_the_suite(tmp_path):
    words = [*("bench", "--suite", "violations", "--quick", "--methods", "var"), "--out", tmp_path]
    words += ["--seed-set", "report", "--family", "slot-fork,null-trend"]
    done = subprocess.run(
        [sys.executable, "-m", "causalformer", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "table.md" in done.stdout
    assert (tmp_path / "outcomes.csv").read_text().count(str(SEED_SETS["report"])[:3]) >= 12
