"""The command `bench`."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from causalformer.cli.options import JsonOption, QuietOption, SetOption, key_values
from causalformer.cli.terminal import say, show, show_json
from causalformer.errors import SettingsError


class Orientation(StrEnum):
    """How the truth of the fMRI benchmark is read."""

    NETSIM = "netsim"
    AS_PUBLISHED = "as-published"


def bench(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of data files with their truth beside them.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for results.csv and table.md.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Comma list: 'default', 'paper' (the preset that belongs to a folder) or names of "
            "presets. 'self-loops' and 'var' always run."
        ),
    ] = "default",
    seed: Annotated[list[str] | None, typer.Option(help="Seeds; comma list or repeated.")] = None,
    orientation: Annotated[
        Orientation, typer.Option(help="How the truth of an fMRI folder is read.")
    ] = Orientation.NETSIM,
    n_jobs: Annotated[int, typer.Option(help="Jobs at the same time; -1: one per core.")] = 1,
    files: Annotated[int | None, typer.Option(min=1, help="Only the first N files each.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Only the first N rows each.")] = None,
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
        max_rows=rows,
        overrides=key_values(set_),
    )
    failures: list[str] = []

    def report(done: int, total: int, row: Mapping[str, str]) -> None:
        name = f"{row['folder']}/{row['file']} {row['method']}"
        if row["error"]:
            failures.append(f"{name}: {row['error']}")
        if not quiet:
            state = row["error"] or f"F1 {float(row['f1']):.2f}, {float(row['seconds']):.1f} s"
            say(f"{done} of {total}", f"{name}: {state}")

    results = run_bench(plan, out, n_jobs=n_jobs, fresh=fresh, on_result=report)
    if as_json:
        show_json(json.loads(summarise(results).to_json(orient="records")))
    elif not quiet:
        show(bench_table(results))
        show(f"Every file is in {out / 'results.csv'}, the table in {out / 'table.md'}.")
    if failures:
        say("warning", f"{len(failures)} jobs failed, the first: {failures[0]}")


def _seeds(texts: Sequence[str] | None) -> list[int]:
    words = [word.strip() for text in texts or ["0"] for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise SettingsError(f"--seed {','.join(words)}: expected whole numbers from 0, as in 0,1,2")
    return [int(word) for word in words]
