"""The process that does the work: a task per line of its input, an answer per line of its output.

It ends when its input does, so that no work goes on behind a server that died.
"""

import json
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causalformer._version import __version__
from causalformer.app.runs import PROGRESS, RESULTS, Run, write_progress
from causalformer.errors import CausalFormerError, DataWarning
from causalformer.files import read_text

if TYPE_CHECKING:
    from causalformer.data import SeriesTable
    from causalformer.estimator import CausalFormer

Answer = dict[str, Any]


def work(task: Callable[..., Answer]) -> None:
    """Answer every folder that comes in; whatever goes wrong is an answer, too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the server
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # whatever a library prints is no answer
    tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, tasks), daemon=True).start()
    while True:
        folder, options = json.loads(tasks.get())
        print(json.dumps(_answer(task, Path(folder), options)), file=answers, flush=True)


def _listen(lines: Iterable[str], tasks: "queue.SimpleQueue[str]") -> None:
    for line in lines:
        tasks.put(line)
    os._exit(0)  # the server is gone


def _answer(task: Callable[..., Answer], folder: Path, options: dict[str, Any]) -> Answer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the report tells them
            return task(folder, **options)
    except CausalFormerError as error:
        return {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"unexpected {type(error).__name__}: {error}"}


def discover(folder: Path) -> Answer:
    """Fit the run of a folder, from its checkpoint if there is one, and write the results."""
    from causalformer.results import CHECKPOINT, prepared_folder, staged, write_discovery

    run = Run.model_validate_json(read_text(folder / "run.json"))
    progress, source = folder / PROGRESS, folder / run.file
    try:
        with prepared_folder(folder / RESULTS) as results:
            checkpoint = results / CHECKPOINT
            if not checkpoint.exists():
                progress.unlink(missing_ok=True)
            write_progress(progress, stage="reading")
            table = _read(run, source)
            model = _model(run, checkpoint, progress)
            model.fit(table)
            write_progress(progress, stage="writing")
            facts = {
                "command": run.settings.command(run.name),
                "version": __version__,
                "source": run.name,
                "n_series": table.n_series,
                "n_slots": table.n_slots,
                "recordings": list(table.recordings()),
                "names": list(table.names),
            }
            with staged(results) as stage:
                write_discovery(stage, model, table, facts)
            for path in results.glob(f"{checkpoint.stem}.*"):
                path.unlink()
    except CausalFormerError as error:
        return {"error": str(error).replace(str(source), run.name)}
    return {"n_edges": len(model.graph_)}


def _read(run: Run, source: Path) -> "SeriesTable":
    from causalformer.app.preview import time_column
    from causalformer.data import read_series
    from causalformer.data.preparation import prepare_table

    settings = run.settings
    column = time_column(settings.time_column)
    table = read_series(source, time_column=column, group=settings.group)
    return prepare_table(replace(table, source=run.name), settings.prepare)


def _model(run: Run, checkpoint: Path, progress: Path) -> "CausalFormer":
    from causalformer.config import resolve_settings
    from causalformer.estimator import CausalFormer
    from causalformer.knowledge import knowledge_from_options
    from causalformer.training import Epoch

    chosen = run.settings
    settings = resolve_settings(chosen.preset, chosen.set)
    write_progress(progress, stage="training", max_epochs=settings.max_epochs)

    def note(epoch: Epoch) -> None:
        write_progress(
            progress,
            epoch=epoch.number + 1,
            loss=epoch.validation_loss,
            seconds=round(epoch.seconds, 4),
        )

    return CausalFormer(
        chosen.preset,
        max_lag=chosen.max_lag,
        alpha=chosen.alpha,
        instantaneous={"yes": True, "no": False}.get(chosen.instantaneous, "auto"),
        stability=chosen.stability,
        season=chosen.season,
        missing=chosen.missing,
        knowledge=knowledge_from_options(require=chosen.require, forbid=chosen.forbid),
        settings={name: getattr(settings, name) for name in chosen.set},
        random_state=chosen.seed,
        checkpoint=checkpoint,
        on_epoch=note,
    )


def main() -> None:
    """Work at one kind of task; the discovery loads what it needs before it is asked."""
    from causalformer.app.preview import preview

    if sys.argv[1] == "discover":
        import causalformer.estimator
        import causalformer.results  # noqa: F401
    work({"discover": discover, "preview": preview}[sys.argv[1]])


if __name__ == "__main__":
    main()
