"""What may not change a graph: units, names, the order of the columns."""

import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalformer import CausalFormer

TINY = {"max_epochs": 3, "n_channels": 4}
NAMES = ["A", "B", "C", "D"]
FIGURES = ("p_value", "q_value", "relative_gain", "strength", "lag_profile", "terms_p_value")
WITHIN = ("contemporaneous_p_value", "contemporaneous_q_value", "partial_correlation")

few = settings(max_examples=6)
pytestmark = pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")


def frame(gaps=False):
    x = np.random.default_rng(3).standard_normal((200, 4))
    for t in range(2, 200):
        x[t] += 0.4 * x[t - 1]
        x[t, 1] += 0.8 * x[t - 2, 0]
        x[t, 3] += 0.5 * x[t - 1, 1] ** 2
    if gaps:
        x[np.random.default_rng(4).random(x.shape) < 0.1] = np.nan
    return pd.DataFrame(x, columns=NAMES)


def fit(x, **options):
    return CausalFormer(**({"max_lag": 2, "settings": TINY} | options)).fit(x)


def rows(model, rename=None):
    """The edges with their figures, in an order that no name decides."""
    old = {new: name for name, new in (rename or {}).items()}
    return {
        (old.get(e.cause, e.cause), old.get(e.effect, e.effect), e.lag): (
            *(e.score, e.p_value, e.q_value, e.strength, e.oriented),
        )
        for e in model.graph_
    }


def in_order(matrix, order):
    return matrix[np.ix_(order, order)]


@pytest.fixture(scope="module", params=[False, True], ids=["complete", "gaps"])
def gaps(request):
    return request.param


@pytest.fixture(scope="module")
def plain(gaps):
    return fit(frame(gaps))


class TestOrderOfColumns:
    @few
    @given(order=st.permutations(range(4)))
    def test_the_graph_is_the_same(self, plain, gaps, order):
        columns = [NAMES[i] for i in order]
        model = fit(frame(gaps)[columns])
        assert model.graph_.names == tuple(columns)
        assert rows(model) == rows(plain)
        for name in FIGURES + WITHIN:
            np.testing.assert_allclose(
                model.scores_[name], in_order(plain.scores_[name], order), rtol=1e-9, atol=1e-12
            )
        for name, figures in plain.diagnostics_.arrays().items():
            np.testing.assert_allclose(model.diagnostics_.arrays()[name], figures[list(order)])
        assert len(model.diagnostics_.warnings) == len(plain.diagnostics_.warnings)

    def test_so_are_predictions_and_explanations(self, plain, gaps):
        columns = ["C", "A", "D", "B"]
        model = fit(frame(gaps)[columns])
        predicted = model.predict(frame(gaps)[columns])
        pd.testing.assert_frame_equal(predicted[NAMES], plain.predict(frame(gaps)))
        key = ["effect", "cause", "lag"]
        first, second = (m.explain(100).to_frame().set_index(key) for m in (plain, model))
        pd.testing.assert_frame_equal(first.sort_index(), second.sort_index())

    def test_a_saved_model_knows_its_order(self, plain, gaps, tmp_path):
        loaded = CausalFormer.load(plain.save(tmp_path / "m"))
        pd.testing.assert_frame_equal(loaded.predict(frame(gaps)), plain.predict(frame(gaps)))
        np.testing.assert_array_equal(
            loaded.explain(100, frame(gaps)).relevance, plain.explain(100).relevance
        )

    def test_the_same_with_refits(self):
        columns = ["C", "A", "D", "B"]
        first, second = fit(frame(), stability=2), fit(frame()[columns], stability=2)
        assert rows(first) == rows(second)
        frequency = [{(e.cause, e.effect): e.frequency for e in m.graph_} for m in (first, second)]
        assert str(frequency[0]) == str({pair: frequency[1][pair] for pair in frequency[0]})

    def test_recordings(self):
        parts = [frame().iloc[:90], frame().iloc[90:]]
        columns = ["C", "A", "D", "B"]
        assert rows(fit(parts)) == rows(fit([part[columns] for part in parts]))


class TestNames:
    @few
    @given(
        new=st.lists(st.text(string.ascii_letters, min_size=1), min_size=4, max_size=4, unique=True)
    )
    def test_names_change_nothing_but_names(self, plain, gaps, new):
        rename = dict(zip(NAMES, new, strict=True))
        model = fit(frame(gaps).rename(columns=rename), max_lag=2)
        assert model.graph_.names == tuple(new)
        assert rows(model, rename) == rows(plain)
        np.testing.assert_array_equal(model.scores_["p_value"], plain.scores_["p_value"])


class TestUnits:
    units = st.tuples(
        st.lists(st.sampled_from([2.0**-30, 0.5, 1.0, 3.0, 1e6]), min_size=4, max_size=4),
        st.lists(st.sampled_from([0.0, -3.0, 40.0]), min_size=4, max_size=4),
    )

    @few
    @given(units=units)
    def test_a_positive_scale_and_a_shift_change_nothing(self, plain, gaps, units):
        scale, shift = units
        moved = (frame(gaps) + np.array(shift)) * np.array(scale)
        model = fit(moved)
        for name in FIGURES:
            np.testing.assert_array_equal(model.scores_[name], plain.scores_[name])
        for name in WITHIN:
            np.testing.assert_allclose(model.scores_[name], plain.scores_[name], atol=1e-6)
        assert {place: figures[:2] for place, figures in rows(model).items() if place[2]} == {
            place: figures[:2] for place, figures in rows(plain).items() if place[2]
        }
        assert rows(model).keys() == rows(plain).keys()

    def test_predictions_come_in_the_new_units(self, plain, gaps):
        moved = frame(gaps) * 1000 + 7
        expected = plain.predict(frame(gaps)) * 1000 + 7
        pd.testing.assert_frame_equal(fit(moved).predict(moved), expected, rtol=1e-5)
