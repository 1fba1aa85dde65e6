"""Which series an effect may hang on, among very many: a cheap look, and tests of few terms.

Every pair gets a score: the largest squared correlation of the cause's past with what the effect's
own past leaves unexplained, over all lags; of the value itself and of its square, with the effect
and with the effect times its last value, so that bent and modulated links count, too. The best half
of the candidates is taken, the effect is freed from what their past explains linearly, and the
scores of the rest are looked at again: behind a strong cause a weaker one comes into sight.

By few terms (`causalformer.detect.few_terms`) every effect is tested for all series, or, of very
many, for a pool of those with the best scores. The network is trained on fewer, its candidates: the
very best by their score, those that the effect hangs on by few terms, and the best of the rest.

A pair outside the pool gets no edge, but it counts in the family of tests, so looking at the best
only lets no more false edges through; and it has a rank among such pairs, by its score.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import DetectorSettings
from causalformer.detect.few_terms import SparseTests, n_shared_products, sparse_tests
from causalformer.detect.samples import Samples
from causalformer.devices import fast_small_steps
from causalformer.parallel import Map
from causalformer.policy import POLICY

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
TOGETHER = 16  # series up to which one network holds all effects
_POOL = 30  # series that terms are chosen from, if they cannot be all
_GROUP = 25  # effects that are looked at together
_NUMBERS = 2**23  # past values in memory at a time
_RIDGE = 1e-3  # share of the variance that keeps equations of collinear lags solvable


def n_candidates(n_slots: int, max_lag: int, n_series: int, settings: DetectorSettings) -> int:
    """Say how many series, itself included, an effect may hang on: as many as the slots can tell.

    If that is all of them, there is nothing to screen.

    Examples
    --------
    >>> settings = DetectorSettings()
    >>> [n_candidates(n_slots, 5, 300, settings) for n_slots in (100, 360, 1000, 10_000)]
    [8, 8, 10, 20]
    >>> n_candidates(1000, 5, 10, settings)
    10
    """
    if n_series <= settings.screen_above:
        return n_series
    affordable = n_slots // (POLICY.least_samples * max_lag)
    return min(n_series, max(POLICY.least_candidates, min(settings.max_candidates, affordable)))


class Screened(NamedTuple):
    """What a first look at all pairs gives.

    Attributes
    ----------
    sources : tensor ``[effect, candidate]``
        The candidates of the network, the effect itself first.
    sparse : SparseTests
        The tests by few terms, ``[cause, effect]``; of a pair that is not tested, the p-value is
        that of its score.
    """

    sources: Int[Tensor, "effect candidate"]
    sparse: SparseTests


@torch.no_grad()
def screen(
    samples: Samples, n_kept: int, allowed: BoolArray, required: BoolArray, share: Map = map
) -> Screened:
    """Test every effect by few terms, and choose the candidates of the network.

    Parameters
    ----------
    samples : Samples
        Of all series.
    n_kept : int
        Candidates of an effect; more if one of them has more required causes.
    allowed : array of bool ``[cause, effect, lag - 1]``
        Which links there may be.
    required : array of bool ``[cause, effect]``
        Which pairs must be among the candidates.
    share : Map
        Calls a function for groups of effects, maybe in other processes.
    """
    n_series = samples.n_series
    every, own = torch.arange(n_series), torch.eye(n_series, dtype=torch.bool)
    wanted = torch.from_numpy(required) | own
    n_places = max(n_kept, int(wanted.sum(0).max()))
    n_pool = n_pooled(samples, n_places)
    ranked, p_value = every.expand(n_series, -1), np.ones((n_series, n_series))
    if min(n_kept, n_pool) < n_series:
        excluded = torch.from_numpy(~allowed.any(axis=-1)) & ~wanted
        ranked, p_value = _ranked(samples, n_kept, wanted, excluded)
    pool = torch.sort(ranked[:, :n_pool], dim=1).values
    # those that share all products are two groups, as each group has to sum them
    size = -(-n_series // 2) if n_pool == n_series > TOGETHER else _GROUP
    groups = (_group(samples, pool, allowed, some) for some in every.split(size))
    sparse = SparseTests.joined(p_value, pool.T.numpy(), share(_tested, groups))
    candidates = []
    for effect, must in enumerate(wanted.sum(0).tolist()):
        series, p_values = ranked[effect].tolist(), sparse.p_value[:, effect]
        hangs_on = np.flatnonzero(sparse.hangs_on[:, effect]).tolist()
        best = series[: must + n_kept // 4]
        first = [*best, *sorted(hangs_on, key=p_values.__getitem__), *series]
        candidates.append(list(dict.fromkeys(first))[:n_places])
    return Screened(torch.tensor(candidates), sparse)


def n_pooled(samples: Samples, n_places: int) -> int:
    """Say how many series the terms of an effect are chosen from.

    All, if effects can share the products of their terms, or if there are few.
    """
    n_series = samples.n_series
    if samples.complete and n_shared_products(n_series, samples.max_lag):
        return n_series
    return min(max(n_places, _POOL), n_series)


def _ranked(
    samples: Samples,
    n_kept: int,
    wanted: Bool[Tensor, "cause effect"],
    excluded: Bool[Tensor, "cause effect"],
) -> tuple[Int[Tensor, "effect place"], FloatArray]:
    """Order all series by their scores for each effect, itself first; give p-values of these."""
    every, taken = torch.arange(samples.n_series), torch.eye(samples.n_series, dtype=torch.bool)
    ranked = every[:, None]
    for n_wanted in (1 + (n_kept - 1) // 2, samples.n_series):
        score = _scores(samples, _unexplained(samples, ranked)).cpu()
        order = score.masked_fill(excluded, -1.0).masked_fill(wanted, 2.0).masked_fill(taken, -2.0)
        best = torch.sort(order, dim=0, descending=True, stable=True).indices.T
        ranked = torch.cat([ranked, best[:, : n_wanted - ranked.shape[1]]], dim=1)
        taken = taken.index_put((ranked, every[:, None]), torch.tensor(True))
    return ranked, _p_values(score.double().numpy(), samples.n_observed, 4 * samples.max_lag)


def _p_values(score: FloatArray, n_samples: int, n_tries: int) -> FloatArray:
    """Give the p-value of the largest of several squared correlations."""
    from scipy.special import ndtr

    one = 2.0 * ndtr(-np.sqrt(n_samples * score))
    return np.asarray(-np.expm1(n_tries * np.log1p(-np.minimum(one, 1 - 1e-16))))


class _Group(NamedTuple):
    """Some effects and the series in their pools; in one piece, as `blocks._Task` is."""

    samples: Samples
    pool: Int[Tensor, "effect place"]  # places in the samples
    allowed: BoolArray  # place in the pool, effect, lag
    own: BoolArray  # place in the pool, effect


def _group(
    samples: Samples, pool: Int[Tensor, "effect place"], allowed: BoolArray, effects: Tensor
) -> _Group:
    series, at = torch.unique(pool[effects], return_inverse=True)
    places, own = pool[effects].T, (pool[effects] == effects[:, None]).T.numpy()
    may_be = allowed[places.numpy(), effects.numpy()]
    return _Group(samples.of(series.tolist(), effects.tolist()), at, may_be, own)


def _tested(group: _Group) -> SparseTests:
    """Test the effects of a group by few terms."""
    samples, pool, allowed, own = group
    everything = pool.shape[1] == samples.n_series
    with fast_small_steps(samples.past.device, len(pool)):  # the same digits in every process
        return sparse_tests(samples, allowed, own, None if everything else pool)


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
