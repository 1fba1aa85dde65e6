"""Whether one method is better than another, file by file, beyond chance."""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.bench.tables import markdown
from causalformer.config import DEFAULT

if TYPE_CHECKING:
    import pandas as pd

MEASURE: Final = "off_diagonal_f1"
"""What is compared: self-loops say nothing about a method."""

_NOTE = (
    "Every file counts once, averaged over seeds; fMRI as in NetSim. Rank 1 is the best of all "
    "methods on a file, ties share. p: Wilcoxon's signed rank test of the differences, two-sided, "
    "corrected for the number of methods (Holm). A failure counts as a graph without edges."
)


def by_file(results: "pd.DataFrame", measure: str = MEASURE) -> "pd.DataFrame":
    """Give one row per file and one column per method; what failed found nothing.

    Methods that were not run on every file are left out, so that all are judged by the same.
    """
    rows = results[results["orientation"] != "as-published"]
    figures = rows.assign(**{measure: rows[measure].fillna(0.0)})
    wide = figures.groupby(["folder", "file", "method"], sort=False)[measure].mean()
    return wide.unstack("method").dropna(axis="columns")


def compare(results: "pd.DataFrame", with_method: str = DEFAULT) -> "pd.DataFrame":
    """Compare one method with every other, paired by file.

    Returns
    -------
    DataFrame
        One row per method, best mean rank first: ``mean rank``, ``mean`` of the off-diagonal F1,
        and against `with_method` ``difference`` (positive: `with_method` is better), ``wins``,
        ``ties``, ``losses`` and the corrected ``p``.

    Examples
    --------
    >>> from causalformer.bench.result_file import as_row, results_frame
    >>> rows = [
    ...     as_row({"folder": "d", "file": i, "method": m, "off_diagonal_f1": f})
    ...     for m, f in (("default", 0.9), ("var", 0.5)) for i in range(6)
    ... ]
    >>> compare(results_frame(rows))[["method", "mean rank", "wins", "p"]]
        method  mean rank  wins        p
    0  default        1.0     0      NaN
    1      var        2.0     6  0.03125
    """
    import pandas as pd
    from scipy.stats import wilcoxon

    figures = by_file(results)
    ranks = figures.rank(axis=1, ascending=False)
    rows = []
    for method in ranks.mean().sort_values(kind="stable").index:
        row = {"method": method, "mean rank": ranks[method].mean(), "mean": figures[method].mean()}
        p = np.nan
        if with_method in figures:
            gap = figures[with_method] - figures[method]
            row |= {
                "difference": gap.mean(),
                "wins": int((gap > 0).sum()),
                "ties": int((gap == 0).sum()),
                "losses": int((gap < 0).sum()),
            }
            if gap.any():
                p = float(wilcoxon(gap).pvalue)
            elif method != with_method:
                p = 1.0
        rows.append({**row, "p": p})
    frame = pd.DataFrame(rows)
    if not frame.empty:
        frame["p"] = _holm(frame["p"].to_numpy(dtype=float))
    return frame


def comparison_markdown(results: "pd.DataFrame", with_method: str = DEFAULT) -> str:
    """Give the comparison as a Markdown document."""
    n_files = len(by_file(results))
    table = compare(results, with_method)
    if not table.empty:
        table["p"] = [_readable(p) for p in table["p"]]
    title = f"# Off-diagonal F1 over {n_files} files, compared with {with_method}"
    return f"{title}\n\n{markdown(table)}\n{_NOTE}\n"


def _readable(p: float) -> str:
    return "–" if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correct p-values for their number, step down; NaN stays."""
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected = p.copy()
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps)) if len(order) else steps
    return corrected
