"""What goes to the terminal: text, tables and JSON; errors and warnings in one line each."""

import json
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from causalformer.errors import CausalFormerError, DataWarning

# click's UsageError, which typer does not name: some releases of it bring a click of their own
_UsageError: type[Any] = typer.BadParameter.__mro__[1]
_KEYWORD = re.compile(r"`(?P<name>\w+)(=(?P<value>[^`]*))?`")
_LONGEST_LINE = 2000


class Commands(TyperGroup):
    """Commands whose errors and warnings take one line each."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the options before the command."""
        with _usage_errors_in_one_line():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error that the user can mend ends it with exit code 2."""

        def in_options(message: object) -> str:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            return keywords_to_options(str(message), command.params if command else ())

        try:
            with _warnings_in_one_line(in_options), _usage_errors_in_one_line():
                return super().invoke(ctx)
        except CausalFormerError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            say("error", in_options(error))
            raise typer.Exit(2) from None


def keywords_to_options(message: str, parameters: Sequence[Any]) -> str:
    """Name the command's options where a message of the library names keywords.

    Examples
    --------
    >>> from types import SimpleNamespace as Parameter
    >>> header = Parameter(name="header", opts=["--header"], secondary_opts=["--no-header"])
    >>> keywords_to_options("choose `header=False`, or other `names`", [header])
    'choose --no-header, or other `names`'
    """
    options = {parameter.name: parameter for parameter in parameters}

    def option(match: re.Match[str]) -> str:
        if match["name"] not in options:
            return match[0]
        on, off = options[match["name"]].opts, options[match["name"]].secondary_opts
        if off and match["value"] in ("True", "False"):
            return str((on if match["value"] == "True" else off)[0])
        value = "none" if match["value"] == "None" else match["value"]
        return f"{on[0]} {value}" if value else str(on[0])

    return _KEYWORD.sub(option, message)


@contextmanager
def _usage_errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # not an error but the help
            raise
        command = error.ctx.command_path if error.ctx else "causalformer"
        say("error", f"{error.format_message().rstrip('.')} (see {command} --help)")
        raise typer.Exit(2) from None


@contextmanager
def _warnings_in_one_line(in_options: Callable[[object], str]) -> Iterator[None]:
    shown: set[str] = set()
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show_in_one_line(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if not issubclass(category, DataWarning):
                show_others(message, category, *place)
            elif str(message) not in shown:
                shown.add(str(message))
                say("warning", in_options(message))

        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show_in_one_line  # type: ignore[assignment]
        yield


def say(kind: str, message: object) -> None:
    """Write one line to the standard error stream, as it is: names may look like markup."""
    from causalformer.names import printable_name

    text = str(message)
    if len(text) > _LONGEST_LINE:
        text = f"{text[: _LONGEST_LINE // 2]} … {text[-_LONGEST_LINE // 2 :]}"
    typer.echo(f"{kind}: {printable_name(text)}", err=True)


def show(*items: Any) -> None:
    """Print tables, and text without reading it as markup."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(*items)


def show_json(content: object) -> None:
    """Print JSON, indented."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def show_columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
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
    show(table)


def figure(value: float) -> str:
    """Return a number as text: counts in full, three decimals, a dash for NaN."""
    if value != value:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
