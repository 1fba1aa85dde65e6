"""A progress bar for the training, fed after every epoch; silent where nobody watches."""

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from causalformer.training import Epoch

_RECENT = 20  # epochs whose mean duration predicts the rest


class TrainingProgress:
    """Show how far a training is, how well it does and how long it may still take.

    Pass it as ``on_epoch``; it draws on the standard error stream if that is a terminal, and
    otherwise does nothing.

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
        console = console or Console(stderr=True)
        self._bar = Progress(
            BarColumn(bar_width=10),
            TextColumn("epoch {task.completed:.0f} of {task.total:.0f}{task.fields[facts]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=max_epochs, facts="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, epoch: "Epoch") -> None:
        """Take note of an epoch and redraw."""
        if epoch.is_best:
            self._best = epoch.validation_loss
        self._durations.append(epoch.seconds)
        done = epoch.number + 1
        left = (self._max_epochs - done) * sum(self._durations) / len(self._durations)
        facts = (
            f" · validation loss {epoch.validation_loss:.3g}, best {self._best:.3g}"
            f" · ≤ {_duration(left)} left"
        )
        self._bar.update(self._task, completed=done, facts=facts)


def _duration(seconds: float) -> str:
    """Write a duration with the precision that an estimate has.

    >>> _duration(42.4), _duration(125), _duration(7300)
    ('42 s', '2 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
