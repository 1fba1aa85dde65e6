"""The feed forward layer, one number in and one number out per (series, slot)."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

NEGATIVE_SLOPE = 0.01


class FeedForward(nn.Module):
    r"""``Linear(1 → d) → LeakyReLU → Linear(d → 1)`` for every (series, slot).

    .. math:: FFN(a) = \sum_k v_k\, \mathrm{leakyReLU}(w_k a + b_k) + c

    A sum of ``d`` bent lines is a piecewise linear function of one variable with at most ``d``
    bends. Instead of ``d`` hidden values per (series, slot), `forward` sorts the bends once per
    step and looks up the line each value falls on: the same function and the same gradients for
    ``log d`` instead of ``d`` work and memory.
    """

    def __init__(self, d_ffn: int) -> None:
        super().__init__()
        self.inner = nn.utils.skip_init(nn.Linear, 1, d_ffn)
        self.outer = nn.utils.skip_init(nn.Linear, d_ffn, 1)

    def forward(self, a: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Look up the piece every value falls on and apply its line."""
        bends, lines = self._pieces()
        piece = torch.searchsorted(bends, a.detach().contiguous())
        on_piece: Tensor = _OnPiece.apply(a, piece, lines)  # type: ignore[no-untyped-call]
        return torch.add(on_piece, self.outer.bias)

    def _pieces(self) -> tuple[Float[Tensor, " d"], Float[Tensor, "piece 2"]]:
        """Sort the bends and give the line (slope, intercept) of every piece between them.

        Far to the left the units with a negative weight are on. From there every bend passed
        switches one unit: on if its weight is positive, else off.
        """
        w, b, v = self.inner.weight[:, 0], self.inner.bias, self.outer.weight[0]
        unit_lines = torch.stack([v * w, v * b], dim=1)  # d, (slope, intercept)
        with torch.no_grad():
            bends, order = torch.sort(torch.where(w == 0, torch.inf, -b / w))
            on_at_left = torch.where(w == 0, b > 0, w < 0).to(w.dtype)
            first_share = NEGATIVE_SLOPE + (1 - NEGATIVE_SLOPE) * on_at_left
            switch_share = ((1 - NEGATIVE_SLOPE) * torch.sign(w))[:, None]
        switches = (switch_share * unit_lines)[order].cumsum(0)
        first = (first_share @ unit_lines)[None]
        return bends, torch.cat([first, first + switches])

    def layer_by_layer(self, a: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Compute the same literally, through the hidden values."""
        hidden = nn.functional.leaky_relu(self.inner(a[..., None]), NEGATIVE_SLOPE)
        return torch.as_tensor(self.outer(hidden)[..., 0])


class _OnPiece(torch.autograd.Function):
    """``slope[piece] * a + intercept[piece]``; its backward pass counts instead of scattering."""

    @staticmethod
    def forward(
        a: Float[Tensor, "*b"], piece: Int[Tensor, "*b"], lines: Float[Tensor, "piece 2"]
    ) -> Float[Tensor, "*b"]:
        slope, intercept = lines.unbind(1)
        return torch.addcmul(intercept[piece], slope[piece], a)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        a, piece, lines = ctx.saved_tensors
        flat = piece.flatten()

        def total(values: Tensor) -> Tensor:
            return torch.bincount(flat, values.flatten(), minlength=len(lines))

        to_lines = torch.stack([total(grad * a), total(grad)], dim=1)
        return grad * lines[:, 0][piece], None, to_lines.to(lines.dtype)
