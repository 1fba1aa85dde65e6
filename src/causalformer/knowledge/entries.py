"""Single statements: an edge or a name, in any form that a user may write it."""

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Self

from causalformer.arrays import is_whole
from causalformer.errors import SettingsError

WILDCARD = "*"
"""Any other series, as an end of a forbidden edge."""

_LARGEST_LAG = 1_000_000
LONGEST_SHOWN = 80
_LAG = re.compile("[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class KnownEdge:
    """One statement: ``cause`` drives ``effect``, or does not, after ``lag`` time slots.

    Parameters
    ----------
    cause, effect : str
        Names of the series. In a forbidden edge one or both may be ``"*"``: every other series.
    lag : int, optional
        Delay in time slots, 0 for a contemporaneous edge. Without it a required edge has some lag,
        and a forbidden one none at all.

    Examples
    --------
    >>> print(KnownEdge("rain", "river", 2))
    rain -> river @ 2
    >>> KnownEdge("rain", "rain", 0)
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: edge 'rain -> rain @ 0': a self edge needs a lag of at
    least 1
    """

    cause: str
    effect: str
    lag: int | None = None

    def __post_init__(self) -> None:
        for end in ("cause", "effect"):
            name = getattr(self, end)
            if not isinstance(name, str):
                raise SettingsError(
                    f"{end} must be the name of a series in quotes, not {describe(name)}"
                )
            object.__setattr__(self, end, str(name))
        if self.lag is None:
            return
        where = f"edge {shown(f'{self.cause} -> {self.effect}')}"
        if not is_whole(self.lag):
            raise SettingsError(f"{where}: lag must be a whole number, not {describe(self.lag)}")
        if not 0 <= self.lag <= _LARGEST_LAG:
            raise SettingsError(f"{where}: lag must lie between 0 and {_LARGEST_LAG}")
        object.__setattr__(self, "lag", int(self.lag))
        if self.lag == 0 and self.cause == self.effect != WILDCARD:
            raise SettingsError(f"edge {shown(self)}: a self edge needs a lag of at least 1")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read ``"cause -> effect"`` or ``"cause -> effect @ lag"``.

        Names may hold spaces, but not ``->``, and that of the effect no ``@``.

        Examples
        --------
        >>> KnownEdge.from_text("heavy rain -> river @ 2")
        KnownEdge(cause='heavy rain', effect='river', lag=2)
        """
        before, _, after = text.partition("->")
        name, at, number = after.partition("@")
        cause, effect, lag = before.strip(), name.strip(), number.strip()
        if not cause or not effect or "->" in after or (at and not _LAG.fullmatch(lag)):
            raise SettingsError(
                f"{shown(text)} is no edge; write 'cause -> effect' or 'cause -> effect @ 2', "
                "and, if a name holds -> or @, as a list [cause, effect, 2] in Python or a file of "
                "knowledge"
            )
        return cls(cause, effect, int(lag) if at else None)

    def __str__(self) -> str:
        return f"{self.cause} -> {self.effect}" + ("" if self.lag is None else f" @ {self.lag}")

    @property
    def is_wild(self) -> bool:
        """Whether an end is ``"*"``."""
        return WILDCARD in (self.cause, self.effect)


EdgeLike = KnownEdge | str | Sequence[str | int | None]
"""An edge as users write it: ``"rain -> river @ 2"`` or ``("rain", "river", 2)``."""


def read_edges(where: str, forms: Iterable[EdgeLike], *, wildcard: bool) -> tuple[KnownEdge, ...]:
    """Read edges in any form, each once; `where` begins the messages."""
    edges: dict[KnownEdge, None] = {}
    entries = entries_of(where, forms, "edges such as 'rain -> river'")
    for number, form in enumerate(entries, start=1):
        try:
            edge = read_edge(form)
        except SettingsError as error:
            raise SettingsError(f"{where}, entry {number}: {error}") from None
        if edge.is_wild and not wildcard:
            raise SettingsError(
                f"{where}, entry {number}: {shown(edge)} uses *, which only forbidden edges may; "
                "name the series"
            )
        edges[edge] = None
    return tuple(edges)


def read_edge(form: EdgeLike) -> KnownEdge:
    """Take an edge in any of the forms that users write."""
    if isinstance(form, KnownEdge):
        return form
    if isinstance(form, str):
        return KnownEdge.from_text(form)
    if isinstance(form, list | tuple) and len(form) in (2, 3):
        return KnownEdge(*form)
    found = f"{describe(form)} of length {len(form)}" if isinstance(form, Sized) else describe(form)
    raise SettingsError(f"write 'cause -> effect @ 2' or [cause, effect, 2] in place of {found}")


def read_names(where: str, names: Iterable[str]) -> tuple[str, ...]:
    """Check names of series, and keep each once; `where` begins the messages."""
    entries = entries_of(where, names, "names")
    for number, name in enumerate(entries, start=1):
        if not isinstance(name, str):
            raise SettingsError(
                f"{where}, entry {number}: a name must be text in quotes, not {describe(name)}"
            )
        if name == WILDCARD:
            raise SettingsError(
                f"{where}, entry {number}: only forbidden edges may use *; name the series"
            )
    return tuple(dict.fromkeys(map(str, entries)))


def entries_of(where: str, values: Iterable[Any], what: str) -> list[Any]:
    """Check that something is a list."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise SettingsError(f"{where} must be a list of {what}, not {describe(values)}")
    return list(values)


def shown(value: object) -> str:
    """Quote a text for a message: on one line, and not all of it if it is long."""
    text = str(value)
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")


def one_line(problem: object) -> str:
    """Fit the message of another package into one of ours."""
    return " ".join(str(problem).split())[:200]


def describe(value: object) -> str:
    """Show what stands in a wrong place: the text itself, but only the type of anything else."""
    if value is None:
        return "None"
    return shown(value) if isinstance(value, str) else type(value).__name__
