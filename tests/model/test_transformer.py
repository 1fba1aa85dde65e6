import numpy as np
import paper_equations as reference
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.model import CausalityAwareTransformer
from causalformer.model.attention import attend, attend_per_head
from causalformer.model.convolution import convolve
from causalformer.model.feed_forward import FeedForward
from causalformer.model.loss import penalised_loss, prediction_error
from small_models import SMALL, make_model, make_windows

NORMALISATIONS = ["none", "published"]


@pytest.mark.usefixtures("double")
class TestAgainstTheEquations:
    @pytest.mark.parametrize("normalisation", NORMALISATIONS)
    def test_attention_equals_the_paper_written_with_loops(self, normalisation):
        model, x = make_model(normalisation=normalisation), make_windows()
        expected = np.stack([reference.attention(model, window.numpy()) for window in x])
        np.testing.assert_allclose(model.attention(x).detach().numpy(), expected, atol=1e-12)

    def test_a_flat_embedding_has_no_spread_to_divide_by(self):
        model, x = make_model(normalisation="published"), make_windows()
        with torch.no_grad():
            model.attention.embedding.weight.zero_()
            model.attention.embedding.bias.fill_(3.0)
        expected = np.stack([reference.attention(model, window.numpy()) for window in x])
        np.testing.assert_allclose(model.attention(x).detach().numpy(), expected, atol=1e-12)

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

    def test_heads_apart_mix_to_the_same(self):
        model, x = make_model(), make_windows()
        weights = model.attention(x)
        apart = attend_per_head(weights, model.kernel, x)
        mixed = torch.einsum("h,bhit->bit", model.head_weight, apart)
        torch.testing.assert_close(mixed, attend(weights, model.kernel, model.head_weight, x))

    @pytest.mark.parametrize("normalisation", NORMALISATIONS)
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

    def test_the_published_norms_over_time_break_it(self):
        model, x = make_model(normalisation="published"), make_windows()
        changed = x.clone()
        changed[:, 0, 4] += 1.0
        with torch.no_grad():
            weights = model.attention(x)
            before, after = (
                model.predict_from(attend(weights, model.kernel, model.head_weight, window))
                for window in (x, changed)
            )
        assert not torch.equal(before[:, 1, :4], after[:, 1, :4])

    def test_queries_and_keys_of_the_whole_window_break_it(self):
        model, x = make_model(), make_windows()
        changed = x.clone()
        changed[:, 0, 4] += 1.0
        with torch.no_grad():
            assert not torch.equal(model(x)[:, 1, :4], model(changed)[:, 1, :4])

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
        assert not torch.equal(first.attention.query.weight, second.attention.query.weight)

    def test_weights_have_the_variances_of_the_published_runs(self):
        settings = SMALL.model_copy(
            update={"window": 100, "d_model": 300, "d_ffn": 4000, "n_heads": 4000}
        )
        drawn = CausalityAwareTransformer(1, settings, torch.Generator().manual_seed(0))
        expected = {
            drawn.attention.embedding.weight: 2 / (100 + 300),
            drawn.attention.query.weight: 2 / (300 + 300),
            drawn.attention.key.weight: 2 / (300 + 300),
            drawn.feed_forward.inner.weight: 2 / (1 + 4000),
            drawn.feed_forward.outer.weight: 2 / (4000 + 1),
            drawn.head_weight: 2 / (2 * 300),
        }
        for weight, variance in expected.items():
            assert weight.var().item() == pytest.approx(variance, rel=0.1)
            assert weight.abs().max() > 2.5 * variance**0.5  # normal, not uniform

    def test_the_output_layer_has_the_variance_of_the_published_runs(self):
        generator = torch.Generator().manual_seed(0)
        settings = SMALL.model_copy(update={"d_model": 48})
        weights = [
            CausalityAwareTransformer(2, settings, generator).output.weight.item()
            for _ in range(400)
        ]
        assert np.var(weights) == pytest.approx(2 / 49, rel=0.2)

    def test_biases_are_uniform_within_one_over_the_root_of_the_inputs(self):
        settings = SMALL.model_copy(update={"d_model": 400})
        bias = CausalityAwareTransformer(3, settings).attention.query.bias
        assert bias.abs().max().item() <= 1 / 400**0.5
        assert bias.var().item() == pytest.approx(1 / (3 * 400), rel=0.2)

    def test_norms_start_as_the_identity(self):
        model = CausalityAwareTransformer(
            3, SMALL.model_copy(update={"normalisation": "published"})
        )
        for norm in (
            model.attention.embedding_norm,
            model.attention_norm,
            model.feed_forward_norm,
        ):
            assert (norm.weight == 1).all()
            assert (norm.bias == 0).all()


class TestLoss:
    def test_the_error_is_the_mean_over_all_slots_but_the_first(self):
        model, x = make_model(), make_windows()
        expected = (model(x) - x)[..., 1:].square().mean()
        torch.testing.assert_close(prediction_error(model, x), expected)
        with torch.no_grad():
            model.output.weight.zero_()
            model.output.bias.zero_()
        first = torch.zeros_like(x)
        first[..., 0] = 7.0
        assert prediction_error(model, first) == 0

    def test_the_penalty_on_kernels_is_the_mean_over_pairs_of_the_norm_over_taps(self):
        model, x = CausalityAwareTransformer(3, SMALL), make_windows()
        plain = penalised_loss(model, x, 0.0, 0.0)
        assert (penalised_loss(model, x, 1.0, 0.0) - plain).item() == pytest.approx(5, rel=1e-5)

    def test_the_penalty_on_the_mask_is_summed_over_the_causes_before_the_mean(self):
        model, x = CausalityAwareTransformer(3, SMALL), make_windows()
        plain = penalised_loss(model, x, 0.0, 0.0)
        assert (penalised_loss(model, x, 0.0, 1.0) - plain).item() == pytest.approx(3, rel=1e-5)
