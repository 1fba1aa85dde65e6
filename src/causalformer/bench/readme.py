"""Put the committed results into the README: its figures are never typed.

``python -m causalformer.bench.readme README.md benchmarks`` replaces what stands between each pair
of markers by a table of the results under ``benchmarks/default`` and ``benchmarks/paper``.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from causalformer.bench.methods import COMPARED, PAPER, REFERENCES
from causalformer.bench.published import F1, OFF_DIAGONAL
from causalformer.bench.result_file import read_rows, results_frame
from causalformer.bench.tables import summarise
from causalformer.config import DEFAULT
from causalformer.errors import FileFormatError
from causalformer.files import read_text, write_text

if TYPE_CHECKING:
    import pandas as pd

BEGIN: Final = "<!-- {part}: generated from benchmarks/{folder}/results.csv by `make readme` -->"
END: Final = "<!-- end of the generated part -->"


def default_table(results: "pd.DataFrame") -> str:
    """Return one Markdown line per folder: the default beside the trivial rows.

    Every cell is ``F1 / F1 off the diagonal``, for the default with the strict PoD.
    """
    summary = summarise(results)
    lines = [
        "| F1 / off the diagonal | causalformer | its lags right | VAR F-test | self-loops only |",
        "|---|---:|---:|---:|---:|",
    ]
    for folder in F1:
        ours, var, loops = (_row(summary, folder, m) for m in ("default", "var", "self-loops"))
        lags = "–" if folder == "fmri" else f"{ours['pod_mean']:.2f}"
        lines.append(f"| {folder} | **{_cell(ours)}** | {lags} | {_cell(var)} | {_cell(loops)} |")
    return "\n".join(lines)


def paper_table(results: "pd.DataFrame") -> str:
    """Return one Markdown line per folder: published, ours, and the trivial rows.

    Every cell is ``F1 / F1 off the diagonal``.
    """
    summary = summarise(results)
    lines = [
        "| F1 / off the diagonal | published | `paper-*` presets | self-loops only | VAR F-test |",
        "|---|---:|---:|---:|---:|",
    ]
    for folder, published in F1.items():
        ours, loops, var = (_row(summary, folder, m, "netsim") for m in (PAPER, *REFERENCES))
        spread = f"{ours['f1_mean']:.2f} ± {ours['f1_std']:.2f}"
        cells = f"{spread} / {ours['off_diagonal_f1_mean']:.2f} | {_cell(loops)} | {_cell(var)}"
        lines.append(f"| {folder} | {published[PAPER]} / {OFF_DIAGONAL[folder]:.2f} | {cells} |")
    return "\n".join(lines)


def methods_table(results: "pd.DataFrame") -> str:
    """Return one Markdown line per method, the best first: F1 off the diagonal, and seconds."""
    shown = results[(results["orientation"] != "as-published") & results["method"].isin(COMPARED)]
    summary = summarise(shown)
    figures = summary.pivot(index="method", columns="folder", values="off_diagonal_f1_mean")[[*F1]]
    seconds = summary.groupby("method")["cpu_seconds_mean"].mean()
    best = figures.max()
    lines = [
        f"| F1 off the diagonal | {' | '.join(F1)} | mean | CPU seconds |",
        f"|---|{'---:|' * (len(F1) + 2)}",
    ]
    for method in figures.mean(axis=1).sort_values(ascending=False, kind="stable").index:
        row = figures.loc[method]
        cells = [f"**{v:.2f}**" if v == best[name] else f"{v:.2f}" for name, v in row.items()]
        name = f"**{method}**" if method == DEFAULT else f"{method}"
        time = f"{seconds[method]:.1f}" if seconds[method] >= 0.05 else "0.0"
        lines.append(f"| {name} | {' | '.join(cells)} | {row.mean():.2f} | {time} |")
    return "\n".join(lines)


def _row(
    summary: "pd.DataFrame", folder: str, method: str, other_than: str = "as-published"
) -> dict[str, Any]:
    here = (summary["folder"] == folder) & (summary["method"] == method)
    here &= summary["orientation"] != other_than
    (row,) = summary[here].to_dict("records")
    return {str(key): value for key, value in row.items()}


def _cell(row: dict[str, Any]) -> str:
    return f"{row['f1_mean']:.2f} / {row['off_diagonal_f1_mean']:.2f}"


TABLES: Final = {
    "default": ("default", default_table),
    "methods": ("paper", methods_table),
    "paper": ("paper", paper_table),
}
"""The folder of the results and what makes a table of them, by the generated part."""


def with_table(readme: str, part: str, table: str) -> str:
    """Replace one generated part of the README."""
    marker = BEGIN.format(part=part, folder=TABLES[part][0])
    before, begin, rest = readme.partition(marker)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise FileFormatError(f"the README has no part between {marker!r} and {END!r}")
    return f"{before}{marker}\n{table}\n{END}{after}"


def main() -> None:
    """Rewrite the README in place."""
    path, benchmarks = map(Path, sys.argv[1:])
    readme = read_text(path)
    for part, (folder, table) in TABLES.items():
        results = results_frame(read_rows(benchmarks / folder / "results.csv"))
        readme = with_table(readme, part, table(results))
    write_text(path, readme)


if __name__ == "__main__":
    main()
