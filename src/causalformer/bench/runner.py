"""Running methods on benchmark folders: one job per method, file and seed."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from causalformer._version import __version__
from causalformer.baselines import METHODS
from causalformer.bench.drawn import Drawn, DrawnFile, filled
from causalformer.bench.environment import write_environment
from causalformer.bench.memory import forget_peak, peak_gb
from causalformer.bench.methods import CORRECTED, REFERENCES, Method, method_for
from causalformer.bench.result_file import PARITY, ResultFile, Row, as_row
from causalformer.bench.tables import bench_markdown
from causalformer.bench.timing import one_thread, warm_up
from causalformer.data import SeriesTable
from causalformer.datasets import BenchmarkFile, load_folder
from causalformer.datasets.folders import Orientation
from causalformer.errors import DataWarning, SettingsError
from causalformer.files import write_text
from causalformer.graph import CausalGraph
from causalformer.metrics import evaluate

if TYPE_CHECKING:
    import pandas as pd

Both: TypeAlias = Literal["both"]


@dataclass(frozen=True)
class BenchPlan:
    """What a benchmark shall run.

    Parameters
    ----------
    folders : sequence of path or Drawn
        Folders that `causalformer.datasets.load_folder` reads, or data sets that are drawn; their
        names must differ.
    methods : sequence of str
        Names of `causalformer.bench.methods.method_names`; the self-loops and the VAR F-test are
        always added.
    seeds : sequence of int
        Every method that draws random numbers is run once with each.
    orientation : {"netsim", "as-published", "both"}
        How the truth of an fMRI folder is read; "both" gives two rows of one fit.
    max_files : int, optional
        Only so many files of each folder, from the first.
    max_rows : int, optional
        Only so many rows of each file, from the first.
    overrides : mapping
        Settings that replace those of the presets.

    Examples
    --------
    >>> BenchPlan(["fork"], methods=["paper"]).all_methods
    ('self-loops', 'var', 'paper')
    """

    folders: Sequence[str | Path | Drawn]
    methods: Sequence[str] = ("paper",)
    seeds: Sequence[int] = (0,)
    orientation: Orientation | Both = "netsim"
    max_files: int | None = None
    max_rows: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_methods(self) -> tuple[str, ...]:
        """The methods with the references in front, each once."""
        return tuple(dict.fromkeys((*REFERENCES, *self.methods)))


DataFile: TypeAlias = BenchmarkFile | DrawnFile


@dataclass(frozen=True)
class Job:
    """One method on one file with one seed (None if it needs none).

    `readings` are the same series, once for every truth that the graph is compared with.
    """

    folder: str
    readings: tuple[DataFile, ...]
    method: Method
    seed: int | None
    max_rows: int | None = None

    @property
    def file(self) -> DataFile:
        """The series."""
        return self.readings[0]

    def labels(self) -> list[Row]:
        """Return a row per reading with everything that is known before the job has run."""
        rows = "" if self.max_rows is None else f":{self.max_rows}"
        return [
            as_row(
                {
                    "folder": self.folder,
                    "orientation": reading.orientation,
                    "file": reading.name,
                    "method": self.method.name,
                    "seed": self.seed,
                    "settings": self.method.fingerprint,
                    "data": reading.fingerprint + rows,
                    "version": __version__,
                }
            )
            for reading in self.readings
        ]


@dataclass(frozen=True)
class Done:
    """What a job gave: a row per reading, and the graph as JSON unless it failed."""

    job: Job
    rows: list[Row]
    graph: str | None = None


def run_bench(
    plan: BenchPlan | Sequence[BenchPlan],
    out: str | Path,
    *,
    n_jobs: int = 1,
    fresh: bool = False,
    on_result: Callable[[int, int, Row], object] | None = None,
) -> "pd.DataFrame":
    """Run what is not yet done of a plan, and keep ``results.csv`` up to date.

    A killed benchmark goes on where it was: rows that were measured with the same settings, data
    and version of the package are kept. Failures are rows too, with the reason under ``error``;
    they are tried again the next time. Every job computes on one core, whatever `n_jobs`.

    Parameters
    ----------
    plan : BenchPlan, or several
        What to run; a job that several plans name is run once.
    out : str or Path
        Folder for ``results.csv``, ``table.md``, ``environment.json`` and the graphs found. Rows of
        other plans that it already holds stay and are part of the table.
    n_jobs : int
        Jobs that run at the same time, each in a process of its own; -1 for one per core.
    fresh : bool
        Run everything again.
    on_result : callable, optional
        Receives how many jobs are done, how many there are, and the row of the last one.

    Returns
    -------
    DataFrame
        All rows of ``results.csv``.

    Raises
    ------
    SettingsError
        For a plan that cannot be run; nothing has been run then.
    DataError
        If a folder is none of a benchmark.
    OutputError
        If `out` cannot be written; nothing has been run then.
    """
    if n_jobs == 0 or n_jobs < -1:
        raise SettingsError(f"n_jobs is {n_jobs}; choose at least 1, or -1 for one per core")
    started = time.perf_counter()
    jobs = plan_jobs(*([plan] if isinstance(plan, BenchPlan) else plan))
    results = ResultFile(Path(out) / "results.csv")
    environment = partial(
        write_environment,
        Path(out) / "environment.json",
        n_jobs=n_jobs,
        methods=described(job.method for job in jobs),
    )
    environment()
    if fresh:
        results.drop(label for job in jobs for label in job.labels())
    waiting = [job for job in jobs if not all(map(results.has, job.labels()))]
    try:
        for number, done in enumerate(_run_all(waiting, n_jobs), start=1):
            if done.graph is not None:
                write_text(graph_path(out, done.job), done.graph)
            for row in done.rows:
                results.add(row)
            if on_result:
                on_result(number, len(waiting), done.rows[0])
    finally:
        results.flush()
    frame = results.frame()
    write_text(Path(out) / "table.md", bench_markdown(frame))
    wall_seconds = round(time.perf_counter() - started, 1)
    environment(
        last_run={"jobs": len(waiting), "of": len(jobs), "wall_seconds": wall_seconds},
        all_jobs={"cpu_seconds": _cpu_seconds(frame)},
    )
    return frame


def _cpu_seconds(results: "pd.DataFrame") -> float:
    """Add up the seconds of all fits; two readings of a truth have one fit."""
    fits = results.drop_duplicates(["folder", "file", "method", "seed"])
    return round(float(fits["cpu_seconds"].sum()), 1)


def graph_path(out: str | Path, job: Job) -> Path:
    """Give the file that keeps the graph of a job."""
    seed = "" if job.seed is None else f"-seed{job.seed}"
    return Path(out) / "graphs" / job.folder / job.file.name / f"{job.method.name}{seed}.json"


def plan_jobs(*plans: BenchPlan) -> list[Job]:
    """List the jobs of plans, each once; wrong names and missing folders are found here."""
    jobs = {}
    for plan in plans:
        _check(plan)
        data = list(dict.fromkeys(_data_set(item) for item in plan.folders))
        names = [item.name for item in data]
        if len(set(names)) < len(names):
            raise SettingsError(f"folders must have different names, not {', '.join(names)}")
        for item in data:
            files = _readings(item, plan.orientation)[: plan.max_files]
            for name in plan.all_methods:
                method = method_for(name, item.name, plan.overrides)
                if isinstance(item, Drawn) and item.max_lag is not None:
                    method = method.with_max_lag(item.max_lag)
                seeds = dict.fromkeys(plan.seeds) if method.seeded else (None,)
                for readings, seed in product(files, seeds):
                    job = Job(item.name, readings, method, seed, plan.max_rows)
                    jobs[item.name, readings, name, seed] = job
    return list(jobs.values())


def _check(plan: BenchPlan) -> None:
    if not plan.seeds or min(plan.seeds) < 0:
        raise SettingsError(f"seeds are {list(plan.seeds)}; give whole numbers from 0")
    if plan.max_files is not None and plan.max_files < 1:
        raise SettingsError(f"files is {plan.max_files}; choose at least 1")
    if plan.max_rows is not None and plan.max_rows < 1:
        raise SettingsError(f"rows is {plan.max_rows}; choose at least 1")
    if plan.overrides and all(name in (*METHODS, *CORRECTED) for name in plan.all_methods):
        raise SettingsError(
            f"settings ({', '.join(plan.overrides)}) are those of 'default' and the presets, and "
            "no such method is to run; name one, or leave the settings out"
        )
    choices = (*get_args(Orientation), "both")
    if plan.orientation not in choices:
        raise SettingsError(
            f"orientation is {plan.orientation!r}; choose among {', '.join(choices)}"
        )


def _data_set(item: str | Path | Drawn) -> Path | Drawn:
    return item if isinstance(item, Drawn) else Path(item).expanduser().resolve()


def _readings(item: Path | Drawn, orientation: Orientation | Both) -> list[tuple[DataFile, ...]]:
    """List the files of a data set, each with every truth to compare with."""
    if isinstance(item, Drawn):
        return [(file,) for file in item.files]
    wanted = get_args(Orientation) if orientation == "both" else (orientation,)
    read = [load_folder(item, orientation=one) for one in wanted]
    return [tuple(dict.fromkeys(same_series)) for same_series in zip(*read, strict=True)]


def run_job(job: Job) -> Done:
    """Run one job; whatever goes wrong becomes part of its rows."""
    rows, graph = job.labels(), None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        try:
            measured, graph = _measure(job)
            for row, figures in zip(rows, measured, strict=True):
                row.update({name: text for name, text in as_row(figures).items() if text})
        except Exception as error:  # one bad file must not end a long benchmark
            for row in rows:
                row["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    notes = [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
    for row in rows:
        row["warning"] = "; ".join(dict.fromkeys(notes))
    return Done(job, rows, graph)


def _run_all(jobs: list[Job], n_jobs: int) -> Iterator[Done]:
    """Yield what every job gave as it comes, not in order."""
    from joblib import Parallel, delayed

    groups: dict[tuple[object, ...], list[Job]] = {}
    for job in jobs:  # those that share a training go to one process, one after another
        groups.setdefault((job.folder, job.readings, job.seed, job.method.training), []).append(job)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    for group in parallel(delayed(_run_group)(group) for group in groups.values()):
        yield from group


def _run_group(jobs: list[Job]) -> list[Done]:
    return [run_job(job) for job in jobs]


def _measure(job: Job) -> tuple[list[dict[str, object]], str]:
    """Fit once, compare with every truth."""
    series = _usable(job.file.load().series.head(job.max_rows), job.method)
    model = job.method.build(job.seed)
    warm_up()
    with one_thread():
        forget_peak()
        started, began = time.perf_counter(), time.process_time()
        model.fit(series)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - began
    history = getattr(model, "history_", None)
    if history is not None and history.stopped == "interrupted":
        raise KeyboardInterrupt  # half a training is no result: end the benchmark instead
    about = {
        "n_series": series.n_series,
        "n_slots": series.n_slots,
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu_seconds, 4),
        "peak_gb": round(peak_gb(), 3),
        "epochs": None if history is None else len(history.epochs),
        "stopped": None if history is None else history.stopped,
    }
    truths = [reading.load().truth for reading in job.readings]
    return [{**about, **_figures(model, truth)} for truth in truths], model.graph_.to_json()


def _usable(series: SeriesTable, method: Method) -> SeriesTable:
    """Draw straight lines through the holes for a method that takes none."""
    return series if method.takes_missing or not series.missing.any() else filled(series)


def _figures(model: Any, truth: CausalGraph) -> dict[str, object]:
    figures: dict[str, object] = dict(evaluate(model.graph_, truth, model.edge_scores_).to_dict())
    parity = getattr(model, "parity_graph_", None)
    if parity is not None:
        same = evaluate(parity, truth).to_dict()
        figures |= {name: same[name.removeprefix("parity_")] for name in PARITY}
    return figures


def described(methods: Iterator[Method]) -> dict[str, object]:
    """Return the settings behind every fingerprint in the results."""
    return {
        method.fingerprint: {
            "method": method.name,
            "preset": method.preset,
            "settings": dict(method.settings),
            "options": dict(method.options),
        }
        for method in methods
    }
