"""Fitted models on disk: ``model.json`` beside the weights it names; no pickle anywhere.

The weights stand in a file named by their checksum, which ``model.json`` carries: a new model can
be written beside an old one and takes over, whole, at the moment in which ``model.json`` is moved
into place. What was damaged or exchanged since is noticed.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer._version import __version__
from causalformer.config import DEFAULT
from causalformer.errors import FileFormatError
from causalformer.files import read_text, remove_unfinished, write_atomically
from causalformer.graph import CausalGraph
from causalformer.training import Epoch, History

Fit = TypeVar("Fit")

FORMAT = "causalformer-model"
VERSION = 4
"""Version 3 had another network for the paper's presets; its models of the default still load."""
_OLDER = 3
_NETWORK, _ARRAY = "network.", "array."
_CHECKSUM = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class StoredModel:
    """Everything a fitted estimator is made of; `parameters` are its constructor's."""

    parameters: dict[str, Any]
    settings: dict[str, Any]
    names: tuple[str, ...]
    history: History
    graph: CausalGraph
    weights: dict[str, Tensor]
    arrays: dict[str, NDArray[np.float64]]


def save_model(folder: str | Path, model: StoredModel) -> Path:
    """Write the model; until it is whole, an older one in the folder stays as it was."""
    from safetensors.torch import save

    folder = Path(folder)
    tensors = {_NETWORK + k: v.detach().cpu().contiguous() for k, v in model.weights.items()}
    tensors |= {_ARRAY + k: torch.from_numpy(np.array(v)) for k, v in model.arrays.items()}
    content = save(tensors)
    checksum = hashlib.sha256(content).hexdigest()
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "weights_sha256": checksum,
        "parameters": model.parameters,
        "settings": model.settings,
        "names": list(model.names),
        "history": model.history.to_dict(),
        "graph": json.loads(model.graph.to_json()),
    }
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    weights = _weights(folder, checksum)

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")  # if there is no room, no weights are left
        write_atomically(weights, lambda p: p.write_bytes(content))

    remove_unfinished(folder)
    write_atomically(folder / "model.json", write)
    for older in set(folder.glob("weights-*.safetensors")) - {weights}:
        with suppress(OSError):
            older.unlink()
    return folder


def _weights(folder: Path, checksum: str) -> Path:
    return folder / f"weights-{checksum[:16]}.safetensors"


def load_model(folder: str | Path, restore: Callable[[StoredModel], Fit]) -> Fit:
    """Read what `save_model` has written and restore the fit it was made from.

    Raises
    ------
    FileFormatError
        If a file is missing, foreign, damaged or of another version; the message names it.
    """
    folder = Path(folder)
    facts = _facts(folder / "model.json")
    try:
        tensors = _tensors(folder, facts["weights_sha256"])
        stored = StoredModel(
            parameters=dict(facts["parameters"]),
            settings=_settings(facts, folder),
            names=tuple(str(name) for name in facts["names"]),
            history=_history(facts["history"]),
            graph=CausalGraph.from_json(json.dumps(facts["graph"])),
            weights=_below(tensors, _NETWORK),
            arrays={k: v.numpy() for k, v in _below(tensors, _ARRAY).items()},
        )
        return restore(stored)
    except FileFormatError:
        raise
    except Exception as error:  # the content may be anything, and so may what it breaks
        reason = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        raise FileFormatError(
            f"{folder} is a damaged model ({reason}); save it again or restore it from a copy"
        ) from error


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _facts(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is not JSON ({error}); the model is damaged") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise FileFormatError(f"{path} is not a causalformer model")
    version, parameters = facts.get("version"), facts.get("parameters")
    preset = parameters.get("preset") if isinstance(parameters, dict) else None
    if version != VERSION and (version, preset) != (_OLDER, DEFAULT):
        raise FileFormatError(
            f"{path} was written by causalformer {facts.get('written_by', 'of an unknown version')}"
            f" in format version {version!r}, with the preset {preset!r}; this is causalformer "
            f"{__version__}, which reads version {VERSION}, and of version {_OLDER} the preset "
            f"{DEFAULT!r} only; fit it again"
        )
    return facts


def _settings(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Give the settings; those of attention, an option that the default once had, are dropped."""
    settings = dict(facts["settings"])
    if facts["parameters"]["preset"] != DEFAULT:
        return settings
    settings.pop("temperature", None)
    if settings.pop("attention", False):
        raise FileFormatError(
            f"{folder / 'model.json'} was written by causalformer "
            f"{facts.get('written_by', 'of an unknown version')} with the setting 'attention', "
            f"which the preset {DEFAULT!r} no longer has; fit it again without it"
        )
    return settings


def _tensors(folder: Path, checksum: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    if not _CHECKSUM.fullmatch(checksum):  # it becomes part of a path
        raise ValueError("weights_sha256 is no checksum")
    path = _weights(folder, checksum)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"cannot read {path} ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != checksum:
        raise FileFormatError(f"{path} does not belong to the model.json beside it, or is damaged")
    try:
        tensors: dict[str, Tensor] = load(content)
    except SafetensorError as error:
        raise FileFormatError(f"{path} is damaged ({error})") from error
    return tensors


def _history(raw: dict[str, Any]) -> History:
    return History(tuple(Epoch(**epoch) for epoch in raw["epochs"]), raw["stopped"])
