"""Multi-kernel causal convolution (paper, section "Multi-kernel Causal Convolution")."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def past_of_every_slot(x: Float[Tensor, "*b cause slot"]) -> Float[Tensor, "*b cause slot tap"]:
    """View the past of every slot, zeros before the first: entry ``[..., t, k]`` is x at t-(T-1-k).

    Taps run from the oldest to the current slot, as in the paper; tap ``k`` has lag ``T-1-k``.
    The result is a view of the left-padded input, not a copy. It is symmetric in its last two
    axes (both only add up to a position in the padded series).
    """
    n_slots = x.shape[-1]
    return nn.functional.pad(x, (n_slots - 1, 0)).unfold(-1, n_slots, 1)


def observed_slots(n_slots: int, like: Tensor) -> Float[Tensor, " slot"]:
    """Give the number of real observations up to each slot, the divisor ``t`` of the paper."""
    return torch.arange(1, n_slots + 1, dtype=like.dtype, device=like.device)


def shift_right(self_term: Float[Tensor, "*b slot"]) -> Float[Tensor, "*b slot"]:
    """Move a self term one slot to the right, zero in front: no series sees its own present."""
    return nn.functional.pad(self_term, (1, 0))[..., :-1]


def convolve(
    kernel: Float[Tensor, "*b cause effect tap"], x: Float[Tensor, "*b cause slot"]
) -> Float[Tensor, "*b cause effect slot"]:
    r"""Convolve every cause with its kernel for every effect.

    .. math::
        V_{j,i}^t = \frac{1}{t} \sum_{s \le t} \mathcal{K}_{j,i,T-(t-s)} X_j^s,
        \qquad V_{i,i}^t \leftarrow V_{i,i}^{t-1},\; V_{i,i}^1 \leftarrow 0

    This is the literal form, one value per (cause, effect, slot). The model never builds it: see
    `causalformer.model.attention.attend`, which contracts heads and causes before the slots.
    """
    n_series, n_slots = x.shape[-2:]
    value = torch.einsum("...jik,...jtk->...jit", kernel, past_of_every_slot(x))
    value = value / observed_slots(n_slots, x)
    own = torch.eye(n_series, dtype=torch.bool, device=x.device)[..., None]
    return torch.where(own, shift_right(value), value)
