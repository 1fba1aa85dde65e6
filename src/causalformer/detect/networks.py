"""The networks of all folds: built from the settings and trained with causes removed at random."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import DetectorSettings
from causalformer.data.windows import all_to_train
from causalformer.detect.samples import Samples
from causalformer.model.channel_loss import masked_source_loss
from causalformer.model.channels import ChannelNetwork
from causalformer.parallel import threads
from causalformer.training import CheckpointFile, Epoch, History, OneCycle, train

BoolArray = NDArray[np.bool_]

_MOST_PER_EPOCH = 3_000  # samples that are learned from before the next epoch begins
_SMALLEST_BATCH, _LARGEST_BATCH = 42, 341  # samples, of which a fold may not see all


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


def lag_weights(max_lag: int, settings: DetectorSettings) -> Tensor:
    """Give the penalty of every lag: generous `max_lag` does no harm if long lags cost more."""
    return torch.arange(1, max_lag + 1).float() ** settings.lag_power
