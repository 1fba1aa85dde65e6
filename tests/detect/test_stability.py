from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalformer.config import DetectorSettings
from causalformer.detect import stability
from causalformer.detect.blocks import detect
from causalformer.detect.stability import block_bootstrap, edge_frequency
from causalformer.errors import FileFormatError
from causalformer.knowledge import KnownGraph
from causalformer.training import CheckpointFile
from evidence_examples import samples_of

TINY = DetectorSettings(max_epochs=2, n_channels=4)


def frequency(coupling=1.0, **changes):
    x = np.random.default_rng(1).standard_normal((150, 3))
    x[1:, 1] += coupling * x[:-1, 0]
    options = {"n_refits": 3, "n_jobs": 1, "random_state": 0} | changes
    return edge_frequency(samples_of(x, 2), TINY, KnownGraph.anything(3, 2), 0.05, **options)


@pytest.fixture(scope="module")
def found():
    return frequency()


def test_a_clear_edge_comes_back_every_time(found):
    assert found[0, 1] == 1
    assert found[1, 0] < 1
    assert set(np.round(found.ravel() * 3, 9)) <= {0, 1, 2, 3}


def test_the_number_of_processes_does_not_change_the_result(found):
    np.testing.assert_array_equal(frequency(n_jobs=2), found)


class TestCheckpoint:
    def kept(self, tmp_path, fingerprint="mine"):
        return CheckpointFile(tmp_path / "checkpoint.safetensors", fingerprint)

    def test_what_is_done_is_not_done_again(self, found, tmp_path, monkeypatch):
        checkpoint = self.kept(tmp_path)
        frequency(n_refits=2, checkpoint=checkpoint)
        calls = []
        monkeypatch.setattr(stability, "detect", lambda *a, **k: calls.append(1) or detect(*a, **k))
        np.testing.assert_array_equal(frequency(checkpoint=checkpoint), found)
        assert len(calls) == 1  # the third of three
        np.testing.assert_array_equal(frequency(checkpoint=checkpoint), found)
        assert len(calls) == 1

    def test_a_refit_that_was_cut_short_does_not_count(self, found, tmp_path, monkeypatch):
        checkpoint, calls = self.kept(tmp_path), []

        def second_is_cut(*arguments, **options):
            model, history, evidence = detect(*arguments, **options)
            calls.append(1)
            stopped = "interrupted" if len(calls) == 2 else history.stopped
            return model, replace(history, stopped=stopped), evidence

        monkeypatch.setattr(stability, "detect", second_is_cut)
        with pytest.raises(KeyboardInterrupt):
            frequency(checkpoint=checkpoint)
        monkeypatch.undo()
        assert len(calls) == 2
        np.testing.assert_array_equal(frequency(checkpoint=checkpoint), found)

    def test_refits_of_something_else_are_refused(self, tmp_path):
        frequency(n_refits=1, checkpoint=self.kept(tmp_path))
        with pytest.raises(FileFormatError, match="belongs to other data"):
            frequency(n_refits=1, checkpoint=self.kept(tmp_path, "yours"))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{",
            '{"fingerprint": "mine"}',
            '{"fingerprint": "mine", "edges": [1]}',
            '{"fingerprint": "mine", "edges": {"1": [[0, 9]]}}',
        ],
    )
    def test_a_damaged_file_is_named(self, tmp_path, text):
        checkpoint = self.kept(tmp_path)
        checkpoint.refits.write_text(text)
        with pytest.raises(FileFormatError, match=r"refits.json is damaged .*delete it"):
            frequency(n_refits=1, checkpoint=checkpoint)


def test_a_weak_edge_comes_back_now_and_then():
    assert 0 < frequency(coupling=0.2, n_refits=10)[0, 1] < 1


def test_the_seed_decides_what_is_drawn():
    first, second, other = (frequency(0.2, n_refits=5, random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@given(n_slots=st.integers(1, 500), seed=st.integers(0, 100))
def test_a_bootstrap_is_as_long_as_the_data_and_made_of_blocks(n_slots, seed):
    slots = block_bootstrap(n_slots, np.random.default_rng(seed))
    assert len(slots) == n_slots
    assert slots.min() >= 0
    assert slots.max() < n_slots
    length = min(n_slots, int(np.ceil(4 * n_slots ** (1 / 3))))
    inside = np.arange(1, n_slots) % length != 0
    assert (np.diff(slots)[inside] == 1).all()
