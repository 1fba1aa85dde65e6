"""Blocks of time, or whole recordings, that are held out in turn."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def blocked_folds(n_slots: int, n_folds: int) -> IntArray:
    """Give the fold of every slot: consecutive blocks of equal length.

    Examples
    --------
    >>> blocked_folds(7, 3)
    array([0, 0, 0, 1, 1, 2, 2])
    """
    return np.arange(n_slots) * n_folds // max(n_slots, 1)


def folds_of_runs(run: IntArray, n_folds: int) -> IntArray:
    """Hold out whole recordings where there are enough, else blocks of time.

    Parameters
    ----------
    run : array of int ``[sample]``
        The recording of every sample; those of one recording are together.
    n_folds : int
        How many folds; each gets recordings of about the same total length.

    Examples
    --------
    >>> folds_of_runs(np.array([0, 0, 1, 2, 2, 2, 3, 3]), 2)
    array([0, 0, 0, 1, 1, 1, 1, 1])
    >>> folds_of_runs(np.array([0, 0, 0, 0, 1, 1]), 3)
    array([0, 0, 1, 1, 2, 2])
    """
    blocks = blocked_folds(len(run), n_folds)
    _, first, length = np.unique(run, return_index=True, return_counts=True)
    by_run = np.repeat(blocks[first + length // 2], length)  # the fold of a run's middle
    return by_run if len(np.unique(by_run)) == n_folds else blocks
