"""Choosing where to compute."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from causalformer.errors import SettingsError

_FEW_SERIES = 64


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


def has_float64(device: torch.device) -> bool:
    """Say whether a device computes in double precision; Apple's do not.

    Examples
    --------
    >>> has_float64(torch.device("cpu")), has_float64(torch.device("mps"))
    (True, False)
    """
    return device.type != "mps"


@contextmanager
def fast_small_steps(device: torch.device, n_series: int) -> Iterator[None]:
    """Set torch and BLAS up for many small steps on a CPU, and back again afterwards.

    Numbers below 1e-38 count as zero (they are ten times slower), and up to `_FEW_SERIES` series
    are computed by one thread: the steps are so small that a second one costs more than it gives,
    and with one thread rounding is the same wherever the work is done.
    """
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    flushed = torch.set_flush_denormal(True)
    few = device.type == "cpu" and n_series <= _FEW_SERIES
    if few:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1 if few else None, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)
        if flushed:
            torch.set_flush_denormal(False)
