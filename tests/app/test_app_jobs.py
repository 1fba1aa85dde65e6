"""The work behind the app: real processes, which are cancelled, killed and survived."""

import io
import json
import os
import signal
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `app` is not installed")
testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")

from app_examples import ENDLESS, QUICK, running_app, small_csv  # noqa: E402
from causalformer.app.jobs import Jobs  # noqa: E402
from causalformer.app.runs import Workspace  # noqa: E402
from causalformer.app.server import DOWNLOADS, create_app  # noqa: E402
from causalformer.graph import CausalGraph  # noqa: E402
from waiting import PATIENCE, wait_until  # noqa: E402

HOME = "http://127.0.0.1:4321"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    return Jobs(Workspace(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def client(jobs):
    app = create_app(jobs, token="t", port=4321, max_upload=1)
    with testclient.TestClient(app, base_url=HOME, headers={"Origin": HOME}) as client:
        client.get("/?token=t")
        yield client


def draft(client, content=None, name="data.csv"):
    answer = client.post("/api/runs", params={"name": name}, content=content or small_csv())
    return answer.json()["id"]


def started(client, settings, **file):
    run = draft(client, **file)
    assert client.post(f"/api/runs/{run}/start", json=settings).status_code == 200
    return run


def state(client, run):
    return client.get(f"/api/runs/{run}").json()["state"]


def ended(client, run):
    return wait_until(
        lambda: (
            state(client, run) not in ("waiting", "running")
            and client.get(f"/api/runs/{run}").json()
        ),
        "the end of the run",
    )


def epochs(jobs, run):
    summary = jobs.workspace.summary(jobs.workspace.get(run))
    return len(summary.get("progress", {}).get("losses", ()))


def trained_a_little(jobs, run):
    return wait_until(lambda: epochs(jobs, run) > 2, "training")


def preview(client, run, **columns):
    answer = client.post(f"/api/runs/{run}/preview", json=columns)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def done(client):
    """A finished run."""
    run = started(client, QUICK)
    assert ended(client, run)["state"] == "done"
    return run


# ----------------------------------------------------------------------------------------- results


def test_all_results_can_be_had_one_by_one_and_together(client, done):
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/api/runs/{done}/all.zip").content))
    assert sorted(archive.namelist()) == sorted([*DOWNLOADS, "data.csv"])
    for name in DOWNLOADS:
        answer = client.get(f"/api/runs/{done}/files/{name}")
        assert answer.content == archive.read(name)
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    facts = json.loads(archive.read("run.json"))
    assert facts["source"] == "data.csv"
    assert facts["command"].startswith("causalformer discover data.csv --max-lag 2 --set")
    graph = CausalGraph.from_json(archive.read("graph.json").decode())
    assert client.get(f"/api/runs/{done}").json()["n_edges"] == len(graph)


def test_the_report_is_shown_in_a_sandbox(client, done):
    answer = client.get(f"/api/runs/{done}/report")
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    assert answer.text.startswith("<!doctype html>")


def test_the_command_line_finds_the_same(client, done, tmp_path, monkeypatch):
    import shlex

    from typer.testing import CliRunner

    from causalformer.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_bytes(small_csv())
    command = json.loads(client.get(f"/api/runs/{done}/files/run.json").content)["command"]
    assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0
    mine = CausalGraph.load(tmp_path / "results" / "graph.json")
    theirs = client.get(f"/api/runs/{done}/files/graph.json").content.decode()
    assert mine == CausalGraph.from_json(theirs)


def test_two_runs_are_compared(client, done):
    graph = CausalGraph.from_json(client.get(f"/api/runs/{done}/files/graph.json").text)
    edge = next(iter(graph))
    other = started(client, {**QUICK, "forbid": [f"{edge.cause} -> {edge.effect}"]})
    assert ended(client, other)["state"] == "done"
    answer = client.get("/api/compare", params={"a": done, "b": other}).json()
    assert [run["id"] for run in answer["runs"]] == [done, other]
    kinds = [(bool(edge["a"]), bool(edge["b"])) for edge in answer["edges"]]
    order = [(True, True), (True, False), (False, True)]
    assert kinds == sorted(kinds, key=order.index)
    assert (True, False) in kinds
    same = client.get("/api/compare", params={"a": done, "b": done}).json()["edges"]
    assert all(edge["a"] == edge["b"] for edge in same)


# ---------------------------------------------------------------------------------------- previews


def test_a_preview_tells_what_the_file_holds(client):
    found = preview(client, draft(client))
    assert found["error"] is None
    assert found["columns"][0] == "day"
    assert (found["time_position"], found["n_series"], found["n_slots"]) == (0, 3, 80)
    assert found["time"] == ["2024-01-01", "2024-03-24"]
    assert len(found["rows"]) == 6


def test_the_time_column_can_be_chosen(client):
    run = draft(client, b"a,b,c\n" + b"".join(b"%d,%d,1\n" % (i, i * 7 % 5) for i in range(60)))
    assert preview(client, run)["time_position"] is None
    found = preview(client, run, time_column=0)
    assert (found["time_position"], found["series"]) == (0, ["b", "c"])
    notes = [note["kind"] for note in found["notes"]]
    assert "constant" in notes


def test_a_column_of_names_is_offered_as_a_group(client):
    lines = [f"{who},{i * 7 % 11},{i * 5 % 13}" for who in ("anna", "ben") for i in range(40)]
    run = draft(client, "\n".join(["who,x,y", *lines]).encode())
    found = preview(client, run)
    assert found["error"].startswith("data.csv: column 'who' holds text")
    assert found["groups"] == ["who"]
    grouped = preview(client, run, group="who")
    assert (grouped["error"], grouped["n_recordings"], grouped["series"]) == (None, 2, ["x", "y"])


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"\xff\xfe\x00"), ("a.parquet", b"PAR1 no"), ("a.npz", b"PK no"), ("a.csv", b" ")],
)
def test_a_file_that_cannot_be_read_is_explained_in_one_line(client, name, content):
    error = preview(client, draft(client, content, name))["error"]
    assert error.startswith("a.")
    assert "\n" not in error
    assert "upload" not in error


# ------------------------------------------------------------------------- failures, queue, cancel


def test_a_failure_is_told_in_one_line_and_can_be_mended(client):
    run = started(client, {**QUICK, "forbid": ["nobody -> nowhere"]})
    failed = ended(client, run)
    assert failed["state"] == "failed"
    assert "nobody" in failed["error"]
    client.post(f"/api/runs/{run}/start", json=QUICK)
    assert ended(client, run)["state"] == "done"


def test_runs_wait_their_turn_and_are_cancelled_in_the_queue_or_at_work(client, jobs):
    long, waiting, last = (started(client, s) for s in (ENDLESS, QUICK, QUICK))
    trained_a_little(jobs, long)
    assert (state(client, waiting), state(client, last)) == ("waiting", "waiting")
    client.post(f"/api/runs/{waiting}/cancel")
    assert state(client, waiting) == "cancelled"
    assert client.delete(f"/api/runs/{long}").json()["error"].endswith("cancel it first")
    pid = jobs.worker.pid
    client.post(f"/api/runs/{long}/cancel")
    assert state(client, long) == "cancelled"
    assert ended(client, last)["state"] == "done"
    assert jobs.worker.pid != pid
    assert state(client, waiting) == "cancelled"


def test_a_cancelled_run_goes_on_where_it_was(client, jobs):
    run = started(client, ENDLESS)
    trained_a_little(jobs, run)
    client.post(f"/api/runs/{run}/cancel")
    progress = jobs.workspace.path(run) / "progress.jsonl"
    before = progress.read_text()
    client.post(f"/api/runs/{run}/resume")
    wait_until(lambda: len(progress.read_text()) > len(before) + 500, "going on")
    client.post(f"/api/runs/{run}/cancel")
    lines = [json.loads(line) for line in progress.read_text().splitlines() if "}" in line]
    assert sum(line.get("epoch") == 1 for line in lines) == 1


def test_a_crash_of_the_worker_does_not_take_the_app_down(client, jobs):
    run, after = started(client, ENDLESS), started(client, QUICK)
    trained_a_little(jobs, run)
    os.kill(jobs.worker.pid, signal.SIGKILL)
    failed = ended(client, run)
    assert failed["state"] == "failed"
    assert "was killed (signal 9)" in failed["error"]
    assert client.get("/api/about").status_code == 200
    assert ended(client, after)["state"] == "done"


def test_a_crash_during_a_preview_is_an_error_of_that_preview(client, jobs, monkeypatch):
    monkeypatch.setattr("causalformer.app.jobs._PREVIEW_SECONDS", 0.0)
    os.kill(jobs._previewer.pid, signal.SIGSTOP)  # else it might be faster than no time at all
    found = client.post(f"/api/runs/{draft(client)}/preview", json={}).json()
    assert "was killed" in found["error"]
    monkeypatch.undo()
    assert preview(client, draft(client))["error"] is None


# ----------------------------------------------------------------------------------------- restart


def test_a_killed_server_leaves_no_worker_and_the_next_one_goes_on(tmp_path):
    httpx = pytest.importorskip("httpx")

    @contextmanager
    def browser(address):
        home = address.partition("/?")[0]
        own = {"base_url": home, "headers": {"Origin": home}, "trust_env": False}
        with httpx.Client(timeout=PATIENCE, **own) as client:
            assert client.get(address).status_code == 200
            yield client

    settings = {"set": {"max_epochs": "300", "n_channels": "4"}, "max_lag": 2}
    with running_app(tmp_path) as (process, address), browser(address) as client:
        run = started(client, settings)
        progress = tmp_path / run / "progress.jsonl"
        wait_until(
            lambda: progress.exists() and progress.read_text().count("epoch") > 9, "training"
        )
        process.kill()
        process.wait()
    wait_until(lambda: not workers_of(tmp_path), "the end of the worker")
    assert json.loads((tmp_path / run / "run.json").read_text())["state"] == "running"
    before = progress.read_text().count('"epoch"')
    with running_app(tmp_path) as (process, address), browser(address) as client:
        assert ended(client, run)["state"] == "done"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 0
    numbers = [json.loads(line).get("epoch") for line in progress.read_text().splitlines()]
    assert numbers.count(1) == 1  # it did not begin anew
    assert max(number or 0 for number in numbers) == 300 > before - 2


def workers_of(workspace):
    """Processes whose log is in a workspace (Linux)."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                log = Path(f"/proc/{entry.name}/fd/2").readlink()
            except OSError:
                continue
            if log == workspace.resolve() / "worker.log":
                found.append(int(entry.name))
    return found
