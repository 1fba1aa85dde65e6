"""Columns as a file or a frame holds them: what every reader hands on."""

from dataclasses import dataclass
from typing import Final

from causalformer.data.series import AnyArray

MISSING_MARKS: Final = (
    *("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "None"),
)


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns as a file or a frame holds them: any type, time not yet told from the series.

    Parameters
    ----------
    names : tuple of str
        One per column; an empty name means that the column has none.
    cells : tuple of arrays, each of shape (slot,)
        Numbers, dates or text.
    source : str
        Where they come from.
    index : (name, array), optional
        The row labels of a frame; they can be the time but never a series.
    """

    names: tuple[str, ...]
    cells: tuple[AnyArray, ...]
    source: str
    index: tuple[str, AnyArray] | None = None
