"""Choosing where to compute."""

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten

import torch

from causalformer.errors import SettingsError

_FEW_SERIES = 64
_LONGEST_REASON = 150
_LARGEST_KEPT = 31 * 2**20  # bytes, just below what glibc raises its threshold to at most


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """Turn a device option into a device that is there.

    Raises
    ------
    SettingsError
        If there is no such device, or it cannot compute; the message names those that can.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device(_available()[0])
    others = " or ".join(repr(other) for other in ("auto", *_available()) if other != name)
    if not isinstance(name, str | torch.device):
        raise SettingsError(f"device is {name!r}; choose {others} as `device`")
    try:
        device = torch.device(name)
    except (RuntimeError, ValueError):
        raise SettingsError(f"there is no device {name!r}; choose {others} as `device`") from None
    try:
        torch.zeros(1, device=device).item()  # "meta" has no numbers to give
    except (RuntimeError, AssertionError, ImportError) as error:
        raise SettingsError(
            f"device {name!r} cannot be used here ({_first_sentence(error)}); choose {others} as "
            "`device`"
        ) from None
    return device


def _available() -> list[str]:
    """Name the kinds of devices that are there, the one to prefer first."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [*(name for name, found in there.items() if found), "cpu"]


def _first_sentence(error: Exception) -> str:
    """Give the reason without the tables and advice that torch may add."""
    return shorten(str(error).partition(". ")[0].rstrip("."), _LONGEST_REASON, placeholder=" …")


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
    """Set torch and BLAS up for many small steps on a CPU, and both back again afterwards.

    Numbers below 1e-38 count as zero (they are ten times slower), and up to `_FEW_SERIES` series
    are computed by one thread: the steps are so small that a second one costs more than it gives,
    and with one thread rounding is the same wherever the work is done. Only that freed memory stays
    with the process is for good.
    """
    from threadpoolctl import threadpool_limits

    _keep_freed_memory()
    threads, flushed = torch.get_num_threads(), _flushes()
    torch.set_flush_denormal(True)
    few = device.type == "cpu" and n_series <= _FEW_SERIES
    if few:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1 if few else None, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Say whether numbers below 1e-38 count as zero now."""
    return not (torch.full((1,), 1e-38) * 0.1).any()


def _keep_freed_memory() -> None:
    """Let the C library keep what every step takes and frees, in place of asking for it anew.

    To get new pages from the system took up to a third of a training. Once a block of this size was
    freed, glibc keeps blocks up to it, for all that this process does from then on; other C
    libraries take no notice.
    """
    torch.empty(_LARGEST_KEPT, dtype=torch.uint8, device="cpu")
