"""Put the committed results into the README: its figures are never typed.

``python -m causalformer.bench.readme README.md benchmarks`` replaces what stands between each pair
of markers by a table of the results under ``benchmarks/default`` and ``benchmarks/paper``.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from causalformer.bench.result_file import read_rows, results_frame
from causalformer.bench.tables import summarise
from causalformer.errors import FileFormatError
from causalformer.files import read_text, write_text

if TYPE_CHECKING:
    import pandas as pd

BEGIN: Final = "<!-- generated from benchmarks/{part}/results.csv by `make readme` -->"
END: Final = "<!-- end of the generated part -->"

PUBLISHED: Final = {
    "diamond": "0.68 ± 0.08",
    "mediator": "0.71 ± 0.06",
    "v_structure": "0.77 ± 0.05",
    "fork": "0.79 ± 0.11",
    "lorenz96": "0.69 ± 0.06",
    "fmri": "0.66 ± 0.09",
}
"""F1 of the paper's Table 1."""


def default_table(results: "pd.DataFrame") -> str:
    """Return one Markdown line per folder: the default beside the trivial rows.

    Every cell is ``F1 / F1 off the diagonal``, for the default with the strict PoD.
    """
    summary = summarise(results)
    lines = [
        "| F1 / off the diagonal | causalformer | its lags right | VAR F-test | self-loops only |",
        "|---|---:|---:|---:|---:|",
    ]
    for folder in PUBLISHED:
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
    for folder, published in PUBLISHED.items():
        ours, loops, var = (_row(summary, folder, m) for m in ("paper", "self-loops", "var"))
        spread = f"{ours['f1_mean']:.2f} ± {ours['f1_std']:.2f}"
        cells = f"{spread} / {ours['off_diagonal_f1_mean']:.2f} | {_cell(loops)} | {_cell(var)}"
        lines.append(f"| {folder} | {published} | {cells} |")
    return "\n".join(lines)


def _row(summary: "pd.DataFrame", folder: str, method: str) -> dict[str, Any]:
    here = (summary["folder"] == folder) & (summary["method"] == method)
    (row,) = summary[here].to_dict("records")
    return {str(key): value for key, value in row.items()}


def _cell(row: dict[str, Any]) -> str:
    return f"{row['f1_mean']:.2f} / {row['off_diagonal_f1_mean']:.2f}"


TABLES: Final = {"default": default_table, "paper": paper_table}


def with_table(readme: str, part: str, table: str) -> str:
    """Replace one generated part of the README."""
    marker = BEGIN.format(part=part)
    before, begin, rest = readme.partition(marker)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise FileFormatError(f"the README has no part between {marker!r} and {END!r}")
    return f"{before}{marker}\n{table}\n{END}{after}"


def main() -> None:
    """Rewrite the README in place."""
    path, benchmarks = map(Path, sys.argv[1:])
    readme = read_text(path)
    for part, table in TABLES.items():
        results = results_frame(read_rows(benchmarks / part / "results.csv"))
        readme = with_table(readme, part, table(results))
    write_text(path, readme)


if __name__ == "__main__":
    main()
