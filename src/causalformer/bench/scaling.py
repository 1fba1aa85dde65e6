"""How the time of a method grows with the number of series and of slots."""

from typing import TYPE_CHECKING

import numpy as np

from causalformer.bench.tables import markdown

if TYPE_CHECKING:
    import pandas as pd


def scaling_markdown(results: "pd.DataFrame") -> str:
    """Give CPU seconds, memory and fitted exponents of every method as a Markdown document."""
    good = results[results["error"] == ""]
    parts = ["# Time and memory over size\n"]
    for measure, title in (("cpu_seconds", "CPU seconds"), ("peak_gb", "Peak memory in GB")):
        wide = good.pivot_table(index="method", columns="folder", values=measure, sort=False)
        parts.append(f"## {title}\n\n{markdown(wide.reset_index())}")
    parts.append("## Exponents of time\n")
    parts.append(markdown(exponents(good)))
    parts.append(
        "Slope of log CPU seconds over log N at the least T, and over log T at the least N.\n"
    )
    return "\n".join(parts)


def exponents(results: "pd.DataFrame") -> "pd.DataFrame":
    """Fit ``CPU seconds = c · size^k`` for every method; NaN with fewer than two sizes.

    Examples
    --------
    >>> import pandas as pd
    >>> sizes = {"n_series": [5, 10], "n_slots": 100}
    >>> frame = pd.DataFrame({"method": "a", **sizes, "cpu_seconds": [1, 4]})
    >>> exponents(frame)["in N"].round(3).tolist()
    [2.0]
    """
    import pandas as pd

    rows = []
    for method, part in results.groupby("method", sort=False):
        over_n = part[part["n_slots"] == part["n_slots"].min()]
        over_t = part[part["n_series"] == part["n_series"].min()]
        rows.append(
            {
                "method": method,
                "in N": slope(over_n["n_series"], over_n["cpu_seconds"]),
                "in T": slope(over_t["n_slots"], over_t["cpu_seconds"]),
            }
        )
    return pd.DataFrame(rows)


def slope(size: "pd.Series[float]", amount: "pd.Series[float]") -> float:
    """Fit the exponent k of ``amount = c · size^k``; NaN with fewer than two sizes."""
    if size.nunique() < 2:
        return float("nan")
    x, y = np.log(size.to_numpy(dtype=float)), np.log(amount.to_numpy(dtype=float))
    return float(np.polyfit(x, y, 1)[0])
