"""The folder in which one discovery leaves its results, once all of them are written."""

import csv
import io
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import FileFormatError, OutputError
from causalformer.files import (
    UNFINISHED,
    home_expanded,
    read_text,
    remove_unfinished,
    write_text,
)
from causalformer.formats import csv_line
from causalformer.report import write_report

if TYPE_CHECKING:
    from causalformer.data import SeriesTable
    from causalformer.each import EachRecording
    from causalformer.estimator import CausalFormer
    from causalformer.training import History

GRAPH_FILES: Final = ("graph.json", "edges.csv", "graph.graphml", "graph.dot", "graph.png")
CHECKPOINT: Final = "checkpoint.safetensors"


@contextmanager
def prepared_folder(folder: str | Path) -> Iterator[Path]:
    """Make a folder and prove that it can be written, before hours of work go into its content.

    What a killed run left half written in it is removed. If the work fails, folders that were made
    for it and are still empty are removed, too.

    Raises
    ------
    OutputError
        If the folder cannot be made or written.

    Examples
    --------
    >>> home = Path(tempfile.mkdtemp())
    >>> with prepared_folder(home / "a" / "b"):
    ...     raise KeyError
    Traceback (most recent call last):
    ...
    KeyError
    >>> (home / "a").exists()
    False
    """
    folder = home_expanded(folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                remove_unfinished(folder)
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutputError(
                f"cannot write into the output folder {folder}: {reason}; choose another one"
            ) from error
        yield folder
    except BaseException:
        with suppress(OSError):
            for path in made:
                path.rmdir()
        raise


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Give an empty folder for files that move into ``folder`` one by one, once all are written.

    Raises
    ------
    OutputError
        If they cannot be written; the files of the same names in ``folder`` are as they were.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with staged(folder) as stage:
    ...     _ = write_text(stage / "a.txt", "whole")
    >>> (folder / "a.txt").read_text()
    'whole'
    """
    try:
        with tempfile.TemporaryDirectory(
            prefix=UNFINISHED, dir=folder, ignore_cleanup_errors=True
        ) as stage:
            yield Path(stage)
            for file in sorted(Path(stage).iterdir()):
                file.replace(folder / file.name)
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write results into {folder}: {reason}") from error


def write_discovery(
    folder: Path,
    model: "CausalFormer",
    table: "SeriesTable",
    run: Mapping[str, Any],
    each: "EachRecording | None" = None,
) -> None:
    """Write everything that one discovery found into ``folder``.

    Parameters
    ----------
    folder : Path
        Receives the graph in the formats of `GRAPH_FILES`, ``scores.csv`` (a matrix, causes down,
        effects across), ``run.json`` and ``report.html``.
    model : CausalFormer
        Fitted.
    table : SeriesTable
        The series it was fitted to.
    run : mapping
        What else belongs into ``run.json``, such as source and command.
    each : EachRecording, optional
        The graphs of single recordings; adds ``recordings.json`` and ``agreement.csv``.
    """
    for name in GRAPH_FILES:
        model.graph_.save(folder / name)
    write_text(folder / "scores.csv", _scores_text(model.names_, model.edge_scores_))
    facts = {
        **run,
        "preset": model.preset,
        "seed": model.random_state,
        "settings": model.settings_.model_dump(),
        "training": training_summary(model.history_),
        "method": dict(model.graph_.metadata),
    }
    if hasattr(model, "diagnostics_"):
        facts["diagnostics"] = model.diagnostics_.to_frame().to_dict("records")
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "run.json", text + "\n")
    write_report(folder / "report.html", model, table, run, each)
    if each is not None:
        _write_recordings(folder, each)


def _write_recordings(folder: Path, each: "EachRecording") -> None:
    """Write the graphs of single recordings and how far they agree into ``folder``."""
    agreement = each.agreement()
    rows = [list(agreement.columns), *agreement.to_numpy().tolist()]
    write_text(folder / "agreement.csv", "".join(map(csv_line, rows)))
    graphs = {
        "graphs": {name: json.loads(graph.to_json()) for name, graph in each.graphs.items()},
        "refused": dict(each.refused),
    }
    text = json.dumps(graphs, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "recordings.json", text + "\n")


def training_summary(history: "History") -> dict[str, Any]:
    """Return the few facts of a training that people ask for; epochs are counted from 1."""
    best = history.best
    return {
        "epochs": len(history.epochs),
        "stopped": history.stopped,
        "best_epoch": best.number + 1,
        "best_validation_loss": best.validation_loss if history.validated else None,
        "seconds": round(sum(epoch.seconds for epoch in history.epochs), 3),
    }


def read_scores(path: str | Path, names: Sequence[str]) -> NDArray[np.float64]:
    r"""Read ``scores.csv`` back as ``[cause, effect]`` in the order of ``names``.

    Raises
    ------
    FileFormatError
        If the file is no such matrix over these series.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("cause,a,b\na,0.5,1\nb,0,0.25\n")
    >>> read_scores(path, ["b", "a"])
    array([[0.25, 0.  ], [1.  , 0.5 ]])
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(read_text(path), newline="")) if row]
    except csv.Error as error:
        raise FileFormatError(f"{path}: broken CSV ({error})") from error
    effects = rows[0][1:] if rows else []
    causes = [row[0] for row in rows[1:]]
    if not (sorted(effects) == sorted(causes) == sorted(names)):
        raise FileFormatError(
            f"{path}: no scores over the series of the graph; expected the scores.csv that stands "
            f"beside it, with a line and a column for each of {', '.join(map(repr, names))}"
        )
    try:
        cells = {
            (row[0], effect): float(cell)
            for row in rows[1:]
            for effect, cell in zip(effects, row[1:], strict=True)
        }
    except ValueError as error:
        raise FileFormatError(f"{path}: damaged matrix of scores ({error})") from error
    return np.array([[cells[cause, effect] for effect in names] for cause in names])


def without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    """Return the mapping with None for NaN, which JSON cannot hold.

    Examples
    --------
    >>> without_nan({"f1": 0.5, "auroc": float("nan")})
    {'f1': 0.5, 'auroc': None}
    """
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _scores_text(names: Sequence[str], scores: NDArray[np.float64]) -> str:
    rows = ((name, *row) for name, row in zip(names, scores.tolist(), strict=True))
    return "".join(map(csv_line, (("cause", *names), *rows)))
