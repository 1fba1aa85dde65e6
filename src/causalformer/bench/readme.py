"""Put the committed results into the README: its figures are never typed.

``python -m causalformer.bench.readme README.md benchmarks/paper/results.csv`` replaces what stands
between the two markers by a table of the results beside the paper's published figures.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from causalformer.bench.result_file import read_rows, results_frame
from causalformer.bench.tables import summarise
from causalformer.errors import FileFormatError
from causalformer.files import read_text, write_text

if TYPE_CHECKING:
    import pandas as pd

BEGIN: Final = "<!-- generated from benchmarks/paper/results.csv by `make readme` -->"
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
        cells = []
        for method in ("paper", "self-loops", "var"):
            here = (summary["folder"] == folder) & (summary["method"] == method)
            (row,) = summary[here].to_dict("records")
            spread = f" ± {row['f1_std']:.2f}" if method == "paper" else ""
            cells.append(f"{row['f1_mean']:.2f}{spread} / {row['off_diagonal_f1_mean']:.2f}")
        lines.append(f"| {folder} | {published} | {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(readme: str, table: str) -> str:
    """Replace the generated part of the README."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise FileFormatError(f"the README has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    """Rewrite the README in place."""
    readme, results = map(Path, sys.argv[1:])
    table = paper_table(results_frame(read_rows(results)))
    write_text(readme, with_table(read_text(readme), table))


if __name__ == "__main__":
    main()
