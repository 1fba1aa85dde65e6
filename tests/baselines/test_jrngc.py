"""JRNGC: directions, lags, the Jacobian against automatic differentiation, settings."""

import numpy as np
import pytest
import torch

from causalformer.baselines import JRNGC
from causalformer.baselines.jrngc import ResidualNetwork, without_links
from causalformer.datasets import make_lorenz96, make_var
from causalformer.errors import SettingsError
from causalformer.metrics import evaluate

QUICK = {"max_lag": 3, "hidden": 8, "n_steps": 60}


def chain(lag=2, n_slots=400):
    """Give x → y at a lag, without memory."""
    x, noise = np.random.default_rng(0).standard_normal((2, n_slots))
    return np.column_stack([x, np.tanh(1.5 * np.roll(x, lag)) + 0.4 * noise])[lag:]


def test_the_cause_comes_first_and_its_lag_is_exact():
    model = JRNGC(**QUICK).fit(chain())
    assert [(e.cause, e.effect, e.lag) for e in model.graph_ if e.cause != e.effect] == [
        ("x0", "x1", 2)
    ]
    assert model.scores_[0, 1] > 5 * model.scores_[1, 0]


def test_the_jacobian_is_that_of_automatic_differentiation():
    model = ResidualNetwork(3, 2, 8, torch.Generator().manual_seed(0))
    past = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(1))
    predicted, jacobian = model.with_jacobian(past)
    for sample in range(4):
        exact = torch.autograd.functional.jacobian(model, past[[sample]])
        torch.testing.assert_close(jacobian[sample], exact[0, :, 0].flatten(1))
    torch.testing.assert_close(predicted, model(past))


def test_true_edges_of_a_linear_system_rank_above_others():
    made = make_var(5, 1000, density=0.25, random_state=0)
    model = JRNGC(max_lag=3, n_steps=150).fit(made.series)
    assert evaluate(model.graph_, made.truth, model.scores_).off_diagonal_auroc >= 0.95


def test_lorenz_96_is_ranked_well():
    made = make_lorenz96(10, 1000, random_state=0)
    model = JRNGC().fit(made.series)
    assert evaluate(model.graph_, made.truth, model.scores_).off_diagonal_auroc >= 0.9


def test_edges_are_the_scores_above_what_chance_reaches():
    model = JRNGC(**QUICK).fit(chain())
    pairs = {(e.cause, e.effect) for e in model.graph_}
    above = np.argwhere(model.scores_ > model.threshold_)
    assert pairs == {(model.names_[c], model.names_[e]) for c, e in above}


@pytest.mark.parametrize("n_slots", [40, 41])
def test_surrogates_keep_the_spectra_and_nothing_between_series(n_slots):
    x = np.random.default_rng(0).standard_normal((2 * n_slots, 1)) + 1.0
    values = np.hstack([x, x])
    segments = [slice(0, n_slots), slice(n_slots, 2 * n_slots)]
    surrogate = without_links(values, segments, np.random.default_rng(0))
    for part in segments:
        spectra = [np.abs(np.fft.rfft(series[part], axis=0)) for series in (values, surrogate)]
        np.testing.assert_allclose(*spectra, atol=1e-9)
        assert abs(np.corrcoef(surrogate[part].T)[0, 1]) < 0.6


def test_the_same_seed_gives_the_same_graph():
    first, second = (JRNGC(**QUICK).fit(chain(n_slots=100)) for _ in range(2))
    np.testing.assert_array_equal(first.scores_, second.scores_)
    assert first.graph_ == second.graph_


def test_no_window_crosses_the_ends_of_a_segment():
    values = np.random.default_rng(0).standard_normal((80, 2))
    apart = np.vstack([values[:40], np.full((3, 2), 1e3), values[40:]])
    model = JRNGC(max_lag=3, hidden=8, n_steps=10)
    found = model.discover(values, [slice(0, 40), slice(40, 80)])
    part = model.discover(apart, [slice(0, 40), slice(43, 83)])
    np.testing.assert_array_equal(found.scores, part.scores)
    np.testing.assert_array_equal(found.adjacency, part.adjacency)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_lag": 0}, "max_lag"),
        ({"hidden": 0}, "hidden"),
        ({"strength": -1.0}, "strength"),
        ({"n_steps": 0}, "n_steps"),
    ],
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        JRNGC(**options).fit(chain())
