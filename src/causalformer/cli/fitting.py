"""From a table of series to printed and written results; `discover` and `demo` share it."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from causalformer._version import __version__
from causalformer.cli.browser import open_page
from causalformer.cli.terminal import say, show, show_columns
from causalformer.errors import OutputError, SettingsError
from causalformer.files import home_expanded
from causalformer.names import printable_name

if TYPE_CHECKING:
    from causalformer.data import SeriesTable
    from causalformer.each import EachRecording
    from causalformer.estimator import CausalFormer
    from causalformer.graph import CausalGraph


_MUCH_MEMORY = 1e9  # bytes that are worth a word
_FOOTNOTES = 10


def run_discovery(
    model: "CausalFormer",
    table: "SeriesTable",
    out: Path | None,
    *,
    resume: bool = False,
    save_model: bool = False,
    each: bool = False,
    browser: bool = False,
    talk: bool = True,
) -> None:
    """Fit, print the graph, and write results only if everything went well."""
    from causalformer.results import prepared_folder, staged, write_discovery

    if each and len(table.recordings()) < 2:
        raise SettingsError(
            "--each needs several recordings: name the column that tells them apart with --group, "
            "or give a folder of files"
        )
    recordings = None
    if out is None:
        _fit(model, table, talk=talk)
        recordings = _fit_each(model, table) if each else None
    else:
        with prepared_folder(out) as folder:
            checkpoint = _checkpoint(folder, resume=resume, talk=talk)
            try:
                _fit(model.set_params(checkpoint=checkpoint), table, talk=talk)
            except KeyboardInterrupt:
                kept = any(folder.glob(f"{checkpoint.stem}.*"))
                words = "--resume goes on from here" if kept else "nothing was finished yet"
                say("note", f"stopped; {words}")
                raise
            recordings = _fit_each(model, table) if each else None
            with staged(folder) as stage:
                write_discovery(stage, model, table, _run_facts(table), recordings)
                if save_model:
                    model.save(folder / "model")
            _forget(checkpoint)
    if talk:
        _show_discovery(model, table)
        if recordings is not None:
            _show_agreement(recordings)
    if out is not None:
        _show_place(out, browser=browser, talk=talk)


def _show_place(out: Path, *, browser: bool, talk: bool) -> None:
    """Say where the results are, and open the report if that is wanted and possible."""
    report = home_expanded(out) / "report.html"
    opened = browser and open_page(report)
    if talk:
        show(f"Results are in {printable_name(str(out))}: graph.json, edges.csv and more.")
        words = "The report is open in your browser" if opened else "Open the report in a browser"
        typer.echo(f"{words}: {printable_name(str(report.resolve()))}")


def _forget(checkpoint: Path) -> None:
    """Remove what a run keeps to go on from."""
    for path in checkpoint.parent.glob(f"{checkpoint.stem}.*"):
        path.unlink(missing_ok=True)


def _checkpoint(folder: Path, *, resume: bool, talk: bool) -> Path:
    """Return the checkpoint's path, after removing an old one that shall not be used."""
    from causalformer.results import CHECKPOINT

    path = folder / CHECKPOINT
    there = any(folder.glob(f"{path.stem}.*"))
    if there and not resume:
        try:
            _forget(path)
        except OSError as error:
            raise OutputError(
                f"cannot remove the old checkpoint {path}: {error.strerror}"
            ) from error
        if talk:
            say("note", "an earlier run's checkpoint was deleted; --resume would have used it")
    elif resume and not there and talk:
        say("note", f"there is no checkpoint in {folder}: starting from the beginning")
    return path


def _fit(model: "CausalFormer", table: "SeriesTable", *, talk: bool) -> None:
    plan = model.memory_plan(table)
    if talk and plan is not None and plan.n_bytes > _MUCH_MEMORY:
        say("note", f"this may take {plan.n_bytes / 1e9:.1f} GB of memory; see --max-memory")
    model.set_params(verbose=talk).fit(table)
    if talk and model.history_.stopped == "interrupted":
        best = model.history_.best.number + 1
        say("note", f"training was stopped; the best model so far (epoch {best}) was used")


def _fit_each(model: "CausalFormer", table: "SeriesTable") -> "EachRecording":
    from causalformer.each import fit_each

    return fit_each(model, table, n_jobs=model.n_jobs)


def _show_agreement(each: "EachRecording") -> None:
    n_graphs = len(each.graphs)
    show(f"\nIn how many of {n_graphs} recordings on their own each edge was found:")
    rows = [
        (
            printable_name(f"{row.cause} → {row.effect}"),
            str(row.lag),
            f"{row.recordings} of {n_graphs}",
        )
        for row in each.agreement().itertuples()
    ]
    show_columns(("edge", "lag", "recordings"), rows)
    for name, reason in each.refused.items():
        say("note", f"recording {name!r} gave no graph: {reason}")


def _run_facts(table: "SeriesTable") -> dict[str, Any]:
    return {
        "command": shlex.join(["causalformer", *sys.argv[1:]]),
        "version": __version__,
        "source": table.source,
        "n_series": table.n_series,
        "n_slots": table.n_slots,
        "recordings": list(table.recordings()),
        "names": list(table.names),
    }


def _show_footnotes(graph: "CausalGraph") -> None:
    """Say why edges may be confounded, the strongest first."""
    from causalformer.formats import footnotes

    notes = footnotes(graph)
    for note in notes[:_FOOTNOTES]:
        show(note)
    if len(notes) > _FOOTNOTES:
        show(f"… and {len(notes) - _FOOTNOTES} more: see may_be_confounded with --out or --json.")


def _show_discovery(model: "CausalFormer", table: "SeriesTable") -> None:
    from causalformer.config import DEFAULT
    from causalformer.results import training_summary

    facts = training_summary(model.history_)
    show(model.graph_.table() if len(model.graph_) else "No edge was found.")
    _show_footnotes(model.graph_)
    accounted = model.graph_.metadata.get("time_terms")
    if accounted:
        show(printable_name(f"Accounted for: {'; '.join(accounted)}."))
    if model.max_lag == "auto" and model.preset == DEFAULT:
        chosen = model.diagnostics_
        show(f"max_lag {chosen.max_lag}: {chosen.max_lag_reason}.")
    trained = f"{facts['epochs']} epochs in {facts['seconds']:.1f} s"
    if model.preset != DEFAULT:
        loss = facts["best_validation_loss"]
        trained += (
            ", no window to validate, so the last epoch was kept"
            if loss is None
            else f", best validation loss {loss:.4g} in epoch {facts['best_epoch']}"
        )
        trained += f", ended by {facts['stopped'].replace('_', ' ')}"
    show(
        f"{len(model.graph_)} edges among {table.n_series} series of {table.n_slots} slots; "
        f"{trained}."
    )
    if model.preset == DEFAULT and len(model.graph_):
        show(
            f"At most {model.alpha:.0%} of the edges should be false (q is each edge's share); "
            "strength is in standard deviations of the effect."
        )
    if model.preset != DEFAULT:
        show(
            "A preset of the paper: scores are sorted into classes, nothing is tested, and edges "
            "and lags depend on the seed; try others with --seed."
        )
