"""What the README tells a newcomer to type must work."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    code = code.replace("random_state=0", 'random_state=0, settings={"max_epochs": 2}')
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "m" / "model.json").exists()
