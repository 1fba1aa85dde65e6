"""Multi-variate causal attention (paper, section "Multi-variate Causal Attention").

Attention is indexed ``[cause, effect]`` as everywhere in this package; the paper writes the
transpose, ``A[effect, cause]``. The softmax runs over the causes of one effect in both.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.model.convolution import observed_slots, past_of_every_slot, shift_right


class CausalAttention(nn.Module):
    r"""Attention of every effect over its causes.

    .. math::
        X_{emb} = X W_{emb} + b_{emb},\quad
        Q = X_{emb} W_Q + b_Q,\quad K = X_{emb} W_K + b_K,\quad
        \mathcal{A} = \mathrm{softmax}\left(\frac{Q K^T}{\tau \sqrt{d_{QK}}} \odot M\right)

    Embedding and projections have no nonlinearity between them, so a logit is a bilinear form of
    two windows: with a one appended to every series, ``Q K^T = [X, 1] F [X, 1]^T``. `form` gives
    ``F`` of every head, from the paper's weights or, after `fold`, as the weights themselves.
    """

    def __init__(
        self,
        n_series: int,
        window: int,
        n_heads: int,
        d_model: int,
        d_qk: int,
        temperature: float,
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.scale = 1.0 / (temperature * math.sqrt(d_qk))
        self.form: SeparateProjections | FoldedProjections = SeparateProjections(
            window, n_heads, d_model, d_qk
        )
        self.mask = nn.Parameter(torch.ones(n_heads, n_series, n_series))

    def fold(self) -> None:
        """Train the bilinear form itself from now on; the attention stays what it is."""
        self.form = FoldedProjections(self.form().detach())

    def forward(self, x: Float[Tensor, "b n slot"]) -> Float[Tensor, "b head cause effect"]:
        """Give the attention of every effect (last axis) over its causes."""
        with_one = nn.functional.pad(x, (0, 1), value=1.0)
        n_samples, n_series, width = with_one.shape
        # from the cause's side: batch, cause, head × (slot and one); then meet the effect's side
        cause_side = (with_one.flatten(0, 1) @ self.form()).view(n_samples, -1, width)
        logits = torch.bmm(cause_side, with_one.transpose(1, 2))
        logits = logits.view(n_samples, n_series, self.n_heads, n_series).transpose(1, 2)
        return torch.softmax(logits * (self.scale * self.mask), dim=-2)


class SeparateProjections(nn.Module):
    """The paper's weights: embedding, queries and keys, multiplied once per step."""

    def __init__(self, window: int, n_heads: int, d_model: int, d_qk: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.embedding = nn.utils.skip_init(nn.Linear, window, d_model)
        self.query = nn.utils.skip_init(nn.Linear, d_model, n_heads * d_qk)
        self.key = nn.utils.skip_init(nn.Linear, d_model, n_heads * d_qk)

    def forward(self) -> Float[Tensor, "cause_slot head_effect_slot"]:
        """Form the whole path from two windows to one logit, for every head."""
        key, query = self._embedded(self.key), self._embedded(self.query)
        return torch.bmm(key, query.transpose(1, 2)).transpose(0, 1).flatten(1)

    def _embedded(self, projection: nn.Linear) -> Float[Tensor, "head slot_and_one d_qk"]:
        embedding = torch.cat([self.embedding.weight.T, self.embedding.bias[None]])  # T + 1, d
        folded = embedding @ projection.weight.T
        folded = torch.cat([folded[:-1], folded[-1:] + projection.bias])
        return folded.view(len(folded), self.n_heads, -1).transpose(0, 1)


class FoldedProjections(nn.Module):
    """The product of the paper's weights, trained as one matrix per head.

    DEVIATION: the same functions of the data with ``h (T+1)^2`` weights instead of
    ``d T + 2 h d d_QK``, but Adam moves them otherwise: a step through three factors moves their
    product by orders of magnitude more, and attention saturates before the kernels have learned.
    """

    def __init__(self, form: Float[Tensor, "cause_slot head_effect_slot"]) -> None:
        super().__init__()
        self.weight = nn.Parameter(form.clone())

    def forward(self) -> Float[Tensor, "cause_slot head_effect_slot"]:
        """Give the weights."""
        return self.weight


def attend(
    attention: Float[Tensor, "b head cause effect"],
    kernel: Float[Tensor, "*b head cause effect tap"],
    head_weight: Float[Tensor, " head"],
    x: Float[Tensor, "b cause slot"],
) -> Float[Tensor, "b effect slot"]:
    r"""Aggregate the convolved causes by attention and mix the heads.

    .. math::
        \mathrm{Att}_i^t = \sum_h W_O^h \sum_j \mathcal{A}^h_{i,j} V^h_{j,i,t}

    Everything is linear in the kernels, so the heads are contracted first into one effective
    kernel per (cause, effect), which is then applied to the lags: ``n_heads`` times less work
    than convolving per head, and the ``[head, cause, effect, slot]`` values are never built.
    `kernel` may carry a batch axis (relevance asks for one kernel per sample).
    """
    n_series, n_slots = x.shape[-2:]
    weighted = attention * head_weight[:, None, None]
    batch = "b" if kernel.dim() > attention.dim() else ""
    effective = torch.einsum(f"bhji,{batch}hjik->bijk", weighted, kernel)
    # symmetric before the division, so the last axis may be the slot: batch, cause, tap, slot
    past = past_of_every_slot(x) / observed_slots(n_slots, x)
    own = torch.diagonal(effective, dim1=1, dim2=2).transpose(1, 2)  # batch, series, tap
    from_own = torch.matmul(own[..., None, :], past)[..., 0, :]
    others = effective * (1 - torch.eye(n_series, dtype=x.dtype, device=x.device))[..., None]
    from_others = torch.bmm(others.flatten(2), past.flatten(1, 2))
    return from_others + shift_right(from_own)
