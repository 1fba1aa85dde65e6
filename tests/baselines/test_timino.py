"""TiMINo: its test of independence, chains, and cycles that it must leave undecided."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from causalformer.baselines import TiMINo
from causalformer.baselines.lagged import lagged_rows
from causalformer.datasets import make_var
from causalformer.errors import DataError, SettingsError


def chain(n_slots=500, seed=0):
    """Draw x → y at lag 2 and y → z at lag 1, all with a memory."""
    x, y, z = np.random.default_rng(seed).standard_normal((3, n_slots))
    for t in range(2, n_slots):
        x[t] += 0.5 * x[t - 1]
        y[t] += 0.3 * y[t - 1] + 0.7 * x[t - 2]
        z[t] += 0.4 * z[t - 1] + 0.7 * y[t - 1]
    return {"z": z, "x": x, "y": y}


@pytest.mark.parametrize("instantaneous", [False, True])
def test_finds_the_direction_of_a_chain(instantaneous):
    model = TiMINo(instantaneous=instantaneous, alpha=0.01).fit(chain())
    assert {(e.cause, e.effect) for e in model.graph_} == {("x", "y"), ("y", "z")}
    assert model.sinks_ == (0, 2)
    assert model.undecided_ == (1,)
    assert model.graph_.metadata["lags"] is False


def test_instantaneous_edges_need_the_option():
    x, y = np.random.default_rng(1).standard_normal((2, 600))
    for t in range(1, 600):
        x[t] += 0.8 * x[t - 1]
    y += x
    assert [(e.cause, e.effect) for e in TiMINo().fit({"x": x, "y": y}).graph_] == [("x", "y")]
    without = TiMINo(instantaneous=False).fit({"x": x, "y": y})
    assert without.undecided_ == (0, 1)


def test_a_cycle_stays_undecided():
    x, y = np.random.default_rng(2).standard_normal((2, 500))
    for t in range(1, 500):
        x[t] += 0.5 * y[t - 1]
        y[t] -= 0.5 * x[t - 1]
    model = TiMINo().fit({"x": x, "y": y})
    assert model.undecided_ == (0, 1)
    assert not model.graph_.edges
    assert not model.scores_.any()


@pytest.mark.parametrize("instantaneous", [False, True])
def test_the_test_is_that_of_plain_partial_correlations(instantaneous):
    values = np.column_stack(list(chain(80).values()))
    around = lagged_rows(values, [slice(0, 80)], range(-2, 3), least=1)
    model = TiMINo(max_lag=2, instantaneous=instantaneous)
    effect, causes = 0, [0, 1]
    columns = [around[:, 2 + lag, j] for lag in (1, 2) for j in causes]
    columns += [around[:, 2, 1]] * instantaneous
    x = np.column_stack(columns)

    def rest(y):
        return y - x @ np.linalg.lstsq(x, y, rcond=None)[0]

    residual, largest, tests = rest(around[:, 2, effect]), 0.0, 0
    for j in (1, 2):
        for place in range(5):
            tests += 1
            other = rest(around[:, place, j])
            if np.abs(other).max() > 1e-8:
                largest = max(largest, abs(np.corrcoef(residual, other)[0, 1]))
    z = largest * np.sqrt(len(x) - x.shape[1])
    expected = min(0.0, np.log(2 * tests * norm.sf(z)))
    found = model._log_p(around, effect, causes, [0, 1, 2])
    assert found == pytest.approx(expected, rel=1e-6)
    assert found < 0


def test_false_dependence_is_not_more_frequent_than_alpha_says():
    rng = np.random.default_rng(3)
    models = [TiMINo(max_lag=2).fit(rng.standard_normal((100, 3))) for _ in range(50)]
    assert np.mean([model.undecided_ != model.undecided_[:1] for model in models]) < 0.05
    assert np.mean([model.graph_.summary().any() for model in models]) < 0.2


def test_many_series_with_few_rows_are_refused():
    values = np.random.default_rng(0).standard_normal((200, 50))
    with pytest.raises(DataError, match="200 rows, but `max_lag` needs at least 208"):
        TiMINo().fit(values)


@pytest.mark.parametrize(
    ("options", "named"), [({"max_lag": 0}, "max_lag"), ({"alpha": 1}, "alpha")]
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        TiMINo(**options).fit(np.eye(30, 2))


def test_it_follows_the_habits_of_scikit_learn():
    model = TiMINo(max_lag=2)
    assert model.fit(make_var(2, 60, random_state=0).series) is model
    assert clone(model).get_params() == {"max_lag": 2, "alpha": 0.05, "instantaneous": True}
