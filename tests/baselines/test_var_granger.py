"""The VAR test against statsmodels, against its definition, and at the edges of what it can do."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.base import clone

from causalformer.baselines import VarGranger
from causalformer.baselines.granger import granger_tests
from causalformer.datasets import make_var
from causalformer.errors import DataError, DataWarning, SettingsError


def lagged(values, max_lag, causes):
    """Regressors of the given causes, by a plain loop."""
    rows = range(max_lag, len(values))
    return np.array(
        [[values[t - lag, j] for j in causes for lag in range(1, max_lag + 1)] for t in rows]
    )


def by_definition(values, max_lag, cause, effect):
    """F from two regressions, with ranks in place of counts of columns."""
    n_series = values.shape[1]
    y = values[max_lag:, effect]
    fits = []
    for causes in (range(n_series), [j for j in range(n_series) if j != cause]):
        x = np.column_stack([np.ones(len(y)), lagged(values, max_lag, causes)])
        beta, _, rank, _ = np.linalg.lstsq(x, y, rcond=1e-12)
        fits.append((float(((y - x @ beta) ** 2).sum()), int(rank)))
    (rss1, rank1), (rss0, rank0) = fits
    if rank1 == rank0:
        return 0.0
    return ((rss0 - rss1) / (rank1 - rank0)) / (rss1 / (len(y) - rank1))


@pytest.fixture(scope="module")
def made():
    return make_var(4, 150, density=0.4, random_state=3)


def test_equals_the_f_test_of_statsmodels(made):
    values, p = made.series.values * [1.0, 1e6, 1e-6, 3.0] + [0.0, 5.0, 0.0, 1e3], 2
    tests = granger_tests(values, p)
    for cause in range(4):
        for effect in range(4):
            y = values[p:, effect]
            full = sm.OLS(y, sm.add_constant(lagged(values, p, range(4)))).fit()
            others = [j for j in range(4) if j != cause]
            without = sm.OLS(y, sm.add_constant(lagged(values, p, others))).fit()
            f, p_value, n_tested = full.compare_f_test(without)
            assert n_tested == p
            assert tests.f[cause, effect] == pytest.approx(f, rel=1e-6)
            assert np.exp(tests.log_p[cause, effect]) == pytest.approx(p_value, rel=1e-6)
            t = np.abs(full.tvalues[1 + cause * p : 1 + (cause + 1) * p])
            assert tests.lag[cause, effect] == t.argmax() + 1


def test_finds_the_true_graph_of_a_linear_system():
    made = make_var(5, 3000, density=0.25, random_state=0)
    graph = VarGranger(alpha=1e-4).fit(made.series).graph_
    assert {(e.cause, e.effect, e.lag) for e in graph} == {
        (e.cause, e.effect, e.lag) for e in made.truth
    }


def test_false_edges_are_as_frequent_as_alpha_says():
    rng = np.random.default_rng(0)
    p_values = [VarGranger().fit(rng.standard_normal((200, 4))).p_values_ for _ in range(60)]
    assert np.mean(np.array(p_values) < 0.1) == pytest.approx(0.1, abs=0.03)


def test_corrected_edges_are_those_of_benjamini_and_hochberg(made):
    from scipy.stats import false_discovery_control

    model = VarGranger(alpha=0.1, fdr=True).fit(made.series)
    off = ~np.eye(made.series.n_series, dtype=bool)
    expected = false_discovery_control(model.p_values_[off]) <= 0.1
    np.testing.assert_array_equal(model.graph_.summary()[off], expected)


@pytest.mark.parametrize("form", ["copy", "delayed copy", "sum of two", "constant"])
def test_collinear_series_give_exactly_the_f_test_of_leaving_one_out(made, form):
    x = made.series.values
    extra = {
        "copy": x[:, 1],
        "delayed copy": np.roll(x[:, 1], 1),
        "sum of two": x[:, 0] + x[:, 1],
        "constant": np.full(len(x), 0.1),
    }[form]
    values = np.column_stack([x, extra])[1:]
    f = granger_tests(values, 3).f
    for cause in range(5):
        for effect in range(4):
            expected = by_definition(values, 3, cause, effect)
            assert f[cause, effect] == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_a_constant_series_is_neither_cause_nor_effect(made):
    frame = {"flat": np.full(150, 0.1), "a": made.series.values[:, 0], "b": np.arange(150) % 7}
    with pytest.warns(DataWarning, match="'flat'"):
        model = VarGranger().fit(frame)
    assert np.all(model.p_values_[0] == 1)
    assert np.all(model.p_values_[:, 0] == 1)
    assert np.all(model.scores_[0] == 0)
    assert not np.signbit(model.scores_).any()


def test_scores_stay_finite_and_in_order_where_p_underflows():
    rng = np.random.default_rng(0)
    driver = rng.standard_normal(3001)
    noise = rng.standard_normal(3000)
    series = [driver[:-1] + level * noise for level in (0.0, 1e-3, 1e-2, 1e-1)]
    model = VarGranger(max_lag=1).fit(np.column_stack([driver[1:], *series]))
    assert np.isfinite(model.scores_).all()
    assert model.p_values_[0, 1] == 0.0
    assert np.all(np.diff(model.scores_[0, 1:]) < 0)


def test_log_p_goes_on_smoothly_where_floats_end():
    from scipy.stats import f as f_law

    from causalformer.baselines.granger import _log_p

    tested, freedom = np.full((200, 1), 3), 500
    f = np.linspace(1.0, 8e3, 200)[:, None]
    exact = f_law.logsf(f, 3, freedom)
    ours = _log_p(f, tested, freedom)
    seen = np.isfinite(exact) & (exact > -700)
    np.testing.assert_allclose(ours[seen], exact[seen], rtol=1e-10)
    assert np.all(np.diff(ours[:, 0]) < 0)
    second = np.diff(ours[:, 0], 2)[5:]
    assert np.all(second > 0)  # convex in f: no step where the formula changes


def test_too_few_rows_name_max_lag():
    values = np.random.default_rng(0).standard_normal((13, 3))
    VarGranger(max_lag=2).fit(values[:10])
    with pytest.raises(DataError, match="13 rows, but `max_lag` needs at least 14"):
        VarGranger(max_lag=3).fit(values)


@pytest.mark.parametrize(
    ("options", "named"), [({"max_lag": 0}, "max_lag"), ({"alpha": 0}, "alpha")]
)
def test_options_out_of_range_are_named(options, named, made):
    with pytest.raises(SettingsError, match=named):
        VarGranger(**options).fit(made.series)


def test_it_follows_the_habits_of_scikit_learn(made):
    model = VarGranger(max_lag=2, alpha=0.05)
    assert model.fit(made.series) is model
    assert clone(model).get_params() == {"max_lag": 2, "alpha": 0.05, "fdr": False}
    assert clone(model).fit(made.series).graph_ == model.graph_
