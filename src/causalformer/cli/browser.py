"""A page in the browser, for somebody who sits in front of one."""

import os
import sys
import webbrowser
from pathlib import Path


def open_page(page: Path) -> bool:
    """Open a file in the browser, and say whether that could be done."""
    try:
        return _somebody_watches() and webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


def _somebody_watches() -> bool:
    """Say whether there is a terminal and a screen: no build, no pipe, no bare server."""
    if not sys.stdout.isatty() or os.environ.get("CI"):
        return False
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or bool(screen)
