"""PCMCI and PCMCI+: what is handed to tigramite, and how its links are read."""

import inspect
import runpy
import sys

import numpy as np
import pytest
from sklearn.base import clone

from causalformer.baselines import PCMCI, PCMCIPlus
from causalformer.baselines.pcmci import _findings
from causalformer.datasets import make_var
from causalformer.errors import DataError, MissingExtraError, SettingsError

BOTH = pytest.mark.parametrize("method", [PCMCI, PCMCIPlus])


def toy(n_slots=300, seed=0):
    """Draw x → y at lag 2."""
    x, y = np.random.default_rng(seed).standard_normal((2, n_slots))
    y[2:] += x[:-2]
    return {"y": y, "x": x}


@BOTH
def test_finds_direction_and_lag_on_a_toy(method):
    graph = method(alpha=0.001).fit(toy()).graph_
    assert [(e.cause, e.effect, e.lag) for e in graph] == [("x", "y", 2)]


def test_pcmci_finds_the_true_graph_of_a_linear_system():
    made = make_var(5, 2000, density=0.25, random_state=0)
    graph = PCMCI(alpha=1e-4).fit(made.series).graph_
    assert {(e.cause, e.effect, e.lag) for e in graph} == {
        (e.cause, e.effect, e.lag) for e in made.truth
    }


@pytest.mark.parametrize("method", [PCMCI, PCMCIPlus])
def test_a_correction_for_many_tests_leaves_fewer_edges(method):
    made = make_var(6, 200, random_state=1)
    assert len(method(fdr=True, alpha=0.1).fit(made.series).graph_) < len(
        method(alpha=0.1).fit(made.series).graph_
    )


def test_an_instantaneous_edge_without_evidence_of_its_direction_is_not_oriented():
    x, y = np.random.default_rng(1).standard_normal((2, 300))
    model = PCMCIPlus(alpha=0.001).fit({"b": x + y, "a": x})
    assert [e.oriented for e in model.graph_] == [False]
    assert model.scores_[0, 1] == pytest.approx(model.scores_[1, 0])


def test_a_coin_and_not_the_order_of_columns_decides_what_tests_leave_open():
    x, y = np.random.default_rng(1).standard_normal((2, 300))
    seeds = [PCMCIPlus(alpha=0.001, random_state=s) for s in range(8)]
    causes = {next(iter(m.fit({"b": x + y, "a": x}).graph_)).cause for m in seeds}
    assert causes == {"a", "b"}


def test_an_instantaneous_edge_is_oriented_by_lagged_ones():
    noise = np.random.default_rng(0).standard_normal((400, 3))
    x, y = noise[:, 0], noise[:, 1].copy()
    y[2:] += x[:-2]
    graph = PCMCIPlus(alpha=0.001).fit({"z": y + noise[:, 2], "y": y, "x": x}).graph_
    assert {(e.cause, e.effect, e.lag, e.oriented) for e in graph} == {
        ("x", "y", 2, True),
        ("y", "z", 0, True),
    }


def test_links_are_read_one_lag_per_pair():
    marks = np.full((3, 3, 3), "", dtype="<U3")
    strengths = np.full((3, 3, 3), 0.05)
    marks[0, 0, 2], strengths[0, 0, 2] = "-->", 0.3
    marks[0, 1, 0], marks[1, 0, 0] = "-->", "<--"
    strengths[0, 1, 0] = strengths[1, 0, 0] = 0.9
    marks[0, 1, 1], strengths[0, 1, 1] = "-->", 0.4
    marks[1, 2, 0] = marks[2, 1, 0] = "x-x"
    strengths[1, 2, 0] = strengths[2, 1, 0] = 0.5
    marks[2, 1, 2], strengths[2, 1, 2] = "-->", 0.2
    strengths[2, 0, 1] = 0.1  # no link
    found = _findings(marks, strengths, np.triu(np.ones((3, 3), dtype=bool), 1))
    assert found.adjacency.tolist() == [
        [True, True, False],
        [False, False, True],
        [False, True, False],
    ]
    assert found.lags[0, 0] == 2
    assert found.lags[0, 1] == 0  # the stronger of two
    assert found.scores[1, 0] == 0.05  # an arrow the other way says nothing for this one
    assert found.lags[1, 2] == 0
    assert found.lags[2, 1] == 2  # of a link without direction only one way is an edge
    assert found.oriented.tolist() == [[True, True, True], [True, True, False], [True, True, True]]
    assert found.lags[2, 0] == 1
    assert np.all(found.lags.diagonal() >= 1)


@BOTH
def test_the_order_of_unbroken_stretches_does_not_matter(method):
    values = make_var(3, 180, random_state=2).series.values
    one = method().discover(values, [slice(0, 100), slice(100, 180)])
    turned = np.vstack([values[100:], values[:100]])
    other = method().discover(turned, [slice(0, 80), slice(80, 180)])
    np.testing.assert_allclose(one.scores, other.scores)
    assert not np.allclose(one.scores, method().discover(values, [slice(0, 180)]).scores)


@BOTH
def test_too_short_stretches_are_refused(method):
    with pytest.raises(DataError, match="twice `max_lag`"):
        method().discover(np.zeros((40, 2)), [slice(i, i + 5) for i in range(0, 40, 5)])


@BOTH
def test_missing_values_are_left_out(method):
    series = toy(400)
    series["x"][[5, 70, 200]] = np.nan
    series["y"][::10] = np.nan
    model = method(alpha=0.001).fit(series)
    assert [(e.cause, e.effect, e.lag) for e in model.graph_] == [("x", "y", 2)]
    assert np.isfinite(model.scores_).all()


@BOTH
def test_the_same_series_give_the_same_graph_and_print_nothing(method, capsys):
    made = make_var(3, 150, random_state=3)
    assert method().fit(made.series).graph_ == method().fit(made.series).graph_
    assert capsys.readouterr() == ("", "")


@BOTH
def test_a_missing_package_is_named(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "tigramite", None)
    with pytest.raises(MissingExtraError, match=r"pip install causalformer\[pcmci\]"):
        method().fit(toy())


def test_the_module_can_be_imported_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tigramite", None)
    assert runpy.run_path(inspect.getfile(PCMCI))["PCMCI"].method == "pcmci"


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (PCMCI(max_lag=0), "max_lag"),
        (PCMCI(alpha=0), "alpha"),
        (PCMCI(pc_alpha=1), "pc_alpha"),
        (PCMCIPlus(alpha=2), "alpha"),
    ],
)
def test_options_out_of_range_are_named(model, named):
    with pytest.raises(SettingsError, match=named):
        model.fit(toy())


@BOTH
def test_it_follows_the_habits_of_scikit_learn(method):
    model = method(max_lag=2)
    assert model.fit(toy(60)) is model
    assert clone(model).get_params()["max_lag"] == 2
