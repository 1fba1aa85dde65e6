"""The paper's case study fMRI-15 over many seeds: what one published graph is worth.

``python -m causalformer.bench.case_study --data ../shared/data --reference ../shared/reference
--out benchmarks/case-study`` fits ``paper-fmri`` with every seed and sets what comes out beside
runs of the published implementation with other seeds. The published graph has four true edges
between regions, two false ones, both indirect, and misses one.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from causalformer.bench.environment import write_environment
from causalformer.bench.figures import save_figure
from causalformer.bench.tables import markdown
from causalformer.bench.timing import one_thread
from causalformer.datasets import Generated, load_folder
from causalformer.estimator import CausalFormer
from causalformer.files import write_text
from causalformer.graph import CausalGraph
from causalformer.metrics import evaluate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED: Final = {"true": 4, "false": 2, "indirect": 2, "missed": 1}
"""Edges between regions in the published graph."""

FILE: Final = 15
SETTINGS: dict[str, Any] = {}
"""What is changed in ``paper-fmri``: nothing."""

_COUNTS: Final = {
    "true_between": "true",
    "false_between": "false",
    "missed_between": "missed",
    "off_diagonal_f1": "off-diagonal F1",
    "f1": "F1",
    "self_loops": "self-loops",
}  # columns of the reference's seed_runs.csv, and ours


def counted(graph: CausalGraph, truth: CausalGraph) -> dict[str, int]:
    """Count the edges between series: true, false, of these indirect, and missed.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> truth = CausalGraph(("a", "b", "c"), (Edge("a", "b", 1, 1.0), Edge("b", "c", 1, 1.0)))
    >>> counted(CausalGraph(("a", "b", "c"), (Edge("a", "c", 1, 1.0),)), truth)
    {'true': 0, 'false': 1, 'indirect': 1, 'missed': 2}
    """
    apart = ~np.eye(len(truth.names), dtype=bool)
    found, true = graph.summary() & apart, truth.summary() & apart
    steps = true | ~apart
    reached = np.linalg.matrix_power(steps.astype(np.int64), len(steps)) > 0
    return {
        "true": int((found & true).sum()),
        "false": int((found & ~true).sum()),
        "indirect": int((found & ~true & reached).sum()),
        "missed": int((true & ~found).sum()),
    }


def run(made: Generated, n_seeds: int, n_jobs: int = 1) -> "pd.DataFrame":
    """Fit the preset with every seed; one row each."""
    rows = Parallel(n_jobs)(delayed(_one)(made, seed) for seed in range(n_seeds))
    return pd.DataFrame(rows)


def _one(made: Generated, seed: int) -> dict[str, float]:
    with one_thread():
        model = CausalFormer("paper-fmri", settings=SETTINGS, random_state=seed, device="cpu")
        model.fit(made.series)
    agreement = evaluate(model.graph_, made.truth)
    return {
        "seed": seed,
        "F1": agreement.f1,
        "off-diagonal F1": agreement.off_diagonal_f1,
        **counted(model.graph_, made.truth),
        "self-loops": int(model.graph_.summary().diagonal().sum()),
        "epochs": len(model.history_.epochs),
    }


def reference_runs(path: Path) -> "pd.DataFrame":
    """Read the published implementation's runs of the case study, in our columns."""
    runs = pd.read_csv(path)
    runs = runs[(runs["data"] == "fmri") & (runs["file"] == FILE)]
    return runs.rename(columns=_COUNTS)


def table(ours: "pd.DataFrame", reference: "pd.DataFrame") -> str:
    """Give means and spread over the seeds, and how often notable graphs came, as Markdown."""
    lines = [
        "# fMRI-15 over seeds: the preset and the published implementation\n",
        markdown(
            pd.DataFrame(
                [
                    {"runs": "`paper-fmri`", **_summary(ours)},
                    {"runs": "published implementation", **_summary(reference)},
                ]
            )
        ),
        "Mean ± standard deviation over seeds. The published graph (4 true, 2 false, both "
        f"indirect, 1 missed) came out in {_as_published(ours)} of {len(ours)} seeds of ours; "
        f"graphs with these counts of true, false and missed edges in {_same_counts(ours)} of "
        f"{len(ours)} of ours and {_same_counts(reference)} of {len(reference)} of the published "
        "implementation's other seeds.\n",
    ]
    return "\n".join(lines)


def _summary(runs: "pd.DataFrame") -> dict[str, object]:
    between = runs["true"] + runs["false"]
    return {
        "seeds": len(runs),
        **{
            name: f"{runs[name].mean():.2f} ± {runs[name].std(ddof=1):.2f}"
            for name in ("F1", "off-diagonal F1", "true", "false", "missed", "self-loops")
        },
        "self-loops only": f"{((between == 0) & (runs['self-loops'] == 5)).mean():.0%}",
        "no self-loop": f"{(runs['self-loops'] == 0).mean():.0%}",
    }


def _same_counts(runs: "pd.DataFrame") -> int:
    names = ["true", "false", "missed"]
    return int((runs[names] == [PUBLISHED[name] for name in names]).all(axis=1).sum())


def _as_published(runs: "pd.DataFrame") -> int:
    return int((runs[list(PUBLISHED)] == list(PUBLISHED.values())).all(axis=1).sum())


def lottery(ours: "pd.DataFrame", reference: "pd.DataFrame") -> "Figure":
    """Draw every seed by F1 and off-diagonal F1; the published run is marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    jitter = np.random.default_rng(0)
    for runs, marker, colour, label in (
        (ours, "o", "#56708c", f"paper-fmri, {len(ours)} seeds"),
        (reference, "s", "#d55e00", f"published implementation, {len(reference)} other seeds"),
    ):
        x, y = (runs[name] + jitter.normal(0, 0.008, len(runs)) for name in _AXES)
        axes.plot(x, y, marker, color=colour, alpha=0.6, markersize=7, label=label)
    axes.plot(0.857, 8 / 11, "*", color="black", markersize=15, label="published run")
    axes.set(
        xlabel="F1, self-loops included",
        ylabel="F1 off the diagonal",
        title="fMRI-15: one method, one file, many seeds (points spread a little)",
        xlim=(0, 1.05),
        ylim=(-0.05, 1.05),
    )
    axes.legend(loc="upper left", fontsize=8)
    axes.grid(alpha=0.3)
    return figure


_AXES: Final = ("F1", "off-diagonal F1")


def main() -> None:
    """Run all seeds and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    files = load_folder(options.data / "fmri", orientation="as-published")
    (case,) = (file for file in files if file.name == f"timeseries{FILE}")
    reference = reference_runs(options.reference / "seed_runs.csv")
    results = run(case.load(), options.seeds, options.n_jobs)
    write_text(options.out / "results.csv", results.to_csv(index=False))
    write_text(options.out / "table.md", table(results, reference))
    save_figure(lottery(results, reference), options.out / "seeds.png")
    command = ["python", "-m", "causalformer.bench.case_study", *sys.argv[1:]]
    write_environment(options.out / "environment.json", command)


if __name__ == "__main__":
    main()
