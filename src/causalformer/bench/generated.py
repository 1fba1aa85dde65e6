"""Is the promised rate of false edges kept? Many generated systems, no truth looked at.

``python -m causalformer.bench.generated --out benchmarks/generated`` draws systems of every family,
fits the default and the VAR test, and writes one row per system and a table per suite:

calibration
    Linear and nonlinear systems, three noise laws, strong memory, 3 to 20 series, 100 to 4000
    slots, some without any edge between series. The realised false discovery rate must stay
    below 1.2 times alpha, and of the graphs without edges at most alpha may get one.
hidden
    25 series of 4000 slots with hidden common drivers.
max_lag
    The same systems with 2, 5 and 10 lags.
recordings
    One recording of 1000 slots, or ten of 100 slots of the same system.
"""

import argparse
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from causalformer.bench.environment import write_environment
from causalformer.bench.tables import markdown
from causalformer.data import SeriesTable
from causalformer.datasets import (
    Generated,
    make_lorenz96,
    make_random_system,
    make_structure,
    make_var,
)
from causalformer.datasets.structures import STRUCTURES
from causalformer.files import write_text

_FIRST_SEED = 10_000  # far from the seeds that settings were chosen on


@dataclass(frozen=True)
class System:
    """One system to be drawn, and the lags it is fitted with."""

    suite: str
    family: str
    make: Callable[[], Generated]
    max_lag: int = 5


@dataclass(frozen=True)
class Outcome:
    """What one method found in one system; counts are edges between two series."""

    suite: str
    family: str
    method: str
    max_lag: int
    n_series: int
    n_slots: int
    n_true: int
    n_found: int
    n_false: int
    off_diagonal_f1: float
    f1: float
    pod: float
    warned: bool
    seconds: float


def systems(n_repeats: int) -> Iterator[System]:
    """List the systems of all suites; the same call gives the same systems."""
    for repeat in range(n_repeats):
        rng = np.random.default_rng(_FIRST_SEED + repeat)
        for family, make in _families(rng):
            yield System("calibration", family, make)
    for repeat in range(max(1, n_repeats // 3)):
        rng = np.random.default_rng(2 * _FIRST_SEED + repeat)
        for share in (0.5, 0.8):
            seed = int(rng.integers(1 << 31))
            yield System(
                "hidden",
                f"drivers' share {share}",
                partial(
                    make_random_system,
                    25,
                    4000,
                    n_edges=20,
                    n_hidden=3,
                    hidden_share=share,
                    links="linear",
                    random_state=seed,
                ),
            )
    for repeat in range(max(1, n_repeats // 3)):
        rng = np.random.default_rng(3 * _FIRST_SEED + repeat)
        chosen = [make for family, make in _families(rng) if family in _LAG_FAMILIES]
        for max_lag in (2, 5, 10):
            for make in chosen:
                yield System("max_lag", f"max_lag {max_lag}", make, max_lag)
    for repeat in range(n_repeats):
        rng = np.random.default_rng(5 * _FIRST_SEED + repeat)
        seed = int(rng.integers(1 << 31))
        made = {
            "var": partial(make_var, 6, 2000, max_lag=2, random_state=seed),
            "lorenz": partial(make_lorenz96, 10, 2000, random_state=seed),
        }
        for family, make in made.items():
            for n_recordings in (1, 10):
                length = 1000 // n_recordings
                yield System(
                    "recordings",
                    f"{family}, {n_recordings} x {length}",
                    partial(_recorded, make, n_recordings, length),
                )


def _recorded(make: Callable[[], Generated], n_recordings: int, length: int) -> Generated:
    """Cut recordings out of a long series, as far apart as they are long."""
    made = make()
    values, names = made.series.values, made.series.names
    parts = [values[2 * i * length :][:length] for i in range(n_recordings)]
    table = SeriesTable(
        np.concatenate(parts),
        names,
        source=made.series.source,
        starts=tuple(range(0, n_recordings * length, length)),
        runs=tuple(map(str, range(n_recordings))),
    )
    return Generated(table, made.truth)


_LAG_FAMILIES = ("structure", "lorenz", "linear, gaussian")


def _families(rng: np.random.Generator) -> Iterator[tuple[str, Callable[[], Generated]]]:
    def seed() -> int:
        return int(rng.integers(1 << 31))

    def slots(*choices: int) -> int:
        return int(rng.choice(choices))

    for links in ("linear", "nonlinear"):
        for law in ("gaussian", "student", "skewed"):
            n_series = int(rng.integers(3, 21))
            yield (
                f"{links}, {law}",
                partial(
                    make_random_system,
                    n_series,
                    slots(100, 200, 500, 1000, 2000, 4000),
                    max_lag=2,
                    links=links,
                    noise_law=law,
                    random_state=seed(),
                ),
            )
    yield (
        "strong memory",
        partial(
            make_random_system,
            int(rng.integers(3, 13)),
            slots(200, 500, 1500),
            memory=(0.8, 0.95),
            max_lag=2,
            random_state=seed(),
        ),
    )
    yield (
        "var",
        partial(
            make_var,
            int(rng.integers(3, 11)),
            slots(200, 600, 2000),
            max_lag=2,
            random_state=seed(),
        ),
    )
    name = str(rng.choice(list(STRUCTURES)))
    yield "structure", partial(make_structure, name, slots(500, 1000, 4000), random_state=seed())
    yield (
        "lorenz",
        partial(make_lorenz96, int(rng.integers(6, 13)), slots(500, 1000), random_state=seed()),
    )
    for law in ("gaussian", "student", "skewed"):
        yield (
            f"no edges, {law}",
            partial(
                make_random_system,
                int(rng.integers(3, 21)),
                slots(100, 200, 500, 1000, 4000),
                n_edges=0,
                memory=(0.0, 0.95),
                noise_law=law,  # type: ignore[arg-type]
                random_state=seed(),
            ),
        )


def run(system: System) -> list[Outcome]:
    """Draw a system and let every method judge it."""
    import time
    import warnings

    from causalformer.baselines import VarGranger
    from causalformer.bench.timing import one_thread
    from causalformer.errors import CausalFormerError, DataWarning
    from causalformer.estimator import CausalFormer
    from causalformer.metrics import evaluate

    made = system.make()
    outcomes = []
    methods: dict[str, Any] = {
        "default": CausalFormer(max_lag=system.max_lag, device="cpu"),
        "var": VarGranger(),
    }
    for name, method in methods.items():
        started = time.perf_counter()
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            try:
                graph = method.fit(made.series).graph_
            except CausalFormerError:  # too short for that many lags
                continue
        seconds = time.perf_counter() - started
        found = {(e.cause, e.effect) for e in graph if e.cause != e.effect}
        true = {(e.cause, e.effect) for e in made.truth if e.cause != e.effect}
        measured = evaluate(graph, made.truth, method.edge_scores_)
        outcomes.append(
            Outcome(
                system.suite,
                system.family,
                name,
                system.max_lag,
                made.series.n_series,
                made.series.n_slots,
                len(true),
                len(found),
                len(found - true),
                measured.off_diagonal_f1,
                measured.f1,
                measured.pod,
                any("hidden common drivers" in str(w.message) for w in caught),
                round(seconds, 3),
            )
        )
    return outcomes


def table(outcomes: list[Outcome]) -> str:
    """Sum the outcomes up, one Markdown table per suite."""
    import pandas as pd

    frame = pd.DataFrame([asdict(o) for o in outcomes])
    frame["false share"] = frame["n_false"] / frame["n_found"].clip(lower=1)
    frame["graphs with a false edge"] = (frame["n_false"] > 0).astype(float)
    frame.loc[frame["n_true"] == 0, "off_diagonal_f1"] = np.nan
    text = io.StringIO()
    text.write("# Generated systems\n")
    for suite, part in frame.groupby("suite", sort=False):
        grouped = part.groupby(["family", "method"], sort=False)
        shown = pd.concat(
            [
                grouped.size().rename("systems"),
                grouped[
                    [
                        "f1",
                        "off_diagonal_f1",
                        "pod",
                        "false share",
                        "graphs with a false edge",
                        "warned",
                        "seconds",
                    ]
                ].mean(),
            ],
            axis=1,
        ).reset_index()
        text.write(f"\n## {suite}\n\n{markdown(shown)}")
    ours = frame[(frame["suite"] == "calibration") & (frame["method"] == "default")]
    none = ours[ours["n_true"] == 0]
    text.write(
        f"\nAll calibration systems, default: mean share of false edges "
        f"{ours['false share'].mean():.3f} over {len(ours)} systems; "
        f"{int(none['graphs with a false edge'].sum())} of {len(none)} systems without edges got "
        "one. Only edges between series are counted.\n"
    )
    return text.getvalue()


def main() -> None:
    """Run all suites and write the results."""
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    results = Parallel(n_jobs=options.n_jobs, verbose=1)(
        delayed(run)(system)
        for system in systems(options.repeats)
        if not options.family or system.family in options.family
    )
    outcomes = [outcome for result in results for outcome in result]
    stream = io.StringIO()
    import pandas as pd

    pd.DataFrame([asdict(o) for o in outcomes]).to_csv(stream, index=False)
    write_text(options.out / "results.csv", stream.getvalue())
    write_text(options.out / "table.md", table(outcomes))
    command = ["python", "-m", "causalformer.bench.generated", *sys.argv[1:]]
    write_environment(options.out / "environment.json", command)


if __name__ == "__main__":
    main()
