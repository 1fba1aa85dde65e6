"""Penalised autoregressions against their definitions, and where a plain one has no answer."""

import numpy as np
import pytest
from sklearn.base import clone

from causalformer.baselines import VarGranger, VarLasso, VarRidge
from causalformer.baselines.var_penalised import _best_set, _lasso_path, _Ridge
from causalformer.datasets import make_random_system
from causalformer.errors import DataError, DataWarning, SettingsError
from causalformer.metrics import evaluate

BOTH = pytest.mark.parametrize("method", [VarLasso, VarRidge])


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    past = rng.standard_normal((60, 8)) @ (np.eye(8) + 0.3)
    past = (past - past.mean(0)) / past.std(0)
    effects = past[:, :2] @ np.array([[1.0, 0.0], [0.5, 0.0]]) + rng.standard_normal((60, 2))
    return past, effects - effects.mean(0)


def test_the_set_with_the_least_extended_criterion_is_chosen_and_pruned(regression):
    past, effects = regression
    y = effects[:, 0]
    gram, shared = past.T @ past, past.T @ y
    _, path = _lasso_path(past, y, gram, shared)
    n, p = past.shape

    def figure(columns):
        if not len(columns):
            return n * np.log(y @ y / n)
        beta = np.linalg.lstsq(past[:, columns], y, rcond=None)[0]
        rss = ((y - past[:, columns] @ beta) ** 2).sum()
        return n * np.log(rss / n) + len(columns) * (np.log(n) + 2 * np.log(p))

    sets = [tuple(np.flatnonzero(c)) for c in path.T]
    best = list(min(sets, key=lambda s: figure(list(s))))
    expected = [j for j in best if figure([k for k in best if k != j]) > figure(best)]
    assert _best_set(path, gram, shared, y).tolist() == expected
    assert 0 in expected


def test_z_values_are_those_of_the_definition(regression):
    past, effects = regression
    ridge = _Ridge(past, effects)
    n, p = past.shape
    known = np.zeros((p, 2))
    known[1, 0] = 0.4
    (penalty,) = [  # the one that gives the same coefficients
        n * share
        for share in np.geomspace(1e-3, 1e2, 26)
        if np.allclose(
            np.linalg.solve(past.T @ past + n * share * np.eye(p), past.T @ effects), ridge.beta
        )
    ]
    inverse = np.linalg.inv(past.T @ past + penalty * np.eye(p))
    projection = inverse @ past.T @ past
    spread = np.sqrt(np.diag(inverse @ past.T @ past @ inverse))
    z = ridge.z_values(known, np.array([1.0, 4.0]))
    for j in range(p):
        for e, noise in enumerate((1.0, 2.0)):
            others = sum(projection[j, k] * known[k, e] for k in range(p) if k != j)
            expected = abs(ridge.beta[j, e] - others) / (spread[j] * noise)
            assert z[j, e] == pytest.approx(expected)
    hat = past @ inverse @ past.T
    left = ((effects - hat @ effects) ** 2).sum(0)
    np.testing.assert_allclose(ridge.noise, left / np.trace((np.eye(n) - hat) @ (np.eye(n) - hat)))


@BOTH
def test_more_regressors_than_rows_are_no_obstacle(method):
    made = make_random_system(40, 110, n_edges=20, links="linear", coupling=(0.8, 0.9), max_lag=2,
                              random_state=0)  # fmt: skip
    with pytest.raises(DataError, match="max_lag"):
        VarGranger().fit(made.series)
    model = method().fit(made.series)
    found = evaluate(model.graph_, made.truth, model.scores_)
    assert found.off_diagonal_f1 > 0.8
    assert found.off_diagonal_auroc > 0.95
    assert model.parity_graph_.names == model.graph_.names


@BOTH
def test_noise_has_hardly_an_edge(method):
    rng = np.random.default_rng(1)
    graphs = [method().fit(rng.standard_normal((150, 10))).graph_ for _ in range(10)]
    assert sum(len(graph) for graph in graphs) <= 5  # of 1000 pairs


@BOTH
def test_constant_series_and_copies_are_taken(method):
    x = make_random_system(3, 200, random_state=0).series.values
    with pytest.warns(DataWarning, match="constant|identical"):
        model = method().fit(np.column_stack([x, x[:, 0], np.full(200, 0.1)]))
    assert np.isfinite(model.scores_).all()
    summary = model.graph_.summary()
    assert not summary[4].any()
    assert not summary[:, 4].any()


@BOTH
def test_options_and_rows_out_of_range_are_named(method):
    noise = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(SettingsError, match="max_lag"):
        method(max_lag=0).fit(noise)
    with pytest.raises(DataError, match="12 rows, but `max_lag` needs at least 13"):
        method().fit(noise[:12])
    with pytest.raises(SettingsError, match="alpha"):
        VarRidge(alpha=1.0).fit(noise)


@BOTH
def test_they_follow_the_habits_of_scikit_learn(method):
    made = make_random_system(4, 150, random_state=0)
    model = method(max_lag=2)
    assert model.fit(made.series) is model
    assert clone(model).get_params()["max_lag"] == 2
    assert clone(model).fit(made.series).graph_ == model.graph_
