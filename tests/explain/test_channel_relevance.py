import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.data.windows import lagged_samples
from causalformer.explain.channel_relevance import channel_relevance
from small_models import make_channels, make_series

pytestmark = pytest.mark.usefixtures("double")


def slow_relevance(model, past):
    """Share SiLU(z) among the terms of z in proportion, one number at a time."""
    p = {name: value.detach().numpy() for name, value in model.named_parameters()}
    past = past.numpy()
    n_samples, n_series, max_lag = past.shape
    share = np.zeros((n_samples, n_series, max_lag, n_series))
    bias = np.zeros((n_samples, n_series))
    for b, e, f in np.ndindex(n_samples, n_series, model.n_folds):
        bias[b, e] += p["offset"][f, e] / model.n_folds
        for j, k in np.ndindex(n_series, max_lag):
            share[b, j, k, e] += p["skip"][j, k, f, e] * past[b, j, k] / model.n_folds
        for c in range(model.n_channels):
            terms = p["kernel"][:, :, f, e, c] * past[b]
            z = terms.sum() + p["threshold"][f, e, c]
            passed_on = p["mix"][f, e, c] * z / (1 + math.exp(-z)) / model.n_folds
            share[b, :, :, e] += passed_on * terms / z
            bias[b, e] += passed_on * p["threshold"][f, e, c] / z
    return share, bias


def test_equals_the_rule_written_with_loops():
    model, (past, _) = make_channels(), lagged_samples(make_series(), 2)
    share, bias = channel_relevance(model, past)
    expected_share, expected_bias = slow_relevance(model, past)
    np.testing.assert_allclose(share.numpy(), expected_share, atol=1e-11)
    np.testing.assert_allclose(bias.numpy(), expected_bias, atol=1e-11)


@given(
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.0, 1e-6, 1.0, 1e3]),
)
def test_shares_and_biases_add_up_to_the_prediction(seed, scale):
    model = make_channels(seed=seed)
    past, _ = lagged_samples(scale * make_series(seed=seed), 2)
    share, bias = channel_relevance(model, past)
    predicted = model(past).mean(1).detach()
    torch.testing.assert_close(share.sum((1, 2)) + bias, predicted, rtol=1e-10, atol=1e-10)


def test_values_of_zero_get_nothing():
    model, past = make_channels(), lagged_samples(make_series(), 2)[0].clone()
    past[:, 1, 0] = 0
    share, _ = channel_relevance(model, past)
    assert not share[:, 1, 0].any()
    assert share[:, 1, 1].all()


def test_without_channels_a_share_is_weight_times_value():
    model, past = make_channels(n_folds=1), lagged_samples(make_series(), 2)[0]
    with torch.no_grad():
        model.mix.zero_()
    share, bias = channel_relevance(model, past)
    torch.testing.assert_close(share, past[..., None] * model.skip[:, :, 0])
    torch.testing.assert_close(bias, model.offset.expand(len(past), 3))
