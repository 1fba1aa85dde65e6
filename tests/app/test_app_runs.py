"""Runs on disk: they outlive the server, and damage does not spread."""

import pytest

pytest.importorskip("fastapi", reason="the extra `app` is not installed")

from causalformer.app.runs import PROGRESS, Workspace, read_progress, write_progress
from causalformer.app.settings import RunSettings
from causalformer.errors import OutputError, SettingsError


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def made(workspace, name="a.csv"):
    return workspace.create(name, lambda path: path.write_text("a,b\n1,2\n"))


def test_runs_are_as_they_were_after_a_restart(workspace):
    run = made(workspace)
    queued = workspace.queue(run.id, RunSettings(alpha=0.01))
    again = Workspace(workspace.folder)
    assert again.get(run.id) == queued
    assert again.next_waiting() == queued


def test_what_was_at_work_comes_first_after_a_restart(workspace):
    first, second = made(workspace), made(workspace)
    for run in (second, first):
        workspace.queue(run.id, RunSettings())
    workspace.change(first.id, state="running")
    again = Workspace(workspace.folder)
    again.recover()
    assert again.next_waiting().id == first.id
    assert [run.state for run in again.runs()] == ["waiting", "waiting"]


def test_a_damaged_run_does_not_hide_the_others(workspace):
    good, bad, strange = made(workspace), made(workspace), made(workspace)
    (workspace.path(bad.id) / "run.json").write_text("{ broken")
    text = (workspace.path(good.id) / "run.json").read_text()
    (workspace.path(strange.id) / "run.json").write_text(text)
    (workspace.folder / "not a run").mkdir()
    assert [run.id for run in Workspace(workspace.folder).runs()] == [good.id]


def test_nothing_stays_of_an_upload_that_failed(workspace):
    def fail(path):
        path.write_text("half")
        raise KeyError

    with pytest.raises(KeyError):
        workspace.create("a.csv", fail)
    assert list(workspace.folder.iterdir()) == []


def test_other_settings_begin_anew_and_the_same_go_on(workspace):
    run = made(workspace)
    results = workspace.path(run.id) / "results"
    results.mkdir()
    workspace.change(run.id, state="cancelled")
    workspace.queue(run.id, RunSettings())
    assert results.exists()
    workspace.change(run.id, state="failed", error="why")
    assert workspace.queue(run.id, RunSettings(alpha=0.01)).error is None
    assert not results.exists()


def test_a_run_at_work_is_not_deleted(workspace):
    run = made(workspace)
    workspace.change(run.id, state="running")
    with pytest.raises(SettingsError, match="cancel it first"):
        workspace.delete(run.id)


def test_two_servers_do_not_share_a_folder(workspace):
    pytest.importorskip("fcntl")
    with workspace.claimed():
        other = Workspace(workspace.folder).claimed()
        with pytest.raises(OutputError, match="another app works in"):
            other.__enter__()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="choose another `workspace`"):
        Workspace(tmp_path / "file")


def test_progress_is_read_while_it_is_written(tmp_path):
    path = tmp_path / PROGRESS
    assert read_progress(path)["stage"] == "starting"
    write_progress(path, stage="training", max_epochs=3)
    write_progress(path, epoch=1, loss=2.0, seconds=1.0)
    write_progress(path, epoch=2, loss=float("nan"), seconds=3.0)
    write_progress(path, epoch=2, loss=float("nan"), seconds=2.0)  # again, after a crash
    with path.open("a") as file:
        file.write('{"epoch": 3, "lo')
    found = read_progress(path)
    assert found["losses"] == [2.0, None]
    assert found["seconds_left"] == 2.0


def test_the_command_of_all_settings_is_one_of_the_command_line():
    from causalformer.cli.discover import discover

    settings = RunSettings(
        max_lag="auto", alpha=0.1, instantaneous="no", stability=2, missing="mean", group="who",
        season="24", time_column=0, prepare=["detrend"], forbid=["a -> b"], require=["b -> a"],
        seed=1, preset="paper-fmri", set={"max_epochs": "2"},
    )  # fmt: skip
    words = settings.command("my data.csv").split(" --")[1:]
    options = {word.split(" ")[0].replace("-", "_") for word in words}
    known = set(discover.__annotations__) | {"set"}
    assert options == {*RunSettings.model_fields, "out"}
    assert options <= known
