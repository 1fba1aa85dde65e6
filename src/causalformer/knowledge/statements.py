"""What a user knows beforehand about the graph: edges that must or must not be in it.

`PriorKnowledge` holds statements about series by name, as the user made them, in Python or in a
file. Once the series are known, `PriorKnowledge.resolve` turns them into the arrays of a
`KnownGraph`, ``[cause, effect, lag]``, or says which two statements contradict each other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from causalformer.arrays import is_whole
from causalformer.errors import DataError, SettingsError
from causalformer.graph import CausalGraph
from causalformer.knowledge.entries import (
    WILDCARD,
    EdgeLike,
    KnownEdge,
    describe,
    entries_of,
    read_edges,
    read_names,
    shown,
)
from causalformer.names import check_names, did_you_mean, listed, printable_name

BoolArray = NDArray[np.bool_]


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
            read_names(f"tiers, entry {i}", tier)
            for i, tier in enumerate(entries_of("tiers", tiers, "lists of names"), start=1)
        )
        object.__setattr__(self, "required", read_edges("required", required, wildcard=False))
        object.__setattr__(self, "forbidden", read_edges("forbidden", forbidden, wildcard=True))
        object.__setattr__(self, "tiers", ordered)
        object.__setattr__(self, "exogenous", read_names("exogenous", exogenous))
        object.__setattr__(self, "effects_only", read_names("effects_only", effects_only))

    @property
    def most_required(self) -> int:
        """How many other series an effect must hang on, at most.

        Examples
        --------
        >>> PriorKnowledge(["a -> b", "a -> b @ 2", "b -> b", "b -> c"]).most_required
        1
        """
        pairs = {(edge.cause, edge.effect) for edge in self.required}
        counts = Counter(effect for cause, effect in pairs if cause != effect)
        return max(counts.values(), default=0)

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
            raise SettingsError(f"knowledge must be a mapping, not {describe(mapping)}; {keys}")
        for key in mapping:
            if key not in known:
                raise SettingsError(
                    f"unknown key {describe(key)};{did_you_mean(key, known)} {keys}"
                )
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
            contradict each other, or required edges form a cycle of contemporaneous edges.

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
                    f"{statement}: no series is called {shown(name)};"
                    f"{did_you_mean(name, names)} the series are {listed(map(shown, names), 10)}"
                )
        tier_of: dict[str, int] = {}
        for number, tier in enumerate(self.tiers, start=1):
            for name in tier:
                first = tier_of.setdefault(name, number)
                if first != number:
                    raise SettingsError(
                        f"tiers: {shown(name)} is in tier {first} and in tier {number}; "
                        "keep it in one of them"
                    )

    def _mentions(self) -> Iterator[tuple[str, str]]:
        """Every name of a series with the statement that it is part of."""
        for kind, edges in (("required", self.required), ("forbidden", self.forbidden)):
            for edge in edges:
                for name in (edge.cause, edge.effect):
                    if name != WILDCARD:
                        yield f"{kind} {shown(edge)}", name
        for number, tier in enumerate(self.tiers, start=1):
            yield from ((f"tiers, entry {number}", name) for name in tier)
        yield from (("exogenous", name) for name in self.exogenous)
        yield from (("effects_only", name) for name in self.effects_only)

    def _bans(self, place: Mapping[str, int], max_lag: int) -> Iterator["_Ban"]:
        """Say for every statement which pairs of series it rules out."""
        banned = [(f"forbidden {shown(edge)}", edge) for edge in self.forbidden]
        banned += [(f"exogenous {shown(x)}", KnownEdge(WILDCARD, x)) for x in self.exogenous]
        banned += [(f"effects_only {shown(x)}", KnownEdge(x, WILDCARD)) for x in self.effects_only]
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
            members = listed(map(shown, tier))
            yield _Ban(f"tiers (nothing in a later tier causes {members})", pairs, None)


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

    @property
    def n_required(self) -> NDArray[np.int64]:
        """How many other series every effect must hang on.

        Examples
        --------
        >>> PriorKnowledge(["a -> b", "b -> b"]).resolve(["a", "b"], max_lag=1).n_required
        array([0, 1])
        """
        return np.asarray((self.required & ~np.eye(len(self.required), dtype=bool)).sum(axis=0))

    def violations(self, graph: CausalGraph) -> list[str]:
        """List in words what is in the graph but not allowed, and what is required but missing.

        A contemporaneous edge that is not oriented is allowed if either direction is; it is not
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
        names = [printable_name(name) for name in graph.names]
        at_any_lag = self.required & ~self.required_lags.any(axis=-1)
        for cause, effect in np.argwhere(at_any_lag & ~present.any(axis=-1)):
            found.append(f"{names[cause]} → {names[effect]} is required")
        for cause, effect, lag in np.argwhere(self.required_lags & ~present):
            found.append(f"{names[cause]} → {names[effect]} at lag {lag} is required")
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
            f"required {shown(edge)} needs a lag of {shortest}, but max_lag is {max_lag}; "
            f"raise max_lag to {shortest} (with a preset of the paper: window to {shortest + 1})"
        )


def _refuse_contradiction(edge: KnownEdge, pair: tuple[int, int], bans: list[_Ban]) -> NoReturn:
    against = [
        ban.statement
        for ban in bans
        if pair in ban.pairs and (edge.lag is None or ban.lag in (None, edge.lag))
    ]
    raise SettingsError(f"required {shown(edge)} contradicts {listed(against)}; drop one of them")


def _check_no_cycle(known: KnownGraph, names: Sequence[str]) -> None:
    """Raise if edges that can only be contemporaneous form a cycle."""
    only_now = known.required & ~known.allowed[..., 1:].any(axis=-1)
    causes_of: dict[str, list[str]] = {}
    for cause, effect in np.argwhere(known.required_lags[..., 0] | only_now):
        causes_of.setdefault(names[effect], []).append(names[cause])
    try:
        TopologicalSorter(causes_of).prepare()
    except CycleError as error:
        cycle = " -> ".join(map(shown, error.args[1]))
        raise SettingsError(
            f"required edges form a cycle within a time slot: {cycle}; "
            "drop one of them or give it a lag of at least 1"
        ) from None
