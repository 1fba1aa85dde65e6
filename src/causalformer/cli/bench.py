"""The command `bench`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from causalformer.cli.options import JsonOption, QuietOption, SetOption, key_values
from causalformer.cli.terminal import say, show, show_json
from causalformer.errors import SettingsError
from causalformer.parallel import workers


class Orientation(StrEnum):
    """How the truth of the fMRI benchmark is read."""

    NETSIM = "netsim"
    AS_PUBLISHED = "as-published"


class Suite(StrEnum):
    """Data that the benchmark knows by name."""

    PAPER = "paper"
    SST = "sst"
    GENERATED = "generated"
    SCALING = "scaling"
    VIOLATIONS = "violations"


class SeedSet(StrEnum):
    """Which systems the suite of violated assumptions draws."""

    CHOOSE = "choose"
    REPORT = "report"


def bench(
    out: Annotated[Path, typer.Option(help="Folder for results.csv, tables and pictures.")],
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of data files with their truth beside them."),
    ] = None,
    suite: Annotated[
        Suite | None, typer.Option(help="Run a whole suite in place of single folders.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="For the suites 'paper' and 'sst': the folder of the data.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Comma list: 'default', 'paper' (the preset that belongs to a folder), names of "
            "presets or other methods, 'all', or 'paper-variants' (the paper's ablations). "
            "'self-loops' and 'var' always run.  "
            "[default: default; in a suite: all]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[list[str] | None, typer.Option(help="Seeds; comma list or repeated.")] = None,
    orientation: Annotated[
        Orientation | None,
        typer.Option(help="How the truth of an fMRI folder is read; suite 'paper': both."),
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Jobs at the same time; -1: one per core.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="local|tcp://…", help="Share the jobs with Dask workers."),
    ] = None,
    files: Annotated[int | None, typer.Option(min=1, help="Only the first N files each.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Only the first N rows each.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part of a suite, for a first look.")
    ] = False,
    seed_set: Annotated[
        SeedSet | None,
        typer.Option(
            help="For the suite 'violations': systems that settings may be chosen on, or others, "
            "to be reported.  [default: choose]",
            show_default=False,
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="For the suite 'violations': only these families or groups; comma list or "
            "repeated."
        ),
    ] = None,
    set_: SetOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished jobs again, too.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare methods on benchmark folders, or run a whole suite.

    A graph of self-loops and a VAR F-test are always among them. What is finished is kept: the
    same command goes on after Ctrl-C or a crash.
    """
    from causalformer.bench.report import write_paper_report, write_report, write_scaling_report
    from causalformer.bench.runner import BenchPlan, run_bench
    from causalformer.bench.suites import SUITES, expanded
    from causalformer.bench.tables import bench_table, summarise
    from causalformer.bench.violation_tables import write_violations_report

    if (suite is None) == (not folders):
        raise SettingsError("name folders with data and truth, or a --suite, and not both")
    if quick and suite is None:
        raise SettingsError("--quick is a part of a --suite; for folders use --files and --rows")
    if (seed_set or family) and suite is not Suite.VIOLATIONS:
        raise SettingsError("--seed-set and --family are for the suite 'violations'")
    chosen = _words([methods or ""])
    if suite is Suite.SST:
        _run_sst(data, out, chosen, _seeds(seed)[0], quick=quick, quiet=quiet)
        return
    if suite is None:
        plans = [BenchPlan(folders=folders or [], methods=expanded(chosen or ["default"]))]
    else:
        special: dict[str, Any] = {"families": _words(family)} if family else {}
        special |= {"seeds": seed_set.value} if seed_set else {}
        plans = SUITES[suite](data, chosen or ["all"], quick=quick, **special)
    changes: dict[str, Any] = {"seeds": _seeds(seed), "overrides": key_values(set_)}
    changes |= {"max_files": files} if files else {}
    changes |= {"max_rows": rows} if rows else {}
    changes |= {"orientation": orientation.value} if orientation else {}
    plans = [replace(plan, **changes) for plan in plans]
    failures: list[str] = []

    def report(done: int, total: int, row: Mapping[str, str]) -> None:
        name = f"{row['folder']}/{row['file']} {row['method']}"
        if row["error"]:
            failures.append(f"{name}: {row['error']}")
        if not quiet:
            state = row["error"] or f"F1 {float(row['f1']):.2f}, {float(row['seconds']):.1f} s"
            say(f"{done} of {total}", f"{name}: {state}")

    with workers(cluster, n_jobs) as at_once:
        results = run_bench(plans, out, n_jobs=at_once, fresh=fresh, on_result=report)
    if suite is Suite.VIOLATIONS:
        write_violations_report(results, out)
    else:
        write_report(results, out)
    if suite is Suite.PAPER:
        write_paper_report(results, plans[0], out)
    if suite is Suite.SCALING:
        write_scaling_report(results, out)
    if as_json:
        show_json(json.loads(summarise(results).to_json(orient="records")))
    elif not quiet and suite is Suite.VIOLATIONS:
        show(f"The tables are in {out / 'table.md'}, every system in {out / 'outcomes.csv'}.")
    elif not quiet:
        show(bench_table(results))
        show(f"Every file is in {out / 'results.csv'}; tables and pictures stand beside it.")
    if failures:
        say("warning", f"{len(failures)} jobs failed, the first: {failures[0]}")


def _run_sst(
    data: Path | None, out: Path, methods: Sequence[str], seed: int, *, quick: bool, quiet: bool
) -> None:
    from causalformer.bench.sst import run_sst

    if data is None:
        raise SettingsError("the suite 'sst' needs --data, the folder that holds sst/*.nc")
    run_sst(
        data / "sst",
        out,
        ("paper", "default") if "all" in (methods or ["all"]) else methods,
        quick=quick,
        seed=seed,
        on_step=(lambda _: None) if quiet else (lambda text: say("sst", text)),
    )
    if not quiet:
        show(f"Counts and what they mean are in {out / 'table.md'}; maps stand beside it.")


def _words(texts: Sequence[str]) -> list[str]:
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _seeds(texts: Sequence[str] | None) -> list[int]:
    words = [word.strip() for text in texts or ["0"] for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise SettingsError(f"--seed {','.join(words)}: expected whole numbers from 0, as in 0,1,2")
    return [int(word) for word in words]
