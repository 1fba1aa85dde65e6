"""What the README tells a newcomer to type must work."""

import functools
import re
from pathlib import Path

import pytest

from causalformer import CausalFormer

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    code = code.replace("random_state=0", 'random_state=0, settings={"max_epochs": 2}')
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "m" / "model.json").exists()


HOW_TO = sorted((Path(__file__).parents[1] / "docs" / "how-to").glob("*.md"))


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_the_blocks_of_a_how_to_run_one_after_the_other(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    quick = functools.partial(CausalFormer, settings={"max_epochs": 2, "n_channels": 4})
    names: dict[str, object] = {}
    for block in blocks:
        code = block.replace("import CausalFormer, ", "import ")
        exec(compile(code, page.name, "exec"), {"CausalFormer": quick} | names, names)
