"""Tables of the suite of violated assumptions."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from causalformer.bench.methods import CORRECTED
from causalformer.bench.tables import markdown
from causalformer.bench.violations import outcomes
from causalformer.config import DEFAULT
from causalformer.datasets import VIOLATIONS
from causalformer.files import write_text

if TYPE_CHECKING:
    import pandas as pd

NOTE: Final = (
    "Links between two series only. A contemporaneous link without a direction is one claim. "
    "False share: pooled over all claims. A method that failed claims nothing (F1 0, AUROC .5). "
    "Tests (var, pcmci, pcmci-plus) run at 1 % each and at 5 % after Benjamini and Hochberg; of "
    "each family the level with the better mean F1 is shown. Strength 0 of most families is the "
    "family none. Close: families within .02 of the best of the other methods. Warned: of the "
    "graphs whose false share exceeds .2, those that came with a warning."
)

_CLOSE = 0.02
_MISLED = 0.2
_HIDDEN = "hidden"
_NULLS = "nulls"


def better_level(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Keep, of each family, the level at which a method has the better mean F1.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame(
    ...     {"family": "trend", "method": ["var", "var@bh"], "f1": [0.5, 0.7], "n_true": 3}
    ... )
    >>> better_level(rows)[["method", "f1"]].to_dict("records")
    [{'method': 'var', 'f1': 0.7}]
    """
    named = rows.assign(level=rows["method"], method=rows["method"].replace(dict(CORRECTED)))
    means = named.groupby(["family", "method", "level"], sort=False)["f1"].mean()
    best = means.groupby(level=["family", "method"], sort=False).idxmax()
    kept = set(best)
    chosen = [
        key in kept for key in zip(named["family"], named["method"], named["level"], strict=True)
    ]
    return named[chosen].drop(columns="level")


def family_means(rows: "pd.DataFrame", by: str = "family") -> "pd.DataFrame":
    """Average the figures, and pool false claims, of every family (or group) and method."""
    import pandas as pd

    grouped = rows.groupby([by, "method"], sort=False)
    means = grouped[["f1", "auroc", "auprc", "seconds"]].mean()
    totals = grouped[["n_claimed", "n_right", "n_directed", "n_directed_right"]].sum()
    means["false_share"] = _false_share(totals)
    means["warned"] = grouped["warning"].agg(lambda texts: float((texts != "").mean()))
    means["any_edge"] = grouped["n_claimed"].agg(lambda counts: float((counts > 0).mean()))
    return pd.concat([means, totals], axis=1).reset_index()


def _false_share(totals: "pd.DataFrame") -> "pd.Series":
    return (totals["n_claimed"] - totals["n_right"]) / totals["n_claimed"].clip(lower=1)


def summary(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Give one line per method over all families with links, best mean F1 first.

    Parameters
    ----------
    rows : DataFrame
        What `better_level` gives.
    """
    import pandas as pd

    linked = rows[rows["group"] != _NULLS]
    means = family_means(linked)
    wide = {name: means.pivot(index="family", columns="method", values=name) for name in _MEANS}
    lines = []
    for method in dict.fromkeys(rows["method"]):
        own = linked[linked["method"] == method]
        line: dict[str, object] = {"method": method}
        line |= {title: float(wide[name][method].mean()) for name, title in _MEANS.items()}
        for name in ("f1", "auroc"):
            others = wide[name].drop(columns=method).max(axis=1)
            close = wide[name][method] >= others - _CLOSE
            line[f"{_MEANS[name]} close"] = float(close.mean())
        line["F1 rank"] = float(wide["f1"].rank(axis=1, ascending=False)[method].mean())
        line["false share"] = _pooled(own)
        line["without hidden"] = _pooled(own[own["group"] != _HIDDEN])
        directed = int(own["n_directed"].sum())
        line["directions right"] = f"{int(own['n_directed_right'].sum())} of {directed}"
        misled = own[own["false_share"] > _MISLED]
        line["warned"] = f"{int((misled['warning'] != '').sum())} of {len(misled)}"
        line["failed"] = int((own["error"] != "").sum())
        line["seconds"] = float(own["seconds"].mean())
        lines.append(line)
    return pd.DataFrame(lines).sort_values("F1", ascending=False, kind="stable")


_MEANS: Final = {"f1": "F1", "auroc": "AUROC", "auprc": "AUPRC"}


def _pooled(rows: "pd.DataFrame") -> float:
    claimed = int(rows["n_claimed"].sum())
    return 1.0 - int(rows["n_right"].sum()) / claimed if claimed else 0.0


def _wide(means: "pd.DataFrame", by: str, measure: str) -> str:
    """Set methods side by side, families or groups below one another."""
    order = list(dict.fromkeys(means[by]))
    methods = list(dict.fromkeys(means["method"]))
    wide = means.pivot(index=by, columns="method", values=measure)
    return markdown(wide.reindex(index=order, columns=methods).astype(float).reset_index())


def _by_strength(rows: "pd.DataFrame", method: str) -> str:
    own = rows[rows["method"] == method]
    wide = own.pivot_table(index="family", columns="strength", values="f1", sort=False)
    wide = wide.reindex(columns=sorted(wide.columns)).astype(float).reset_index()
    return markdown(wide.rename(columns=str))


def _warnings(rows: "pd.DataFrame", method: str) -> str:
    """List for every family how many graphs carry a warning, and how the commonest begins."""
    import pandas as pd

    lines = []
    for family, own in rows[rows["method"] == method].groupby("family", sort=False):
        texts = own["warning"].str.split("; ").explode().str.slice(0, 70)
        counts = texts[texts.fillna("") != ""].value_counts()
        common = f"{counts.index[0]}… ({counts.iloc[0]})" if len(counts) else ""
        n_warned = int((own["warning"] != "").sum())
        misled = own["false_share"] > _MISLED
        lines.append(
            {
                "family": family,
                "graphs": len(own),
                "warned": n_warned,
                "false share above .2": int(misled.sum()),
                "of these warned": int((own["warning"] != "")[misled].sum()),
                "the commonest": common.replace("|", "/"),
            }
        )
    return markdown(pd.DataFrame(lines))


def violations_markdown(rows: "pd.DataFrame") -> str:
    """Return all tables as a Markdown document.

    Parameters
    ----------
    rows : DataFrame
        What `causalformer.bench.violations.outcomes` gives; a method that always failed, for want
        of its package, say, is left out.
    """
    order = [family for family in VIOLATIONS if (rows["family"] == family).any()]
    rows = rows[rows["method"].isin(rows.loc[rows["error"] == "", "method"])]
    rows = rows.sort_values("family", key=lambda names: names.map(order.index), kind="stable")
    if rows.empty:
        return "# Violated assumptions\n\nNo method gave a result.\n"
    shown = better_level(rows)
    linked, nulls = shown[shown["group"] != _NULLS], shown[shown["group"] == _NULLS]
    parts = ["# Violated assumptions\n", NOTE + "\n"]
    if len(linked):
        by_group, by_family = family_means(linked, "group"), family_means(linked)
        parts += [f"## All families\n\n{markdown(summary(shown))}"]
        for measure, title in {**_MEANS, "false_share": "False share"}.items():
            parts.append(f"## {title} by group\n\n{_wide(by_group, 'group', measure)}")
        for measure, title in {**_MEANS, "false_share": "False share"}.items():
            parts.append(f"## {title} by family\n\n{_wide(by_family, 'family', measure)}")
    if len(nulls):
        table = _wide(family_means(nulls), "family", "any_edge")
        parts.append(f"## Series without links: share of graphs with any\n\n{table}")
    for method in (DEFAULT,) if (shown["method"] == DEFAULT).any() else ():
        parts.append(f"## F1 of the {method} by strength\n\n{_by_strength(linked, method)}")
        parts.append(f"## Warnings of the {method}\n\n{_warnings(shown, method)}")
    about = "".join(f"- {name}: {VIOLATIONS[name].about}.\n" for name in order)
    parts.append(f"## Families\n\n{about}")
    return "\n".join(parts)


def write_violations_report(results: "pd.DataFrame", out: str | Path) -> "pd.DataFrame":
    """Write ``outcomes.csv`` and, as ``table.md``, all tables; return the rows of the former."""
    rows = outcomes(results, out)
    text = rows.to_csv(index=False, lineterminator="\n", float_format="%.4g")
    write_text(Path(out) / "outcomes.csv", text)
    write_text(Path(out) / "table.md", violations_markdown(rows))
    return rows
