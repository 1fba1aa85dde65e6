import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from causalformer import CausalFormer
from causalformer.config import PRESETS
from causalformer.data import SeriesTable
from causalformer.default import DefaultOptions
from causalformer.errors import DataError, DataWarning, FileFormatError, OutputError, SettingsError

TINY = {"window": 6, "d_model": 8, "n_heads": 2, "d_ffn": 8, "max_epochs": 3}


def make_frame(n_slots=120, seed=0):
    """A drives B after one slot; C is alone."""
    noise = np.random.default_rng(seed).standard_normal((n_slots, 3))
    noise[1:, 1] = 0.95 * noise[:-1, 0] + 0.2 * noise[1:, 1]
    return pd.DataFrame(noise, columns=["A", "B", "C"])


def tiny(**changes):
    options = {"settings": TINY, "random_state": 0} | changes
    return CausalFormer("paper-fmri", **options)


@pytest.fixture(scope="module")
def fitted():
    return tiny().fit(make_frame())


class TestHabits:
    def test_fit_returns_self(self):
        model = tiny()
        assert model.fit(make_frame()) is model

    def test_clone_and_params(self):
        model = tiny(random_state=3, device="cpu")
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert copy.set_params(random_state=4).random_state == 4

    def test_fit_edits_no_constructor_argument(self):
        model = tiny()
        before = json.dumps(model.get_params(), default=str)
        model.fit(make_frame())
        assert json.dumps(model.get_params(), default=str) == before
        assert "max_epochs" in TINY

    def test_the_same_seed_gives_the_same_graph(self, fitted):
        assert tiny().fit(make_frame()).graph_ == fitted.graph_

    def test_the_number_of_threads_does_not_change_the_graph(self):
        frame, before, scores = make_frame(3000), torch.get_num_threads(), []
        try:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                scores.append(tiny().fit(frame).scores_)
        finally:
            torch.set_num_threads(before)
        np.testing.assert_array_equal(*scores)

    def test_another_seed_gives_other_scores(self, fitted):
        assert not np.allclose(tiny(random_state=1).fit(make_frame()).scores_, fitted.scores_)

    def test_global_random_state_is_left_alone(self):
        torch.manual_seed(5)
        expected = torch.get_rng_state()
        tiny().fit(make_frame())
        assert torch.equal(torch.get_rng_state(), expected)

    def test_unfitted_models_say_so(self):
        with pytest.raises(ValueError, match="not fitted"):
            tiny().predict(make_frame())


class TestResult:
    def test_graph_uses_names_and_the_columns_of_the_contract(self, fitted):
        assert fitted.graph_.names == ("A", "B", "C")
        frame = fitted.graph_.to_frame()
        assert list(frame.columns) == ["cause", "effect", "lag", "kind", "score"]
        assert frame["score"].is_monotonic_decreasing

    def test_arrays_are_cause_effect_lag(self, fitted):
        assert fitted.scores_.shape == (3, 3)
        assert fitted.lag_scores_.shape == (3, 3, TINY["window"])

    def test_a_known_graph_is_found(self):
        noise = np.random.default_rng(0).standard_normal((800, 3))
        x = np.zeros((800, 3))
        for t in range(1, 800):
            x[t] = [0.8 * x[t - 1, 0], x[t - 1, 0], 0.8 * x[t - 1, 2]] + noise[t] * [1, 0.3, 1]
        settings = {"window": 8, "d_model": 8, "d_ffn": 32, "max_epochs": 40}
        settings |= {"patience": 40, "normalisation": "none", "temperature": 10.0}
        model = CausalFormer("paper-fmri", settings=settings).fit(x)
        found = model.graph_.summary()
        assert found[0, 0]
        assert found[0, 1]
        assert found[2, 2]
        assert not found[:2, 2].any()
        assert not found[2, :2].any()
        assert model.graph_.lags()[0, :2].tolist() == [1, 1]

    def test_predictions_come_in_the_units_of_the_data(self):
        frame = make_frame() * 1000 + 5000
        long = {"max_epochs": 300, "patience": 300, "decay_every": 300}  # the start may be far off
        learned = tiny(settings=TINY | long)
        predicted = learned.fit(frame).predict(frame)
        assert predicted.shape == frame.shape
        assert predicted.iloc[: TINY["window"] - 1].isna().all().all()
        assert (predicted.iloc[TINY["window"] - 1 :].mean() - 5000).abs().max() < 1000

    def test_other_columns_cannot_be_predicted(self, fitted):
        with pytest.raises(DataError, match="same columns"):
            fitted.predict(make_frame().rename(columns={"A": "Z"}))

    def test_frames_arrays_and_tables_give_the_same_graph(self, fitted):
        frame = make_frame()
        array = CausalFormer("paper-fmri", settings=TINY).fit(frame.to_numpy())
        np.testing.assert_array_equal(array.scores_, fitted.scores_)
        table = SeriesTable(frame.to_numpy(), tuple(frame.columns))
        assert tiny().fit(table).graph_ == fitted.graph_

    def test_without_a_whole_validation_window_all_epochs_run(self):
        settings = TINY | {"max_epochs": 6, "patience": 1, "learning_rate": 0.5}
        few, more = (tiny(settings=settings).fit(make_frame(n)) for n in (60, 200))
        assert (len(few.history_.epochs), few.history_.best.number) == (6, 5)
        assert not few.history_.validated
        assert more.history_.validated
        assert more.history_.stopped == "patience"

    def test_a_training_that_diverged_says_so(self):
        settings = TINY | {"learning_rate": 1e10}
        with pytest.raises(SettingsError, match=r"diverged.*learning_rate"):
            tiny(settings=settings).fit(make_frame())

    @pytest.mark.parametrize(
        ("preset", "expected"),
        [
            # T, d, h, d_FFN, τ, λ, epochs, patience, share, batch, decay, m, n
            (
                "paper-diamond-mediator",
                (16, 256, 4, 256, 1, 1e-4, 500, 30, 0.01, 128, 30, 0.1, 1, 2),
            ),
            ("paper-v-fork", (16, 256, 4, 256, 100, 1e-10, 150, 30, 0.01, 128, 30, 0.1, 1, 2)),
            ("paper-lorenz96", (32, 512, 8, 512, 10, 5e-4, 100, 10, 0.1, 128, 30, 0.1, 2, 3)),
            ("paper-fmri", (32, 256, 4, 512, 100, 0, 500, 10, 0.01, 128, 30, 0.1, 1, 2)),
            ("paper-sst", (32, 512, 8, 512, 100, 5e-4, 100, 10, 0.1, 32, 50, 0.5, 1, 2)),
        ],
    )
    def test_presets_are_the_published_recipes(self, preset, expected):
        s = PRESETS[preset]
        assert s.l1_kernel == s.l1_mask
        assert (s.learning_rate, s.scaling, s.validation) == (0.01, "minmax", "random")
        assert (s.normalisation, s.relevance_bias, s.relevance_layers) == (
            "published",
            False,
            "linear",
        )
        assert (
            *(s.window, s.d_model, s.n_heads, s.d_ffn, s.temperature, s.l1_kernel, s.max_epochs),
            *(s.patience, s.validation_share, s.batch_size, s.decay_every, s.decay_factor),
            *(s.top_clusters, s.n_clusters),
        ) == expected

    @pytest.mark.parametrize("preset", PRESETS)
    def test_every_preset_runs(self, preset):
        small = TINY | {"max_epochs": 1}
        assert CausalFormer(preset, settings=small).fit(make_frame()).graph_.names

    @pytest.mark.parametrize(
        "change",
        [
            *(
                {name: False}
                for name in ("interpretation", "relevance", "gradient", "multi_kernel")
            ),
            {"relevance_bias": True},
            {"relevance_layers": "all"},
            {"normalisation": "none"},
            {"validation": "blocked"},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_every_ablation_and_option_gives_another_result(self, fitted, change):
        ablated = tiny(settings=TINY | change).fit(make_frame())
        assert not np.allclose(ablated.scores_, fitted.scores_)


class TestBadInput:
    def test_fewer_rows_than_the_window_names_the_option(self):
        with pytest.raises(DataError, match="window"):
            tiny().fit(make_frame(5))

    @pytest.mark.parametrize(
        ("preset", "name", "whose"),
        [
            ("default", "relevance_bias", "the paper's presets"),
            ("paper-fmri", "n_folds", "'default'"),
        ],
    )
    def test_a_setting_of_the_other_method_is_named_as_such(self, preset, name, whose):
        with pytest.raises(
            SettingsError, match=f"unknown setting '{name}'; it is one of .*{whose}"
        ):
            CausalFormer(preset, settings={name: 3}).fit(make_frame())

    @pytest.mark.parametrize(("d_model", "n_heads"), [(6, 4), (4, 8)])
    def test_heads_must_share_the_width_evenly(self, d_model, n_heads):
        with pytest.raises(
            SettingsError, match=f"d_model .{d_model}. must be a multiple of n_heads"
        ):
            tiny(settings=TINY | {"d_model": d_model, "n_heads": n_heads}).fit(make_frame())

    def test_unknown_preset_suggests_one(self):
        with pytest.raises(SettingsError, match="did you mean 'paper-fmri'"):
            CausalFormer("paper-frmi").fit(make_frame())

    def test_unknown_setting_suggests_one(self):
        with pytest.raises(SettingsError, match="did you mean 'window'"):
            tiny(settings={"windw": 3}).fit(make_frame())

    def test_m_not_below_n_is_refused(self):
        with pytest.raises(SettingsError, match="top_clusters"):
            tiny(settings=TINY | {"top_clusters": 2}).fit(make_frame())

    def test_unknown_device(self):
        with pytest.raises(SettingsError, match="device 'tpu'"):
            tiny(device="tpu").fit(make_frame())

    @pytest.mark.parametrize(
        "option",
        [
            {"max_lag": 3},
            {"alpha": 0.1},
            {"instantaneous": False},
            {"stability": 5},
        ],
    )
    def test_options_of_the_default_method_are_refused_with_a_preset(self, option):
        (name,) = option
        said = f"the preset 'paper-fmri' has no `{name}`; leave it out"
        with pytest.raises(SettingsError, match=said):
            tiny(**option).fit(make_frame())
        with pytest.raises(SettingsError, match=said):
            tiny(**option).memory_plan(make_frame())

    @pytest.mark.parametrize("random_state", [2**32, 2**63 - 1])
    def test_large_seeds_are_seeds(self, random_state):
        assert tiny(random_state=random_state).fit(make_frame()).random_state == random_state

    def test_constant_column_warns_by_name_and_still_gives_a_graph(self):
        with pytest.warns(DataWarning, match="C"):
            model = tiny().fit(make_frame().assign(C=1.0))
        assert np.isfinite(model.scores_).all()

    def test_infinite_values_name_the_column(self):
        frame = make_frame()
        frame.loc[3, "B"] = np.inf
        with pytest.raises(DataError, match="B"):
            tiny().fit(frame)

    @pytest.mark.parametrize("scale", [1e-12, 1e12])
    def test_units_do_not_change_the_graph(self, fitted, scale):
        scaled = tiny().fit(make_frame() * scale)
        np.testing.assert_allclose(scaled.scores_, fitted.scores_, rtol=1e-3, atol=1e-6)


def weights_of(folder):
    (path,) = folder.glob("weights-*.safetensors")
    return path


class TestModelFiles:
    def test_a_saved_model_comes_back_whole(self, fitted, tmp_path):
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        assert loaded.graph_ == fitted.graph_
        assert loaded.history_ == fitted.history_
        np.testing.assert_array_equal(loaded.lag_scores_, fitted.lag_scores_)
        pd.testing.assert_frame_equal(loaded.predict(make_frame()), fitted.predict(make_frame()))

    def test_no_pickle_is_written(self, fitted, tmp_path):
        folder = fitted.save(tmp_path / "m")
        assert sorted(p.name for p in folder.iterdir()) == ["model.json", weights_of(folder).name]
        fitted.save(folder)
        assert len(list(folder.iterdir())) == 2

    @pytest.mark.parametrize("method", ["write_text", "write_bytes"])
    def test_a_save_that_fails_leaves_the_old_model(self, fitted, tmp_path, monkeypatch, method):
        folder = fitted.save(tmp_path / "m")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        other = tiny(random_state=1).fit(make_frame())

        def full_disk(*_, **__):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, method, full_disk)
            with pytest.raises(OutputError, match="No space left"):
                other.save(folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_a_folder_without_a_model(self, tmp_path):
        with pytest.raises(FileFormatError, match=r"model\.json"):
            CausalFormer.load(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("model.json", b"not json"),
            ("model.json", b"[1, 2]"),
            ("model.json", b'{"format": "other"}'),
            ("model.json", b'{"format": "causalformer-model", "version": 99}'),
            ("model.json", b'{"format": "causalformer-model", "version": 1}'),
            ("model.json", b"\xff\xfe"),
            ("model.json", b"[" * 100_000),
            ("model.json", b'{"format": "causalformer-model", "version": 1' + b"0" * 5000),
            ("weights", b"junk"),
            ("weights", b""),
        ],
    )
    def test_foreign_or_damaged_files_give_a_clear_error(self, fitted, tmp_path, name, content):
        folder = fitted.save(tmp_path / "m")
        (weights_of(folder) if name == "weights" else folder / name).write_bytes(content)
        with pytest.raises(FileFormatError, match="m"):
            CausalFormer.load(folder)

    def test_a_paper_model_of_the_old_form_names_the_version_that_wrote_it(self, fitted, tmp_path):
        folder = fitted.save(tmp_path / "m")
        facts = json.loads((folder / "model.json").read_text())
        facts |= {"version": 3, "written_by": "0.0.9"}
        (folder / "model.json").write_text(json.dumps(facts))
        with pytest.raises(FileFormatError, match=r"by causalformer 0\.0\.9 .* fit it again"):
            CausalFormer.load(folder)

    def test_a_default_model_of_the_old_form_still_loads(self, tmp_path):
        model = CausalFormer(settings={"max_epochs": 2}).fit(make_frame())
        folder = model.save(tmp_path / "m")
        facts = json.loads((folder / "model.json").read_text()) | {"version": 3}
        (folder / "model.json").write_text(json.dumps(facts))
        assert CausalFormer.load(folder).graph_ == model.graph_

    def test_weights_of_another_model_are_noticed(self, fitted, tmp_path):
        folder = fitted.save(tmp_path / "m")
        other = tiny(random_state=1).fit(make_frame()).save(tmp_path / "other")
        weights_of(folder).write_bytes(weights_of(other).read_bytes())
        with pytest.raises(FileFormatError, match="does not belong"):
            CausalFormer.load(folder)

    def test_settings_that_do_not_fit_the_weights_are_noticed(self, fitted, tmp_path):
        folder = fitted.save(tmp_path / "m")
        facts = json.loads((folder / "model.json").read_text())
        facts["settings"]["n_heads"] = 3
        (folder / "model.json").write_text(json.dumps(facts))
        with pytest.raises(FileFormatError, match="damaged model"):
            CausalFormer.load(folder)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("weights_sha256", "../../" + "0" * 58),
            ("weights_sha256", "0" * 64),
            ("weights_sha256", None),
            ("names", 3),
            ("names", []),
            ("history", []),
            ("parameters", {}),
            ("graph", {"format": "other"}),
        ],
    )
    def test_hostile_facts_are_refused(self, fitted, tmp_path, key, value):
        folder = fitted.save(tmp_path / "m")
        facts = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(facts | {key: value}))
        with pytest.raises(FileFormatError):
            CausalFormer.load(folder)


class TestCheckpoint:
    def test_an_interrupted_fit_goes_on_to_the_same_graph(self, tmp_path, monkeypatch):
        from causalformer import estimator

        plain = estimator.CheckpointFile
        monkeypatch.setattr(
            estimator, "CheckpointFile", lambda path, mark: plain(path, mark, every_seconds=0)
        )
        path = tmp_path / "state.safetensors"

        def interrupt(epoch):
            if epoch.number == 1:
                raise KeyboardInterrupt

        stopped = tiny(checkpoint=path, on_epoch=interrupt).fit(make_frame())
        assert stopped.history_.stopped == "interrupted"
        resumed = tiny(checkpoint=path).fit(make_frame())
        assert resumed.graph_ == tiny().fit(make_frame()).graph_


def test_the_defaults_of_the_estimator_are_those_of_the_options():
    shown = CausalFormer().get_params()
    for name, value in asdict(DefaultOptions()).items():
        if name != "knowledge":  # None and nothing known are the same
            assert shown[name] == value, name
