"""The page itself: one HTML file that holds its style, its code and its data."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from causalformer.files import write_text
from causalformer.report.facts import collect_facts

if TYPE_CHECKING:
    from causalformer.data import SeriesTable
    from causalformer.each import EachRecording
    from causalformer.estimator import CausalFormer

_ASSETS: Final = files("causalformer.report") / "assets"
_VENDORED: Final = {"cytoscape.min.js": "cytoscape", "uPlot.iife.min.js": "uPlot"}
_OWN: Final = (
    *("text.js", "state.js", "recordings.js", "graph.js", "evidence.js", "edges.js", "series.js"),
    "page.js",
)
_HARMFUL: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write_report(
    path: str | Path,
    model: "CausalFormer",
    table: "SeriesTable",
    run: Mapping[str, Any] | None = None,
    each: "EachRecording | None" = None,
) -> Path:
    """Write the report of a fitted model; the file is either whole or as it was before.

    See `causalformer.report.collect_facts` for the arguments.
    """
    return write_text(path, build_page(collect_facts(model, table, run, each)))


def build_page(facts: Mapping[str, Any]) -> str:
    """Return the page that shows `facts`, as `collect_facts` gives them.

    Scripts are let in by their hash and nothing may be loaded from elsewhere, so that neither a
    hostile name nor a mistake in the page can run or fetch anything.

    Examples
    --------
    >>> page = build_page({"title": "</script><script>alert(1)</script>"})
    >>> "<script>alert(1)" in page, page.startswith("<!doctype html>")
    (False, True)
    """
    scripts = [*(_vendored(*entry) for entry in _VENDORED.items()), "\n".join(map(_asset, _OWN))]
    style = _asset("vendor/uPlot.min.css") + _asset("report.css")
    parts = {
        "policy": _policy(scripts),
        "style": style,
        "facts": embedded_json(facts),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def embedded_json(value: Any) -> str:
    r"""Write strict JSON that can stand inside a script element, whatever texts it holds.

    Examples
    --------
    >>> embedded_json(["</script>", "a & b"])
    '["\\u003c/script\\u003e","a \\u0026 b"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_HARMFUL)


def _vendored(file: str, library: str) -> str:
    """Return a library with its licence, which must go with every copy."""
    return f"/*\n{_asset(f'vendor/{library}.LICENSE.txt')}\n*/\n{_asset(f'vendor/{file}')}"


def _policy(scripts: list[str]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
