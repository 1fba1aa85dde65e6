"""Change every number that decides to half and to twice, and count what the tests notice.

``python -m mutants``, from the folder `tests`. A mutant is a number of `causalformer.policy`
at another value; it is killed if a test fails that passes without it. Only the tests that are about
the number are run, by `TESTS`, and only until the first one fails.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHANGED: Final = "CAUSALFORMER_MUTANT"
"""The variable of the environment that `conftest.py` reads: ``name=value``."""

TESTS: Final = {
    "level": ("detect/test_flow.py", "detect/test_policy.py"),
}


def killed(name: str, value: float) -> str:
    """Give the test that notices a changed number; nothing if none does."""
    where = [str(ROOT / "tests" / test) for test in dict.fromkeys((*TESTS.get(name, ()), POLICY))]
    order = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *where]
    environment = {**os.environ, CHANGED: f"{name}={value!r}"}
    done = subprocess.run(order, env=environment, cwd=ROOT, capture_output=True, text=True)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    return failed[0] if failed else ""
