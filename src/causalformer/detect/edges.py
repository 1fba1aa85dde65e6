"""From evidence to edges: which pairs, at which lags, within a slot or not, in which direction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from causalformer.config import DetectorSettings
from causalformer.detect.calibrated import Evidence
from causalformer.detect.evidence import false_discovery_q
from causalformer.detect.granger import granger_tests
from causalformer.detect.instantaneous import InstantaneousEvidence
from causalformer.graph import CausalGraph, Edge

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_EARLIEST_LAG = 0.8  # the earliest lag with this share of the largest evidence is the lag
_SECOND_LAG = 0.5  # a further lag needs this share of the strongest one's evidence
_SECOND_LAG_T = 6.0  # and this |t| in the linear model


@dataclass(frozen=True, eq=False)
class FoundEdges:
    """The edges of a graph before they have names; matrices are ``[cause, effect]``.

    Attributes
    ----------
    lagged : array of bool ``[cause, effect, lag - 1]``
        Edges from the past, self-loops included.
    within : array of bool ``[cause, effect]``
        Edges within a slot, each in its likelier direction.
    p_value, q_value : array ``[cause, effect]``
        Of the edges from the past.
    """

    lagged: NDArray[np.bool_]
    within: BoolArray
    p_value: FloatArray
    q_value: FloatArray
    evidence: Evidence
    within_evidence: InstantaneousEvidence

    def graph(
        self, names: tuple[str, ...], metadata: Mapping[str, Any], frequency: FloatArray | None
    ) -> CausalGraph:
        """Name the edges; the score is ``-log10 p``."""
        strength, profile = self.evidence.strength, self.evidence.lag_profile
        main_lags = main_lag(profile)
        edges = []
        for j, i, k in np.argwhere(self.lagged):
            main = main_lags[j, i]
            share = 1.0 if k == main else min(profile[j, i, k] / profile[j, i, main], 0.99)
            edges.append(
                Edge(
                    names[j],
                    names[i],
                    int(k) + 1,
                    -np.log10(self.p_value[j, i]) * share,
                    p_value=self.p_value[j, i],
                    q_value=self.q_value[j, i],
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
                    oriented=bool(within.oriented[j, i]),
                )
            )
        return CausalGraph(names, tuple(edges), metadata)


def lagged_edges(evidence: Evidence, alpha: float, settings: DetectorSettings) -> BoolArray:
    """Ask for significance and, between two series, for a size.

    In a long series an effect of any size is significant, and hidden common drivers make many tiny
    ones. So an edge must explain `min_effect`, and as much more as the errors of two series
    typically share within a slot: what a hidden driver gives to all pairs is no evidence for one.
    """
    own = np.eye(len(evidence.q_value), dtype=bool)
    least = settings.min_effect + evidence.removal.shared
    return (evidence.q_value <= alpha) & (own | (evidence.size >= least))


def found_edges(
    evidence: Evidence,
    within: InstantaneousEvidence,
    scores: FloatArray,
    alpha: float,
    settings: DetectorSettings,
    instantaneous: bool | Literal["auto"],
) -> FoundEdges:
    """Choose the edges of the graph."""
    chosen = lagged_edges(evidence, alpha, settings)
    p_value, q_value = _with_self_loops(evidence, chosen, scores)
    own = np.eye(len(chosen), dtype=bool)
    chosen |= own & (q_value <= alpha)
    linked = (within.q_value <= alpha) & (np.abs(within.partial) >= np.sqrt(settings.min_effect))
    if not instantaneous or (
        instantaneous == "auto" and not within_dominates(linked, chosen, evidence, within)
    ):
        linked = np.zeros_like(linked)
    # a pair with an edge from the past keeps it; the link within the slot would say it twice
    linked &= ~(chosen | chosen.T)
    return FoundEdges(
        lagged=_lags(evidence, chosen),
        within=linked & (within.direction > within.direction.T),
        p_value=p_value,
        q_value=q_value,
        evidence=evidence,
        within_evidence=within,
    )


def within_dominates(
    linked: BoolArray, chosen: BoolArray, evidence: Evidence, within: InstantaneousEvidence
) -> bool:
    """Say whether most of what series share happens within a slot: sampled slower than it moves.

    Compares the variance explained within a slot with that explained by edges from the past.
    """
    off_diagonal = ~np.eye(len(chosen), dtype=bool)
    inside = (within.partial**2)[linked & off_diagonal].sum() / 2
    before = np.clip(evidence.size, 0, 1)[chosen & off_diagonal].sum()
    return bool(inside > before)


def _with_self_loops(
    evidence: Evidence, chosen: BoolArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Test self-loops again, given only the causes that were found.

    Conditioning on all lags of all series costs short series the power to see their own memory.
    """
    max_lag = evidence.lag_profile.shape[-1]
    p_value, q_value = evidence.p_value.copy(), evidence.q_value.copy()
    own_p = np.diag(p_value).copy()
    for i in range(len(chosen)):
        causes = [i, *(int(j) for j in np.flatnonzero(chosen[:, i]) if j != i)]
        tests = granger_tests(scores[:, causes], max_lag)
        own_p[i] = min(own_p[i], 2 * np.exp(tests.log_p[0, 0]), 1.0)
    np.fill_diagonal(p_value, np.maximum(own_p, 1e-300))
    np.fill_diagonal(q_value, false_discovery_q(np.diag(p_value)))
    return p_value, q_value


def main_lag(profile: FloatArray) -> NDArray[np.int64]:
    """Give the position of the main lag in ``profile[cause, effect, lag - 1]``.

    Smooth series carry one effect over several lags; among near equals the earliest is the lag.

    Examples
    --------
    >>> main_lag(np.array([[[0.9, 1.0, 0.2]]]))
    array([[0]])
    """
    near_best = profile >= _EARLIEST_LAG * profile.max(axis=-1, keepdims=True)
    return np.asarray(near_best.argmax(axis=-1))


def _lags(evidence: Evidence, chosen: BoolArray) -> NDArray[np.bool_]:
    """Take the main lag of every edge, and others that are nearly as strong beyond doubt."""
    profile, t = evidence.lag_profile, evidence.linear_t
    strongest = np.arange(profile.shape[-1]) == main_lag(profile)[..., None]
    further = t >= np.maximum(_SECOND_LAG_T, _SECOND_LAG * t.max(axis=-1, keepdims=True))
    further &= profile >= _SECOND_LAG * profile.max(axis=-1, keepdims=True)
    return np.asarray(chosen[..., None] & (strongest | further))
