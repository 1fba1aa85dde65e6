import math
from io import StringIO

import pytest
from rich.console import Console

from causalformer.bench.result_file import as_row, results_frame
from causalformer.bench.tables import bench_markdown, bench_table, summarise


def frame(*rows):
    common = {"folder": "fork", "method": "var", "settings": "s", "data": "d", "version": "1"}
    return results_frame([as_row({**common, **row}) for row in rows])


def test_mean_and_sample_std_over_files():
    rows = [{"file": str(i), "f1": f1, "cpu_seconds": 2.0} for i, f1 in enumerate((0.5, 0.7, 0.9))]
    summary = summarise(frame(*rows)).iloc[0]
    assert summary["f1_mean"] == pytest.approx(0.7)
    assert summary["f1_std"] == pytest.approx(0.2)  # n - 1
    assert summary["cpu_seconds_std"] == 0
    assert summary["n_files"] == 3


def test_seeds_are_averaged_before_files():
    rows = [
        {"file": "0", "seed": 0, "f1": 0.0},
        {"file": "0", "seed": 1, "f1": 1.0},
        {"file": "1", "seed": 0, "f1": 0.5},
    ]
    summary = summarise(frame(*rows)).iloc[0]
    assert (summary["f1_mean"], summary["f1_std"], summary["n_files"]) == (0.5, 0.0, 2)


def test_failures_are_counted_and_left_out_of_the_mean():
    results = frame({"file": "0", "f1": 0.8}, {"file": "1", "error": "DataError: broken"})
    summary = summarise(results).iloc[0]
    assert (summary["f1_mean"], summary["n_files"], summary["n_failed"]) == (0.8, 1, 1)
    assert math.isnan(summary["f1_std"])
    assert "| var | 1 (1 failed) | 0.80 | – |" in bench_markdown(results)


def test_all_failed_gives_dashes():
    assert "| var | 0 (1 failed) | – |" in bench_markdown(frame({"file": "0", "error": "x"}))


def test_orientations_are_tables_of_their_own():
    results = frame(
        {"folder": "fmri", "orientation": "netsim", "file": "1", "f1": 0.5},
        {"folder": "fmri", "orientation": "as-published", "file": "1", "f1": 0.25},
    )
    text = bench_markdown(results)
    assert "## fmri (netsim)" in text
    assert "## fmri (as-published)" in text


def test_mixed_settings_are_pointed_out():
    rows = [{"file": "0", "f1": 1.0}, {"file": "1", "f1": 1.0, "settings": "other"}]
    assert "Caution: rows of fork" in bench_markdown(frame(*rows))
    assert "Caution" not in bench_markdown(frame(rows[0]))


def test_the_terminal_shows_names_literally_and_every_figure_in_80_columns():
    methods = ("self-loops", "var", "paper")
    results = frame(
        *(
            {"folder": "[red]x", "method": m, "file": str(i), "f1": 0.5}
            for m in methods
            for i in "ab"
        )
    )
    stream = StringIO()
    Console(width=80, file=stream).print(bench_table(results))
    text = stream.getvalue()
    assert "[red]x" in text
    assert text.count("0.50 ± 0.00") == 3
    assert "sample standard deviation" in text


def test_no_rows_make_an_empty_table():
    assert "# Benchmark" in bench_markdown(frame())
    assert bench_table(frame()).renderables
