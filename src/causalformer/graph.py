"""The temporal causal graph: which series drives which, after how long, and how strongly.

An edge is ``(cause, effect, lag)``; arrays are ``[cause, effect]`` or ``[cause, effect, lag]``,
never the other way round. A graph is immutable, knows every series (also those without an edge)
and can be written as JSON, CSV, GraphML, DOT or a picture.
"""

import base64
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causalformer import formats
from causalformer.arrays import checked_array, is_whole
from causalformer.errors import DataError, FileFormatError, SettingsError
from causalformer.files import read_text, write_atomically, write_text
from causalformer.names import check_names, listed, printable_name

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes
    from rich.table import Table

    from causalformer.plot import Ground
    from causalformer.plot.kinds import GraphKind

PICTURES = (".png", ".svg", ".pdf")
_DRAWN = 50  # series up to which a notebook shows a drawing

Kind = Literal["self", "instantaneous", "lagged"]

_LARGEST = {"p_value": 1.0, "q_value": 1.0, "strength": sys.float_info.max, "frequency": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """One arrow: ``cause`` drives ``effect`` after ``lag`` time slots.

    Two edges are equal if all fields are; an unknown (NaN) number equals an unknown number.

    Parameters
    ----------
    cause, effect : str
        Names of the series.
    lag : int
        Delay in time slots, at least 0; at least 1 if cause and effect are the same series.
    score : float, optional
        What edges are ranked by, higher is stronger; NaN where a method has none.
    p_value, q_value : float, optional
        Of the test for this edge, by itself and corrected for all tests; NaN or in [0, 1].
    strength : float, optional
        How much the cause matters for the effect; NaN or at least 0.
    frequency : float, optional
        Share of repetitions that found the edge; NaN or in [0, 1].
    oriented : bool, default True
        False if the direction of a contemporaneous edge is only a guess: one link, no arrow.
    may_be_confounded : str, optional
        What speaks for a hidden common driver of cause and effect instead of this edge, as a short
        sentence; empty if nothing does. Control characters become visible escapes.

    Examples
    --------
    >>> Edge("rain", "river", 2, 0.9).kind
    'lagged'
    >>> print(Edge("rain", "river", 0, 0.9, q_value=0.003, oriented=False))
    rain — river (lag 0, score 0.9, q 0.003)
    >>> print(Edge("rain", "river", 2, may_be_confounded="Wind precedes both."))
    rain → river (lag 2, may be confounded)
    >>> Edge("rain", "rain", 0)
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: edge 'rain' -> 'rain': a self edge needs a lag of at least 1
    """

    cause: str
    effect: str
    lag: int
    score: float = math.nan
    _: KW_ONLY
    p_value: float = math.nan
    q_value: float = math.nan
    strength: float = math.nan
    frequency: float = math.nan
    oriented: bool = True
    may_be_confounded: str = ""

    def __post_init__(self) -> None:
        for end in ("cause", "effect"):
            name = getattr(self, end)
            if not isinstance(name, str):
                raise DataError(f"edge: {end} must be the name of a series, not {name!r}")
            object.__setattr__(self, end, str(name))
        where = f"edge {self.cause!r} -> {self.effect!r}"
        if not is_whole(self.lag):
            raise DataError(f"{where}: lag must be a whole number, not {self.lag!r}")
        if self.lag < 0:
            raise DataError(f"{where}: lag {self.lag} is negative; an effect follows its cause")
        if self.lag == 0 and self.cause == self.effect:
            raise DataError(f"{where}: a self edge needs a lag of at least 1")
        object.__setattr__(self, "lag", int(self.lag))
        for name in ("score", *_LARGEST):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, float(value))
            except (TypeError, ValueError, OverflowError):
                raise DataError(f"{where}: {name} must be a number, not {value!r}") from None
        self._check_evidence(where)

    def _check_evidence(self, where: str) -> None:
        for name, most in _LARGEST.items():
            value = getattr(self, name)
            if value < 0 or value > most:  # never true of NaN
                wanted = "between 0 and 1" if most == 1 else "finite and at least 0"
                raise DataError(f"{where}: {name} is {value:g}, but must be {wanted}")
        if not isinstance(self.oriented, bool | np.bool_):
            raise DataError(f"{where}: oriented must be True or False, not {self.oriented!r}")
        if not self.oriented and self.lag > 0:
            raise DataError(
                f"{where}: oriented is False at lag {self.lag}, but time gives the order"
            )
        object.__setattr__(self, "oriented", bool(self.oriented))
        if not isinstance(self.may_be_confounded, str):
            raise DataError(
                f"{where}: may_be_confounded must be text, not {self.may_be_confounded!r}"
            )
        sentence = printable_name(self.may_be_confounded).strip()
        object.__setattr__(self, "may_be_confounded", sentence)

    @property
    def kind(self) -> Kind:
        """``"self"``, ``"instantaneous"`` (contemporaneous: lag 0) or ``"lagged"``."""
        if self.cause == self.effect:
            return "self"
        return "instantaneous" if self.lag == 0 else "lagged"

    @property
    def arrow(self) -> str:
        """The two names, fit to be printed, with — for an edge that is not oriented."""
        link = "→" if self.oriented else "—"
        return f"{printable_name(self.cause)} {link} {printable_name(self.effect)}"

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Edge) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __str__(self) -> str:
        score = "" if math.isnan(self.score) else f", score {self.score:.4g}"
        q_value = "" if math.isnan(self.q_value) else f", q {self.q_value:.4g}"
        confounded = ", may be confounded" if self.may_be_confounded else ""
        return f"{self.arrow} (lag {self.lag}{score}{q_value}{confounded})"

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("cause", "effect", "lag", "score")}
        shown |= formats.evidence(self)
        return f"Edge({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _values(self) -> tuple[object, ...]:
        """All fields, with None for NaN: NaN would be unequal to itself."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(value if value == value else None for value in values)


@dataclass(frozen=True, repr=False)
class CausalGraph:
    """A temporal causal graph over named series.

    Edges are sorted at construction, highest score first (unknown scores last; then by the order
    of the series and by lag), so equal graphs are written as equal files. A pair of series may be
    linked at several lags. A contemporaneous link whose direction is unknown is one edge, in its
    likelier direction, never two.

    Parameters
    ----------
    names : tuple of str
        All series, also those without an edge.
    edges : tuple of Edge, optional
        The arrows.
    metadata : mapping, optional
        Anything that JSON can hold, such as the method and its settings; it is copied.

    Raises
    ------
    DataError
        If names or ``(cause, effect, lag)`` occur twice, a link without direction comes with its
        reverse, an edge uses an unknown name, a name cannot be written as UTF-8, or metadata does
        not fit into strict JSON.

    Examples
    --------
    >>> graph = CausalGraph(
    ...     ("rain", "river", "wind"),
    ...     (Edge("river", "river", 1, 0.4), Edge("rain", "river", 2, 0.9)),
    ... )
    >>> print(graph)
    CausalGraph(3 series, 2 edges)
      rain → river (lag 2, score 0.9)
      river → river (lag 1, score 0.4)
    """

    names: tuple[str, ...]
    edges: tuple[Edge, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_names(self.names, "graph")
        names = tuple(map(str, self.names))
        edges = tuple(self.edges)
        _check_edges(names, edges)
        if not isinstance(self.metadata, Mapping):
            raise DataError(f"metadata must be a mapping, not {type(self.metadata).__name__}")
        position = {name: i for i, name in enumerate(names)}

        def strongest_first(edge: Edge) -> tuple[bool, float, int, int, int]:
            unknown = math.isnan(edge.score)
            falling = 0.0 if unknown else -edge.score
            return unknown, falling, position[edge.cause], position[edge.effect], edge.lag

        object.__setattr__(self, "names", names)
        object.__setattr__(self, "edges", tuple(sorted(edges, key=strongest_first)))
        object.__setattr__(self, "metadata", formats.json_copy(self.metadata, "metadata"))

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.edges)

    def __len__(self) -> int:
        return len(self.edges)

    def __bool__(self) -> bool:
        """Return True: a graph without edges is still a result."""
        return True

    def __repr__(self) -> str:
        plural = "" if len(self) == 1 else "s"
        return f"CausalGraph({len(self.names)} series, {len(self)} edge{plural})"

    def __str__(self) -> str:
        shown = 20
        lines = [repr(self), *(f"  {edge}" for edge in self.edges[:shown])]
        if len(self) > shown:
            lines.append(f"  ... and {len(self) - shown} more")
        return "\n".join(lines)

    # --- Arrays -----------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        adjacency: ArrayLike,
        lag: ArrayLike,
        scores: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        evidence: Mapping[str, ArrayLike] | None = None,
    ) -> Self:
        """Build a graph with at most one lag per pair from matrices ``[cause, effect]``.

        Parameters
        ----------
        names : sequence of str
            The series, in the order of both axes.
        adjacency : array_like of bool, shape (N, N)
            Where there is an edge.
        lag, scores : array_like, shape (N, N)
            Its delay and score; read only where there is an edge.
        metadata : mapping, optional
            See the class.
        evidence : mapping of str to array_like, shape (N, N), optional
            Matrices for any of ``p_value``, ``q_value``, ``strength``, ``frequency``,
            ``oriented`` (bool) and ``may_be_confounded`` (text); see `Edge`. Numbers and text are
            read only where there is an edge.

        Examples
        --------
        >>> print(CausalGraph.from_arrays(["a", "b"], [[0, 1], [0, 0]], [[-1, 2], [-1, -1]]))
        CausalGraph(2 series, 1 edge)
          a → b (lag 2)
        """
        n = len(names)
        present = _flags("adjacency", adjacency, n)
        delays = checked_array("lag", lag, (n, n))
        ranks = (
            np.full((n, n), np.nan) if scores is None else checked_array("scores", scores, (n, n))
        )
        matrices = _evidence_matrices(evidence or {}, n)
        edges = []
        for i, j in np.argwhere(present):
            if not float(delays[i, j]).is_integer():
                raise DataError(f"lag of {names[i]!r} -> {names[j]!r} is no whole number")
            known = {name: matrix[i, j] for name, matrix in matrices.items()}
            edges.append(Edge(names[i], names[j], int(delays[i, j]), ranks[i, j], **known))
        return cls(tuple(names), tuple(edges), metadata or {})

    @classmethod
    def from_array(
        cls, names: Sequence[str], array: ArrayLike, metadata: Mapping[str, Any] | None = None
    ) -> Self:
        """Build a graph from ``array[cause, effect, lag]``, lag axis from 0 (as in tigramite).

        Parameters
        ----------
        names : sequence of str
            The series, in the order of the first two axes.
        array : array_like, shape (N, N, max_lag + 1)
            Every entry other than zero is an edge with that score.
        metadata : mapping, optional
            See the class.

        Examples
        --------
        >>> print(CausalGraph.from_array(["a", "b"], [[[0, 0], [0, 0.7]], [[0, 0], [0, 0]]]))
        CausalGraph(2 series, 1 edge)
          a → b (lag 1, score 0.7)
        """
        values = checked_array("array", array, (len(names), len(names), None))
        if np.isnan(values).any():
            raise DataError("array holds NaN; put 0 where there is no edge")
        edges = tuple(
            Edge(names[i], names[j], int(lag), values[i, j, lag])
            for i, j, lag in np.argwhere(values)
        )
        return cls(tuple(names), edges, metadata or {})

    def to_array(self, max_lag: int | None = None) -> NDArray[np.float64]:
        """Return scores as ``array[cause, effect, lag]``; zero means no edge.

        So that every edge shows, an unknown score counts as 1 and a score of exactly zero as the
        smallest positive float. A link without direction has one entry, in its likelier direction.

        Parameters
        ----------
        max_lag : int, optional
            Last lag of the last axis, not below the largest lag of any edge, its default.

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)).to_array()[0, 1]
        array([0. , 0. , 0.5])
        """
        array = np.zeros(self._shape(max_lag))
        for pair, edge in self._placed():
            score = 1.0 if math.isnan(edge.score) else edge.score
            array[*pair, edge.lag] = score or np.finfo(np.float64).tiny
        return array

    def to_tigramite(self, max_lag: int | None = None) -> NDArray[np.str_]:
        """Return the graph in tigramite's marks, ``array[cause, effect, lag]``.

        Empty text means no edge. ``-->`` is an edge, ``o->`` one that may be confounded, ``o-o`` a
        link without direction. Within a slot the entry ``[effect, cause, 0]`` says the same
        backwards, and both are ``x-x`` where edges lead both ways.

        Parameters
        ----------
        max_lag : int, optional
            See :meth:`to_array`.

        Examples
        --------
        >>> edges = (Edge("a", "b", 1), Edge("a", "b", 0, oriented=False))
        >>> CausalGraph(("a", "b"), edges).to_tigramite()
        array([[['', ''], ['o-o', '-->']], [['o-o', ''], ['', '']]], dtype='<U3')
        """
        marks = np.full(self._shape(max_lag), "", dtype="<U3")
        for (cause, effect), edge in self._placed():
            if not edge.oriented:
                forwards = backwards = "o-o"
            elif edge.lag == 0 and marks[cause, effect, 0]:
                forwards = backwards = "x-x"
            elif edge.may_be_confounded:
                forwards, backwards = "o->", "<-o"
            else:
                forwards, backwards = "-->", "<--"
            marks[cause, effect, edge.lag] = forwards
            if edge.lag == 0:
                marks[effect, cause, 0] = backwards
        return marks

    def _shape(self, max_lag: int | None) -> tuple[int, int, int]:
        """Shape of an array with the lags up to ``max_lag``, or up to the longest one."""
        longest = max((edge.lag for edge in self.edges), default=0)
        last = longest if max_lag is None else max_lag
        if last < longest:
            raise SettingsError(f"max_lag is {last}, but the graph has an edge of lag {longest}")
        return len(self.names), len(self.names), last + 1

    def summary(self) -> NDArray[np.bool_]:
        """Return the summary graph: ``matrix[cause, effect]`` is true if there is any lag.

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2),)).summary()
        array([[False,  True], [False, False]])
        """
        return self.lags() >= 0

    def lags(self) -> NDArray[np.int64]:
        """Return ``matrix[cause, effect]``: the lag of the strongest edge, -1 without an edge.

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5), Edge("a", "b", 3, 0.9))).lags()
        array([[-1,  3], [-1, -1]])
        """
        matrix = np.full((len(self.names), len(self.names)), -1, dtype=np.int64)
        for pair, edge in reversed(list(self._placed())):
            matrix[pair] = edge.lag
        return matrix

    def _placed(self) -> Iterator[tuple[tuple[int, int], Edge]]:
        """Every edge with its place in a matrix, strongest first."""
        position = {name: i for i, name in enumerate(self.names)}
        for edge in self.edges:
            yield (position[edge.cause], position[edge.effect]), edge

    # --- Other forms ------------------------------------------------------------------------------

    def to_frame(self) -> "pd.DataFrame":
        """Return the edges as a table: cause, effect, lag, kind, score; strongest first.

        Columns with evidence follow where there is any; see :func:`causalformer.formats.columns`.

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)).to_frame()
          cause effect  lag    kind  score
        0     a      b    2  lagged    0.5
        """
        import pandas as pd

        names = formats.columns(self)
        data = {name: [getattr(edge, name) for edge in self.edges] for name in names}
        return pd.DataFrame(data).astype({"lag": "int64", "score": "float64"})

    def to_networkx(self) -> "nx.MultiDiGraph":
        """Return a ``networkx.MultiDiGraph`` of all series; the key of an edge is its lag.

        Edges have the columns of :meth:`to_frame` as attributes.

        Examples
        --------
        >>> graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),))
        >>> graph.to_networkx().edges["a", "b", 2]
        {'lag': 2, 'kind': 'lagged', 'score': 0.5}
        """
        import networkx as nx

        result = nx.MultiDiGraph()
        result.add_nodes_from(self.names)
        for edge, attributes in formats.attributes(self):
            result.add_edge(edge.cause, edge.effect, key=edge.lag, **attributes)
        return result

    def to_json(self) -> str:
        """Return the graph as strict JSON; see :func:`causalformer.formats.to_json`."""
        return formats.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote; anything else raises `FileFormatError`.

        Fields that this version does not know are ignored: later releases may add optional ones.
        """
        names, edges, metadata = formats.parse_json(text)
        try:
            return cls(tuple(names), tuple(Edge(**known) for known in edges), metadata)
        except DataError as error:
            raise FileFormatError(f"damaged causal graph: {error}") from error

    def to_csv(self) -> str:
        """Return the edges as CSV; see :func:`causalformer.formats.to_csv`."""
        return formats.to_csv(self)

    def to_graphml(self) -> str:
        """Return the graph as GraphML; see :func:`causalformer.formats.to_graphml`."""
        return formats.to_graphml(self)

    def to_dot(self) -> str:
        """Return the graph for Graphviz; see :func:`causalformer.formats.to_dot`."""
        return formats.to_dot(self)

    def table(self, limit: int | None = None) -> "Table":
        """Return a table for the terminal; see :func:`causalformer.formats.to_table`."""
        return formats.to_table(self, limit)

    def _repr_html_(self) -> str:
        """Return a drawing and a table for notebooks; see :func:`causalformer.formats.to_html`."""
        if not self.edges or len(self.names) > _DRAWN:
            return formats.to_html(self)
        from causalformer.plot.network import picture

        content = base64.b64encode(picture(self, "svg")).decode()
        image = f'<img alt="" width="400" src="data:image/svg+xml;base64,{content}">'
        return f"{image}\n{formats.to_html(self)}"

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        kind: "GraphKind" = "summary",
        truth: "CausalGraph | None" = None,
        evidence: str = "score",
        places: Mapping[str, tuple[float, float]] | None = None,
        ground: "Ground | None" = None,
    ) -> "Axes":
        """Draw the graph with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure that pyplot does not know (``ax.figure``).
        kind : str
            ``"summary"``: an arrow per pair, labelled with its lags. ``"unrolled"``: an arrow per
            edge over time slots. ``"lags"``, ``"scores"``: matrices, cause × effect. ``"map"``:
            arrows between places.
        truth : CausalGraph, optional
            The true graph: tells true, false and missed edges apart.
        evidence : str
            For scores: ``"score"``, ``"p_value"``, ``"q_value"``, ``"strength"``, ``"frequency"``.
        places : mapping, optional
            For maps: latitude and longitude of every series; else read from names as ``44N 26W``.
        ground : causalformer.plot.Ground, optional
            For maps: sea and land.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)).plot(kind="lags").get_xlabel()
        'effect'
        """
        from causalformer.plot import draw_kind

        return draw_kind(
            self, kind, ax, truth=truth, evidence=evidence, places=places, ground=ground
        )

    def save(self, path: str | Path) -> Path:
        """Write the graph; the suffix chooses the format.

        Parameters
        ----------
        path : str or Path
            Ends with .json (everything, can be loaded again), .csv (edges), .graphml, .dot, or,
            for a picture, .png, .svg or .pdf.

        Returns
        -------
        Path
            The file, which is either whole or as it was before.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "graph.json"
        >>> graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),))
        >>> CausalGraph.load(graph.save(path)) == graph
        True
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix in formats.WRITERS:
            return write_text(path, formats.WRITERS[suffix](self))
        if suffix in PICTURES:
            from causalformer.plot import picture

            content = picture(self, suffix.removeprefix("."))
            return write_atomically(path, lambda temporary: temporary.write_bytes(content))
        choices = ", ".join((*formats.WRITERS, *PICTURES))
        raise SettingsError(f"cannot tell the format of {path}: end its name with one of {choices}")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a graph that :meth:`save` wrote as .json, or raise `FileFormatError`."""
        text = read_text(path)
        try:
            return cls.from_json(text)
        except FileFormatError as error:
            raise FileFormatError(f"{path}: {error}") from error


def _flags(what: str, values: ArrayLike, n: int) -> NDArray[np.bool_]:
    array = checked_array(what, values, (n, n))
    if not np.isin(array, (0.0, 1.0)).all():
        raise DataError(f"{what} must hold only 0 and 1 (or False and True)")
    return array.astype(np.bool_)


def _numbers(what: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    return checked_array(what, values, (n, n))


def _texts(what: str, values: ArrayLike, n: int) -> NDArray[np.object_]:
    array = np.asarray(values, dtype=object)
    if array.shape != (n, n):
        raise DataError(f"{what} has shape {array.shape}, not {(n, n)}")
    return array


def _evidence_matrices(evidence: Mapping[str, ArrayLike], n: int) -> dict[str, NDArray[Any]]:
    unknown = [repr(name) for name in evidence if name not in formats.EVIDENCE]
    if unknown:
        choices = ", ".join(formats.EVIDENCE)
        raise DataError(f"edges have no evidence called {listed(unknown)}; choose from {choices}")
    readers = {"oriented": _flags, "may_be_confounded": _texts}
    return {name: readers.get(name, _numbers)(name, values, n) for name, values in evidence.items()}


def _check_edges(names: tuple[str, ...], edges: tuple[Edge, ...]) -> None:
    known = set(names)
    seen: dict[tuple[str, str, int], Edge] = {}
    for edge in edges:
        if not isinstance(edge, Edge):
            raise DataError(f"edges must be Edge objects, not {edge!r}")
        unknown = [repr(name) for name in (edge.cause, edge.effect) if name not in known]
        if unknown:
            series = listed(map(repr, names), most=10)
            raise DataError(f"no series is called {listed(unknown)}; series: {series}")
        key = edge.cause, edge.effect, edge.lag
        if key in seen:
            raise DataError(
                f"edge given twice: {edge.cause!r} -> {edge.effect!r} at lag {edge.lag}"
            )
        reverse = seen.get((edge.effect, edge.cause, edge.lag))
        if reverse is not None and not (edge.oriented and reverse.oriented):
            raise DataError(
                f"link given twice: {edge.cause!r} -> {edge.effect!r} within the slot, and back, "
                "but a link without direction is one edge"
            )
        seen[key] = edge
