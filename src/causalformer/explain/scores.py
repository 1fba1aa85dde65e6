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

_CHUNK_VALUES = 4_000_000  # kernel relevances held at once


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
    """Average the scores of all windows; memory stays bounded however many there are."""
    if not settings.interpretation:
        return _raw_weights(model, windows)
    per_sample = model.kernel.numel()
    n_at_once = max(1, min(settings.batch_size, _CHUNK_VALUES // per_sample))
    pair = torch.zeros(model.n_series, model.n_series, dtype=torch.float64)
    tap = torch.zeros(*pair.shape, model.window, dtype=torch.float64)
    for x in windows.split(n_at_once):
        score = _modulated(model, x, settings)
        pair += score.attention.mean(1).sum(0).cpu().double()
        tap += score.kernel.mean(1).sum(0).cpu().double()
    return CausalScores((pair / len(windows)).numpy(), by_lag((tap / len(windows)).numpy()))


def _modulated(model: CausalityAwareTransformer, x: Tensor, settings: Settings) -> Attribution:
    """``(|∇f| ⊙ R)⁺`` per sample and head, or one factor alone in the ablations.

    DEVIATION: the positive part drops every cause that lowers its effect, whose relevance is
    negative where predictions are positive. With ``relevance_sign="both"`` it is ``|∇f| ⊙ |R|``.
    """
    start = torch.ones_like(x)
    if settings.explained_slots == "predicted":
        start[..., 0] = 0.0
    if not settings.relevance:
        slope = gradients(model, x, start=start)
        return Attribution(slope.attention.abs(), slope.kernel.abs())
    share = relevance(model, x, start=start, bias=settings.bias)
    if settings.gradient:
        slope = gradients(model, x, start=start)
        share = Attribution(
            slope.attention.abs() * share.attention, slope.kernel.abs() * share.kernel
        )
    if settings.relevance_sign == "both":
        return Attribution(share.attention.abs(), share.kernel.abs())
    return Attribution(share.attention.clamp(min=0), share.kernel.clamp(min=0))


@torch.no_grad()
def _raw_weights(model: CausalityAwareTransformer, windows: Tensor) -> CausalScores:
    """Read attention and kernels directly: the ablation "w/o interpretation"."""
    attention = torch.stack([model.attention(x).mean(1).sum(0) for x in windows.split(128)])
    pair = attention.sum(0).cpu().double().numpy() / len(windows)
    return CausalScores(pair, by_lag(model.kernel.abs().mean(0).cpu().double().numpy()))


def by_lag(tap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reorder taps (oldest first) to lags ``0 … T``; self terms sit one lag later.

    Examples
    --------
    >>> by_lag(np.array([[[1.0, 2.0]]]))  # one series: its taps have the lags 2 and 1
    array([[[0., 2., 1.]]])
    """
    n_series, _, window = tap.shape
    lag = np.zeros((n_series, n_series, window + 1))
    lag[..., :-1] = tap[..., ::-1]
    own = np.arange(n_series)
    lag[own, own, 1:] = lag[own, own, :-1].copy()
    lag[own, own, 0] = 0.0
    return lag
