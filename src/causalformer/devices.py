"""Choosing where to compute."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from causalformer.errors import SettingsError


def choose_device(name: str = "auto") -> torch.device:
    """Turn a device option into a device that is there.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(
            f"device {name!r} cannot be used here ({reason}); use 'auto', 'cpu', 'cuda' or 'mps'"
        ) from None
    return device


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Treat numbers below 1e-38 as zero while it lasts: on a CPU they are ten times slower."""
    changed = torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if changed:
            torch.set_flush_denormal(False)
