"""Small random networks and windows, shared by the tests of model and explanation."""

import torch

from causalformer.config import Settings
from causalformer.model import CausalityAwareTransformer
from causalformer.model.channels import ChannelNetwork

SMALL = Settings(
    window=5,
    d_model=6,
    n_heads=2,
    d_ffn=7,
    temperature=0.5,
    normalisation="none",
)


def make_model(n_series=3, seed=0, **changes):
    """A small network with every parameter drawn at random, also those that start at one."""
    settings = SMALL.model_copy(update=changes)
    generator = torch.Generator().manual_seed(seed)
    model = CausalityAwareTransformer(n_series, settings, generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def make_windows(n_samples=2, n_series=3, window=5, seed=1):
    return torch.rand(n_samples, n_series, window, generator=torch.Generator().manual_seed(seed))


def make_channels(n_folds=2, n_series=3, max_lag=2, n_channels=4, seed=0):
    """A small default network with every parameter drawn at random, also those that start at 0."""
    generator = torch.Generator().manual_seed(seed)
    model = ChannelNetwork(n_folds, n_series, max_lag, n_channels, generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def make_series(n_slots=12, n_series=3, seed=1):
    return torch.randn(n_slots, n_series, generator=torch.Generator().manual_seed(seed))
