"""Options that several commands share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from causalformer.errors import SettingsError

SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything that is random.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; may be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def key_values(pairs: Sequence[str] | None) -> dict[str, str]:
    """Split ``KEY=VALUE``; the settings turn the text into numbers themselves."""
    for pair in pairs or ():
        if "=" not in pair:
            raise SettingsError(f"--set {pair!r} is no setting; expected KEY=VALUE")
    split = (pair.partition("=") for pair in pairs or ())
    return {key.strip(): value.strip() for key, _, value in split}
