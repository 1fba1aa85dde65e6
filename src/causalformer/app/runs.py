"""Runs on disk: one folder each, with the upload, what was asked for, how far it is, the results.

File names of users are only ever shown. Folders are named by random numbers, files by this module.
"""

import json
import math
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from causalformer.app.settings import RunSettings
from causalformer.errors import FileFormatError, OutputError, SettingsError
from causalformer.files import home_expanded, read_text, remove_unfinished, write_text

State = Literal["draft", "waiting", "running", "done", "failed", "cancelled"]
SUFFIXES: Final = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz", ".nc")
PROGRESS: Final = "progress.jsonl"
RESULTS: Final = "results"
_ID: Final = re.compile(r"[0-9a-f]{12}")
_STARTABLE: Final = ("draft", "failed", "cancelled")


class Run(BaseModel):
    """One run as ``run.json`` keeps it; times are seconds since 1970."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    file: str
    state: State = "draft"
    created: float
    queued: float | None = None
    started: float | None = None
    finished: float | None = None
    error: str | None = None
    n_edges: int | None = None
    settings: RunSettings = RunSettings()


class Workspace:
    """All runs of one folder; every change is on disk before anybody is told of it.

    Parameters
    ----------
    folder : Path
        Where the runs are; made if it is missing.

    Examples
    --------
    >>> import tempfile
    >>> workspace = Workspace(tempfile.mkdtemp())
    >>> run = workspace.create("../../etc/passwd.csv", lambda path: path.write_text("a,b"))
    >>> run.file, workspace.path(run.id).parent == workspace.folder
    ('upload.csv', True)
    >>> [again.name for again in Workspace(workspace.folder).runs()]
    ['../../etc/passwd.csv']
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = home_expanded(folder).resolve()
        self.lock = threading.RLock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._runs = {run.id: run for run in self._stored()}
        except OSError as error:
            raise OutputError(
                f"cannot use the folder {self.folder}: {error.strerror}; choose another `workspace`"
            ) from error

    def _stored(self) -> Iterator[Run]:
        for folder in self.folder.iterdir():
            if _ID.fullmatch(folder.name):
                remove_unfinished(folder)
                with suppress(FileFormatError, ValidationError):
                    run = Run.model_validate_json(read_text(folder / "run.json"))
                    if run.id == folder.name:
                        yield run

    def runs(self) -> list[Run]:
        """Return all runs, the newest first."""
        with self.lock:
            return sorted(self._runs.values(), key=lambda run: run.created, reverse=True)

    def get(self, run_id: str) -> Run:
        """Return one run; there may be none of that id, which is a `KeyError`."""
        with self.lock:
            return self._runs[run_id]

    def path(self, run_id: str) -> Path:
        """Return the folder of a run that exists."""
        return self.folder / self.get(run_id).id

    def create(self, name: str, write: Callable[[Path], object]) -> Run:
        """Make a run of a file that ``write`` fills; nothing is left of it if that fails.

        Raises
        ------
        SettingsError
            If the name says that it is no file of series.
        """
        suffix = Path(name[-20:]).suffix.lower()
        if suffix not in SUFFIXES:
            raise SettingsError(f"unknown kind of file; supported are {', '.join(SUFFIXES)}")
        run_id = secrets.token_hex(6)
        run = Run(id=run_id, name=name[-200:], file=f"upload{suffix}", created=time.time())
        folder = self.folder / run_id
        try:
            folder.mkdir()
            write(folder / run.file)
            return self._keep(run)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def copy(self, run_id: str) -> Run:
        """Make a draft of the same file and settings."""
        run, folder = self.get(run_id), self.path(run_id)
        draft = self.create(run.name, lambda path: shutil.copyfile(folder / run.file, path))
        return self.change(draft.id, settings=run.settings)

    def delete(self, run_id: str) -> None:
        """Remove a run that is not at work."""
        with self.lock:
            if self.get(run_id).state == "running":
                raise SettingsError("the run is at work; cancel it first")
            shutil.rmtree(self.path(run_id), ignore_errors=True)
            del self._runs[run_id]

    def change(self, run_id: str, **changes: Any) -> Run:
        """Replace some facts of a run."""
        with self.lock:
            return self._keep(self.get(run_id).model_copy(update=changes))

    def queue(self, run_id: str, settings: RunSettings) -> Run:
        """Put a run at the end of the queue; with other settings it begins anew."""
        with self.lock:
            run = self.get(run_id)
            if run.state not in _STARTABLE:
                raise SettingsError(f"the run is {run.state} already")
            if settings != run.settings:
                self.forget_progress(run_id)
            now = time.time()
            fresh = dict.fromkeys(("started", "finished", "error", "n_edges"))
            return self.change(run_id, settings=settings, state="waiting", queued=now, **fresh)

    def forget_progress(self, run_id: str) -> None:
        """Remove results, checkpoint and progress."""
        shutil.rmtree(self.path(run_id) / RESULTS, ignore_errors=True)
        (self.path(run_id) / PROGRESS).unlink(missing_ok=True)

    def next_waiting(self) -> Run | None:
        """Return the run that has waited longest."""
        waiting = [run for run in self.runs() if run.state == "waiting"]
        return min(waiting, key=lambda run: run.queued or 0, default=None)

    def is_at_work(self, run_id: str) -> bool:
        """Say whether a run, which may have been deleted, is being worked at."""
        with self.lock:
            return run_id in self._runs and self._runs[run_id].state == "running"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other servers off, where the system knows how.

        Raises
        ------
        OutputError
            If another server works in this folder.
        """
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OutputError(
                    f"another app works in {self.folder} already; use that one, or choose another "
                    "`workspace`"
                ) from error
            yield

    def recover(self) -> None:
        """Queue again, first, what a server that died was working at."""
        for run in self.runs():
            if run.state == "running":
                self.change(run.id, state="waiting", queued=0.0)

    def summary(self, run: Run) -> dict[str, Any]:
        """Return what the list of runs shows."""
        facts = run.model_dump(exclude={"settings", "file"})
        facts["settings"] = run.settings.model_dump(exclude_defaults=True)
        if run.state in ("running", "waiting"):
            facts["progress"] = read_progress(self.folder / run.id / PROGRESS)
        return facts

    def _keep(self, run: Run) -> Run:
        with self.lock:
            write_text(self.folder / run.id / "run.json", run.model_dump_json(indent=2))
            self._runs[run.id] = run
            return run


def write_progress(path: Path, **fact: Any) -> None:
    """Add a line to a file of progress."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fact) + "\n")


def read_progress(path: Path) -> dict[str, Any]:
    r"""Return the stage, the losses by epoch and what is left, from a file that may be growing.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / PROGRESS
    >>> write_progress(path, stage="training", max_epochs=4)
    >>> write_progress(path, epoch=1, loss=0.5, seconds=2.0)
    >>> read_progress(path)
    {'stage': 'training', 'max_epochs': 4, 'losses': [0.5], 'seconds_left': 6.0}
    """
    facts: dict[str, Any] = {"stage": "starting", "max_epochs": None}
    losses: dict[int, float | None] = {}
    seconds = []
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                fact = json.loads(line)
                if "epoch" in fact:
                    loss = float(fact["loss"])
                    losses[fact["epoch"]] = loss if math.isfinite(loss) else None
                    seconds.append(float(fact["seconds"]))
                else:
                    facts |= fact
            except (ValueError, KeyError, TypeError):  # half of the last line
                continue
    facts["losses"] = [losses[number] for number in sorted(losses)]
    if seconds and facts["max_epochs"]:
        recent = seconds[-20:]
        left = facts["max_epochs"] - len(losses)
        facts["seconds_left"] = round(left * sum(recent) / len(recent), 1)
    return facts
