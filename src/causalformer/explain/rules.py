r"""Regression relevance propagation: one rule for every layer.

.. math::
    R_i^{(l)} = \sum_j x_i \, \frac{\partial f_j(x)}{\partial x_i} \, \frac{R_j^{(l+1)}}{f_j(x)}

(paper, Eq. "RRP"). The same rule serves a layer with several operands, such as a matrix product:
every operand receives its own share (paper, the pair of equations for matrix products). Rules are
pure functions of activations; nothing is stored on the model.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Layer = Callable[..., Tensor]

EPSILON = 1e-9
"""Added to every denominator, as in the published runs."""


def quotient(relevance: Tensor, f: Tensor, epsilon: float = EPSILON) -> Tensor:
    """Divide relevance by what a layer gave; where that is exactly zero, give zero.

    The published runs add `epsilon` whatever the sign of the denominator.

    Examples
    --------
    >>> quotient(torch.ones(3), torch.tensor([2.0, -2.0, 0.0]))
    tensor([ 0.5000, -0.5000,  0.0000])
    """
    return torch.where(f == 0, torch.zeros_like(f), relevance / (f + epsilon))


def redistribute(
    layer: Layer, operands: tuple[Tensor, ...], relevance: Tensor, *, epsilon: float = EPSILON
) -> tuple[Tensor, ...]:
    """Pass the relevance of a layer's output on to its operands.

    Parameters
    ----------
    layer : callable
        ``layer(*operands)``. A bias inside it stands in the denominator and takes its share of
        the relevance away; hand in the layer without bias to leave it out.
    operands : tuple of Tensor
        The activations (or weights) that shall receive relevance.
    relevance : Tensor
        Relevance of the layer's output, of its shape.
    epsilon : float
        Stabiliser of the denominator.

    Returns
    -------
    tuple of Tensor
        One relevance per operand, of the operand's shape.

    Examples
    --------
    >>> x, w = torch.tensor([1.0, 3.0]), torch.tensor([[2.0], [2.0]])
    >>> redistribute(lambda x: x @ w, (x,), torch.ones(1))
    (tensor([0.2500, 0.7500]),)
    """
    with torch.no_grad():
        output, pull_back, *_ = torch.func.vjp(layer, *operands)
        shares = pull_back(quotient(relevance, output, epsilon))
        return tuple(operand * share for operand, share in zip(operands, shares, strict=True))
