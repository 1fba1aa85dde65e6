"""Everything a benchmark leaves besides its rows: tables, comparison and pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from causalformer.bench.ablations import ABLATIONS
from causalformer.bench.comparison import comparison_markdown
from causalformer.bench.figures import (
    accuracy_against_time,
    graphs_beside_truth,
    heat_map,
    save_figure,
)
from causalformer.bench.methods import COMPARED
from causalformer.bench.paper_tables import paper_markdown
from causalformer.bench.pivots import pivots_latex, pivots_markdown
from causalformer.bench.runner import BenchPlan, graph_path, plan_jobs
from causalformer.bench.scaling import scaling_markdown
from causalformer.files import write_atomically, write_text
from causalformer.graph import CausalGraph

if TYPE_CHECKING:
    import pandas as pd

CASE: Final = ("fmri", "timeseries15")
"""The folder and file of the paper's case study, whose graphs are drawn beside the truth."""


def write_report(results: "pd.DataFrame", out: str | Path) -> None:
    """Write what can be read without looking at single rows.

    Parameters
    ----------
    results : DataFrame
        What `causalformer.bench.run_bench` returns.
    out : str or Path
        Folder for ``results.parquet``, ``methods.md``, ``methods.tex``, ``comparison.md``,
        ``f1-against-time.png`` and ``heat-map.png``.
    """
    out = Path(out)
    write_atomically(out / "results.parquet", lambda path: results.to_parquet(path, index=False))
    compared = results[~results["method"].isin(ABLATIONS)]
    write_text(out / "methods.md", pivots_markdown(compared))
    write_text(out / "methods.tex", pivots_latex(compared))
    write_text(out / "comparison.md", comparison_markdown(compared))
    save_figure(accuracy_against_time(compared), out / "f1-against-time.png")
    save_figure(heat_map(compared), out / "heat-map.png")


def write_paper_report(results: "pd.DataFrame", plan: BenchPlan, out: str | Path) -> None:
    """Write ``paper-tables.md``, and the graphs of the case study as ``fmri-15.png``."""
    out = Path(out)
    write_text(out / "paper-tables.md", paper_markdown(results))
    graphs: dict[str, CausalGraph] = {}
    truth = None
    for job in plan_jobs(plan):
        path = graph_path(out, job)
        if (job.folder, job.file.name) == CASE and job.method.name in COMPARED and path.exists():
            graphs.setdefault(job.method.name, CausalGraph.load(path))
            truth = truth or job.file.load().truth
    if truth is not None:
        save_figure(graphs_beside_truth(graphs, truth), out / "fmri-15.png")


def write_scaling_report(results: "pd.DataFrame", out: str | Path) -> None:
    """Write ``scaling.md``: how time grows."""
    write_text(Path(out) / "scaling.md", scaling_markdown(results))
