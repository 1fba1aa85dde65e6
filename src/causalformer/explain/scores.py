"""Causal scores: relevance modulated by gradients, averaged over heads and samples."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import Settings
from causalformer.explain.propagation import Attribution, gradients, relevance
from causalformer.model.transformer import CausalityAwareTransformer

_CHUNK_VALUES = 4_000_000  # values of one layer held at once


@dataclass(frozen=True, eq=False)
class CausalScores:
    """How strongly each cause, and each lag of it, drives each effect.

    Attributes
    ----------
    pair : array ``[cause, effect]``
        Score of the attention entry, the paper's ``S(A)``.
    lag : array ``[cause, effect, lag]``
        Score of the kernel taps by lag, the paper's ``S(K)``; lag 0 is the current slot. The
        self term is shifted by one slot, so its lags start at one.
    """

    pair: NDArray[np.float64]
    lag: NDArray[np.float64]


def causal_scores(
    model: CausalityAwareTransformer, windows: Float[Tensor, "b n slot"], settings: Settings
) -> CausalScores:
    """Score all windows, in batches as in training; memory stays bounded however many there are.

    As in the published runs, the score of the attention is that of single samples, averaged; that
    of the kernels multiplies sums over a batch, and is averaged over batches. Here batches are in
    the order of time.
    """
    if not settings.interpretation:
        return _raw_weights(model, windows)
    pair = torch.zeros(model.n_series, model.n_series, dtype=torch.float64)
    tap = torch.zeros(*pair.shape, model.window, dtype=torch.float64)
    batches = windows.split(settings.batch_size)
    for batch in batches:
        of_attention, of_kernel = _batch_scores(model, batch, settings)
        pair += of_attention.cpu().double()
        tap += of_kernel.cpu().double()
    return CausalScores((pair / len(windows)).numpy(), by_lag((tap / len(batches)).numpy()))


def _batch_scores(
    model: CausalityAwareTransformer, batch: Float[Tensor, "b n slot"], settings: Settings
) -> tuple[Float[Tensor, "cause effect"], Float[Tensor, "cause effect tap"]]:
    """Give the sum over samples of the attention's scores, and the kernels' score."""
    kernel = model.kernel.detach()
    per_sample = max(kernel.numel(), batch[0].numel() * settings.d_ffn)
    shares, slopes = kernel.new_zeros(kernel.shape), kernel.new_zeros(kernel.shape)
    pair = torch.zeros_like(kernel[0, ..., 0])
    for x in batch.split(max(1, _CHUNK_VALUES // per_sample)):
        share, slope = _attributions(model, x, settings)
        pair += _modulated(share.attention, slope.attention, settings).mean(1).sum(0)
        shares += share.kernel
        slopes += slope.kernel
    return pair, _modulated(shares, slopes, settings).mean(0)


def _attributions(
    model: CausalityAwareTransformer, x: Tensor, settings: Settings
) -> tuple[Attribution, Attribution]:
    slope = gradients(model, x)
    if not settings.relevance:
        return slope, slope
    every_layer = settings.relevance_layers == "all"
    share = relevance(model, x, bias=settings.relevance_bias, every_layer=every_layer)
    return share, slope


def _modulated(share: Tensor, slope: Tensor, settings: Settings) -> Tensor:
    """``(|∇f| ⊙ R)⁺``, or one factor alone in the ablations."""
    if not settings.relevance:
        return slope.abs()
    return (slope.abs() * share if settings.gradient else share).clamp(min=0)


@torch.no_grad()
def _raw_weights(model: CausalityAwareTransformer, windows: Tensor) -> CausalScores:
    """Read attention and kernels directly: the ablation "w/o interpretation"."""
    attention = torch.stack([model.attention(x).mean(1).sum(0) for x in windows.split(128)])
    pair = attention.sum(0).cpu().double().numpy() / len(windows)
    return CausalScores(pair, by_lag(model.kernel.abs().mean(0).cpu().double().numpy()))


def by_lag(tap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reorder taps (oldest first) to lags ``0 … T-1``; self terms sit one lag later.

    The oldest tap of a self term sees nothing within a window and has no lag.

    Examples
    --------
    >>> by_lag(np.array([[[1.0, 2.0]]]))  # one series: its taps have the lags 2 and 1
    array([[[0., 2.]]])
    """
    lag = tap[..., ::-1].copy()
    own = np.arange(len(lag))
    lag[own, own, 1:] = lag[own, own, :-1].copy()
    lag[own, own, 0] = 0.0
    return lag


def main_lag(lag_scores: NDArray[np.float64], usable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Read the lag of every pair: that of the highest score; of equal ones the longest.

    The published runs take the first maximum over the slots, oldest first.

    Examples
    --------
    >>> main_lag(np.array([[[0.0, 3.0, 3.0]]]), np.ones((1, 1, 3), dtype=bool))
    array([[2]])
    """
    longest_first = np.where(usable, lag_scores, -np.inf)[..., ::-1]
    return np.asarray(lag_scores.shape[-1] - 1 - longest_first.argmax(axis=-1))
