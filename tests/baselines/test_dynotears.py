"""DYNOTEARS: its formulas, the conditions of its optimum, and toys with a known answer."""

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.linear_model import Lasso

from causalformer.baselines import DYNOTEARS
from causalformer.baselines.dynotears import _cycles, _lagrangian
from causalformer.baselines.lagged import lagged_rows
from causalformer.datasets import make_var
from causalformer.errors import DataError, SettingsError


def test_the_lagrangian_is_its_definition_and_has_its_gradient():
    rng = np.random.default_rng(0)
    n, sparsity, multiplier, penalty = 3, 0.1, 0.7, 5.0
    columns = rng.standard_normal((40, 2 * n))
    parts = rng.uniform(0, 0.5, (2, 2 * n, n))
    moments = columns.T @ columns / 40

    def by_definition(flat):
        positive, negative = flat.reshape(2, 2 * n, n)
        weights = positive - negative
        error = columns[:, :n] - columns @ weights
        h = np.trace(expm(weights[:n] ** 2)) - n
        fit = (error**2).sum() / (2 * 40)
        return fit + multiplier * h + penalty / 2 * h**2 + sparsity * (positive + negative).sum()

    value, gradient = _lagrangian(parts.ravel(), moments, n, sparsity, multiplier, penalty)
    assert value == pytest.approx(by_definition(parts.ravel()))
    np.testing.assert_allclose(gradient, approx_fprime(parts.ravel(), by_definition), atol=1e-4)


def test_only_cycles_count_as_cycles():
    chain = np.triu(np.ones((4, 4)), 1)
    assert _cycles(chain)[0] == pytest.approx(0.0, abs=1e-12)
    chain[3, 0] = 0.1
    assert _cycles(chain)[0] > 1e-3


def test_finds_direction_and_lag_of_lagged_and_instantaneous_edges():
    noise = np.random.default_rng(1).standard_normal((600, 3))
    x, y = noise[:, 0], noise[:, 1].copy()
    y[2:] += x[:-2]
    series = {"y": y, "z": 0.8 * y + 0.5 * noise[:, 2], "x": x}
    found = {(e.cause, e.effect, e.lag) for e in DYNOTEARS().fit(series).graph_}
    assert found == {("x", "y", 2), ("y", "z", 0)}


def test_finds_the_true_graph_of_a_linear_system():
    made = make_var(5, 3000, density=0.25, random_state=0)
    graph = DYNOTEARS(sparsity=0.02).fit(made.series).graph_
    assert {(e.cause, e.effect, e.lag) for e in graph} == {
        (e.cause, e.effect, e.lag) for e in made.truth
    }


def test_the_instantaneous_part_has_no_cycle():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 6))
    model = DYNOTEARS(max_lag=1).fit(values)
    instantaneous = model.coefficients_[:, :, 0]
    strong = np.where(np.abs(instantaneous) > 1e-3, 1, 0)
    assert strong.sum() >= 5
    assert nx.is_directed_acyclic_graph(nx.DiGraph(strong))
    assert np.all(np.diag(instantaneous) == 0)


def test_the_lagged_part_is_the_lasso_of_what_the_instantaneous_part_leaves():
    values = make_var(3, 400, density=0.4, random_state=5).series.values
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    model = DYNOTEARS(max_lag=2, sparsity=0.05)
    model.discover(values, [slice(0, 400)])
    rows = lagged_rows(values, [slice(0, 400)], range(3), least=1)
    left = rows[:, 0] - rows[:, 0] @ model.coefficients_[:, :, 0]
    lasso = Lasso(alpha=0.05, fit_intercept=False, tol=1e-10)
    expected = lasso.fit(rows[:, 1:].reshape(len(rows), -1), left).coef_  # [effect, (lag, cause)]
    ours = model.coefficients_[:, :, 1:].transpose(1, 2, 0).reshape(3, -1)
    np.testing.assert_allclose(ours, expected, atol=2e-3)


def test_more_sparsity_gives_fewer_edges():
    made = make_var(4, 300, density=0.5, random_state=6)
    edges = [
        len(DYNOTEARS(sparsity=s, threshold=0).fit(made.series).graph_) for s in (0.01, 0.2, 2)
    ]
    assert edges[0] > edges[1] > edges[2] == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_lag": 0}, "max_lag"),
        ({"sparsity": -1}, "sparsity"),
        ({"threshold": -1}, "threshold"),
        ({"max_steps": 0}, "max_steps"),
        ({"tolerance": 0}, "tolerance"),
    ],
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        DYNOTEARS(**options).fit(np.eye(9, 2))


def test_too_few_rows_name_max_lag():
    with pytest.raises(DataError, match="4 rows, but `max_lag` needs at least 5"):
        DYNOTEARS().fit(np.eye(4, 2))


def test_it_follows_the_habits_of_scikit_learn():
    model = DYNOTEARS(max_lag=2)
    assert model.fit(make_var(2, 60, random_state=0).series) is model
    assert clone(model).get_params()["max_lag"] == 2
