"""Which series an effect may hang on, among very many: a cheap look that leaves few candidates.

Every pair gets a score: the largest squared correlation of the cause's past with what the effect's
own past leaves unexplained, over all lags; of the value itself and of its square, with the effect
and with the effect times its last value, so that bent and modulated links count, too. The best half
of the candidates is taken, the effect is freed from what their past explains linearly, and the
scores of the rest are looked at again: behind a strong cause a weaker one comes into sight. That
gives a pool. Candidates are the very best of it, those that the effect hangs on by few terms
(`causalformer.detect.few_terms`), and the best of the rest.

Nothing is decided here. A pair that is no candidate gets no edge (p = 1), but counts in the family
of tests, so looking at the best candidates only lets no more false edges through.
"""

from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import DetectorSettings
from causalformer.detect.few_terms import causes_that_matter
from causalformer.detect.samples import Samples
from causalformer.devices import fast_small_steps
from causalformer.parallel import Map

BoolArray = NDArray[np.bool_]

LEAST_CANDIDATES = 8
TOGETHER = 16  # series up to which one network holds all effects
_POOL = 30  # series that candidates are chosen from, at least
_SLOTS_PER_INPUT = 20  # every candidate costs the tests of the others power
_GROUP = 25  # effects that are looked at together
_NUMBERS = 2**23  # past values in memory at a time
_RIDGE = 1e-3  # share of the variance that keeps equations of collinear lags solvable


def n_candidates(n_slots: int, max_lag: int, n_series: int, settings: DetectorSettings) -> int:
    """Say how many series, itself included, an effect may hang on: as many as the slots can tell.

    If that is all of them, there is nothing to screen; attention looks at all of them.

    Examples
    --------
    >>> settings = DetectorSettings()
    >>> [n_candidates(n_slots, 5, 300, settings) for n_slots in (100, 360, 1000, 10_000)]
    [8, 8, 10, 20]
    >>> n_candidates(1000, 5, 10, settings)
    10
    """
    if settings.attention or n_series <= settings.screen_above:
        return n_series
    affordable = n_slots // (_SLOTS_PER_INPUT * max_lag)
    return min(n_series, max(LEAST_CANDIDATES, min(settings.max_candidates, affordable)))


@torch.no_grad()
def screen(
    samples: Samples, n_kept: int, allowed: BoolArray, required: BoolArray, share: Map = map
) -> Int[Tensor, "effect candidate"]:
    """Choose the candidates of every effect, itself first.

    Parameters
    ----------
    samples : Samples
        Of all series.
    n_kept : int
        Candidates of an effect; more if one of them has more required causes.
    allowed, required : array of bool ``[cause, effect]``
        Which pairs may and which must be among them.
    share : Map
        Calls a function for groups of effects, maybe in other processes.
    """
    every = torch.arange(samples.n_series)
    own = torch.eye(samples.n_series, dtype=torch.bool)
    wanted = torch.from_numpy(required) | own
    excluded = torch.from_numpy(~allowed) & ~wanted
    n_places = max(n_kept, int(wanted.sum(0).max()))
    n_pool = min(max(n_places, _POOL), samples.n_series)
    pool, taken = every[:, None], own
    for n_wanted in (1 + (n_kept - 1) // 2, n_pool):
        score = _scores(samples, _unexplained(samples, pool)).cpu()
        score = score.masked_fill(excluded, -1.0).masked_fill(wanted, 2.0).masked_fill(taken, -2.0)
        ranked = torch.sort(score, dim=0, descending=True, stable=True).indices.T
        pool = torch.cat([pool, ranked[:, : n_wanted - pool.shape[1]]], dim=1)
        taken = taken.index_put((pool, every[:, None]), torch.tensor(True))
    groups = (_group(samples, pool, allowed, some) for some in every.split(_GROUP))
    matters = chain.from_iterable(share(_what_matters, groups))
    candidates = []
    for must, series, hangs_on in zip(wanted.sum(0).tolist(), pool.tolist(), matters, strict=True):
        best = series[: must + n_kept // 4]
        candidates.append(list(dict.fromkeys([*best, *hangs_on, *series]))[:n_places])
    return torch.tensor(candidates)


class _Group(NamedTuple):
    """Some effects and the series in their pools; in one piece, as `blocks._Task` is."""

    samples: Samples
    series: list[int]
    pool: Int[Tensor, "effect place"]  # places in `series`
    allowed: BoolArray  # place in the pool, effect


def _group(
    samples: Samples, pool: Int[Tensor, "effect place"], allowed: BoolArray, effects: Tensor
) -> _Group:
    series, at = torch.unique(pool[effects], return_inverse=True)
    may_be = allowed[pool[effects].T.numpy(), effects.numpy()]
    return _Group(samples.of(series.tolist(), effects.tolist()), series.tolist(), at, may_be)


def _what_matters(group: _Group) -> list[list[int]]:
    """Name the series that each effect hangs on by few terms."""
    samples, series, pool, allowed = group
    with fast_small_steps(samples.past.device, len(pool)):  # the same digits in every process
        found = list(causes_that_matter(samples, allowed, pool))
    return [[series[place] for place in places] for places in found]


def _unexplained(
    samples: Samples, sources: Int[Tensor, "effect candidate"]
) -> Float[Tensor, "sample effect"]:
    """Give what the past of its sources does not explain of every effect; 0 where missing."""
    left = samples.now * samples.observed
    n_inputs = sources.shape[1] * samples.max_lag
    for effects in torch.arange(samples.n_series).split(max(1, _NUMBERS // len(samples))):
        gram = samples.past.new_zeros(len(effects), n_inputs, n_inputs)
        target = samples.past.new_zeros(len(effects), n_inputs, 1)
        parts = torch.arange(len(samples)).split(max(1, _NUMBERS // (len(effects) * n_inputs)))
        for slots in parts:
            inputs = _inputs(samples, slots, sources[effects])
            gram += inputs.mT @ inputs
            target += inputs.mT @ left[slots][:, effects].T[..., None]
        gram.diagonal(dim1=1, dim2=2).mul_(1 + _RIDGE).add_(1e-6)
        weights = torch.linalg.solve(gram, target)
        for slots in parts:
            explained = (_inputs(samples, slots, sources[effects]) @ weights)[..., 0].T
            left[slots[:, None], effects] -= explained
    return left * samples.observed


def _inputs(
    samples: Samples, slots: Tensor, sources: Int[Tensor, "effect candidate"]
) -> Float[Tensor, "effect slot input"]:
    """Past of the sources where the effect, the first of them, was observed; else zero."""
    inputs = samples.past[slots][:, sources].flatten(2).transpose(0, 1)
    if samples.complete:
        return inputs
    return inputs * samples.observed[slots][:, sources[:, 0]].T[..., None]


def _scores(
    samples: Samples, left: Float[Tensor, "sample effect"]
) -> Float[Tensor, "cause effect"]:
    """Give the largest squared correlation of a pair, over lags and forms."""
    targets = _standardised(left), _standardised(left * samples.past[:, :, 0])
    best = left.new_zeros(samples.n_series, samples.n_series)
    for lag in range(samples.max_lag):
        value = samples.past[:, :, lag]
        for form in (_standardised(value), _standardised(value.square())):
            for target in targets:
                best = torch.maximum(best, (form.T @ target / len(left)).square())
    return best


def _standardised(x: Float[Tensor, "sample series"]) -> Float[Tensor, "sample series"]:
    centred = x - x.mean(0)
    return centred / centred.square().mean(0).sqrt().clamp(min=1e-12)
