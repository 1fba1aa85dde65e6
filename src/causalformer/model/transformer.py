"""The causality-aware transformer (paper, section "Causality-aware Transformer")."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.config import Settings
from causalformer.model.attention import CausalAttention, attend
from causalformer.model.feed_forward import FeedForward


class CausalityAwareTransformer(nn.Module):
    r"""Predict every slot of every series from its causes.

    Data flow for a window ``x[batch, series, slot]``::

        x ─ embedding, norm, Q, K, mask, softmax ► attention[batch, head, cause, effect]
        x ─ kernel[head, cause, effect, tap] ─┐      │
                                              └─ attend, heads ► norm ► FFN ► norm ► output

    The three layer norms are those of the published runs; the text has none
    (``normalisation="none"``). Those over the slots of a window let later slots touch the
    prediction of earlier ones, as queries and keys of the whole window do.

    Parameters
    ----------
    n_series : int
        Number of series.
    settings : Settings
        The architecture; see `causalformer.config.Settings`.
    generator : torch.Generator, optional
        Source of the initial weights.
    """

    def __init__(
        self, n_series: int, settings: Settings, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.n_series = n_series
        self.window = settings.window
        norms = settings.normalisation == "published"
        self.attention = CausalAttention(
            n_series,
            settings.window,
            settings.n_heads,
            settings.d_model,
            settings.temperature,
            norm=norms,
        )
        pairs = (n_series, n_series) if settings.multi_kernel else (1, 1)
        self.shared_kernel = nn.Parameter(torch.ones(settings.n_heads, *pairs, settings.window))
        self.head_weight = nn.Parameter(torch.empty(settings.n_heads))
        self.attention_norm = nn.LayerNorm(settings.window) if norms else None
        self.feed_forward = FeedForward(settings.d_ffn)
        self.feed_forward_norm = nn.LayerNorm(settings.window) if norms else None
        self.output = nn.utils.skip_init(nn.Linear, 1, 1)
        self._draw_weights(settings.d_model, generator)

    @torch.no_grad()
    def _draw_weights(self, d_model: int, generator: torch.Generator | None) -> None:
        """Draw the weights as the published runs did; kernels, masks and norms start at one.

        Weights are normal with the variance ``2 / (fan_in + fan_out)``, where that of the heads
        is ``2 / (2 d)`` and that of the output layer ``2 / (d + 1)``. Biases are uniform in
        ``±1/√fan_in``, torch's rule.
        """
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                fans = d_model + 1 if layer is self.output else sum(layer.weight.shape)
                layer.weight.normal_(0.0, (2 / fans) ** 0.5, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)
        self.head_weight.normal_(0.0, d_model**-0.5, generator=generator)

    @property
    def kernel(self) -> Float[Tensor, "head cause effect tap"]:
        """The causal convolution kernels, taps from the oldest slot to the current one."""
        return self.shared_kernel.expand(-1, self.n_series, self.n_series, -1)

    def forward(self, x: Float[Tensor, "b n slot"]) -> Float[Tensor, "b n slot"]:
        """Predict every slot of every window."""
        return self.predict_from(attend(self.attention(x), self.kernel, self.head_weight, x))

    def predict_from(self, attended: Float[Tensor, "b n slot"]) -> Float[Tensor, "b n slot"]:
        """Apply the layers behind the attention: norm, feed forward, norm, output."""
        normed = self.attention_norm(attended) if self.attention_norm else attended
        fed = self.feed_forward(normed)
        fed = self.feed_forward_norm(fed) if self.feed_forward_norm else fed
        return torch.as_tensor(self.output(fed[..., None])[..., 0])
