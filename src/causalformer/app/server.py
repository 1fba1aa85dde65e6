"""The routes, and the server that they run in; what they do is done elsewhere."""

import hashlib
import json
import secrets
import shutil
import socket
import tempfile
import threading
import webbrowser
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from causalformer._version import __version__
from causalformer.app.comparison import compare_graphs
from causalformer.app.guard import REPORT_POLICY, Guard
from causalformer.app.jobs import Jobs
from causalformer.app.runs import RESULTS, SUFFIXES, Run, Workspace
from causalformer.app.settings import Columns, RunSettings
from causalformer.config import DEFAULT, PRESETS
from causalformer.errors import CausalFormerError, OutputError
from causalformer.files import UNFINISHED
from causalformer.graph import CausalGraph
from causalformer.names import printable_name

_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_ASSETS: Final = {
    "app.css": "causalformer.app",
    "app.js": "causalformer.app",
    "report.css": "causalformer.report",  # the same look
    "text.js": "causalformer.report",  # elements whose texts are never read as HTML
}
DOWNLOADS: Final = (
    *("report.html", "edges.csv", "graph.json", "graph.png", "graph.graphml", "graph.dot"),
    *("scores.csv", "run.json"),
)


def create_app(
    jobs: Jobs,
    *,
    token: str,
    port: int,
    max_upload: int,
) -> FastAPI:
    """Put the app together.

    Parameters
    ----------
    jobs : Jobs
        The queue over the workspace; started and stopped with the app.
    token : str
        What a browser must know; see `causalformer.app.guard.Guard`.
    port : int
        Where the app will listen.
    max_upload : int
        The most megabytes a file may have.
    """
    workspace = jobs.workspace

    @asynccontextmanager
    async def while_running(_: FastAPI) -> AsyncIterator[None]:
        jobs.start()
        yield
        jobs.stop()

    app = FastAPI(openapi_url=None, lifespan=while_running)
    app.add_middleware(Guard, token=token, port=port)
    _explain_errors(app)

    def existing(run_id: str) -> Run:
        try:
            return workspace.get(run_id)
        except KeyError:
            raise HTTPException(404, "there is no such run; it may have been deleted") from None

    def finished(run: Annotated[Run, Depends(existing)]) -> Path:
        if run.state != "done":
            raise HTTPException(404, "the run has no results yet")
        return workspace.path(run.id) / RESULTS

    ExistingRun = Annotated[Run, Depends(existing)]
    Results = Annotated[Path, Depends(finished)]

    @app.get("/")
    def page() -> Response:
        return _asset("causalformer.app", "index.html")

    @app.get("/assets/{name}")
    def asset(name: str) -> Response:
        if name not in _ASSETS:
            raise HTTPException(404, "there is no such file")
        return _asset(_ASSETS[name], name)

    @app.get("/api/about")
    def about() -> dict[str, Any]:
        return {
            "version": __version__,
            "workspace": str(workspace.folder),
            "max_upload": max_upload,
            "suffixes": SUFFIXES,
            "presets": [DEFAULT, *PRESETS],
            "downloads": DOWNLOADS,
        }

    @app.get("/api/runs")
    def all_runs(request: Request) -> Response:
        # pages ask again and again: a stream each would use up the connections of a browser
        text = json.dumps([workspace.summary(run) for run in workspace.runs()])
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304)
        return Response(text, media_type="application/json", headers={"etag": tag})

    @app.post("/api/runs")
    async def upload(request: Request, name: str) -> dict[str, Any]:
        part = workspace.folder / f"{UNFINISHED}{secrets.token_hex(6)}"
        try:
            await _receive(request, part, max_upload)
            own_name = printable_name(name.replace("\\", "/").rpartition("/")[2])
            return workspace.create(own_name, part.replace).model_dump()
        finally:
            part.unlink(missing_ok=True)

    @app.post("/api/example")
    def example() -> dict[str, Any]:
        source = Path(str(files("causalformer.datasets"))) / "example" / "greenhouse.csv"
        run = workspace.create(source.name, lambda path: shutil.copyfile(source, path))
        return run.model_dump()

    @app.get("/api/runs/{run_id}")
    def details(run: ExistingRun) -> dict[str, Any]:
        return run.model_dump()

    @app.post("/api/runs/{run_id}/preview")
    def preview(run: ExistingRun, columns: Columns) -> dict[str, Any]:
        return jobs.preview(run.id, columns)

    @app.post("/api/runs/{run_id}/start")
    def start(run: ExistingRun, settings: RunSettings) -> dict[str, Any]:
        queued = workspace.queue(run.id, settings)
        jobs.notice()
        return queued.model_dump()

    @app.post("/api/runs/{run_id}/cancel")
    def cancel(run: ExistingRun) -> dict[str, Any]:
        jobs.cancel(run.id)
        return workspace.get(run.id).model_dump()

    @app.post("/api/runs/{run_id}/resume")
    def resume(run: ExistingRun) -> dict[str, Any]:
        return start(run, run.settings)

    @app.post("/api/runs/{run_id}/copy")
    def copy(run: ExistingRun) -> dict[str, Any]:
        return workspace.copy(run.id).model_dump()

    @app.delete("/api/runs/{run_id}")
    def delete(run: ExistingRun) -> dict[str, Any]:
        workspace.delete(run.id)
        return {}

    @app.get("/api/runs/{run_id}/report")
    def report(results: Results) -> FileResponse:
        policy = {"content-security-policy": REPORT_POLICY}
        return FileResponse(results / "report.html", media_type="text/html", headers=policy)

    @app.get("/api/runs/{run_id}/files/{name}")
    def file(results: Results, name: str) -> FileResponse:
        if name not in DOWNLOADS:
            raise HTTPException(404, "there is no such file")
        return FileResponse(results / name, filename=name)

    @app.get("/api/runs/{run_id}/all.zip")
    def everything(run: ExistingRun, results: Results) -> FileResponse:
        archive = _zipped(workspace.path(run.id) / run.file, results)
        done = BackgroundTask(archive.unlink)
        return FileResponse(archive, filename="causalformer-results.zip", background=done)

    @app.get("/api/compare")
    def compare(a: str, b: str) -> dict[str, Any]:
        runs = [existing(run_id) for run_id in (a, b)]
        graphs = [CausalGraph.load(finished(run) / "graph.json") for run in runs]
        return {"runs": [run.model_dump() for run in runs], "edges": compare_graphs(*graphs)}

    return app


def serve(
    folder: Path, *, port: int, max_upload: int, browser: bool, say: Callable[[str], None]
) -> None:
    """Serve on 127.0.0.1 until Ctrl-C; port 0 takes any that is free."""
    workspace = Workspace(folder)
    with workspace.claimed(), _listening(port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = create_app(Jobs(workspace), token=token, port=port, max_upload=max_upload)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
        )
        address = f"http://127.0.0.1:{port}/?token={token}"
        say(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        with suppress(KeyboardInterrupt):  # uvicorn raises it again when all is closed
            server.run(sockets=[listening])


def _listening(port: int) -> socket.socket:
    """Listen on this machine only; a browser that is quicker than the server waits."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise OutputError(f"port {port} cannot be used: {reason}; choose another `port`") from error
    return listening


async def _receive(request: Request, path: Path, max_upload: int) -> None:
    """Stream a body to disk, and stop where it gets too large."""
    most = max_upload * 1_000_000
    refusal = HTTPException(413, f"the file is larger than {max_upload} MB; see --max-upload")
    if int(request.headers.get("content-length", 0)) > most:
        raise refusal
    size = 0
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise refusal
                file.write(chunk)
    except ClientDisconnect:
        raise HTTPException(400, "the upload was cut off") from None
    except OSError as error:
        raise OutputError(f"the file cannot be stored: {error.strerror}") from error


def _zipped(upload: Path, results: Path) -> Path:
    with tempfile.NamedTemporaryFile(suffix=".zip", delete=False) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(upload, f"data{upload.suffix}")
            for name in DOWNLOADS:
                archive.write(results / name, name)
        return Path(file.name)


def _asset(package: str, name: str) -> Response:
    content = (files(package) / "assets" / name).read_bytes()
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]])


def _explain_errors(app: FastAPI) -> None:
    """Answer every error with one readable line."""

    @app.exception_handler(CausalFormerError)
    async def refused(_: Request, error: CausalFormerError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(StarletteHTTPException)
    async def http_error(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:2])
        return JSONResponse({"error": f"{field}: {first['msg']}"}, 422)
