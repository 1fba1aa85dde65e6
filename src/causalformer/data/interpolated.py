"""Values that were filled in by straight lines before we saw them; they are no observations.

Interpolation is a common repair of missing values, and does harm: a value on the line between its
neighbours has the next value in it, so every series seems to know the future of its own causes.
Three values of a continuous series that follow each other are never on one line by chance. So
where that happens again and again, the value in the middle was made up, and is missing.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from causalformer.data.series import SeriesTable
from causalformer.names import listed

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_ROUNDING = 1e-9  # of the spread of a series: what arithmetic, and a file of ten digits, leave
_LEAST_SHARE = 0.01  # of the slots; fewer do no harm
_MOST_SHARE = 0.75  # above, too little is left; and the series may be made of lines, as a ramp is
_LEAST_CORNERS = 10  # of lines that are many: two are a ramp, or a row number
_BEYOND_CHANCE = 10.0  # times as many as values on a grid would give


def without_interpolated(table: SeriesTable) -> tuple[SeriesTable, str]:
    """Take values that lie on straight lines between their neighbours for missing ones.

    The text says which series have how many of them; it is empty if none has. A series of which
    more than three quarters lie on lines stays as it is, and the text says so.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((200, 2))
    >>> x[10:190:3, 0] = (x[9:189:3, 0] + x[11:191:3, 0]) / 2
    >>> table, told = without_interpolated(SeriesTable(x, ("a", "b")))
    >>> table.n_missing.tolist()
    [60, 0]
    >>> told.split(":")[0]
    "30 % of 'a' lie exactly on lines between their neighbours, as interpolation leaves them"
    """
    values, lost, mostly = table.values, list[str](), list[str]()
    for i, name in enumerate(table.names):
        on_line = _on_line(table.values[:, i], table.segments)
        share, n_corners = float(on_line.mean()), int((~on_line).sum())
        if share < _LEAST_SHARE or not _beyond_chance(table.values[:, i], on_line):
            continue
        named = f"{share:.0%} of {name!r}".replace("%", " %")
        if share <= _MOST_SHARE:
            values = values.copy() if not lost else values
            values[on_line, i] = np.nan
            lost.append(named)
        elif n_corners >= _LEAST_CORNERS:
            mostly.append(named)
    told = []
    if lost:
        values.setflags(write=False)
        told.append(
            f"{listed(lost)} lie exactly on lines between their neighbours, as interpolation "
            "leaves them: they count as missing; give the values as they were observed, with gaps"
        )
    if mostly:
        told.append(
            f"{listed(mostly)} lie exactly on lines between their neighbours: if they were "
            "interpolated, every series seems to know the future; give the values as they were "
            "observed, at the step they were observed at"
        )
    return (replace(table, values=values) if lost else table), "; ".join(told)


def _on_line(x: FloatArray, segments: Sequence[slice]) -> BoolArray:
    """Say which values are the mean of their neighbours, on a line that is not level."""
    on_line = np.zeros(len(x), dtype=bool)
    lower, upper = np.nanquantile(x, (0.25, 0.75))  # outliers do not widen it
    spread = float(upper - lower)
    for segment in segments:
        part = x[segment]
        bend = np.abs(part[2:] - 2.0 * part[1:-1] + part[:-2])
        slope = np.abs(part[2:] - part[:-2])
        straight = (bend <= _ROUNDING * spread) & (slope > _ROUNDING * spread)
        on_line[segment][1:-1] = straight
    return on_line


def _beyond_chance(x: FloatArray, on_line: BoolArray) -> bool:
    """Say whether there are more values on lines than a grid, of whole numbers say, would give.

    On a grid as fine as the least difference of two values, the bend of three that follow each
    other is zero with a probability of about the width of the grid over the spread of the bends.
    """
    observed = x[~on_line & np.isfinite(x)]
    gaps = np.diff(np.unique(observed))
    if len(gaps) < 2:
        return False
    lower, upper = np.quantile(observed, (0.25, 0.75))
    by_chance = len(x) * float(gaps.min()) / max(float(upper - lower), 1e-300)
    return bool(on_line.sum() > _BEYOND_CHANCE * by_chance)
