"""A progress bar for the training, in a terminal or a notebook; silent where nobody watches."""

import time
from collections import deque
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from causalformer.notebook import Output, in_notebook

if TYPE_CHECKING:
    from causalformer.training import Epoch

_RECENT: Final = 20  # epochs whose mean duration predicts the rest
_PAUSE: Final = 0.1  # seconds between two pictures in a notebook


class TrainingProgress:
    """Show how far a training is, how well it does and how long it may still take.

    It draws on the standard error stream if that is a terminal, below the cell if this is a
    notebook, and otherwise does nothing. ``CausalFormer(verbose=True)`` uses it.

    Parameters
    ----------
    max_epochs : int
        The most epochs there can be; training often stops earlier, so the time left is a bound.
    console : rich.console.Console, optional
        Where to draw.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> with TrainingProgress(10) as progress:  # no terminal here, so nothing is drawn
    ...     progress(SimpleNamespace(number=0, validation_loss=0.5, seconds=0.1, is_best=True))
    """

    def __init__(self, max_epochs: int, console: Console | None = None) -> None:
        self._max_epochs = max_epochs
        self._durations: deque[float] = deque(maxlen=_RECENT)
        self._best = float("nan")
        self._bar: _TerminalBar | _NotebookBar = (
            _NotebookBar(max_epochs)
            if console is None and in_notebook()
            else _TerminalBar(max_epochs, console or Console(stderr=True))
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop(failed=kind is not None)

    def __call__(self, epoch: "Epoch") -> None:
        """Take note of an epoch and redraw."""
        if epoch.is_best:
            self._best = epoch.validation_loss
        self._durations.append(epoch.seconds)
        done = epoch.number + 1
        left = (self._max_epochs - done) * sum(self._durations) / len(self._durations)
        next_ = f"≤ {_duration(left)} left" if done < self._max_epochs else "now the graph"
        losses = f"validation loss {epoch.validation_loss:.3g}, best {self._best:.3g}"
        self._bar.show(done, f" · {losses} · {next_}")


class _TerminalBar:
    """A bar that is gone when it is done."""

    def __init__(self, most: int, console: Console) -> None:
        self._bar = Progress(
            BarColumn(bar_width=10),
            TextColumn("epoch {task.completed:.0f} of {task.total:.0f}{task.fields[facts]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=most, facts="")

    def start(self) -> None:
        self._bar.start()

    def show(self, done: int, facts: str) -> None:
        self._bar.update(self._task, completed=done, facts=facts)

    def stop(self, *, failed: bool) -> None:  # noqa: ARG002
        self._bar.stop()


class _NotebookBar:
    """One bar below the cell, of plain HTML: no widgets, and one line is left of it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._done = 0
        self._output = Output()
        self._began = self._drawn = time.monotonic()

    def start(self) -> None:
        self._draw("")

    def show(self, done: int, facts: str) -> None:
        self._done = done
        if time.monotonic() - self._drawn >= _PAUSE or done == self._most:
            self._draw(facts)

    def stop(self, *, failed: bool) -> None:
        seconds = time.monotonic() - self._began
        how = "Stopped by an error after" if failed else "Done:"
        text = f"{how} {self._done} epoch{'s' * (self._done != 1)}, {_duration(seconds)}."
        self._output.show(text, f"<p>{text}</p>")

    def _draw(self, facts: str) -> None:
        self._drawn = time.monotonic()
        text = f"epoch {self._done} of {self._most}{facts}"
        bar = f'<progress value="{self._done}" max="{self._most}"></progress>'
        self._output.show(text, f"<p>{bar} {escape(text)}</p>")


def _duration(seconds: float) -> str:
    """Write a duration with the precision that an estimate has.

    >>> _duration(42.4), _duration(125), _duration(7300)
    ('42 s', '2 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
