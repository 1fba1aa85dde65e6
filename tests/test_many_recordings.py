"""Several recordings of the same series, from data to graph: nothing looks across."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from causalformer import CausalFormer
from causalformer.data import read_series
from causalformer.errors import DataError

TINY = {"max_epochs": 3, "n_channels": 4}
SMALL_PAPER = {"window": 4, "d_model": 4, "n_heads": 1, "d_ffn": 4, "max_epochs": 1}
LENGTHS = (60, 80, 70, 90)


def recording(number=0, n_slots=80, level=0.0):
    """A drives B after two slots; C is alone. Subjects differ in level and units."""
    x = np.random.default_rng(40 + number).standard_normal((n_slots, 3))
    x[2:, 1] += 0.9 * x[:-2, 0]
    for t in range(1, n_slots):
        x[t, 2] += 0.6 * x[t - 1, 2]
    return pd.DataFrame(x * (1 + number * level) + number * level, columns=["A", "B", "C"])


def recordings(level=0.0):
    return [recording(i, n, level) for i, n in enumerate(LENGTHS)]


def long_frame(level=0.0):
    parts = [part.assign(who=f"s{i}") for i, part in enumerate(recordings(level))]
    return pd.concat(parts, ignore_index=True)


def tiny(**changes):
    return CausalFormer(**({"max_lag": 3, "settings": TINY} | changes))


def edges(model):
    return {(edge.cause, edge.effect, edge.lag) for edge in model.graph_}


@pytest.fixture(scope="module")
def fitted():
    return tiny().fit(recordings())


class TestGraph:
    def test_the_edges_are_found(self, fitted):
        assert edges(fitted) == {("A", "B", 2), ("C", "C", 1)}

    def test_the_graph_says_how_many_there_were(self, fitted):
        facts = fitted.graph_.metadata
        assert (facts["n_recordings"], facts["n_segments"], facts["n_slots"]) == (4, 4, 300)

    def test_diagnostics_count_only_slots_with_a_past_of_their_own(self, fitted):
        assert fitted.diagnostics_.counted.tolist() == [300 - 4 * 3] * 3

    def test_the_same_seed_gives_the_same_graph(self, fitted):
        again = tiny().fit(recordings())
        assert again.graph_ == fitted.graph_
        np.testing.assert_array_equal(again.scores_["p_value"], fitted.scores_["p_value"])

    @pytest.mark.parametrize(
        "source",
        [
            lambda _: read_series(long_frame(), group="who"),
            lambda _: {f"s{i}": part for i, part in enumerate(recordings())},
            lambda folder: folder,
        ],
        ids=["group", "mapping", "folder"],
    )
    def test_every_way_to_give_them_gives_the_same_graph(self, fitted, source, tmp_path):
        for i, part in enumerate(recordings()):
            part.to_parquet(tmp_path / f"s{i}.parquet")
        found = tiny().fit(source(tmp_path))
        assert found.graph_ == fitted.graph_
        for name, matrix in fitted.scores_.items():
            np.testing.assert_array_equal(found.scores_[name], matrix)

    def test_a_group_column_of_shuffled_rows(self, fitted):
        frame = long_frame()
        in_turn = frame.groupby("who").cumcount().sort_values(kind="stable").index
        found = tiny().fit(frame.loc[in_turn].reset_index(drop=True), group="who")
        np.testing.assert_array_equal(found.scores_["p_value"], fitted.scores_["p_value"])

    def test_levels_and_units_of_subjects_are_no_cause(self, fitted):
        found = tiny().fit(recordings(level=100.0))
        assert edges(found) == edges(fitted)
        np.testing.assert_allclose(
            found.scores_["terms_p_value"], fitted.scores_["terms_p_value"], rtol=1e-4
        )

    def test_what_ends_one_recording_is_no_cause_in_the_next(self):
        parts = [recording(i, 20) for i in range(15)]
        for before, after in pairwise(parts):
            after.loc[0, "C"] = 5 * before.loc[19, "A"]  # across, and never within
        assert ("A", "C") not in {(c, e) for c, e, _ in edges(tiny().fit(parts))}

    def test_the_order_of_the_recordings_hardly_matters(self, fitted):
        assert edges(tiny().fit(recordings()[::-1])) == edges(fitted)

    @pytest.mark.parametrize("gaps", ["auto", "split"])
    def test_segments_of_one_recording(self, gaps):
        time = np.r_[0:150, 500:650]
        frame = recording(0, 300).assign(time=time)
        with pytest.warns(match="the time has 1 gap"):
            table = read_series(frame, gaps=gaps)
        model = tiny().fit(table)
        assert model.graph_.metadata["n_segments"] == 2
        assert model.graph_.metadata["n_recordings"] == 1
        assert model.diagnostics_.counted.tolist() == [294] * 3

    def test_stability(self):
        frame = tiny(stability=2).fit(recordings()).graph_.to_frame()
        assert set(frame["frequency"]) <= {0.0, 0.5, 1.0}

    def test_lags_can_be_chosen(self):
        assert tiny(max_lag="auto").fit(recordings()).diagnostics_.max_lag == 3

    @pytest.mark.parametrize("n_slots", [8, 3])
    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_lags_can_be_chosen_from_short_recordings(self, n_slots):
        parts = [recording(i, n_slots) for i in range(30)]
        assert tiny(max_lag="auto").fit(parts).diagnostics_.max_lag < n_slots

    @pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
    def test_recordings_too_short_for_any_past_are_refused(self):
        with pytest.raises(DataError, match="max_lag"):
            tiny(max_lag=5).fit([recording(i, 1) for i in range(30)])

    def test_recordings_with_gaps(self):
        parts = [p.mask(np.random.default_rng(9).random(p.shape) < 0.1) for p in recordings()]
        with pytest.warns(match="missing values"):
            model = tiny().fit(parts)
        assert ("A", "B", 2) in edges(model)


class TestPrediction:
    def test_every_recording_begins_without_one(self, fitted):
        predicted = fitted.predict(recordings())
        assert predicted.shape == (300, 3)
        without = predicted.isna().any(axis=1).to_numpy().nonzero()[0]
        starts = np.cumsum([0, *LENGTHS[:-1]])
        assert without.tolist() == (starts[:, None] + np.arange(3)).ravel().tolist()
        assert predicted.iloc[without].isna().all().all()

    def test_they_come_in_the_units_of_each_recording(self):
        parts = recordings(level=1000.0)
        predicted = tiny(settings={"max_epochs": 15, "n_channels": 8}).fit(parts).predict(parts)
        start = 0
        for part, n in zip(parts, LENGTHS, strict=True):
            mine = predicted.iloc[start + 3 : start + n].to_numpy()
            error = ((part.to_numpy()[3:] - mine) ** 2).mean(0) / part.var().to_numpy()
            assert error[1] < 0.9
            assert (error < 1.3).all()
            start += n

    def test_the_index_is_the_time(self):
        parts = [p.assign(time=np.arange(len(p)) * 0.5 + 7) for p in recordings()]
        predicted = tiny().fit(parts).predict(parts)
        assert predicted.index[:3].tolist() == [7.0, 7.5, 8.0]
        assert predicted.index[60] == 7.0

    def test_other_recordings_do_not_change_those_of_one(self, fitted):
        together, alone = fitted.predict(recordings()), fitted.predict(recordings()[1])
        np.testing.assert_allclose(together.iloc[60:140], alone, atol=1e-6)

    def test_a_saved_model_predicts_the_same(self, fitted, tmp_path):
        loaded = CausalFormer.load(fitted.save(tmp_path / "m"))
        pd.testing.assert_frame_equal(loaded.predict(recordings()), fitted.predict(recordings()))
        assert loaded.graph_ == fitted.graph_
        assert dict(loaded.graph_.metadata) == dict(fitted.graph_.metadata)

    def test_the_frame_that_was_fitted_can_be_predicted(self):
        model = tiny().fit(long_frame(), group="who")
        assert len(model.predict(long_frame(), group="who")) == 300


class TestExplain:
    def test_slots_near_the_start_of_a_recording_are_refused(self, fitted):
        for slot in (60, 62, 140):
            with pytest.raises(DataError, match=f"slot {slot} cannot be explained"):
                fitted.explain(slot)
        with pytest.raises(DataError, match="choose from 63"):
            fitted.explain(61)

    def test_the_past_is_that_of_the_same_recording(self, fitted):
        found = fitted.explain(63)
        assert found.conservation_error < 1e-5
        np.testing.assert_array_equal(found.value, recordings()[1].to_numpy()[2::-1].T)

    def test_a_slot_of_the_first_recording_knows_nothing_of_the_second(self, fitted):
        other = recordings()
        other[1] = other[1] + 3.0
        first, second = fitted.explain(59), fitted.explain(59, other)
        np.testing.assert_array_equal(first.relevance, second.relevance)


class TestPaper:
    def test_windows_stay_within_a_recording(self):
        model = CausalFormer("paper-fmri", settings=SMALL_PAPER).fit(recordings())
        predicted = model.predict(recordings())
        without = predicted.isna().any(axis=1).to_numpy().nonzero()[0]
        starts = np.cumsum([0, *LENGTHS[:-1]])
        assert without.tolist() == (starts[:, None] + np.arange(3)).ravel().tolist()

    def test_too_short_recordings_are_refused(self):
        with pytest.raises(DataError, match="0 windows of 4 slots"):
            CausalFormer("paper-fmri", settings=SMALL_PAPER).fit(
                [recording(i, 3) for i in range(9)]
            )


class TestShortRecordings:
    def test_levels_that_could_not_be_removed_are_named(self):
        parts = [recording(i, 15) + np.array([40.0 * i, 0, 0]) for i in range(20)]
        with pytest.warns(match=r"differ in the level of A and some are too short"):
            tiny(max_lag=1).fit(parts)


class TestCheckpoint:
    def test_a_checkpoint_of_other_recordings_is_refused(self, tmp_path, monkeypatch):
        from causalformer import estimator
        from causalformer.errors import FileFormatError

        plain = estimator.CheckpointFile
        monkeypatch.setattr(
            estimator, "CheckpointFile", lambda path, mark: plain(path, mark, every_seconds=0)
        )

        def interrupt(epoch):
            if epoch.number == 1:
                raise KeyboardInterrupt

        path = tmp_path / "state.safetensors"
        tiny(checkpoint=path, on_epoch=interrupt).fit(recordings())
        joined = pd.concat(recordings(), ignore_index=True)  # the same numbers, one recording
        with pytest.raises(FileFormatError, match="other data"):
            tiny(checkpoint=path).fit(joined)
        assert len(tiny(checkpoint=path).fit(recordings()).history_.epochs) == 3
