"""The command line: reads options, calls the library, prints; no logic of its own.

Exit codes: 0 success, 1 a fault of the program, 2 something that the user can mend, 130 stopped by
Ctrl-C. Results go to the standard output; progress, notes, warnings and errors do not.
"""

import json
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from causalformer._version import __version__
from causalformer.errors import CausalFormerError, DataWarning, OutputError, SettingsError

# torch, pandas and whatever needs them are imported inside the commands: help must come at once
if TYPE_CHECKING:
    from causalformer.config import Settings
    from causalformer.data import SeriesTable
    from causalformer.estimator import CausalFormer
    from causalformer.metrics import Metrics


class Device(StrEnum):
    """Where to compute."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Orientation(StrEnum):
    """How the truth of the fMRI benchmark is read."""

    NETSIM = "netsim"
    AS_PUBLISHED = "as-published"


SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything that is random.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; may be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


# ---------------------------------------------------------------- what goes to the terminal


class _Commands(TyperGroup):
    """Commands whose errors and warnings take one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error that the user can mend ends it with exit code 2."""
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except CausalFormerError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            _say("error", error)
            raise typer.Exit(2) from None


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    shown: set[str] = set()
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if not issubclass(category, DataWarning):
                show_others(message, category, *place)
            elif str(message) not in shown:
                shown.add(str(message))
                _say("warning", message)

        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _say(kind: str, message: object) -> None:
    """Write one line to the standard error stream, as it is: names may look like markup."""
    from causalformer.names import printable_name

    typer.echo(f"{kind}: {printable_name(str(message))}", err=True)


def _print(*items: Any) -> None:
    """Print tables, and text without reading it as markup."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(*items)


def _print_json(content: object) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def _key_values(pairs: Sequence[str] | None) -> dict[str, str]:
    """Split ``KEY=VALUE``; the settings turn the text into numbers themselves."""
    for pair in pairs or ():
        if "=" not in pair:
            raise SettingsError(f"--set {pair!r} is no setting; expected KEY=VALUE")
    split = (pair.partition("=") for pair in pairs or ())
    return {key.strip(): value.strip() for key, _, value in split}


# ---------------------------------------------------------------- the commands

app = typer.Typer(
    name="causalformer",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help and usage errors: half the time, and no markup in names
    context_settings={"help_option_names": ["-h", "--help"]},
)
datasets_app = typer.Typer(
    no_args_is_help=True, help="Make data whose causal graph is known, or list what there is."
)
app.add_typer(datasets_app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"causalformer {__version__}")
        raise typer.Exit


@app.callback()
def causalformer(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the program an error came from.")
    ] = False,
) -> None:
    """Temporal causal graphs from time series: which series drives which, and after how long."""


@app.command()
def discover(
    source: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet, NPY, NPZ or netCDF: one column per series.")
    ],
    preset: Annotated[str, typer.Option(help="Named settings; see `presets`.")] = "paper-fmri",
    set_: SetOption = None,
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    time_column: Annotated[
        str | None,
        typer.Option(
            help="Name or position (from 0) of the time column, or 'none'; else found out."
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line holds names."),
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.AUTO,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on from the checkpoint in --out.")
    ] = False,
    save_model: Annotated[
        bool, typer.Option("--save-model", help="Write the fitted model, too.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Discover the causal graph of a file of time series.

    Ctrl-C stops the training; the best model up to then is used.
    """
    from causalformer.config import resolve_settings
    from causalformer.data import read_series

    if out is None and (resume or save_model):
        option = "--resume" if resume else "--save-model"
        raise SettingsError(f"{option} needs a folder for the results: add --out FOLDER")
    settings = resolve_settings(preset, _key_values(set_))
    if quiet:
        warnings.simplefilter("ignore", DataWarning)
    table = read_series(source, time_column=_time_column(time_column), header=header)
    model = _model(preset, settings, set_, seed, device.value)
    _discover(model, table, out, resume=resume, save_model=save_model, talk=not (as_json or quiet))
    if as_json:
        typer.echo(model.graph_.to_json(), nl=False)


def _time_column(text: str | None) -> Any:
    from causalformer.data import AUTO

    if text is None:
        return AUTO
    if text.lower() == "none":
        return None
    return int(text) if text.isdecimal() else text


def _model(
    preset: str, settings: "Settings", changed: Sequence[str] | None, seed: int, device: str
) -> "CausalFormer":
    from causalformer.estimator import CausalFormer

    overrides = {name: getattr(settings, name) for name in _key_values(changed)}
    return CausalFormer(preset, settings=overrides, random_state=seed, device=device)


def _discover(
    model: "CausalFormer",
    table: "SeriesTable",
    out: Path | None,
    *,
    resume: bool = False,
    save_model: bool = False,
    talk: bool = True,
) -> None:
    """Fit, print the graph, and write results only if everything went well."""
    from causalformer.results import prepared_folder, staged, write_discovery

    if out is None:
        _fit(model, table, talk=talk)
    else:
        with prepared_folder(out) as folder:
            checkpoint = _checkpoint(folder, resume=resume, talk=talk)
            _fit(model.set_params(checkpoint=checkpoint), table, talk=talk)
            with staged(folder) as stage:
                write_discovery(stage, model, _run_facts(table), save_model=save_model)
            checkpoint.unlink(missing_ok=True)
    if talk:
        _print_discovery(model, table)
        if out is not None:
            _print(f"Results are in {out}: graph.json, edges.csv, graph.png and more.")


def _checkpoint(folder: Path, *, resume: bool, talk: bool) -> Path:
    """Return the checkpoint's path, after removing an old one that shall not be used."""
    from causalformer.results import CHECKPOINT

    path = folder / CHECKPOINT
    if path.exists() and not resume:
        try:
            path.unlink()
        except OSError as error:
            raise OutputError(
                f"cannot remove the old checkpoint {path}: {error.strerror}"
            ) from error
        if talk:
            _say("note", "an earlier run's checkpoint was deleted; --resume would have used it")
    elif resume and not path.exists() and talk:
        _say("note", f"there is no checkpoint in {folder}: starting from the beginning")
    return path


def _fit(model: "CausalFormer", table: "SeriesTable", *, talk: bool) -> None:
    from causalformer.config import resolve_settings
    from causalformer.progress import TrainingProgress

    settings = resolve_settings(model.preset, model.settings)
    with TrainingProgress(settings.max_epochs) if talk else nullcontext() as progress:
        model.set_params(on_epoch=progress).fit(table)
    if talk and model.history_.stopped == "interrupted":
        best = model.history_.best.number + 1
        _say("note", f"training was stopped; the best model so far (epoch {best}) was used")


def _run_facts(table: "SeriesTable") -> dict[str, Any]:
    return {
        "command": " ".join(["causalformer", *sys.argv[1:]]),
        "version": __version__,
        "source": table.source,
        "n_series": table.n_series,
        "n_slots": table.n_slots,
        "names": list(table.names),
    }


def _print_discovery(model: "CausalFormer", table: "SeriesTable") -> None:
    from causalformer.results import training_summary

    facts = training_summary(model.history_)
    _print(model.graph_.table() if len(model.graph_) else "No edge was found.")
    _print(
        f"{len(model.graph_)} edges among {table.n_series} series of {table.n_slots} slots; "
        f"{facts['epochs']} epochs in {facts['seconds']:.1f} s, "
        f"best validation loss {facts['best_validation_loss']:.4g} in epoch {facts['best_epoch']}, "
        f"ended by {facts['stopped'].replace('_', ' ')}."
    )


@app.command()
def evaluate(
    graph: Annotated[Path, typer.Argument(help="graph.json of a discovery.")],
    truth: Annotated[Path, typer.Argument(help="True edges, lines of cause,effect,lag.")],
    scores: Annotated[
        Path | None, typer.Option(help="scores.csv of the discovery, for AUROC and AUPRC.")
    ] = None,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="The truth lists effects before causes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare a discovered graph with the true one."""
    from causalformer.graph import CausalGraph
    from causalformer.metrics import evaluate as compare
    from causalformer.results import read_scores, without_nan
    from causalformer.truth import read_truth

    found = CausalGraph.load(graph)
    true = read_truth(truth, found.names, reverse=reverse)
    matrix = None if scores is None else read_scores(scores, found.names)
    figures = compare(found, true, matrix).to_dict()
    if as_json:
        _print_json(without_nan(figures))
    else:
        _print_columns(("measure", "value"), [(n, _figure(v)) for n, v in figures.items()])


def _figure(value: float) -> str:
    if value != value:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _print_columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column to the left, the others to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    _print(table)


@app.command()
def bench(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of data files with their truth beside them.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for results.csv and table.md.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Comma list: 'paper' (the preset that belongs to a folder) or names of presets. "
            "'self-loops' and 'var' always run."
        ),
    ] = "paper",
    seed: Annotated[list[str] | None, typer.Option(help="Seeds; comma list or repeated.")] = None,
    orientation: Annotated[
        Orientation, typer.Option(help="How the truth of an fMRI folder is read.")
    ] = Orientation.NETSIM,
    n_jobs: Annotated[int, typer.Option(help="Jobs at the same time; -1: one per core.")] = 1,
    files: Annotated[int | None, typer.Option(min=1, help="Only the first N files each.")] = None,
    set_: SetOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished jobs again, too.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare methods on benchmark folders.

    A graph of self-loops and a VAR F-test are always among them. What is finished is kept: the
    same command goes on after Ctrl-C or a crash.
    """
    from causalformer.bench.runner import BenchPlan, run_bench
    from causalformer.bench.tables import bench_table, summarise

    plan = BenchPlan(
        folders=folders,
        methods=[name.strip() for name in methods.split(",") if name.strip()],
        seeds=_seeds(seed),
        orientation=orientation.value,
        max_files=files,
        overrides=_key_values(set_),
    )
    failures: list[str] = []

    def report(done: int, total: int, row: Mapping[str, str]) -> None:
        name = f"{row['folder']}/{row['file']} {row['method']}"
        if row["error"]:
            failures.append(f"{name}: {row['error']}")
        if not quiet:
            state = row["error"] or f"F1 {float(row['f1']):.2f}, {float(row['seconds']):.1f} s"
            _say(f"{done} of {total}", f"{name}: {state}")

    results = run_bench(plan, out, n_jobs=n_jobs, fresh=fresh, on_result=report)
    if as_json:
        _print_json(json.loads(summarise(results).to_json(orient="records")))
    elif not quiet:
        _print(bench_table(results))
        _print(f"Every file is in {out / 'results.csv'}, the table in {out / 'table.md'}.")
    if failures:
        _say("warning", f"{len(failures)} jobs failed, the first: {failures[0]}")


def _seeds(texts: Sequence[str] | None) -> list[int]:
    words = [word.strip() for text in texts or ["0"] for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise SettingsError(f"--seed {','.join(words)}: expected whole numbers from 0, as in 0,1,2")
    return [int(word) for word in words]


@app.command()
def presets(as_json: JsonOption = False) -> None:
    """List the presets and their settings."""
    from causalformer.config import PRESETS, Settings

    if as_json:
        _print_json({name: settings.model_dump() for name, settings in PRESETS.items()})
        return
    rows = [
        (field, *(str(getattr(settings, field)) for settings in PRESETS.values()))
        for field in Settings.model_fields
    ]
    _print_columns(("setting", *PRESETS), rows)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-results"),
) -> None:
    """Try it: discover the graph of a bundled example."""
    from causalformer.config import resolve_settings
    from causalformer.datasets import load_example

    example = load_example()
    names = ", ".join(example.series.names)
    _print(f"An invented greenhouse: {names}; {example.series.n_slots} slots.\n")
    preset = "paper-v-fork"
    model = _model(preset, resolve_settings(preset), None, 0, "auto")
    _discover(model, example.series, out)
    _compare_with_truth(model, example)
    _print(
        "\nNext:"
        "\n  causalformer discover YOUR.csv --out results    one column per series"
        "\n  causalformer presets                            settings for --preset"
    )


def _compare_with_truth(model: "CausalFormer", example: Any) -> None:
    """Print how good the graph is, beside the two methods that any other must beat."""
    from causalformer.baselines import SelfLoops, VarGranger
    from causalformer.metrics import evaluate as compare

    def row(name: str, fitted: Any) -> tuple[str, ...]:
        m: Metrics = compare(fitted.graph_, example.truth, fitted.scores_)
        counts = (m.n_correct, m.n_predicted - m.n_correct, m.n_true - m.n_correct)
        figures = (m.f1, m.off_diagonal_f1, m.pod)
        return (name, *map(str, counts), *map(_figure, figures))

    _print("\nThe truth is known here, so the graph can be judged:")
    _print_columns(
        ("method", "correct", "false", "missed", "F1", "F1 off diagonal", "PoD strict"),
        [
            row("CausalFormer", model),
            row("VAR F-test", VarGranger().fit(example.series)),
            row("self-loops only", SelfLoops().fit(example.series)),
        ],
    )
    _print(
        "F1 off the diagonal leaves out self-loops; PoD is the share of correct edges whose lag is "
        "right, too."
    )


@datasets_app.command("list")
def list_datasets() -> None:
    """List the generators."""
    import inspect

    from causalformer.datasets import GENERATORS

    for name, make in GENERATORS.items():
        described = inspect.getdoc(getattr(make, "func", make)) or ""
        typer.echo(f"{name:12} {described.splitlines()[0]}")


@datasets_app.command("make")
def make_datasets(
    name: Annotated[str, typer.Argument(help="One of `datasets list`.")],
    out: Annotated[Path, typer.Option(help="Folder for data_0.csv ... and truth.csv.")],
    n_slots: Annotated[int, typer.Option(min=1, help="Length of the series.")] = 1000,
    seed: SeedOption = 0,
    count: Annotated[int, typer.Option(min=1, help="Files, with seeds SEED, SEED + 1, ...")] = 1,
    set_: SetOption = None,
    force: Annotated[bool, typer.Option("--force", help="Write over older data files.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Make data files in the form that `bench` reads."""
    from causalformer.datasets import make_dataset

    if not force and out.is_dir() and any(out.glob("data_*.csv")):
        raise OutputError(f"{out} already holds data files; choose another folder, or add --force")
    options = {"n_slots": n_slots, **_parsed(_key_values(set_))}
    try:
        made = [make_dataset(name, **options, random_state=seed + i) for i in range(count)]
    except TypeError as error:
        raise SettingsError(f"data set {name!r}: {error}; check the values of --set") from error
    one_truth = all(data.truth == made[0].truth for data in made)
    for index, data in enumerate(made):
        path = data.save(out, index)
        if not one_truth:
            path.with_name("truth.csv").replace(path.with_name(f"truth{index}.csv"))
    if not quiet:
        _print(f"{count} data sets '{name}' of {n_slots} slots are in {out}.")


def _parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    """Read values as JSON where they are JSON, such as 3, 0.5 and [0.6, 1.2]."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return {key: value(text) for key, text in texts.items()}


def main() -> None:
    """Run the command line; the entry point of the package."""
    try:
        app(prog_name="causalformer")
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _say("error", f"unexpected {type(error).__name__}: {error}; run `causalformer --debug ...`")
        sys.exit(1)
