"""Arrays that may be larger than memory: large ones lie in a file on disk that has no name.

The system keeps as much of such a file in memory as there is room for, and forgets it with the
array. What goes through a large array takes it in `parts`.
"""

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from causalformer.errors import OutputError

_FREE_SHARE: Final = 0.7  # of the free memory may be used, unless the user says otherwise
_LARGE: Final = 1 / 40  # of the memory that may be used; a fit holds some ten arrays of one size
_NUMBERS: Final = 2**20  # in a part

_limit: ContextVar[float | None] = ContextVar("memory limit", default=None)


@contextmanager
def memory_limited(limit: float) -> Iterator[None]:
    """Let arrays count as large if they are so for this limit, in bytes.

    Examples
    --------
    >>> with memory_limited(1000):
    ...     largest_in_memory(), type(empty((10, 1))).__name__
    (25.0, 'memmap')
    """
    before = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(before)


def limit_in_force() -> float | None:
    """Give the limit that `memory_limited` has set, if any.

    Examples
    --------
    >>> with memory_limited(1000):
    ...     limit_in_force()
    1000
    """
    return _limit.get()


def free_memory() -> float:
    """Give the bytes that may be taken if nobody says otherwise, beside those of this process."""
    import psutil

    return _FREE_SHARE * float(psutil.virtual_memory().available)


def resident_memory() -> float:
    """Give the bytes that this process has already; they are not free, and need not be."""
    import psutil

    return float(psutil.Process().memory_info().rss)


def largest_in_memory() -> float:
    """Give the bytes of the largest array that does not belong on disk."""
    limit = _limit.get()
    return _LARGE * (free_memory() if limit is None else limit)


def is_large(n_bytes: float) -> bool:
    """Say whether an array of this size belongs on disk."""
    if n_bytes < _NUMBERS and _limit.get() is None:
        return False
    return n_bytes > largest_in_memory()


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Give an array to be filled, in memory or, if it is large, on disk.

    Raises
    ------
    OutputError
        If there is no room for it in the folder for temporary files.

    Examples
    --------
    >>> empty((3, 2)).shape
    (3, 2)
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes == 0 or not is_large(n_bytes):
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:  # the mapping keeps it alive
            if hasattr(os, "posix_fallocate"):  # else a full disk would end the process later
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            return np.memmap(file, dtype, "w+", shape=shape)
    except OSError as error:
        raise OutputError(
            f"{tempfile.gettempdir()} has no room for {n_bytes / 1e9:.3g} GB that do not fit into "
            f"memory ({error.strerror}); make room, set TMPDIR to another folder, or raise "
            "max_memory"
        ) from error


def parts(n_rows: int, n_columns: int = 1) -> Iterator[slice]:
    """Cut rows into ranges that are no large array.

    Examples
    --------
    >>> list(parts(2_000_000))
    [slice(0, 1048576, None), slice(1048576, 2000000, None)]
    """
    at_once = max(1, _NUMBERS // max(1, n_columns))
    for first in range(0, n_rows, at_once):
        yield slice(first, min(first + at_once, n_rows))


def n_missing(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the missing values of every column.

    Examples
    --------
    >>> n_missing(np.array([[1.0, np.nan], [2.0, np.nan]]))
    array([0, 2])
    """
    counts = np.zeros(values.shape[1], dtype=np.int64)
    for rows in parts(*values.shape):
        counts += np.isnan(values[rows]).sum(axis=0)
    return counts
