"""Steps that change series before anything is learned from them: only those a user asks for.

================  =====================================================================
``detrend``       subtract the line of least squares
``difference``    subtract the slot before
``every:5``       keep every fifth slot
``log``           take the natural logarithm
``mean:5``        average blocks of five slots; a shorter one at the end is left out
``normal-score``  replace values by the normal quantiles of their ranks
``season:12``     subtract the slot twelve slots before
``standardise``   bring to mean 0 and standard deviation 1
================  =====================================================================

``log[rain, snow depth]`` limits a step to columns; `every` and `mean` are for all. Each segment is
treated on its own. NaN is a missing value: steps look past it and leave it where it is.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from causalformer.data.scaling import fit_normal_scores, fit_scaling
from causalformer.data.series import SeriesTable
from causalformer.errors import DataError, SettingsError
from causalformer.names import did_you_mean, listed

FloatArray = NDArray[np.float64]

STEPS: Final = (
    "detrend",
    "difference",
    "every:5",
    "log",
    "mean:5",
    "normal-score",
    "season:12",
    "standardise",
)
_EXAMPLES: Final = {example.partition(":")[0]: example for example in STEPS}
_FOR_ALL_COLUMNS: Final = ("every", "mean")
_FORM: Final = re.compile(r"\s*([^:\[\]]*?)\s*(?::\s*([^\[\]]*?)\s*)?(?:\[(.*)\]\s*)?", re.DOTALL)
_ROUNDING: Final = 64 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Step:
    """One change of the series.

    Parameters
    ----------
    name : str
        Which one; the module's table lists them.
    period : int, optional
        Number of slots of `every`, `mean` and `season`.
    columns : tuple of str, optional
        The series to change; None for all.

    Examples
    --------
    >>> print(Step("season", 12, ("rain", "snow depth")))
    season:12[rain, snow depth]
    """

    name: str
    period: int | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.name not in _EXAMPLES:
            raise SettingsError(
                f"unknown step {self.name!r};{did_you_mean(self.name, _EXAMPLES)} "
                f"the steps are {', '.join(STEPS)}"
            )
        example = _EXAMPLES[self.name]
        if ":" in example and (self.period is None or self.period < 1):
            raise SettingsError(
                f"step {str(self)!r}: {self.name} needs a whole number of slots from 1, such as "
                f"{example}"
            )
        if ":" not in example and self.period is not None:
            instead = f"season:{self.period}" if self.name == "difference" else self.name
            raise SettingsError(f"step {str(self)!r}: {self.name} takes no number; write {instead}")
        if self.columns is not None and self.name in _FOR_ALL_COLUMNS:
            raise SettingsError(
                f"step {str(self)!r}: {self.name} changes the slots of all columns; leave the "
                "brackets out"
            )
        if self.columns is not None and not all(self.columns or [""]):
            raise SettingsError(
                f"step {str(self)!r}: a column has no name; write {self.name}[rain, runoff], or "
                "leave the brackets out for all columns"
            )

    def __str__(self) -> str:
        period = "" if self.period is None else f":{self.period}"
        columns = "" if self.columns is None else f"[{', '.join(map(_quoted, self.columns))}]"
        return self.name + period + columns


def _quoted(column: str) -> str:
    doubled = column.replace('"', '""')
    return f'"{doubled}"' if re.search(r'[",\r\n]', column) else column


def parse_step(text: str) -> Step:
    """Read a step such as ``season:12[rain, "Basel, north"]``; quotes protect a comma.

    Examples
    --------
    >>> parse_step("log[rain, snow depth]")
    Step(name='log', period=None, columns=('rain', 'snow depth'))
    >>> parse_step("detrnd")
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: unknown step 'detrnd'; did you mean 'detrend'? the steps are
    detrend, difference, every:5, log, mean:5, normal-score, season:12, standardise
    """
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise _unreadable(text)
    name, period, columns = match.groups()
    if period is not None and not re.fullmatch(r"[0-9]{1,18}", period):
        raise SettingsError(
            f"step {text!r}: {period!r} is no whole number of slots; write it like season:12"
        )
    try:
        cells = [] if columns is None else next(csv.reader([columns], skipinitialspace=True), [])
    except csv.Error:
        raise _unreadable(text) from None
    return Step(
        name,
        None if period is None else int(period),
        None if columns is None else tuple(cell.strip() for cell in cells),
    )


def _unreadable(text: object) -> SettingsError:
    return SettingsError(
        f"step {text!r} cannot be read; write it like detrend, season:12 or log[rain, runoff]"
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """Series after all steps.

    Attributes
    ----------
    values : array of float ``[slot, series]``
        The changed series.
    segments : tuple of slice
        The slots of each segment, as many segments as before.
    rows : array of int ``[slot]``
        The row of the original table that each slot belongs to: of a difference the later one,
        of a mean the first.
    """

    values: FloatArray
    segments: tuple[slice, ...]
    rows: NDArray[np.int64]


def prepare(
    values: FloatArray, names: Sequence[str], segments: Sequence[slice], steps: Iterable[Step]
) -> Prepared:
    """Apply the steps in the order given.

    Parameters
    ----------
    values : array of float ``[slot, series]``
        The series; NaN is a missing value.
    names : sequence of str
        One name per series.
    segments : sequence of slice
        The unbroken stretches of slots, one after the other; together they are the table.
    steps : iterable of Step
        What to do; nothing if empty.

    Raises
    ------
    SettingsError
        A step names a column that is not there.
    DataError
        Infinite values, the logarithm of a value that is not positive, or a segment of which
        fewer than two slots would be left.

    Examples
    --------
    >>> x = np.array([[1.0], [4.0], [9.0], [16.0], [25.0]])
    >>> done = prepare(x, ["a"], [slice(0, 5)], [parse_step("difference"), parse_step("every:3")])
    >>> done.values.ravel(), done.rows, done.segments
    (array([3., 9.]), array([1, 4]), (slice(0, 2, None),))
    """
    values = np.array(values, dtype=np.float64)
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise DataError(
            f"column {names[column]!r} is infinite in row {row + 1}; mend the value or mark it "
            "as missing"
        )
    prepared = Prepared(values, tuple(segments), np.arange(len(values)))
    for step in steps:
        prepared = _applied(step, prepared, names)
    return prepared


def _applied(step: Step, before: Prepared, names: Sequence[str]) -> Prepared:
    columns = _positions(step, names)
    if step.name == "log":
        _refuse_non_positive(step, before, names, columns)
    pieces, rows, segments, start = [], [], [], 0
    for segment in before.segments:
        x, row = before.values[segment], before.rows[segment]
        kept = _kept(step, len(x))
        n_kept = len(range(*kept.indices(len(x))))
        if n_kept < min(2, len(x)):
            raise DataError(
                f"step {str(step)!r} leaves {n_kept} of {len(x)} slots in rows {row[0] + 1} to "
                f"{row[-1] + 1}, where at least 2 are needed; choose a shorter period, or leave "
                "out the step or these rows"
            )
        piece = x[kept].copy()
        piece[:, columns] = _changed(step, x[:, columns])
        pieces.append(piece)
        rows.append(row[kept])
        segments.append(slice(start, start + n_kept))
        start += n_kept
    return Prepared(np.concatenate(pieces), tuple(segments), np.concatenate(rows))


def _positions(step: Step, names: Sequence[str]) -> list[int]:
    known = {name: i for i, name in enumerate(names)}
    wanted = names if step.columns is None else dict.fromkeys(step.columns)
    for name in wanted:
        if name not in known:
            raise SettingsError(
                f"step {str(step)!r}: there is no column {name!r};{did_you_mean(name, names)} "
                f"the columns are {listed(names, most=20)}"
            )
    return [known[name] for name in wanted]


def _refuse_non_positive(
    step: Step, before: Prepared, names: Sequence[str], columns: Sequence[int]
) -> None:
    found = np.argwhere(before.values[:, columns] <= 0)
    if len(found):
        slot, column = found[0][0], columns[found[0][1]]
        value = float(before.values[slot, column])
        raise DataError(
            f"step {str(step)!r}: column {names[column]!r} is {value} in row "
            f"{before.rows[slot] + 1}, and only positive values have a logarithm; limit the "
            "step to other columns, as in log[rain, runoff], or shift the column"
        )


def _kept(step: Step, n_slots: int) -> slice:
    """Tell which of the slots of a segment remain."""
    period = step.period or 1
    match step.name:
        case "difference" | "season":
            return slice(period, None)
        case "every":
            return slice(None, None, period)
        case "mean":
            return slice(0, n_slots // period * period, period)
        case _:
            return slice(None)


def _changed(step: Step, x: FloatArray) -> FloatArray:
    """Apply a step to one segment ``x[slot, series]``; return the slots that remain."""
    period = step.period or 1
    match step.name:
        case "log":
            return np.log(x)
        case "detrend":
            return _on_observed(_without_line, x)
        case "standardise":
            return _on_observed(_standardised, x)
        case "normal-score":
            return _on_observed(_normal_scores, x)
        case "every":
            return x[::period]
        case "mean":
            return _block_means(x, period)
        case _:
            return x[period:] - x[:-period]


def _on_observed(
    change: Callable[[FloatArray, NDArray[np.int64]], FloatArray], x: FloatArray
) -> FloatArray:
    """Apply ``change(x, slots)`` to the values of each series that are not missing."""
    observed = ~np.isnan(x)
    if observed.all():
        return change(x, np.arange(len(x)))
    changed = np.full_like(x, np.nan)
    for i in np.flatnonzero(observed.any(axis=0)):
        slots = np.flatnonzero(observed[:, i])
        changed[slots, i] = change(x[slots, i : i + 1], slots)[:, 0]
    return changed


def _without_line(x: FloatArray, slots: NDArray[np.int64]) -> FloatArray:
    t = slots - slots.mean()
    level = x - x[:1]
    level = level - level.mean(axis=0)
    rest = level - np.outer(t, t @ level / ((t @ t) or 1.0))
    # an exact line leaves nothing but rounding, which a later step must not blow up
    return np.where(np.abs(rest).max(axis=0) > _ROUNDING * np.abs(x).max(axis=0), rest, 0.0)


def _standardised(x: FloatArray, _: NDArray[np.int64]) -> FloatArray:
    level = x - x[:1]  # exactly zero for a constant series
    return fit_scaling(level, "standard").apply(level)


def _normal_scores(x: FloatArray, _: NDArray[np.int64]) -> FloatArray:
    return fit_normal_scores(x).apply(x)


def _block_means(x: FloatArray, period: int) -> FloatArray:
    """Average the observed values of each block; a block without any stays missing."""
    n_blocks = len(x) // period
    blocks = x[: n_blocks * period].reshape(n_blocks, period, -1)
    observed = ~np.isnan(blocks)
    n_observed = observed.sum(axis=1)
    total = np.where(observed, blocks, 0.0).sum(axis=1)
    return np.where(n_observed > 0, total / np.maximum(n_observed, 1), np.nan)


def prepare_table(table: SeriesTable, steps: Iterable[str]) -> SeriesTable:
    """Apply steps such as ``"detrend"`` or ``"log[rain]"`` to a table; time stamps follow.

    Examples
    --------
    >>> table = SeriesTable(np.array([[1.0], [4.0], [9.0]]), ("a",), np.array([10, 20, 30]))
    >>> done = prepare_table(table, ["difference"])
    >>> done.values.ravel(), done.time
    (array([3., 5.]), array([20, 30]))
    """
    done = prepare(table.values, table.names, table.segments, [parse_step(text) for text in steps])
    return replace(
        table,
        values=done.values,
        time=None if table.time is None else table.time[done.rows],
        starts=tuple(segment.start for segment in done.segments),
    )
