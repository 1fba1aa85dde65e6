"""When the command line opens the report, and what it says when it does not."""

import json
import shlex
import sys
import webbrowser

import pytest
from typer.testing import CliRunner

from causalformer.cli import app, browser, fitting
from causalformer.datasets import make_structure

QUICK = ("--set", "max_epochs=2", "--set", "n_channels=4", "--max-lag", "1")


@pytest.fixture
def data(tmp_path):
    return make_structure("fork", 60, random_state=0).save(tmp_path / "my data")


@pytest.fixture
def desk(monkeypatch, tmp_path):
    """A terminal with a screen; gives the pages that a browser was asked for."""
    opened = []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(webbrowser, "open", lambda page: opened.append(page) or True)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return opened


def test_a_page_opens_in_front_of_a_screen(desk, tmp_path):
    assert browser.open_page(tmp_path / "a b.html")
    assert desk == [(tmp_path / "a b.html").as_uri()]


@pytest.mark.parametrize("what", ["no terminal", "no screen", "a build"])
def test_nothing_opens_where_nobody_watches(desk, tmp_path, monkeypatch, what):
    if what == "no terminal":
        monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    elif what == "no screen":
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    else:
        monkeypatch.setenv("CI", "true")
    assert not browser.open_page(tmp_path / "report.html")
    assert desk == []


def test_a_machine_without_any_browser_is_no_error(desk, tmp_path, monkeypatch):
    def fail(_):
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    assert not browser.open_page(tmp_path / "report.html")


@pytest.mark.parametrize("possible", [True, False])
def test_discover_opens_the_report_on_request_and_always_says_where_it_is(
    data, tmp_path, monkeypatch, possible
):
    asked = []
    monkeypatch.setattr(fitting, "open_page", lambda page: asked.append(page) or possible)
    out = tmp_path / "out"
    words = ["discover", str(data), *QUICK, "--out", str(out)]
    done = CliRunner().invoke(app, [*words, "--browser"])
    assert done.exit_code == 0, done.output
    assert asked == [out / "report.html"]
    words_for = "The report is open in your browser" if possible else "Open the report in a browser"
    assert f"{words_for}: {out / 'report.html'}\n" in done.stdout
    again = CliRunner().invoke(app, words)
    assert f"Open the report in a browser: {out / 'report.html'}\n" in again.stdout
    assert len(asked) == 1


@pytest.mark.parametrize(("screen", "opens"), [(":0", True), ("", False)])
def test_the_app_opens_no_browser_without_a_screen(desk, monkeypatch, screen, opens):
    server = pytest.importorskip("causalformer.app.server", reason="the extra `app` is missing")
    asked = []
    monkeypatch.setattr(server, "serve", lambda *_, **options: asked.append(options["browser"]))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for words in (["app"], ["app", "--no-browser"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    assert asked == [opens, False]


def test_a_report_that_is_nowhere_cannot_be_opened(data):
    done = CliRunner().invoke(app, ["discover", str(data), "--browser"])
    assert done.exit_code == 2
    assert "--browser needs a folder for the results: add --out" in done.stderr


def test_the_command_of_a_run_can_be_pasted_into_a_shell(data, tmp_path, monkeypatch):
    words = ["discover", str(data), *QUICK, "--forbid", "* -> x0", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["causalformer", *words])
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    command = json.loads((tmp_path / "out" / "run.json").read_text())["command"]
    assert shlex.split(command) == ["causalformer", *words]
