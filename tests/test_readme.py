"""What the README and the documentation tell a newcomer to type must work."""

import functools
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from causalformer import CausalFormer
from causalformer.cli import app
from causalformer.datasets import load_example

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    code = code.replace("random_state=0", 'random_state=0, settings={"max_epochs": 2}')
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "m" / "model.json").exists()


QUICK = {"max_epochs": 2, "n_channels": 4}
HOW_TO = [ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial" / "five-minutes.md"


def blocks_of(page):
    """Return (language, code) of every block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run_python(code, names, where):
    """Run a block with a quick `CausalFormer` in place of the one that it imports."""
    names["CausalFormer"] = functools.partial(CausalFormer, settings=QUICK)
    code = code.replace("from causalformer import CausalFormer\n", "")
    code = code.replace("from causalformer import CausalFormer, ", "from causalformer import ")
    exec(compile(code, where, "exec"), names)


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_the_blocks_of_a_how_to_run_one_after_the_other(page, tmp_path, monkeypatch):
    blocks = [code for language, code in blocks_of(page) if language == "python"]
    assert blocks
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks:
        run_python(code, names, page.name)


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_the_commands_and_blocks_of_the_tutorial_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    n_commands = 0
    for language, code in blocks_of(TUTORIAL):
        if language == "python":
            run_python(code, names, TUTORIAL.name)
        elif code.startswith("causalformer"):
            n_commands += 1
            arguments = shlex.split(code)[1:]
            if arguments[0] == "discover":
                arguments += [f"--set={name}={value}" for name, value in QUICK.items()]
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output
    assert n_commands == 5
    bundled = load_example().series
    assert names["model"].names_ == bundled.names
    assert (names["model"]._table.values == bundled.values).all()


def test_the_tutorial_shows_the_edges_that_are_found():
    (shown,) = [code for language, code in blocks_of(TUTORIAL) if language == "text"]
    lines = [re.split(r"\s{2,}", line) for line in shown.splitlines()[1:]]
    found = CausalFormer().fit(load_example().series).graph_
    assert [tuple(line[:3]) for line in lines] == [(e.arrow, str(e.lag), e.kind) for e in found]
    q_values = [float(line[4]) for line in lines]
    assert q_values == pytest.approx([edge.q_value for edge in found], rel=0.3)
