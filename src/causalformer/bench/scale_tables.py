"""Tables and the picture of the scale benchmark, from the rows of its ``results.csv`` alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from causalformer.bench.methods import REFERENCES
from causalformer.bench.scale_jobs import (
    ACCURACY,
    GROWTH_IN_N,
    GROWTH_IN_T,
    LINEAR_RIVALS,
    NONLINEAR_RIVALS,
    PEERS,
    WITHOUT_SCREENING,
    folder_name,
)
from causalformer.bench.scaling import slope
from causalformer.bench.tables import markdown
from causalformer.config import DEFAULT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LOST = 0.02  # of F1, by screening


@dataclass(frozen=True)
class Limit:
    """What the default may take on a data set."""

    folder: str
    seconds: float
    gb: float = float("inf")

    def __str__(self) -> str:
        memory = f", {self.gb:g} GB" if np.isfinite(self.gb) else ""
        return f"{self.seconds:g} s{memory}"


LIMITS: Final = (
    Limit("fmri", 20.0),
    Limit(folder_name("nonlinear", 100, 1000), 60.0),
    Limit("sst", 120.0, 2.0),
    Limit(folder_name("nonlinear", 1000, 1000), 900.0, 4.0),
    Limit(folder_name("nonlinear", 10, 1_000_000), 600.0, 2.0),
)
"""What the default may take with two cores."""

GROWTH_LIMITS: Final = {"N": 1.3, "T": 1.1}
"""The largest exponents of time."""

NOTE: Final = (
    "Every fit ran in a process of its own on two cores, from an NPY file to the graph; the start "
    "of the interpreter and a first fit to 120 slots of noise, which loads the libraries, do not "
    "count. The default may use two threads or processes, peers compute on two threads. Peak "
    "memory is the sum of the peaks of the process and of all that it started, with libraries. "
    "Systems have two causes per effect on average, lags up to 3 and all self-loops: F1 counts "
    "those, the method self-loops shows what they are worth, and figures off the diagonal leave "
    "them out. The linear methods and PCMCI are told the largest lag of the systems (3), the "
    "default looks at 5. The VAR F-test needs more slots than coefficients. With several systems, "
    "figures are means.\n"
)


def scale_markdown(results: "pd.DataFrame") -> str:
    """Give all parts that were measured as a Markdown document."""
    large = [folder_name(links, n, 1000) for n in ACCURACY for links in ("linear", "nonlinear")]
    accuracy = _measured(large, results, (WITHOUT_SCREENING, *LINEAR_RIVALS))
    small = [folder_name("nonlinear", n, 1000) for n in PEERS]
    peers = _measured(small, results, NONLINEAR_RIVALS)
    parts = ["# Scale\n"]
    parts += _section("Limits", _limits(results))
    parts += _section("Growth", _growth(results), _exponents(results))
    parts += _section("Accuracy", _overview(results, accuracy), _verdicts(results, accuracy))
    parts += _section("Peers", _overview(results, peers), _fastest(results, peers))
    return "\n".join([*parts, NOTE])


def _measured(folders: Sequence[str], results: "pd.DataFrame", methods: Sequence[str]) -> list[str]:
    """Keep the folders on which one of some methods ran."""
    there = set(results.loc[results["method"].isin(methods), "folder"])
    return [folder for folder in folders if folder in there]


def _section(title: str, *tables: "pd.DataFrame") -> Iterator[str]:
    if not tables[0].empty:
        yield f"## {title}\n"
        yield from (markdown(table) for table in tables if not table.empty)


def _frame(rows: Iterable[dict[str, object]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(rows))


def _means(results: "pd.DataFrame", folder: str) -> Iterator[dict[str, object]]:
    """Give one row per method of a data set, the default first."""
    rows = results[results["folder"] == folder]
    first = rows["method"] != DEFAULT
    for method, fits in (
        rows.assign(first=first).sort_values("first", kind="stable").groupby("method", sort=False)
    ):
        good = _finished(fits)
        reasons = [*("stopped " + fits.loc[fits["stopped"] != "", "stopped"]), *fits["error"]]
        yield {
            "data": folder,
            "method": method,
            "systems": len(good),
            "F1": good["f1"].mean(),
            "F1 off diagonal": good["off_diagonal_f1"].mean(),
            "seconds": good["seconds"].mean(),
            "CPU seconds": good["cpu_seconds"].mean(),
            "peak GB": good["peak_gb"].mean(),
            "remark": "; ".join(dict.fromkeys(filter(None, map(_short, reasons)))),
        }


def _short(reason: str) -> str:
    words = reason.replace("|", "/")
    return words if len(words) <= 60 else words[:57] + "..."


def _finished(fits: "pd.DataFrame") -> "pd.DataFrame":
    return fits[(fits["error"] == "") & (fits["stopped"] == "")]


def _overview(results: "pd.DataFrame", folders: Iterable[str]) -> "pd.DataFrame":
    return _frame(row for folder in folders for row in _means(results, folder))


def _limits(results: "pd.DataFrame") -> "pd.DataFrame":
    rows = []
    for limit in LIMITS:
        for row in _means(_first_systems(results), limit.folder):
            ours = row["method"] == DEFAULT
            row |= {
                "limit": str(limit) if ours else "",
                "met": _met(results, limit) if ours else "",
            }
            rows.append({name: value for name, value in row.items() if name != "systems"})
    return _frame(rows)


def _first_systems(results: "pd.DataFrame") -> "pd.DataFrame":
    """Leave out rivals and all but the first system of a size: here, size is what matters."""
    shown = results[results["method"].isin((DEFAULT, *REFERENCES))]
    return shown.drop_duplicates(["folder", "method"])


def _met(results: "pd.DataFrame", limit: Limit) -> str:
    first = _first_systems(results)
    fits = first[(first["folder"] == limit.folder) & (first["method"] == DEFAULT)]
    good = _finished(fits)
    within = (good["seconds"] <= limit.seconds) & (good["peak_gb"] <= limit.gb)
    return "met" if len(good) == len(fits) and within.all() else "MISSED"


def missed_limits(results: "pd.DataFrame") -> list[str]:
    """Name the data on which the default took more than it may, and exponents that are too high."""
    measured = [limit for limit in LIMITS if limit.folder in set(results["folder"])]
    missed = [limit.folder for limit in measured if _met(results, limit) != "met"]
    grown = _exponents(results).to_dict("records")
    return missed + [str(row["of"]) for row in grown if row["met"] == "MISSED"]


def _growth(results: "pd.DataFrame") -> "pd.DataFrame":
    grown = [frame.sort_values(list(_SIZE.values())) for frame in _growing(results).values()]
    folders = dict.fromkeys(folder for frame in grown for folder in frame["folder"])
    return _overview(_first_systems(results), folders).drop(columns="systems", errors="ignore")


def _growing(results: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
    """Give the fits of the default to systems that differ in N alone, and in T alone."""
    good = _finished(_first_systems(results))
    ours = good[good["method"] == DEFAULT]
    sizes = {"N": GROWTH_IN_N, "T": GROWTH_IN_T}
    return {
        axis: ours[ours["folder"].isin([folder_name("nonlinear", *size) for size in sizes[axis]])]
        for axis in sizes
    }


_SIZE: Final = {"N": "n_series", "T": "n_slots"}
_AMOUNT: Final = {"seconds": "seconds", "peak_gb": "peak memory in GB"}


def _exponents(results: "pd.DataFrame") -> "pd.DataFrame":
    rows = []
    for axis, fits in _growing(results).items():
        if fits[_SIZE[axis]].nunique() < 2:
            continue
        for amount, title in _AMOUNT.items():
            exponent = slope(fits[_SIZE[axis]], fits[amount])
            limit = GROWTH_LIMITS[axis] if amount == "seconds" else None
            rows.append(
                {
                    "of": f"{title} in {axis}",
                    "from": f"{fits[_SIZE[axis]].min():.0f}",
                    "to": f"{fits[_SIZE[axis]].max():.0f}",
                    "exponent": exponent,
                    "limit": "" if limit is None else f"{limit:g}",
                    "met": "" if limit is None else "met" if exponent <= limit else "MISSED",
                }
            )
    return _frame(rows)


def _verdicts(results: "pd.DataFrame", folders: Iterable[str]) -> "pd.DataFrame":
    """Say what screening costs and whom the default is ahead of."""
    rows = []
    for folder in folders:
        there = _finished(results[results["folder"] == folder])
        if DEFAULT not in set(there["method"]):
            continue
        row: dict[str, object] = {"data": folder}
        lost = _difference(there, WITHOUT_SCREENING, "f1")
        row[f"F1 lost by screening (at most {_MOST_LOST:g})"] = _said(lost, lost <= _MOST_LOST)
        for rival in LINEAR_RIVALS:
            behind = _difference(there, rival, "off_diagonal_f1")
            row[f"off diagonal, ahead of {rival} by"] = _said(-behind, behind < 0)
        rows.append(row)
    return _frame(rows)


def _difference(fits: "pd.DataFrame", rival: str, figure: str) -> float:
    """Give by how much a rival is ahead of the default, on the systems that both finished."""
    figures = fits.pivot_table(index="file", columns="method", values=figure)
    if rival not in figures:
        return float("nan")
    return float((figures[rival] - figures[DEFAULT]).mean())


def _said(amount: float, good: bool) -> str:
    return "–" if amount != amount else f"{amount:+.3f} {'met' if good else 'MISSED'}"


def _fastest(results: "pd.DataFrame", folders: Iterable[str]) -> "pd.DataFrame":
    """Compare the seconds of the default with those of the fastest other nonlinear method."""
    rows = []
    for folder in folders:
        seconds = {
            str(row["method"]): float(str(row["seconds"])) for row in _means(results, folder)
        }
        others = {m: seconds[m] for m in NONLINEAR_RIVALS if seconds.get(m, np.nan) > 0}
        if DEFAULT in seconds and others:
            best = min(others, key=others.__getitem__)
            fastest = seconds[DEFAULT] <= others[best]
            rows.append(
                {
                    "data": folder,
                    "fastest other nonlinear method": best,
                    "its seconds": others[best],
                    "seconds of the default": seconds[DEFAULT],
                    "default is fastest": "met" if fastest else "MISSED",
                }
            )
    return _frame(rows)


def growth_figure(results: "pd.DataFrame") -> "Figure":
    """Draw seconds and memory of the default over N and over T, with fitted lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    panels = figure.subplots(2, 2)
    for column, (axis, fits) in enumerate(_growing(results).items()):
        for row, (amount, title) in enumerate(_AMOUNT.items()):
            axes = panels[row, column]
            _draw_growth(axes, fits.sort_values(_SIZE[axis]), _SIZE[axis], amount)
            fixed = "T = 1000" if axis == "N" else "N = 10"
            scale = "linear" if fits.empty else "log"
            axes.set(xscale=scale, yscale=scale, xlabel=f"{axis} ({fixed})", ylabel=title)
            axes.grid(alpha=0.3, which="both")
            axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_growth(axes: "Axes", fits: "pd.DataFrame", size: str, amount: str) -> None:
    axes.plot(fits[size], fits[amount], "o", color="#d55e00")
    exponent = slope(fits[size], fits[amount])
    if exponent == exponent:
        x = fits[size].to_numpy(dtype=float)
        level = np.exp(np.mean(np.log(fits[amount]) - exponent * np.log(x)))
        label = f"exponent {exponent:.2f}"
        axes.plot(x, level * x**exponent, "-", color="#56708c", label=label)
        axes.legend(frameon=False)
