"""The parts of the documentation that are taken from the program and the results.

The pages themselves, with the scripts of the gallery, are built by `make docs`, a part of
`make test`; there every warning is an error.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from causalformer import CausalFormer
from causalformer.datasets import load_example
from causalformer.default import RENAMED
from causalformer.policy import numbers

pytest.importorskip("sphinx")

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def from_the_tree(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import from_the_tree

    return from_the_tree


def test_results_become_parts_of_the_section_that_asks_for_them(
    from_the_tree, tmp_path, monkeypatch
):
    monkeypatch.setattr(from_the_tree, "BENCHMARKS", tmp_path)
    (tmp_path / "table.md").write_text("# Benchmark\n\n## fork\n\n| a |\n|---|\n| 1 |\n")
    page = from_the_tree.filled("## Default\n\n<!-- results: table.md -->\n")
    assert page.splitlines()[:3] == ["## Default", "", "### fork"]
    assert "# Benchmark" not in page
    assert page.endswith("*Benchmark: `benchmarks/table.md`*\n")
    assert "| 1 |" in page


def test_pictures_are_found_from_pages_in_folders(from_the_tree, tmp_path, monkeypatch):
    monkeypatch.setattr(from_the_tree, "BENCHMARKS", tmp_path)
    (tmp_path / "seeds.png").touch()
    marker = "<!-- results: seeds.png -->"
    assert from_the_tree.filled(marker, "benchmarks") == "![seeds](../benchmarks/seeds.png)"
    page = from_the_tree.filled(marker, "explanation/paper-map")
    assert page == "![seeds](../../benchmarks/seeds.png)"


def test_links_to_tables_lead_to_the_section_that_shows_them(from_the_tree):
    page = from_the_tree.filled("[a](../../benchmarks/paper/published-runs.md)")
    assert page == "[a](/benchmarks.md#published-runs)"


def test_results_that_are_not_there_yet_are_named(from_the_tree, tmp_path, monkeypatch):
    monkeypatch.setattr(from_the_tree, "BENCHMARKS", tmp_path)
    page = from_the_tree.filled("<!-- results: paper/none.md -->")
    assert page == "*Not measured yet: `benchmarks/paper/none.md`.*"


def test_every_folder_of_results_has_its_place_on_the_page_of_benchmarks():
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8").lower()
    for table in (DOCS.parent / "benchmarks").glob("*/table.md"):
        assert f"\n## {table.parent.name}\n" in page  # links to the table lead there
        assert f"<!-- results: {table.parent.name}/" in page


def test_links_to_tables_and_scripts_lead_to_pages(from_the_tree):
    text = "[a](../../benchmarks/default/table.md) [b](../gallery/prior_knowledge.py)"
    assert from_the_tree.filled(text) == (
        "[a](/benchmarks.md#default) [b](/auto_gallery/prior_knowledge.rst)"
    )


def test_every_number_that_decides_is_on_its_page(from_the_tree):
    page = from_the_tree.filled("<!-- numbers -->")
    for name, (value, _, _) in numbers().items():
        assert f"| `{name}` | {value:g} |" in page


def test_every_command_is_on_the_page_of_the_command_line(from_the_tree):
    page = from_the_tree.filled("<!-- cli -->")
    titles = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    assert "causalformer discover" in titles
    assert "causalformer datasets make" in titles
    assert "--max-lag" in page


def test_every_module_of_the_reference_has_a_page(from_the_tree):
    pages = "".join(p.read_text(encoding="utf-8") for p in (DOCS / "reference/api").glob("*.md"))
    asked = re.findall(r"<!-- api: (\S+) -->", pages)
    assert sorted(asked) == sorted(from_the_tree.MODULES)


def test_a_name_is_described_once_and_settings_with_their_meaning(from_the_tree):
    assert ".. autoclass:: causalformer.Edge" in from_the_tree.api("causalformer")
    assert ".. autoclass::" not in from_the_tree.api("causalformer.graph")
    assert "| `min_effect` | `0.01` | share of variance" in from_the_tree.api("causalformer.config")


def test_the_glossary_names_what_is_there():
    page = (DOCS / "explanation/glossary.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"`((?:detect|data)\.[a-z_]+)[`.]", page))
    assert {"detect.few_terms", "data.scaling"} <= modules
    for module in modules:
        assert find_spec(f"causalformer.{module}") is not None, module
    names, renamed = page.split("## Names that stay")
    scores = re.findall(r'`scores_\["(\w+)"\]`', names)
    assert {"relative_gain", "terms_p_value"} <= set(scores)
    model = CausalFormer(settings={"max_epochs": 1, "n_channels": 2}, max_lag=3)
    model.fit(load_example().series)
    assert set(scores) <= set(model.scores_)
    for old, new in RENAMED.items():
        assert f"`{old}`" in renamed
        assert f"`{new}`" in renamed
        assert new in model.scores_


@pytest.mark.parametrize(
    ("page", "n_loaded"),
    [
        ('<script src="_static/a.js"></script>', 0),
        ('<a href="https://a.org">a</a>', 0),
        ('<script defer src="https://a.org/a.js"></script>', 1),
        ('<link rel="stylesheet" href="//a.org/a.css">', 1),
        ('<img src="http://a.org/a.png">', 1),
        ("@import url(https://a.org/font.css);", 1),
        ("@font-face {src: url('https://a.org/font.woff')}", 1),
    ],
)
def test_what_would_be_loaded_from_another_host_is_found(from_the_tree, page, n_loaded):
    assert len(from_the_tree.loaded_from_hosts(page)) == n_loaded
