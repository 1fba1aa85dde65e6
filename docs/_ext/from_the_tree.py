"""Parts of pages that are taken from the program and from the results at every build.

A page asks for one with a comment on a line of its own::

    <!-- api: causalformer.data -->         every public name of a module
    <!-- cli -->                            the help of every command
    <!-- results: default/table.md -->      a file under benchmarks/, if it is there
    <!-- numbers -->                        every number that decides about a graph

So nothing of it can go stale. Links to tables under ``benchmarks/`` and to scripts of the gallery
lead to the pages that show them. The build fails if a page would load anything from another host.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from pydantic import BaseModel
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = (
    "causalformer",
    "causalformer.data",
    "causalformer.data.preparation",
    "causalformer.knowledge",
    "causalformer.graph",
    "causalformer.diagnostics",
    "causalformer.explain.local",
    "causalformer.each",
    "causalformer.plot",
    "causalformer.report",
    "causalformer.metrics",
    "causalformer.datasets",
    "causalformer.baselines",
    "causalformer.bench",
    "causalformer.config",
    "causalformer.errors",
)
"""The modules of the reference; a name is described where the first of them offers it."""

_MARKER = re.compile(r"^<!-- (api|cli|results|numbers)(?:: (\S+))? -->$", flags=re.MULTILINE)
_TABLE = re.compile(r"\]\((?:\.\./)+benchmarks/([\w-]+)/([\w-]+)\.md\)")
_SECTIONS = {"published-runs": "published-runs", "paper-tables": "the-papers-tables"}
"""Where the page of all results shows a file, if not in the section of its folder."""
_SCRIPT = re.compile(r"\]\((?:\.\./)*gallery/(\w+)\.py\)")
_HOST = r"""["']?(?:https?:)?//"""
_LOADED = re.compile(
    rf"<(?:script|img|iframe|source)\b[^>]*\bsrc={_HOST}[^>]*>"
    rf"|<link\b(?![^>]*\brel=[\"']?canonical)[^>]*\bhref={_HOST}[^>]*>"
    rf"|@import\s+(?:url\()?{_HOST}[^;]*;"
    rf"|\burl\({_HOST}[^)]*\)"
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what to call."""
    app.connect("source-read", _fill_in)
    app.connect("missing-reference", _link_to_home)
    app.connect("autodoc-process-docstring", _keep_bars)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_math_block, None))
    app.connect("build-finished", _refuse_other_hosts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _fill_in(app: Sphinx, name: str, source: list[str]) -> None:  # noqa: ARG001
    source[0] = filled(source[0], name)


def filled(text: str, page: str = "index") -> str:
    """Replace the markers of a page, and let links to files lead to the pages that show them."""
    to_the_tree = "../" * (page.count("/") + 1)

    def results_here(name: str) -> str:
        return results(name).replace("](../benchmarks/", f"]({to_the_tree}benchmarks/")

    parts: dict[str, Callable[[str], str]] = {
        "api": api,
        "cli": commands,
        "results": results_here,
        "numbers": deciding_numbers,
    }
    text = _TABLE.sub(lambda link: f"](/benchmarks.md#{_SECTIONS.get(link[2], link[1])})", text)
    text = _SCRIPT.sub(r"](/auto_gallery/\1.rst)", text)
    return _MARKER.sub(lambda marker: parts[marker[1]](marker[2] or ""), text)


# --- Results --------------------------------------------------------------------------------------


def results(name: str) -> str:
    """Return a table, which begins with its title, or a picture; where a table will be, say so."""
    path = BENCHMARKS / name
    if not path.exists():
        return "" if path.suffix == ".png" else f"*Not measured yet: `benchmarks/{name}`.*"
    if path.suffix == ".png":
        return f"![{path.stem}](../benchmarks/{name})"
    title, _, body = path.read_text(encoding="utf-8").strip().partition("\n")
    return f"{_one_level_down(body)}\n\n*{title.lstrip('# ')}: `benchmarks/{name}`*"


def _one_level_down(text: str) -> str:
    """Turn sections of a file into parts of a section."""
    return re.sub(r"^(##+ )", r"#\1", text, flags=re.MULTILINE).strip()


# --- The numbers that decide ----------------------------------------------------------------------


def deciding_numbers(_: str) -> str:
    """Return a table of the numbers of the policy: value, what it decides, source."""
    from causalformer.policy import numbers

    rows = [
        f"| `{name}` | {value:g} | {_cell(decides)} | {_cell(source)} |"
        for name, (value, decides, source) in numbers().items()
    ]
    return "\n".join(["| number | value | what it decides | source |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


# --- The command line -----------------------------------------------------------------------------


def commands(_: str) -> str:
    """Return the help of the program and of every command."""
    from typer.main import get_command

    from causalformer.cli import app

    sections = [
        f"## {' '.join(path)}\n\n```text\n{_help(path[1:])}\n```"
        for path in _paths(get_command(app), ("causalformer",))
    ]
    return "\n\n".join(sections)


def _paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))


def _help(arguments: tuple[str, ...]) -> str:
    from typer.testing import CliRunner

    from causalformer.cli import app

    width = {"COLUMNS": "88", "TERMINAL_WIDTH": "88", "NO_COLOR": "1"}
    asked = [*arguments, "--help"]
    shown = CliRunner().invoke(app, asked, env=width, prog_name="causalformer")
    if shown.exit_code:
        raise SphinxError(f"causalformer {' '.join(asked)}: {shown.output}")
    return shown.output.strip()


# --- The reference --------------------------------------------------------------------------------


def api(module_name: str) -> str:
    """Return what a module offers: its docstring, a table of names, then each of them."""
    offered = public_names(module_name)
    described = {name: thing for name, thing in offered.items() if not _is_constant(thing)}
    homes = {name: home_of(f"{module_name}.{name}") for name in described}
    here = [name for name, home in homes.items() if home == f"{module_name}.{name}"]
    lines = [f".. automodule:: {module_name}", "   :no-members:", ""]
    lines += [".. autosummary::", "   :nosignatures:", ""]
    lines += [f"   {name if name in here else '~' + home}" for name, home in homes.items()]
    parts = [_rst(lines)]
    constants = [f"`{name}`" for name in offered if name not in described]
    if constants:
        parts.append(f"Constants: {', '.join(constants)}.")
    for name in here:
        parts.append(_rst([f".. {_directive(described[name])}:: {module_name}.{name}"]))
        if _is_settings(described[name]):
            parts.append(_settings_table(described[name]))
    return "\n\n".join(parts)


@cache
def public_names(module_name: str) -> dict[str, Any]:
    """Return what `__all__` lists, or else what the module itself defines, by name."""
    module = import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module_name
    ]
    return {name: getattr(module, name) for name in names if not name.startswith("__")}


def home_of(name: str) -> str:
    """Return the name under which the thing called `name` is described.

    >>> home_of("causalformer.graph.Edge")
    'causalformer.Edge'
    """
    module_name, _, last = name.rpartition(".")
    thing = public_names(module_name)[last]
    for module in MODULES:
        for known, other in public_names(module).items():
            if other is thing:
                return f"{module}.{known}"
    return name


def _link_to_home(app: Sphinx, env: Any, node: Any, text: Any) -> Any:
    """Link a name to where the thing is described under another name."""
    module_name, _, last = node.get("reftarget", "").rpartition(".")
    if module_name not in MODULES or last not in public_names(module_name):
        return None
    home = home_of(f"{module_name}.{last}")
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", home, node, text)


def _keep_bars(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: Any) -> None:  # noqa: ARG001
    """Keep the bars of absolute values outside of code, which would stand for substitutions."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(``.*?``)|\|(\w+)\|", _bars, line)


def _bars(match: re.Match[str]) -> str:
    return match[1] or rf"\|{match[2]}\|"


def _inline_math(writer: Any, node: Any) -> None:
    writer.body.append(_mathml(node.astext(), as_block=False))
    raise SkipNode


def _math_block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="math">{_mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def _mathml(tex: str, *, as_block: bool) -> str:
    """Return what browsers draw themselves; formulas that are beyond docutils as they are."""
    try:
        return str(tex2mathml(re.sub(r"\\[Bb]igg?[lr]?(?![a-z])", "", tex), as_block=as_block))
    except MathError:
        return f"<code>{escape(tex)}</code>"


def _is_constant(thing: Any) -> bool:
    return not (inspect.isclass(thing) or inspect.isroutine(thing))


def _is_settings(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseModel)


def _directive(thing: Any) -> str:
    if not inspect.isclass(thing):
        return "autofunction"
    return "autoexception" if issubclass(thing, BaseException) else "autoclass"


def _settings_table(settings: type[BaseModel]) -> str:
    rows = [
        f"| `{name}` | `{field.default!r}` | {field.description or ''} |"
        for name, field in settings.model_fields.items()
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _rst(lines: list[str]) -> str:
    return "\n".join(["```{eval-rst}", *lines, "```"])


# --- Offline --------------------------------------------------------------------------------------


def _refuse_other_hosts(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None or app.builder.format != "html":
        return
    pages = (path for path in Path(app.outdir).rglob("*") if path.suffix in (".html", ".css"))
    for path in sorted(pages):
        for found in loaded_from_hosts(path.read_text(encoding="utf-8")):
            raise SphinxError(f"{path.name} would load from another host: {found}")


def loaded_from_hosts(page: str) -> list[str]:
    """Return the parts of a page or a style sheet that load something from another host.

    >>> loaded_from_hosts('<a href="https://a.org">a</a><script src="//b.org/b.js"></script>')
    ['<script src="//b.org/b.js">']
    """
    return _LOADED.findall(page)
