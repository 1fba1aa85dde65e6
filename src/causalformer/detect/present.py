r"""Links within a slot beside links from the past: which there are, and which way they point.

Where the past is well resolved, what two series still share within a slot is in the errors of
their predictions: those of the network, or of few terms if these predict better. A pair whose
errors are partially correlated is linked. Which way follows from the past: if x drives y within the
slot, the past of x reaches y through the present of x, and beside that y hangs on few terms; the
other way round x would hang on many. So both orders are compared by the criterion of
`causalformer.detect.few_terms`,

.. math:: \Delta = C(y) + C(x \mid y) - C(x) - C(y \mid x) ,

which is twice the logarithm of how much likelier the data are if x drives y. Where the past does
not tell, the measure of `causalformer.detect.instantaneous` is asked. And what reaches an effect
through the present of another series is no edge from the past: such edges are tested anew.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.detect.calibrated import Evidence
from causalformer.detect.few_terms import Search, search_terms
from causalformer.detect.instantaneous import InstantaneousEvidence, partial_correlations
from causalformer.detect.removal import errors_together

BoolArray = NDArray[np.bool_]

_MOST_SAMPLES = 2**14


def present_evidence(
    evidence: Evidence,
    within: InstantaneousEvidence,
    allowed: BoolArray,
    alpha: float,
    least: float,
) -> InstantaneousEvidence:
    """Test all pairs within a slot by their held-out errors, and orient those that are linked.

    Parameters
    ----------
    evidence : Evidence
        Of the past; no value may be missing.
    within : InstantaneousEvidence
        Directions where the past does not tell.
    allowed : array of bool ``[cause, effect, lag - 1]``
        Which links from the past there may be.
    alpha, least : float
        Pairs up to this q-value, with this squared partial correlation, are linked.
    """
    removal = evidence.removal
    found = partial_correlations(removal.residual_correlation, removal.n_together)
    by_past = np.zeros_like(found.partial)
    if not found.linked(alpha, least).any():
        return replace(found, direction=by_past)
    alone = [_search(evidence, allowed, effect, []) for effect in range(len(by_past))]
    found = _by_better_errors(evidence, alone)
    for x, y in np.argwhere(np.triu(found.linked(alpha, least))).tolist():
        forth = alone[x].criterion + _search(evidence, allowed, y, [x]).criterion
        back = alone[y].criterion + _search(evidence, allowed, x, [y]).criterion
        by_past[x, y] = np.sign(back - forth) * np.sqrt(abs(back - forth))
        by_past[y, x] = -by_past[x, y]
    told = replace(found, direction=by_past)
    return replace(told, direction=np.where(told.oriented, by_past, within.direction))


def _by_better_errors(evidence: Evidence, alone: list[Search]) -> InstantaneousEvidence:
    """Test all pairs by the errors of who predicts an effect better.

    In short series the network's held-out errors are larger than they need be, and then they are
    alike, as those who err err together.
    """
    step = -(-len(evidence.samples) // _MOST_SAMPLES)
    wrong = evidence.removal.residual[::step].copy()
    for effect, search in enumerate(alone):
        if search.error <= evidence.removal.error[effect]:
            wrong[:, effect] = search.residual
    return partial_correlations(*errors_together(wrong, evidence.samples.thinned(_MOST_SAMPLES)))


def explained_by_the_present(
    evidence: Evidence, allowed: BoolArray, chosen: BoolArray, within: BoolArray, alpha: float
) -> BoolArray:
    """Say which edges from the past, ``chosen[cause, effect]``, come through the present.

    `within`, ``[cause, effect]``, says what drives an effect within the slot; beside that such an
    edge adds nothing.
    """
    explained = np.zeros_like(chosen)
    for effect in np.flatnonzero(within.any(axis=0)).tolist():
        search = _search(evidence, allowed, effect, np.flatnonzero(within[:, effect]).tolist())
        for place, cause in enumerate(_causes(evidence, effect)):
            if cause != effect and chosen[cause, effect]:
                explained[cause, effect] = search.test(place).p_value > alpha
    return explained


def _causes(evidence: Evidence, effect: int) -> list[int]:
    """List the effect itself, then what it was tested for."""
    return list(dict.fromkeys([effect, *np.flatnonzero(evidence.candidates[:, effect]).tolist()]))


def _search(evidence: Evidence, allowed: BoolArray, effect: int, present: list[int]) -> Search:
    """Search the terms of an effect, present values of other series among them.

    The present of a series stands in the place of the first lag of one more cause.
    """
    causes, samples = _causes(evidence, effect), evidence.samples.thinned(_MOST_SAMPLES)
    some = samples.of(causes, [effect])
    now = some.past.new_zeros(len(some), len(present), some.max_lag)
    now[..., 0] = samples.now[:, present]
    only_first = np.tile(np.arange(some.max_lag) == 0, (len(present), 1))
    usable = np.vstack([allowed[causes, effect], only_first])
    return search_terms(replace(some, past=torch.cat([some.past, now], dim=1)), usable, 0)
