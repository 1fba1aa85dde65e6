"""The data flow of the architecture page, kept true: imports only point to the left."""

import ast
from pathlib import Path

import pytest

import causalformer

ROOT = Path(causalformer.__file__).parent

# errors and small helpers, then read -> prepare -> model -> train -> explain -> detect -> use
LAYERS = [
    {"errors", "_version"},
    {"files", "names", "arrays", "scratch", "notebook"},
    {"progress"},
    {"formats"},
    {"graph", "config", "policy"},
    {"truth", "knowledge", "metrics", "data", "devices", "parallel"},
    {"datasets", "model", "checkpoint"},
    {"training"},
    {"explain"},
    {"detect"},
    {"diagnostics", "model_files"},
    {"plot"},
    {"paper", "default"},
    {"estimator", "baselines"},
    {"each", "report"},
    {"results", "bench"},
    {"app"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def imports_of(path):
    """Top-level parts of the package that a file imports when it is loaded."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("causalformer"):
            yield node.module.partition(".")[2].split(".")[0] or "_version"


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


FILES = [p for p in sorted(ROOT.rglob("*.py")) if part_of(p) != "__init__"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_point_left(path):
    part = part_of(path)
    assert part in RANK, f"{part} is not placed in the layers yet"
    for imported in imports_of(path):
        assert imported == part or RANK[imported] < RANK[part], f"{part} imports {imported}"
