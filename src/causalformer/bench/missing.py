"""How much is lost when values are missing: benchmark folders with holes cut into them.

``python -m causalformer.bench.missing --data ../shared/data --out benchmarks/missing`` removes 10,
30 and 50 % of the values of files, one by one at random or in blocks of 20 slots, and fits the
default, which leaves missing values out, and the VAR test and PCMCI after straight lines were drawn
through the holes.
"""

import argparse
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from causalformer.bench.drawn import Pattern, filled, with_holes
from causalformer.bench.environment import write_environment
from causalformer.bench.tables import markdown
from causalformer.datasets.folders import BenchmarkFile, load_folder
from causalformer.files import write_text

FOLDERS = ("diamond", "mediator", "v_structure", "fork", "lorenz96")
SHARES = (0.0, 0.1, 0.3, 0.5)


@dataclass(frozen=True)
class Outcome:
    """What one method found in one file with holes."""

    folder: str
    file: str
    pattern: str
    share: float
    method: str
    f1: float
    off_diagonal_f1: float
    pod: float
    seconds: float


def run(folder: str, file: BenchmarkFile, share: float, pattern: Pattern) -> list[Outcome]:
    """Cut holes into one file and let every method judge it."""
    import time
    import warnings

    from causalformer.baselines import PCMCI, VarGranger
    from causalformer.bench.timing import one_thread
    from causalformer.errors import DataWarning
    from causalformer.estimator import CausalFormer
    from causalformer.metrics import evaluate

    made = file.load()
    rng = np.random.default_rng([len(folder), int(100 * share), *file.name.encode()])
    table = replace(made.series, values=with_holes(made.series.values, share, pattern, rng))
    without_holes = filled(table)
    methods: dict[str, Any] = {
        "default": (CausalFormer(device="cpu"), table),
        "interpolated, var": (VarGranger(), without_holes),
        "interpolated, pcmci": (PCMCI(), without_holes),
    }
    outcomes = []
    for name, (method, series) in methods.items():
        started = time.perf_counter()
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            method.fit(series)
        seconds = time.perf_counter() - started
        found = evaluate(method.graph_, made.truth, method.edge_scores_)
        outcomes.append(
            Outcome(
                folder,
                file.name,
                pattern if share else "none",
                share,
                name,
                found.f1,
                found.off_diagonal_f1,
                found.pod,
                round(seconds, 3),
            )
        )
    return outcomes


def table_of(outcomes: list[Outcome]) -> str:
    """Give the means over the files of a folder as Markdown."""
    import pandas as pd

    frame = pd.DataFrame([asdict(o) for o in outcomes])
    keys = ["folder", "pattern", "share", "method"]
    means = frame.drop(columns="file").groupby(keys, sort=False).mean().reset_index()
    complete = means[(means["share"] == 0) & (means["method"] == "default")]
    whole = complete.set_index("folder")["f1"]
    means.insert(5, "below complete", means["folder"].map(whole) - means["f1"])
    return "# Missing values\n\n" + markdown(means)


def main() -> None:
    """Run all folders and write the results."""
    import pandas as pd
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--files", type=int, default=5, help="of each folder, the first so many")
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    jobs = [
        delayed(run)(name, file, share, pattern)
        for name in FOLDERS
        for file in load_folder(options.data / name)[: options.files]
        for share in SHARES
        for pattern in (("random", "blocks") if share else ("random",))
    ]
    outcomes = [o for result in Parallel(options.n_jobs, verbose=1)(jobs) for o in result]
    frame = pd.DataFrame([asdict(o) for o in outcomes])
    write_text(options.out / "results.csv", frame.to_csv(index=False))
    write_text(options.out / "table.md", table_of(outcomes))
    command = ["python", "-m", "causalformer.bench.missing", *sys.argv[1:]]
    write_environment(options.out / "environment.json", command)


if __name__ == "__main__":
    main()
