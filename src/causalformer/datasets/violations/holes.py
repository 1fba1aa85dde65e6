"""Data with missing values, few slots, or unlike units."""

from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np

from causalformer.data.imputation import impute
from causalformer.data.series import SeriesTable
from causalformer.datasets.generated import FloatArray, Generated
from causalformer.datasets.violations.base import (
    SIZES,
    Base,
    Violation,
    made_of,
    on_base,
    seen,
    simulate,
)
from causalformer.datasets.violations.noise import standardised

Why: TypeAlias = Literal["random", "observed", "value"]


def _missing(why: Why, fill: bool, base: Base, strength: int) -> Generated:
    """Remove values: at random, where the first series is high, or where they are high.

    The first series is whole if holes depend on it. Filled ones are straight lines.
    """
    x = seen(simulate(base.weights, base.noise))
    score = base.rng.logistic(0.0, 0.5, x.shape)
    if why == "observed":
        score += standardised(x[:, :1])
    elif why == "value":
        score += standardised(x)
    share = (0.0, 0.2, 0.4, 0.6, 0.75)[strength]
    holes = score > np.quantile(score, 1.0 - share, axis=0)
    if why == "observed":
        holes[:, 0] = False
    values = np.where(holes, np.nan, x)
    return made_of(_filled(values) if fill else values, base.weights)


def _filled(values: FloatArray) -> FloatArray:
    table = SeriesTable(values, tuple(f"x{i}" for i in range(values.shape[1])))
    return impute(impute(table, "interpolate"), "mean").values


def _short(base: Base, strength: int) -> Generated:
    n_slots = (250, 76, 51, 34, 23)[strength]
    return made_of(simulate(base.weights, base.noise)[-n_slots:], base.weights)


def _units(base: Base, strength: int) -> Generated:
    powers = base.rng.uniform(-1.0, 1.0, base.n_series)
    units = (1.0, 10.0, 100.0, 1e3, 1e4)[strength] ** powers
    return made_of(seen(simulate(base.weights, base.noise)) * units, base.weights)


def _holed(why: Why, fill: bool, where: str) -> Violation:
    about = f"0, 20, 40, 60 and 75 % missing {where}" + (", filled by straight lines" * fill)
    return Violation("data", about, on_base(partial(_missing, why, fill)), from_base=True)


DATA: Final = {
    "missing-random": _holed("random", False, "at random"),
    "missing-observed": _holed("observed", False, "where the first series is high"),
    "missing-value": _holed("value", False, "where the value itself is high"),
    "filled-random": _holed("random", True, "at random"),
    "filled-observed": _holed("observed", True, "where the first series is high"),
    "filled-value": _holed("value", True, "where the value itself is high"),
    "short": Violation(
        "data",
        "250, 76, 51, 34 and 23 slots of 5 series with 3 lags",
        on_base(_short, SIZES[:1]),
        max_lag=4,
    ),
    "units": Violation(
        "data",
        "series in units that differ by up to 8 powers of ten, not standardised",
        on_base(_units),
        from_base=True,
    ),
}
