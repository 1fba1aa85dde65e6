"""Time, memory and accuracy from ten series to a thousand, from a thousand slots to a million.

``python -m causalformer.bench.scale --data ../shared/data --out benchmarks/scale`` measures every
fit in a process of its own, from the file to the graph, with everything that the process starts.
Finished measurements are kept: the same command goes on where it was stopped. `--part` chooses
among limits, growth, accuracy and peers. The exit code is 1 if a limit is missed.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from causalformer.bench.environment import write_environment
from causalformer.bench.figures import save_figure
from causalformer.bench.result_file import ResultFile, Row
from causalformer.bench.runner import Job, described
from causalformer.bench.scale_jobs import N_JOBS, PARTS, Store, limit_for, run_job
from causalformer.bench.scale_tables import growth_figure, missed_limits, scale_markdown
from causalformer.config import DEFAULT
from causalformer.errors import CausalFormerError
from causalformer.files import write_text


def run_scale(
    jobs: Iterable[Job],
    out: Path,
    *,
    time_limit: float,
    fresh: bool = False,
    on_result: Callable[[Row], object] = lambda _: None,
) -> ResultFile:
    """Measure what is not measured yet, one job after the other; every row is on disk at once.

    Parameters
    ----------
    jobs : iterable of Job
        What to measure; a job that is listed twice is measured once.
    out : Path
        Folder of ``results.csv``.
    time_limit : float
        Seconds after which a fit is stopped; linear rivals have ten times those of the default if
        that is less.
    fresh : bool
        Measure everything again.
    on_result : callable
        Receives every new row.
    """
    jobs = list({(job.folder, job.file.name, job.method.name): job for job in jobs}.values())
    results = ResultFile(out / "results.csv")
    if fresh:
        results.drop(label for job in jobs for label in job.labels())
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for job in jobs:
            if results.has(*job.labels()):
                continue
            limit = limit_for(job, _seconds_of_default(results, job), time_limit)
            row = run_job(job, store, limit)
            results.add(row)
            on_result(row)
    return results


def _seconds_of_default(results: ResultFile, job: Job) -> float | None:
    frame = results.frame()
    same = (frame["folder"] == job.folder) & (frame["file"] == job.file.name)
    seconds = frame.loc[same & (frame["method"] == DEFAULT), "seconds"].dropna()
    return None if seconds.empty else float(seconds.iloc[0])


def described_row(row: Row) -> str:
    """Return one line about a measurement.

    Examples
    --------
    >>> from causalformer.bench.result_file import as_row
    >>> row = as_row({"folder": "sst", "file": "a", "method": "var", "stopped": "after 60 s"})
    >>> described_row(row)
    'sst/a var: stopped after 60 s'
    """
    name = f"{row['folder']}/{row['file']} {row['method']}"
    if row["error"] or row["stopped"]:
        return f"{name}: {row['error'] or 'stopped ' + row['stopped']}"
    f1 = f", F1 off the diagonal {float(row['off_diagonal_f1']):.3f}" if row["f1"] else ""
    return f"{name}: {float(row['seconds']):.1f} s, {float(row['peak_gb']):.2f} GB{f1}"


def main() -> int:
    """Measure, print, write, and return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with fmri/ and sst/")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="may be repeated")
    parser.add_argument("--methods", help="comma list; by default all of the parts")
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds of one fit")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    options = parser.parse_args()
    only = options.methods.split(",") if options.methods else None
    try:
        jobs = [job for part in options.part or PARTS for job in PARTS[part](options.data)]
        jobs = [job for job in jobs if only is None or job.method.name in only]
        results = run_scale(
            jobs,
            options.out,
            time_limit=options.time_limit,
            fresh=options.fresh,
            on_result=lambda row: print(described_row(row), flush=True),
        ).frame()
        write_text(options.out / "table.md", scale_markdown(results))
        save_figure(growth_figure(results), options.out / "growth.png")
        write_environment(
            options.out / "environment.json",
            ["python", "-m", "causalformer.bench.scale", *sys.argv[1:]],
            n_jobs=N_JOBS,
            time_limit=options.time_limit,
            methods=described(job.method for job in jobs),
        )
    except CausalFormerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if missed_limits(results) else 0


if __name__ == "__main__":
    sys.exit(main())
