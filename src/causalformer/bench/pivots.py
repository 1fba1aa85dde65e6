"""Methods side by side, data sets below one another: for papers (LaTeX) and documents."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from causalformer.bench.tables import markdown_line, summarise

if TYPE_CHECKING:
    import pandas as pd

CAPTIONS: Final[Mapping[str, str]] = {
    "f1": "F1, self-loops included",
    "off_diagonal_f1": "F1 without self-loops",
    "window_f1": "F1 of edges with the right lag, self-loops included",
    "pod": "Precision of delay, strict, self-loops included",
    "off_diagonal_pod": "Precision of delay, strict, without self-loops",
    "parity_off_diagonal_f1": "F1 without self-loops, every method read by the paper's k-means",
    "cpu_seconds": "CPU seconds of one fit on one core",
    "peak_gb": "Peak memory of the process in GB, with libraries and what earlier jobs left",
}
"""The measures that are set in tables, with what they are."""


FAILED: Final = "*"
"""Marks a mean that leaves out files on which the method failed."""

_LATEX: Final = str.maketrans(
    {
        **{mark: "\\" + mark for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "–": "--",
    }
)


def pivot(
    results: "pd.DataFrame", measure: str, methods: Sequence[str] | None = None
) -> "pd.DataFrame":
    """Give ``mean ± std`` of a measure: a row per data set, a column per method, – for none.

    The best mean of a row is bold, for seconds and memory the smallest.
    """
    import pandas as pd

    summary = summarise(results)
    names = list(dict.fromkeys(summary["method"])) if methods is None else list(methods)
    rows = []
    for (folder, orientation), part in summary.groupby(["folder", "orientation"], sort=False):
        means = part.set_index("method")[f"{measure}_mean"]
        spreads = part.set_index("method")[f"{measure}_std"]
        failed = part.set_index("method")["n_failed"]
        best = means.min() if measure in ("cpu_seconds", "peak_gb") else means.max()
        row = {"data": f"{folder} ({orientation})" if orientation else str(folder)}
        for name in names:
            row[name] = _cell(
                float(means.get(name, float("nan"))), float(spreads.get(name, float("nan"))), best
            ) + (FAILED if failed.get(name, 0) else "")
        rows.append(row)
    return pd.DataFrame(rows, columns=["data", *names])


def pivots_markdown(results: "pd.DataFrame") -> str:
    """Give every measure as a Markdown table of methods × data sets."""
    parts = ["# Methods side by side\n"]
    for measure, caption in CAPTIONS.items():
        frame = pivot(results, measure)
        lines = [list(frame.columns), ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
        body = "\n".join(markdown_line(tuple(line)) for line in lines)
        parts.append(f"## {caption}\n\n{body}\n")
    parts.append(f"{FAILED} without the files on which the method failed.\n")
    return "\n".join(parts)


def pivots_latex(results: "pd.DataFrame") -> str:
    """Give every measure as a LaTeX table."""
    return "\n".join(
        _latex(pivot(results, measure), measure, caption) for measure, caption in CAPTIONS.items()
    )


def _latex(frame: "pd.DataFrame", measure: str, caption: str) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(_escaped(cell) for cell in cells) + r" \\"

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escaped(caption)}.}}",
            rf"\label{{table:{measure}}}",
            rf"\begin{{tabular}}{{l{'r' * (frame.shape[1] - 1)}}}",
            r"\hline",
            line(list(frame.columns)),
            r"\hline",
            *(line(row) for row in frame.to_numpy().tolist()),
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _escaped(text: str) -> str:
    r"""Make a cell safe for LaTeX; Markdown's bold becomes LaTeX's.

    Examples
    --------
    >>> print(_escaped("**0.97 ± 0.02**"), _escaped("v_structure"))
    \textbf{0.97 $\pm$ 0.02} v\_structure
    """
    text = text.translate(_LATEX)
    return re.sub(r"^\*\*(.*)\*\*$", r"\\textbf{\1}", text)


def _cell(mean: float, std: float, best: float) -> str:
    if mean != mean:
        return "–"
    text = f"{mean:.2f}" + (f" ± {std:.2f}" if std == std else "")
    return f"**{text}**" if mean == best else text
