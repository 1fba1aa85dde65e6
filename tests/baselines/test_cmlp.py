"""cMLP: directions, lags, the networks against a plain loop, and the acceptance figures."""

import numpy as np
import pytest
import torch

from causalformer.baselines import CMLP
from causalformer.baselines.cmlp import Perceptrons
from causalformer.data.series import SeriesTable
from causalformer.datasets import make_lorenz96, make_var
from causalformer.errors import SettingsError
from causalformer.metrics import evaluate


def chain(lag, n_slots=400, seed=0):
    """Give x → y at a lag, without memory."""
    x, noise = np.random.default_rng(seed).standard_normal((2, n_slots))
    return np.column_stack([x, np.tanh(1.5 * np.roll(x, lag)) + 0.4 * noise])[lag:]


@pytest.mark.parametrize("penalty", ["H", "GL", "GSGL"])
def test_the_cause_comes_first_and_its_lag_is_exact(penalty):
    model = CMLP(penalty=penalty, max_lag=3, n_steps=30).fit(chain(lag=2))
    assert model.scores_[0, 1] == model.scores_.max()
    assert model.scores_[1, 0] < 0.3 * model.scores_[0, 1]
    assert [e.lag for e in model.graph_ if (e.cause, e.effect) == ("x0", "x1")] == [2]


def test_the_networks_are_those_of_a_plain_loop():
    model = Perceptrons(3, 2, 4, torch.Generator().manual_seed(0))
    past = torch.randn(5, 3, 2, generator=torch.Generator().manual_seed(1))
    for sample in range(5):
        for effect in range(3):
            value = model.offset[effect]
            for unit in range(4):
                inside = (model.inputs[effect, unit] * past[sample]).sum()
                inside = inside + model.bias[effect, unit]
                value = value + model.last[effect, unit] * inside.clamp_min(0)
            torch.testing.assert_close(model(past)[sample, effect], value)


def test_a_linear_system_of_order_three_is_found():
    made = make_var(10, 1000, density=0.12, random_state=0)
    metrics = evaluate(CMLP().fit(made.series).graph_, made.truth)
    wrong = metrics.n_predicted + metrics.n_true - 2 * metrics.n_correct
    assert 1 - wrong / 100 >= 0.95


def test_lorenz_96_is_ranked_well_at_a_fixed_strength():
    made = make_lorenz96(10, 1000, random_state=0)
    model = CMLP(strength=0.1).fit(made.series)
    assert evaluate(model.graph_, made.truth, model.scores_).off_diagonal_auroc >= 0.9
    assert (model.strengths_ == 0.1).all()


def test_the_same_seed_gives_the_same_graph():
    fitted = [CMLP(n_steps=10, random_state=seed).fit(chain(1)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fitted[0].scores_, fitted[1].scores_)
    assert fitted[0].graph_ == fitted[1].graph_
    assert (fitted[0].scores_ != fitted[2].scores_).any()


def test_no_window_crosses_the_ends_of_a_segment():
    values = np.random.default_rng(0).standard_normal((60, 2))
    values[30:] += 5.0
    settings = {"max_lag": 2, "n_steps": 5, "strength": 0.1}
    found = CMLP(**settings).discover(values, [slice(0, 30), slice(30, 60)])
    whole = CMLP(**settings).discover(values, [slice(0, 60)])
    part = CMLP(**settings).discover(
        np.vstack([values[:30], np.full((4, 2), 1e3), values[30:]]), [slice(0, 30), slice(34, 64)]
    )
    np.testing.assert_array_equal(found.scores, part.scores)
    assert (found.scores != whole.scores).any()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_lag": 0}, "max_lag"),
        ({"hidden": 0}, "hidden"),
        ({"penalty": "L1"}, "choose among GL, GSGL, H"),
        ({"strength": -1.0}, "strength"),
        ({"ridge": -1.0}, "ridge"),
        ({"n_steps": 0}, "n_steps"),
    ],
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        CMLP(**options).fit(chain(1))


def test_the_shortest_series_and_a_table_are_read():
    table = SeriesTable(np.random.default_rng(0).standard_normal((9, 2)), ("a", "b"), None, "test")
    assert np.isfinite(CMLP(n_steps=2).fit(table).scores_).all()
