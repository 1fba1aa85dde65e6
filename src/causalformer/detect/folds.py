"""Blocks of time that are held out in turn."""

import numpy as np
from numpy.typing import NDArray


def blocked_folds(n_slots: int, n_folds: int) -> NDArray[np.int64]:
    """Give the fold of every slot: consecutive blocks of equal length.

    Examples
    --------
    >>> blocked_folds(7, 3)
    array([0, 0, 0, 1, 1, 2, 2])
    """
    return np.arange(n_slots) * n_folds // max(n_slots, 1)
