"""Where the seconds of one discovery go, from the import to the report.

``python -m causalformer.bench.profile --out benchmarks/profile`` runs the default from a CSV file
to the folder of results on one core, with a clock around the functions that the stages consist of.
The seconds of a stage are its own: what another stage takes inside it counts there.
"""

import argparse
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from causalformer.bench.environment import write_environment
from causalformer.bench.scale_jobs import system
from causalformer.bench.tables import markdown
from causalformer.bench.timing import one_thread
from causalformer.files import write_text

if TYPE_CHECKING:
    import pandas as pd

SIZES: Final = ((5, 4000), (50, 200), (100, 1000))
"""Numbers of series and slots."""

STAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "reading": ("data.reading:read_series",),
        "preparing: quality checks": ("data.series:check_usable", "data.quality:inspect"),
        "preparing: order and scale": (
            "default:canonical_order",
            "data.scaling:fit_table_scaling",
            "data.scaling:TableScaling.apply",
        ),
        "preparing: samples": ("detect.samples:make_samples",),
        "screening": ("detect.screening:screen",),
        "training": ("detect.networks:train_network",),
        "relevance": ("detect.calibrated:contributions",),
        "testing: removal": ("detect.removal:removal_errors",),
        "testing: few terms": ("detect.few_terms:sparse_tests",),
        "testing: within slots": ("detect.contemporaneous:contemporaneous_evidence",),
        "edges and diagnostics": ("detect.edges:found_edges", "diagnostics:diagnose"),
        "report": ("results:write_discovery",),
    }
)
"""The functions of every stage."""

OTHER: Final = "everything else"

_STARTS: Final = {
    "import of the estimator": ["-c", "import causalformer.estimator"],
    "causalformer --help": ["-m", "causalformer", "--help"],
    "Python itself": ["-c", ""],
}
_REPEATS: Final = 3


class StageClock:
    """Add up the seconds of stages, each without the stages inside it.

    Examples
    --------
    >>> ticks = iter([0.0, 1.0, 3.0, 4.0])
    >>> clock = StageClock(lambda: next(ticks))
    >>> inner = clock.timed("inner", lambda: None)
    >>> clock.timed("outer", inner)()
    >>> dict(clock.seconds)
    {'inner': 2.0, 'outer': 2.0}
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._now = now
        self._inside: list[float] = []

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Put the clock around a function."""

        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            started = self._now()
            self._inside.append(0.0)
            try:
                return function(*args, **options)
            finally:
                whole = self._now() - started
                self.seconds[stage] += whole - self._inside.pop()
                if self._inside:
                    self._inside[-1] += whole

        return run


@contextmanager
def watched(clock: StageClock, stages: Mapping[str, Sequence[str]] = STAGES) -> Iterator[None]:
    """Put the clock around the functions of all stages, wherever the package uses them."""
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for stage, places in stages.items():
            for place in places:
                for holder, name, function in _uses(place):
                    replaced.append((holder, name, function))
                    setattr(holder, name, clock.timed(stage, function))
        yield
    finally:
        for holder, name, function in reversed(replaced):
            setattr(holder, name, function)


def _uses(place: str) -> list[tuple[Any, str, Any]]:
    """List where the package holds a function ``module:name`` or a method ``module:class.name``."""
    path, _, name = place.partition(":")
    home = import_module(f"causalformer.{path}")
    owner, _, method = name.partition(".")
    if method:
        return [(getattr(home, owner), method, getattr(getattr(home, owner), method))]
    function = getattr(home, name)
    modules = [m for key, m in list(sys.modules.items()) if key.startswith("causalformer")]
    return [
        (module, key, function)
        for module in modules
        for key, value in list(vars(module).items())
        if value is function
    ]


def discovery(source: Path, out: Path, settings: Mapping[str, Any]) -> None:
    """Do what ``causalformer discover`` does, from the file to the folder of results."""
    from causalformer import results
    from causalformer.data import reading
    from causalformer.estimator import CausalFormer

    table = reading.read_series(source)
    model = CausalFormer(settings=settings, device="cpu").fit(table)
    out.mkdir()
    results.write_discovery(out, model, table, {"source": source.name})


def profile(
    n_series: int, n_slots: int, settings: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Give the seconds of every stage of one discovery, `OTHER` included."""
    from causalformer.errors import DataWarning

    clock = StageClock()
    with TemporaryDirectory() as folder, warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", DataWarning)
        _, drawn = system("nonlinear", n_series, n_slots)
        source = drawn.load().save(folder)
        with watched(clock):
            clock.timed(OTHER, discovery)(source, Path(folder) / "out", settings or {})
    return {stage: clock.seconds[stage] for stage in (*STAGES, OTHER)}


def start_seconds(arguments: Sequence[str], now: Callable[[], float] = time.perf_counter) -> float:
    """Give the seconds of a whole new Python process, the best of three."""
    seconds = []
    for _ in range(_REPEATS):
        started = now()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        seconds.append(now() - started)
    return min(seconds)


def profile_markdown(stages: "pd.DataFrame", starts: Mapping[str, float]) -> str:
    """Give the seconds of all stages and of the start as a Markdown document.

    Parameters
    ----------
    stages : DataFrame
        The columns data, stage and seconds.
    starts : mapping
        Seconds of new processes by what they do.
    """
    import pandas as pd

    wide = stages.pivot_table(index="stage", columns="data", values="seconds", sort=False)
    wide.loc["sum"] = wide.sum()
    begun = pd.DataFrame({"new process": starts.keys(), "seconds": starts.values()})
    return (
        f"# Profile\n\n## Stages\n\n{markdown(wide.reset_index())}\n"
        f"Seconds of one discovery by the default on one core, from a CSV file to the folder of "
        f"results, libraries loaded.\n\n## Start\n\n{markdown(begun)}\n"
        f"Wall seconds of a whole process, the best of {_REPEATS}.\n"
    )


def main() -> None:
    """Profile all sizes and write the results."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    profile(3, 100, {"max_epochs": 1})  # loads what is loaded when first used
    rows = [
        {"data": f"N = {n}, T = {t}", "stage": stage, "seconds": round(seconds, 4)}
        for n, t in SIZES
        for stage, seconds in profile(n, t).items()
    ]
    starts = {what: start_seconds(arguments) for what, arguments in _STARTS.items()}
    frame = pd.DataFrame(rows)
    write_text(options.out / "results.csv", frame.to_csv(index=False))
    write_text(options.out / "table.md", profile_markdown(frame, starts))
    command = ["python", "-m", "causalformer.bench.profile", *sys.argv[1:]]
    write_environment(options.out / "environment.json", command)


if __name__ == "__main__":
    main()
