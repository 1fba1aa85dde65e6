from pathlib import Path

import pytest

from causalformer.bench.readme import BEGIN, END, PUBLISHED, paper_table, with_table
from causalformer.bench.result_file import read_rows, results_frame
from causalformer.errors import FileFormatError

ROOT = Path(__file__).parents[2]


def test_the_readme_shows_the_committed_results():
    results = results_frame(read_rows(ROOT / "benchmarks/paper/results.csv"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme, paper_table(results)) == readme


def test_every_folder_of_the_paper_stands_beside_the_trivial_rows():
    results = results_frame(read_rows(ROOT / "benchmarks/paper/results.csv"))
    for folder in PUBLISHED:
        methods = set(results.loc[results["folder"] == folder, "method"])
        assert {"paper", "self-loops", "var"} <= methods


def test_a_readme_without_markers_is_refused():
    with pytest.raises(FileFormatError, match="README"):
        with_table("nothing here", "table")
    assert BEGIN != END
