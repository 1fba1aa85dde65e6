"""The estimator with its default method, from data to graph."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from causalformer import CausalFormer
from causalformer.baselines import VarGranger
from causalformer.datasets import make_var
from causalformer.default import DefaultFit
from causalformer.errors import DataError, DataWarning, FileFormatError, SettingsError

TINY = {"max_epochs": 5, "n_channels": 8}
WHOLE = {("A", "A", 1), ("A", "B", 2), ("B", "C", 1), ("C", "C", 1)}


def make_frame(n_slots=400, seed=0):
    """A and C remember; A drives B after two slots, B drives C after one."""
    noise = np.random.default_rng(seed).standard_normal((n_slots, 3))
    x = np.zeros((n_slots, 3))
    for t in range(2, n_slots):
        x[t] = [0.5 * x[t - 1, 0], 0.6 * x[t - 2, 0], 0.4 * x[t - 1, 2] - 0.5 * x[t - 1, 1]]
        x[t] += noise[t]
    return pd.DataFrame(x, columns=["A", "B", "C"])


def tiny(**changes):
    return CausalFormer(**({"max_lag": 3, "settings": TINY} | changes))


def edges(model):
    return {(e.cause, e.effect, e.lag) for e in model.graph_}


@pytest.fixture(scope="module")
def fitted():
    return tiny().fit(make_frame())


@pytest.fixture(scope="module")
def dated():
    index = pd.date_range("2024-01-01", periods=200, freq="h", tz="Europe/Berlin")
    return tiny().fit(make_frame(200).set_index(index))


class TestKnownGraphs:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_edges_and_lags_of_a_linear_system(self, seed):
        assert edges(CausalFormer().fit(make_frame(seed=seed))) == WHOLE

    @pytest.mark.parametrize("seed", [0, 1])
    def test_edges_and_lags_of_random_linear_systems(self, seed):
        made = make_var(3, 400, max_lag=2, density=0.3, random_state=seed)
        truth = {(e.cause, e.effect, e.lag) for e in made.truth.edges}
        assert edges(tiny().fit(made.series)) == truth

    def test_an_even_function_that_a_linear_test_misses(self):
        x = np.random.default_rng(1).standard_normal((800, 3))
        x[1:, 1] = x[:-1, 0] ** 2 + 0.5 * x[1:, 1]
        assert not len(VarGranger(max_lag=2).fit(x).graph_)
        assert edges(CausalFormer(max_lag=2).fit(x)) == {("x0", "x1", 1)}

    def test_independent_series_have_no_edges_between_them(self):
        x = np.random.default_rng(0).standard_normal((400, 4))
        for t in range(1, 400):
            x[t] += 0.6 * x[t - 1]
        assert edges(CausalFormer().fit(x)) == {(f"x{i}", f"x{i}", 1) for i in range(4)}

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_edges_in_noise_are_as_rare_as_alpha_says(self):
        n_false = 0
        for seed in range(20):
            noise = np.random.default_rng(seed).standard_normal((200, 4))
            kinds = {e.kind for e in tiny(instantaneous=False).fit(noise).graph_}
            n_false += "lagged" in kinds
        assert n_false <= 3  # one is expected

    def test_an_edge_within_the_slot_is_found_and_oriented(self):
        x = np.random.default_rng(1).laplace(size=(600, 3))
        x[1:, 2] += 0.5 * x[:-1, 2]
        x[:, 1] += 0.8 * x[:, 0]
        model = tiny().fit(x)
        assert edges(model) == {("x0", "x1", 0), ("x2", "x2", 1)}
        edge = next(e for e in model.graph_ if e.lag == 0)
        assert edge.oriented
        assert edge.q_value < 1e-10
        with pytest.warns(DataWarning, match="move together within a slot"):
            declined = tiny(instantaneous=False).fit(x)
        assert edges(declined) == {("x2", "x2", 1)}

    def test_a_second_lag_of_the_same_pair(self):
        x = np.random.default_rng(0).standard_normal((600, 2))
        x[3:, 1] += 0.7 * x[2:-1, 0] + 0.7 * x[:-3, 0]
        assert edges(tiny().fit(x)) == {("x0", "x1", 1), ("x0", "x1", 3)}


class TestHabits:
    def test_fit_returns_self(self):
        model = tiny()
        assert model.fit(make_frame(100, seed=1)) is model

    def test_clone_and_params(self):
        model = tiny(alpha=0.1, instantaneous=False, stability=3, n_jobs=2, random_state=3)
        assert clone(model).get_params() == model.get_params()
        assert model.get_params()["alpha"] == 0.1
        assert model.set_params(max_lag="auto").max_lag == "auto"

    def test_fit_edits_no_constructor_argument(self):
        model, settings = tiny(max_lag="auto"), dict(TINY)
        before = json.dumps(model.get_params(), default=str)
        model.fit(make_frame(150))
        assert json.dumps(model.get_params(), default=str) == before
        assert settings == TINY

    def test_data_are_left_as_they_were(self):
        frame = make_frame(150)
        before = frame.copy()
        tiny().fit(frame)
        pd.testing.assert_frame_equal(frame, before)

    def test_the_same_seed_gives_the_same_graph(self, fitted):
        again = tiny().fit(make_frame())
        assert again.graph_ == fitted.graph_
        for name, matrix in fitted.scores_.items():
            np.testing.assert_array_equal(again.scores_[name], matrix)

    def test_another_seed_gives_other_scores(self, fitted):
        other = tiny(random_state=1).fit(make_frame())
        assert not np.allclose(other.scores_["relative_gain"], fitted.scores_["relative_gain"])

    def test_the_number_of_threads_does_not_change_the_graph(self):
        frame, before, graphs = make_frame(1500), torch.get_num_threads(), []
        try:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                graphs.append(tiny().fit(frame).graph_)
                assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
        assert graphs[0] == graphs[1]

    def test_global_random_state_is_left_alone(self):
        torch.manual_seed(5)
        expected = torch.get_rng_state()
        tiny().fit(make_frame(150))
        assert torch.equal(torch.get_rng_state(), expected)

    def test_unfitted_models_say_so(self):
        for ask in (tiny().predict, tiny().explain):
            with pytest.raises(ValueError, match="not fitted"):
                ask(make_frame())


class TestResult:
    def test_edges_come_with_their_evidence(self, fitted):
        frame = fitted.graph_.to_frame()
        evidence = ["p_value", "q_value", "strength"]
        assert list(frame.columns) == ["cause", "effect", "lag", "kind", "score", *evidence]
        assert frame["score"].is_monotonic_decreasing
        assert (frame["q_value"] <= 0.05).all()
        np.testing.assert_allclose(frame["score"], -np.log10(frame["p_value"]))
        assert frame["strength"].between(0, 1).all()

    def test_scores_are_matrices_by_name(self, fitted):
        assert set(fitted.scores_) == {
            *("score", "p_value", "q_value", "relative_gain", "strength", "lag_profile"),
            *(
                "terms_p_value",
                "contemporaneous_p_value",
                "contemporaneous_q_value",
                "partial_correlation",
                "tested",
            ),
        }
        shapes = {name: matrix.shape for name, matrix in fitted.scores_.items()}
        assert shapes.pop("lag_profile") == (3, 3, 3)
        assert set(shapes.values()) == {(3, 3)}

    def test_what_was_tested_is_a_mask_also_after_loading(self, tmp_path):
        fitted = tiny(knowledge={"forbidden": ["C -> A"]}).fit(make_frame())
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        for model in (fitted, loaded):
            assert {name for name, m in model.scores_.items() if m.dtype == bool} == {"tested"}
            np.testing.assert_array_equal(np.argwhere(~model.scores_["tested"]), [[2, 0]])
            assert model.scores_["p_value"][~model.scores_["tested"]] == 1
            assert model.plot(kind="scores", evidence="tested").get_xlabel() == "effect"

    def test_edge_scores_count_the_test_within_a_slot_where_that_made_edges(self):
        noise = np.random.default_rng(0).exponential(size=(400, 3))
        x = noise[:, 0]
        table = {"x": x, "y": x + 0.3 * noise[:, 1], "z": noise[:, 2]}
        model = CausalFormer(settings=TINY).fit(table)
        (edge,) = model.graph_
        assert edge.lag == 0
        scores = model.edge_scores_.copy()
        assert np.unravel_index(scores.argmax(), scores.shape) == tuple(
            "xyz".index(end) for end in (edge.cause, edge.effect)
        )
        assert scores.max() > 10 * max(scores[2].max(), scores[:, 2].max())

    def test_edge_scores_rank_the_true_pairs_first(self, fitted):
        scores = fitted.edge_scores_.copy()
        np.testing.assert_array_equal(scores, -np.log10(fitted.scores_["p_value"]))
        true = np.zeros((3, 3), dtype=bool)
        true[[0, 0, 1, 2], [0, 1, 2, 2]] = True
        assert scores[true].min() > scores[~true].max()

    def test_the_graph_says_how_it_was_made(self, fitted):
        facts = fitted.graph_.metadata
        assert facts["preset"] == "default"
        assert (facts["max_lag"], facts["max_lag_used"]) == (3, 3)
        assert facts["settings"]["n_channels"] == 8

    def test_stability_gives_every_lagged_edge_a_frequency(self):
        model = tiny(stability=2).fit(make_frame())
        frame = model.graph_.to_frame()
        assert set(frame["frequency"]) <= {0.0, 0.5, 1.0}
        between = frame[frame["kind"] == "lagged"]
        assert (between["frequency"] == 1).all()

    def test_arrays_frames_and_paths_give_the_same_graph(self, fitted, tmp_path):
        make_frame().to_csv(tmp_path / "x.csv", index=False)
        assert tiny().fit(tmp_path / "x.csv").graph_ == fitted.graph_
        array = tiny().fit(make_frame().to_numpy())
        np.testing.assert_array_equal(array.scores_["p_value"], fitted.scores_["p_value"])

    def test_auto_chooses_enough_lags_and_says_why(self):
        model = tiny(max_lag="auto").fit(make_frame())
        assert model.diagnostics_.max_lag == 3
        assert "order 2 has the best BIC" in model.diagnostics_.max_lag_reason
        assert edges(model) == WHOLE

    def test_the_history_ends_with_the_last_epoch(self, fitted):
        assert len(fitted.history_.epochs) == 5
        assert fitted.history_.best.number == 4


class TestUnits:
    @pytest.mark.parametrize("scale", [1e-12, 1e12])
    def test_units_do_not_change_the_graph(self, fitted, scale):
        scaled = tiny().fit(make_frame() * scale)
        assert edges(scaled) == edges(fitted)
        for name in ("p_value", "relative_gain", "strength"):
            np.testing.assert_array_equal(scaled.scores_[name], fitted.scores_[name])

    @pytest.mark.parametrize("transform", [np.exp, np.arctan], ids=["exp", "arctan"])
    def test_increasing_transforms_do_not_change_the_graph(self, fitted, transform):
        bent = tiny().fit(transform(make_frame()))
        assert edges(bent) == edges(fitted)
        np.testing.assert_array_equal(bent.scores_["p_value"], fitted.scores_["p_value"])

    def test_outliers_lose_their_pull(self):
        frame = make_frame()
        for row, column in ((50, "A"), (150, "B"), (250, "C")):
            frame.loc[row, column] = 1e9
        assert edges(tiny().fit(frame)) == WHOLE


class TestPrediction:
    def test_predictions_come_in_the_units_of_the_data(self):
        frame = make_frame() * 1000 + 5000
        model = tiny().fit(frame)
        predicted = model.predict(frame)
        assert predicted.shape == frame.shape
        assert predicted.iloc[:3].isna().all().all()
        error = ((frame - predicted) ** 2).mean() / frame.var()
        assert (error < [0.9, 0.8, 0.7]).all()

    @pytest.mark.parametrize("row", [0, 10, 11, 49])
    def test_a_change_moves_no_prediction_up_to_its_own_row(self, fitted, row):
        frame = make_frame(50)
        changed = frame.copy()
        changed.iloc[row] += 1.0
        before, after = fitted.predict(frame), fitted.predict(changed)
        pd.testing.assert_frame_equal(after.iloc[: row + 1], before.iloc[: row + 1])
        if 3 <= row + 1 < 50:
            assert not before.iloc[row + 1].equals(after.iloc[row + 1])

    def test_other_columns_cannot_be_predicted(self, fitted):
        with pytest.raises(DataError, match="same columns"):
            fitted.predict(make_frame().rename(columns={"A": "Z"}))

    def test_too_few_rows_cannot_be_predicted(self, fitted):
        assert len(fitted.predict(make_frame(4))) == 4
        with pytest.raises(DataError, match="max_lag"):
            fitted.predict(make_frame(3))


class TestTimeTerms:
    slot = np.arange(300)

    def frame(self):
        """Series with a season, a trend and a shift that are far larger than their noise."""
        frame = make_frame(300)
        frame["A"] += 5 * np.sin(2 * np.pi * self.slot / 12)
        frame["B"] += 5 * np.sin(2 * np.pi * (self.slot + 4) / 12) + self.slot / 20
        frame["C"] += np.where(self.slot < 150, 0, 8)
        return frame

    def test_they_are_named_and_predictions_follow_them(self, tmp_path):
        frame = self.frame()
        model = tiny().fit(frame)
        assert model.diagnostics_.time_terms == (
            "a season of 12 slots in 'A', 'B'",
            "a trend in 'B'",
            "a level shift of 'C' at slot 150",
        )
        assert model.graph_.metadata["time_terms"] == list(model.diagnostics_.time_terms)
        predicted = model.predict(frame)
        assert (((frame - predicted) ** 2).mean() < 0.2 * frame.var()).all()
        again = CausalFormer.load(model.save(tmp_path / "model"))
        pd.testing.assert_frame_equal(again.predict(frame), predicted)
        assert again.diagnostics_.time_terms == model.diagnostics_.time_terms
        seen = model.explain(100)
        np.testing.assert_allclose(again.explain(100, frame).prediction, seen.prediction)

    def test_seasons_may_be_named_or_left(self):
        frame = self.frame()
        assert "a season of 12 slots" in tiny(season=12).fit(frame).diagnostics_.time_terms[0]
        left = tiny(season=None).fit(frame)
        assert not any("season" in text for text in left.diagnostics_.time_terms)
        assert left.graph_.metadata["season"] == "none"
        with pytest.raises(SettingsError, match="3 periods must be seen"):
            tiny(season=101).fit(frame)
        with pytest.raises(SettingsError, match="has no `season`"):
            CausalFormer("paper-fmri", season=12).fit(frame)

    def test_a_common_season_makes_no_edge(self):
        x = np.random.default_rng(0).standard_normal((300, 3))
        for t in range(1, 300):
            x[t] += 0.5 * x[t - 1]
        x += 2 * np.sin(2 * np.pi * (self.slot[:, None] + [0, 3, 5]) / 12)
        between = [
            {(e.cause, e.effect) for e in tiny(season=s).fit(x).graph_ if e.cause != e.effect}
            for s in ("auto", None)
        ]
        assert not between[0]
        assert between[1]


class TestExplain:
    def test_a_row_number(self, fitted):
        found = fitted.explain(17)
        assert found.slot == 17
        assert found.names == ("A", "B", "C")
        assert found.conservation_error < 1e-5
        row = found.to_frame().query("effect == 'B' and cause == 'A' and lag == 2").iloc[0]
        assert row["value"] == make_frame()["A"][15]

    @pytest.mark.parametrize(
        "at",
        [
            "2024-01-01 10:00",  # tables keep the time in UTC
            np.datetime64("2024-01-01T10:00"),
            pd.Timestamp("2024-01-01 11:00", tz="Europe/Berlin"),
        ],
    )
    def test_an_entry_of_the_time_column(self, dated, at):
        assert dated.explain(at).slot == 11

    def test_a_number_of_the_time_column_that_is_no_row_number(self):
        frame = make_frame(100, seed=1).assign(time=np.arange(100) * 0.5)
        model = tiny().fit(frame)
        assert model.explain(10.5).slot == 21

    @pytest.mark.parametrize("at", ["yesterday", "2031-01-01", 3.5, None, True])
    def test_what_is_no_slot_is_named(self, dated, fitted, at):
        for model in (dated, fitted):
            with pytest.raises(DataError, match=f"there is no slot {at!r}"):
                model.explain(at)

    def test_rows_without_enough_past_are_named(self, fitted):
        with pytest.raises(DataError, match="slot 2 cannot be explained: choose from 3"):
            fitted.explain(2)

    def test_other_data(self, fitted):
        other = make_frame(30, seed=5)
        found = fitted.explain(29, other)
        np.testing.assert_array_equal(found.value[:, 0], other.iloc[28])

    def test_the_paper_presets_have_no_explanation_of_single_slots(self):
        settings = {"window": 4, "d_model": 4, "n_heads": 1, "max_epochs": 1}
        model = CausalFormer("paper-fmri", settings=settings).fit(make_frame(60))
        with pytest.raises(SettingsError, match="paper-fmri"):
            model.explain(9)


class TestBadInput:
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            *(("max_lag", value) for value in (0, -1, 2.5, True, "often", None)),
            *(("alpha", value) for value in (0, 1, -0.1, np.nan, "few")),
            *(("instantaneous", value) for value in ("maybe", None, 2)),
            *(("stability", value) for value in (-1, 1.5)),
            ("n_jobs", 0),
        ],
    )
    def test_bad_options_are_named(self, option, value):
        with pytest.raises(SettingsError, match=f"^{option} is {value!r}"):
            tiny(**{option: value}).fit(make_frame(60))

    @pytest.mark.parametrize(
        ("settings", "named"),
        [
            ({"n_channel": 3}, "did you mean 'n_channels'"),
            ({"window": 3}, "unknown setting 'window'"),
            ({"n_folds": 1}, "n_folds = 1"),
            ({"removed_share": 1.0}, "removed_share"),
        ],
    )
    def test_bad_settings_are_named(self, settings, named):
        with pytest.raises(SettingsError, match=named):
            tiny(settings=settings).fit(make_frame(60))

    def test_too_few_rows(self):
        with pytest.raises(DataError, match=r"has 19 rows.*give more rows"):
            tiny().fit(make_frame(19))

    def test_infinite_values_name_the_column(self):
        frame = make_frame(60)
        frame.loc[3, "B"] = np.inf
        with pytest.raises(DataError, match=r"infinite values in column 'B' \(1 infinite, .* 4\)"):
            tiny().fit(frame)

    def test_a_column_without_values_is_named(self):
        with pytest.raises(DataError, match="column 'B' has no value at all; drop it"):
            tiny().fit(make_frame(60).assign(B=np.nan))

    @pytest.mark.filterwarnings("ignore:nothing can be predicted")  # of 24 slots
    def test_a_lowered_max_lag_is_said(self):
        with pytest.warns(DataWarning, match="lowered from 9: 24 slots allow no more"):
            model = tiny(max_lag=9).fit(make_frame(24))
        assert model.graph_.metadata["max_lag_used"] == 6
        assert model.scores_["lag_profile"].shape == (3, 3, 6)

    def test_constant_column_warns_by_name_and_gives_finite_results(self):
        with pytest.warns(DataWarning, match="constant column 'B'"):
            model = tiny().fit(make_frame().assign(B=0.1))
        assert all(np.isfinite(matrix).all() for matrix in model.scores_.values())
        assert np.isfinite(model.diagnostics_.to_frame()[["r2", "better_than_linear"]]).all().all()
        # without B, A drives C after three slots
        assert edges(model) == {("A", "A", 1), ("A", "C", 3), ("C", "C", 1)}
        with pytest.warns(DataWarning, match="constant column 'B'"):
            predicted = model.predict(make_frame().assign(B=0.1))
        assert (predicted["B"].dropna() == 0.1).all()

    def test_copies_of_a_series_are_named(self):
        frame = make_frame()
        with pytest.warns(DataWarning) as said:
            model = tiny().fit(frame.assign(D=frame["A"]))
        assert any("identical columns 'A' = 'D'" in str(warning.message) for warning in said)
        assert all(np.isfinite(matrix).all() for matrix in model.scores_.values())

    @pytest.mark.parametrize(("n_slots", "n_series"), [(20, 30), (25, 25), (30, 28)])
    def test_more_series_than_rows_still_give_a_result(self, n_slots, n_series):
        noise = np.random.default_rng(0).standard_normal((n_slots, n_series))
        with pytest.warns(DataWarning) as said:
            model = tiny().fit(noise)
        assert str(said[0].message).startswith(f"{n_slots} slots are few")
        assert all(np.isfinite(matrix).all() for matrix in model.scores_.values())


def add_settings(folder, **settings):
    facts = json.loads((folder / "model.json").read_text()) | {"written_by": "0.0.9"}
    facts["settings"] |= settings
    (folder / "model.json").write_text(json.dumps(facts))


class TestModelFiles:
    def test_a_saved_model_comes_back_whole(self, fitted, tmp_path):
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        assert loaded.graph_ == fitted.graph_
        assert loaded.history_ == fitted.history_
        assert loaded.names_ == fitted.names_
        assert set(loaded.scores_) == set(fitted.scores_)
        for name, matrix in fitted.scores_.items():
            np.testing.assert_array_equal(loaded.scores_[name], matrix)
        np.testing.assert_array_equal(loaded.edge_scores_, fitted.edge_scores_)
        pd.testing.assert_frame_equal(loaded.predict(make_frame()), fitted.predict(make_frame()))
        assert (loaded.max_lag, loaded.alpha, loaded.preset) == (3, 0.05, "default")

    def test_diagnostics_come_back(self, tmp_path):
        with pytest.warns(DataWarning):
            model = tiny(max_lag="auto").fit(make_frame(80))
        loaded = CausalFormer.load(model.save(tmp_path / "m")).diagnostics_
        pd.testing.assert_frame_equal(loaded.to_frame(), model.diagnostics_.to_frame())
        assert loaded.warnings == model.diagnostics_.warnings
        assert loaded.max_lag == model.diagnostics_.max_lag
        assert loaded.max_lag_reason == model.diagnostics_.max_lag_reason

    def test_a_loaded_model_explains_data_that_it_is_given(self, fitted, tmp_path):
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        first, second = fitted.explain(9), loaded.explain(9, make_frame())
        np.testing.assert_array_equal(first.relevance, second.relevance)
        with pytest.raises(DataError, match=r"explain\(at, X\)"):
            loaded.explain(9)

    def test_a_loaded_model_can_be_fitted_again(self, fitted, tmp_path):
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        assert loaded.fit(make_frame()).graph_ == fitted.graph_

    def test_scores_under_the_names_of_older_versions_are_read(self, fitted, tmp_path, monkeypatch):
        old = {
            "relative_gain": "effect",
            "terms_p_value": "sparse_p_value",
            "contemporaneous_p_value": "instantaneous_p_value",
            "contemporaneous_q_value": "instantaneous_q_value",
        }
        assert old.keys() <= fitted.scores_.keys()
        stored = fitted._fit.stored()
        arrays = {
            f"scores.{old.get(name, name)}" if kind == "scores" else key: array
            for key, array in stored["arrays"].items()
            for kind, _, name in [key.partition(".")]
        }
        assert "scores.effect" in arrays
        assert "scores.relative_gain" not in arrays
        monkeypatch.setattr(DefaultFit, "stored", lambda _: stored | {"arrays": arrays})
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        assert set(loaded.scores_) == set(fitted.scores_)
        for name, matrix in fitted.scores_.items():
            np.testing.assert_array_equal(loaded.scores_[name], matrix)

    def test_numbers_of_numpy_can_be_saved(self, tmp_path):
        options = {"max_lag": np.int64(2), "alpha": np.float64(0.1), "random_state": np.int64(1)}
        model = tiny(**options, instantaneous=np.True_).fit(make_frame(150))
        loaded = CausalFormer.load(model.save(tmp_path / "m"))
        assert loaded.graph_ == model.graph_
        assert {name: getattr(loaded, name) for name in options} == options

    def test_no_pickle_is_written(self, fitted, tmp_path):
        folder = fitted.save(tmp_path / "m")
        assert sorted(p.suffix for p in folder.iterdir()) == [".json", ".safetensors"]

    def test_a_model_with_the_settings_of_attention_switched_off_still_loads(
        self, fitted, tmp_path
    ):
        folder = fitted.save(tmp_path / "m")
        add_settings(folder, attention=False, temperature=1.0)
        loaded = CausalFormer.load(folder)
        assert loaded.settings_ == fitted.settings_
        pd.testing.assert_frame_equal(loaded.predict(make_frame()), fitted.predict(make_frame()))
        assert loaded.fit(make_frame()).graph_ == fitted.graph_

    def test_a_model_with_attention_names_the_version_that_wrote_it(self, fitted, tmp_path):
        folder = fitted.save(tmp_path / "m")
        add_settings(folder, attention=True, temperature=10.0)
        with pytest.raises(FileFormatError, match=r"by causalformer 0\.0\.9 .*'attention'"):
            CausalFormer.load(folder)

    @pytest.mark.parametrize(
        ("setting", "value"), [("n_channels", 7), ("n_folds", 3), ("n_channels", "many")]
    )
    def test_settings_that_do_not_fit_the_weights_are_noticed(
        self, fitted, tmp_path, setting, value
    ):
        folder = fitted.save(tmp_path / "m")
        add_settings(folder, **{setting: value})
        with pytest.raises(FileFormatError, match="damaged model"):
            CausalFormer.load(folder)


class TestCheckpoint:
    @pytest.fixture
    def eager(self, monkeypatch):
        """Write the checkpoint after every epoch."""
        from causalformer import estimator

        plain = estimator.CheckpointFile
        monkeypatch.setattr(
            estimator, "CheckpointFile", lambda path, mark: plain(path, mark, every_seconds=0)
        )

    def stopped(self, path):
        def interrupt(epoch):
            if epoch.number == 2:
                raise KeyboardInterrupt

        return tiny(checkpoint=path, on_epoch=interrupt).fit(make_frame())

    @pytest.mark.usefixtures("eager")
    def test_an_interrupted_fit_goes_on_to_the_same_graph(self, fitted, tmp_path):
        path = tmp_path / "state.safetensors"
        stopped = self.stopped(path)
        assert stopped.history_.stopped == "interrupted"
        assert stopped.graph_.names == ("A", "B", "C")
        resumed = tiny(checkpoint=path).fit(make_frame())
        assert len(resumed.history_.epochs) == 5
        assert resumed.graph_ == fitted.graph_
        np.testing.assert_array_equal(
            resumed.scores_["relative_gain"], fitted.scores_["relative_gain"]
        )

    @pytest.mark.usefixtures("eager")
    @pytest.mark.parametrize("change", [{"random_state": 1}, {"max_lag": 2}, {"alpha": 0.1}])
    def test_a_checkpoint_of_other_options_is_refused(self, tmp_path, change):
        path = tmp_path / "state.safetensors"
        self.stopped(path)
        with pytest.raises(FileFormatError, match="other data, settings"):
            tiny(checkpoint=path, **change).fit(make_frame())


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_one_glitch_in_all_series_neither_hides_nor_invents_edges():
    x = np.random.default_rng(0).standard_normal((400, 3))
    for t in range(1, 400):
        x[t, 1] += 0.8 * x[t - 1, 0]
    x[200] = 1e3
    found = {(e.cause, e.effect, e.lag) for e in CausalFormer(max_lag=2).fit(x).graph_}
    assert {edge for edge in found if edge[0] != edge[1]} == {("x0", "x1", 1)}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"random_state": None}, "random_state is None"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": 2**64}, "random_state is 18446744073709551616.* below"),
        ({"device": None}, "device is None"),
        ({"device": 1.5}, r"device is 1\.5"),
        ({"device": "meta"}, "device 'meta'"),
        ({"checkpoint": 5}, "checkpoint is 5"),
        ({"on_epoch": 5}, "on_epoch is 5"),
        ({"instantaneous": np.array([1, 2])}, r"instantaneous is array"),
        ({"instantaneous": 1}, r"instantaneous is 1; choose True"),
        ({"max_lag": np.array([1, 2])}, r"max_lag is array"),
        ({"preset": None}, "unknown preset None"),
        ({"settings": [1]}, "settings are"),
        ({"settings": {"n_folds": 1000}}, "n_folds"),
        ({"settings": {"learning_rate": 1e9, "max_epochs": 2}}, "learning_rate"),
    ],
)
def test_odd_arguments_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        CausalFormer(**options).fit(make_frame(100))


def test_numpys_truth_values_are_understood():
    known = {"required": ["A -> B @ 0"]}
    with pytest.raises(SettingsError, match="instantaneous is False"):
        tiny(instantaneous=np.False_, knowledge=known).fit(make_frame(100))
