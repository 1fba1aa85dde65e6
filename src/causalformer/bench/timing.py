"""What makes measured seconds comparable: one core, and nothing loaded while the clock runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and numpy compute on one core while it lasts.

    Jobs that run side by side do not fight for cores then, and seconds mean the same everywhere.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def warm_up() -> None:
    """Fit tiny models, once in a process: libraries load parts of themselves when first used."""
    import numpy as np

    from causalformer.baselines import VarGranger
    from causalformer.estimator import CausalFormer

    tiny = {"window": 4, "d_model": 2, "d_ffn": 2, "n_heads": 1, "max_epochs": 1}
    noise = np.random.default_rng(0).standard_normal((64, 2))
    CausalFormer("paper-fmri", settings=tiny, device="cpu").fit(noise)
    VarGranger().fit(noise)
