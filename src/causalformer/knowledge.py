"""What a user knows beforehand about the graph: edges that must or must not be in it.

`PriorKnowledge` holds statements about series by name, as the user made them, in Python or in a
file. Once the series are known, `PriorKnowledge.resolve` turns them into the arrays of a
`KnownGraph`, ``[cause, effect, lag]``, or says which two statements contradict each other.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import astuple, dataclass, fields
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from causalformer.arrays import is_whole
from causalformer.errors import DataError, FileFormatError, MissingExtraError, SettingsError
from causalformer.files import read_text
from causalformer.graph import CausalGraph
from causalformer.names import check_names, listed, printable_name

BoolArray = NDArray[np.bool_]

WILDCARD = "*"
"""Any other series, as an end of a forbidden edge."""

_LARGEST_LAG = 1_000_000
_LARGEST_FILE = 1_000_000
_SHOWN = 80
_LAG = re.compile("[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class KnownEdge:
    """One statement: ``cause`` drives ``effect``, or does not, after ``lag`` time slots.

    Parameters
    ----------
    cause, effect : str
        Names of the series. In a forbidden edge one or both may be ``"*"``: every other series.
    lag : int, optional
        Delay in time slots, 0 for within a slot. Without it a required edge has some lag, and a
        forbidden one none at all.

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
                    f"{end} must be the name of a series in quotes, not {_found(name)}"
                )
            object.__setattr__(self, end, str(name))
        if self.lag is None:
            return
        where = f"edge {_shown(f'{self.cause} -> {self.effect}')}"
        if not is_whole(self.lag):
            raise SettingsError(f"{where}: lag must be a whole number, not {_found(self.lag)}")
        if not 0 <= self.lag <= _LARGEST_LAG:
            raise SettingsError(f"{where}: lag must lie between 0 and {_LARGEST_LAG}")
        object.__setattr__(self, "lag", int(self.lag))
        if self.lag == 0 and self.cause == self.effect != WILDCARD:
            raise SettingsError(f"edge {_shown(self)}: a self edge needs a lag of at least 1")

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
                f"{_shown(text)} is no edge; write 'cause -> effect' or 'cause -> effect @ 2', "
                "and as a list [cause, effect, 2] if a name holds -> or @"
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


@dataclass(frozen=True, init=False)
class PriorKnowledge:
    """What is known of the graph before the data are seen.

    Statements are about different series: only a forbidden edge that names the same series twice,
    such as ``"rain -> rain"``, speaks against a self-loop.

    Parameters
    ----------
    required : iterable of edges
        Edges that must be in the graph: `KnownEdge`, ``(cause, effect)``, ``(cause, effect, lag)``
        or the text ``"cause -> effect @ lag"``.
    forbidden : iterable of edges
        Edges that must not; ``"* -> rain"`` forbids every other series to drive rain.
    tiers : iterable of iterables of str
        Series in causal order: later tiers never cause earlier ones. Series in no tier are free.
    exogenous : iterable of str
        Series that nothing but their own past drives.
    effects_only : iterable of str
        Series that cause nothing but themselves.

    Raises
    ------
    SettingsError
        Naming the argument, the entry, and what is expected.

    Examples
    --------
    >>> knowledge = PriorKnowledge(required=["rain -> river"], exogenous=["rain"])
    >>> knowledge.required
    (KnownEdge(cause='rain', effect='river', lag=None),)
    >>> knowledge.resolve(["rain", "river"], max_lag=2).allowed[1, 0]
    array([False, False, False])
    """

    required: tuple[KnownEdge, ...]
    forbidden: tuple[KnownEdge, ...]
    tiers: tuple[tuple[str, ...], ...]
    exogenous: tuple[str, ...]
    effects_only: tuple[str, ...]

    def __init__(
        self,
        required: Iterable[EdgeLike] = (),
        forbidden: Iterable[EdgeLike] = (),
        tiers: Iterable[Iterable[str]] = (),
        exogenous: Iterable[str] = (),
        effects_only: Iterable[str] = (),
    ) -> None:
        ordered = tuple(
            _names(f"tiers, entry {i}", tier)
            for i, tier in enumerate(_entries("tiers", tiers, "lists of names"), start=1)
        )
        object.__setattr__(self, "required", _edges("required", required, wildcard=False))
        object.__setattr__(self, "forbidden", _edges("forbidden", forbidden, wildcard=True))
        object.__setattr__(self, "tiers", ordered)
        object.__setattr__(self, "exogenous", _names("exogenous", exogenous))
        object.__setattr__(self, "effects_only", _names("effects_only", effects_only))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Build from a mapping with any of the class's parameters as keys.

        Examples
        --------
        >>> PriorKnowledge.from_dict({"exogenus": ["rain"]})
        Traceback (most recent call last):
        ...
        causalformer.errors.SettingsError: unknown key 'exogenus'; did you mean 'exogenous'?
        the keys are required, forbidden, tiers, exogenous, effects_only
        """
        known = [each.name for each in fields(cls)]
        keys = f"the keys are {', '.join(known)}"
        if not isinstance(mapping, Mapping):
            raise SettingsError(f"knowledge must be a mapping, not {_found(mapping)}; {keys}")
        for key in mapping:
            if key not in known:
                raise SettingsError(f"unknown key {_found(key)};{_did_you_mean(key, known)} {keys}")
        return cls(**mapping)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return lists of text and numbers, which JSON can hold and `from_dict` reads back.

        Examples
        --------
        >>> PriorKnowledge(required=["rain -> river @ 2"]).to_dict()["required"]
        [['rain', 'river', 2]]
        """
        return {
            "required": [list(astuple(edge)) for edge in self.required],
            "forbidden": [list(astuple(edge)) for edge in self.forbidden],
            "tiers": [list(tier) for tier in self.tiers],
            "exogenous": list(self.exogenous),
            "effects_only": list(self.effects_only),
        }

    def resolve(self, names: Sequence[str], max_lag: int) -> "KnownGraph":
        """Turn the statements into arrays over these series and lags.

        Parameters
        ----------
        names : sequence of str
            All series, in the order of the axes cause and effect.
        max_lag : int
            Longest lag, the last one of the axis lag. Forbidding a longer one says nothing.

        Returns
        -------
        KnownGraph

        Raises
        ------
        SettingsError
            If a series is unknown or in two tiers, a required lag is too long, two statements
            contradict each other, or required edges form a cycle within a slot.

        Examples
        --------
        >>> knowledge = PriorKnowledge(required=["a -> b"], tiers=[["b"], ["a"]])
        >>> knowledge.resolve(["a", "b"], max_lag=2)
        Traceback (most recent call last):
        ...
        causalformer.errors.SettingsError: required 'a -> b' contradicts tiers (nothing in a later
        tier causes 'b'); drop one of them
        """
        check_names(names, "knowledge")
        if not is_whole(max_lag) or max_lag < 0:
            raise SettingsError(f"max_lag is {max_lag!r}; choose a whole number from 0")
        self._check_series(names)
        place = {name: i for i, name in enumerate(names)}
        known = KnownGraph.anything(len(names), max_lag)
        bans = list(self._bans(place, max_lag))
        for ban in bans:
            causes, effects = np.array(ban.pairs, dtype=np.intp).reshape(-1, 2).T
            known.allowed[causes, effects, slice(None) if ban.lag is None else ban.lag] = False
        for edge in self.required:
            pair = place[edge.cause], place[edge.effect]
            _check_reach(edge, max_lag)
            if not known.allowed[pair][slice(None) if edge.lag is None else edge.lag].any():
                _refuse_contradiction(edge, pair, bans)
            known.required[pair] = True
            if edge.lag is not None:
                known.required_lags[*pair, edge.lag] = True
        _check_no_cycle(known, names)
        return known

    def _check_series(self, names: Sequence[str]) -> None:
        """Raise unless every name is a series, and in no more than one tier."""
        known = set(names)
        for statement, name in self._mentions():
            if name not in known:
                raise SettingsError(
                    f"{statement}: no series is called {_shown(name)};"
                    f"{_did_you_mean(name, names)} the series are {listed(map(_shown, names), 10)}"
                )
        tier_of: dict[str, int] = {}
        for number, tier in enumerate(self.tiers, start=1):
            for name in tier:
                first = tier_of.setdefault(name, number)
                if first != number:
                    raise SettingsError(
                        f"tiers: {_shown(name)} is in tier {first} and in tier {number}; "
                        "keep it in one of them"
                    )

    def _mentions(self) -> Iterator[tuple[str, str]]:
        """Every name of a series with the statement that it is part of."""
        for kind, edges in (("required", self.required), ("forbidden", self.forbidden)):
            for edge in edges:
                for name in (edge.cause, edge.effect):
                    if name != WILDCARD:
                        yield f"{kind} {_shown(edge)}", name
        for number, tier in enumerate(self.tiers, start=1):
            yield from ((f"tiers, entry {number}", name) for name in tier)
        yield from (("exogenous", name) for name in self.exogenous)
        yield from (("effects_only", name) for name in self.effects_only)

    def _bans(self, place: Mapping[str, int], max_lag: int) -> Iterator["_Ban"]:
        """Say for every statement which pairs of series it rules out."""
        banned = [(f"forbidden {_shown(edge)}", edge) for edge in self.forbidden]
        banned += [(f"exogenous {_shown(x)}", KnownEdge(WILDCARD, x)) for x in self.exogenous]
        banned += [(f"effects_only {_shown(x)}", KnownEdge(x, WILDCARD)) for x in self.effects_only]
        for statement, edge in banned:
            if edge.lag is not None and edge.lag > max_lag:
                continue
            causes, effects = (
                place.values() if name == WILDCARD else (place[name],)
                for name in (edge.cause, edge.effect)
            )
            pairs = [(c, e) for c in causes for e in effects if c != e or not edge.is_wild]
            yield _Ban(statement, pairs, edge.lag)
        for number, tier in enumerate(self.tiers, start=1):
            later = [place[name] for each in self.tiers[number:] for name in each]
            pairs = [(cause, place[name]) for cause in later for name in tier]
            shown = listed(map(_shown, tier))
            yield _Ban(f"tiers (nothing in a later tier causes {shown})", pairs, None)


@dataclass(frozen=True, eq=False)
class KnownGraph:
    """Prior knowledge about given series and lags, as arrays ``[cause, effect, lag]``.

    Parameters
    ----------
    allowed : array of bool, shape (N, N, max_lag + 1)
        Where there may be an edge, lags from 0; never from a series to itself at lag 0.
    required : array of bool, shape (N, N)
        Where there must be an edge, at some allowed lag.
    required_lags : array of bool, shape (N, N, max_lag + 1)
        Where there must be an edge at exactly this lag; `required` is true there, too.
    """

    allowed: BoolArray
    required: BoolArray
    required_lags: BoolArray

    @classmethod
    def anything(cls, n_series: int, max_lag: int) -> Self:
        """Know nothing: everything is allowed and nothing required.

        Examples
        --------
        >>> KnownGraph.anything(2, max_lag=1).allowed[0]
        array([[False,  True], [ True,  True]])
        """
        shape = (n_series, n_series, max_lag + 1)
        allowed = np.ones(shape, dtype=np.bool_)
        allowed[..., 0] = ~np.eye(n_series, dtype=np.bool_)
        return cls(allowed, np.zeros(shape[:2], dtype=np.bool_), np.zeros(shape, dtype=np.bool_))

    @property
    def is_trivial(self) -> bool:
        """Whether nothing is known.

        Examples
        --------
        >>> PriorKnowledge().resolve(["a", "b"], max_lag=5).is_trivial
        True
        """
        n_series, _, n_lags = self.allowed.shape
        everything = n_series * (n_series * n_lags - 1)
        return int(self.allowed.sum()) == everything and not self.required.any()

    def violations(self, graph: CausalGraph) -> list[str]:
        """List in words what is in the graph but not allowed, and what is required but missing.

        An edge within a slot that is not oriented is allowed if either direction is; it is not
        the one that is required, for that has a direction.

        Parameters
        ----------
        graph : CausalGraph
            Over the same series in the same order.

        Examples
        --------
        >>> from causalformer.graph import Edge
        >>> known = PriorKnowledge(["rain -> river"]).resolve(["rain", "river"], max_lag=2)
        >>> known.violations(CausalGraph(("rain", "river"), (Edge("river", "rain", 3),)))
        ['river → rain at lag 3 is beyond the longest lag, 2', 'rain → river is required']
        """
        n_series, _, n_lags = self.allowed.shape
        if len(graph.names) != n_series:
            raise DataError(
                f"the graph has {len(graph.names)} series and the knowledge {n_series}; "
                "resolve it for those of the graph"
            )
        place = {name: i for i, name in enumerate(graph.names)}
        found = []
        present = np.zeros_like(self.allowed)
        for edge in graph.edges:
            cause, effect = place[edge.cause], place[edge.effect]
            where = f"{edge.arrow} at lag {edge.lag}"
            if edge.lag >= n_lags:
                found.append(f"{where} is beyond the longest lag, {n_lags - 1}")
                continue
            reversible = not edge.oriented and self.allowed[effect, cause, 0]
            if not (self.allowed[cause, effect, edge.lag] or reversible):
                found.append(f"{where} is not allowed")
            present[cause, effect, edge.lag] = edge.oriented
        shown = [printable_name(name) for name in graph.names]
        at_any_lag = self.required & ~self.required_lags.any(axis=-1)
        for cause, effect in np.argwhere(at_any_lag & ~present.any(axis=-1)):
            found.append(f"{shown[cause]} → {shown[effect]} is required")
        for cause, effect, lag in np.argwhere(self.required_lags & ~present):
            found.append(f"{shown[cause]} → {shown[effect]} at lag {lag} is required")
        return found


class _Ban(NamedTuple):
    """A statement and what it rules out: pairs ``(cause, effect)`` at one lag or, None, at all."""

    statement: str
    pairs: list[tuple[int, int]]
    lag: int | None


def _check_reach(edge: KnownEdge, max_lag: int) -> None:
    shortest = int(edge.cause == edge.effect) if edge.lag is None else edge.lag
    if shortest > max_lag:
        raise SettingsError(
            f"required {_shown(edge)} needs a lag of {shortest}, but max_lag is {max_lag}; "
            f"raise max_lag to {shortest}"
        )


def _refuse_contradiction(edge: KnownEdge, pair: tuple[int, int], bans: list[_Ban]) -> NoReturn:
    against = [
        ban.statement
        for ban in bans
        if pair in ban.pairs and (edge.lag is None or ban.lag in (None, edge.lag))
    ]
    raise SettingsError(f"required {_shown(edge)} contradicts {listed(against)}; drop one of them")


def _check_no_cycle(known: KnownGraph, names: Sequence[str]) -> None:
    """Raise if edges that can only be within a slot form a cycle."""
    only_now = known.required & ~known.allowed[..., 1:].any(axis=-1)
    causes_of: dict[str, list[str]] = {}
    for cause, effect in np.argwhere(known.required_lags[..., 0] | only_now):
        causes_of.setdefault(names[effect], []).append(names[cause])
    try:
        TopologicalSorter(causes_of).prepare()
    except CycleError as error:
        cycle = " -> ".join(map(_shown, error.args[1]))
        raise SettingsError(
            f"required edges form a cycle within a time slot: {cycle}; "
            "drop one of them or give it a lag of at least 1"
        ) from None


# --- Files and options ----------------------------------------------------------------------------


def read_knowledge(
    source: PriorKnowledge | Mapping[str, Any] | str | Path | None,
) -> PriorKnowledge:
    """Return prior knowledge from whatever holds it.

    Parameters
    ----------
    source : PriorKnowledge, mapping, str, Path or None
        A path ends with .json, .yaml or .yml and holds one mapping, see
        `PriorKnowledge.from_dict`. In YAML, texts that begin with ``*`` need quotes. None is no
        knowledge.

    Raises
    ------
    SettingsError
        If the statements or the kind of source cannot be used.
    FileFormatError
        If a file cannot, naming the file and the place in it.
    MissingExtraError
        If the file is YAML and the package for it is not installed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "knowledge.json"
    >>> _ = path.write_text('{"forbidden": ["* -> rain"]}')
    >>> read_knowledge(path).forbidden
    (KnownEdge(cause='*', effect='rain', lag=None),)
    """
    if source is None:
        return PriorKnowledge()
    if isinstance(source, PriorKnowledge):
        return source
    if isinstance(source, Mapping):
        return PriorKnowledge.from_dict(source)
    if not isinstance(source, str | Path):
        raise SettingsError(
            f"knowledge must be a PriorKnowledge, a mapping or a path, not {_found(source)}"
        )
    path = Path(source)
    parse = {".json": _parse_json, ".yaml": _parse_yaml, ".yml": _parse_yaml}.get(
        path.suffix.lower()
    )
    if parse is None:
        raise SettingsError(
            f"cannot tell the format of {_shown(path)}: end its name with .json, .yaml or .yml"
        )
    try:
        return PriorKnowledge.from_dict(parse(path, _small_text(path)))
    except RecursionError as error:
        raise FileFormatError(
            f"{path}: nested too deeply for knowledge; use plain lists"
        ) from error
    except SettingsError as error:
        raise FileFormatError(f"{path}: {error}") from error


def knowledge_from_options(
    file: Path | None = None,
    require: Sequence[str] = (),
    forbid: Sequence[str] = (),
    exogenous: Sequence[str] = (),
    effects_only: Sequence[str] = (),
) -> PriorKnowledge:
    """Add what options of the command line say to what a file says.

    Parameters
    ----------
    file : Path, optional
        See `read_knowledge`.
    require, forbid : sequence of str
        Edges such as ``"rain -> river @ 2"``.
    exogenous, effects_only : sequence of str
        Names of series.

    Examples
    --------
    >>> knowledge_from_options(require=["rain -> river"], exogenous=["rain"]).exogenous
    ('rain',)
    """
    known = read_knowledge(file)
    return PriorKnowledge(
        required=known.required + _edges("--require", require, wildcard=False),
        forbidden=known.forbidden + _edges("--forbid", forbid, wildcard=True),
        tiers=known.tiers,
        exogenous=known.exogenous + _names("--exogenous", exogenous),
        effects_only=known.effects_only + _names("--effects-only", effects_only),
    )


def _small_text(path: Path) -> str:
    """Read a text file; refuse what is too large or, such as a device, might never end."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path}: cannot read the file: {reason}") from error
    if not S_ISREG(found.st_mode):
        raise FileFormatError(f"{path}: not a file; give one that ends with .json, .yaml or .yml")
    if found.st_size > _LARGEST_FILE:
        raise FileFormatError(
            f"{path}: {found.st_size} bytes, but knowledge has at most {_LARGEST_FILE}; "
            "use tiers and * in place of single edges"
        )
    return read_text(path)


def _parse_json(path: Path, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_repeated([key for key, _ in pairs])
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except ValueError as error:
        raise FileFormatError(f"{path}: no valid JSON: {error}") from error


def _parse_yaml(path: Path, text: str) -> Any:
    """Do what ``yaml.safe_load`` does, with a look at the nodes before they become values."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: YAML files need one more package: pip install causalformer[yaml]"
        ) from error
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        _check_nodes(root)
        return root and loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        where = f"{path}, line {error.problem_mark.line + 1}" if error.problem_mark else f"{path}"
        raise FileFormatError(
            f"{where}: no valid YAML: {_one_line(error.problem)}; "
            "put texts with special characters in quotes"
        ) from error
    # PyYAML lets these through for a value that does not fit its type, as in !!int text.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise FileFormatError(f"{path}: no valid YAML: {_one_line(error)}") from error


def _check_nodes(root: Any) -> None:
    """Refuse repeated keys, and what lets a small file stand for a huge value.

    That is an alias, which repeats a part of the file, and a number such as 1:1:1:1:1, base 60.
    """
    waiting = [] if root is None else [root]
    seen = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            raise ValueError("it holds an alias (*name); write out what that stands for")
        seen.add(id(node))
        if node.id == "mapping":
            _refuse_repeated([key.value for key, _ in node.value if key.id == "scalar"])
            waiting += [part for pair in node.value for part in pair]
        elif node.id == "sequence":
            waiting += node.value
        elif not node.tag.endswith(":str") and len(node.value) > _SHOWN:
            raise ValueError(f"it holds a number of {len(node.value)} characters; quote texts")


def _refuse_repeated(keys: list[str]) -> None:
    seen = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {_shown(key)} is given twice; join its lists")
        seen.add(key)


# --- Single entries -------------------------------------------------------------------------------


def _edges(where: str, forms: Iterable[EdgeLike], *, wildcard: bool) -> tuple[KnownEdge, ...]:
    """Read edges in any form, each once; `where` begins the messages."""
    edges: dict[KnownEdge, None] = {}
    entries = _entries(where, forms, "edges such as 'rain -> river'")
    for number, form in enumerate(entries, start=1):
        try:
            edge = _edge(form)
        except SettingsError as error:
            raise SettingsError(f"{where}, entry {number}: {error}") from None
        if edge.is_wild and not wildcard:
            raise SettingsError(
                f"{where}, entry {number}: {_shown(edge)} uses *, which only forbidden edges may; "
                "name the series"
            )
        edges[edge] = None
    return tuple(edges)


def _edge(form: EdgeLike) -> KnownEdge:
    if isinstance(form, KnownEdge):
        return form
    if isinstance(form, str):
        return KnownEdge.from_text(form)
    if isinstance(form, list | tuple) and len(form) in (2, 3):
        return KnownEdge(*form)
    found = f"{_found(form)} of length {len(form)}" if isinstance(form, Sized) else _found(form)
    raise SettingsError(f"write 'cause -> effect @ 2' or [cause, effect, 2] in place of {found}")


def _names(where: str, names: Iterable[str]) -> tuple[str, ...]:
    """Check names of series, and keep each once; `where` begins the messages."""
    entries = _entries(where, names, "names")
    for number, name in enumerate(entries, start=1):
        if not isinstance(name, str):
            raise SettingsError(
                f"{where}, entry {number}: a name must be text in quotes, not {_found(name)}"
            )
        if name == WILDCARD:
            raise SettingsError(
                f"{where}, entry {number}: only forbidden edges may use *; name the series"
            )
    return tuple(dict.fromkeys(map(str, entries)))


def _entries(where: str, values: Iterable[Any], what: str) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise SettingsError(f"{where} must be a list of {what}, not {_found(values)}")
    return list(values)


def _did_you_mean(word: object, known: Sequence[str]) -> str:
    close = get_close_matches(word[:_SHOWN], known) if isinstance(word, str) else ()
    return f" did you mean {' or '.join(map(repr, close))}?" if close else ""


def _shown(value: object) -> str:
    """Quote a text for a message: on one line, and not all of it if it is long."""
    text = str(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _one_line(problem: object) -> str:
    """Fit the message of another package into one of ours."""
    return " ".join(str(problem).split())[:200]


def _found(value: object) -> str:
    """Show what stands in a wrong place: the text itself, but only the type of anything else."""
    if value is None:
        return "None"
    return _shown(value) if isinstance(value, str) else type(value).__name__
