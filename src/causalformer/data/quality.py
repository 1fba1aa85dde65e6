"""What in a table deserves care before anybody trusts a graph of it."""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import DataWarning
from causalformer.names import listed
from causalformer.policy import POLICY
from causalformer.scratch import n_missing

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.integer[Any]]

Kind = Literal["constant", "duplicated", "collinear", "categorical", "stationarity", "missing"]

_NEAR_COPY = 0.9999  # correlation, of either sign
_DEPENDENT = 1e-3  # spread that is left when the other columns are known, in standard deviations
_INVOLVED = 1e-2  # least coefficient in a linear combination of standardised columns
_SPARE_ROWS = 10  # beyond two per column: fewer rows could be combined by chance
_FEW_VALUES = 5
_REPEATS = 10  # how often each value of a category occurs on average, at least
_MOSTLY = 0.8
_COMPARED_ROWS = 2**16
_TESTED_COLUMNS = 200
_MOST_TESTED = 5000  # slots


@dataclass(frozen=True)
class Finding:
    """Something that deserves care.

    Attributes
    ----------
    kind : str
        `constant`, `duplicated`, `collinear`, `categorical`, `stationarity` or `missing`.
    columns : tuple of str
        The series concerned, in the order of the table.
    text : str
        One sentence that names them (a few, if there are many) and says what to do.
    """

    kind: Kind
    columns: tuple[str, ...]
    text: str


def inspect(
    values: FloatArray, names: Sequence[str], segments: Sequence[slice]
) -> tuple[Finding, ...]:
    """Look for everything that deserves care; the table stays as it is.

    Parameters
    ----------
    values : array of float ``[slot, series]``
        The series; NaN is a missing value.
    names : sequence of str
        One name per series.
    segments : sequence of slice
        The unbroken stretches of slots.

    Returns
    -------
    tuple of Finding
        At most a few of each kind, most serious first.

    Examples
    --------
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> table = np.stack([a, b, a + b], axis=1)
    >>> for finding in inspect(table, ["a", "b", "c"], [slice(0, 100)]):
    ...     print(finding.text)
    columns that follow from one another: drop 1 of ('a', 'b', 'c'); their effects cannot be told
    apart
    """
    from threadpoolctl import threadpool_limits

    varies = _varies(values, segments)
    different = varies.copy()
    for copies in _copies(values, varies):
        different[copies[1:]] = False
    with threadpool_limits(1, user_api="blas"):  # many small problems: threads only wait
        return (
            *idle_columns(values, names, segments),
            *_collinear(values, names, np.flatnonzero(different)),
            *_missing(n_missing(values) / max(1, len(values)), names),
            *_categorical(values, names, varies),
            *not_stationary(values, names, segments),
        )


def idle_columns(
    values: FloatArray, names: Sequence[str], segments: Sequence[slice]
) -> tuple[Finding, ...]:
    """Find the columns that can show no cause (constant) or that share one (copies).

    Examples
    --------
    >>> idle_columns(np.ones((3, 1)), ["a"], [slice(0, 3)])[0].text
    "constant column 'a'; it can neither cause nor be caused, so consider dropping it"
    """
    found = []
    varies = _varies(values, segments)
    constant = ~varies & (n_missing(values) < len(values))
    if constant.any():
        columns = _named(names, constant)
        within = " within every segment" if len(segments) > 1 else ""
        found.append(
            Finding(
                "constant",
                columns,
                f"constant column {listed(map(repr, columns))}{within}; it can neither cause nor "
                "be caused, so consider dropping it",
            )
        )
    copies = _copies(values, varies)
    if copies:
        found.append(
            Finding(
                "duplicated",
                _named(names, np.concatenate(copies)),
                f"identical columns {_equations(names, copies, '=')}; their effects cannot be "
                "told apart, so keep one of each",
            )
        )
    return tuple(found)


def warn_of(findings: Sequence[Finding], source: str, *, stacklevel: int = 2) -> None:
    """Issue every finding as a `DataWarning` that begins with where the series come from.

    Parameters
    ----------
    findings : sequence of Finding
        What was found.
    source : str
        Where the series come from.
    stacklevel : int
        Whose line the warning shows: 1 the caller's, 2 that of its caller, and so on.
    """
    for finding in findings:
        warnings.warn(f"{source}: {finding.text}", DataWarning, stacklevel=stacklevel + 1)


def _named(names: Sequence[str], columns: BoolArray | IntArray) -> tuple[str, ...]:
    """Return the names of some columns (a mask or positions) in the order of the table."""
    return tuple(names[i] for i in np.sort(np.arange(len(names))[columns]))


def _equations(names: Sequence[str], groups: Sequence[IntArray], sign: str) -> str:
    return listed(f" {sign} ".join(repr(names[i]) for i in group) for group in groups)


def _varies(values: FloatArray, segments: Sequence[slice]) -> BoolArray:
    """Tell which columns take two values or more in some segment."""
    varies = np.zeros(values.shape[1], dtype=np.bool_)
    for segment in segments:
        largest = np.fmax.reduce(values[segment], axis=0, initial=-np.inf)
        varies |= largest > np.fmin.reduce(values[segment], axis=0, initial=np.inf)
    return varies


def _copies(values: FloatArray, columns: BoolArray) -> list[IntArray]:
    """Group the columns that are the same to the last bit, missing values included."""
    alike = defaultdict(list)
    for i in np.flatnonzero(columns):
        alike[sha256((values[:, i] + 0.0).data).digest()].append(i)  # -0.0 + 0.0 is 0.0
    return [np.array(group) for group in alike.values() if len(group) > 1]


def _collinear(values: FloatArray, names: Sequence[str], columns: IntArray) -> Iterator[Finding]:
    """Find near-copies, and columns that are linear combinations of others."""
    x, columns = _comparable(values, columns)
    if len(columns) < 2:
        return
    near = [columns[group] for group in _linked_groups(np.abs(x.T @ x) > _NEAR_COPY)]
    if near:
        yield Finding(
            "collinear",
            _named(names, np.concatenate(near)),
            f"near-copies {_equations(names, near, '≈')} (correlation beyond {_NEAR_COPY}); their "
            "effects cannot be told apart, so keep one of each",
        )
    groups = [(columns[group], n_spare) for group, n_spare in _dependent_groups(x)]
    if groups:
        advice = (
            f"{n_spare} of ({listed(map(repr, _named(names, group)), most=8)})"
            for group, n_spare in groups
        )
        yield Finding(
            "collinear",
            _named(names, np.concatenate([group for group, _ in groups])),
            f"columns that follow from one another: drop {listed(advice)}; their effects cannot "
            "be told apart",
        )


def _comparable(values: FloatArray, columns: IntArray) -> tuple[FloatArray, IntArray]:
    """Return complete rows of standardised columns (each of norm 1), and which columns these are.

    If too few rows are complete, the columns with most gaps are left out until there are enough.
    Of very many rows every second, third, ... is looked at.
    """
    values = values[:: max(1, -(-len(values) // _COMPARED_ROWS))]
    missing = np.isnan(values[:, columns])
    n_missing = missing.sum(axis=0)
    for most in np.unique(n_missing)[::-1]:
        full = n_missing <= most
        rows = ~missing[:, full].any(axis=1)
        if rows.sum() >= 2 * full.sum() + _SPARE_ROWS:
            x = values[np.ix_(rows, columns[full])]
            x = x - x[:1]  # exactly zero for what is constant in these rows
            varies = x.any(axis=0)
            x = x[:, varies] / np.abs(x[:, varies]).max(axis=0)
            x = x - x.mean(axis=0)
            return x / np.linalg.norm(x, axis=0), columns[full][varies]
    return np.empty((0, 0)), columns[:0]


def _linked_groups(linked: BoolArray) -> list[IntArray]:
    """Group columns that are linked to one another, directly or not."""
    from scipy.sparse.csgraph import connected_components

    label = connected_components(linked, directed=False)[1]
    return [np.flatnonzero(label == k) for k in np.flatnonzero(np.bincount(label) > 1)]


def _dependent_groups(x: FloatArray) -> list[tuple[IntArray, int]]:
    """Group the columns of linear relations, with the number of columns that each could spare.

    Pivoted QR splits the columns into a basis and the rest; each of the rest is linked to those
    of the basis that it is made of. Which groups this gives does not depend on the basis.
    Groups of two are near-copies and left out.
    """
    from scipy.linalg import qr, solve_triangular

    r, order = qr(np.linalg.qr(x, mode="r"), mode="r", pivoting=True)
    rank = int((np.abs(np.diag(r)) > _DEPENDENT).sum())
    if rank == len(order):
        return []
    weights = solve_triangular(r[:rank, :rank], r[:rank, rank:])
    linked = np.zeros((len(order), len(order)), dtype=np.bool_)
    linked[:rank, rank:] = np.abs(weights) > _INVOLVED
    groups = (group for group in _linked_groups(linked) if len(group) > 2)
    return [(order[group], int((group >= rank).sum())) for group in groups]


def _missing(share: FloatArray, names: Sequence[str]) -> Iterator[Finding]:
    mostly = share > _MOSTLY
    some = (share > 0) & ~mostly
    if mostly.any():
        yield Finding(
            "missing",
            _named(names, mostly),
            f"column {_shares(names, share, mostly)} is mostly missing; drop it, or go to coarser "
            "slots, such as `mean:5`",
        )
    if some.any():
        yield Finding(
            "missing",
            _named(names, some),
            f"missing values in column {_shares(names, share, some)}; nothing is learned from "
            "them or judged by them, so fewer edges can be found",
        )


def _shares(names: Sequence[str], share: FloatArray, columns: BoolArray) -> str:
    worst_first = sorted(np.flatnonzero(columns).tolist(), key=lambda i: -share[i])
    return listed(f"{names[i]!r} ({100 * share[i]:.3g} %)" for i in worst_first)


def _categorical(values: FloatArray, names: Sequence[str], varies: BoolArray) -> Iterator[Finding]:
    """Find columns of few distinct values that come back again and again."""
    n_distinct = np.array([1 + (np.diff(np.sort(column)) > 0).sum() for column in values.T])
    n_observed = len(values) - n_missing(values)
    few = varies & (n_distinct <= _FEW_VALUES) & (n_observed >= _REPEATS * n_distinct)
    if few.any():
        counts = zip(_named(names, few), n_distinct[few], strict=True)
        shown = listed(f"{name!r} ({count} values)" for name, count in counts)
        yield Finding(
            "categorical",
            _named(names, few),
            f"column {shown} looks like a category or a count, not a measurement; read its edges "
            "with care, or leave it out",
        )


def not_stationary(
    values: FloatArray, names: Sequence[str], segments: Sequence[slice]
) -> Iterator[Finding]:
    """Find columns without a stable level."""
    tested = zip(names[:_TESTED_COLUMNS], values.T, strict=False)
    named = tuple(name for name, x in tested if _wanders(_longest_run(x, segments)))
    if named:
        yield Finding(
            "stationarity",
            named,
            f"column {listed(map(repr, named))} has a trend or drifts like a random walk (ADF "
            "and KPSS tests); prepare it with `detrend` or `difference` before you trust its edges",
        )
    if len(names) > _TESTED_COLUMNS:
        yield Finding(
            "stationarity",
            tuple(names[_TESTED_COLUMNS:]),
            f"only the first {_TESTED_COLUMNS} of {len(names)} columns were tested for trends; "
            "look at the others, or prepare all with `difference`",
        )


def wandering(values: FloatArray, segments: Sequence[slice]) -> BoolArray:
    """Say which columns wander, ``[column]``; see `not_stationary`."""
    return np.array([_wanders(_longest_run(x, segments)) for x in values.T])


def _longest_run(x: FloatArray, segments: Sequence[slice]) -> FloatArray:
    """Return the longest stretch of observed values in a segment, or the end of it."""
    observed = ~np.isnan(x)
    begins = observed & np.r_[True, ~observed[:-1]]
    starts = [segment.start for segment in segments]
    begins[starts] = observed[starts]
    run = np.where(observed, np.cumsum(begins), 0)
    lengths = np.bincount(run)
    lengths[0] = 0
    longest: FloatArray = x[observed & (run == lengths.argmax())]
    return longest[-_MOST_TESTED:]


def _wanders(x: FloatArray) -> bool:
    """Say whether KPSS rejects a stable level and ADF does not reject a unit root."""
    from statsmodels.tsa.stattools import adfuller, kpss

    if len(x) < POLICY.least_segment or (x == x[0]).all():
        return False
    x = (x - x[0]) / np.abs(x - x[0]).max()
    n_lags = int(len(x) ** (1 / 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # p-values beyond the tables, exact lines, changes to come
        if kpss(x, nlags=n_lags)[1] >= POLICY.level:
            return False
        return not adfuller(x, maxlag=n_lags, autolag=None)[1] <= POLICY.level
