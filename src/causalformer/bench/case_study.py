"""The paper's case study fMRI-15, over many seeds and over readings of the text.

``python -m causalformer.bench.case_study --data ../shared/data --out benchmarks/case-study`` counts
the edges between regions that each variant of the preset finds, against the truth as published.
The published graph has four true ones, two false ones, both indirect, and misses one.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd

from causalformer.bench.environment import write_environment
from causalformer.bench.tables import markdown
from causalformer.datasets import Generated, load_folder
from causalformer.estimator import CausalFormer
from causalformer.files import write_text
from causalformer.graph import CausalGraph

PUBLISHED: Final = (4, 2, 1)
"""True, false and missed edges between regions in the published graph."""

VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "preset": {},
        "positive": {"relevance_sign": "positive"},
        "separate": {"projections": "separate"},
        "separate, positive": {"projections": "separate", "relevance_sign": "positive"},
        "no norm": {"normalisation": "none"},
        "the text": {
            "projections": "separate",
            "normalisation": "none",
            "relevance_sign": "positive",
            "explained_slots": "all",
        },
        "two of three classes": {"n_clusters": 3, "top_clusters": 2},
    }
)
"""What each variant changes in ``paper-fmri``."""


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


def run(made: Generated, n_seeds: int) -> "pd.DataFrame":
    """Fit every variant with every seed; one row each."""
    rows = []
    for variant, settings in VARIANTS.items():
        for seed in range(n_seeds):
            model = CausalFormer(
                "paper-fmri", settings=dict(settings), random_state=seed, device="cpu"
            )
            counts = counted(model.fit(made.series).graph_, made.truth)
            rows.append({"variant": variant, "seed": seed, **counts})
    return pd.DataFrame(rows)


def table(results: "pd.DataFrame") -> str:
    """Give means over the seeds, and how often the counts are the published ones, as Markdown."""
    counts = results[["true", "false", "missed"]]
    as_published = (counts == list(PUBLISHED)).all(axis=1)
    nothing = (results["true"] + results["false"]) == 0
    results = results.assign(**{"as published": as_published, "self-loops only": nothing})
    means = results.drop(columns="seed").groupby("variant", sort=False).mean().reset_index()
    return "# fMRI-15, edges between regions: means over seeds\n\n" + markdown(means)


def main() -> None:
    """Run all variants and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=50)
    options = parser.parse_args()
    files = load_folder(options.data / "fmri", orientation="as-published")
    (case,) = (file for file in files if file.name == "timeseries15")
    results = run(case.load(), options.seeds)
    write_text(options.out / "results.csv", results.to_csv(index=False))
    write_text(options.out / "table.md", table(results))
    command = ["python", "-m", "causalformer.bench.case_study", *sys.argv[1:]]
    write_environment(options.out / "environment.json", command)


if __name__ == "__main__":
    main()
