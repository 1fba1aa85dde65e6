"""The profile: every stage is found, counted once, and nothing stays watched."""

import pandas as pd
import pytest

from causalformer.bench import profile as profile_module
from causalformer.bench.profile import (
    OTHER,
    STAGES,
    StageClock,
    profile,
    profile_markdown,
    start_seconds,
    watched,
)


def test_every_stage_of_a_discovery_takes_time_and_is_watched_no_longer():
    from causalformer import default, estimator

    before = default.make_samples, estimator.read_series
    seconds = profile(9, 100, {"max_epochs": 1, "n_channels": 2})
    assert list(seconds) == [*STAGES, OTHER]
    assert min(seconds.values()) > 0
    assert (default.make_samples, estimator.read_series) == before


def test_a_stage_that_fails_is_counted_and_unwatched():
    from causalformer.data import reading

    clock, plain = StageClock(), reading.read_series
    with watched(clock, {"reading": ["data.reading:read_series"]}):
        assert reading.read_series is not plain
        with pytest.raises(Exception, match="does not exist"):
            reading.read_series("nowhere.csv")
    assert reading.read_series is plain
    assert set(clock.seconds) == {"reading"}


def test_a_function_that_is_gone_is_told():
    gone = watched(StageClock(), {"a": ["each:no_such"]})
    with pytest.raises(AttributeError, match="no_such"), gone:
        pass


def test_the_start_is_the_best_of_three():
    ticks = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    assert start_seconds(["-c", ""], lambda: next(ticks)) == 2.0


def test_the_table_has_a_column_per_size_and_a_sum():
    frame = pd.DataFrame(
        {"data": ["a", "a", "b", "b"], "stage": ["x", "y"] * 2, "seconds": [1.0, 2.0, 3.0, 4.0]}
    )
    text = profile_markdown(frame, {"import": 0.5})
    assert "| stage | a | b |" in text
    assert "| sum | 3.000 | 7.000 |" in text
    assert "| import | 0.500 |" in text


def test_the_command_writes_rows_and_table(tmp_path, monkeypatch):
    monkeypatch.setattr(profile_module, "SIZES", ((4, 120),))
    monkeypatch.setattr(profile_module, "profile", lambda *_: dict.fromkeys(STAGES, 0.25))
    monkeypatch.setattr(profile_module, "start_seconds", lambda _: 0.5)
    monkeypatch.setattr("sys.argv", ["profile", "--out", str(tmp_path)])
    profile_module.main()
    assert "| training | 0.250 |" in (tmp_path / "table.md").read_text()
    assert "N = 4, T = 120" in (tmp_path / "results.csv").read_text()
