"""The temporal causal graph: which series drives which, after how long, and how strongly.

An edge is ``(cause, effect, lag)``; arrays are ``[cause, effect]`` or ``[cause, effect, lag]``,
never the other way round. A graph is immutable, knows every series (also those without an edge)
and can be written as JSON, CSV, GraphML, DOT or a picture.
"""

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causalformer.errors import DataError, FileFormatError, SettingsError
from causalformer.files import write_atomically, write_text

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes
    from rich.table import Table

FORMAT = "causalformer-graph"
VERSION = 1
COLUMNS = ("cause", "effect", "lag", "kind", "score")
PICTURES = (".png", ".svg", ".pdf")

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_NOT_XML = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]" + r"|\\(?=x[0-9a-f]{2}|u[0-9a-f]{4})"
)
_INTEGER = re.compile(r"\s*-?[0-9]{1,9}\s*")
_MOST_INFERRED_SERIES = 100_000

Kind = Literal["self", "instantaneous", "lagged"]


def printable_name(name: str) -> str:
    r"""Return ``name`` on one line, control characters as visible escapes such as ``\x1b``.

    For terminals and pictures; files keep the names as they are.

    Examples
    --------
    >>> print(printable_name("flow\nnorth"))
    flow\x0anorth
    """
    return _CONTROL.sub(_visible, name)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """One arrow: ``cause`` drives ``effect`` after ``lag`` time slots.

    Two edges are equal if all fields are; an unknown (NaN) score equals an unknown score.

    Parameters
    ----------
    cause, effect : str
        Names of the series.
    lag : int
        Delay in time slots, at least 0; at least 1 if cause and effect are the same series.
    score : float, optional
        Strength of the evidence, higher is stronger; NaN where a method has none.

    Raises
    ------
    DataError
        If a field is not valid.

    Examples
    --------
    >>> Edge("rain", "river", 2, 0.9).kind
    'lagged'
    >>> Edge("rain", "rain", 0)
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: edge 'rain' -> 'rain': a self edge needs a lag of at least 1
    """

    cause: str
    effect: str
    lag: int
    score: float = math.nan

    def __post_init__(self) -> None:
        for end in ("cause", "effect"):
            name = getattr(self, end)
            if not isinstance(name, str):
                raise DataError(f"edge: {end} must be the name of a series, not {name!r}")
            object.__setattr__(self, end, str(name))
        where = f"edge {self.cause!r} -> {self.effect!r}"
        if isinstance(self.lag, bool | np.bool_) or not isinstance(self.lag, int | np.integer):
            raise DataError(f"{where}: lag must be a whole number, not {self.lag!r}")
        if self.lag < 0:
            raise DataError(f"{where}: lag {self.lag} is negative; an effect follows its cause")
        if self.lag == 0 and self.cause == self.effect:
            raise DataError(f"{where}: a self edge needs a lag of at least 1")
        object.__setattr__(self, "lag", int(self.lag))
        try:
            object.__setattr__(self, "score", float(self.score))
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"{where}: score must be a number, not {self.score!r}") from None

    @property
    def kind(self) -> Kind:
        """``"self"``, ``"instantaneous"`` (lag 0) or ``"lagged"``."""
        if self.cause == self.effect:
            return "self"
        return "instantaneous" if self.lag == 0 else "lagged"

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Edge) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __str__(self) -> str:
        score = "" if math.isnan(self.score) else f", score {self.score:.4g}"
        return (
            f"{printable_name(self.cause)} → {printable_name(self.effect)} (lag {self.lag}{score})"
        )

    def _values(self) -> tuple[object, ...]:
        """All fields, with None for NaN: NaN would be unequal to itself."""
        values = (getattr(self, item.name) for item in dataclasses.fields(self))
        return tuple(None if value != value else value for value in values)


@dataclass(frozen=True, repr=False)
class CausalGraph:
    """A temporal causal graph over named series.

    Edges are sorted at construction, highest score first (unknown scores last; then by the order
    of the series and by lag), so equal graphs are written as equal files. A pair of series may be
    linked at several lags.

    Parameters
    ----------
    names : tuple of str
        All series, also those without an edge.
    edges : tuple of Edge, optional
        The arrows.
    metadata : mapping, optional
        Anything that JSON can hold, such as the method and its settings. It is copied and
        read-only all the way down: lists become tuples, mappings become mapping proxies.

    Raises
    ------
    DataError
        If names or ``(cause, effect, lag)`` occur twice, an edge uses an unknown name, a name
        cannot be written as UTF-8, or metadata does not fit into strict JSON.

    Examples
    --------
    >>> graph = CausalGraph(
    ...     ("rain", "river", "wind"),
    ...     (Edge("river", "river", 1, 0.4), Edge("rain", "river", 2, 0.9)),
    ... )
    >>> graph
    CausalGraph(3 series, 2 edges)
    >>> print(graph)
    CausalGraph(3 series, 2 edges)
      rain → river (lag 2, score 0.9)
      river → river (lag 1, score 0.4)
    """

    names: tuple[str, ...]
    edges: tuple[Edge, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        names = _checked_names(self.names)
        edges = tuple(self.edges)
        _check_edges(names, edges)
        position = {name: i for i, name in enumerate(names)}

        def strongest_first(edge: Edge) -> tuple[bool, float, int, int, int]:
            unknown = math.isnan(edge.score)
            strength = 0.0 if unknown else -edge.score
            return unknown, strength, position[edge.cause], position[edge.effect], edge.lag

        if not isinstance(self.metadata, Mapping):
            raise DataError(f"metadata must be a mapping, not {type(self.metadata).__name__}")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "edges", tuple(sorted(edges, key=strongest_first)))
        object.__setattr__(self, "metadata", _frozen_json(self.metadata, "metadata"))

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

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle plain containers, as mapping proxies cannot be pickled."""
        return type(self), (self.names, self.edges, _plain_json(self.metadata))

    # ---------------------------------------------------------------- arrays

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        adjacency: ArrayLike,
        lag: ArrayLike,
        scores: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """Build a graph with at most one lag per pair from matrices ``[cause, effect]``.

        Parameters
        ----------
        names : sequence of str
            The series, in the order of both axes.
        adjacency : array_like of bool, shape (N, N)
            Where there is an edge.
        lag : array_like of int, shape (N, N)
            Its delay; read only where there is an edge.
        scores : array_like of float, shape (N, N), optional
            Its score; read only where there is an edge.
        metadata : mapping, optional
            See the class.

        Raises
        ------
        DataError
            If a shape or a value does not fit; in particular for a negative lag of an edge.

        Examples
        --------
        >>> print(CausalGraph.from_arrays(["a", "b"], [[0, 1], [0, 0]], [[-1, 2], [-1, -1]]))
        CausalGraph(2 series, 1 edge)
          a → b (lag 2)
        """
        n = len(names)
        present = _array("adjacency", adjacency, (n, n))
        if not np.isin(present, (0.0, 1.0)).all():
            raise DataError("adjacency must hold only 0 and 1 (or False and True)")
        delays = _array("lag", lag, (n, n))
        strengths = None if scores is None else _array("scores", scores, (n, n))
        edges = []
        for i, j in np.argwhere(present):
            if not float(delays[i, j]).is_integer():
                raise DataError(f"lag of {names[i]!r} -> {names[j]!r} is no whole number")
            score = math.nan if strengths is None else float(strengths[i, j])
            edges.append(Edge(names[i], names[j], int(delays[i, j]), score))
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

        Raises
        ------
        DataError
            If the shape does not fit, an entry is NaN, or a series acts on itself at lag 0.

        Examples
        --------
        >>> print(CausalGraph.from_array(["a", "b"], [[[0, 0], [0, 0.7]], [[0, 0], [0, 0]]]))
        CausalGraph(2 series, 1 edge)
          a → b (lag 1, score 0.7)
        """
        values = _array("array", array, (len(names), len(names), None))
        if np.isnan(values).any():
            raise DataError("array holds NaN; put 0 where there is no edge")
        edges = tuple(
            Edge(names[i], names[j], int(lag), float(values[i, j, lag]))
            for i, j, lag in np.argwhere(values)
        )
        return cls(tuple(names), edges, metadata or {})

    def to_array(self, max_lag: int | None = None) -> NDArray[np.float64]:
        """Return scores as ``array[cause, effect, lag]``; zero means no edge.

        So that every edge shows, an unknown score counts as 1 and a score of exactly zero as the
        smallest positive float.

        Parameters
        ----------
        max_lag : int, optional
            Last lag of the last axis; by default the largest lag of any edge.

        Raises
        ------
        SettingsError
            If an edge has a longer lag than ``max_lag``.

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)).to_array()[0, 1]
        array([0. , 0. , 0.5])
        """
        longest = max((edge.lag for edge in self.edges), default=0)
        last = longest if max_lag is None else max_lag
        if last < longest:
            raise SettingsError(f"max_lag is {last}, but the graph has an edge of lag {longest}")
        array = np.zeros((len(self.names), len(self.names), last + 1))
        for (cause, effect), edge in self._placed():
            score = 1.0 if math.isnan(edge.score) else edge.score
            array[cause, effect, edge.lag] = score or np.finfo(np.float64).tiny
        return array

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

    # ---------------------------------------------------------------- exports

    def to_frame(self) -> "pd.DataFrame":
        """Return the edges as a table: cause, effect, lag, kind, score; strongest first.

        Examples
        --------
        >>> CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)).to_frame()
          cause effect  lag    kind  score
        0     a      b    2  lagged    0.5
        """
        import pandas as pd

        data = {name: [getattr(edge, name) for edge in self.edges] for name in COLUMNS}
        return pd.DataFrame(data).astype({"lag": "int64", "score": "float64"})

    def to_networkx(self) -> "nx.MultiDiGraph":
        """Return a ``networkx.MultiDiGraph``.

        Its nodes are the names of all series, the key of an edge is its lag, the attributes of an
        edge are ``lag``, ``kind`` and ``score``.

        Examples
        --------
        >>> graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),))
        >>> graph.to_networkx().edges["a", "b", 2]
        {'lag': 2, 'kind': 'lagged', 'score': 0.5}
        """
        import networkx as nx

        result = nx.MultiDiGraph()
        result.add_nodes_from(self.names)
        for edge in self.edges:
            attributes = {name: getattr(edge, name) for name in COLUMNS[2:]}
            result.add_edge(edge.cause, edge.effect, key=edge.lag, **attributes)
        return result

    def to_json(self) -> str:
        """Return the graph as strict JSON, the one format that :meth:`load` reads back.

        An unknown score is ``null``; infinite ones are the texts ``"inf"`` and ``"-inf"``.

        Examples
        --------
        >>> graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),), {"method": "var"})
        >>> CausalGraph.from_json(graph.to_json()) == graph
        True
        """
        items = [item.name for item in dataclasses.fields(Edge)]
        content = {
            "format": FORMAT,
            "version": VERSION,
            "names": list(self.names),
            "edges": [{name: _json_value(getattr(e, name)) for name in items} for e in self.edges],
            "metadata": _plain_json(self.metadata),
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote.

        Fields that this version does not know are ignored, because later releases may add
        optional ones without raising the version. A missing or unusable field is an error.

        Raises
        ------
        FileFormatError
            If the text is damaged, no causal graph, or of a newer version.

        Examples
        --------
        >>> CausalGraph.from_json('{"nodes": []}')
        Traceback (most recent call last):
        ...
        causalformer.errors.FileFormatError: not a causal graph: ...
        """
        content = _json_content(text)
        names, edges = content.get("names"), content.get("edges")
        if not isinstance(names, list) or not isinstance(edges, list):
            raise FileFormatError('damaged causal graph: "names" and "edges" must be lists')
        try:
            arrows = tuple(_json_edge(raw) for raw in edges)
            return cls(tuple(names), arrows, content.get("metadata", {}))
        except DataError as error:
            raise FileFormatError(f"damaged causal graph: {error}") from error

    def to_csv(self) -> str:
        """Return the edges as CSV with a header line, strongest first; unknown scores are empty.

        Names are quoted where CSV needs it and otherwise left as they are: a name that starts
        with ``=`` would be taken for a formula by a spreadsheet.

        Examples
        --------
        >>> print(CausalGraph(("a", "b, c"), (Edge("a", "b, c", 2, 0.5),)).to_csv(), end="")
        cause,effect,lag,kind,score
        a,"b, c",2,lagged,0.5
        """
        rows = ([_csv_value(getattr(e, name)) for name in COLUMNS] for e in self.edges)
        return "".join(_csv_line(row) for row in (COLUMNS, *rows))

    def to_graphml(self) -> str:
        r"""Return the graph as GraphML, the names of the series as node ids.

        Edges have the attributes ``lag``, ``kind`` and, where known, ``score``; metadata is left
        out. Characters that XML cannot hold are written as ``\xNN`` or ``\uNNNN`` (lower-case
        hexadecimal); to keep that reversible, a backslash that would begin such a sequence is
        written as ``\x5c``. All other names come back from a reader unchanged.

        Examples
        --------
        >>> import io, networkx
        >>> text = CausalGraph(("a", "<b>"), (Edge("a", "<b>", 2),)).to_graphml()
        >>> networkx.read_graphml(io.BytesIO(text.encode())).edges(data=True)
        OutEdgeDataView([('a', '<b>', {'lag': 2, 'kind': 'lagged', 'id': 'e0'})])
        """
        import networkx as nx

        ids = {name: _NOT_XML.sub(_visible, name) for name in self.names}
        drawn = nx.MultiDiGraph()
        drawn.add_nodes_from(ids.values())
        for number, edge in enumerate(self.edges):
            attributes = {name: getattr(edge, name) for name in COLUMNS[2:]}
            known = {key: value for key, value in attributes.items() if value == value}
            # Gephi drops edges whose id it has met before, so a lag alone will not do as key.
            drawn.add_edge(ids[edge.cause], ids[edge.effect], key=f"e{number}", **known)
        stream = io.BytesIO()
        nx.write_graphml_xml(drawn, stream, named_key_ids=True)
        return stream.getvalue().decode("utf-8") + "\n"

    def to_dot(self) -> str:
        r"""Return the graph in the DOT language of Graphviz, without needing Graphviz.

        The lag is the label of an edge; instantaneous edges are dashed. Control characters in
        names, other than the newline, are shown as ``\xNN``.

        Examples
        --------
        >>> print(CausalGraph(("a", 'say "b"'), (Edge("a", 'say "b"', 2),)).to_dot(), end="")
        digraph {
          n0 [label="a"];
          n1 [label="say \"b\""];
          n0 -> n1 [label="2"];
        }
        """
        nodes = [f'  n{i} [label="{_dot_text(name)}"];' for i, name in enumerate(self.names)]
        arrows = [
            f'  n{cause} -> n{effect} [label="{edge.lag}"'
            + (", style=dashed];" if edge.kind == "instantaneous" else "];")
            for (cause, effect), edge in self._placed()
        ]
        return "\n".join(["digraph {", *nodes, *arrows, "}"]) + "\n"

    # ---------------------------------------------------------------- files, terminal, pictures

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

        Raises
        ------
        SettingsError
            If the suffix is none of these.
        OutputError
            If the file cannot be written.

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
        texts: dict[str, Callable[[], str]] = {
            ".json": self.to_json,
            ".csv": self.to_csv,
            ".graphml": self.to_graphml,
            ".dot": self.to_dot,
        }
        if suffix in texts:
            return write_text(path, texts[suffix]())
        if suffix in PICTURES:
            from causalformer.plot import picture

            content = picture(self, suffix.removeprefix("."))
            return write_atomically(path, lambda temporary: temporary.write_bytes(content))
        choices = ", ".join((*texts, *PICTURES))
        raise SettingsError(f"cannot tell the format of {path}: end its name with one of {choices}")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a graph that :meth:`save` wrote as .json.

        Raises
        ------
        FileFormatError
            If the file cannot be read, is damaged, foreign, or of a newer version.
        """
        try:
            return cls.from_json(_file_text(Path(path)))
        except FileFormatError as error:
            raise FileFormatError(f"{path}: {error}") from error

    def table(self, limit: int | None = None) -> "Table":
        """Return a table for the terminal, strongest edge first.

        Parameters
        ----------
        limit : int, optional
            Most edges to show; a caption says how many there are.

        Examples
        --------
        >>> import rich
        >>> rich.print(CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),)).table())
        ┏━━━━━━━┳━━━━━┳━━━━━━━━┳━━━━━━━┓
        ┃ edge  ┃ lag ┃ kind   ┃ score ┃
        ┡━━━━━━━╇━━━━━╇━━━━━━━━╇━━━━━━━┩
        │ a → b │   2 │ lagged │   0.5 │
        └───────┴─────┴────────┴───────┘
        """
        from rich.table import Table
        from rich.text import Text

        shown = self.edges[:limit]
        table = Table(
            caption=f"{len(shown)} of {len(self)} edges" if len(shown) < len(self) else None
        )
        table.add_column("edge", overflow="fold")
        table.add_column("lag", justify="right")
        table.add_column("kind")
        table.add_column("score", justify="right")
        for edge in shown:
            # Text, not str: names may look like rich's own markup.
            arrow = Text(f"{printable_name(edge.cause)} → {printable_name(edge.effect)}")
            score = "–" if math.isnan(edge.score) else f"{edge.score:.4g}"
            table.add_row(arrow, str(edge.lag), edge.kind, score)
        return table

    def plot(self, ax: "Axes | None" = None, *, truth: "CausalGraph | None" = None) -> "Axes":
        """Draw the graph with matplotlib; see :func:`causalformer.plot.draw_graph`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure.
        truth : CausalGraph, optional
            If given, edges are coloured as true, false and missed.
        """
        from causalformer.plot import draw_graph

        return draw_graph(self, ax, truth=truth)


def read_truth(
    path: str | Path, names: Sequence[str] | None = None, *, reverse: bool = False
) -> CausalGraph:
    r"""Read a true graph from CSV lines ``cause,effect,lag``.

    Two forms are read. Without a header line, every line holds two column numbers (from 0) and
    the lag; series names do as well, but where both readings are possible the fields are numbers.
    With a header line that names at least ``cause`` and ``effect``, such as the CSV that
    :meth:`CausalGraph.save` writes, columns may be in any order, others are ignored, a missing
    ``lag`` column means lag 1, and names take precedence over numbers. Empty lines are skipped.

    Parameters
    ----------
    path : str or Path
        The file.
    names : sequence of str, optional
        The series. By default column numbers up to the largest one in the file, or with a header
        line the names in the order in which they occur.
    reverse : bool, default False
        Swap cause and effect, for files that list them the other way round.

    Returns
    -------
    CausalGraph
        Its scores are unknown (NaN).

    Raises
    ------
    FileFormatError
        Naming the file, the line, the problem and what is expected.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> _ = path.write_text("0,0,1\n0,1,2\n")
    >>> print(read_truth(path, ["rain", "river"]))
    CausalGraph(2 series, 2 edges)
      rain → rain (lag 1)
      rain → river (lag 2)
    """
    path = Path(path)
    rows, has_header = _truth_rows(path)
    series, name_of = _truth_series(path, rows, None if names is None else tuple(names), has_header)
    edges: dict[Edge, int] = {}
    for row in rows:
        cause, effect = name_of[row.cause], name_of[row.effect]
        try:
            edge = Edge(effect, cause, row.lag) if reverse else Edge(cause, effect, row.lag)
        except DataError as error:
            _refuse(path, row.line, str(error))
        if edge in edges:
            _refuse(path, row.line, f"the edge was given before, on line {edges[edge]}")
        edges[edge] = row.line
    return CausalGraph(series, tuple(edges))


# -------------------------------------------------------------------- checks


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise DataError(f"names must be a sequence of names, not the single text {names!r}")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"series names must be text, not {name!r}")
        if not _is_utf8(name):
            raise DataError(f"series name {name!a} cannot be written as UTF-8")
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise DataError(f"series names must differ; given more than once: {_listing(twice)}")
    return tuple(str(name) for name in names)


def _is_utf8(text: str) -> bool:
    """Half a surrogate pair, left over from broken decoding, is the one thing that is not."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _check_edges(names: tuple[str, ...], edges: tuple[Edge, ...]) -> None:
    known = set(names)
    seen = set()
    for edge in edges:
        if not isinstance(edge, Edge):
            raise DataError(f"edges must be Edge objects, not {edge!r}")
        unknown = [name for name in (edge.cause, edge.effect) if name not in known]
        if unknown:
            raise DataError(f"no series is called {_listing(unknown)}; series: {_listing(names)}")
        key = edge.cause, edge.effect, edge.lag
        if key in seen:
            raise DataError(
                f"edge given twice: {edge.cause!r} -> {edge.effect!r} at lag {edge.lag}"
            )
        seen.add(key)


def _listing(names: Sequence[str], most: int = 10) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def _array(what: str, values: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must hold numbers only: {error}") from error
    fits = array.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        axes = ("cause", "effect", "lag")[: len(shape)]
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise DataError(f"{what} has shape {array.shape}, not ({wanted}) = ({', '.join(axes)})")
    return array


# -------------------------------------------------------------------- text formats


def _frozen_json(value: Any, where: str) -> Any:
    """Copy ``value``, which must fit into strict JSON, into read-only containers."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not _is_utf8(key):
                raise DataError(f"{where}: key {key!a} must be text that UTF-8 can hold")
        return MappingProxyType({k: _frozen_json(v, f"{where}[{k!r}]") for k, v in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen_json(item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where} is {value}, which JSON cannot hold; use None or text")
    if isinstance(value, str) and not _is_utf8(value):
        raise DataError(f"{where} is {value!a}, which cannot be written as UTF-8")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise DataError(f"{where} is of type {type(value).__name__}, which JSON cannot hold")


def _plain_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain_json(item) for key, item in value.items()}
    return [_plain_json(item) for item in value] if isinstance(value, tuple) else value


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _json_content(text: str) -> dict[str, Any]:
    """Parse strict JSON and check that it announces a graph of a known version."""

    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    try:
        content = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not a causal graph: the text is no valid JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileFormatError(f'not a causal graph: "format" is not "{FORMAT}"')
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise FileFormatError(f"damaged causal graph: version is {version!r}")
    if version > VERSION:
        raise FileFormatError(
            f"causal graph of version {version}, but this release reads versions up to {VERSION}; "
            "update causalformer"
        )
    return content


def _json_edge(raw: Any) -> Edge:
    if not isinstance(raw, dict):
        raise DataError(f"an edge must be an object, not {raw!r}")
    missing = [key for key in ("cause", "effect", "lag") if key not in raw]
    if missing:
        raise DataError(f"an edge lacks {', '.join(missing)}: {raw!r}")
    score = raw.get("score")
    if isinstance(score, str) and score not in ("inf", "-inf"):
        raise DataError(f"score {score!r} is no number")
    return Edge(raw["cause"], raw["effect"], raw["lag"], math.nan if score is None else score)


def _csv_value(value: Any) -> Any:
    return "" if value != value else value


def _csv_line(values: Sequence[object]) -> str:
    """One CSV line that ends with a newline; a lone carriage return is quoted, too."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerow(values)
    return stream.getvalue().removesuffix("\r\n") + "\n"


def _dot_text(name: str) -> str:
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    lines = (_CONTROL.sub(lambda m: "\\" + _visible(m), line) for line in text.split("\n"))
    return "\\n".join(lines)


def _file_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"cannot read the file: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError("not a text file in UTF-8") from error


# -------------------------------------------------------------------- truth files

_EXPECTED = "expected cause,effect,lag, for example 0,1,2"


@dataclass(frozen=True, slots=True)
class _TruthRow:
    line: int
    cause: str
    effect: str
    lag: int


def _refuse(path: Path, line: int | None, problem: str) -> NoReturn:
    where = str(path) if line is None else f"{path}, line {line}"
    raise FileFormatError(f"{where}: {problem}; {_EXPECTED}")


def _truth_rows(path: Path) -> tuple[list[_TruthRow], bool]:
    """Split the file into rows, and tell whether it began with a header line."""
    lines = _csv_rows(path)
    if not lines:
        _refuse(path, None, "the file is empty")
    header = [cell.strip().lower() for cell in lines[0][1]]
    has_header = {"cause", "effect"} <= set(header)
    if has_header:
        lines = lines[1:]
        repeated = [name for name in COLUMNS if header.count(name) > 1]
        if repeated:
            _refuse(path, 1, f"two columns are called {repeated[0]}")
    else:
        header = ["cause", "effect", "lag"]
    rows = []
    for line, cells in lines:
        if len(cells) != len(header):
            _refuse(path, line, f"{len(cells)} columns instead of {len(header)}")
        entry = dict(zip(header, cells, strict=True))
        lag = entry.get("lag", "1")
        if not _INTEGER.fullmatch(lag):
            _refuse(path, line, f"lag {lag!r} is no whole number")
        rows.append(_TruthRow(line, entry["cause"], entry["effect"], int(lag)))
    return rows, has_header


def _csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """All lines that are not blank, each with its number."""
    try:
        text = _file_text(path)
    except FileFormatError as error:
        _refuse(path, None, str(error))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        _refuse(path, reader.line_num, f"broken CSV ({error})")


def _truth_series(
    path: Path, rows: list[_TruthRow], names: tuple[str, ...] | None, has_header: bool
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return all series, and the name that each field of the file stands for."""
    fields = [(row.line, cell) for row in rows for cell in (row.cause, row.effect)]
    all_numbers = all(_INTEGER.fullmatch(cell) for _, cell in fields)
    if names is None:
        names = _inferred_names(path, fields, all_numbers, has_header)
    known = {**{name.strip(): name for name in names}, **{name: name for name in names}}

    def by_name(cell: str) -> str | None:
        return known.get(cell, known.get(cell.strip()))

    def by_number(cell: str) -> str | None:
        number = int(cell) if _INTEGER.fullmatch(cell) else -1
        return names[number] if 0 <= number < len(names) else None

    for reading in (by_name, by_number) if has_header else (by_number, by_name):
        meant = {cell: reading(cell) for _, cell in fields}
        if None not in meant.values():
            return names, {cell: str(name) for cell, name in meant.items()}
    unknown = [item for item in fields if by_name(item[1]) is None]
    line, cell = next((item for item in unknown if by_number(item[1]) is None), unknown[0])
    if all_numbers:
        _refuse(path, line, f"column number {cell} is not between 0 and {len(names) - 1}")
    _refuse(path, line, f"no series is called {cell!r} (series: {_listing(names)})")


def _inferred_names(
    path: Path, fields: list[tuple[int, str]], all_numbers: bool, has_header: bool
) -> tuple[str, ...]:
    if not fields:
        _refuse(path, None, "the file holds no edge and no names of series are given")
    if all_numbers:
        line, largest = max(fields, key=lambda item: int(item[1]))
        if int(largest) >= _MOST_INFERRED_SERIES:
            _refuse(path, line, f"column number {largest} is too large")
        return tuple(str(number) for number in range(int(largest) + 1))
    if has_header:
        return tuple(dict.fromkeys(cell for _, cell in fields))
    line, cell = next(item for item in fields if not _INTEGER.fullmatch(item[1]))
    _refuse(path, line, f"{cell!r} is no column number and no names of series are given")
