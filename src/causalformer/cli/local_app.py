"""The command `app`."""

from pathlib import Path
from typing import Annotated

import typer

from causalformer.cli.browser import has_screen
from causalformer.errors import MissingExtraError


def local_app(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page, if there is a screen.")
    ] = True,
    workspace: Annotated[Path, typer.Option(help="Folder that keeps the runs.")] = Path(
        "~/.causalformer"
    ),
    max_upload: Annotated[
        int, typer.Option(min=1, metavar="MB", help="The largest file to accept.")
    ] = 200,
) -> None:
    """Work in the browser: upload, discover, explore, compare. For this machine only.

    Ctrl-C stops it; runs are kept, and one at work goes on at the next start.
    """
    try:
        from causalformer.app.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise MissingExtraError(
            f"the app needs {error.name}: pip install causalformer[app]"
        ) from error

    def tell(address: str) -> None:
        typer.echo(f"The app is at {address}\nCtrl-C stops it.")

    serve(workspace, port=port, max_upload=max_upload, browser=browser and has_screen(), say=tell)
