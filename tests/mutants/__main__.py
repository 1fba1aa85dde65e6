"""Bring every number that decides to half and to twice, and count what the tests notice.

``python -m mutants``, from the folder `tests`. A mutant is a number of `causalformer.policy` at
another value; it is killed if a test fails that passes without it. Only tests that are about the
number are run, `TESTS`, and only until the first one fails.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

import pytest

from causalformer.bench.sensitivity import TIMES, changed
from causalformer.policy import numbers, varied

ROOT: Final = Path(__file__).parents[2]

ALL: Final = "test_policy.py"
TESTS: Final = {
    "even_odds": ("detect/test_edges.py",),
    "hidden_share": ("detect/test_hidden.py", "detect/test_hidden_series.py"),
    "least_share": ("test_diagnostics.py",),
    "level_shift": ("test_diagnostics.py",),
    "further_lag": ("detect/test_edges.py",),
    "further_lag_t": ("detect/test_edges.py",),
}
"""Where a number is tested besides `ALL`."""


class _Failed:
    """Collects the tests that fail."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def failed(tests: Sequence[str], *, first: bool = False) -> list[str]:
    """Run tests and give the names of those that fail, or of the first one."""
    found = _Failed()
    options = ["-q", "-p", "no:cacheprovider", "--assert=plain", *["-x"] * first]
    with redirect_stdout(io.StringIO()):
        pytest.main([*options, *(str(ROOT / test) for test in tests)], plugins=[found])
    return found.names


def main() -> int:
    """Print a line per mutant, then how many were killed; fail below the share that is asked."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--number", action="append", help="only this one; may be repeated")
    parser.add_argument("--least", type=float, default=0.95, help="share that must be killed")
    options = parser.parse_args()
    names = options.number or list(numbers())
    n_killed = 0
    for name in names:
        for times in TIMES:
            value = changed(name, times)
            by = ""
            for test in (ALL, *TESTS.get(name, ())):
                with varied(**{name: value}):
                    suspects = failed([f"tests/{test}"], first=True)
                if suspects and suspects[0] not in failed(suspects):
                    by = suspects[0]
                    break
            n_killed += bool(by)
            print(f"{name} = {value:g}: {by or 'SURVIVES'}", flush=True)
    n_mutants = len(TIMES) * len(names)
    print(f"{n_killed} of {n_mutants} mutants killed")
    return 0 if n_killed >= options.least * n_mutants else 1


if __name__ == "__main__":
    sys.exit(main())
