"""The forms in which a graph leaves the program: JSON, CSV, GraphML, DOT, tables to show.

Pure functions that the methods of `CausalGraph` call; only JSON is read back, by `parse_json`.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from causalformer.errors import DataError, FileFormatError
from causalformer.names import is_utf8, printable_name, visible

if TYPE_CHECKING:
    from rich.table import Table

    from causalformer.graph import CausalGraph, Edge

FORMAT = "causalformer-graph"
VERSION = 1
COLUMNS = ("cause", "effect", "lag", "kind", "score")
TESTED = ("p_value", "q_value", "strength")
EVIDENCE = (*TESTED, "frequency", "oriented", "may_be_confounded")
CONFOUNDED = "may come from a hidden common driver"
MARK = "*"  # of edges that do, where there is no room for words

_NO_NUMBERS = ("oriented", "may_be_confounded")
_NOT_XML = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]" + r"|\\(?=x[0-9a-f]{2}|u[0-9a-f]{4})"
)


def evidence(edge: "Edge") -> dict[str, Any]:
    """Return what is known of an edge beyond its score; ``oriented`` only where it is False.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> evidence(Edge("a", "b", 0, 0.5, q_value=0.01, oriented=False))
    {'q_value': 0.01, 'oriented': False}
    """
    values = {name: getattr(edge, name) for name in EVIDENCE}
    return {
        name: value
        for name, value in values.items()
        if value == value and value is not True and value != ""
    }


def columns(graph: "CausalGraph") -> tuple[str, ...]:
    """Return the columns that a table of the edges needs: `COLUMNS`, then evidence if there is any.

    ``p_value``, ``q_value`` and ``strength`` come together, ``frequency`` where an edge has one,
    ``oriented`` where an edge is contemporaneous and there is any evidence at all,
    ``may_be_confounded`` where an edge may be.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> columns(CausalGraph(("a", "b"), (Edge("a", "b", 2, q_value=0.01),)))
    ('cause', 'effect', 'lag', 'kind', 'score', 'p_value', 'q_value', 'strength')
    """
    known = {name for edge in graph.edges for name in evidence(edge)}
    if not graph.edges and graph.metadata.get("preset") == "default":
        known.update(TESTED)  # all pairs were tested, none passed
    if not known:
        return COLUMNS
    if known.intersection(TESTED):
        known.update(TESTED)
    if any(edge.kind == "instantaneous" for edge in graph.edges):
        known.add("oriented")
    return (*COLUMNS, *(name for name in EVIDENCE if name in known))


def attributes(graph: "CausalGraph") -> Iterator[tuple["Edge", dict[str, Any]]]:
    """Yield every edge with what it carries besides its ends: the other `columns`."""
    names = columns(graph)[2:]
    for edge in graph.edges:
        yield edge, {name: getattr(edge, name) for name in names}


# --- JSON -----------------------------------------------------------------------------------------


def to_json(graph: "CausalGraph") -> str:
    """Return everything the graph holds as strict JSON, the one format that is read back.

    Every edge has ``cause``, ``effect``, ``lag`` and ``score``. An unknown score is ``null``;
    infinite ones are the texts ``"inf"`` and ``"-inf"``. The numbers ``p_value``, ``q_value``,
    ``strength`` and ``frequency`` stand where they are known, ``"oriented": false`` where the
    direction of a contemporaneous edge is only a guess, the sentence ``may_be_confounded`` where
    there is one.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),), {"method": "var"})
    >>> CausalGraph.from_json(to_json(graph)) == graph
    True
    """
    edges = [
        {
            "cause": edge.cause,
            "effect": edge.effect,
            "lag": edge.lag,
            "score": _json_score(edge.score),
            **evidence(edge),
        }
        for edge in graph.edges
    ]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(graph.names),
        "edges": edges,
        "metadata": graph.metadata,
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _json_score(score: float) -> float | str | None:
    if math.isnan(score):
        return None
    return score if math.isfinite(score) else str(score)


def parse_json(text: str) -> tuple[list[Any], list[dict[str, Any]], Any]:
    """Return names, the arguments of every `Edge`, and metadata; the graph checks them.

    Raises
    ------
    FileFormatError
        If the text is damaged, no causal graph, or of a newer version.
    """
    content = _announced(text)
    names, edges = content.get("names"), content.get("edges")
    if not isinstance(names, list) or not isinstance(edges, list):
        raise FileFormatError('damaged causal graph: "names" and "edges" must be lists')
    return names, [_edge_fields(raw) for raw in edges], content.get("metadata", {})


def _announced(text: str) -> dict[str, Any]:
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


def _edge_fields(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise FileFormatError(f"damaged causal graph: an edge must be an object, not {raw!r}")
    needed = ("cause", "effect", "lag")
    missing = [key for key in needed if key not in raw]
    if missing:
        raise FileFormatError(f"damaged causal graph: an edge lacks {', '.join(missing)}: {raw!r}")
    known = {key: raw[key] for key in ("score", *EVIDENCE) if raw.get(key) is not None}
    for key, value in known.items():
        infinite = key == "score" and value in ("inf", "-inf")
        if isinstance(value, str) and key not in _NO_NUMBERS and not infinite:
            raise FileFormatError(f"damaged causal graph: {key} {value!r} is no number")
    return {key: raw[key] for key in needed} | known


def json_copy(value: Any, where: str) -> Any:
    """Copy ``value`` into what strict JSON holds: dict, list, text, numbers, None.

    Raises
    ------
    DataError
        If it does not fit; the message begins with ``where`` and the place in it.

    Examples
    --------
    >>> json_copy({"lags": np.arange(2)}, "metadata")
    {'lags': [0, 1]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not is_utf8(key):
                raise DataError(f"{where}: key {key!a} must be text that UTF-8 can hold")
        return {key: json_copy(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_copy(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where} is {value}, which JSON cannot hold; use None or text")
    if isinstance(value, str) and not is_utf8(value):
        raise DataError(f"{where} is {value!a}, which cannot be written as UTF-8")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise DataError(f"{where} is of type {type(value).__name__}, which JSON cannot hold")


# --- CSV, GraphML, DOT ----------------------------------------------------------------------------


def to_csv(graph: "CausalGraph") -> str:
    """Return the edges as CSV with a header line, strongest first; unknown numbers are empty.

    The columns are those of :func:`columns`. Names are quoted where CSV needs it and otherwise left
    as they are: a name that starts with ``=`` would be taken for a formula by a spreadsheet.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> print(to_csv(CausalGraph(("a", "b, c"), (Edge("a", "b, c", 2, 0.5),))), end="")
    cause,effect,lag,kind,score
    a,"b, c",2,lagged,0.5
    """
    names = columns(graph)
    rows = ([_csv_value(getattr(edge, name)) for name in names] for edge in graph.edges)
    return "".join(map(csv_line, (names, *rows)))


def _csv_value(value: Any) -> Any:
    return "" if value != value else value


def csv_line(values: Sequence[object]) -> str:
    r"""Return one CSV line that ends with a newline; a lone carriage return is quoted, too.

    Examples
    --------
    >>> csv_line(["a", "b, c", "d\re", 0.5])
    'a,"b, c","d\re",0.5\n'
    """
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerow(values)
    return stream.getvalue().removesuffix("\r\n") + "\n"


def to_graphml(graph: "CausalGraph") -> str:
    r"""Return the graph as GraphML, the names of the series as node ids.

    Edges have the attributes ``lag``, ``kind`` and, where known, ``score`` and the evidence of
    :func:`columns`; metadata is left out.
    Characters that XML cannot hold are written as ``\xNN`` or ``\uNNNN`` (lower-case
    hexadecimal); to keep that reversible, a backslash that would begin such a sequence is written
    as ``\x5c``. All other names come back from a reader unchanged.

    Examples
    --------
    >>> import networkx
    >>> from causalformer.graph import CausalGraph, Edge
    >>> text = to_graphml(CausalGraph(("a", "<b>"), (Edge("a", "<b>", 2),)))
    >>> networkx.read_graphml(io.BytesIO(text.encode())).edges(data=True)
    OutEdgeDataView([('a', '<b>', {'lag': 2, 'kind': 'lagged', 'id': 'e0'})])
    """
    import networkx as nx

    ids = {name: _NOT_XML.sub(visible, name) for name in graph.names}
    drawn = nx.MultiDiGraph()
    drawn.add_nodes_from(ids.values())
    for number, (edge, values) in enumerate(attributes(graph)):
        known = {key: value for key, value in values.items() if value == value and value != ""}
        # Gephi drops edges whose id it has met before, so a lag alone will not do as key.
        drawn.add_edge(ids[edge.cause], ids[edge.effect], key=f"e{number}", **known)
    stream = io.BytesIO()
    nx.write_graphml_xml(drawn, stream, named_key_ids=True)
    return stream.getvalue().decode("utf-8") + "\n"


def to_dot(graph: "CausalGraph") -> str:
    r"""Return the graph in the DOT language of Graphviz, without needing Graphviz.

    The lag is the label of an edge; contemporaneous edges are dashed, without a head if they are
    not oriented. An edge that may be confounded has a ``*`` after its lag and says why as a
    tooltip. Control characters in names, other than the newline, are shown as ``\xNN``.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> print(to_dot(CausalGraph(("a", 'say "b"'), (Edge("a", 'say "b"', 2),))), end="")
    digraph {
      n0 [label="a"];
      n1 [label="say \"b\""];
      n0 -> n1 [label="2"];
    }
    """
    node = {name: f"n{i}" for i, name in enumerate(graph.names)}
    nodes = [f'  {key} [label="{_dot_text(name)}"];' for name, key in node.items()]
    arrows = [
        f'  {node[edge.cause]} -> {node[edge.effect]} [label="{edge.lag}{mark(edge)}"'
        + (", style=dashed" if edge.kind == "instantaneous" else "")
        + ("" if edge.oriented else ", dir=none")
        + (f', tooltip="{_dot_text(edge.may_be_confounded)}"' if edge.may_be_confounded else "")
        + "];"
        for edge in graph.edges
    ]
    return "\n".join(["digraph {", *nodes, *arrows, "}"]) + "\n"


def _dot_text(name: str) -> str:
    """Escape a label line by line, so that only control characters within a line are spelt out."""
    # printable_name's own backslashes double, too: DOT shall show the escape, not obey it.
    lines = (printable_name(line).replace("\\", "\\\\") for line in name.split("\n"))
    return "\\n".join(lines).replace('"', '\\"').replace("&", "&amp;")


WRITERS: Final[Mapping[str, Callable[["CausalGraph"], str]]] = MappingProxyType(
    {".json": to_json, ".csv": to_csv, ".graphml": to_graphml, ".dot": to_dot}
)
"""Suffix of a text file -> its writer."""


# --- Terminal and notebook ------------------------------------------------------------------------


def mark(edge: "Edge") -> str:
    """Return `MARK` if the edge may be confounded, else nothing.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> mark(Edge("a", "b", 2)), mark(Edge("a", "b", 2, may_be_confounded="C precedes both."))
    ('', '*')
    """
    return MARK if edge.may_be_confounded else ""


def _marked(edge: "Edge") -> str:
    return f"{edge.arrow} {mark(edge)}".rstrip()


def _kind(edge: "Edge") -> str:
    """Say the kind of an edge in the word of the field; files and arguments keep the older one."""
    return "contemporaneous" if edge.kind == "instantaneous" else edge.kind


def footnotes(graph: "CausalGraph", limit: int | None = None) -> list[str]:
    """Say why edges, of the ``limit`` strongest ones, may be confounded: a line for each.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> edge = Edge("a", "b", 2, may_be_confounded="C precedes both.")
    >>> footnotes(CausalGraph(("a", "b"), (edge,)))
    ['* a → b (lag 2): C precedes both.']
    """
    return [
        f"{MARK} {edge.arrow} (lag {edge.lag}): {edge.may_be_confounded}"
        for edge in graph.edges[:limit]
        if edge.may_be_confounded
    ]


def to_table(graph: "CausalGraph", limit: int | None = None) -> "Table":
    """Return a table for the terminal: the ``limit`` strongest edges, or all of them.

    Columns for q-value, strength and frequency follow if they are known of any edge. A ``*`` stands
    behind edges that may be confounded; :func:`footnotes` say why.

    Examples
    --------
    >>> import rich
    >>> from causalformer.graph import CausalGraph, Edge
    >>> rich.print(to_table(CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.5),))))
    ┏━━━━━━━┳━━━━━┳━━━━━━━━┳━━━━━━━┓
    ┃ edge  ┃ lag ┃ kind   ┃ score ┃
    ┡━━━━━━━╇━━━━━╇━━━━━━━━╇━━━━━━━┩
    │ a → b │   2 │ lagged │   0.5 │
    └───────┴─────┴────────┴───────┘
    """
    from rich.table import Table
    from rich.text import Text

    shown = graph.edges[:limit]
    captions = [f"{len(shown)} of {len(graph)} edges"] if len(shown) < len(graph) else []
    captions += [f"{MARK} {CONFOUNDED}"] if any(map(mark, shown)) else []
    table = Table(caption="\n".join(captions) or None)
    table.add_column("edge", overflow="fold")
    table.add_column("lag", justify="right")
    table.add_column("kind")
    numbers = _shown_numbers(graph)
    for name in numbers:
        table.add_column(name.removesuffix("_value"), justify="right")
    for edge in shown:
        # Text, not str: names may look like rich's own markup.
        table.add_row(
            Text(_marked(edge)), str(edge.lag), _kind(edge), *_number_cells(edge, numbers)
        )
    return table


def to_html(graph: "CausalGraph", limit: int = 50) -> str:
    """Return a small HTML table for notebooks: the ``limit`` strongest edges.

    Examples
    --------
    >>> from causalformer.graph import CausalGraph, Edge
    >>> print(to_html(CausalGraph(("a", "<b>"), (Edge("a", "<b>", 2, 0.5),))))
    <p>2 series, 1 edge</p>
    <table><thead><tr><th>edge</th><th>lag</th><th>kind</th><th>score</th></tr></thead><tbody>
    <tr><td>a → &lt;b&gt;</td><td>2</td><td>lagged</td><td>0.5</td></tr>
    </tbody></table>
    """
    shown = graph.edges[:limit]
    numbers = _shown_numbers(graph)
    edges = f"{len(graph)} edge" + "s" * (len(graph) != 1)
    first = f"; the strongest {len(shown)}:" if len(shown) < len(graph) else ""
    lines = [f"<p>{len(graph.names)} series, {edges}{first}</p>"]
    if shown:
        titles = ("edge", "lag", "kind", *(name.removesuffix("_value") for name in numbers))
        heads = "".join(f"<th>{title}</th>" for title in titles)
        lines.append(f"<table><thead><tr>{heads}</tr></thead><tbody>")
        for edge in shown:
            cells = (_marked(edge), str(edge.lag), _kind(edge), *_number_cells(edge, numbers))
            lines.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        lines.append("</tbody></table>")
    notes = footnotes(graph, limit)
    if notes:
        said = "<br>".join(map(escape, [f"{MARK} {CONFOUNDED}:", *notes]))
        lines.append(f"<p>{said}</p>")
    return "\n".join(lines)


def _shown_numbers(graph: "CausalGraph") -> list[str]:
    known = {name for edge in graph.edges for name in evidence(edge)}
    return ["score", *(name for name in ("q_value", "strength", "frequency") if name in known)]


def _number_cells(edge: "Edge", names: Sequence[str]) -> list[str]:
    values = (getattr(edge, name) for name in names)
    return ["–" if math.isnan(value) else f"{value:.4g}" for value in values]
