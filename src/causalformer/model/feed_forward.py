"""The feed forward layer, one number in and one number out per (series, slot)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

NEGATIVE_SLOPE = 0.01


class FeedForward(nn.Module):
    r"""``Linear(1 → d) → LeakyReLU → Linear(d → 1)`` for every (series, slot).

    .. math:: FFN(a) = \sum_k v_k\, \mathrm{leakyReLU}(w_k a + b_k) + c

    A sum of ``d`` bent lines is a piecewise linear function of one variable with at most ``d``
    bends. Instead of ``d`` hidden values per (series, slot), `forward` sorts the bends once per
    step and looks up slope and intercept of the piece each value falls on: the same function and
    the same gradients for ``log d`` instead of ``d`` work and memory.
    """

    def __init__(self, d_ffn: int) -> None:
        super().__init__()
        self.inner = nn.utils.skip_init(nn.Linear, 1, d_ffn)
        self.outer = nn.utils.skip_init(nn.Linear, d_ffn, 1)

    def forward(self, a: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Look up the piece every value falls on and apply its line."""
        w, b = self.inner.weight[:, 0], self.inner.bias
        v, c = self.outer.weight[0], self.outer.bias
        with torch.no_grad():
            bends = torch.where(w == 0, torch.inf, -b / w)
            order = torch.argsort(bends)
            positions = torch.searchsorted(bends[order], a.detach().contiguous())
        sign = torch.sign(w)
        # far to the left a unit is on its active side if its weight is negative
        on_left = torch.where((sign < 0) | ((sign == 0) & (b > 0)), 1.0, NEGATIVE_SLOPE)
        lines = torch.stack([v * w, v * b], dim=1)  # slope and intercept of every active unit
        steps = (1 - NEGATIVE_SLOPE) * sign[:, None] * lines
        first = (on_left[:, None] * lines).sum(0, keepdim=True)
        pieces = torch.cat([first, first + torch.cumsum(steps[order], dim=0)])
        slope, intercept = nn.functional.embedding(positions, pieces).unbind(-1)
        return slope * a + intercept + c

    def layer_by_layer(self, a: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Compute the same literally, through the hidden values."""
        hidden = nn.functional.leaky_relu(self.inner(a[..., None]), NEGATIVE_SLOPE)
        return torch.as_tensor(self.outer(hidden)[..., 0])
