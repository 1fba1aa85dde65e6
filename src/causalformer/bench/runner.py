"""Running methods on benchmark folders: one job per method, file and seed."""

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causalformer._version import __version__
from causalformer.bench.environment import write_environment
from causalformer.bench.methods import REFERENCES, Method, method_for
from causalformer.bench.result_file import ResultFile, Row, as_row
from causalformer.bench.tables import bench_markdown
from causalformer.bench.timing import one_thread, warm_up
from causalformer.datasets import BenchmarkFile, load_folder
from causalformer.datasets.folders import Orientation
from causalformer.errors import DataWarning, SettingsError
from causalformer.files import write_text
from causalformer.metrics import evaluate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BenchPlan:
    """What a benchmark shall run.

    Parameters
    ----------
    folders : sequence of path
        Folders that `causalformer.datasets.load_folder` reads; their names must differ.
    methods : sequence of str
        Names of `causalformer.bench.methods.method_names`; the self-loops and the VAR F-test are
        always added.
    seeds : sequence of int
        Every method that draws random numbers is run once with each.
    orientation : {"netsim", "as-published"}
        How the truth of an fMRI folder is read.
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

    folders: Sequence[str | Path]
    methods: Sequence[str] = ("paper",)
    seeds: Sequence[int] = (0,)
    orientation: Orientation = "netsim"
    max_files: int | None = None
    max_rows: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_methods(self) -> tuple[str, ...]:
        """The methods with the references in front, each once."""
        return tuple(dict.fromkeys((*REFERENCES, *self.methods)))


@dataclass(frozen=True)
class Job:
    """One method on one file with one seed (None if it needs none)."""

    folder: str
    orientation: str
    file: BenchmarkFile
    method: Method
    seed: int | None
    max_rows: int | None = None

    def label(self) -> Row:
        """Return the row with everything that is known before the job has run."""
        return as_row(
            {
                "folder": self.folder,
                "orientation": self.orientation,
                "file": self.file.name,
                "method": self.method.name,
                "seed": self.seed,
                "settings": self.method.fingerprint,
                "data": _data_fingerprint(self.file, self.max_rows),
                "version": __version__,
            }
        )


def run_bench(
    plan: BenchPlan,
    out: str | Path,
    *,
    n_jobs: int = 1,
    fresh: bool = False,
    on_result: Callable[[int, int, Row], object] | None = None,
) -> "pd.DataFrame":
    """Run what is not yet done of a plan, and write ``results.csv`` after every job.

    A killed benchmark goes on where it was: rows that were measured with the same settings, data
    and version of the package are kept. Failures are rows too, with the reason under ``error``;
    they are tried again the next time. Every job computes on one core, whatever `n_jobs`.

    Parameters
    ----------
    plan : BenchPlan
        What to run.
    out : str or Path
        Folder for ``results.csv``, ``table.md`` and ``environment.json``. Rows of other plans that
        it already holds stay and are part of the table.
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
    jobs = plan_jobs(plan)
    results = ResultFile(Path(out) / "results.csv")
    write_environment(
        Path(out) / "environment.json",
        seeds=list(plan.seeds),
        n_jobs=n_jobs,
        methods=_described(job.method for job in jobs),
    )
    if fresh:
        results.drop(job.label() for job in jobs)
    waiting = [job for job in jobs if not results.has(job.label())]
    for number, row in enumerate(_run_all(waiting, n_jobs), start=1):
        results.add(row)
        if on_result:
            on_result(number, len(waiting), row)
    frame = results.frame()
    write_text(Path(out) / "table.md", bench_markdown(frame))
    return frame


def plan_jobs(plan: BenchPlan) -> list[Job]:
    """List the jobs of a plan; wrong names and missing folders are found here."""
    if not plan.seeds or min(plan.seeds) < 0:
        raise SettingsError(f"seeds are {list(plan.seeds)}; give whole numbers from 0")
    if plan.max_files is not None and plan.max_files < 1:
        raise SettingsError(f"files is {plan.max_files}; choose at least 1")
    if plan.max_rows is not None and plan.max_rows < 1:
        raise SettingsError(f"rows is {plan.max_rows}; choose at least 1")
    folders = list(dict.fromkeys(Path(folder).expanduser().resolve() for folder in plan.folders))
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        raise SettingsError(f"folders must have different names, not {', '.join(names)}")
    jobs = []
    for folder in folders:
        files = load_folder(folder, orientation=plan.orientation)
        # only where the orientation makes a difference is it part of the result
        turned = any(file.reverse_truth for file in load_folder(folder))
        orientation = plan.orientation if turned else ""
        for name in plan.all_methods:
            method = method_for(name, folder.name, plan.overrides)
            seeds = dict.fromkeys(plan.seeds) if method.seeded else (None,)
            jobs += [
                Job(folder.name, orientation, file, method, seed, plan.max_rows)
                for file in files[: plan.max_files]
                for seed in seeds
            ]
    return jobs


def run_job(job: Job) -> Row:
    """Run one job; whatever goes wrong becomes part of its row."""
    row = job.label()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        try:
            measured = as_row(_measure(job))
            row |= {name: text for name, text in measured.items() if text}
        except Exception as error:  # one bad file must not end a long benchmark
            row["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    notes = [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
    row["warning"] = "; ".join(dict.fromkeys(notes))
    return row


def _run_all(jobs: list[Job], n_jobs: int) -> Iterator[Row]:
    """Yield the row of every job as it comes, not in order."""
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(run_job)(job) for job in jobs)


def _measure(job: Job) -> dict[str, object]:
    made = job.file.load()
    series = made.series.head(job.max_rows)
    model = job.method.build(job.seed)
    if job.method.seeded:
        warm_up()
    with one_thread() if job.method.seeded else nullcontext():
        started = time.perf_counter()
        model.fit(series)
        seconds = time.perf_counter() - started
    history = getattr(model, "history_", None)
    if history is not None and history.stopped == "interrupted":
        raise KeyboardInterrupt  # half a training is no result: end the benchmark instead
    return {
        "n_series": series.n_series,
        "n_slots": series.n_slots,
        **evaluate(model.graph_, made.truth, model.edge_scores_).to_dict(),
        "seconds": round(seconds, 4),
        "epochs": None if history is None else len(history.epochs),
        "stopped": None if history is None else history.stopped,
    }


def _data_fingerprint(file: BenchmarkFile, max_rows: int | None) -> str:
    """Name the content of series and truth, and the way the truth is read."""
    digest = hashlib.sha256(b"reversed" if file.reverse_truth else b"")
    if max_rows is not None:
        digest.update(str(max_rows).encode())
    for path in (file.series_path, file.truth_path):
        try:
            content = path.read_bytes()
        except OSError:
            content = b""  # the job itself will say what is wrong
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


def _described(methods: Iterator[Method]) -> dict[str, object]:
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
