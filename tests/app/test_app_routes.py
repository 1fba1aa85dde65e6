"""Who may talk to the app, and what it refuses; nothing is computed here."""

import pytest

pytest.importorskip("fastapi", reason="the extra `app` is not installed")
testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")

from app_examples import small_csv  # noqa: E402
from causalformer.app.jobs import Jobs  # noqa: E402
from causalformer.app.runs import Workspace  # noqa: E402
from causalformer.app.server import create_app  # noqa: E402

TOKEN, PORT = "right-token", 4321
HOME = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "runs")


@pytest.fixture
def stranger(workspace):
    """A browser that knows nothing yet."""
    app = create_app(Jobs(workspace), token=TOKEN, port=PORT, max_upload=1)
    return testclient.TestClient(app, base_url=HOME, headers={"Origin": HOME})


@pytest.fixture
def client(stranger):
    """A browser that opened the address with the token."""
    assert stranger.get("/", params={"token": TOKEN}).status_code == 200
    return stranger


def uploaded(client, name="data.csv", content=None):
    answer = client.post("/api/runs", params={"name": name}, content=content or small_csv())
    assert answer.status_code == 200, answer.text
    return answer.json()


def left_on_disk(workspace):
    return sorted(path.name for path in workspace.folder.iterdir())


# ----------------------------------------------------------------------------------- who may come


@pytest.mark.parametrize(
    "path",
    ["/", "/assets/app.js", "/api/about", "/api/runs", "/api/runs/000000000000", "/nowhere"],
)
def test_everything_is_closed_without_the_token(stranger, path):
    for address in (path, f"{path}?token=wrong", f"{path}?token="):
        answer = stranger.get(address)
        assert answer.status_code == 403
        assert "token" in answer.text


def test_the_token_opens_only_the_page_and_a_cookie_the_rest(stranger):
    assert stranger.get("/api/about", params={"token": TOKEN}).status_code == 403
    opened = stranger.get("/", params={"token": TOKEN})
    cookie = opened.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "causalformer" in opened.text
    assert stranger.get("/api/about").json()["max_upload"] == 1
    assert "set-cookie" not in stranger.get("/").headers


def test_a_wrong_cookie_opens_nothing(stranger):
    stranger.cookies.set(f"causalformer-{PORT}", "right-toke")
    assert stranger.get("/api/about").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", ""])
def test_other_host_names_are_refused(client, host):
    for path in ("/api/about", f"/?token={TOKEN}"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_changes_from_other_origins_are_refused(client, workspace, origin):
    run = uploaded(client)
    for path in ("/api/runs?name=a.csv", "/api/example", f"/api/runs/{run['id']}/copy"):
        assert client.post(path, headers={"Origin": origin}).status_code == 403
    assert client.delete(f"/api/runs/{run['id']}", headers={"Origin": origin}).status_code == 403
    del client.headers["Origin"]
    assert client.post("/api/example").status_code == 403
    assert len(workspace.runs()) == 1


def test_pages_may_load_nothing_from_elsewhere(client):
    for path in ("/", "/assets/app.css", "/api/about", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"


# ------------------------------------------------------------------------------- the list of runs


def test_the_list_of_runs_is_sent_again_only_when_it_changed(client):
    run = uploaded(client)
    first = client.get("/api/runs")
    assert [each["id"] for each in first.json()] == [run["id"]]
    seen = {"If-None-Match": first.headers["etag"]}
    assert client.get("/api/runs", headers=seen).status_code == 304
    uploaded(client)
    again = client.get("/api/runs", headers=seen)
    assert len(again.json()) == 2
    assert again.headers["etag"] != first.headers["etag"]


# ---------------------------------------------------------------------------------------- uploads


def test_large_files_are_refused_whether_they_say_so_or_not(client, workspace):
    def endless():
        for _ in range(30):
            yield b"1,2\n" * 10_000

    for content in (b"1" * 1_000_001, endless()):
        answer = client.post("/api/runs", params={"name": "a.csv"}, content=content)
        assert answer.status_code == 413
        assert answer.json() == {"error": "the file is larger than 1 MB; see --max-upload"}
    assert left_on_disk(workspace) == []


@pytest.mark.parametrize("name", ["run.exe", "noending", ".csv/../x", "a.csv\x00.html", ""])
def test_other_kinds_of_files_are_refused(client, workspace, name):
    answer = client.post("/api/runs", params={"name": name}, content=b"a,b\n1,2\n")
    assert answer.status_code == 400
    assert "supported are .csv" in answer.json()["error"]
    assert left_on_disk(workspace) == []


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd.csv",
        "..\\..\\evil.csv",
        "/abs.csv",
        "<img src=x>.csv",
        "a" * 5000 + ".csv",
    ],
)
def test_names_never_become_paths(client, workspace, name):
    run = uploaded(client, name)
    assert left_on_disk(workspace) == [run["id"]]
    assert sorted(p.name for p in workspace.path(run["id"]).iterdir()) == ["run.json", "upload.csv"]
    assert "/" not in run["name"]
    assert len(run["name"]) <= 200


def test_control_characters_in_names_are_made_visible(client):
    assert uploaded(client, "a\x1b[31m\nb.csv")["name"] == "a\\x1b[31m\\x0ab.csv"


# ------------------------------------------------------------------------------------------ paths


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../runs.py",
        "/assets/%2e%2e%2fruns.py",
        "/assets/index.html",
        "/api/runs/..",
        "/api/runs/%2e%2e",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/ID/files/..%2frun.json",
        "/api/runs/ID/files/%2e%2e%2f%2e%2e%2fworker.log",
        "/api/runs/ID/files/%2fetc%2fpasswd",
        "/api/runs/ID/files/checkpoint.safetensors",
        "/api/runs/ID/upload.csv",
        "/api/compare?a=../ID&b=ID",
    ],
)
def test_no_path_leads_out(client, workspace, path):
    run = uploaded(client)
    (workspace.path(run["id"]) / "results").mkdir()
    workspace.change(run["id"], state="done")
    answer = client.get(path.replace("ID", run["id"]))
    assert answer.status_code == 404
    assert set(answer.json()) in ({"error"}, {"detail"})


def test_results_are_there_when_they_are_done(client):
    run = uploaded(client)
    for path in ("report", "files/graph.json", "all.zip"):
        assert client.get(f"/api/runs/{run['id']}/{path}").status_code == 404


# --------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_lag": 0}, "max_lag"),
        ({"max_lag": "many"}, "max_lag"),
        ({"alpha": 2}, "alpha"),
        ({"stability": -1}, "stability"),
        ({"season": "weekly"}, "season"),
        ({"missing": "guess"}, "missing"),
        ({"forbid": [""]}, "forbid"),
        ({"device": "cuda"}, "device"),
        ({"checkpoint": "/etc/passwd"}, "checkpoint"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(client, workspace, settings, field):
    run = uploaded(client)
    answer = client.post(f"/api/runs/{run['id']}/start", json=settings)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"{field}: ")
    assert workspace.get(run["id"]).state == "draft"


def test_a_run_waits_and_cannot_be_started_twice(client):
    run = uploaded(client)
    started = client.post(f"/api/runs/{run['id']}/start", json={"max_lag": "auto", "seed": 3})
    assert started.json()["state"] == "waiting"
    assert started.json()["settings"]["max_lag"] == "auto"
    again = client.post(f"/api/runs/{run['id']}/start", json={})
    assert again.json() == {"error": "the run is waiting already"}


def test_copies_and_deletions(client, workspace):
    run = uploaded(client)
    client.post(f"/api/runs/{run['id']}/start", json={"alpha": 0.01})
    client.post(f"/api/runs/{run['id']}/cancel")
    copy = client.post(f"/api/runs/{run['id']}/copy").json()
    assert (copy["state"], copy["settings"]["alpha"]) == ("draft", 0.01)
    assert client.delete(f"/api/runs/{run['id']}").json() == {}
    assert left_on_disk(workspace) == [copy["id"]]
    assert client.get(f"/api/runs/{run['id']}").status_code == 404
    assert (
        client.post(f"/api/runs/{copy['id']}/cancel").json()["error"].startswith("the run is draft")
    )
