"""The default detector: train once, test every cause out of sample, keep what is significant.

1. bring every series to normal scores;
2. train one network per fold, with causes removed at random (`causalformer.model.channels`);
3. compare held-out errors with and without each cause (`causalformer.detect.removal`);
4. where the network is hardly better than a linear model, let Granger's linear test speak, too;
5. control the false discovery rate and ask for a size (`causalformer.detect.evidence`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import DetectorSettings
from causalformer.data.windows import TimeSplit, lagged_samples
from causalformer.detect.evidence import cauchy_combination, edge_q, normal_p
from causalformer.detect.folds import blocked_folds
from causalformer.detect.granger import lagged_tests
from causalformer.detect.removal import RemovalErrors, removal_errors
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.model.channels import ChannelNetwork, masked_source_loss
from causalformer.training import CheckpointFile, Epoch, History, OneCycle, train

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the data say about every pair; matrices are ``[cause, effect]``.

    Attributes
    ----------
    p_value, q_value : array
        Combined p-value, and its q-value among self-loops or among edges between series.
    effect : array
        By which share the held-out error grows without the cause.
    size : array
        `effect`, or the linear model's share of explained variance where that test counts, if
        larger.
    strength : array
        Spread of the cause's contribution to the prediction, in standard deviations of the effect.
    lag_profile : array ``[cause, effect, lag - 1]``
        How much of the contribution comes through each lag.
    removal : RemovalErrors
        Held-out errors.
    linear_p : array
        p-value of Granger's linear test.
    linear_t : array ``[cause, effect, lag - 1]``
        |t| of every coefficient of the linear model.
    """

    p_value: FloatArray
    q_value: FloatArray
    effect: FloatArray
    size: FloatArray
    strength: FloatArray
    lag_profile: FloatArray
    removal: RemovalErrors
    linear_p: FloatArray
    linear_t: FloatArray


def new_network(
    n_series: int,
    max_lag: int,
    settings: DetectorSettings,
    generator: torch.Generator | None = None,
) -> ChannelNetwork:
    """Build the network that the settings describe."""
    return ChannelNetwork(
        settings.n_folds,
        n_series,
        max_lag,
        settings.n_channels,
        generator,
        settings.temperature if settings.attention else None,
    )


def train_network(
    past: Tensor,
    now: Tensor,
    fold: NDArray[np.int64],
    settings: DetectorSettings,
    generator: torch.Generator,
    on_epoch: Callable[[Epoch], object] | None = None,
    checkpoint: CheckpointFile | None = None,
) -> tuple[ChannelNetwork, History]:
    """Train the networks of all folds at once, with causes removed at random."""
    n_slots, n_series, max_lag = past.shape
    model = new_network(n_series, max_lag, settings, generator).to(past.device)
    folds = torch.arange(settings.n_folds)
    learns = (torch.from_numpy(fold)[:, None] != folds).to(past)
    lag_weight = lag_weights(max_lag, settings).to(past)
    ridge = settings.ridge_for(n_slots)

    def loss(network: ChannelNetwork, slots: Tensor) -> Tensor:
        missing = torch.rand(len(slots), generator=generator) < settings.removed_share
        which = torch.randint(n_series, (len(slots),), generator=generator)
        removed = torch.zeros(len(slots), n_series)
        removed[torch.arange(len(slots)), which] = missing.float()
        return masked_source_loss(
            network, past[slots], now[slots], learns[slots], removed.to(past), ridge, lag_weight
        )

    n_learned = n_slots * (settings.n_folds - 1) // settings.n_folds
    batch_size = min(256, max(32, n_learned // 4)) * settings.n_folds // (settings.n_folds - 1)
    history = train(
        model,
        torch.arange(n_slots, device=past.device),
        TimeSplit(train=(0, n_slots), validation=(n_slots, n_slots)),
        loss,
        OneCycle(settings.learning_rate, batch_size, settings.max_epochs),
        generator,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
    )
    return model, history


def detect(
    scores: FloatArray,
    max_lag: int,
    settings: DetectorSettings,
    *,
    random_state: int,
    device: torch.device | str = "cpu",
    slots: NDArray[np.int64] | None = None,
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> tuple[ChannelNetwork, History, Evidence]:
    """Train on normal scores ``[slot, series]`` and test every pair.

    `slots` picks samples, with repetition, for a bootstrap; all of them unless given.
    """
    generator = torch.Generator().manual_seed(random_state)
    past, now = lagged_samples(torch.from_numpy(scores).to(device, torch.float32), max_lag)
    if slots is not None:
        past, now = past[slots], now[slots]
    fold = blocked_folds(len(now), settings.n_folds)
    model, history = train_network(past, now, fold, settings, generator, on_epoch, checkpoint)
    return model, history, gather_evidence(model, past, now, fold, settings)


def lag_weights(max_lag: int, settings: DetectorSettings) -> Tensor:
    """Give the penalty of every lag: generous `max_lag` does no harm if long lags cost more."""
    return torch.arange(1, max_lag + 1).float() ** settings.lag_power


def gather_evidence(
    model: ChannelNetwork,
    past: Tensor,
    now: Tensor,
    fold: NDArray[np.int64],
    settings: DetectorSettings,
) -> Evidence:
    """Test every pair."""
    removal = removal_errors(
        model,
        past,
        now,
        fold,
        settings.ridge_for(len(now)),
        lag_weights(past.shape[-1], settings).to(past),
    )
    network_p = normal_p(removal.gain / np.maximum(removal.gain_error, 1e-12))
    lagged, effects = (x.double().cpu().numpy() for x in (past.flatten(1), now))
    linear = lagged_tests(lagged, effects, past.shape[-1])
    linear_p = np.exp(linear.log_p)
    linear_counts = removal.better_than_linear < settings.linear_margin  # per effect
    p_value = np.where(linear_counts, cauchy_combination(network_p, linear_p), network_p)
    effect = removal.gain / np.maximum(removal.error, 1e-12)
    strength, lag_profile = _contributions(model, past)
    # where the linear test is the better witness it names the lag, too
    use_t = (linear_counts & (linear_p < network_p))[..., None]
    return Evidence(
        p_value=p_value,
        q_value=edge_q(p_value),
        effect=effect,
        size=np.where(linear_counts, np.maximum(effect, linear.explained), effect),
        strength=strength,
        lag_profile=np.where(use_t, linear.t**2, lag_profile),
        removal=removal,
        linear_p=linear_p,
        linear_t=linear.t,
    )


def _contributions(model: ChannelNetwork, past: Tensor) -> tuple[FloatArray, FloatArray]:
    """Spread of every cause's contribution, and the mean square of every lag's."""
    n_pairs = past.shape[1] ** 2 * past.shape[2]
    total = torch.zeros(past.shape[1], past.shape[1], dtype=torch.float64)
    square, by_lag = total.clone(), torch.zeros(*total.shape, past.shape[2], dtype=torch.float64)
    for part in past.split(max(1, 4_000_000 // (n_pairs * 4))):
        share, _ = channel_relevance(model, part)  # slot, cause, lag, effect
        whole = share.sum(2)
        total += whole.sum(0).double().cpu()
        square += whole.square().sum(0).double().cpu()
        by_lag += share.square().sum(0).transpose(1, 2).double().cpu()
    mean = total / len(past)
    spread = (square / len(past) - mean**2).clamp(min=0).sqrt()
    return spread.numpy(), (by_lag / len(past)).numpy()
