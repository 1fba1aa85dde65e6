"""What goes to the terminal: text, tables and JSON; errors and warnings in one line each."""

import json
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from causalformer.errors import CausalFormerError, DataWarning


class Commands(TyperGroup):
    """Commands whose errors and warnings take one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error that the user can mend ends it with exit code 2."""
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except CausalFormerError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            say("error", error)
            raise typer.Exit(2) from None


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    shown: set[str] = set()
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show_in_one_line(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if not issubclass(category, DataWarning):
                show_others(message, category, *place)
            elif str(message) not in shown:
                shown.add(str(message))
                say("warning", message)

        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show_in_one_line  # type: ignore[assignment]
        yield


def say(kind: str, message: object) -> None:
    """Write one line to the standard error stream, as it is: names may look like markup."""
    from causalformer.names import printable_name

    typer.echo(f"{kind}: {printable_name(str(message))}", err=True)


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
