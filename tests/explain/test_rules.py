import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.explain.rules import quotient, redistribute

pytestmark = pytest.mark.usefixtures("double")


def jacobian_twin(layer, operands, relevance):
    """R_i = Σ_j x_i ∂f_j/∂x_i R_j / f_j with the whole Jacobian and explicit loops."""
    output = layer(*operands).detach().numpy().ravel()
    flowing = relevance.numpy().ravel()
    shares = []
    for index, operand in enumerate(operands):
        jacobian = torch.func.jacrev(layer, argnums=index)(*operands)
        jacobian = jacobian.detach().numpy().reshape(len(output), -1)
        values = operand.numpy().ravel()
        share = np.zeros(len(values))
        for i in range(len(values)):
            for j in range(len(output)):
                share[i] += values[i] * jacobian[j, i] * flowing[j] / output[j]
        shares.append(share.reshape(operand.shape))
    return shares


def assert_equals_twin(layer, operands, relevance):
    ours = redistribute(layer, operands, relevance, epsilon=0.0)
    for share, expected in zip(ours, jacobian_twin(layer, operands, relevance), strict=True):
        np.testing.assert_allclose(share.numpy(), expected, rtol=1e-9, atol=1e-12)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(seed=st.integers(0, 1000))
def test_linear_layer_with_bias_equals_the_definition(seed):
    weight, bias = random(4, 3, seed=seed), random(4, seed=seed + 1)
    assert_equals_twin(
        lambda x: torch.nn.functional.linear(x, weight, bias),
        (random(2, 3, seed=seed + 2),),
        random(2, 4, seed=seed + 3),
    )


def test_matrix_product_gives_relevance_to_both_operands():
    assert_equals_twin(torch.matmul, (random(2, 3), random(3, 4, seed=1)), random(2, 4, seed=2))


def test_layer_norm_equals_the_definition():
    norm = torch.nn.LayerNorm(5)
    with torch.no_grad():
        norm.bias.copy_(random(5))
    assert_equals_twin(norm, (random(2, 5, seed=1),), random(2, 5, seed=2))


def test_leaky_relu_passes_relevance_unchanged():
    relevance = random(3, 4, seed=1)
    (share,) = redistribute(torch.nn.functional.leaky_relu, (random(3, 4),), relevance, epsilon=0.0)
    torch.testing.assert_close(share, relevance)


@given(seed=st.integers(0, 1000))
def test_without_bias_all_relevance_arrives(seed):
    weight = random(4, 3, seed=seed)
    relevance = random(4, seed=seed + 1)
    (share,) = redistribute(
        lambda x: weight @ x, (random(3, seed=seed + 2),), relevance, epsilon=0.0
    )
    torch.testing.assert_close(share.sum(), relevance.sum())


@given(seed=st.integers(0, 1000))
def test_with_bias_inputs_and_bias_together_keep_all_relevance(seed):
    weight, x, relevance = (random(*s, seed=seed + k) for k, s in enumerate([(4, 3), (3,), (4,)]))
    bias = random(4, seed=seed + 9)
    to_x, to_bias = redistribute(lambda x, b: weight @ x + b, (x, bias), relevance, epsilon=0.0)
    torch.testing.assert_close(to_x.sum() + to_bias.sum(), relevance.sum())
    # the paper's bias relevance
    torch.testing.assert_close(to_bias, bias / (weight @ x + bias) * relevance)


def test_an_exact_zero_gives_zero():
    (share,) = redistribute(lambda x: x - x.detach(), (torch.ones(3),), torch.ones(3))
    assert (share == 0).all()


def test_the_stabiliser_is_added_whatever_the_sign():
    f = torch.tensor([-1.0, 1.0])
    torch.testing.assert_close(quotient(torch.ones(2), f, epsilon=0.5), torch.tensor([-2.0, 2 / 3]))
