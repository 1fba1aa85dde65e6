"""Are the slots equally far apart? Gaps are reported, split at, or resampled away."""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from causalformer.data.series import AnyArray, SeriesTable
from causalformer.errors import DataError, DataWarning

if TYPE_CHECKING:
    import pandas as pd

Gaps: TypeAlias = Literal["auto", "split", "ignore"]

_LONG_STEP = 1.5  # times the usual step: something is missing (months differ by a tenth)
_FEW = 0.05  # share of long steps up to which they are gaps, not the way the data are sampled


def split_at_gaps(table: SeriesTable, gaps: Gaps = "auto") -> SeriesTable:
    """Begin a new segment after every gap in the time, and say so.

    Parameters
    ----------
    table : SeriesTable
        With or without a time.
    gaps : {"auto", "split", "ignore"}
        ``"auto"`` splits if long steps are rare. If they are common, as in data of working days,
        rows are taken as equally far apart, with a warning; ``"split"`` splits there, too.

    Warns
    -----
    DataWarning
        Where there are gaps.

    Examples
    --------
    >>> table = SeriesTable(np.zeros((60, 2)), ("a", "b"), np.r_[0:40, 90:110])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     split_at_gaps(table).starts
    (0, 40)
    """
    if gaps not in ("auto", "split", "ignore"):
        raise DataError(f"gaps is {gaps!r}; choose 'auto', 'split' or 'ignore'")
    if table.time is None or gaps == "ignore":
        return table
    long_steps = [_long_steps(table.time[segment], segment.start) for segment in table.segments]
    after = np.concatenate(long_steps)
    if not len(after):
        return table
    share = len(after) / max(1, table.n_slots - len(table.segments))
    where = f"the longest before {table.time[_longest(table, after)]}"
    if gaps == "auto" and share > _FEW:
        warnings.warn(
            f"{table.source}: {share:.0%} of the time steps are longer than usual ({where}); rows "
            "are taken as equally far apart: resample them, or split at the gaps, if that is wrong",
            DataWarning,
            stacklevel=4,
        )
        return table
    warnings.warn(
        f"{table.source}: the time has {len(after)} gap{'s' * (len(after) > 1)} ({where}); nothing "
        "looks across",
        DataWarning,
        stacklevel=4,
    )
    starts = np.union1d(table.starts, after)
    owner = np.searchsorted(table.starts, starts, side="right") - 1
    return replace(
        table,
        starts=tuple(starts.tolist()),
        runs=tuple(table.runs[k] for k in owner) if table.runs else (),
    )


def _steps(time: AnyArray) -> npt.NDArray[np.float64]:
    steps = np.diff(time)
    return steps.astype("m8[ns]").astype(np.float64) if steps.dtype.kind == "m" else steps * 1.0


def _long_steps(time: AnyArray, start: int) -> npt.NDArray[np.int64]:
    """Give the slots before which a step is much longer than usual."""
    steps = _steps(time)
    if len(steps) < 2:
        return np.arange(0)
    return np.flatnonzero(steps > _LONG_STEP * np.median(steps)) + 1 + start


def _longest(table: SeriesTable, after: npt.NDArray[np.int64]) -> int:
    assert table.time is not None
    lengths = _steps(table.time)[after - 1]
    return int(after[np.argmax(lengths)])


def resample(table: SeriesTable, step: str | float) -> SeriesTable:
    """Average the rows of every step; a step without a row becomes missing.

    Parameters
    ----------
    table : SeriesTable
        With a time.
    step : str or float
        For dates a span such as ``"1h"``, ``"7D"`` or ``"MS"`` (pandas' words); for numbers a
        number.

    Examples
    --------
    >>> table = SeriesTable(np.array([[1.0], [3.0], [5.0]]), ("a",), np.array([0, 1, 4]))
    >>> resample(table, 2).values.ravel()
    array([ 2., nan,  5.])
    """
    import pandas as pd

    if table.time is None:
        raise DataError(f"{table.source} has no time column; without one it cannot be resampled")
    parts: list[pd.DataFrame] = []
    starts: list[int] = []
    for segment in table.segments:
        starts.append(sum(len(part) for part in parts))
        frame = pd.DataFrame(table.values[segment], index=pd.Index(table.time[segment]))
        parts.append(_resampled(frame, step, table.source))
    whole = pd.concat(parts)
    return replace(
        table,
        values=whole.to_numpy(dtype=np.float64),
        time=whole.index.to_numpy(),
        starts=tuple(starts),
    )


_MOST_PER_ROW = 20


def _resampled(frame: "pd.DataFrame", step: str | float, source: str) -> "pd.DataFrame":
    import pandas as pd

    index = frame.index
    if not len(index):
        return frame
    if index.dtype.kind in "Mm":
        try:
            span = pd.tseries.frequencies.to_offset(str(step))
            if pd.Timestamp(0) + span <= pd.Timestamp(0):
                raise ValueError("it is no step forward")
            one = (pd.Timestamp("2000-01-01") + 12 * span - pd.Timestamp("2000-01-01")) / 12
            _check_steps((index[-1] - index[0]) / one, step, len(index), source)
            return frame.resample(span).mean()
        except (ValueError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{source}: cannot resample to {step!r} ({error}); give a span such as 1h, 7D or MS"
            ) from error
    try:
        width = float(step)
    except ValueError:
        width = 0.0
    if not 0 < width < np.inf:
        raise DataError(f"{source}: cannot resample to {step!r}; its time are numbers: give one")
    _check_steps((float(index[-1]) - float(index[0])) / width, step, len(index), source)
    steps = (index.to_numpy(dtype=np.float64) - float(index[0])) / width
    number = np.floor(steps + 1e-9).astype(int)  # 0.3 / 0.1 is a bit less than 3
    means = frame.groupby(number).mean().reindex(range(number[-1] + 1))
    means.index = pd.Index(float(index[0]) + width * np.arange(len(means)))
    return means


def _check_steps(n_steps: float, step: str | float, n_rows: int, source: str) -> None:
    if n_steps > max(_MOST_PER_ROW * n_rows, 100):
        raise DataError(
            f"{source}: steps of {step} would make {n_steps:.3g} rows of {n_rows}, nearly all of "
            "them missing; choose a longer step"
        )
