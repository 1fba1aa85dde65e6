"""The command `discover`."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from causalformer.cli.fitting import run_discovery
from causalformer.cli.options import JsonOption, QuietOption, SeedOption, SetOption, key_values
from causalformer.errors import DataWarning, SettingsError


class Within(StrEnum):
    """Whether contemporaneous edges are wanted."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


class Gaps(StrEnum):
    """What to do where time steps are longer than usual."""

    AUTO = "auto"
    SPLIT = "split"
    IGNORE = "ignore"


class Missing(StrEnum):
    """What to do about missing values."""

    MASK = "mask"
    INTERPOLATE = "interpolate"
    PREVIOUS = "previous"
    MEAN = "mean"


def discover(
    source: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, NPY, NPZ or netCDF: one column per series; or a folder of "
            "such files, one per recording."
        ),
    ],
    max_lag: Annotated[
        str, typer.Option(metavar="N|auto", help="Lags to look at; generous is fine.")
    ] = "5",
    alpha: Annotated[float, typer.Option(help="Share of false edges to tolerate.")] = 0.05,
    instantaneous: Annotated[
        Within, typer.Option(help="Look for contemporaneous edges, within a slot.")
    ] = Within.AUTO,
    stability: Annotated[
        int, typer.Option(min=0, help="Refits on resampled data; gives each edge a frequency.")
    ] = 0,
    season: Annotated[
        str,
        typer.Option(
            metavar="auto|none|24|24,168", help="Seasons in slots, held fixed as trends are."
        ),
    ] = "auto",
    n_jobs: Annotated[
        int, typer.Option(help="Processes (or threads); -1: one per core. Changes no result.")
    ] = -1,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="local|tcp://…", help="Share the work with Dask workers."),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(metavar="4GB", help="Default: 70 % of what is free.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="`default`, or a preset of the paper; see `presets`.")
    ] = "default",
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
    group: Annotated[
        str | None, typer.Option(help="Column that tells recordings (subjects, runs) apart.")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Also fit every recording on its own.")
    ] = False,
    gaps: Annotated[
        Gaps, typer.Option(help="Where time steps are too long: split the series, or ignore it.")
    ] = Gaps.AUTO,
    resample: Annotated[
        str | None, typer.Option(metavar="STEP", help="Average over time steps such as 1h or 7D.")
    ] = None,
    prepare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP",
            help="detrend, difference, season:12, log[a, b], standardise, normal-score, every:5, "
            "mean:5; may be repeated.",
        ),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Missing values: leave them out, or fill them in.")
    ] = Missing.MASK,
    knowledge: Annotated[
        Path | None, typer.Option(help="JSON or YAML file of what is known beforehand.")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EDGE",
            help='An edge that must be, as "rain -> river" or '
            '"rain -> river @ 2" (lag 2); may be repeated.',
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="EDGE", help='An edge that cannot be, also "* -> rain".'),
    ] = None,
    exogenous: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A series that nothing drives.")
    ] = None,
    effects_only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A series that drives nothing.")
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda|cuda:1|mps", help="Where to compute.")
    ] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on from the checkpoint in --out.")
    ] = False,
    save_model: Annotated[
        bool, typer.Option("--save-model", help="Write the fitted model, too.")
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the report, where there is a screen.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Discover the causal graph of a file of time series.

    Ctrl-C stops the training; the best model up to then is used. With more than 16 series the
    blocks that are finished are kept instead, and --resume goes on.
    """
    from causalformer.config import resolve_settings
    from causalformer.data import read_series
    from causalformer.data.preparation import prepare_table
    from causalformer.detect.memory import memory_limit
    from causalformer.devices import choose_device
    from causalformer.estimator import CausalFormer
    from causalformer.knowledge import knowledge_from_options
    from causalformer.scratch import memory_limited

    if out is None and (resume or save_model or browser):
        option = "--resume" if resume else "--save-model" if save_model else "--browser"
        raise SettingsError(f"{option} needs a folder for the results: add --out FOLDER")
    settings = resolve_settings(preset, key_values(set_))
    choose_device(device)
    if quiet:
        warnings.simplefilter("ignore", DataWarning)
    with memory_limited(memory_limit(max_memory)):
        table = read_series(
            source,
            time_column=_time_column(time_column),
            header=header,
            group=group,
            gaps=gaps.value,
            resample=resample,
        )
        table = prepare_table(table, prepare or ())
    model = CausalFormer(
        preset,
        max_lag=int(max_lag) if max_lag.isdecimal() else max_lag,  # type: ignore[arg-type]
        alpha=alpha,
        instantaneous={"yes": True, "no": False}.get(instantaneous.value, "auto"),
        stability=stability,
        season=season,
        n_jobs=n_jobs,
        cluster=cluster,
        max_memory=max_memory,
        missing=missing.value,
        knowledge=knowledge_from_options(
            knowledge, require or (), forbid or (), exogenous or (), effects_only or ()
        ),
        settings={name: getattr(settings, name) for name in key_values(set_)},
        random_state=seed,
        device=device,
    )
    run_discovery(
        model,
        table,
        out,
        resume=resume,
        save_model=save_model,
        each=each,
        browser=browser,
        talk=not (as_json or quiet),
    )
    if as_json:
        typer.echo(model.graph_.to_json(), nl=False)


def _time_column(text: str | None) -> Any:
    from causalformer.data import AUTO

    if text is None:
        return AUTO
    if text.lower() == "none":
        return None
    return int(text) if text.isdecimal() else text
