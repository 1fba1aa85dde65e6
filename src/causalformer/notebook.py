"""Whether a notebook shows what is made here, and how to show something in it."""

import sys
from importlib import import_module
from typing import Any


def in_notebook() -> bool:
    """Say whether a Jupyter kernel runs this; IPython in a terminal has none.

    Examples
    --------
    >>> in_notebook()
    False
    """
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return hasattr(ask() if ask else None, "kernel")


class Output:
    """Something below a notebook's cell that can be replaced by something else."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, html: str) -> None:
        """Show it, in place of what was shown before."""
        content = {"text/plain": text, "text/html": html}
        if self._handle is None:
            display = import_module("IPython.display").display
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
