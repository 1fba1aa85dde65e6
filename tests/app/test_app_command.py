"""The command `app`: what it refuses before it serves."""

import socket
import sys

import pytest
from typer.testing import CliRunner

from causalformer.cli import app


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "causalformer.app.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(app, ["app", "--no-browser", "--workspace", str(tmp_path)])
    assert done.exit_code == 2
    assert done.output == "error: the app needs uvicorn: pip install causalformer[app]\n"


def test_a_port_in_use_and_a_bad_folder_are_told_in_one_line(tmp_path):
    pytest.importorskip("fastapi", reason="the extra `app` is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ["app", "--no-browser", "--workspace", str(tmp_path), "--port", str(port)]
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "choose another --port" in done.output
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["app", "--workspace", str(tmp_path / "file")])
    assert done.exit_code == 2
    assert "choose another --workspace" in done.output
