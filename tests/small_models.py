"""Small random networks and windows, shared by the tests of model and explanation."""

import torch

from causalformer.config import Settings
from causalformer.model import CausalityAwareTransformer

SMALL = Settings(
    window=5,
    d_model=6,
    d_qk=4,
    n_heads=2,
    d_ffn=7,
    temperature=0.5,
    normalisation="none",
    projections="separate",
    explained_slots="all",
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
