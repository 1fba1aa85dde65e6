"""Missing values: what goes into the past instead of them.

A value that is missing is never learned from and never judged by. Only where it stands in the past
of other slots do a network and a regression need a number there.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.data.windows import lagged_samples, slots_with_past

FloatArray = NDArray[np.float64]

_STEPS = 30  # of conjugate gradients
_TINY = 1e-30
_SWEEPS = 4  # a prediction may rest on a prediction, up to this depth
_FARTHEST = 3.5  # no prediction is farther out, in standard deviations


def expected_past(
    past: Float[Tensor, "sample value"],
    hidden: Bool[Tensor, "sample value"],
    covariance: Float[Tensor, "value value"],
) -> Float[Tensor, "sample value"]:
    """Fill gaps in the past of samples with what a normal law expects, given their other values.

    Every sample is filled from its own past alone, never from the slot that it shall predict: a
    value drawn towards that slot would foretell it. And it is filled from all series: if B drives C
    and B is missing, then what drives B foretells C and would look like a cause of C, were it not
    already in the place of B.

    Conjugate gradients solve the equations of all samples, each with gaps of its own, at once.

    Examples
    --------
    >>> covariance = torch.tensor([[1.0, 0.8], [0.8, 1.0]])
    >>> expected_past(torch.tensor([[2.0, 0.0]]), torch.tensor([[False, True]]), covariance)
    tensor([[2.0000, 1.6000]])
    """
    weights = torch.zeros_like(past)
    rest = direction = past.masked_fill(hidden, 0.0)
    square = rest.square().sum(1, keepdim=True)
    for _ in range(_STEPS):
        image = (direction @ covariance).masked_fill(hidden, 0.0)
        curvature = (direction * image).sum(1, keepdim=True)
        step = square / curvature.clamp(min=_TINY)
        weights = weights + step * direction
        rest = rest - step * image
        before, square = square, rest.square().sum(1, keepdim=True)
        direction = rest + square / before.clamp(min=_TINY) * direction
    return torch.where(hidden, weights @ covariance, past)


def past_covariance(scores: FloatArray, segments: Sequence[slice], max_lag: int) -> FloatArray:
    """Estimate the covariance of all past values, ``[(cause, lag), (cause, lag)]``, despite gaps.

    Every pair of values rests on the slots where both were observed. The fewer those are, the more
    the matrix shrinks towards that of independent values.
    """
    n_series = scores.shape[1]
    observed, values = ~np.isnan(scores) * 1.0, np.nan_to_num(scores)
    blocks = np.empty((n_series, max_lag, n_series, max_lag))
    n_together = 0.0
    for distance in range(max_lag):
        slot = slots_with_past(segments, distance)
        together = observed[slot].T @ observed[slot - distance]
        product = values[slot].T @ values[slot - distance] / np.maximum(together, 1.0)
        n_together += together.mean() / max_lag
        for lag in range(max_lag - distance):  # slot - lag - distance is as far behind slot - lag
            blocks[:, lag, :, lag + distance] = product
            blocks[:, lag + distance, :, lag] = product.T
    n_values = n_series * max_lag
    size, axes = np.linalg.eigh(blocks.reshape(n_values, n_values))
    covariance = axes * np.maximum(size, 0.0) @ axes.T  # gaps may have made it impossible
    shrink = n_values / (n_values + n_together)
    return np.asarray((1 - shrink) * covariance + shrink * np.eye(n_values))


def fill_from_past(
    scores: FloatArray,
    segments: Sequence[slice],
    max_lag: int,
    predict: Callable[[Float[Tensor, "sample cause lag"]], FloatArray],
) -> FloatArray:
    """Fill gaps with predictions from the past, for who may not look ahead; else with the mean."""
    slot = slots_with_past(segments, max_lag)
    gaps = np.isnan(scores[slot])
    filled = np.nan_to_num(scores)
    for _ in range(_SWEEPS):
        past, _ = lagged_samples(torch.from_numpy(filled), max_lag)
        guess = predict(past[slot - max_lag])
        filled[slot] = np.where(gaps, guess.clip(-_FARTHEST, _FARTHEST), filled[slot])
    return filled
