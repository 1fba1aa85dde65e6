"""From the prediction back to attention and kernels: all targets in one backward sweep.

Row *i* of the output depends on ``A[:, i]`` and ``K[:, i]`` only, the causes of effect *i*. So
relevance one at every series gives each series' causes at once, exactly what the paper's loop
over one-hot vectors gives one by one.

The published runs leave biases out of the denominators and pass relevance through layer norms and
activations unchanged. The text has biases in the denominators (``bias=True``) and applies its rule
to every layer (``every_layer=True``).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.explain.rules import EPSILON, Layer, quotient, redistribute
from causalformer.model.attention import attend, attend_per_head
from causalformer.model.convolution import shift_right
from causalformer.model.feed_forward import NEGATIVE_SLOPE
from causalformer.model.transformer import CausalityAwareTransformer


@dataclass(frozen=True)
class Attribution:
    """One number for every entry of attention and kernels.

    Attributes
    ----------
    attention : Tensor
        For every sample.
    kernel : Tensor
        Of the kernels as they are applied at the last slot (a self term, which is shifted right,
        at the last but one), summed over the samples, as the published runs read them.
    """

    attention: Float[Tensor, "b head cause effect"]
    kernel: Float[Tensor, "head cause effect tap"]


def relevance(
    model: CausalityAwareTransformer,
    x: Float[Tensor, "b n slot"],
    *,
    start: Float[Tensor, "b n slot"] | None = None,
    bias: bool = False,
    every_layer: bool = False,
    epsilon: float = EPSILON,
) -> Attribution:
    """Propagate relevance from the output to attention and kernels.

    Parameters
    ----------
    model : CausalityAwareTransformer
        The trained network.
    x : Tensor
        Scaled windows.
    start : Tensor, optional
        Relevance of the output; one at every series and predicted slot unless given.
    bias : bool
        Whether biases stand in the denominators (the text) or not (the published runs).
    every_layer : bool
        Whether layer norms and the division by ``t`` follow the rule too (the text); the
        published runs pass relevance through norms unchanged and multiply it by ``t``.
    epsilon : float
        Stabiliser of the denominators.
    """
    with torch.no_grad():
        attention, kernel = model.attention(x), model.kernel
        activation = per_head = attend_per_head(attention, kernel, x)
        passed: list[tuple[Layer, Tensor]] = []
        for layer, rule in _layers_behind_attention(model, bias=bias, every_layer=every_layer):
            if rule is not None:
                passed.append((rule, activation))
            activation = layer(activation)
        flowing = predicted_slots(x) if start is None else start
        for rule, before in reversed(passed):
            (flowing,) = redistribute(rule, (before,), flowing, epsilon=epsilon)
        (to_attention,) = redistribute(
            lambda a: attend_per_head(a, kernel, x), (attention,), flowing, epsilon=epsilon
        )
        share = quotient(flowing, per_head, epsilon)[..., None, :, -1]  # b, head, 1, effect
        total, count = _last_convolved(kernel, x), _observed_at_last(x)
        to_value = attention * (total / count) * share
        at_convolution = to_value if every_layer else to_value * count
        to_kernel = kernel * _seen_at_last(quotient(at_convolution, total, epsilon), x)
    return Attribution(to_attention, to_kernel)


def gradients(
    model: CausalityAwareTransformer,
    x: Float[Tensor, "b n slot"],
    *,
    start: Float[Tensor, "b n slot"] | None = None,
) -> Attribution:
    """Differentiate the prediction, summed over predicted slots, by attention and kernels.

    `start` weighs the slots in the sum; all but the first count the same unless given.
    """
    with torch.no_grad():
        attention, kernel = model.attention(x), model.kernel
        attended = attend(attention, kernel, model.head_weight, x)
        _, pull_back, *_ = torch.func.vjp(model.predict_from, attended)
        (slope,) = pull_back(predicted_slots(x) if start is None else start)  # b, effect, slot
        _, to_attention, *_ = torch.func.vjp(
            lambda a: attend(a, kernel, model.head_weight, x), attention
        )
        weighted = attention * model.head_weight[:, None, None]
        of_value = weighted * slope[:, None, None, :, -1] / _observed_at_last(x)
        return Attribution(to_attention(slope)[0], _seen_at_last(of_value, x))


def predicted_slots(x: Float[Tensor, "b n slot"]) -> Float[Tensor, "b n slot"]:
    """Give one at every slot but the first, whose prediction is never trained."""
    start = torch.ones_like(x)
    start[..., 0] = 0.0
    return start


def _observed_at_last(x: Float[Tensor, "b n slot"]) -> Float[Tensor, "cause effect"]:
    """Give the divisor ``t`` of the last slot, for self terms of the last but one."""
    n_series, n_slots = x.shape[1:]
    return n_slots - torch.eye(n_series, dtype=x.dtype, device=x.device)


def _last_convolved(
    kernel: Float[Tensor, "head cause effect tap"], x: Float[Tensor, "b cause slot"]
) -> Float[Tensor, "b head cause effect"]:
    """Convolve at the last slot (self terms: the last but one), before the division by ``t``."""
    total = torch.einsum("hjik,bjk->bhji", kernel, x)
    own_kernel = kernel.diagonal(dim1=1, dim2=2)  # head, tap, series
    own = torch.einsum("hki,bik->bhi", own_kernel, shift_right(x))
    total.diagonal(dim1=2, dim2=3).copy_(own)
    return total


def _seen_at_last(
    weight: Float[Tensor, "b head cause effect"], x: Float[Tensor, "b cause slot"]
) -> Float[Tensor, "head cause effect tap"]:
    """Sum over the samples what every tap sees at the last slot, by weight."""
    seen = torch.einsum("bhji,bjk->hjik", weight, x)
    own_weight = weight.diagonal(dim1=2, dim2=3)  # b, head, series
    own = torch.einsum("bhi,bik->hki", own_weight, shift_right(x))
    seen.diagonal(dim1=1, dim2=2).copy_(own)
    return seen


class _Step(NamedTuple):
    layer: Layer
    """What the network computes."""
    rule: Layer | None
    """What relevance is divided by; None if it passes unchanged."""


def _layers_behind_attention(
    model: CausalityAwareTransformer, *, bias: bool, every_layer: bool
) -> list[_Step]:
    """List the layers from the heads to the output, each with its rule."""
    ffn = model.feed_forward

    def widened(a: Tensor) -> Tensor:
        return a[..., None]

    def linear(layer: nn.Linear, before: Layer = lambda a: a, after: Layer = lambda a: a) -> _Step:
        def whole(a: Tensor) -> Tensor:
            return after(layer(before(a)))

        def without_bias(a: Tensor) -> Tensor:
            return after(nn.functional.linear(before(a), layer.weight))

        return _Step(whole, whole if bias else without_bias)

    def norm(layer: nn.LayerNorm | None) -> list[_Step]:
        if layer is None:
            return []
        if not every_layer:
            return [_Step(layer, None)]

        def without_shift(a: Tensor) -> Tensor:
            return nn.functional.layer_norm(a, layer.normalized_shape, layer.weight, eps=layer.eps)

        return [_Step(layer, layer if bias else without_shift)]

    def heads(a: Tensor) -> Tensor:
        return torch.einsum("h,bhit->bit", model.head_weight, a)

    def narrowed(a: Tensor) -> Tensor:
        return a[..., 0]

    def leaky(a: Tensor) -> Tensor:
        return nn.functional.leaky_relu(a, NEGATIVE_SLOPE)

    return [
        _Step(heads, heads),
        *norm(model.attention_norm),
        linear(ffn.inner, before=widened),
        _Step(leaky, None),  # by the rule, too: x f'(x) / f(x) is one
        linear(ffn.outer, after=narrowed),
        *norm(model.feed_forward_norm),
        linear(model.output, before=widened, after=narrowed),
    ]
