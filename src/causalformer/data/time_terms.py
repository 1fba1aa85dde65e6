r"""Time as a condition: trends, level shifts and seasons that series follow, each on its own clock.

What the calendar does to all series makes them alike, and none of them drives another. So a series
is freed from what it follows before anything is learned from it, which is the same as to hold these
terms fixed in every regression on it (Frisch and Waugh 1933). On offer are

* a trend: a line, and half waves :math:`\cos(\pi k t / n)`, :math:`k \le 6`;
* a level shift: zero before a slot, one from there on;
* a season: sine and cosine of a period, of which at least three are seen, and its harmonics.

A series with memory drifts and swings by itself. So a term must explain what the past of the series
does not: it stands beside the series' own lags, and is chosen if it lowers the extended information
criterion (Chen and Chen 2008),

.. math:: n \log(RSS / n) + k (\log n + \log p) ,

where p counts the terms of its kind on offer, in all series; trends and shifts pay :math:`2 \log p`
(γ = 1 in place of 1/2), as the slow swings of a short series with memory look like them, and no
second test looks at them as one does at seasons (below). Trends and shifts stand beside
:math:`4 (n / 100)^{1/4}` lags, seasons beside :math:`12 (n / 100)^{1/4}`, the two lengths of
Schwert (1989): a long past imitates a slow trend, and only a long past tells a resonance from a
season. A season is a line, too: an oscillator loses its phase and spreads over the frequencies
around it, so a line must pay the same price above their level (Thomson's 1982 test). The errors may
be of unequal size: White's (1980) statistic has to pay as well.

Terms that one series follows are likely to act on others, and a regression holds a term fixed in
the effect and in its causes: freed from it, an effect would no longer match a cause that is not. So
they are offered to all series at the plain criterion, without :math:`\log p`, which tells who
follows them, and all series are freed from all of them. A term that is none costs one degree of
freedom.

A season is the same for all series; its period is where the gains of all lines that belong to it
are largest, and a whole number of slots unless another one pays for one more parameter.

A series that wanders like a random walk keeps its steps, which are its own noise: shifts are taken
off only if a series without them returns to its level (test of Dickey and Fuller 1979).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from causalformer import scratch
from causalformer.arrays import orthonormal
from causalformer.data.series import SeriesTable
from causalformer.errors import SettingsError
from causalformer.names import listed
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]

Kind = Literal["trend", "shift", "season"]
Season = str | float | Sequence[float] | None

_KINDS: Final[tuple[Kind, ...]] = ("trend", "shift", "season")
# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_LONGEST = 4000  # slots; in longer series the past does not grow any more
_MOST_SLOTS = 2**17  # longer segments are taken as they are: the search would need much memory
_MOST_TERMS = 20  # that a series is searched for
_PADDING = 4  # how much finer than 1 / n frequencies are tried
_RETURNS = -2.86  # Dickey and Fuller's 5 % point, constant only
_PER_TERM = 0.5  # by which each further term lowers it: -3.41 with a line, -3.8 with a curve
_ROUNDING = 1e-9
_SAME = 1e-6  # share of a term's square below which others say the same


@dataclass(frozen=True, order=True)
class Term:
    """Something that a series follows.

    Attributes
    ----------
    kind : str
        `trend`, `shift` or `season`.
    at : float
        Half waves of a trend in the segment, 0 for a line; the slot of the segment from which the
        level is another; the frequency of a season, in periods per slot.
    """

    kind: Kind
    at: float

    def columns(self, n_slots: int, slot: FloatArray | None = None) -> FloatArray:
        """Give the one or two columns ``[slot, column]`` of the term in a segment.

        Without `slot`, of all its slots. A trend stays where it was before the first slot and
        after the last.

        Examples
        --------
        >>> Term("shift", 2).columns(4).ravel()
        array([0., 0., 1., 1.])
        >>> Term("season", 0.25).columns(4).round().T
        array([[ 1.,  0., -1., -0.],
               [ 0.,  1.,  0., -1.]])
        """
        slot = np.arange(n_slots, dtype=np.float64) if slot is None else slot
        if self.kind == "shift":
            return (slot >= self.at).astype(np.float64)[:, None]
        if self.kind == "trend":
            share = (slot.clip(0, n_slots - 1) + 0.5) / n_slots
            return (np.cos(np.pi * self.at * share) if self.at else share - 0.5)[:, None]
        angle = 2 * np.pi * self.at * slot
        wave = np.column_stack([np.cos(angle), np.sin(angle)])
        return wave[:, :1] if self.at == 0.5 else wave  # the sine of every second slot is zero


def _trends() -> tuple[Term, ...]:
    return tuple(Term("trend", k) for k in range(POLICY.half_waves + 1))


@dataclass(frozen=True, eq=False)
class Course:
    """What one series follows in one segment: ``offset`` and its terms, each with weights.

    Attributes
    ----------
    terms : tuple of Term
        What it follows.
    weights : array ``[column]``
        Of the columns of the terms.
    offset : float
        What makes the mean of the course zero.
    rounding : float
        What is nearer to the mean than this without the course is nothing but rounding.
    mean : float
        The mean of the series.
    """

    terms: tuple[Term, ...]
    weights: FloatArray
    offset: float
    rounding: float
    mean: float

    def at(self, slot: FloatArray, n_slots: int) -> FloatArray:
        """Give the course at slots of a segment of so many slots, also before and after it."""
        none = np.empty((len(slot), 0))
        columns = np.column_stack([none, *(term.columns(n_slots, slot) for term in self.terms)])
        return np.asarray(columns @ self.weights + self.offset)


@dataclass(frozen=True, eq=False)
class TimeTerms:
    """What the series of a table follow.

    Attributes
    ----------
    periods : tuple of float
        The seasons on offer, in slots.
    courses : dict
        The course of (segment, series), where there is one; positions in the table.
    lengths : tuple of int
        Slots of every segment.
    begins : tuple of float
        Time of the first slot of every segment, if the table has times.
    step : float
        Time from slot to slot.
    n_searched : int
        Series that were searched, those of every segment counted.
    by_run : bool
        Whether there were several recordings, each with a course of its own.
    followed : dict
        The terms that (segment, series) does follow; it is freed from those of others, too. Not
        stored.
    """

    periods: tuple[float, ...] = ()
    courses: dict[tuple[int, int], Course] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    begins: tuple[float, ...] = ()
    step: float = 1.0
    n_searched: int = 0
    by_run: bool = False
    followed: dict[tuple[int, int], tuple[Term, ...]] = field(default_factory=dict)

    def anew(self, table: SeriesTable) -> "TimeTerms":
        """Give the terms that hold for a table: these, or, with several recordings, its own.

        A recording follows a course of its own, as it has a level of its own; both are read from
        all its rows.
        """
        if not (self.by_run and self.n_searched):
            return self
        return find_time_terms(table, self.periods, self.n_searched)

    def of(self, table: SeriesTable) -> FloatArray:
        """Give what the series follow in every slot of a table: the one learned from, or another.

        The clock goes by the times of the tables, if both have them. Else every segment begins
        when the segment of the same number began.
        """
        course = scratch.empty(table.values.shape)
        course[:] = 0.0
        begins = _begins(table)[0]
        for number, segment in enumerate(table.segments):
            k, first = number, 0
            if begins and self.begins:
                k = max(int(np.searchsorted(self.begins, begins[number], "right")) - 1, 0)
                first = round((begins[number] - self.begins[k]) / self.step)
            slot = first + np.arange(segment.stop - segment.start, dtype=np.float64)
            for (of_segment, i), found in self.courses.items():
                if of_segment == k:
                    course[segment, i] = found.at(slot, self.lengths[k])
        return course

    def without(self, table: SeriesTable) -> SeriesTable:
        """Free the series of a table; it stays as it is if they follow nothing."""
        if not self.courses:
            return table
        values = self.of(table)
        np.subtract(table.values, values, out=values)
        for (_, i), found in self.courses.items():  # a clock leaves nothing but rounding
            values[np.abs(values[:, i] - found.mean) <= found.rounding, i] = found.mean
        values.setflags(write=False)
        return replace(table, values=values)

    def stored(self) -> dict[str, FloatArray]:
        """Give everything as arrays, for a file."""
        rows = []
        for (k, i), course in self.courses.items():
            rows.append((k, i, -1.0, course.offset, course.rounding, course.mean))
            at = 0
            for term in course.terms:
                n_columns = term.columns(1).shape[1]
                weights = np.zeros(2)
                weights[:n_columns] = course.weights[at : (at := at + n_columns)]
                rows.append((k, i, float(_KINDS.index(term.kind)), term.at, *weights))
        return {
            "time.periods": np.array(self.periods, dtype=np.float64),
            "time.courses": np.array(rows, dtype=np.float64).reshape(-1, 6),
            "time.lengths": np.array(self.lengths, dtype=np.float64),
            "time.begins": np.array([*self.begins, self.step], dtype=np.float64),
            "time.searched": np.array([self.n_searched, self.by_run], dtype=np.float64),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, FloatArray]) -> Self:
        """Read what `stored` gave; older files have nothing to read."""
        if "time.courses" not in arrays:
            return cls()
        courses: dict[tuple[int, int], Course] = {}
        for k, i, code, *numbers in arrays["time.courses"].tolist():
            place = int(k), int(i)
            if code < 0:
                courses[place] = Course((), np.zeros(0), *numbers)
                continue
            term, old = Term(_KINDS[int(code)], numbers[0]), courses[place]
            weights = numbers[1 : 1 + term.columns(1).shape[1]]
            courses[place] = replace(
                old, terms=(*old.terms, term), weights=np.append(old.weights, weights)
            )
        *begins, step = arrays["time.begins"].tolist()
        periods, lengths = (arrays[f"time.{name}"].tolist() for name in ("periods", "lengths"))
        n_searched, by_run = map(int, arrays["time.searched"])
        return cls(
            tuple(periods),
            courses,
            tuple(map(int, lengths)),
            tuple(begins),
            step,
            n_searched,
            bool(by_run),
        )

    def told(self, table: SeriesTable, order: Sequence[str] | None = None) -> tuple[str, ...]:
        """Say in plain words which series follow what, in the order of the table or another.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> x = rng.standard_normal((300, 2))
        >>> x[:, 0] += 2 * np.sin(2 * np.pi * np.arange(300) / 12)
        >>> x[100:, 1] += 3
        >>> table = SeriesTable(x, ("sun", "gauge"))
        >>> find_time_terms(table, [12]).told(table)
        ("a season of 12 slots in 'sun'", "a level shift of 'gauge' at slot 100")
        """
        by_kind: dict[str, list[str]] = {}
        place = {name: position for position, name in enumerate(order or table.names)}
        by_name = sorted(self.followed.items(), key=lambda item: place[table.names[item[0][1]]])
        for (k, i), terms in by_name:
            for term in terms:
                by_kind.setdefault(self._named(term, table, k), []).append(repr(table.names[i]))
        order = sorted(by_kind, key=lambda text: not text.startswith("a season"))
        return tuple(text.format(listed(dict.fromkeys(by_kind[text]))) for text in order)

    def _named(self, term: Term, table: SeriesTable, segment: int) -> str:
        if term.kind == "trend":
            return "a trend in {}"
        if term.kind == "shift":
            slot = table.segments[segment].start + int(term.at)
            when = f"slot {slot}" if table.time is None else f"{table.time[slot]} (slot {slot})"
            return f"a level shift of {{}} at {when}"
        of_it = [p for p in self.periods if _is_harmonic(term.at, 1 / p, _ROUNDING)]
        period = max(of_it, default=1 / term.at)
        return f"a season of {period:.4g} slots in {{}}"


def read_season(season: object) -> Literal["auto"] | tuple[float, ...]:
    """Read the option: ``"auto"``, None or ``"none"``, a period in slots or several, also as text.

    Examples
    --------
    >>> read_season("auto"), read_season(None), read_season("24, 168")
    ('auto', (), (24.0, 168.0))
    >>> read_season(1)
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: season is 1; choose 'auto', 'none', a number of slots from 2
    such as 24, or several such as 24, 168
    """
    if isinstance(season, str) and season.strip() == "auto":
        return "auto"
    if season is None or (isinstance(season, str) and season.strip() == "none"):
        return ()
    parts: Any = season.split(",") if isinstance(season, str) else season
    try:
        periods = tuple(float(part) for part in np.atleast_1d(np.asarray(parts)))
    except (TypeError, ValueError):
        periods = ()
    if not periods or isinstance(season, bool) or not all(2 <= p < np.inf for p in periods):
        raise SettingsError(
            f"season is {season!r}; choose 'auto', 'none', a number of slots from 2 such as 24, or "
            "several such as 24, 168"
        )
    return periods


def check_seen(table: SeriesTable, periods: Sequence[float]) -> None:
    """Refuse a season of which no segment of the table shows three periods.

    Examples
    --------
    >>> check_seen(SeriesTable(np.zeros((60, 2)), ("a", "b")), [24])
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: the season of 24 slots is too long: the longest stretch
    without a break has 60 slots, and 3 periods must be seen; choose a shorter one, or 'none'
    """
    longest = max(segment.stop - segment.start for segment in table.segments)
    for period in periods:
        if longest < POLICY.least_periods * period:
            raise SettingsError(
                f"the season of {period:g} slots is too long: the longest stretch without a break "
                f"has {longest} slots, and {POLICY.least_periods:g} periods must be seen; choose a "
                "shorter one, or 'none'"
            )


def find_seasons(table: SeriesTable) -> tuple[float, ...]:
    """Look for the seasons of a table; give their periods in slots.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((300, 2))
    >>> x += np.sin(2 * np.pi * np.arange(300) / 12)[:, None]
    >>> find_seasons(SeriesTable(x, ("a", "b")))
    (12.0,)
    """
    segments = _long_enough(table)
    n_searched = len(segments) * table.n_series
    lines = [
        _Line(term.at, _Innovations(values[:, i], POLICY.far_past), terms)
        for values in segments.values()
        for i in range(table.n_series)
        for terms in [_searched(values[:, i], n_searched, lines=True)]
        for term in terms
        if term.kind == "season"
    ]
    return tuple(1 / frequency for frequency in _base_frequencies(lines))


def find_time_terms(
    table: SeriesTable, periods: Sequence[float] = (), n_searched: int | None = None
) -> TimeTerms:
    """Find what the series of a table follow; see the module.

    Parameters
    ----------
    table : SeriesTable
        The series; NaN is a missing value. Every segment has a clock of its own.
    periods : sequence of float
        The seasons on offer, in slots; see `find_seasons`.
    n_searched : int, optional
        How many series to pay for; those of the table unless given.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((300, 2))
    >>> x[:, 0] += np.linspace(0, 5, 300)
    >>> find_time_terms(SeriesTable(x, ("a", "b"))).followed
    {(0, 0): (Term(kind='trend', at=0),)}
    """
    segments = _long_enough(table)
    n_searched = n_searched or len(segments) * table.n_series
    courses: dict[tuple[int, int], Course] = {}
    followed: dict[tuple[int, int], tuple[Term, ...]] = {}
    for k, values in segments.items():
        lines = _harmonics([1 / period for period in periods], len(values))
        waves = [_kept(x, lines) for x in values.T]
        pairs = zip(values.T, waves, strict=True)
        found = [_searched(x, n_searched, wave) for x, wave in pairs]
        slow = _distinct([t for terms in found for t in terms if t.kind != "season"], len(values))
        kept = [_without_steps_of_a_walk(x, _kept(x, [*slow, *lines])) for x in values.T]
        union = sorted({term for terms in kept for term in terms})
        for i, x in enumerate(values.T):
            terms = _without_steps_of_a_walk(x, tuple(union)) if _is_known(x) else ()
            if terms:
                courses[k, i] = _fitted(x, terms)
            if kept[i]:
                followed[k, i] = kept[i]
    lengths = tuple(segment.stop - segment.start for segment in table.segments)
    by_run = len(set(table.runs)) > 1
    return TimeTerms(
        tuple(periods), courses, lengths, *_begins(table), n_searched, by_run, followed
    )


def _begins(table: SeriesTable) -> tuple[tuple[float, ...], float]:
    """Give the time of the first slot of every segment, and the step; nothing without times."""
    time = table.time
    if time is None or table.n_slots < 2:
        return (), 1.0
    if np.issubdtype(time.dtype, np.datetime64):
        time = time.astype("datetime64[ns]").astype(np.int64)
    if not np.issubdtype(time.dtype, np.number):
        return (), 1.0
    step = float(np.median(np.diff(time)))
    return (tuple(float(time[start]) for start in table.starts), step) if step > 0 else ((), 1.0)


def _long_enough(table: SeriesTable) -> dict[int, FloatArray]:
    """Give the values of the segments that are long enough to be searched, by their number."""
    return {
        k: table.values[segment]
        for k, segment in enumerate(table.segments)
        if POLICY.least_segment <= segment.stop - segment.start <= _MOST_SLOTS
    }


def _distinct(slow: Sequence[Term], n_slots: int) -> list[Term]:
    """List trends and shifts once; of shifts within the near past of each other the commonest."""
    kept: list[Term] = []
    for term, _ in Counter(sorted(slow)).most_common():
        near = (abs(term.at - other.at) for other in kept if other.kind == term.kind == "shift")
        if not any(distance <= _n_lags(n_slots, POLICY.near_past) for distance in near):
            kept.append(term)
    return kept


class _Innovations:
    """One series beside its own past and some terms: what others would still explain of it."""

    def __init__(self, x: FloatArray, order: float) -> None:
        self.oscillations: list[float] = []  # frequencies that are known to be no lines
        self.n_slots = len(x)
        n_lags = _n_lags(self.n_slots, order)
        x = np.ldexp(_within_reach(x), -_exponent(x))
        self.rows = _with_past(x, order)
        self._x, self._now = x, x[self.rows]
        past = [x[self.rows - lag] for lag in range(1, n_lags + 1)]
        self._past = np.column_stack([np.ones(len(self.rows)), *past])
        self._of_past = orthonormal(_normed(self._past))
        self.hold(())
        centred = self._now - self._now.sum() / max(len(self.rows), 1)
        if self._square <= (_ROUNDING * np.linalg.norm(centred)) ** 2:
            self._of_past = orthonormal(
                _normed(self._past[:, :1])
            )  # a clock: its past would hide it
            self.hold(())

    def hold(self, terms: Iterable[Term]) -> None:
        """Take terms in beside the past."""
        terms = tuple(terms)
        rest = self._x - _course(self._x, terms)
        self._rest = np.nan_to_num(rest - np.nanmean(rest))
        self._axes = self._of_past
        if terms:
            held = np.column_stack([term.columns(self.n_slots)[self.rows] for term in terms])
            held = _normed(held)
            for _ in range(2):  # twice is enough (Giraud et al. 2005)
                held = held - self._of_past @ (self._of_past.T @ held)
            self._axes = np.hstack([self._of_past, orthonormal(held, 1.0)])
        self._error = self._now - self._axes @ (self._axes.T @ self._now)
        self._square = max(float(self._error @ self._error), np.finfo(float).tiny)

    @property
    def variance(self) -> float:
        """Mean square of what the past and the terms leave."""
        return self._square / max(len(self.rows), 1)

    @property
    def freedom(self) -> int:
        """Slots that count, less the number of weights."""
        return int(len(self.rows) - self._axes.shape[1])

    def gain(self, term: Term) -> float:
        """By how much the criterion falls, prices apart, if a term is taken in."""
        freed = self._freed(term.columns(self.n_slots))
        weights = np.linalg.lstsq(freed, self._error, rcond=_SAME)[0]
        return float(self._gain(self._error @ (freed @ weights)))

    def trend_gains(self) -> FloatArray:
        """Give the gain of every trend."""
        freed = self._freed(_columns_of(_trends(), self.n_slots))
        square = np.maximum((freed**2).sum(axis=0), np.finfo(float).tiny)
        return self._gain((self._error @ freed) ** 2 / square)

    def robust_gain(self, term: Term) -> float:
        """Give the same, by White's statistic."""
        freed = self._freed(term.columns(self.n_slots))
        weights = np.linalg.lstsq(freed, self._error, rcond=_SAME)[0]
        score = freed * (self._error - freed @ weights)[:, None]
        moment = freed.T @ self._error
        return float(moment @ np.linalg.pinv(score.T @ score, hermitian=True) @ moment)

    def _freed(self, columns: FloatArray) -> FloatArray:
        columns = columns[self.rows]
        return np.asarray(columns - self._axes @ (self._axes.T @ columns))

    def _gain(self, explained: FloatArray | float) -> FloatArray:
        share = np.clip(np.asarray(explained) / self._square, 0.0, 1 - 1e-12)
        return np.asarray(-self.freedom * np.log1p(-share))

    def level_gain(self, term: Term) -> float:
        """Give what a term explains of the series itself, its past not held."""
        columns = term.columns(self.n_slots)
        shared, gram = columns.T @ self._rest, columns.T @ columns
        return float(shared @ np.linalg.lstsq(gram, shared, rcond=_SAME**2)[0])

    def line(self) -> Term:
        """Give the line that gains most.

        A strong season is in the own past, too, which leaves the line no width to be found by. So
        the highest peak of the series itself is a second candidate.
        """
        frequency, gains = self.line_gains()
        power = np.abs(np.fft.rfft(self._rest, 2 * (len(frequency) - 1)))
        power[frequency < POLICY.least_periods / self.n_slots] = 0.0
        for other in self.oscillations:
            near = np.abs(frequency - other) <= POLICY.least_periods / self.n_slots
            gains[near] = power[near] = 0.0
        lines = [
            Term("season", _refined([(self, 1)], float(frequency[peak]), 1 / self.n_slots))
            for peak in (gains.argmax(), power.argmax())
            if power[peak] > 0
        ]
        return max(lines, key=self.gain, default=Term("season", 0.5))

    def shift_gains(self) -> FloatArray:
        """Give the gain of a level shift at every slot; zero near the ends."""
        after = self._in_place()[::-1].cumsum(axis=0)[::-1]
        square = after[:, -1] - (after[:, 1:-1] ** 2).sum(axis=1)
        side = max(POLICY.least_samples // 2, int(POLICY.least_side * self.n_slots))
        usable = square > _SAME * self.n_slots
        usable[:side] = usable[-side:] = False
        explained = after[:, 0] ** 2 / np.where(usable, square, 1.0)
        return np.where(usable, self._gain(explained), 0.0)

    def line_gains(self) -> tuple[FloatArray, FloatArray]:
        """Give frequencies, and the gain of sine and cosine of each.

        All products of waves with axes and errors are Fourier transforms; those of waves with
        each other follow from the transform of the slots that count, at twice the frequency.
        """
        length = _PADDING * 2 ** int(np.ceil(np.log2(self.n_slots)))
        error, *axes, every = np.fft.rfft(np.ascontiguousarray(self._in_place().T), length)
        twice = np.concatenate([every[::2], every[-3::-2].conj()])
        power, turned = np.zeros(len(every)), np.zeros(len(every), dtype=np.complex128)
        for axis in axes:
            power += axis.real**2 + axis.imag**2
            turned += axis**2
        n_rows = len(self.rows)
        with_cosine = (n_rows + twice.real - power - turned.real) / 2
        with_sine = (n_rows - twice.real - power + turned.real) / 2
        mixed = (turned.imag - twice.imag) / 2
        determinant = with_cosine * with_sine - mixed**2
        a, b = error.real, -error.imag
        explained = with_sine * a**2 - 2 * mixed * a * b + with_cosine * b**2
        frequency = np.arange(len(every)) / length
        usable = determinant > _SAME * n_rows**2 / 4
        usable &= frequency >= POLICY.least_periods / self.n_slots
        gain = self._gain(explained / np.where(usable, determinant, 1.0))
        return frequency, np.where(usable, gain, 0.0)

    def _in_place(self) -> FloatArray:
        """Put ``error, axis, ..., axis, 1`` in their slots, and zero where nothing counts."""
        placed = np.zeros((self.n_slots, self._axes.shape[1] + 2))
        placed[self.rows] = np.column_stack([self._error, self._axes, np.ones(len(self.rows))])
        return placed


@lru_cache(maxsize=1)
def _columns_of(terms: tuple[Term, ...], n_slots: int) -> FloatArray:
    return np.hstack([term.columns(n_slots) for term in terms])


def _normed(columns: FloatArray) -> FloatArray:
    """Bring columns to length one."""
    length = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    return np.asarray(columns / length)


def _with_past(x: FloatArray, order: float) -> NDArray[np.int64]:
    """Give the slots that were observed with all of their past."""
    seen, n_lags = np.isfinite(x), _n_lags(len(x), order)
    counts = seen.copy()
    counts[:n_lags] = False
    for lag in range(1, n_lags + 1):
        counts[lag:] &= seen[:-lag]
    return np.flatnonzero(counts)


def _n_lags(n_slots: int, order: float) -> int:
    return min(int(order * float(min(n_slots, _LONGEST) / 100) ** 0.25), n_slots // 10)


def _searched(
    x: FloatArray, n_searched: int, held: Sequence[Term] = (), *, lines: bool = False
) -> tuple[Term, ...]:
    """Search one series for terms, one by one, while they pay the extended criterion.

    Gives those that are held beforehand, too. Lines are looked for only if asked for.
    """
    if not _is_known(x):
        return ()
    if (
        len(_with_past(x, POLICY.far_past)) - _n_lags(len(x), POLICY.far_past)
        <= POLICY.least_segment // 2
    ):
        return ()
    near = _Innovations(x, POLICY.near_past)
    far = _Innovations(x, POLICY.far_past) if lines else near
    found = list(held)
    while len(found) + len(far.oscillations) < len(held) + _MOST_TERMS:
        near.hold(found)
        price = np.log(near.freedom)
        shifts = near.shift_gains()
        trends = zip(near.trend_gains().tolist(), _trends(), strict=True)
        of_trend = price + 2 * np.log(n_searched * len(_trends()))
        options = [(gain, of_trend, near, term) for gain, term in trends]
        at = int(shifts.argmax())
        of_shift = price + 2 * np.log(n_searched * len(x))
        options.append((shifts[at], of_shift, near, Term("shift", at)))
        if lines:
            far.hold(found)
            line = far.line()
            of_line = 2 * (price + np.log(n_searched * len(x) / 2))
            options.append((far.gain(line), of_line, far, line))
        gain, price, beside, best = max(options, key=lambda option: option[0] - option[1])
        if min(gain, beside.robust_gain(best)) <= price:
            break
        waves = [term for term in found if term.kind == "season"]
        if best.kind == "season" and _local_gain(x, best.at, waves) <= price:
            far.oscillations.append(best.at)
            continue
        found.append(best)
    return tuple(found)


def _local_gain(x: FloatArray, frequency: float, others: Sequence[Term]) -> float:
    """Give the gain of a line over the mean power of the frequencies around it."""
    season = Term("season", frequency)
    x = np.ldexp(_within_reach(x), -_exponent(x))
    course = _course(x, [season])
    rest = x - _course(x, [season, *others])
    rest = np.nan_to_num(rest - np.nanmean(rest))
    distance = (np.arange(POLICY.half_waves) + 1.5) / len(x)
    around = np.concatenate([frequency - distance, frequency + distance])
    around = around[(around > 0) & (around < 0.5)]
    waves = np.exp(-2j * np.pi * np.outer(around, np.arange(len(x))))
    power = float((np.abs(waves @ rest) ** 2).mean() / len(x))
    ratio = float(course @ course) / 2 / max(power, np.finfo(float).tiny)
    return float(2 * len(around) * np.log1p(ratio / max(len(around), 1)))


@dataclass(frozen=True, eq=False)
class _Line:
    """A line in the spectrum of a series, beside the other terms of the series."""

    frequency: float
    beside: _Innovations
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        own = Term("season", self.frequency)
        self.beside.hold([term for term in self.terms if term != own])

    def is_multiple(self, other: "_Line", part: int) -> bool:
        """Say whether the frequency is a multiple of a part of another's, as far as one can see."""
        return _is_harmonic(self.frequency, other.frequency / part, 1 / self.beside.n_slots)


def _base_frequencies(lines: Sequence[_Line]) -> list[float]:
    """Sort the lines of all series into seasons: a lowest frequency and its multiples.

    The lowest itself may be too weak to be seen: half, a third or a quarter of the lowest line is
    taken if more lines are multiples of that, and three of its periods are seen.
    """
    left = sorted(lines, key=lambda line: line.frequency)
    frequencies = []
    while left:
        lowest = left[0]
        seasons = [
            (lowest.frequency / part, [line for line in left if line.is_multiple(lowest, part)])
            for part in (1, 2, 3, 4)
            if part == 1 or lowest.frequency / part * lowest.beside.n_slots >= POLICY.least_periods
        ]
        base, season = max(seasons, key=lambda found: len(found[1]))
        frequencies.append(_common_frequency(base, season))
        left = [line for line in left if line not in season]
    return frequencies


def _common_frequency(base: float, season: Sequence[_Line]) -> float:
    """Find where the lines of a season gain most together; prefer a whole period."""
    orders = [(line.beside, round(line.frequency / base)) for line in season]
    width = 1 / max(line.beside.n_slots for line in season)
    best = _refined(orders, base, width)
    whole = 1 / max(round(1 / best), 2)
    price = float(np.log(sum(line.beside.freedom for line in season)))
    return whole if _gain_at(orders, best) - _gain_at(orders, whole) <= price else best


def _gain_at(orders: Sequence[tuple[_Innovations, int]], frequency: float) -> float:
    """Give what the multiples of a frequency gain together."""
    return sum(beside.gain(Term("season", min(k * frequency, 0.5))) for beside, k in orders)


def _refined(orders: Sequence[tuple[_Innovations, int]], frequency: float, width: float) -> float:
    """Give the frequency, within a width, whose multiples explain most of the series."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda at: (
            -sum(
                beside.level_gain(Term("season", min(k * at, 0.5))) / beside.variance
                for beside, k in orders
            )
        ),
        bounds=(frequency - width / 2, min(frequency + width / 2, 0.5)),
        method="bounded",
        options={"xatol": 1e-4 * width},
    )
    return float(found.x)


def _is_harmonic(frequency: float, base: float, resolution: float) -> bool:
    return abs(frequency - base * max(1, round(frequency / base))) <= resolution


def _harmonics(frequencies: Iterable[float], n_slots: int) -> list[Term]:
    """List all multiples of frequencies up to one in two slots, those within 1 / n once."""
    lines: list[float] = []
    for base in frequencies:
        if base * n_slots < POLICY.least_periods:
            continue
        for order in range(1, int(0.5 / base + 1e-6) + 1):
            line = min(order * base, 0.5)
            if all(abs(line - other) > 0.5 / n_slots for other in lines):
                lines.append(line)
    return [Term("season", line) for line in lines]


def _kept(x: FloatArray, offered: Sequence[Term]) -> tuple[Term, ...]:
    """Choose among offered terms, one by one, while they pay the plain criterion."""
    if not (offered and _is_known(x)):
        return ()
    beside = _Innovations(x, POLICY.near_past)
    chosen, left = list[Term](), list(offered)
    while left and beside.freedom >= POLICY.least_segment // 2:
        price = np.log(beside.freedom)
        gains = [beside.gain(term) - (1 + (term.kind == "season")) * price for term in left]
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        chosen.append(left.pop(best))
        beside.hold(chosen)
    return tuple(chosen)


def _without_steps_of_a_walk(x: FloatArray, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Leave out shifts unless the series, freed from all terms, returns to its level."""
    n_slow = sum(term.kind != "season" for term in terms)
    x = np.ldexp(x, -_exponent(x)) if n_slow else x
    if not n_slow or dickey_fuller(x - _course(x, terms)) < _RETURNS - _PER_TERM * n_slow:
        return terms
    return tuple(term for term in terms if term.kind != "shift")


def dickey_fuller(x: FloatArray) -> float:
    """Give the t-value of the level in a regression of the change on level and past changes.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal(300)
    >>> bool(dickey_fuller(noise) < -5), bool(dickey_fuller(noise.cumsum()) > -2.86)
    (True, True)
    """
    n_lags = _n_lags(len(x), POLICY.near_past)
    change = np.append(np.nan, np.diff(x))
    columns = [change, np.append(np.nan, x[:-1])]
    columns += [np.append(np.full(lag, np.nan), change[:-lag]) for lag in range(1, n_lags + 1)]
    rows = np.column_stack(columns)
    rows = rows[np.isfinite(rows).all(axis=1)]
    design = np.column_stack([rows[:, 1:], np.ones(len(rows))])
    freedom = len(rows) - design.shape[1]
    if freedom < 1:
        return 0.0
    inverse = np.linalg.pinv(design.T @ design)
    weights = inverse @ design.T @ rows[:, 0]
    variance = float(((rows[:, 0] - design @ weights) ** 2).sum() / freedom)
    return float(weights[0] / max(np.sqrt(variance * inverse[0, 0]), np.finfo(float).tiny))


def _is_known(x: FloatArray) -> bool:
    """Say whether enough of a series was observed, and whether it varies."""
    seen = x[np.isfinite(x)]
    return len(seen) >= POLICY.least_segment // 2 and bool((seen != seen[0]).any())


def _exponent(x: FloatArray) -> int:
    """Give the power of two that a series is divided by, so that no square can overflow."""
    return int(np.frexp(np.nanmax(np.abs(x)))[1])


def _course(x: FloatArray, terms: Sequence[Term]) -> FloatArray:
    """Give the course of a series in its own slots."""
    return _fitted(x, terms).at(np.arange(len(x), dtype=np.float64), len(x))


def _fitted(x: FloatArray, terms: Sequence[Term]) -> Course:
    """Fit terms to a series by least squares."""
    seen = np.isfinite(x)
    none = np.empty((len(x), 0))
    columns = np.column_stack([none, *(term.columns(len(x)) for term in terms)])[seen]
    design = np.column_stack([np.ones(len(columns)), columns])
    level = np.ldexp(_within_reach(x)[seen], -_exponent(x))
    weights = np.ldexp(np.linalg.lstsq(design, level, rcond=None)[0][1:], _exponent(x))
    offset = -float((columns @ weights).mean())
    rounding = _ROUNDING * float(np.ptp(x[seen]))
    return Course(tuple(terms), weights, offset, rounding, float(x[seen].mean()))


def _within_reach(x: FloatArray) -> FloatArray:
    """Bring glitches to a limit that noise hardly reaches."""
    lower, middle, upper = np.nanquantile(x, (0.25, 0.5, 0.75))
    reach = POLICY.reach * (upper - lower) / 1.349  # quartiles of a normal law are 1.349 apart
    return np.clip(x, middle - reach, middle + reach) if reach > 0 else x
