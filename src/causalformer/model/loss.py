"""The paper's loss: prediction error plus L1 penalties on kernels and mask."""

from jaxtyping import Float
from torch import Tensor

from causalformer.model.transformer import CausalityAwareTransformer


def prediction_error(
    model: CausalityAwareTransformer, x: Float[Tensor, "b n slot"]
) -> Float[Tensor, ""]:
    """Mean squared error over all slots but the first.

    The first slot is left out because no series can contribute to its own prediction there.
    """
    error: Tensor = model(x)[..., 1:] - x[..., 1:]
    return error.square().mean()


def penalised_loss(
    model: CausalityAwareTransformer,
    x: Float[Tensor, "b n slot"],
    l1_kernel: float,
    l1_mask: float,
) -> Float[Tensor, ""]:
    r"""``prediction error + λ_K ‖K‖₁ + λ_M ‖M‖₁``.

    As in the published runs the norms are means: that of the kernels over (head, cause, effect) of
    the norm over taps, that of the mask over (head, effect) of the norm over causes.
    """
    loss = prediction_error(model, x)
    if l1_kernel:
        loss = loss + l1_kernel * model.shared_kernel.abs().sum(-1).mean()
    if l1_mask:
        loss = loss + l1_mask * model.attention.mask.abs().sum(-2).mean()
    return loss
