"""Series with gaps, from data to graph: nothing is learned from or judged by what is missing."""

import json

import numpy as np
import pandas as pd
import pytest

from causalformer import CausalFormer
from causalformer.errors import DataError, DataWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore:missing values in column:causalformer.errors.DataWarning"
)

TINY = {"max_epochs": 10, "n_channels": 8}
LEAST = {"max_epochs": 3, "n_channels": 4}
SMALL_PAPER = {"window": 4, "d_model": 4, "n_heads": 1, "d_ffn": 4, "max_epochs": 1}
TRUE = {("A", "A"), ("A", "B"), ("B", "C"), ("C", "C")}
GAPS = ("scattered", "blocks")


def complete(n_slots=400, seed=0):
    """A and C remember; A drives B after two slots, B drives C after one."""
    noise = np.random.default_rng(seed).standard_normal((n_slots, 3))
    x = np.zeros((n_slots, 3))
    for t in range(2, n_slots):
        x[t] = [0.5 * x[t - 1, 0], 0.7 * x[t - 2, 0], 0.4 * x[t - 1, 2] - 0.6 * x[t - 1, 1]]
        x[t] += noise[t]
    return pd.DataFrame(x, columns=["A", "B", "C"])


def gappy(kind="scattered", n_slots=400):
    frame = complete(n_slots)
    if kind == "scattered":
        frame = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.15)
    else:
        for column, first in (("A", 60), ("B", 150), ("C", 160)):
            frame.loc[first : first + 25, column] = np.nan
    return frame


def tiny(**changes):
    return CausalFormer(**({"max_lag": 3, "settings": TINY} | changes))


def pairs(model):
    return {(edge.cause, edge.effect) for edge in model.graph_}


@pytest.fixture(scope="module", params=GAPS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind):
    return tiny().fit(gappy(kind))


class TestGraph:
    def test_the_edges_of_the_complete_series_are_found(self, fitted):
        assert pairs(fitted) == TRUE
        assert {(e.cause, e.effect): e.lag for e in fitted.graph_} == {
            **dict.fromkeys([("A", "A"), ("B", "C"), ("C", "C")], 1),
            ("A", "B"): 2,
        }

    def test_the_same_seed_gives_the_same_graph(self, fitted, kind):
        again = tiny().fit(gappy(kind))
        assert again.graph_ == fitted.graph_
        for name, matrix in fitted.scores_.items():
            np.testing.assert_array_equal(again.scores_[name], matrix)
            assert np.isfinite(matrix).all()

    def test_data_are_left_as_they_were(self, kind):
        frame = gappy(kind, 150)
        before = frame.copy()
        tiny().fit(frame)
        pd.testing.assert_frame_equal(frame, before)

    def test_the_graph_says_how_much_was_missing(self, fitted, kind):
        facts, share = fitted.graph_.metadata, gappy(kind).isna().mean()
        assert facts["missing_share"] == pytest.approx(share.mean(), abs=1e-6)
        assert facts["missing"] == "mask"
        assert (facts["n_slots"], facts["n_recordings"], facts["n_segments"]) == (400, 1, 1)
        json.dumps(dict(facts))

    def test_diagnostics_say_what_the_tests_rest_on(self, fitted, kind):
        found, frame = fitted.diagnostics_, gappy(kind)
        np.testing.assert_allclose(found.observed, 1 - frame.isna().mean())
        assert ((found.counted > 0) & (found.counted <= frame.iloc[3:].notna().sum())).all()
        assert (found.counted < 397).all()
        assert (found.r2 > 0).all()

    def test_missing_values_are_said(self):
        frame = complete(200)
        frame.loc[50:59, "B"] = np.nan
        with pytest.warns(DataWarning, match=r"missing values in column 'B' \(5 %\)"):
            model = tiny().fit(frame)
        assert len(model.diagnostics_.warnings) == 1

    def test_complete_series_count_throughout(self):
        found = tiny().fit(complete(200)).diagnostics_
        assert found.observed.tolist() == [1, 1, 1]
        assert found.counted.tolist() == [197, 197, 197]

    def test_lags_can_be_chosen_from_gappy_series(self):
        model = tiny(max_lag="auto").fit(gappy())
        assert model.diagnostics_.max_lag >= 2
        assert pairs(model) == TRUE

    def test_stability_draws_from_what_is_there(self):
        frame = tiny(stability=2, settings=LEAST).fit(gappy()).graph_.to_frame()
        assert set(frame["frequency"]) <= {0.0, 0.5, 1.0}

    def test_edges_within_the_slot_are_found_between_gaps(self):
        x = np.random.default_rng(1).laplace(size=(600, 3))
        x[1:, 2] += 0.5 * x[:-1, 2]
        x[:, 1] += 0.8 * x[:, 0]
        x[np.random.default_rng(2).random(x.shape) < 0.1] = np.nan
        model = tiny().fit(x)
        assert ("x0", "x1", 0) in {(e.cause, e.effect, e.lag) for e in model.graph_}

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_gaps_in_noise_invent_no_edges(self):
        found = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal((200, 3))
            noise[rng.random(noise.shape) < 0.4] = np.nan
            found.append(pairs(tiny(instantaneous=False, settings=LEAST).fit(noise)))
        assert sum(map(bool, found)) <= 3  # at most one of ten is expected in each family

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_noise_of_which_half_is_missing_has_no_memory(self):
        found = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal((150, 3))
            noise[rng.random(noise.shape) < 0.5] = np.nan
            found.append(pairs(tiny(instantaneous=False, settings=LEAST).fit(noise)))
        assert sum(map(bool, found)) <= 3

    def test_a_missing_mediator_does_not_make_its_cause_a_direct_one(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((500, 3))
        for t in range(1, 500):
            x[t, 1] = 0.9 * x[t - 1, 0] + 0.4 * x[t, 1]
            x[t, 2] = 0.9 * x[t - 1, 1] + 0.4 * x[t, 2]
        x[rng.random(500) < 0.3, 1] = np.nan
        found = pairs(tiny().fit(x))
        assert {("x0", "x1"), ("x1", "x2")} <= found
        assert ("x0", "x2") not in found


class TestPrediction:
    def test_there_is_one_wherever_there_is_enough_past(self, fitted, kind):
        frame = gappy(kind)
        predicted = fitted.predict(frame)
        assert predicted.shape == frame.shape
        assert list(predicted.columns) == list(frame.columns)
        assert predicted.iloc[:3].isna().all().all()
        assert predicted.iloc[3:].notna().all().all()
        error = ((complete() - predicted) ** 2).mean() / complete().var()
        assert (error < [0.95, 0.9, 0.8]).all()

    @pytest.mark.parametrize("row", [20, 61, 70, 155])
    def test_a_change_moves_no_prediction_up_to_its_own_row(self, fitted, kind, row):
        frame = gappy(kind, 200)
        changed = frame.copy()
        changed.iloc[row:] += 1.0
        before, after = fitted.predict(frame), fitted.predict(changed)
        pd.testing.assert_frame_equal(after.iloc[: row + 1], before.iloc[: row + 1])

    def test_a_saved_model_predicts_the_same(self, fitted, kind, tmp_path):
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        frame = gappy(kind)
        pd.testing.assert_frame_equal(loaded.predict(frame), fitted.predict(frame))
        pd.testing.assert_frame_equal(
            loaded.diagnostics_.to_frame(), fitted.diagnostics_.to_frame()
        )
        assert loaded.missing == "mask"

    def test_a_model_of_complete_series_takes_gappy_ones(self, kind):
        model = tiny().fit(complete(200))
        frame = gappy(kind, 200)
        assert model.predict(frame).iloc[3:].notna().all().all()
        found = model.explain(100, frame)
        assert found.conservation_error < 1e-5

    def test_an_explanation_shows_what_was_missing(self, fitted, kind):
        frame = gappy(kind)
        row = int(frame["A"].isna().to_numpy().nonzero()[0][5]) + 1
        found = fitted.explain(row)
        assert np.isnan(found.value[0, 0])
        assert np.isfinite(found.relevance).all()
        assert found.conservation_error < 1e-5


class TestFilling:
    @pytest.mark.parametrize("missing", ["interpolate", "previous", "mean"])
    def test_values_can_be_filled_in_first(self, missing):
        frame = gappy(n_slots=200)
        filled = {
            "interpolate": frame.interpolate(limit_area="inside"),
            "previous": frame.ffill(),
            "mean": frame.fillna(frame.mean()),
        }[missing]
        model = tiny(missing=missing, settings=LEAST).fit(frame)
        plain = tiny(missing=missing, settings=LEAST).fit(filled)
        np.testing.assert_array_equal(model.scores_["p_value"], plain.scores_["p_value"])
        pd.testing.assert_frame_equal(model.predict(frame), plain.predict(filled))
        assert model.graph_.metadata["missing"] == missing

    def test_a_saved_model_keeps_the_choice(self, tmp_path):
        model = tiny(missing="previous").fit(gappy(n_slots=150))
        assert CausalFormer.load(model.save(tmp_path / "m")).missing == "previous"


class TestPaper:
    def model(self, **changes):
        return CausalFormer("paper-fmri", settings=SMALL_PAPER | changes)

    def test_windows_with_gaps_are_left_out(self):
        frame = gappy(n_slots=150)
        frame.iloc[100:110] = 1e6 * frame.iloc[100:110].mask(frame.iloc[100:110].notna())
        model = self.model().fit(frame)
        assert np.isfinite(model.scores_).all()
        predicted = model.predict(frame)
        whole = frame.notna().all(axis=1).rolling(4).sum() == 4
        np.testing.assert_array_equal(predicted.notna().all(axis=1), whole)
        np.testing.assert_array_equal(predicted.isna().any(axis=1), ~whole)

    def test_rows_missing_throughout_are_as_if_they_were_recordings_apart(self):
        frame = complete(150)
        frame.iloc[70] = np.nan
        parts = [frame.iloc[:70], frame.iloc[71:]]
        np.testing.assert_array_equal(
            self.model().fit(frame).scores_, self.model().fit(parts).scores_
        )

    def test_too_many_gaps_name_what_to_do(self):
        frame = complete(150)
        frame.iloc[::3, 1] = np.nan
        with pytest.raises(DataError, match=r"0 windows of 4 slots .*`missing`.*smaller `window`"):
            self.model().fit(frame)


class TestBadInput:
    @pytest.mark.parametrize(
        "preset",
        [
            "default",
            "paper-fmri",
        ],
    )
    def test_a_column_without_values(self, preset):
        with pytest.raises(DataError, match="column 'B' has no value at all; drop it"):
            CausalFormer(preset).fit(complete(60).assign(B=np.nan))

    @pytest.mark.parametrize("missing", ["mask", "interpolate"])
    @pytest.mark.parametrize("number", [np.inf, -np.inf])
    def test_infinite_values(self, missing, number):
        frame = gappy(n_slots=60)
        frame.loc[7, "C"] = number
        with pytest.raises(DataError, match=r"infinite values in column 'C' \(1 infinite.* row 8"):
            tiny(missing=missing).fit(frame)

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    @pytest.mark.parametrize("rows", [slice(0, 50), slice(60, 65)])
    def test_a_series_that_was_observed_in_one_fold_only(self, rows):
        frame = complete(200)
        frame.loc[~frame.index.isin(frame.index[rows]), "B"] = np.nan
        model = tiny().fit(frame)
        assert np.isfinite(model.edge_scores_).all()
        assert pairs(model) <= TRUE | {("A", "C")}  # without B, A does drive C

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_a_series_that_was_observed_in_the_second_half_only(self):
        frame = complete(200)
        frame.loc[:99, "B"] = np.nan
        assert ("B", "C") in pairs(tiny().fit(frame))


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_too_few_slots_in_common_are_no_links_within_a_slot():
    noise = pd.DataFrame(np.random.default_rng(3).normal(size=(500, 5)), columns=list("abcde"))
    holed = noise.mask(np.random.default_rng(12).random(noise.shape) < 0.7)
    model = tiny(max_lag=3, instantaneous=True).fit(holed)
    assert not [edge for edge in model.graph_ if edge.lag == 0]
    assert {"p_value", "q_value", "strength"} <= set(model.graph_.to_frame())
