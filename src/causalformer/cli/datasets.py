"""The commands `datasets list` and `datasets make`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from causalformer.cli.options import QuietOption, SeedOption, SetOption, key_values
from causalformer.cli.terminal import show
from causalformer.errors import OutputError, SettingsError

datasets_app = typer.Typer(
    no_args_is_help=True, help="Make data whose causal graph is known, or list what there is."
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
    options = {"n_slots": n_slots, **_parsed(key_values(set_))}
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
        show(f"{count} data set{'s' * (count > 1)} '{name}' of {n_slots} slots are in {out}.")


def _parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    """Read values as JSON where they are JSON, such as 3, 0.5 and [0.6, 1.2]."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return {key: value(text) for key, text in texts.items()}
