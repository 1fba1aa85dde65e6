"""A page in the browser, for somebody who sits in front of one."""

import os
import sys
import webbrowser
from pathlib import Path


def open_page(page: Path) -> bool:
    """Open a file in the browser, and say whether that could be done."""
    try:
        return sys.stdout.isatty() and has_screen() and webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


def has_screen() -> bool:
    """Say whether there is a screen: on a bare server a browser would take over the terminal."""
    if os.environ.get("CI"):
        return False
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or bool(screen)
