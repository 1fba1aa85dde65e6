"""The commands put together, and the entry point."""

import sys
from typing import Annotated

import typer

from causalformer._version import __version__
from causalformer.cli.bench import bench
from causalformer.cli.datasets import datasets_app
from causalformer.cli.demo import demo
from causalformer.cli.discover import discover
from causalformer.cli.evaluate import evaluate
from causalformer.cli.local_app import local_app
from causalformer.cli.plot import plot
from causalformer.cli.presets import presets
from causalformer.cli.terminal import Commands, say

app = typer.Typer(
    name="causalformer",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help and usage errors: half the time, and no markup in names
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (discover, plot, evaluate, bench, presets, demo):  # the order in the help
    app.command()(command)
app.command("app")(local_app)
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


def main() -> None:
    """Run the command line; the entry point of the package."""
    try:
        app(prog_name="causalformer")
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        say("error", f"unexpected {type(error).__name__}: {error}; run `causalformer --debug ...`")
        sys.exit(1)
