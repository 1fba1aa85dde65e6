"""Overlapping windows as views, the past of every slot, and which windows validate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor


def sliding_windows(x: Float[Tensor, "slot n"], window: int) -> Float[Tensor, "sample n window"]:
    """View every window of consecutive slots; no value is copied.

    Examples
    --------
    >>> import torch
    >>> sliding_windows(torch.arange(8.0).reshape(4, 2), 3).shape
    torch.Size([2, 2, 3])
    """
    return x.unfold(0, window, 1)


def lagged_samples(
    x: Float[Tensor, "slot n"], max_lag: int
) -> tuple[Float[Tensor, "sample cause lag"], Float[Tensor, "sample effect"]]:
    """Give the past of every slot, lag 1 first, and the slot itself.

    Examples
    --------
    >>> import torch
    >>> past, now = lagged_samples(torch.arange(4.0)[:, None], 2)
    >>> past[:, 0].tolist(), now[:, 0].tolist()
    ([[1.0, 0.0], [2.0, 1.0]], [2.0, 3.0])
    """
    windows = sliding_windows(x, max_lag + 1)
    return windows[..., :-1].flip(-1), windows[..., -1]


def slots_with_past(segments: Sequence[slice], n_past: int) -> NDArray[np.int64]:
    """List the slots that have so many slots before them in their own segment.

    Examples
    --------
    >>> slots_with_past([slice(0, 4), slice(4, 9)], 2)
    array([2, 3, 6, 7, 8])
    """
    parts = [np.arange(segment.start + n_past, segment.stop) for segment in segments]
    return np.concatenate([part for part in parts if len(part)] or [np.arange(0)])


@dataclass(frozen=True, eq=False)
class Split:
    """Which samples train and which validate."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]


def all_to_train(n_samples: int) -> Split:
    """Keep no sample for validation."""
    return Split(np.arange(n_samples), np.arange(0))


def split_at_random(n_windows: int, validation_share: float) -> Split:
    """Keep a random share of the windows for validation, as the published runs did.

    Neighbouring windows overlap, so nearly every slot of a validation window has been trained on:
    the validation loss is not one of unseen data. The permutation is fixed, whatever the seed of
    the training. If the share is less than one window there is no validation.

    Examples
    --------
    >>> split = split_at_random(1000, 0.01)
    >>> len(split.train), len(split.validation)
    (990, 10)
    >>> len(split_at_random(99, 0.01).validation)
    0
    """
    order = np.random.default_rng(0).permutation(n_windows)
    n_validation = int(n_windows * validation_share)
    return Split(np.sort(order[n_validation:]), np.sort(order[:n_validation]))


def split_by_time(n_windows: int, window: int, validation_share: float) -> Split:
    """Keep the last windows for validation.

    Training windows that share slots with the validation block are left out when at least half
    of the windows remain for training; in shorter series the two blocks only do not overlap as
    windows.

    Examples
    --------
    >>> split = split_by_time(1000, 16, 0.1)
    >>> split.train[[0, -1]], split.validation[[0, -1]]
    (array([  0, 884]), array([900, 999]))
    """
    n_validation = max(1, round(n_windows * validation_share))
    start = n_windows - n_validation
    without_overlap = start - (window - 1)
    train_stop = without_overlap if without_overlap >= n_windows // 2 else start
    return Split(np.arange(train_stop), np.arange(start, n_windows))
