"""The paper's tables, printed and measured beside one another, and the same for the default."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from causalformer.bench import published
from causalformer.bench.ablations import (
    BY_RELEVANCE,
    DEFAULT_ABLATIONS,
    PAPER_ABLATIONS,
    PAPER_READINGS,
)
from causalformer.bench.methods import COMPARED, PAPER
from causalformer.bench.tables import markdown
from causalformer.config import DEFAULT

if TYPE_CHECKING:
    import pandas as pd

_RANKED = {
    "off_diagonal_f1": "F1 without self-loops",
    "window_f1": "F1 with lags",
    "pod": "PoD strict",
    "off_diagonal_pod": "PoD strict without self-loops",
}
_DEFAULT_PARTS = (DEFAULT, *DEFAULT_ABLATIONS, BY_RELEVANCE)


def paper_markdown(results: "pd.DataFrame") -> str:
    """Give Tables 1 to 3, the ranks of the default and its ablation as a Markdown document."""
    results = _in_order(results)
    as_published = results[results["orientation"] != "netsim"]
    parts = ["# The paper's tables, printed and measured\n"]
    parts.append(
        "Cells are `measured (printed)`, mean ± standard deviation over files. fMRI is scored "
        "against the truth files as published, whose edges are reversed against NetSim's own; the "
        "last line has NetSim's orientation, which the paper does not use.\n"
    )
    parts.append("## Table 1: F1, self-loops included\n")
    parts.append(markdown(_beside(results, "f1", published.F1)))
    parts.append("## Table 2: precision of delay\n")
    parts.append(
        "As published: pairs that are correct, or true in two steps, and have a true delay of at "
        "most 1.\n"
    )
    parts.append(markdown(_beside(results, "paper_pod", published.POD)))
    parts.append("Strict: every correct pair by its exact lag.\n")
    parts.append(markdown(_beside(results, "pod", {})))
    if set(PAPER_ABLATIONS) & set(results["method"]):
        parts.append("## Table 3: the paper's parts, on fMRI as published\n")
        parts.append(markdown(_ablation(as_published)))
        parts.append(
            "Cells are `measured (printed)`, mean ± standard deviation over files, seeds averaged "
            "first; *seeds* has the lowest and the highest mean over files of one seed. The line "
            "without gradient has equal means and deviations in the paper. The published runs "
            "leave the bias out of the denominators anyway, so *without bias* equals the whole "
            "method; *with bias*, *every layer* and *without norms* are the text's form of one "
            "part each, *text* all three, *blocked* the whole method with the last windows for "
            "validation, which share no slot with training where half of the windows remain.\n"
        )
    if set(DEFAULT_ABLATIONS) & set(results["method"]):
        parts.append("## The default's parts: F1 without self-loops, fMRI as in NetSim\n")
        parts.append("The first files of each folder, on which every variant was run.\n")
        parts.append(markdown(_default_parts(results, "off_diagonal_f1")))
        parts.append("Precision of delay, strict:\n")
        parts.append(markdown(_default_parts(results, "pod")))
    if DEFAULT in set(results["method"]):
        parts.append("## Where the default stands\n")
        parts.append(markdown(standing(results)))
        parts.append(
            "PoD looks only at the true edges that were found: a graph of self-loops alone has a "
            "PoD of 1, and a method that finds the strong edges only is asked about nothing "
            "harder. F1 with lags counts an edge only at its true lag, and misses as misses.\n"
        )
    return "\n".join(parts)


def standing(results: "pd.DataFrame") -> "pd.DataFrame":
    """Give the rank of the default among all methods on every data set, and who leads."""
    import pandas as pd

    rows = []
    compared = results[results["method"].isin(COMPARED)]
    for measure, title in _RANKED.items():
        files = _by_folder(compared, measure)
        for folder in files.index:
            means = files.loc[folder].dropna().sort_values(ascending=False, kind="stable")
            if DEFAULT not in means or (measure != "off_diagonal_f1" and folder == "fmri"):
                continue  # the true lags of fMRI are a convention
            rival = means.drop(DEFAULT)
            rows.append(
                {
                    "data": folder,
                    "measure": title,
                    "default": float(means[DEFAULT]),
                    "rank": int((means > means[DEFAULT]).sum()) + 1,
                    "of": len(means),
                    "best other": str(rival.index[0]) if len(rival) else "–",
                    "its figure": float(rival.iloc[0]) if len(rival) else float("nan"),
                }
            )
    return pd.DataFrame(rows)


def _in_order(results: "pd.DataFrame") -> "pd.DataFrame":
    """Sort the folders as the paper's Table 1 does; others come last."""
    order = list(published.F1)
    place = results["folder"].map(lambda name: order.index(name) if name in order else len(order))
    at = place.astype(str) + results["orientation"]  # as published before NetSim's
    return results.loc[at.sort_values(kind="stable").index]


def _by_folder(results: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    """Mean over files, a row per folder and a column per method; fMRI as in NetSim."""
    rows = results[(results["orientation"] != "as-published") & (results["error"] == "")]
    files = rows.groupby(["folder", "file", "method"], sort=False)[measure].mean()
    return files.groupby(["folder", "method"], sort=False).mean().unstack("method")


def _beside(
    results: "pd.DataFrame", measure: str, printed: Mapping[str, Mapping[str, str]]
) -> "pd.DataFrame":
    import pandas as pd

    methods = [name for name in COMPARED if name in set(results["method"])]
    rows = []
    for (folder, orientation), part in results.groupby(["folder", "orientation"], sort=False):
        if orientation and measure in ("pod", "paper_pod"):
            continue
        row = {"data": f"{folder} ({orientation})" if orientation else str(folder)}
        known = {} if orientation == "netsim" else printed.get(str(folder), {})
        for name in methods:
            measured = _spread(part[part["method"] == name], measure)
            row[name] = f"{measured} ({known[name]})" if name in known else measured
        rows.append(row)
    return pd.DataFrame(rows)


def _ablation(results: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    fmri = results[(results["folder"] == "fmri") & (results["error"] == "")]
    ablated = fmri[fmri["method"].isin(PAPER_ABLATIONS)]["seed"].unique()
    fmri = fmri[fmri["seed"].isin(ablated)]  # the same seeds for all
    rows = []
    for name in (*PAPER_ABLATIONS, PAPER, *PAPER_READINGS):
        part, printed = fmri[fmri["method"] == name], published.ABLATION.get(name, {})
        row: dict[str, object] = {"variant": name}
        for measure in ("precision", "recall", "f1"):
            spread = _spread(part, measure)
            row[measure] = f"{spread} ({printed[measure]})" if printed else spread
        of_seeds = part.groupby("seed")["f1"].mean()
        row["f1, seeds"] = f"{of_seeds.min():.2f}–{of_seeds.max():.2f}" if len(part) else "–"
        rows.append({**row, "off-diagonal F1": _spread(part, "off_diagonal_f1")})
    return pd.DataFrame(rows)


def _default_parts(results: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    rows = results[
        results["method"].isin(_DEFAULT_PARTS) & (results["orientation"] != "as-published")
    ]
    n_variants = rows.groupby(["folder", "file"])["method"].transform("nunique")
    files = _by_folder(rows[n_variants == n_variants.max()], measure)  # files that all have run on
    if measure == "pod":
        files = files.drop(index="fmri", errors="ignore")
    present = [name for name in _DEFAULT_PARTS if name in files]
    return files[present].T.rename_axis("variant").reset_index()


def _spread(rows: "pd.DataFrame", measure: str) -> str:
    good = rows[rows["error"] == ""].groupby("file")[measure].mean()
    if good.isna().all():
        return "–"
    return f"{good.mean():.2f} ± {good.std(ddof=1):.2f}" if len(good) > 1 else f"{good.mean():.2f}"
