"""Prior knowledge from files and from options of the command line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from causalformer.errors import FileFormatError, MissingExtraError, SettingsError
from causalformer.files import read_text
from causalformer.knowledge.entries import (
    LONGEST_SHOWN,
    describe,
    one_line,
    read_edges,
    read_names,
    shown,
)
from causalformer.knowledge.statements import PriorKnowledge

_LARGEST_FILE = 1_000_000


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
            f"knowledge must be a PriorKnowledge, a mapping or a path, not {describe(source)}"
        )
    path = Path(source)
    parse = {".json": _parse_json, ".yaml": _parse_yaml, ".yml": _parse_yaml}.get(
        path.suffix.lower()
    )
    if parse is None:
        raise SettingsError(
            f"cannot tell the format of {shown(path)}: end its name with .json, .yaml or .yml"
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
        required=known.required + read_edges("--require", require, wildcard=False),
        forbidden=known.forbidden + read_edges("--forbid", forbid, wildcard=True),
        tiers=known.tiers,
        exogenous=known.exogenous + read_names("--exogenous", exogenous),
        effects_only=known.effects_only + read_names("--effects-only", effects_only),
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
            f"{where}: no valid YAML: {one_line(error.problem)}; "
            "put texts with special characters in quotes"
        ) from error
    # PyYAML lets these through for a value that does not fit its type, as in !!int text.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise FileFormatError(f"{path}: no valid YAML: {one_line(error)}") from error


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
        elif not node.tag.endswith(":str") and len(node.value) > LONGEST_SHOWN:
            raise ValueError(f"it holds a number of {len(node.value)} characters; quote texts")


def _refuse_repeated(keys: list[str]) -> None:
    seen = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {shown(key)} is given twice; join its lists")
        seen.add(key)
