import pytest
import torch

from causalformer.explain.propagation import gradients, relevance
from causalformer.explain.rules import redistribute
from causalformer.model.convolution import convolve
from small_models import make_model, make_windows

pytestmark = pytest.mark.usefixtures("double")

NORMALISATIONS = ["none", "time"]


def layer_by_layer(model, x, start):
    """Relevance of A and K of one window, one layer of the paper after another."""
    attention, kernel = (t.detach() for t in (model.attention(x[None])[0], model.kernel))
    weight = model.head_weight.detach()
    ffn = model.feed_forward
    value = torch.stack([convolve(k, x) for k in kernel])  # head, cause, effect, slot
    per_head = torch.einsum("hji,hjit->hit", attention, value)
    layers = [
        (lambda a: torch.einsum("h,hit->it", weight, a)),
        model.attention_norm,
        (lambda a: ffn.inner(a[..., None])),
        (lambda a: torch.nn.functional.leaky_relu(a, 0.01)),
        (lambda a: ffn.outer(a)[..., 0]),
        model.feed_forward_norm,
        (lambda a: model.output(a[..., None])[..., 0]),
    ]
    activations = [per_head]
    for layer in layers:
        activations.append(layer(activations[-1]).detach())
    flowing = start
    for layer, before in zip(reversed(layers), reversed(activations[:-1]), strict=True):
        (flowing,) = redistribute(layer, (before,), flowing, epsilon=0.0)
    to_attention, to_value = redistribute(
        lambda a, v: torch.einsum("hji,hjit->hit", a, v), (attention, value), flowing, epsilon=0.0
    )
    # the convolution: V[self, first slot] is zero by the right shift and holds no relevance
    to_value = torch.where(value == 0, torch.zeros_like(value), to_value)
    safe = torch.where(value == 0, torch.ones_like(value), value)
    _, pull_back, *_ = torch.func.vjp(
        lambda k: torch.stack([convolve(head, x) for head in k]), kernel
    )
    return to_attention, kernel * pull_back(to_value / safe)[0]


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_fast_sweep_equals_the_layer_by_layer_propagation(normalisation):
    model, x = make_model(normalisation=normalisation), make_windows()
    fast = relevance(model, x, epsilon=0.0)
    for b, window in enumerate(x):
        attention, kernel = layer_by_layer(model, window, torch.ones_like(window))
        torch.testing.assert_close(fast.attention[b], attention, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(fast.kernel[b], kernel, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_one_sweep_equals_the_loop_over_targets(normalisation, bias):
    model, x = make_model(normalisation=normalisation), make_windows()
    together = relevance(model, x, bias=bias)
    for target in range(x.shape[1]):
        one_hot = torch.zeros_like(x)
        one_hot[:, target] = 1.0
        alone = relevance(model, x, start=one_hot, bias=bias)
        torch.testing.assert_close(
            together.attention[..., target], alone.attention[..., target], rtol=1e-9, atol=1e-12
        )
        torch.testing.assert_close(
            together.kernel[..., target, :], alone.kernel[..., target, :], rtol=1e-9, atol=1e-12
        )
        others = [i for i in range(x.shape[1]) if i != target]
        assert (alone.attention[..., others] == 0).all()


def test_without_biases_attention_receives_all_relevance():
    model, x = make_model(), make_windows()
    share = relevance(model, x, bias=False, epsilon=0.0)
    torch.testing.assert_close(share.attention.sum(), torch.tensor(float(x.numel())))


def test_attention_and_kernel_receive_the_same_total():
    share = relevance(make_model(), make_windows(), epsilon=0.0)
    torch.testing.assert_close(share.attention, share.kernel.sum(-1), rtol=1e-9, atol=1e-12)


def test_without_biases_in_the_network_the_ablation_changes_nothing():
    model, x = make_model(), make_windows()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    torch.testing.assert_close(
        relevance(model, x, bias=True, epsilon=0.0).attention,
        relevance(model, x, bias=False, epsilon=0.0).attention,
    )


def test_gradients_equal_finite_differences():
    model, x = make_model(), make_windows(n_samples=1)
    slope = gradients(model, x)
    step = 1e-6
    with torch.no_grad():
        moved = model.shared_kernel.clone()
        prediction = model(x)[0, 1].sum()
        model.shared_kernel[1, 0, 1, 3] += step
        difference = (model(x)[0, 1].sum() - prediction) / step
        model.shared_kernel.copy_(moved)
    torch.testing.assert_close(slope.kernel[0, 1, 0, 1, 3], difference, rtol=1e-4, atol=1e-6)


def test_the_model_is_left_as_it_was():
    model, x = make_model(), make_windows()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    relevance(model, x)
    gradients(model, x)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
