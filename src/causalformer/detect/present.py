"""Lagged edges given the present: what reaches an effect through contemporaneous causes.

If x drives y within the slot, the past of x reaches y through the present of x, and so does what
drives x. Such edges are tested anew, with the present of the causes of y among the conditions.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.detect.calibrated import Evidence
from causalformer.detect.contemporaneous import MOST_SAMPLES, causes_of
from causalformer.detect.few_terms import search_terms
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
    for effect in np.flatnonzero(within.any(axis=0)).tolist():
        causes = causes_of(chosen, effect)
        samples, usable = given_the_present(evidence, allowed, causes, within[:, effect])
        search = search_terms(samples, usable, 0)
        for place, cause in enumerate(causes):
            if cause != effect:
                explained[cause, effect] = search.test(place).p_value > alpha
    return explained


def given_the_present(
    evidence: Evidence, allowed: BoolArray, causes: list[int], drivers: BoolArray
) -> tuple[Samples, BoolArray]:
    """Give the samples of the first of some causes as the effect, the present of others among them.

    The present of a driver, ``drivers[series]``, stands in the place of the first lag of one more
    cause. The second array says which lags may be used, ``[cause, lag - 1]``.
    """
    effect, samples = causes[0], evidence.samples.thinned(MOST_SAMPLES)
    some, usable = samples.of(causes, [effect]), allowed[causes, effect]
    present = np.flatnonzero(drivers).tolist()
    if not present:
        return some, usable
    now = some.past.new_zeros(len(some), len(present), some.max_lag)
    now[..., 0] = samples.now[:, present]
    only_first = np.tile(np.arange(some.max_lag) == 0, (len(present), 1))
    hidden = some.hidden
    if hidden is not None:
        unseen = hidden.new_zeros(len(some), len(present), some.max_lag)
        unseen[..., 0] = samples.observed[:, present] == 0
        hidden = torch.cat([hidden, unseen], dim=1)
    some = replace(some, past=torch.cat([some.past, now], dim=1), hidden=hidden)
    return some, np.vstack([usable, only_first])
