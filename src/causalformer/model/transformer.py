"""The causality-aware transformer (paper, section "Causality-aware Transformer")."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.config import Settings
from causalformer.model.attention import CausalAttention, attend
from causalformer.model.feed_forward import FeedForward

_FIRST_OUTPUT = 0.1  # the first predictions vary by a tenth of what He's rule gives


class CausalityAwareTransformer(nn.Module):
    r"""Predict every slot of every series from its causes.

    Data flow for a window ``x[batch, series, slot]``::

        x ── embedding, Q, K, mask, softmax ──► attention[batch, head, cause, effect]
        x ── kernel[head, cause, effect, tap] ─┐        │
                                               └─ attend, heads ──► norm ► FFN ► norm ► output

    Parameters
    ----------
    n_series : int
        Number of series.
    settings : Settings
        The architecture; see `causalformer.config.Settings`.
    generator : torch.Generator, optional
        Source of the initial weights.
    level : float
        Mean of the data: what the untrained network predicts for a flat window of that level.
    """

    def __init__(
        self,
        n_series: int,
        settings: Settings,
        generator: torch.Generator | None = None,
        level: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_series = n_series
        self.window = settings.window
        self.attention = CausalAttention(
            n_series,
            settings.window,
            settings.n_heads,
            settings.d_model,
            settings.d_qk,
            settings.temperature,
        )
        pairs = (n_series, n_series) if settings.multi_kernel else (1, 1)
        self.shared_kernel = nn.Parameter(torch.ones(settings.n_heads, *pairs, settings.window))
        self.head_weight = nn.Parameter(torch.ones(settings.n_heads))
        self.feed_forward = FeedForward(settings.d_ffn)
        self.output = nn.utils.skip_init(nn.Linear, 1, 1)
        # DEVIATION: the text has no normalisation; the published figures used a layer norm over
        # the time axis, which lets later slots of a window touch the prediction of earlier ones.
        self.attention_norm, self.feed_forward_norm = (
            nn.LayerNorm(settings.window) if settings.normalisation == "time" else nn.Identity()
            for _ in range(2)
        )
        self._draw_weights(generator)
        if settings.projections == "folded":
            self.attention.fold()
        self._start_at(level)

    @torch.no_grad()
    def _draw_weights(self, generator: torch.Generator | None) -> None:
        """Draw weights by He's uniform rule as torch does; kernels, masks and norms are one.

        A linear layer of fan-in ``n`` draws weights and biases from ``±1/√n`` (He's rule for a
        leaky slope of √5). The biases matter: they spread the bends of the feed forward layer,
        which would all lie at zero without them.
        """
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)
        nn.init.kaiming_uniform_(self.head_weight[None], nonlinearity="linear", generator=generator)

    @torch.no_grad()
    def _start_at(self, level: float) -> None:
        """Let the untrained network predict the mean of the data.

        DEVIATION: the paper does not say where the output starts. From a random start the first
        steps only move the output to the data's level, through every weight at once; attention
        saturates on the way and little is learned afterwards.
        """
        self.output.weight.mul_(_FIRST_OUTPUT)
        flat = self.attention_norm(torch.full((self.window,), level) * self.head_weight.sum())
        fed = self.feed_forward_norm(self.feed_forward(flat)).mean()
        self.output.bias.copy_(level - self.output.weight[0] * fed)

    @property
    def kernel(self) -> Float[Tensor, "head cause effect tap"]:
        """The causal convolution kernels, taps from the oldest slot to the current one."""
        return self.shared_kernel.expand(-1, self.n_series, self.n_series, -1)

    def forward(self, x: Float[Tensor, "b n slot"]) -> Float[Tensor, "b n slot"]:
        """Predict every slot of every window."""
        return self.predict_from(attend(self.attention(x), self.kernel, self.head_weight, x))

    def predict_from(self, attended: Float[Tensor, "b n slot"]) -> Float[Tensor, "b n slot"]:
        """Apply the layers behind the attention: norm, feed forward, norm, output."""
        normed = self.attention_norm(attended)
        fed = self.feed_forward_norm(self.feed_forward(normed))
        return torch.as_tensor(self.output(fed[..., None])[..., 0])
