import numpy as np
import paper_equations as reference
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.model import CausalityAwareTransformer
from causalformer.model.attention import attend
from causalformer.model.convolution import convolve
from causalformer.model.feed_forward import FeedForward
from causalformer.model.loss import penalised_loss, prediction_error
from small_models import SMALL, make_model, make_windows


@pytest.mark.usefixtures("double")
class TestAgainstTheEquations:
    def test_attention_equals_the_paper_written_with_loops(self):
        model, x = make_model(), make_windows()
        expected = np.stack([reference.attention(model, window.numpy()) for window in x])
        np.testing.assert_allclose(model.attention(x).detach().numpy(), expected, atol=1e-12)

    def test_folding_the_projections_keeps_the_attention(self):
        model, x = make_model(), make_windows()
        separate = model.attention(x)
        model.attention.fold()
        torch.testing.assert_close(model.attention(x), separate)
        assert {name for name, _ in model.attention.named_parameters()} == {"mask", "form.weight"}

    def test_attention_of_an_effect_sums_to_one_over_its_causes(self):
        weights = make_model().attention(make_windows())
        torch.testing.assert_close(weights.sum(dim=2), torch.ones(2, 2, 3))

    def test_convolution_equals_the_paper_written_with_loops(self):
        x, kernel = make_windows()[0], torch.randn(3, 3, 5)
        expected = reference.convolution(kernel.numpy(), x.numpy())
        np.testing.assert_allclose(convolve(kernel, x).numpy(), expected, atol=1e-12)

    def test_contracting_heads_first_changes_nothing(self):
        model, x = make_model(), make_windows()
        weights = model.attention(x)
        literal = torch.stack(
            [
                torch.einsum(
                    "h,hji,hjit->it",
                    model.head_weight,
                    weights[b],
                    torch.stack([convolve(kernel, x[b]) for kernel in model.kernel]),
                )
                for b in range(len(x))
            ]
        )
        fast = attend(weights, model.kernel, model.head_weight, x)
        torch.testing.assert_close(fast, literal)

    def test_a_kernel_per_sample_gives_the_same_as_a_shared_one(self):
        model, x = make_model(), make_windows()
        weights = model.attention(x)
        copies = model.kernel.expand(len(x), *model.kernel.shape)
        torch.testing.assert_close(
            attend(weights, copies, model.head_weight, x),
            attend(weights, model.kernel, model.head_weight, x),
        )

    @pytest.mark.parametrize("normalisation", ["none", "time"])
    def test_prediction_equals_the_paper_written_with_loops(self, normalisation):
        model, x = make_model(normalisation=normalisation), make_windows()
        expected = np.stack([reference.predict(model, window.numpy()) for window in x])
        np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=1e-9)

    def test_single_kernel_ablation_uses_one_kernel_for_all_pairs(self):
        model = make_model(multi_kernel=False)
        assert model.shared_kernel.shape == (2, 1, 1, 5)
        assert model.kernel.shape == (2, 3, 3, 5)
        x = make_windows()
        expected = np.stack([reference.predict(model, window.numpy()) for window in x])
        np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=1e-9)


def random_feed_forward(seed):
    torch.manual_seed(seed)
    ffn = FeedForward(9)
    with torch.no_grad():
        for parameter in ffn.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    return ffn


@pytest.mark.usefixtures("double")
class TestFeedForward:
    @given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-3, 1.0, 1e3]))
    def test_piecewise_form_equals_the_layers(self, seed, scale):
        ffn, a = random_feed_forward(seed), scale * torch.randn(50)
        torch.testing.assert_close(ffn(a), ffn.layer_by_layer(a))

    def test_piecewise_form_has_the_gradients_of_the_layers(self):
        ffn, a = random_feed_forward(0), torch.randn(50, requires_grad=True)
        wrt = [a, *ffn.parameters()]
        weights = torch.randn(50)
        fast = torch.autograd.grad((weights * ffn(a)).sum(), wrt)
        literal = torch.autograd.grad((weights * ffn.layer_by_layer(a)).sum(), wrt)
        for ours, theirs in zip(fast, literal, strict=True):
            torch.testing.assert_close(ours, theirs)

    def test_units_without_weight_are_constant(self):
        ffn = random_feed_forward(0)
        with torch.no_grad():
            ffn.inner.weight.zero_()
            ffn.inner.bias[:3] = torch.tensor([1.0, 0.0, -1.0])
        a = torch.linspace(-2, 2, 9)
        torch.testing.assert_close(ffn(a), ffn.layer_by_layer(a))


class TestTemporalPriority:
    @given(
        slot=st.integers(0, 4),
        series=st.integers(0, 2),
        change=st.floats(-5, 5).filter(lambda c: abs(c) > 1e-3),
        seed=st.integers(0, 50),
    )
    def test_with_attention_fixed_a_change_touches_nothing_before_it(
        self, slot, series, change, seed
    ):
        model, x = make_model(seed=seed), make_windows(seed=seed + 1)
        changed = x.clone()
        changed[:, series, slot] += change
        with torch.no_grad():
            weights = model.attention(x)
            before, after = (
                model.predict_from(attend(weights, model.kernel, model.head_weight, window))
                for window in (x, changed)
            )
        assert torch.equal(before[..., :slot], after[..., :slot])
        # nor the present of the series itself: its own term is shifted by one slot
        assert torch.equal(before[:, series, slot], after[:, series, slot])

    def test_other_series_do_see_the_present(self):
        model, x = make_model(), make_windows()
        changed = x.clone()
        changed[:, 0, 2] += 1.0
        with torch.no_grad():
            weights = model.attention(x)
            before, after = (
                attend(weights, model.kernel, model.head_weight, window) for window in (x, changed)
            )
        assert not torch.equal(before[:, 1, 2], after[:, 1, 2])


class TestInitialisation:
    def test_kernels_and_masks_start_at_one(self):
        model = CausalityAwareTransformer(3, SMALL)
        assert (model.kernel == 1).all()
        assert (model.attention.mask == 1).all()

    def test_the_same_seed_gives_the_same_weights(self):
        first, second = (
            CausalityAwareTransformer(3, SMALL, torch.Generator().manual_seed(7)).state_dict()
            for _ in range(2)
        )
        assert all(torch.equal(first[name], second[name]) for name in first)

    def test_another_seed_gives_other_weights(self):
        first, second = (
            CausalityAwareTransformer(3, SMALL, torch.Generator().manual_seed(seed))
            for seed in (1, 2)
        )
        assert not torch.equal(
            first.attention.form.query.weight, second.attention.form.query.weight
        )

    def test_he_initialisation_keeps_the_variance_of_its_rule(self):
        settings = SMALL.model_copy(update={"d_model": 400, "d_qk": 200})
        weight = CausalityAwareTransformer(3, settings).attention.form.query.weight
        assert weight.var().item() == pytest.approx(1 / (3 * 400), rel=0.05)
        assert weight.abs().max().item() <= 1 / 400**0.5

    def test_folded_weights_start_as_the_product_of_the_separate_ones(self):
        x = make_windows()
        folded, separate = (
            CausalityAwareTransformer(
                3,
                SMALL.model_copy(update={"projections": projections}),
                torch.Generator().manual_seed(7),
            )
            for projections in ("folded", "separate")
        )
        torch.testing.assert_close(folded(x), separate(x))

    def test_the_untrained_network_predicts_the_level_of_a_flat_window(self):
        model = CausalityAwareTransformer(3, SMALL, level=0.75)
        prediction = model(torch.full((1, 3, 5), 0.75))
        torch.testing.assert_close(prediction[..., 1:], torch.full((1, 3, 4), 0.75))


class TestLoss:
    def test_the_first_slot_does_not_count(self):
        observed, predicted = make_windows(), make_windows(seed=2)
        elsewhere = predicted.clone()
        elsewhere[..., 0] += 100
        assert prediction_error(elsewhere, observed) == prediction_error(predicted, observed)

    def test_error_is_divided_by_series_and_slots(self):
        observed = torch.zeros(2, 3, 5)
        predicted = torch.ones(2, 3, 5)
        assert prediction_error(predicted, observed).item() == pytest.approx(4 / 5)

    def test_penalties_are_means_over_pairs_of_the_norm_over_taps(self):
        model, x = CausalityAwareTransformer(3, SMALL), make_windows()
        plain = penalised_loss(model, x, 0.0, 0.0)
        assert (penalised_loss(model, x, 1.0, 0.0) - plain).item() == pytest.approx(5, rel=1e-5)
        assert (penalised_loss(model, x, 0.0, 1.0) - plain).item() == pytest.approx(1, rel=1e-5)
