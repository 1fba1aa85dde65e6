from pathlib import Path

import pytest

from causalformer.bench.published import F1
from causalformer.bench.readme import TABLES, with_table
from causalformer.bench.result_file import read_rows, results_frame
from causalformer.errors import FileFormatError

ROOT = Path(__file__).parents[2]


def committed(part):
    return results_frame(read_rows(ROOT / "benchmarks" / TABLES[part][0] / "results.csv"))


@pytest.mark.parametrize("part", TABLES)
def test_the_readme_shows_the_committed_results(part):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme, part, TABLES[part][1](committed(part))) == readme


@pytest.mark.parametrize("part", TABLES)
def test_every_folder_of_the_paper_stands_beside_the_trivial_rows(part):
    results = committed(part)
    for folder in F1:
        methods = set(results.loc[results["folder"] == folder, "method"])
        assert {TABLES[part][0], "self-loops", "var"} <= methods


def test_a_readme_without_markers_is_refused():
    with pytest.raises(FileFormatError, match="README"):
        with_table("nothing here", "paper", "table")
