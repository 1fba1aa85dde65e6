"""From evidence to edges: which pairs, at which lags, within a slot or not, in which direction."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from causalformer.config import DetectorSettings
from causalformer.detect.contemporaneous import (
    ContemporaneousEvidence,
    Present,
    no_links,
    reaches,
)
from causalformer.detect.evidence import SMALLEST, false_discovery_q
from causalformer.detect.hidden import beside_a_driver, hidden_drivers
from causalformer.detect.hidden_series import HiddenSeries, find_hidden_series
from causalformer.detect.pair_tests import Evidence, PairTests
from causalformer.detect.present import explained_by_the_present
from causalformer.graph import Edge
from causalformer.knowledge import KnownGraph
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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
        Whether the direction of an edge within a slot is claimed.
    main_lag : array of int ``[cause, effect]``
        Position of the lag that carries most of an edge.
    evidence, within_evidence
        What the edges rest on.
    within_q : array ``[cause, effect]``
        q-values of links within a slot.
    hidden : array ``[cause, effect]``
        How likely a hidden driver is behind each lagged edge between series.
    driven : bool
        Whether the past of a hidden driver of all series foretells them.
    hidden_series : HiddenSeries or None
        A hidden series beside which the edges were told.
    """

    lagged: BoolArray
    within: BoolArray
    oriented: BoolArray
    main_lag: NDArray[np.int64]
    evidence: Evidence
    within_evidence: ContemporaneousEvidence
    within_q: FloatArray
    hidden: FloatArray
    driven: bool
    hidden_series: HiddenSeries | None = None

    @property
    def drawn(self) -> BoolArray:
        """Pairs with an edge of any kind between two series."""
        return np.asarray(
            (self.lagged.any(axis=-1) & ~np.eye(len(self.within), dtype=bool)) | self.within
        )

    @property
    def by_hidden_driver(self) -> BoolArray:
        """Links within a slot that are not drawn, as a hidden driver explains them better."""
        within, flows = self.within_evidence, self.evidence.pairs.flows
        by_driver = within.linked & within.by_hidden_driver & ~(flows | flows.T)
        return np.asarray(by_driver & ~self.drawn)

    @property
    def n_hidden(self) -> float:
        """How many of the drawn edges are expected to be a hidden driver's work."""
        either = np.maximum(self.hidden, np.where(self.within, self.within_evidence.hidden, 0.0))
        return float(either[self.drawn & self.may_be_hidden].sum())

    @property
    def may_be_hidden(self) -> BoolArray:
        """Edges that a hidden driver may explain: lagged ones, and links within a slot."""
        lagged = self.lagged.any(axis=-1) & (self.hidden >= POLICY.even_odds)
        return np.asarray(
            lagged | (self.within & (self.within_evidence.hidden >= POLICY.even_odds))
        )

    @property
    def score(self) -> FloatArray:
        """How strongly the data speak for each pair ``[cause, effect]``: ``-log10 p``.

        In a graph with edges within a slot their test counts, too, in each direction by how likely
        that is.
        """
        score = -np.log10(self.evidence.pairs.p_value)
        if not self.within.any():
            return score
        within = self.within_evidence
        way = np.where(within.linked | within.linked.T, within.probability, 0.5)
        inside = -np.log10(np.maximum(within.p_value, 1e-300)) * way
        np.fill_diagonal(inside, 0.0)
        return np.asarray(np.maximum(score, inside))

    def edges(self, names: tuple[str, ...], frequency: FloatArray | None) -> tuple[Edge, ...]:
        """Name the edges; the score is ``-log10 p``."""
        pairs, q_values = self.evidence.pairs, self.evidence.q_value
        strength, p_values, profile = pairs.strength, pairs.p_value, pairs.lag_profile
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
                    may_be_confounded=_by_surprises(names[j], names[i], self.hidden[j, i]),
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
                    q_value=max(self.within_q[j, i], 1e-300),
                    strength=abs(within.partial[j, i]),
                    oriented=bool(self.oriented[j, i]),
                    may_be_confounded=_by_errors(names[j], names[i], within.hidden[j, i]),
                )
            )
        return tuple(edges)


def _by_surprises(cause: str, effect: str, hidden: float) -> str:
    """Say why a hidden driver may be behind a lagged edge; nothing if that is not likely."""
    if hidden < POLICY.even_odds:
        return ""
    return (
        f"{effect} follows what is unexpected in {cause} rather than its level: with "
        f"probability {hidden:.2f} a hidden driver of both"
    )


def _by_errors(cause: str, effect: str, hidden: float) -> str:
    """Say why a hidden driver may be behind a link within a slot."""
    if hidden < POLICY.even_odds:
        return ""
    return (
        f"the past of neither {cause} nor {effect} reaches the other through the link: with "
        f"probability {hidden:.2f} a hidden driver of both"
    )


def lagged_edges(evidence: Evidence, alpha: float, settings: DetectorSettings) -> BoolArray:
    """Ask for significance and, between two series, for more than chance and for a size.

    Of many edges between series the last ones that the rate lets pass are mostly false. So the
    estimate of the local rate must be small. The estimate flatters whoever stands alone: it is one
    over m p for the smallest of m p-values of noise, so it is below one half in two of five
    families, and still below a quarter in one of five. In a long series an effect of any size is
    significant. So an edge goes that the data show to explain less than `min_effect`.
    """
    own = np.eye(len(evidence.q_value), dtype=bool)
    likely = evidence.local_fdr <= POLICY.doubt
    large = own | (evidence.largest_size >= settings.min_effect)
    return (evidence.q_value <= alpha) & likely & large


def contemporaneous_q(within: ContemporaneousEvidence, allowed: BoolArray) -> FloatArray:
    """Give the q-values of links within a slot; `allowed` says which may be."""
    inside = np.triu(allowed | allowed.T, 1)
    q_value = np.ones_like(within.p_value)
    q_value[inside] = false_discovery_q(within.p_value[inside])
    return np.minimum(q_value, q_value.T)


def family_counts(q_value: FloatArray, alpha: float, two_families: bool) -> bool:
    """Say whether a family of tests finds anything: one of two families at half the level.

    Lagged edges and links within a slot are two families, and each would find something in noise as
    often as the level says. So each has to show at half the level that it finds something at all
    (Benjamini and Bogomolov 2014).
    """
    return bool((q_value <= (alpha / 2 if two_families else alpha)).any())


def found_edges(
    evidence: Evidence,
    within: ContemporaneousEvidence | None,
    present: Present,
    known: KnownGraph,
    alpha: float,
    settings: DetectorSettings,
    instantaneous: bool | Literal["auto"],
) -> FoundEdges:
    """Choose the edges of the graph; what is known beforehand comes first.

    What a hidden driver explains better is no link within a slot, unless `instantaneous` is True;
    and where one is as likely, no direction is claimed. If a hidden series makes what was observed
    likelier than links alone, only links beside it are edges.
    """
    may_be_within, allowed = known.allowed[..., 0], known.allowed[..., 1:]
    if within is None:
        within = no_links(len(evidence.family))
    own = np.eye(len(evidence.family), dtype=bool)
    beside = None
    # where levels show more than surprises, errors are no noise that a hidden series could explain
    if not (evidence.pairs.flows.any() or within.levels):
        may_be = known.allowed if instantaneous is not False else known.allowed & _later(known)
        beside = find_hidden_series(evidence.samples, present, may_be, within.linked)
    if beside is not None:
        evidence, within = _beside_hidden_series(evidence, within, beside, allowed)
    within_q = contemporaneous_q(within, may_be_within)

    def significant(evidence: Evidence) -> BoolArray:
        edges = lagged_edges(evidence, alpha, settings)
        if beside is not None:
            edges &= own | beside.links[..., 1:].any(axis=-1)
        return edges & (own | family_counts(evidence.q_value[~own], alpha, two_families))

    two_families = instantaneous is not False
    chosen = significant(evidence)
    linked = within.linked & (within_q <= alpha) & family_counts(within_q, alpha, two_families)
    if instantaneous is not True:
        linked &= ~within.by_hidden_driver
        # what others do during a slot explains what a flow shows within it
        linked &= ~(evidence.pairs.flows | evidence.pairs.flows.T)
    oriented = within.oriented & (within.hidden < POLICY.even_odds)
    linked = along_lagged_edges(linked, oriented, chosen, may_be_within)
    must_be_within = known.required_lags[..., 0] | known.required & ~allowed.any(-1)
    linked &= ~(must_be_within | must_be_within.T)
    linked |= must_be_within
    # terms that do not explain an effect say nothing of edges told by what happens during a slot
    if beside is None:
        by_present = explained_by_the_present(evidence, allowed, chosen, linked, alpha)
        chosen &= ~by_present | evidence.pairs.flows
    beside_driver = None
    if beside is None and not evidence.pairs.flows.any():
        beside_driver = beside_a_driver(evidence, present, allowed, chosen & ~own, linked)
    if beside_driver is not None:
        evidence = beside_driver
        chosen = significant(evidence)
    free = may_be_within & may_be_within.T
    main = main_lag(evidence.pairs.lag_profile, allowed)
    between = chosen & ~own
    if beside is None:
        hidden = hidden_drivers(present, between & ~evidence.pairs.flows, main)
    else:
        hidden = np.zeros(own.shape)
    return FoundEdges(
        lagged=_lags(evidence.pairs, chosen, main, known),
        within=linked,
        oriented=oriented | ~free | must_be_within,
        main_lag=main,
        evidence=evidence,
        within_evidence=within,
        within_q=within_q,
        hidden=hidden,
        driven=beside_driver is not None,
        hidden_series=beside,
    )


def _later(known: KnownGraph) -> BoolArray:
    return np.arange(known.allowed.shape[-1]) > 0


def _beside_hidden_series(
    evidence: Evidence, within: ContemporaneousEvidence, beside: HiddenSeries, allowed: BoolArray
) -> tuple[Evidence, ContemporaneousEvidence]:
    """Let likelihood ratios beside a hidden series stand in place of all tests between series.

    The best of several lags counts as often as there are lags (Bonferroni). Of a link within the
    slot the direction is kept if the driver reaches at most one of the two: what the past said of
    it was said without the driver.
    """
    from scipy.special import chdtrc

    n_samples, own = len(evidence.samples), np.eye(len(allowed), dtype=bool)
    by_lag, gain = beside.gain[..., 1:], beside.gain[..., 1:].max(axis=-1)
    p_value = np.minimum(chdtrc(1, gain) * np.maximum(allowed.sum(axis=-1), 1), 1.0)
    told = replace(
        evidence.pairs,
        p_value=np.maximum(p_value, SMALLEST),
        terms_p=np.maximum(p_value, SMALLEST),
        t=np.sqrt(by_lag),
        lag_profile=by_lag,
        size=-np.expm1(-gain / n_samples),
        tested=evidence.family,
    )
    lagged = replace(evidence, pairs=evidence.pairs.put(~own, told.at(~own)))
    linked = beside.links[..., 0]
    either = linked | linked.T
    now = np.maximum(beside.gain[..., 0], beside.gain[..., 0].T)
    clear = within.linked & linked & ~(beside.driven[:, None] & beside.driven)
    probability = np.where(clear | clear.T, within.probability, np.where(either, 0.5, 0.0))
    slot = ContemporaneousEvidence(
        p_value=np.where(either, np.maximum(chdtrc(1, now), SMALLEST), 1.0),
        partial=np.where(either, np.sqrt(-np.expm1(-now / n_samples)), 0.0),
        linked=linked,
        probability=probability,
        hidden=np.zeros(own.shape),
        factor=np.zeros(len(own), dtype=bool),
    )
    return lagged, slot


def along_lagged_edges(
    linked: BoolArray, oriented: BoolArray, lagged: BoolArray, allowed: BoolArray
) -> BoolArray:
    """Turn links within a slot whose direction is not claimed along the lagged edge of the pair.

    What takes longer than a slot is seen at a lag, and what is done by then within the slot: a
    cause that acts over time shows at both, in one direction. A link is not turned if the pair has
    lagged edges both ways, if that direction is not `allowed`, or if it would close a cycle.

    Examples
    --------
    >>> link = np.array([[False, True], [False, False]])
    >>> along_lagged_edges(link, link & False, link.T, np.ones((2, 2), bool))
    array([[False, False], [ True, False]])
    """
    linked = linked.copy()
    back = linked & ~oriented & (lagged & ~lagged.T & allowed).T
    for cause, effect in np.argwhere(back).tolist():
        linked[cause, effect] = False
        turned = not reaches(linked, cause, effect)
        linked[(effect, cause) if turned else (cause, effect)] = True
    return linked


def main_lag(profile: FloatArray, allowed: BoolArray) -> NDArray[np.int64]:
    """Give the position of the main lag ``[cause, effect]``: the earliest among near equals."""
    profile = np.where(allowed, profile, -1.0)
    near_best = profile >= POLICY.near_lag * profile.max(axis=-1, keepdims=True)
    return np.asarray(near_best.argmax(axis=-1))


def _lags(
    pairs: PairTests, chosen: BoolArray, main: NDArray[np.int64], known: KnownGraph
) -> BoolArray:
    """Take the main lag of every edge, and others that are nearly as strong beyond doubt."""
    profile, t, allowed = pairs.lag_profile, pairs.t, known.allowed[..., 1:]
    strongest = np.arange(profile.shape[-1]) == main[..., None]
    further = t >= np.maximum(
        POLICY.further_lag_t, POLICY.further_lag * t.max(axis=-1, keepdims=True)
    )
    further &= profile >= POLICY.further_lag * profile.max(axis=-1, keepdims=True)
    somewhere = known.required & ~known.required_lags.any(axis=-1)
    found = (chosen | somewhere)[..., None] & (strongest | further)
    return np.asarray(found & allowed | known.required_lags[..., 1:])
