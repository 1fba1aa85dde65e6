"""DVGNN: finite values of the right shape, its link against the formula, and its settings."""

import numpy as np
import pytest
import torch

from causalformer.baselines import DVGNN
from causalformer.baselines.dvgnn import _LinkModel
from causalformer.errors import SettingsError
from causalformer.metrics import evaluate


@pytest.fixture(scope="module")
def series():
    return np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0)


def test_scores_are_finite_and_there_are_no_lags(series):
    model = DVGNN(n_epochs=5).fit(series)
    assert model.scores_.shape == (3, 3)
    assert np.isfinite(model.scores_).all()
    assert model.graph_.metadata["lags"] is False
    assert np.isnan(evaluate(model.graph_, model.graph_).pod)


def test_a_link_is_the_formula_with_the_cause_in_the_row():
    model = _LinkModel(2, torch.Generator().manual_seed(0))
    window = torch.tensor([[[0.3, -1.0], [2.0, 0.5]]])
    links, _ = model(window)
    w = {k: v.detach().double().numpy() for k, v in model.state_dict().items()}

    def sigma(x):
        hidden = np.maximum(x * w["entrance"][0] + w["spread_entrance_bias"], 0)
        return np.exp(1 / (1 + np.exp(-(hidden @ w["to_spread"] + w["spread_bias"]))))

    q = 2 * w["diffusion"] @ w["diffusion"].T
    for cause in range(2):
        for effect in range(2):
            before, after = window[0, cause, 0].item(), window[0, effect, 1].item()
            square = (sigma(before) @ sigma(after)) ** 2
            apart = square - q[cause, effect]
            inner = -np.log(2 * np.pi * abs(apart) + 1e-4) + square / (apart + 1e-4)
            assert links[0, cause, effect].item() == pytest.approx(np.exp(-abs(inner)), rel=1e-4)


def test_the_same_seed_gives_the_same_graph(series):
    first, second = (DVGNN(n_epochs=3, random_state=1).fit(series) for _ in range(2))
    np.testing.assert_array_equal(first.scores_, second.scores_)
    assert first.graph_ == second.graph_


@pytest.mark.parametrize("options", [{"n_epochs": 0}, {"learning_rate": 0}])
def test_options_out_of_range_are_named(options, series):
    with pytest.raises(SettingsError, match=next(iter(options))):
        DVGNN(**options).fit(series)
