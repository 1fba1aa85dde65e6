"""Simple fillings of missing values, for those who ask; the default detector needs none."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from causalformer.data.series import SeriesTable
from causalformer.errors import SettingsError
from causalformer.names import listed

if TYPE_CHECKING:
    import pandas as pd

Missing: TypeAlias = Literal["mask", "interpolate", "previous", "mean"]

_FILLINGS: Final[dict[str, Callable[["pd.DataFrame"], Any]]] = {
    "interpolate": lambda frame: frame.interpolate(limit_area="inside"),
    "previous": lambda frame: frame.ffill(),
    "mean": lambda frame: frame.fillna(frame.mean()),
}


def impute(table: SeriesTable, missing: Missing) -> SeriesTable:
    """Fill missing values within each segment.

    Parameters
    ----------
    table : SeriesTable
        With or without missing values.
    missing : {"mask", "interpolate", "previous", "mean"}
        ``"mask"`` leaves them missing. ``"interpolate"`` draws straight lines between the
        neighbours, ``"previous"`` repeats the last value, ``"mean"`` takes the segment's mean.
        What has no neighbour, or no value before it, stays missing.

    Examples
    --------
    >>> table = SeriesTable(np.array([[1.0], [np.nan], [3.0], [np.nan]]), ("a",))
    >>> impute(table, "interpolate").values.ravel()
    array([ 1.,  2.,  3., nan])
    >>> impute(table, "previous").values.ravel()
    array([1., 1., 3., 3.])
    """
    if missing != "mask" and missing not in _FILLINGS:
        raise SettingsError(
            f"missing is {missing!r}; choose {listed(map(repr, ('mask', *_FILLINGS)))}"
        )
    if missing == "mask" or not table.missing.any():
        return table
    import pandas as pd

    fill = _FILLINGS[missing]
    parts = [fill(pd.DataFrame(table.values[segment])) for segment in table.segments]
    return replace(table, values=np.concatenate([part.to_numpy() for part in parts]))
