r"""Relevance propagation in the default network: which past value drove which prediction.

A channel ``z = Σ w x + b`` passes ``SiLU(z) = z σ(z)`` on. Sharing that among the inputs in
proportion to ``w x`` (the paper's rule, bias in the denominator) cancels ``z``:

.. math:: R_{j,l} = x_{j,l} \Bigl( s_{j,l} + \sum_c m_c\, \sigma(z_c)\, w_{c,j,l} \Bigr)

Nothing is divided, so nothing can explode, and the shares of all past values and of the biases
add up to the prediction exactly.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from causalformer.model.channels import ChannelNetwork


@torch.no_grad()
def channel_relevance(
    model: ChannelNetwork, past: Float[Tensor, "b series lag"]
) -> tuple[Float[Tensor, "b cause lag effect"], Float[Tensor, "b effect"]]:
    """Share the mean prediction of all folds among the past values; give the biases' share too."""
    gate = torch.sigmoid(model.channels(past)) * model.mix  # b, fold, effect, channel
    weights = torch.einsum("bfec,jlfec->bjle", gate, model.kernel) + model.skip.sum(2)
    bias = (gate * model.threshold).sum((1, 3)) + model.offset.sum(0)
    inputs = model.inputs(past)
    inputs = inputs[..., None] if model.sources is None else inputs.movedim(0, -1)
    return inputs * weights / model.n_folds, bias / model.n_folds
