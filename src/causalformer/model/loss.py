"""The paper's loss: prediction error plus L1 penalties on kernels and mask."""

from jaxtyping import Float
from torch import Tensor

from causalformer.model.transformer import CausalityAwareTransformer


def prediction_error(
    predicted: Float[Tensor, "b n slot"], observed: Float[Tensor, "b n slot"]
) -> Float[Tensor, ""]:
    """Mean squared error over all slots but the first, divided by ``N T`` as the paper writes it.

    The first slot is left out because no series can contribute to its own prediction there.
    """
    n_samples, n_series, n_slots = observed.shape
    squared = (predicted[..., 1:] - observed[..., 1:]).square().sum()
    return squared / (n_samples * n_series * n_slots)


def penalised_loss(
    model: CausalityAwareTransformer,
    x: Float[Tensor, "b n slot"],
    l1_kernel: float,
    l1_mask: float,
) -> Float[Tensor, ""]:
    r"""``prediction error + λ_K ‖K‖₁ + λ_M ‖M‖₁``.

    DEVIATION: the norms are means over (head, cause, effect) of the L1 norm over taps, as in the
    published runs, so that λ does not depend on the number of series.
    """
    loss = prediction_error(model(x), x)
    if l1_kernel:
        loss = loss + l1_kernel * model.shared_kernel.abs().sum(-1).mean()
    if l1_mask:
        loss = loss + l1_mask * model.attention.mask.abs().mean()
    return loss
