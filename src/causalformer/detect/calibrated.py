"""The default detector: train once, test every cause out of sample, keep what is significant.

1. bring every series to normal scores;
2. train one network per fold, with causes removed at random (`causalformer.detect.networks`);
3. compare held-out errors with and without each cause (`causalformer.detect.removal`);
4. let the tests of few terms speak, too (`causalformer.detect.few_terms`), and alone where the
   network did not look; where the network knows more of an effect than the terms, they only confirm
   what it finds: a p-value goes down to the square of the network's;
5. if what the terms do not explain comes from what others do during a slot, test that in place of
   what the past foretells (`causalformer.detect.flow`);
6. control the false discovery rate and ask for a size (`causalformer.detect.pair_tests`).
"""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import DetectorSettings
from causalformer.detect.evidence import SMALLEST, half_cauchy_combination, normal_p
from causalformer.detect.few_terms import SparseTests
from causalformer.detect.flow import flow_tests
from causalformer.detect.networks import lag_weights, new_network, train_network
from causalformer.detect.pair_tests import Evidence, PairTests
from causalformer.detect.removal import RemovalErrors, removal_errors
from causalformer.detect.samples import Samples
from causalformer.devices import has_float64
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.model.channels import ChannelNetwork
from causalformer.policy import POLICY
from causalformer.training import CheckpointFile, Epoch, History

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_MOST_TO_DESCRIBE = 2**14  # samples that strengths and lags are read from


def detect_together(
    samples: Samples,
    settings: DetectorSettings,
    allowed: BoolArray,
    sparse: SparseTests,
    family: BoolArray,
    *,
    random_state: int,
    n_jobs: int = 1,
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> tuple[ChannelNetwork, History, Evidence]:
    """Train one network on samples of normal scores and test every pair.

    `allowed`, ``[cause, effect, lag - 1]``, says which links the network may look at, `family`,
    ``[cause, effect]``, which pairs count in the rate of false discoveries. The tests by few terms,
    `sparse`, may be about pairs and lags that the network does not look at.
    """
    generator = torch.Generator().manual_seed(random_state)
    model = new_network(samples.n_series, samples.max_lag, settings, generator)
    model = model.to(samples.past.device)
    history = train_network(
        model, samples, settings, allowed, generator, n_jobs, on_epoch, checkpoint
    )
    found, removal = judge_pairs(model, samples, settings, allowed, sparse, n_jobs)
    pairs = known_by_terms(sparse, removal, samples, family, settings)
    pairs = pairs.put(found.candidates, found.at(found.candidates))
    judged = samples if has_float64(samples.past.device) else samples.to("cpu")
    return model, history, Evidence(pairs, family, judged, removal)


def judge_pairs(
    model: ChannelNetwork,
    samples: Samples,
    settings: DetectorSettings,
    allowed: BoolArray,
    sparse: SparseTests,
    n_jobs: int = 1,
) -> tuple[PairTests, RemovalErrors]:
    """Test every pair of a network's causes and effects that is allowed at some lag.

    Only those count in what is given back. The tests need double precision: what an accelerator
    without it has trained is tested on the processor.
    """
    if not has_float64(samples.past.device):
        model, samples = deepcopy(model).cpu(), samples.to("cpu")
    strength, relevance = contributions(model, samples.thinned(_MOST_TO_DESCRIBE).past)
    ridge = settings.ridge_for(samples.n_informed)
    lag_weight = lag_weights(samples.max_lag, settings).to(samples.past)
    removal = removal_errors(model, samples, ridge, lag_weight, allowed, relevance, n_jobs)
    network_p = normal_p(removal.gain / np.maximum(removal.gain_error, 1e-12))
    network_p = np.where(np.diag(removal.n_together) >= POLICY.least_samples, network_p, 1.0)
    if settings.sparse_evidence and samples.wanders is not None:
        # what is held out lies elsewhere than what was learned from: nothing averages out
        causes = torch.arange(model.n_causes)[:, None] if model.sources is None else model.sources.T
        network_p = np.where(samples.wanders[causes.numpy()], 1.0, network_p)
    # terms that leave out what the network knows find false causes: they may only confirm it
    own, believed = model.own.numpy(), _believed(sparse, removal, samples)
    sparse_counts = settings.sparse_evidence & (own | believed)
    weights = POLICY.straight_share, POLICY.bent_share
    both = half_cauchy_combination(sparse.p_value, network_p, weights=weights)
    confirmed = np.clip(both, network_p**2, network_p) if settings.sparse_evidence else network_p
    p_value = np.where(sparse_counts, both, np.maximum(confirmed, SMALLEST))
    # where series act all the time the past foretells indirect causes, too
    unexplained = settings.sparse_evidence & ~believed
    flow = flow_tests(samples, unexplained, allowed[..., 0], own, model.sources)
    flows = flow.flows & allowed[..., 0] & ~own
    relative_gain = removal.gain / np.maximum(removal.error, 1e-12)
    size = np.where(sparse_counts, np.maximum(relative_gain, sparse.explained), relative_gain)
    looked_at = np.asarray(allowed.any(axis=-1))
    return PairTests(
        p_value=np.where(flows, flow.p_value, p_value),
        relative_gain=relative_gain,
        size=np.where(flows, flow.explained, size),
        strength=strength,
        terms_p=sparse.p_value,
        t=sparse.t,
        # a sum of terms cannot name the lags of what is no such sum
        lag_profile=np.where(sparse_counts[..., None], sparse.t**2, relevance),
        tested=looked_at,
        candidates=looked_at,
        flows=flows,
    ), removal


def known_by_terms(
    sparse: SparseTests,
    removal: RemovalErrors,
    samples: Samples,
    family: BoolArray,
    settings: DetectorSettings,
) -> PairTests:
    """Say what is known of all pairs of the `family` where the network does not look.

    The tests of few terms count for effects of which they are believed. Else they only give a rank
    behind all pairs for which there is some evidence.
    """
    counts = _believed(sparse, removal, samples) & sparse.tested & family
    counts &= settings.sparse_evidence
    nothing = np.zeros_like(sparse.p_value)
    return PairTests(
        p_value=np.where(counts, sparse.p_value, np.where(family, (1 + sparse.p_value) / 2, 1)),
        relative_gain=nothing,
        size=np.where(counts, sparse.explained, 0.0),
        strength=np.where(counts, sparse.strength, 0.0),
        terms_p=sparse.p_value,
        t=sparse.t,
        lag_profile=sparse.t**2,
        tested=counts,
        candidates=nothing > 0,
        flows=nothing > 0,
    )


def _believed(sparse: SparseTests, removal: RemovalErrors, samples: Samples) -> BoolArray:
    """Say of which effects the terms know all that the network knows."""
    return ~sparse.refuted(removal.residual, samples.observed.cpu().numpy())


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
