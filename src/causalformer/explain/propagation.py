"""From the prediction back to attention and kernels: all targets in one backward sweep.

Row *i* of the output depends on ``A[:, i]`` and ``K[:, i]`` only, the causes of effect *i*. So
relevance one at every series gives each series' causes at once, exactly what the paper's loop
over one-hot vectors gives one by one.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.explain.rules import Layer, redistribute
from causalformer.model.attention import attend
from causalformer.model.feed_forward import NEGATIVE_SLOPE, FeedForward
from causalformer.model.transformer import CausalityAwareTransformer


@dataclass(frozen=True)
class Attribution:
    """One number for every attention and kernel entry and every sample."""

    attention: Float[Tensor, "b head cause effect"]
    kernel: Float[Tensor, "b head cause effect tap"]


def relevance(
    model: CausalityAwareTransformer,
    x: Float[Tensor, "b n slot"],
    *,
    start: Float[Tensor, "b n slot"] | None = None,
    bias: bool = True,
    epsilon: float = 1e-9,
) -> Attribution:
    """Propagate relevance from the output to attention and kernels.

    Parameters
    ----------
    model : CausalityAwareTransformer
        The trained network.
    x : Tensor
        Scaled windows.
    start : Tensor, optional
        Relevance of the output; one at every series and slot unless given.
    bias : bool
        Whether biases stand in the denominators (paper) or not (its ablation "w/o bias").
    epsilon : float
        Stabiliser of the denominators.
    """
    with torch.no_grad():
        attention, kernel = model.attention(x), _kernel_per_sample(model, x)
        activation = attend(attention, kernel, model.head_weight, x)
        passed: list[tuple[Layer, Tensor]] = []
        for layer, without_bias in _layers_behind_attention(model, whole=bias):
            passed.append((layer if bias else without_bias, activation))
            activation = layer(activation)
        flowing = torch.ones_like(x) if start is None else start
        for layer, before in reversed(passed):
            (flowing,) = redistribute(layer, (before,), flowing, epsilon=epsilon)
        shares = redistribute(
            lambda a, k: attend(a, k, model.head_weight, x),
            (attention, kernel),
            flowing,
            epsilon=epsilon,
        )
    return Attribution(*shares)


def gradients(
    model: CausalityAwareTransformer,
    x: Float[Tensor, "b n slot"],
    *,
    start: Float[Tensor, "b n slot"] | None = None,
) -> Attribution:
    """Differentiate the prediction, summed over slots, by attention and kernels.

    `start` weighs the slots; every one counts the same unless given.
    """
    with torch.no_grad():
        attention, kernel = model.attention(x), _kernel_per_sample(model, x)
        _, pull_back, *_ = torch.func.vjp(
            lambda a, k: model.predict_from(attend(a, k, model.head_weight, x)), attention, kernel
        )
        return Attribution(*pull_back(torch.ones_like(x) if start is None else start))


def _kernel_per_sample(
    model: CausalityAwareTransformer, x: Tensor
) -> Float[Tensor, "b head cause effect tap"]:
    return model.kernel.detach().expand(len(x), *model.kernel.shape)


def _layers_behind_attention(
    model: CausalityAwareTransformer, *, whole: bool
) -> list[tuple[Layer, Layer]]:
    """List the layers behind the attention, each with its twin without bias.

    With biases in the denominators the relevance of the three parts of the feed forward layer
    collapses to that of the whole, ``a f'(a) / f(a)``: the hidden values cancel. `whole` uses it.
    """
    ffn = model.feed_forward
    fed = [(ffn, ffn)] if whole else _parts_of(ffn)
    return [
        _with_and_without_bias(model.attention_norm),
        *fed,
        _with_and_without_bias(model.feed_forward_norm),
        (
            lambda a: model.output(a[..., None])[..., 0],
            lambda a: nn.functional.linear(a[..., None], model.output.weight)[..., 0],
        ),
    ]


def _parts_of(ffn: FeedForward) -> list[tuple[Layer, Layer]]:
    return [
        (
            lambda a: ffn.inner(a[..., None]),
            lambda a: nn.functional.linear(a[..., None], ffn.inner.weight),
        ),
        (_leaky_relu, _leaky_relu),
        (
            lambda a: ffn.outer(a)[..., 0],
            lambda a: nn.functional.linear(a, ffn.outer.weight)[..., 0],
        ),
    ]


def _leaky_relu(a: Tensor) -> Tensor:
    return nn.functional.leaky_relu(a, NEGATIVE_SLOPE)


def _with_and_without_bias(norm: nn.Module) -> tuple[Layer, Layer]:
    if not isinstance(norm, nn.LayerNorm):
        return norm, norm
    return norm, lambda a: nn.functional.layer_norm(
        a, norm.normalized_shape, norm.weight, None, norm.eps
    )
