"""From evidence to edges: which pairs, at which lags, within a slot or not, in which direction."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from causalformer.config import DetectorSettings
from causalformer.detect.calibrated import SOME_EVIDENCE, Evidence
from causalformer.detect.instantaneous import InstantaneousEvidence
from causalformer.detect.present import explained_by_the_present, present_evidence
from causalformer.graph import Edge
from causalformer.knowledge import KnownGraph

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_EARLIEST_LAG = 0.8  # near equals of a profile have this share of its largest value
_SECOND_LAG = 0.5  # a further lag needs this share of the strongest one's evidence
_SECOND_LAG_T = 6.0  # and this |t| beside the others
_MOST_DOUBT = 0.25  # local false discovery rate of an edge, at most: see `lagged_edges`
_LINK_BESIDE_PAST = 0.06  # squared partial correlation of a link within a slot, if not asked for
_SHARED = 2.0  # times what the errors of two series share, typically


@dataclass(frozen=True, eq=False)
class FoundEdges:
    """The edges of a graph before they have names; matrices are ``[cause, effect]``.

    Attributes
    ----------
    lagged : array of bool ``[cause, effect, lag - 1]``
        Edges from the past, self-loops included.
    within : array of bool ``[cause, effect]``
        Edges within a slot, each in its likelier direction.
    oriented : array of bool ``[cause, effect]``
        Whether the direction of an edge within a slot is more than a guess.
    main_lag : array of int ``[cause, effect]``
        Position of the lag that carries most of an edge.
    """

    lagged: BoolArray
    within: BoolArray
    oriented: BoolArray
    main_lag: NDArray[np.int64]
    evidence: Evidence
    within_evidence: InstantaneousEvidence

    @property
    def score(self) -> FloatArray:
        """How strongly the data speak for each pair ``[cause, effect]``: ``-log10 p``.

        In a graph with edges within a slot their test counts, too, in each direction by how likely
        that is.
        """
        from scipy.stats import norm

        score = -np.log10(self.evidence.p_value)
        if not self.within.any():
            return score
        within = self.within_evidence
        inside = -np.log10(np.maximum(within.p_value, 1e-300)) * norm.cdf(within.direction)
        np.fill_diagonal(inside, 0.0)
        return np.maximum(score, inside)

    def edges(self, names: tuple[str, ...], frequency: FloatArray | None) -> tuple[Edge, ...]:
        """Name the edges; the score is ``-log10 p``."""
        strength, profile = self.evidence.strength, self.evidence.lag_profile
        p_values, q_values = self.evidence.p_value, self.evidence.q_value
        edges = []
        for j, i, k in np.argwhere(self.lagged):
            main = self.main_lag[j, i]
            most = max(profile[j, i, main], 1e-300)
            share = 1.0 if k == main else min(profile[j, i, k] / most, 0.99)
            edges.append(
                Edge(
                    names[j],
                    names[i],
                    int(k) + 1,
                    -np.log10(p_values[j, i]) * share,
                    p_value=p_values[j, i],
                    q_value=q_values[j, i],
                    strength=strength[j, i] * np.sqrt(share),
                    frequency=np.nan if frequency is None else frequency[j, i],
                )
            )
        within = self.within_evidence
        for j, i in np.argwhere(self.within):
            p_value = max(within.p_value[j, i], 1e-300)
            edges.append(
                Edge(
                    names[j],
                    names[i],
                    0,
                    -np.log10(p_value),
                    p_value=p_value,
                    q_value=max(within.q_value[j, i], 1e-300),
                    strength=abs(within.partial[j, i]),
                    oriented=bool(self.oriented[j, i]),
                )
            )
        return tuple(edges)


def lagged_edges(evidence: Evidence, alpha: float, settings: DetectorSettings) -> BoolArray:
    """Ask for significance and, between two series, for more than chance and for a size.

    Of many edges between series the last ones that the rate lets pass are mostly false. So the
    estimate of the local rate must be small. The estimate flatters whoever stands alone: it is one
    over m p for the smallest of m p-values of noise, so it is below one half in two of five
    families, and still below a quarter in one of five. In a long series an effect of any size is
    significant, and hidden common drivers make many tiny ones. So an edge goes that the data show
    to explain less than `min_effect`, and twice as much more as the errors of two series typically
    share within a slot: what a hidden driver gives to all pairs is no evidence for one.
    """
    own = np.eye(len(evidence.q_value), dtype=bool)
    likely = evidence.doubt <= _MOST_DOUBT
    least = settings.min_effect + _SHARED * evidence.removal.shared
    return (evidence.q_value <= alpha) & likely & (own | (evidence.largest_size >= least))


def found_edges(
    evidence: Evidence,
    within: InstantaneousEvidence,
    known: KnownGraph,
    alpha: float,
    settings: DetectorSettings,
    instantaneous: bool | Literal["auto"],
) -> FoundEdges:
    """Choose the edges of the graph; what is known beforehand comes first."""
    chosen = lagged_edges(evidence, alpha, settings)
    may_be_within, allowed = known.allowed[..., 0], known.allowed[..., 1:]
    either_way = may_be_within | may_be_within.T
    asked = instantaneous is True
    linked = _linked(within, alpha, settings.min_effect, asked=asked) & either_way
    dominates = within_dominates(linked, chosen, evidence, within)
    if instantaneous and not dominates and evidence.samples.complete:
        least = settings.min_effect if asked else _LINK_BESIDE_PAST
        within = present_evidence(evidence, within, allowed, alpha, least)
        least += _SHARED * within.common
        linked = _linked(within, alpha, least, asked=asked) & either_way
        drives = linked & may_be_within & ((within.direction > 0) | ~may_be_within.T)
        chosen &= ~explained_by_the_present(evidence, allowed, chosen, drives, alpha)
    elif not instantaneous or not (asked or dominates):
        linked = np.zeros_like(linked)
    # a pair with an edge from the past keeps it; the link within the slot would say it twice
    linked &= ~(chosen | chosen.T)
    must_be_within = known.required_lags[..., 0] | known.required & ~allowed.any(-1)
    linked &= ~(must_be_within | must_be_within.T)
    free = may_be_within & may_be_within.T
    towards = np.where(free, within.direction, 1.0 * may_be_within)
    main = main_lag(evidence, allowed)
    return FoundEdges(
        lagged=_lags(evidence, chosen, main, known),
        within=linked & (towards > towards.T) | must_be_within,
        oriented=within.oriented | ~free | must_be_within,
        main_lag=main,
        evidence=evidence,
        within_evidence=within,
    )


def _linked(within: InstantaneousEvidence, alpha: float, least: float, *, asked: bool) -> BoolArray:
    """Say which pairs are linked within a slot.

    If nobody asked for such links, they are a second chance of a false edge in a graph without any:
    then the clearest of them must pass half the level for the others to count.
    """
    if not (asked or within.linked(alpha / 2, least).any()):
        return np.zeros(within.partial.shape, dtype=bool)
    return within.linked(alpha, least)


def within_dominates(
    linked: BoolArray, chosen: BoolArray, evidence: Evidence, within: InstantaneousEvidence
) -> bool:
    """Say whether most of what series share happens within a slot: sampled slower than it moves.

    Compares the variance explained within a slot with that explained by edges from the past.
    Missing values cost those more power: then all count that there is some evidence for.
    """
    if not evidence.samples.complete:
        chosen = chosen | (evidence.p_value <= SOME_EVIDENCE)
    off_diagonal = ~np.eye(len(chosen), dtype=bool)
    inside = (within.partial**2)[linked & off_diagonal].sum() / 2
    before = np.clip(evidence.size, 0, 1)[chosen & off_diagonal].sum()
    return bool(inside > before)


def main_lag(evidence: Evidence, allowed: BoolArray) -> NDArray[np.int64]:
    """Give the position of the main lag ``[cause, effect]``: alone it leaves the least error.

    Where no lag was looked at alone, it is the earliest among near equals of the profile.
    """
    error, profile = evidence.lag_error, np.where(allowed, evidence.lag_profile, -1.0)
    near_best = profile >= _EARLIEST_LAG * profile.max(axis=-1, keepdims=True)
    tried = np.isfinite(error).any(axis=-1)
    return np.asarray(np.where(tried, error.argmin(axis=-1), near_best.argmax(axis=-1)))


def _lags(
    evidence: Evidence, chosen: BoolArray, main: NDArray[np.int64], known: KnownGraph
) -> BoolArray:
    """Take the main lag of every edge, and others that are nearly as strong beyond doubt."""
    profile, t, allowed = evidence.lag_profile, evidence.sparse_t, known.allowed[..., 1:]
    strongest = np.arange(profile.shape[-1]) == main[..., None]
    further = t >= np.maximum(_SECOND_LAG_T, _SECOND_LAG * t.max(axis=-1, keepdims=True))
    further &= profile >= _SECOND_LAG * profile.max(axis=-1, keepdims=True)
    somewhere = known.required & ~known.required_lags.any(axis=-1)
    found = (chosen | somewhere)[..., None] & (strongest | further)
    return np.asarray(found & allowed | known.required_lags[..., 1:])
