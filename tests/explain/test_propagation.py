import pytest
import torch

from causalformer.explain.propagation import gradients, predicted_slots, relevance
from causalformer.explain.rules import redistribute
from causalformer.model.convolution import convolve
from small_models import make_model, make_windows

pytestmark = pytest.mark.usefixtures("double")

NORMALISATIONS = ["none", "published"]


def layer_by_layer(model, x, start):
    """Relevance of A and K of one window by the text: the rule for one layer after another.

    The kernels' is that of the last slot; a self term's, which is shifted, of the last but one.
    """
    attention, kernel = (t.detach() for t in (model.attention(x[None])[0], model.kernel))
    weight = model.head_weight.detach()
    ffn = model.feed_forward
    value = torch.stack([convolve(k, x) for k in kernel])  # head, cause, effect, slot
    per_head = torch.einsum("hji,hjit->hit", attention, value)
    layers = [
        (lambda a: torch.einsum("h,hit->it", weight, a)),
        *([model.attention_norm] if model.attention_norm else []),
        (lambda a: ffn.inner(a[..., None])),
        (lambda a: torch.nn.functional.leaky_relu(a, 0.01)),
        (lambda a: ffn.outer(a)[..., 0]),
        *([model.feed_forward_norm] if model.feed_forward_norm else []),
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
    to_value[..., :-1] = 0.0  # of every pair, only the last slot is read
    (to_kernel,) = redistribute(
        lambda k: torch.stack([convolve(head, x) for head in k]), (kernel,), to_value, epsilon=0.0
    )
    return to_attention, to_kernel


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_the_texts_form_equals_the_rule_for_one_layer_after_another(normalisation):
    model, x = make_model(normalisation=normalisation), make_windows()
    fast = relevance(model, x, bias=True, every_layer=True, epsilon=0.0)
    of_kernels = torch.zeros_like(fast.kernel)
    for b, window in enumerate(x):
        attention, kernel = layer_by_layer(model, window, predicted_slots(window[None])[0])
        torch.testing.assert_close(fast.attention[b], attention, rtol=1e-7, atol=1e-9)
        of_kernels += kernel
    torch.testing.assert_close(fast.kernel, of_kernels, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("every_layer", [True, False])
def test_one_sweep_equals_the_loop_over_targets(normalisation, bias, every_layer):
    model, x = make_model(normalisation=normalisation), make_windows()
    options = {"bias": bias, "every_layer": every_layer}
    together = relevance(model, x, **options)
    for target in range(x.shape[1]):
        one_hot = torch.zeros_like(x)
        one_hot[:, target] = predicted_slots(x)[:, target]
        alone = relevance(model, x, start=one_hot, **options)
        torch.testing.assert_close(
            together.attention[..., target], alone.attention[..., target], rtol=1e-9, atol=1e-12
        )
        torch.testing.assert_close(
            together.kernel[..., target, :], alone.kernel[..., target, :], rtol=1e-9, atol=1e-12
        )
        others = [i for i in range(x.shape[1]) if i != target]
        assert (alone.attention[..., others] == 0).all()


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_as_published_attention_receives_all_relevance(normalisation):
    model, x = make_model(normalisation=normalisation), make_windows()
    share = relevance(model, x, epsilon=0.0)
    torch.testing.assert_close(share.attention.sum(), predicted_slots(x).sum())


def test_as_published_the_kernels_of_the_last_slot_receive_it_times_the_slots():
    model, x = make_model(), make_windows(n_samples=1)
    only_last = torch.zeros_like(x)
    only_last[..., -1] = 1.0
    share = relevance(model, x, start=only_last, epsilon=0.0)
    n_observed = x.shape[-1] - torch.eye(3)  # a self term has seen one slot less
    torch.testing.assert_close(share.kernel.sum(-1), share.attention[0] * n_observed)


def test_without_biases_in_the_network_they_change_nothing_in_the_denominators():
    model, x = make_model(), make_windows()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    torch.testing.assert_close(
        relevance(model, x, bias=True, epsilon=0.0).attention,
        relevance(model, x, bias=False, epsilon=0.0).attention,
    )


@pytest.mark.parametrize("option", ["bias", "every_layer"])
def test_each_option_of_the_text_changes_the_relevance(option):
    model, x = make_model(normalisation="published"), make_windows()
    published, changed = relevance(model, x), relevance(model, x, **{option: True})
    assert not torch.allclose(published.attention, changed.attention)


def test_gradients_equal_finite_differences():
    model, x = make_model(), make_windows(n_samples=1)
    slope = gradients(model, x)
    step = 1e-6
    with torch.no_grad():
        attention = model.attention(x)

        def prediction(weights):
            attended = torch.einsum(
                "h,hji,hjit->it",
                model.head_weight,
                weights,
                torch.stack([convolve(kernel, x[0]) for kernel in model.kernel]),
            )
            return model.predict_from(attended[None])[0, 1, 1:].sum()

        moved = attention[0].clone()
        moved[1, 0, 1] += step
        difference = (prediction(moved) - prediction(attention[0])) / step
    torch.testing.assert_close(slope.attention[0, 1, 0, 1], difference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cause", [0, 1])
def test_the_gradient_of_a_kernel_is_that_of_the_last_slot(cause):
    model, x = make_model(), make_windows(n_samples=1)
    only_last = torch.zeros_like(x)
    only_last[..., -1] = 1.0  # no norm mixes the slots: this is all that the last one does
    slope = gradients(model, x, start=only_last)
    step = 1e-6
    with torch.no_grad():
        before = model(x)[0, 1, -1]
        model.shared_kernel[1, cause, 1, 3] += step
        difference = (model(x)[0, 1, -1] - before) / step
    torch.testing.assert_close(slope.kernel[1, cause, 1, 3], difference, rtol=1e-4, atol=1e-6)


def test_the_model_is_left_as_it_was():
    model, x = make_model(), make_windows()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    relevance(model, x)
    gradients(model, x)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
