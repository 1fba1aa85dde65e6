"""The queue: one run after the other, in a process of its own that may crash or be killed."""

import json
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from causalformer.app.runs import Workspace
from causalformer.app.settings import Columns
from causalformer.errors import OutputError, SettingsError

_PREVIEW_SECONDS = 120.0


class Worker:
    """A process of `causalformer.app.worker`, started anew whenever it is needed and gone."""

    def __init__(self, task: Literal["discover", "preview"], log: Path) -> None:
        self._command = [sys.executable, "-m", "causalformer.app.worker", task]
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._reading = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The number of the process, if it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process unless it runs; it loads what it needs in the meantime."""
        if self.pid is not None:
            return
        self.kill()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
            )

    def ask(self, folder: Path, **options: Any) -> Callable[[], dict[str, Any]]:
        """Hand over the folder of a run and return what waits for the answer."""
        self.start()
        process = self._process
        assert process is not None
        with suppress(BrokenPipeError):  # it just died: waiting will tell
            print(json.dumps([str(folder), options]), file=process.stdin, flush=True)
        return lambda: self._answer(process)

    def _answer(self, process: "subprocess.Popen[str]") -> dict[str, Any]:
        """Wait for an answer; a process that dies instead is an error."""
        assert process.stdout is not None
        with self._reading:
            line = "" if process.stdout.closed else process.stdout.readline()
        if line.endswith("\n"):
            return dict(json.loads(line))
        code = process.wait()
        how = f"was killed (signal {-code})" if code < 0 else f"ended with code {code}"
        return {"error": f"the process that computed {how}; perhaps it needed too much memory"}

    def kill(self) -> None:
        """End the process at once: all it writes is written atomically."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        with self._reading:
            process.stdout.close()


class Jobs:
    """Work through the waiting runs of a workspace, one at a time."""

    def __init__(self, workspace: Workspace) -> None:
        log = workspace.folder / "worker.log"
        self.workspace = workspace
        self.worker = Worker("discover", log)
        self._previewer = Worker("preview", log)
        self._previewing = threading.Lock()
        self._changed = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin, first with what was being worked at when the last server ended."""
        self.workspace.recover()
        self.worker.start()
        self._previewer.start()
        self._thread.start()

    def stop(self) -> None:
        """End; a run at work stays marked as running and is taken up by the next server."""
        with self.workspace.lock:
            self._stopping = True
            self.worker.kill()
        self._previewer.kill()
        self._changed.set()
        self._thread.join()

    def notice(self) -> None:
        """Say that a run was queued."""
        self._changed.set()

    def cancel(self, run_id: str) -> None:
        """Take a run out of the queue, or end the work at it."""
        with self.workspace.lock:
            state = self.workspace.get(run_id).state
            if state not in ("waiting", "running"):
                raise SettingsError(f"the run is {state}; there is nothing to cancel")
            self.workspace.change(run_id, state="cancelled", finished=time.time())
            if state == "running":
                self.worker.kill()

    def preview(self, run_id: str, columns: Columns) -> dict[str, Any]:
        """Look at the file of a run, in a process of its own, for no longer than two minutes."""
        with self._previewing:
            wait = self._previewer.ask(self.workspace.path(run_id), **dict(columns))
            watch = threading.Timer(_PREVIEW_SECONDS, self._previewer.kill)
            watch.start()
            try:
                return wait()
            finally:
                watch.cancel()

    def _loop(self) -> None:
        while not self._stopping:
            self._changed.clear()
            try:
                if not self._do_next():
                    self._changed.wait()
            except OutputError:  # a full disk; the next server takes the run up again
                traceback.print_exc()

    def _do_next(self) -> bool:
        with self.workspace.lock:
            run = self.workspace.next_waiting()
            if run is None or self._stopping:
                return False
            self.workspace.change(run.id, state="running", started=time.time())
            wait = self.worker.ask(self.workspace.path(run.id))
        answer = wait()
        with self.workspace.lock:
            if self._stopping:
                return False
            if self.workspace.is_at_work(run.id):  # else it was cancelled meanwhile
                state = "failed" if "error" in answer else "done"
                self.workspace.change(run.id, state=state, finished=time.time(), **answer)
            self.worker.start()
        return True
