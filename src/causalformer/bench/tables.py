"""Mean ± standard deviation over the files of each folder, for documents and for the terminal."""

from typing import TYPE_CHECKING, Final

from causalformer.bench.result_file import STAMP

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group

MEASURES: Final = {
    "f1": "F1",
    "off_diagonal_f1": "F1 off diagonal",
    "window_f1": "F1 with lags",
    "pod": "PoD strict",
    "off_diagonal_pod": "PoD off diagonal",
    "paper_pod": "PoD paper",
    "paper_f1": "F1′ paper",
    "off_diagonal_auroc": "AUROC off diagonal",
    "parity_f1": "F1 by k-means",
    "parity_off_diagonal_f1": "off diagonal by k-means",
    "cpu_seconds": "CPU seconds",
    "peak_gb": "peak GB",
}
"""The columns of ``results.csv`` that the table shows, with their headings."""

NOTE: Final = (
    "Mean ± sample standard deviation (n − 1) over the files of a folder, each file first averaged "
    "over its seeds; – where no file has the figure. F1 counts self-loops: the method self-loops "
    "shows what they alone are worth; figures off the diagonal leave them out. With lags: an "
    "edge counts only at its true lag. By k-means: the "
    "graph that the paper's rule (two classes per effect, the higher one kept) reads from a "
    "method's scores. CPU seconds are those of one fit on one core; peak memory is that of the "
    "process, with libraries and what earlier jobs left in it. An edge without a certain direction "
    "counts in the direction that is drawn: the likelier one for the default, a coin's for PCMCI+."
)

_SIDE_BY_SIDE = 5  # methods that fit beside one another on a terminal
_FEW_MEASURES = ("f1", "off_diagonal_f1", "pod", "cpu_seconds")  # for more methods than that

_GROUP = ["folder", "orientation", "method"]


def summarise(results: "pd.DataFrame") -> "pd.DataFrame":
    """Average the rows of ``results.csv``: first over seeds, then over files.

    Parameters
    ----------
    results : DataFrame
        What `causalformer.bench.run_bench` returns.

    Returns
    -------
    DataFrame
        One row per folder, orientation and method, in the order of `results`; the columns
        ``<measure>_mean`` and ``<measure>_std`` (sample standard deviation, NaN for one file),
        ``n_files`` that gave a result, ``n_failed`` rows that did not, and ``n_stamps``, which is
        above 1 if settings or versions are mixed.

    Examples
    --------
    >>> from causalformer.bench.result_file import as_row, results_frame
    >>> common = {"folder": "fork", "method": "var"}
    >>> rows = [as_row({**common, "file": str(i), "f1": f1}) for i, f1 in enumerate((0.5, 1.0))]
    >>> results = results_frame(rows)
    >>> summarise(results)[["method", "f1_mean", "n_files"]]
      method  f1_mean  n_files
    0    var     0.75        2
    """
    import pandas as pd

    summaries = []
    for keys, rows in results.groupby(_GROUP, sort=False):
        good = rows[rows["error"] == ""]
        files = good.groupby("file")[list(MEASURES)].mean()
        summary = dict(zip(_GROUP, keys, strict=True))
        for name in MEASURES:
            summary |= {f"{name}_mean": files[name].mean(), f"{name}_std": files[name].std(ddof=1)}
        summary["n_files"] = len(files)
        summary["n_failed"] = len(rows) - len(good)
        summary["n_stamps"] = len(good[[s for s in STAMP if s != "data"]].drop_duplicates())
        summaries.append(summary)
    return pd.DataFrame(summaries)


def bench_markdown(results: "pd.DataFrame") -> str:
    """Return the summary as a Markdown document, one table per folder.

    Parameters
    ----------
    results : DataFrame
        What `causalformer.bench.run_bench` returns.
    """
    parts = ["# Benchmark\n"]
    for title, lines in _folders(results):
        parts.append(f"## {title}\n")
        head = ("method", "files", *MEASURES.values())
        rule = ("---", *["---:"] * (len(head) - 1))
        parts.append("\n".join(markdown_line(line) for line in (head, rule, *lines)) + "\n")
    parts += [f"{note}\n" for note in (NOTE, *_cautions(results))]
    return "\n".join(parts)


def bench_table(results: "pd.DataFrame") -> "Group":
    """Return the summary for the terminal, one table per folder.

    Parameters
    ----------
    results : DataFrame
        What `causalformer.bench.run_bench` returns.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Table | Text] = []
    for title, lines in _folders(results):
        # Text, not str: names of folders may look like rich's own markup
        table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        if len(lines) > _SIDE_BY_SIDE:
            chosen = [0, 1, *(2 + list(MEASURES).index(name) for name in _FEW_MEASURES)]
            for heading in ("method", "files", *(MEASURES[name] for name in _FEW_MEASURES)):
                table.add_column(heading)
            for line in lines:
                table.add_row(*(Text(line[number]) for number in chosen))
            parts.append(table)
            continue
        table.add_column("")
        for method, *_ in lines:
            table.add_column(Text(method, overflow="fold"), justify="right", no_wrap=True)
        # methods side by side: the many measures would not fit into the width of a terminal
        for number, heading in enumerate(("files", *MEASURES.values()), start=1):
            table.add_row(heading, *(line[number] for line in lines))
        parts.append(table)
    notes = (Text(note, style="dim") for note in (NOTE, *_cautions(results)))
    return Group(*parts, *notes)


def _folders(results: "pd.DataFrame") -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return for every folder its title and the cells of its lines."""
    summary = summarise(results)
    if summary.empty:
        return []
    folders = []
    for (folder, orientation), rows in summary.groupby(_GROUP[:2], sort=False):
        title = f"{folder} ({orientation})" if orientation else str(folder)
        lines = []
        for row in rows.to_dict("records"):
            failed = f" ({row['n_failed']} failed)" if row["n_failed"] else ""
            cells = (_spread(row[f"{n}_mean"], row[f"{n}_std"], n) for n in MEASURES)
            lines.append((str(row["method"]), f"{row['n_files']}{failed}", *cells))
        folders.append((title, lines))
    return folders


def _spread(mean: float, std: float, measure: str) -> str:
    if mean != mean:
        return "–"
    digits = 3 if measure == "cpu_seconds" and mean < 1 else 1 if measure == "cpu_seconds" else 2
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std == std else "")


def markdown_line(cells: tuple[str, ...]) -> str:
    r"""Give a line of a Markdown table; bars in names are escaped.

    Examples
    --------
    >>> print(markdown_line(("a|b", "1")))
    | a\|b | 1 |
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cautions(results: "pd.DataFrame") -> list[str]:
    summary = summarise(results)
    mixed = [] if summary.empty else list(summary.loc[summary["n_stamps"] > 1, "folder"].unique())
    if not mixed:
        return []
    return [
        f"Caution: rows of {', '.join(mixed)} were measured with different settings or versions; "
        "run the benchmark with --fresh to make them alike."
    ]


def markdown(frame: "pd.DataFrame") -> str:
    """Give a frame as a Markdown table; fractions with three decimals, a dash for NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> print(markdown(pd.DataFrame({"method": ["var"], "f1": [0.5]})))
    | method | f1 |
    | --- | --- |
    | var | 0.500 |
    <BLANKLINE>
    """

    def cell(value: object) -> str:
        if not isinstance(value, float):
            return str(value)
        return "–" if value != value else f"{value:.3f}"

    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    lines += [list(map(cell, row)) for row in frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
