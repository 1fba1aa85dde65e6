"""Every number that decides about a graph, with what it decides and where it comes from.

Modules read ``POLICY.name`` where they decide. What is not here is no decision: numerical
tolerances, limits of memory and of work, and constants of a law or a definition stand where they
are used, under a comment that says so; the settings that users choose are in `causalformer.config`.
How much depends on each number `causalformer.bench.sensitivity` measures; that the tests notice a
change ``make mutants`` shows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from math import log
from statistics import NormalDist
from typing import Any


def _number(value: float, decides: str, source: str) -> Any:
    return field(default=value, metadata={"decides": decides, "source": source})


@dataclass(frozen=True)
class Policy:
    """The numbers that decide; `numbers` gives each with its description.

    Examples
    --------
    >>> POLICY.level, round(POLICY.one_sided, 3), round(POLICY.clearly, 2)
    (0.05, 1.645, 5.89)
    """

    # ------------------------------------------------------------------ levels and odds

    level: float = _number(
        0.05,
        "Level of all auxiliary tests: errors of unequal size, series that flow, memory of levels, "
        "costs of gaps, series that wander, mechanisms that change, errors that are related.",
        "Convention (Fisher 1925); one level for all of them.",
    )
    refuted: float = _number(
        0.005,
        "Level at which a model is refuted: few terms, by the network's forecast; independent "
        "errors, by their correlations.",
        "The level of all tests, divided by ten effects, the size of a usual table (Bonferroni).",
    )
    second_look: float = _number(
        0.1,
        "Largest p- or q-value of what is looked at more closely: lags that are tried one by one, "
        "tests whose variance is made robust, causes that the present is freed from, pairs within "
        "the slot.",
        "Twice the level: what the closer look makes larger or smaller may still pass it.",
    )
    claim: float = _number(
        0.95,
        "Probability from which a direction within the slot, or a hidden driver of two series, is "
        "claimed; as a difference of criteria, 2 log 19, also what hidden factors, hidden series "
        "and levels must be ahead by.",
        "One less the level.",
    )
    even_odds: float = _number(
        0.5,
        "Probability from which an edge is marked as possibly a hidden driver's, and has no "
        "direction within the slot; share of variance between recordings that is warned of.",
        "The likelier of two explanations (Bayes' rule if both mistakes cost the same).",
    )
    doubt: float = _number(
        0.25,
        "What is put up with of chance: local false discovery rate of an edge, level at which an "
        "edge is shown to be too small, links by chance per series among those within the slot "
        "that are compared.",
        "Derived: the estimate of the local rate is below one half in two of five families of "
        "noise, below a quarter in one of five (`edges.lagged_edges`).",
    )

    # ------------------------------------------------------------------ what is common beforehand

    bent_share: float = _number(
        0.2,
        "Share of links that are not straight beforehand; straight ones are at one lag or spread "
        "over lags as often. The share, too, of causes that only the network finds.",
        "Prior: one in five, as of all that is not the rule; half and twice: bench.sensitivity.",
    )
    hidden_share: float = _number(
        0.2,
        "Share of links, of lagged edges and of systems that are a hidden driver's beforehand.",
        "Prior: one in five, as of all that is not the rule; half and twice: bench.sensitivity.",
    )

    # ------------------------------------------------------------------ sizes

    least_share: float = _number(
        0.01,
        "Share of variance below which something is nothing: what a change of a mechanism "
        "explains, what a factor leaves of a series that is the factor itself (Heywood cases), "
        "what is predicted, or shared by errors, where a warning says so.",
        "The same as the setting `min_effect`: a partial correlation of .1, small by Cohen (1988).",
    )
    level_shift: float = _number(
        1.0,
        "Difference of the mean of two halves that is warned of, in standard deviations.",
        "Large by Cohen (1988), who takes .8.",
    )
    left_over: float = _number(
        0.06,
        "Squared partial correlation below which a link within the slot may be what the network's "
        "model leaves of the past.",
        "Choice: without it links of neighbours are drawn (a false one in each of two of 86 "
        "systems, seeds 70100.. and 71000..); half and twice: bench.sensitivity.",
    )
    reach: float = _number(
        5.0,
        "Standard deviations, told from quartiles, beyond which a value does not count as farther "
        "out.",
        "Tukey's (1977) outer fences, 3 quartile ranges, are at 4.7 in a normal law.",
    )

    # ------------------------------------------------------------------ lags

    near_lag: float = _number(
        0.8,
        "Share of the strongest lag's evidence from which an earlier lag counts as equal.",
        "Choice: effects come before their echoes; half and twice: bench.sensitivity.",
    )
    further_lag: float = _number(
        0.5,
        "Share of the strongest lag's evidence, and of its t, that a further lag of an edge needs.",
        "Choice; half and twice: bench.sensitivity.",
    )
    further_lag_t: float = _number(
        6.0,
        "|t| that a further lag needs beside the others.",
        "Choice: p < 1e-8, beyond doubt whatever else is tested; bench.sensitivity.",
    )

    # ------------------------------------------------------------------ what samples can tell

    samples_per_weight: int = _number(
        4,
        "Samples that a weight takes: of the network's past values, of chosen terms, of a test of "
        "changes, of a vector autoregression.",
        "Choice: with fewer, held-out tests draw false edges; half and twice: bench.sensitivity.",
    )
    least_candidates: int = _number(
        8,
        "Candidates that every effect has, however few the samples.",
        "Choice: the effect itself and more causes than an effect usually has.",
    )
    least_samples: int = _number(
        20,
        "Samples with which anything is tested: an effect, a flow, a hidden driver, a table, each "
        "lag of a candidate if not all series can be candidates.",
        "A standard error of fewer is wrong by a sixth or more (1 / sqrt(2 n)).",
    )
    least_segment: int = _number(
        50,
        "Slots of a segment that is searched for trends, shifts and seasons, or tested for "
        "wandering; of both halves of a table, if few slots are not to be warned of.",
        "Choice: a season is seen three times beside five lags of the past.",
    )
    least_driven: int = _number(
        4,
        "Series that a factor is told by; a hidden series with a memory needs one less.",
        "Derived: one factor of three series fits any correlations, of four it can fail (Anderson "
        "and Rubin 1956); autocorrelations are the fourth.",
    )

    # ------------------------------------------------------------------ missing values

    gap_caution: float = _number(
        0.5,
        "Power of the correction for errors of unequal size where samples are weighed for gaps.",
        "Choice: the weights did a part of it; whole it costs .058 F1 where values are missing at "
        "random, and no false edge less (8 systems, seeds 81000..).",
    )
    needed_values: int = _number(
        4,
        "Past values that an effect hangs on, by which samples with gaps are counted.",
        "Choice: what effects have in the generated suites.",
    )

    # ------------------------------------------------------------------ time as a condition

    half_waves: int = _number(
        6,
        "Half waves by which a trend bends, and a mechanism that changes. What swings more "
        "often may be a season, which must stand out from as many frequencies on either side.",
        "Choice: what is seen three times is no trend any more; half and twice: bench.sensitivity.",
    )
    near_past: float = _number(
        4.0,
        "Lags, at 100 slots, of the own past beside which trends and shifts are told; three times "
        "as many beside which seasons are.",
        "Schwert (1989), l4 and l12.",
    )
    least_side: float = _number(
        0.05,
        "Share of a segment that a level shift has before and after it.",
        "Trimming of Bai and Perron (2003), the least that they tabulate.",
    )

    # ------------------------------------------------------------------ what follows

    @property
    def one_sided(self) -> float:
        """What a standard normal law exceeds with the probability `level`."""
        return NormalDist().inv_cdf(1.0 - self.level)

    @property
    def far_past(self) -> float:
        """Schwert's longer past."""
        return 3.0 * self.near_past

    @property
    def least_periods(self) -> float:
        """Periods that must be seen of a season: what swings less often is a trend."""
        return self.half_waves / 2

    @property
    def straight_share(self) -> float:
        """Share of links that are straight beforehand."""
        return 1.0 - self.bent_share

    @property
    def direct_odds(self) -> float:
        """How many times as common as a hidden driver's work a direct link is beforehand."""
        return (1.0 - self.hidden_share) / self.hidden_share

    @property
    def clearly(self) -> float:
        """What a claim needs, as a difference of criteria (twice log-likelihoods)."""
        return 2.0 * log(self.claim / (1.0 - self.claim))


POLICY = Policy()


def numbers() -> dict[str, tuple[float, str, str]]:
    """Give the value of every number, what it decides, and its source.

    Examples
    --------
    >>> numbers()["claim"][0]
    0.95
    """
    return {
        one.name: (getattr(POLICY, one.name), one.metadata["decides"], one.metadata["source"])
        for one in fields(POLICY)
    }


@contextmanager
def varied(**values: float) -> Iterator[None]:
    """Change numbers of `POLICY` for a while, in this process: for benchmarks and tests only.

    Examples
    --------
    >>> with varied(level=0.1):
    ...     print(POLICY.level)
    0.1
    >>> POLICY.level
    0.05
    """
    before = {name: getattr(POLICY, name) for name in values}
    for name, value in values.items():
        object.__setattr__(POLICY, name, type(before[name])(value))
    try:
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(POLICY, name, value)
