"""Lagged edges given the present: what reaches an effect through contemporaneous causes.

If x drives y within the slot, the past of x reaches y through the present of x, and so does what
drives x. Such edges are tested anew, with the present of the causes of y among the conditions.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.detect.contemporaneous import MOST_SAMPLES, causes_of
from causalformer.detect.few_terms import search_terms
from causalformer.detect.pair_tests import Evidence
from causalformer.detect.samples import Samples

BoolArray = NDArray[np.bool_]


def explained_by_the_present(
    evidence: Evidence, allowed: BoolArray, chosen: BoolArray, within: BoolArray, alpha: float
) -> BoolArray:
    """Say which lagged edges, ``chosen[cause, effect]``, come through the present.

    `within`, ``[cause, effect]``, says what drives an effect within the slot; beside that such an
    edge adds nothing.
    """
    explained = np.zeros_like(chosen)
    samples = evidence.samples.thinned(MOST_SAMPLES)
    for effect in np.flatnonzero(within.any(axis=0) & chosen.any(axis=0)).tolist():
        causes = causes_of(chosen, effect)
        search = search_terms(*beside_the_present(samples, allowed, causes, within), 0)
        for place, cause in enumerate(causes):
            if cause != effect:
                explained[cause, effect] = search.test(place).p_value > alpha
    return explained


def beside_the_present(
    samples: Samples, allowed: BoolArray, causes: list[int], within: BoolArray
) -> tuple[Samples, BoolArray]:
    """Put the present of what drives an effect within the slot beside the past of some causes.

    The effect is the first cause. The present of a series stands in the place of the first lag of
    one more cause. Only samples count in which it was observed: a guess in its place would leave to
    the past what the present explains.

    Returns
    -------
    Samples, array of bool ``[cause, lag - 1]``
        The samples of the effect, and which lags of each cause there may be.
    """
    effect = causes[0]
    some, usable = samples.of(causes, [effect]), allowed[causes, effect]
    drivers = np.flatnonzero(within[:, effect]).tolist()
    if not drivers:
        return some, usable
    now = some.past.new_zeros(len(some), len(drivers), some.max_lag)
    now[..., 0] = samples.now[:, drivers]
    only_first = np.tile(np.arange(some.max_lag) == 0, (len(drivers), 1))
    observed, hidden = some.observed, some.hidden
    if hidden is not None:
        observed = observed * samples.observed[:, drivers].amin(dim=1, keepdim=True)
        hidden = torch.cat([hidden, torch.zeros_like(now, dtype=torch.bool)], dim=1)
    past = torch.cat([some.past, now], dim=1)
    beside = replace(some, past=past, observed=observed, hidden=hidden)
    return beside, np.vstack([usable, only_first])
