"""VARLiNGAM: the causal order against plain loops, and systems with a known answer."""

import numpy as np
import pytest
from sklearn.base import clone

from causalformer.baselines import VARLiNGAM
from causalformer.baselines.varlingam import causal_order
from causalformer.datasets import make_var
from causalformer.errors import DataError, DataWarning, SettingsError


def entropy(u):
    """The approximation of Hyvärinen (1998), term by term."""
    first = np.mean(np.log(np.cosh(u))) - 0.37457
    second = np.mean(u * np.exp(-(u**2) / 2))
    return (1 + np.log(2 * np.pi)) / 2 - 79.047 * first**2 - 7.4129 * second**2


def standard(u):
    return (u - u.mean()) / u.std()


def order_by_loops(x):
    """DirectLiNGAM with one comparison at a time."""
    x, remaining, order = x.copy(), list(range(x.shape[1])), []
    while remaining:
        against = []
        for i in remaining:
            total = 0.0
            for j in remaining:
                if j == i:
                    continue
                a, b = standard(x[:, i]), standard(x[:, j])
                r = np.mean(a * b)
                i_causes_j = entropy(a) + entropy(standard(b - r * a))
                j_causes_i = entropy(b) + entropy(standard(a - r * b))
                total += min(0.0, j_causes_i - i_causes_j) ** 2
            against.append(total)
        first = remaining.pop(int(np.argmin(against)))
        order.append(first)
        for j in remaining:
            slope = np.cov(x[:, j], x[:, first])[0, 1] / np.var(x[:, first], ddof=1)
            x[:, j] = x[:, j] - slope * x[:, first]
    return order


def structural(n_series, n_slots, seed):
    """A system with strong instantaneous edges: series, instantaneous and lagged coefficients."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(n_series)
    now = np.triu(rng.choice((-0.8, 0.0, 0.8), (n_series, n_series)), 1)  # [cause, effect]
    now = now[np.ix_(shuffled, shuffled)]
    before = np.diag(rng.uniform(0.3, 0.5, n_series))
    x = np.zeros((n_slots, n_series))
    mix = np.linalg.inv(np.eye(n_series) - now)
    for t in range(1, n_slots):
        x[t] = (x[t - 1] @ before + rng.laplace(size=n_series)) @ mix
    return x, now, before


@pytest.mark.parametrize("seed", range(6))
def test_the_causal_order_is_that_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    x = rng.laplace(size=(200, 5)) @ rng.standard_normal((5, 5))
    assert causal_order(x) == order_by_loops(x)


@pytest.mark.parametrize("seed", range(4))
def test_finds_instantaneous_and_lagged_edges(seed):
    x, now, before = structural(5, 3000, seed)
    model = VARLiNGAM(max_lag=2, threshold=0.05).fit(x)
    spread = x.std(axis=0)
    scale = spread[:, None] / spread  # of coefficients between series of variance one
    np.testing.assert_allclose(model.coefficients_[:, :, 0], now * scale, atol=0.1)
    np.testing.assert_allclose(model.coefficients_[:, :, 1], before, atol=0.1)
    np.testing.assert_array_equal(model.graph_.summary(), (now != 0) | np.eye(5, dtype=bool))


def test_finds_direction_and_lag_on_a_toy():
    x, y = np.random.default_rng(0).standard_normal((2, 300))
    y[2:] += x[:-2]
    graph = VARLiNGAM().fit({"y": y, "x": x}).graph_
    assert [(e.cause, e.effect, e.lag) for e in graph] == [("x", "y", 2)]


def test_finds_the_true_graph_of_a_linear_system():
    made = make_var(5, 3000, density=0.25, noise_law="laplace", random_state=0)
    graph = VARLiNGAM().fit(made.series).graph_
    assert {(e.cause, e.effect, e.lag) for e in graph} == {
        (e.cause, e.effect, e.lag) for e in made.truth
    }


def test_the_order_falls_to_what_the_rows_allow():
    made = make_var(6, 35, random_state=1)
    model = VARLiNGAM(max_lag=6).fit(made.series)
    assert not model.coefficients_[:, :, 4:].any()
    with pytest.raises(DataError, match="19 rows, but `max_lag` needs at least 20"):
        VARLiNGAM(max_lag=6).fit(made.series.values[:19])


def test_a_constant_series_is_neither_cause_nor_effect():
    values = make_var(3, 200, random_state=1).series.values
    with pytest.warns(DataWarning, match="'flat'"):
        model = VARLiNGAM().fit({"a": values[:, 0], "flat": np.full(200, 0.1), "b": values[:, 1]})
    assert not model.scores_[1].any()
    assert not model.scores_[:, 1].any()


@pytest.mark.parametrize(
    ("options", "named"), [({"max_lag": 0}, "max_lag"), ({"threshold": -1}, "threshold")]
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        VARLiNGAM(**options).fit(np.eye(30, 2))


def test_it_follows_the_habits_of_scikit_learn():
    model = VARLiNGAM(max_lag=2)
    assert model.fit(make_var(2, 60, random_state=0).series) is model
    assert clone(model).get_params() == {"max_lag": 2, "threshold": 0.15}
