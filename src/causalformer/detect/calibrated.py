"""The default detector: train once, test every cause out of sample, keep what is significant.

1. bring every series to normal scores;
2. train one network per fold, with causes removed at random (`causalformer.model.channels`);
3. compare held-out errors with and without each cause (`causalformer.detect.removal`);
4. let the tests of few terms speak, too (`causalformer.detect.few_terms`), and alone where the
   network did not look; where the network knows more of an effect than the terms, they only confirm
   what it finds: a p-value goes down to the square of the network's;
5. if what the terms do not explain comes from what others do during a slot, test that in place of
   what the past foretells (`causalformer.detect.flow`);
6. control the false discovery rate and ask for a size (`causalformer.detect.evidence`).
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import DetectorSettings
from causalformer.data.windows import all_to_train
from causalformer.detect.evidence import (
    SMALLEST,
    edge_doubt,
    edge_q,
    half_cauchy_combination,
    normal_p,
)
from causalformer.detect.few_terms import SparseTests, sparse_tests
from causalformer.detect.flow import flow_tests
from causalformer.detect.lags import single_lag_errors
from causalformer.detect.removal import RemovalErrors, removal_errors
from causalformer.detect.samples import Samples
from causalformer.devices import has_float64
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.model.channel_loss import masked_source_loss
from causalformer.model.channels import ChannelNetwork
from causalformer.parallel import threads
from causalformer.policy import POLICY
from causalformer.training import CheckpointFile, Epoch, History, OneCycle, train

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_MOST_PER_EPOCH = 3_000  # samples that are learned from before the next epoch begins
_SMALLEST_BATCH, _LARGEST_BATCH = 42, 341  # samples, of which a fold may not see all
_MOST_TO_DESCRIBE = 2**14  # samples that strengths and lags are read from
OF_PAIRS = (
    "p_value",
    "effect",
    "size",
    "strength",
    "lag_profile",
    "lag_error",
    "sparse_p",
    "sparse_t",
    "tested",
    "candidates",
    "flows",
)
"""What `Evidence` knows of every pair by itself, without the others."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the data say about every pair; matrices are ``[cause, effect]``.

    Attributes
    ----------
    p_value, q_value : array
        Combined p-value, and its q-value among self-loops or among edges between series. Of a pair
        that is not tested the p-value is only a rank, above one half, and the q-value is one.
    doubt : array
        Local false discovery rate among edges between series; zero for self-loops.
    effect : array
        By which share the held-out error grows without the cause.
    size : array
        `effect`, or the share of variance explained in the sparse test where that counts, if
        larger; where series flow, the share of the effect's change that the cause explains.
    strength : array
        Spread of the cause's contribution to the prediction, in standard deviations of the effect.
    lag_profile : array ``[cause, effect, lag - 1]``
        How much of the contribution comes through each lag.
    lag_error : array ``[cause, effect, lag - 1]``
        Error with this lag of the cause alone; infinite without evidence, for self-loops, and
        where the profile is that of the sparse test.
    samples : Samples
        What the tests rest on.
    removal : RemovalErrors
        Held-out errors.
    sparse_p : array
        p-value of the sparse test.
    sparse_t : array ``[cause, effect, lag - 1]``
        Largest |t| of every lag in the sparse test.
    tested : array of bool
        Whether the pair was tested: it is allowed, and the network looked at it, or few terms are
        believed.
    candidates : array of bool
        Whether the network looked at the pair.
    flows : array of bool
        Whether the pair was judged by what the cause does during the slot.
    """

    p_value: FloatArray
    q_value: FloatArray
    doubt: FloatArray
    effect: FloatArray
    size: FloatArray
    strength: FloatArray
    lag_profile: FloatArray
    lag_error: FloatArray
    samples: Samples
    removal: RemovalErrors
    sparse_p: FloatArray
    sparse_t: FloatArray
    tested: BoolArray
    candidates: BoolArray
    flows: BoolArray

    @property
    def largest_size(self) -> FloatArray:
        """The largest size that the data allow, one-sided at 75 %.

        A size is a share of variance, the square of a partial correlation, and that has a standard
        error of about one over the root of the number of samples.
        """
        n_slots = np.maximum(np.diag(self.removal.n_together), 1.0)
        beyond = NormalDist().inv_cdf(1.0 - POLICY.doubt)
        return np.asarray((np.sqrt(np.maximum(self.size, 0.0)) + beyond / np.sqrt(n_slots)) ** 2)


def new_network(
    n_series: int,
    max_lag: int,
    settings: DetectorSettings,
    generator: torch.Generator | None = None,
    sources: Tensor | None = None,
) -> ChannelNetwork:
    """Build the network that the settings describe; see `ChannelNetwork` for `sources`."""
    return ChannelNetwork(
        settings.n_folds, n_series, max_lag, settings.n_channels, generator, sources
    )


def train_network(
    model: ChannelNetwork,
    samples: Samples,
    settings: DetectorSettings,
    allowed: BoolArray,
    generator: torch.Generator,
    n_jobs: int = 1,
    on_epoch: Callable[[Epoch], object] | None = None,
    checkpoint: CheckpointFile | None = None,
) -> History:
    """Train the networks of all folds at once, in place, with causes removed at random.

    `n_jobs` threads share the folds.
    """
    past, now = samples.past, samples.now
    if not allowed.all():
        model.allow(torch.from_numpy(allowed).to(past.device))
    folds = torch.arange(settings.n_folds)
    learns = (torch.from_numpy(samples.fold)[:, None] != folds).to(past)[..., None]
    if not samples.complete:
        learns = learns * samples.observed[:, None]
    lag_weight = lag_weights(samples.max_lag, settings).to(past)
    ridge = settings.ridge_for(samples.n_observed)

    def loss(network: ChannelNetwork, slots: Tensor) -> Tensor:
        missing = torch.rand(len(slots), generator=generator) < settings.removed_share
        which = torch.randint(model.n_causes, (len(slots),), generator=generator)
        removed = torch.zeros(len(slots), model.n_causes)
        removed.scatter_(1, which[:, None], missing.float()[:, None])
        return masked_source_loss(
            network,
            past.index_select(0, slots),
            now.index_select(0, slots),
            learns.index_select(0, slots),
            removed.to(past),
            ridge,
            lag_weight,
            share,
        )

    batch_size = equal_batches(min(len(samples), _MOST_PER_EPOCH))
    with threads(n_jobs if past.device.type == "cpu" else 1, settings.n_folds) as share:
        return train(
            model,
            torch.arange(len(samples), device=past.device),
            all_to_train(len(samples)),
            loss,
            OneCycle(settings.learning_rate, batch_size, settings.max_epochs),
            generator,
            most_per_epoch=_MOST_PER_EPOCH,
            on_epoch=on_epoch,
            checkpoint=checkpoint,
        )


def equal_batches(n_samples: int) -> int:
    """Give the size of at least four batches, fewer of few samples, that hardly differ in size.

    A last batch of a few samples would take as large a step as the others, in any direction.

    Examples
    --------
    >>> [equal_batches(n_samples) for n_samples in (45, 195, 995, 3000)]
    [23, 49, 249, 334]
    """
    n_batches = max(4, -(-n_samples // _LARGEST_BATCH))
    return -(-n_samples // min(n_batches, -(-n_samples // _SMALLEST_BATCH)))


def detect_together(
    samples: Samples,
    settings: DetectorSettings,
    allowed: BoolArray,
    *,
    sparse: SparseTests | None = None,
    family: BoolArray | None = None,
    random_state: int,
    n_jobs: int = 1,
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> tuple[ChannelNetwork, History, Evidence]:
    """Train one network on samples of normal scores and test every pair.

    `allowed`, ``[cause, effect, lag - 1]``, says which links the network may look at, `family`,
    ``[cause, effect]``, which pairs count in the rate of false discoveries; see `gather_evidence`.
    """
    generator = torch.Generator().manual_seed(random_state)
    model = new_network(samples.n_series, samples.max_lag, settings, generator)
    model = model.to(samples.past.device)
    history = train_network(
        model, samples, settings, allowed, generator, n_jobs, on_epoch, checkpoint
    )
    return (
        model,
        history,
        gather_evidence(model, samples, settings, allowed, sparse, family, n_jobs),
    )


def lag_weights(max_lag: int, settings: DetectorSettings) -> Tensor:
    """Give the penalty of every lag: generous `max_lag` does no harm if long lags cost more."""
    return torch.arange(1, max_lag + 1).float() ** settings.lag_power


def gather_evidence(
    model: ChannelNetwork,
    samples: Samples,
    settings: DetectorSettings,
    allowed: BoolArray,
    sparse: SparseTests | None = None,
    family: BoolArray | None = None,
    n_jobs: int = 1,
) -> Evidence:
    """Test every pair of a network's causes and effects that is allowed at some lag.

    The tests by few terms, `sparse`, may be about pairs and lags that the network does not look at;
    without them they are done here. The rate of false discoveries is that of the `family`,
    ``[cause, effect]``: pairs that are not tested count with p = 1. Without it, it is that of the
    pairs that the network looks at.
    The tests need double precision: what an accelerator without it has trained is tested here.
    """
    if not has_float64(samples.past.device):
        model, samples = deepcopy(model).cpu(), samples.to("cpu")
    strength, lag_profile = contributions(model, samples.thinned(_MOST_TO_DESCRIBE).past)
    ridge = settings.ridge_for(samples.n_informed)
    lag_weight = lag_weights(samples.max_lag, settings).to(samples.past)
    looked_at, own = np.asarray(allowed.any(axis=-1)), model.own.numpy()
    if sparse is None:
        sparse = sparse_tests(samples, allowed, own, model.sources)
    removal = removal_errors(model, samples, ridge, lag_weight, allowed, lag_profile, n_jobs)
    network_p = normal_p(removal.gain / np.maximum(removal.gain_error, 1e-12))
    network_p = np.where(np.diag(removal.n_together) >= POLICY.least_samples, network_p, 1.0)
    if settings.sparse_evidence and samples.wanders is not None:
        # what is held out lies elsewhere than what was learned from: nothing averages out
        causes = torch.arange(model.n_causes)[:, None] if model.sources is None else model.sources.T
        network_p = np.where(samples.wanders[causes.numpy()], 1.0, network_p)
    # terms that leave out what the network knows find false causes: they may only confirm it
    believed = ~sparse.refuted(removal.residual, samples.observed.cpu().numpy())
    sparse_counts = settings.sparse_evidence & (own | believed)
    weights = POLICY.straight_share, POLICY.bent_share
    both = half_cauchy_combination(sparse.p_value, network_p, weights=weights)
    confirmed = np.clip(both, network_p**2, network_p) if settings.sparse_evidence else network_p
    p_value = np.where(sparse_counts, both, np.maximum(confirmed, SMALLEST))
    unexplained = settings.sparse_evidence & ~believed
    # where series act all the time the past foretells indirect causes, too
    flow = flow_tests(samples, unexplained, allowed[..., 0], own, model.sources)
    flows = flow.flows & allowed[..., 0] & ~own
    p_value = np.where(flows, flow.p_value, p_value)
    effect = np.where(looked_at, removal.gain / np.maximum(removal.error, 1e-12), 0.0)
    size = np.where(sparse_counts, np.maximum(effect, sparse.explained), effect)
    sparse_leads = sparse_counts & (sparse.p_value < network_p)
    between = (p_value <= POLICY.second_look) & ~own & ~sparse_leads & looked_at
    fewer = samples.thinned(_MOST_TO_DESCRIBE)
    lag_error = single_lag_errors(model, fewer, between, ridge, lag_weight)
    pairs: Arrays = {
        "p_value": p_value,
        "effect": effect,
        "size": np.where(flows, flow.explained, size),
        "strength": strength,
        # where the sparse test is the stronger witness it names the lag, too
        "lag_profile": np.where(sparse_leads[..., None], sparse.t**2, lag_profile),
        "lag_error": np.where(allowed, lag_error, np.inf),
        "sparse_p": sparse.p_value,
        "sparse_t": sparse.t,
        "tested": looked_at,
        "candidates": looked_at,
        "flows": flows,
    }
    family = looked_at if family is None else family
    for name, others in not_looked_at(sparse, believed, family, settings).items():
        seen = looked_at if others.ndim == 2 else looked_at[..., None]
        pairs[name] = np.where(seen, pairs[name], others)
    return Evidence(**pairs, **rates(pairs, family, own), samples=samples, removal=removal)


def not_looked_at(
    sparse: SparseTests, believed: BoolArray, allowed: BoolArray, settings: DetectorSettings
) -> Arrays:
    """Say what is known of pairs that the network does not look at, by its name in `Evidence`.

    The tests of few terms count for effects of which these are `believed`. Else they only give a
    rank behind all pairs for which there is some evidence.
    """
    counts = settings.sparse_evidence & believed & sparse.tested & allowed
    nothing = np.zeros_like(sparse.p_value)
    return {
        "p_value": np.where(counts, sparse.p_value, np.where(allowed, (1 + sparse.p_value) / 2, 1)),
        "effect": nothing,
        "size": np.where(counts, sparse.explained, 0.0),
        "strength": np.where(counts, sparse.strength, 0.0),
        "lag_profile": sparse.t**2,
        "lag_error": np.full(sparse.t.shape, np.inf),
        "sparse_p": sparse.p_value,
        "sparse_t": sparse.t,
        "tested": counts,
        "candidates": nothing > 0,
        "flows": nothing > 0,
    }


def rates(pairs: Arrays, family: BoolArray, own: BoolArray | None = None) -> Arrays:
    """Give the rates of false discoveries; who is not tested counts as if without evidence."""
    p_value = np.where(pairs["tested"], pairs["p_value"], 1.0)
    return {"q_value": edge_q(p_value, family, own), "doubt": edge_doubt(p_value, family, own)}


def contributions(model: ChannelNetwork, past: Tensor) -> tuple[FloatArray, FloatArray]:
    """Spread of every cause's contribution, and the mean square of every lag's."""
    n_pairs = model.n_causes * model.n_effects * model.max_lag
    total = torch.zeros(model.n_causes, model.n_effects, dtype=torch.float64)
    square, by_lag = total.clone(), torch.zeros(*total.shape, past.shape[2], dtype=torch.float64)
    for part in past.split(max(1, 4_000_000 // (n_pairs * 4))):
        share, _ = channel_relevance(model, part)  # slot, cause, lag, effect
        whole = share.sum(2)
        total += whole.sum(0).cpu().double()
        square += whole.square().sum(0).cpu().double()
        by_lag += share.square().sum(0).transpose(1, 2).cpu().double()
    mean = total / len(past)
    spread = (square / len(past) - mean**2).clamp(min=0).sqrt()
    return spread.numpy(), (by_lag / len(past)).numpy()
