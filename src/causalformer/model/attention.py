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
        X_{emb} = \mathrm{norm}(X W_{emb} + b_{emb}),\quad
        Q = X_{emb} W_Q + b_Q,\quad K = X_{emb} W_K + b_K,\quad
        \mathcal{A} = \mathrm{softmax}\left(
            \frac{Q K^T}{\tau \sqrt{T \, d / h}} \odot M \right)

    with :math:`Q` and :math:`K` cut into ``h`` heads of ``d / h`` features. The norm over the
    ``d`` features, the width ``d / h`` and the ``T`` under the root are those of the published
    runs; the text has no norm (``norm=False``) and calls the width ``d_QK``.

    The norm divides the embedding of a window by one number, its spread ``σ(x)``, and all else
    between the window and the logits is linear. With ``u = [x/σ, 1/σ, 1]`` (without norm:
    ``[x, 1]``) a logit is the bilinear form ``u_effect F u_cause``. `form` multiplies ``F`` out
    once per step: the same function and the same gradients of the same weights for
    ``T d²`` instead of ``b N d²`` multiplications.
    """

    def __init__(
        self,
        n_series: int,
        window: int,
        n_heads: int,
        d_model: int,
        temperature: float,
        *,
        norm: bool,
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.scale = 1.0 / (temperature * math.sqrt(window * d_model / n_heads))
        self.embedding = nn.utils.skip_init(nn.Linear, window, d_model)
        self.embedding_norm = nn.LayerNorm(d_model) if norm else None
        self.query = nn.utils.skip_init(nn.Linear, d_model, d_model)
        self.key = nn.utils.skip_init(nn.Linear, d_model, d_model)
        self.mask = nn.Parameter(torch.ones(n_heads, n_series, n_series))

    def forward(self, x: Float[Tensor, "b n slot"]) -> Float[Tensor, "b head cause effect"]:
        """Give the attention of every effect (last axis) over its causes."""
        u, form = self._coordinates_and_form(x)
        n_samples, n_series, width = u.shape
        # from the effect's side: batch, effect, head × coordinate; then meet the cause's side
        effect_side = (u.flatten(0, 1) @ form).view(n_samples, -1, width)
        logits = torch.bmm(effect_side, u.transpose(1, 2))
        logits = logits.view(n_samples, n_series, self.n_heads, n_series)
        mask = (self.scale * self.mask).permute(2, 0, 1)  # effect, head, cause
        return torch.softmax(logits * mask, dim=-1).permute(0, 2, 3, 1)

    def _coordinates_and_form(
        self, x: Float[Tensor, "b n slot"]
    ) -> tuple[Float[Tensor, "b n width"], Float[Tensor, "width head_width"]]:
        """Give ``u`` of every window, and ``F`` of every head."""
        with_one = nn.functional.pad(x, (0, 1), value=1.0)
        embedding = torch.cat([self.embedding.weight.T, self.embedding.bias[None]])  # T + 1, d
        norm = self.embedding_norm
        if norm is None:
            return with_one, self._form(embedding)
        centred = embedding - embedding.mean(1, keepdim=True)
        covariance = centred @ centred.T / centred.shape[1]
        variance = ((with_one @ covariance) * with_one).sum(-1, keepdim=True).clamp(min=0)
        u = nn.functional.pad(with_one * torch.rsqrt(variance + norm.eps), (0, 1), value=1.0)
        return u, self._form(torch.cat([centred * norm.weight, norm.bias[None]]))

    def _form(self, embedding: Float[Tensor, "width d"]) -> Float[Tensor, "width head_width"]:
        query, key = (self._projected(embedding, layer) for layer in (self.query, self.key))
        return torch.bmm(query, key.transpose(1, 2)).transpose(0, 1).flatten(1)

    def _projected(
        self, embedding: Float[Tensor, "width d"], projection: nn.Linear
    ) -> Float[Tensor, "head width d_head"]:
        """Project every coordinate; the bias belongs to the last one, which is always one."""
        projected = embedding @ projection.weight.T
        projected = torch.cat([projected[:-1], projected[-1:] + projection.bias])
        return projected.view(len(projected), self.n_heads, -1).transpose(0, 1)


def attend(
    attention: Float[Tensor, "b head cause effect"],
    kernel: Float[Tensor, "head cause effect tap"],
    head_weight: Float[Tensor, " head"],
    x: Float[Tensor, "b cause slot"],
) -> Float[Tensor, "b effect slot"]:
    r"""Aggregate the convolved causes by attention and mix the heads.

    .. math::
        \mathrm{Att}_i^t = \sum_h W_O^h \sum_j \mathcal{A}^h_{i,j} V^h_{j,i,t}

    Everything is linear in the kernels, so the heads are contracted first into one effective
    kernel per (cause, effect), which is then applied to the lags: ``n_heads`` times less work
    than convolving per head, and the ``[head, cause, effect, slot]`` values are never built.
    """
    weighted = attention * head_weight[:, None, None]
    between, own = _apart(kernel)
    return _applied(
        torch.einsum("bhji,hjik->bijk", weighted, between),
        torch.einsum("bhi,hki->bik", weighted.diagonal(dim1=2, dim2=3), own),
        x,
    )


def attend_per_head(
    attention: Float[Tensor, "b head cause effect"],
    kernel: Float[Tensor, "head cause effect tap"],
    x: Float[Tensor, "b cause slot"],
) -> Float[Tensor, "b head effect slot"]:
    """Aggregate the convolved causes of every head; relevance needs the heads apart."""
    between, own = _apart(kernel)
    return _applied(
        torch.einsum("bhji,hjik->bhijk", attention, between),
        torch.einsum("bhi,hki->bhik", attention.diagonal(dim1=2, dim2=3), own),
        x[:, None],
    )


def _apart(
    kernel: Float[Tensor, "head cause effect tap"],
) -> tuple[Float[Tensor, "head cause effect tap"], Float[Tensor, "head tap effect"]]:
    """Give the kernels between series, zero for self terms, and those of self terms."""
    others = 1 - torch.eye(kernel.shape[1], dtype=kernel.dtype, device=kernel.device)
    return kernel * others[..., None], kernel.diagonal(dim1=1, dim2=2)


def _applied(
    between: Float[Tensor, "*b effect cause tap"],
    own: Float[Tensor, "*b effect tap"],
    x: Float[Tensor, "*#b cause slot"],
) -> Float[Tensor, "*b effect slot"]:
    """Convolve all causes of an effect with their kernels and add them up."""
    # symmetric before the division, so the last axis may be the slot: batch, cause, tap, slot
    past = past_of_every_slot(x) / observed_slots(x.shape[-1], x)
    from_others = torch.matmul(between.flatten(-2), past.flatten(-3, -2))
    from_own = torch.matmul(own[..., None, :], past)[..., 0, :]
    return from_others + shift_right(from_own)
