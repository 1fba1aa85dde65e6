"""How far to trust a graph: what could be predicted, and what speaks against it."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causalformer.data import SeriesTable
from causalformer.data.quality import inspect, not_stationary
from causalformer.data.scaling import LEAST_TO_LEVEL, fit_normal_scores, fit_run_scaling
from causalformer.detect.change import Change
from causalformer.detect.edges import FoundEdges
from causalformer.detect.lag_choice import LagChoice
from causalformer.errors import DataWarning
from causalformer.names import listed
from causalformer.policy import POLICY

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_SAID = ("collinear", "categorical", "missing")  # the rest is said on reading
_MOST_TOLD = 5  # pairs that a warning names


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What the network could predict, and warnings in plain words.

    Attributes
    ----------
    names : tuple of str
        The series.
    r2 : array
        Held-out share of each series' variance that its past and that of the others predict.
    better_than_linear : array
        By which share the held-out error is below that of a linear model; negative if above.
    observed : array
        Share of each series' slots that were observed.
    counted : array
        Slots that counted when each series was tested as an effect: observed, with enough past,
        and with the past values that it depends on observed, too.
    max_lag : int
        The number of lags in use.
    max_lag_reason : str
        Where it comes from.
    warnings : tuple of str
        What to keep in mind.
    time_terms : tuple of str
        Trends, level shifts and seasons that were held fixed, in plain words.
    """

    names: tuple[str, ...]
    r2: FloatArray
    better_than_linear: FloatArray
    observed: FloatArray
    counted: FloatArray
    max_lag: int
    max_lag_reason: str
    warnings: tuple[str, ...]
    time_terms: tuple[str, ...] = ()

    def arrays(self) -> dict[str, FloatArray]:
        """Give the numbers by name."""
        return {
            "r2": self.r2,
            "better_than_linear": self.better_than_linear,
            "observed": self.observed,
            "counted": self.counted,
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per series."""
        import pandas as pd

        return pd.DataFrame({"series": list(self.names), **self.arrays()})

    def _repr_html_(self) -> str:
        """Show the table, what was held fixed and the warnings in notebooks."""
        fixed = [f"held fixed: {text}" for text in self.time_terms]
        told = "".join(f"<li>{escape(text)}</li>" for text in (*fixed, *self.warnings))
        return f"{self.to_frame().to_html(index=False)}<ul>{told}</ul>"


def diagnose(
    table: SeriesTable,
    scores: SeriesTable,
    found: FoundEdges,
    choice: LagChoice,
    time_terms: Sequence[str] = (),
    changes: Sequence[Change] = (),
    interpolated: str = "",
) -> Diagnostics:
    """Collect figures and warnings; every warning is also issued as a `DataWarning`.

    `scores`, `found` and `changes` may have the series in another order than `table`; the scores
    are free from the `time_terms`. `interpolated` says which values were taken for missing ones.
    """
    removal = found.evidence.removal
    variance = np.array([np.nanvar(column[choice.max_lag :]) for column in scores.values.T])
    r2 = np.where(variance > 0, 1 - removal.error / np.maximum(variance, 1e-12), 0.0)
    said = (
        *([interpolated] if interpolated else []),
        *_warnings(table, scores.select(table.names).values, r2, found, choice),
        *([] if _levels(table) else _of_hidden_drivers(scores.names, found)),
        *_of_sampling(found),
        *_of_changes(table, scores.names, changes),
    )
    for text in said:
        warnings.warn(text, DataWarning, stacklevel=4)
    at = [scores.names.index(name) for name in table.names]
    return Diagnostics(
        names=table.names,
        r2=r2[at],
        better_than_linear=removal.better_than_linear[at],
        observed=1.0 - table.n_missing / table.n_slots,
        counted=np.diag(removal.n_together)[at],
        max_lag=choice.max_lag,
        max_lag_reason=choice.reason,
        warnings=said,
        time_terms=tuple(time_terms),
    )


def _warnings(
    table: SeriesTable,
    scores: FloatArray,
    r2: FloatArray,
    found: FoundEdges,
    choice: LagChoice,
) -> list[str]:
    n_slots = len(scores)
    said = []
    if choice.lowered:
        said.append(
            f"max_lag was {choice.reason}; edges of more than {choice.max_lag} slots cannot be "
            f"found; {choice.advice}"
        )
    elif n_slots < 2 * POLICY.least_segment:
        said.append(f"{n_slots} slots are few: only strong edges can be found; record longer")
    said += [f.text for f in inspect(table.values, table.names, table.segments) if f.kind in _SAID]
    said += [f.text for f in not_stationary(scores, table.names, table.segments)]
    said += _repeated(table)
    levels = _levels(table)
    said += levels
    halves = slice(0, n_slots // 2), slice(n_slots // 2, n_slots)
    moved = [
        name
        for name, x in zip(table.names, scores.T, strict=True)
        if abs(_mean(x[halves[0]]) - _mean(x[halves[1]])) > POLICY.level_shift
    ]
    if moved and not levels:
        said.append(
            f"the level of {listed(moved)} differs between the first and the second half, though "
            "trends and level shifts are held fixed: the series may drift like random walks; "
            "take differences before you trust their edges"
        )
    if (r2 < POLICY.least_share).all() and not (found.within.any() or found.lagged.any()):
        said.append(
            "nothing can be predicted: no series is better predicted than by its mean; a graph "
            "without edges is all that these data support"
        )
    return said


def _of_sampling(found: FoundEdges) -> list[str]:
    """Warn if contemporaneous links show in levels: sampling may be too slow (Granger 1969).

    Such links alone are no sign of it: where the past is as it should be, surprises show them best.
    """
    if not (found.within_evidence.levels and found.within.any()):
        return []
    return [
        f"{int(found.within.sum())} contemporaneous links show in the levels of the series, not in "
        "what their past leaves unexplained: the series may act on each other faster than they "
        "were sampled; then indirect links look direct, and directions are hard to tell; sample "
        "more often if you can"
    ]


def _of_changes(table: SeriesTable, names: Sequence[str], changes: Sequence[Change]) -> list[str]:
    """Warn of mechanisms that change, the clearest first."""
    if not changes:
        return []
    told = []
    for change in changes:
        when = f"slot {change.slot}"
        if table.time is not None:
            when = f"{table.time[change.slot]} ({when})"
        cause, effect = repr(names[change.cause]), repr(names[change.effect])
        what = f"{cause} on {effect}" if cause != effect else f"{cause} on itself"
        told.append(f"{what}, most around {when}")
    return [
        f"the effect of {listed(told, most=3)} changes over time: one graph mixes what holds in "
        "different parts of the record; fit the parts on their own"
    ]


def _mean(x: FloatArray) -> float:
    """Mean of what was observed; 0 if nothing was."""
    return float(np.nansum(x) / max(1, (~np.isnan(x)).sum()))


def _repeated(table: SeriesTable) -> list[str]:
    """Warn of equal recordings: what is learned from one is then tested by the other."""
    equal: dict[bytes, list[str]] = {}
    for name, part in table.recordings().items() if len(table.runs) > 1 else ():
        digest = hashlib.sha256(np.ascontiguousarray(part.values).data).digest()
        equal.setdefault(digest, []).append(name)
    same = [names for names in equal.values() if len(names) > 1]
    if not same:
        return []
    return [
        f"recordings {listed(same[0])} are equal: what is learned from one is tested by the other, "
        "and everything seems certain; give each once"
    ]


def _levels(table: SeriesTable) -> list[str]:
    """Warn of recordings that were too short to be freed from levels that differ."""
    lengths = np.bincount(table.run_of_slot)
    if len(lengths) < 2 or lengths.min() >= LEAST_TO_LEVEL:
        return []
    scores = fit_normal_scores(table.values).apply(table.values)
    within = np.nanvar(fit_run_scaling(scores, table.run_of_slot).centred(scores), axis=0)
    apart = within < (1 - POLICY.even_odds) * np.nanvar(scores, axis=0)
    if not apart.any():
        return []
    named = listed(name for name, yes in zip(table.names, apart, strict=True) if yes)
    return [
        f"recordings differ in the level of {named} and some are too short for it to be removed: "
        "edges may show nothing but which recording a row is from; standardise each recording "
        "before"
    ]


def _of_hidden_drivers(names: Sequence[str], found: FoundEdges) -> list[str]:
    """Warn of what hidden drivers explain, of edges that they may explain, and of what is left."""
    within, said = found.within_evidence, []
    if found.hidden_series is not None:
        said.append(
            "a series that was not recorded, with a correlation of "
            f"{found.hidden_series.memory:.2f} from slot to slot, drives "
            f"{_named(names, found.hidden_series.driven)}: edges were tested given it, read them "
            "with care"
        )
    if found.driven:
        said.append(
            "what all series have in common predicts them: a hidden common driver, or noise that "
            "the measurements share, is likely; lagged edges were tested given it, read those "
            "that are left with care"
        )
    if within.factor.any():
        said.append(
            f"{_named(names, within.factor)} move together within a slot as hidden common drivers "
            "would make them: contemporaneous links are drawn only where they share more than that"
        )
    if found.by_hidden_driver.any():
        said.append(
            "a hidden common driver explains better than an edge what joins "
            f"{_pairs(names, found.by_hidden_driver)}: not drawn"
        )
    marked = found.drawn & found.may_be_hidden
    if found.n_hidden >= 1.0:
        said.append(
            f"a hidden common driver may be behind {_pairs(names, marked)}; see may_be_confounded"
        )
    # what the past leaves of series that flow moves together anyway
    if not said and not found.evidence.pairs.flows.any() and _errors_move_together(found):
        said.append(
            "the series move together within a slot far beyond what the edges explain: hidden "
            "common drivers are likely; read weak edges with care"
        )
    if later := _errors_move_later(found):
        said.append(
            f"errors are related over more than {later} slots: links may take longer than max_lag, "
            "or hidden common drivers have a memory; raise max_lag"
        )
    return said


def _named(names: Sequence[str], which: BoolArray) -> str:
    return listed(name for name, yes in zip(names, which, strict=True) if yes)


def _pairs(names: Sequence[str], which: BoolArray) -> str:
    """Name some pairs, cause first."""
    told = [f"{names[cause]!r} and {names[effect]!r}" for cause, effect in np.argwhere(which)]
    more = f", and {len(told) - _MOST_TOLD} more pairs" if len(told) > _MOST_TOLD else ""
    return ", ".join(told[:_MOST_TOLD]) + more


def _errors_move_together(found: FoundEdges) -> bool:
    """Say whether errors are correlated broadly and no contemporaneous links were drawn."""
    from scipy.special import chdtrc

    removal = found.evidence.removal
    correlation = removal.residual_correlation
    pairs = np.triu_indices(len(correlation), 1)
    # by chance each n r² follows a chi-square law; in short series that alone is much
    statistic = (removal.n_together * correlation**2)[pairs].sum()
    p_value = chdtrc(len(pairs[0]), statistic)
    beyond_chance = removal.shared > POLICY.least_share and p_value < POLICY.refuted
    return bool(beyond_chance and not found.within.any())


def _errors_move_later(found: FoundEdges) -> int:
    """Give the lags in use if errors are related beyond them (Hosking 1980), else 0."""
    from scipy.special import chdtrc

    removal, samples = found.evidence.removal, found.evidence.samples
    max_lag, n_series = samples.max_lag, removal.residual.shape[1]
    if n_series < 2 or not samples.complete:
        return 0
    errors = removal.residual / np.maximum(removal.residual.std(axis=0), 1e-12)
    between, statistic, n_tests = ~np.eye(n_series, dtype=bool), 0.0, 0
    for lag in range(max_lag + 1, 2 * max_lag + 1):
        adjacent = samples.slot[lag:] - samples.slot[:-lag] == lag
        n_pairs = int(adjacent.sum())
        if n_pairs > max(2 * n_series, len(errors) // 2):  # else recordings are too short
            correlation = errors[:-lag][adjacent].T @ errors[lag:][adjacent] / n_pairs
            statistic += float(n_pairs * (correlation[between] ** 2).sum())
            n_tests += int(between.sum())
    if not n_tests:
        return 0
    excess = (statistic / n_tests - 1.0) / len(errors)
    related = excess > POLICY.least_share and chdtrc(n_tests, statistic) < POLICY.refuted
    return max_lag if related else 0
