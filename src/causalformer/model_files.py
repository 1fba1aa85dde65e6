"""Fitted models on disk: ``model.json`` beside ``weights.safetensors``; no pickle anywhere.

``model.json`` carries the checksum of the weights it belongs to, so that a folder in which only
one of the two files was replaced is noticed.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer._version import __version__
from causalformer.errors import FileFormatError
from causalformer.files import write_atomically, write_text
from causalformer.graph import CausalGraph
from causalformer.training import Epoch, History

Fit = TypeVar("Fit")

FORMAT = "causalformer-model"
VERSION = 2
_NETWORK, _ARRAY = "network.", "array."


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
    """Write the model; each of the two files appears whole or not at all."""
    from safetensors.torch import save

    folder = Path(folder)
    tensors = {_NETWORK + k: v.detach().cpu().contiguous() for k, v in model.weights.items()}
    tensors |= {_ARRAY + k: torch.from_numpy(np.array(v)) for k, v in model.arrays.items()}
    content = save(tensors)
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        "parameters": model.parameters,
        "settings": model.settings,
        "names": list(model.names),
        "history": model.history.to_dict(),
        "graph": json.loads(model.graph.to_json()),
    }
    write_atomically(folder / "weights.safetensors", lambda p: p.write_bytes(content))
    write_text(folder / "model.json", json.dumps(facts, indent=1, ensure_ascii=False))
    return folder


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
        tensors = _tensors(folder / "weights.safetensors", facts["weights_sha256"])
        stored = StoredModel(
            parameters=dict(facts["parameters"]),
            settings=dict(facts["settings"]),
            names=tuple(str(name) for name in facts["names"]),
            history=_history(facts["history"]),
            graph=CausalGraph.from_json(json.dumps(facts["graph"])),
            weights=_below(tensors, _NETWORK),
            arrays={k: v.numpy() for k, v in _below(tensors, _ARRAY).items()},
        )
        return restore(stored)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, FileFormatError):
            raise
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise FileFormatError(
            f"{folder} is a damaged model ({reason}); save it again or restore it from a copy"
        ) from error


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(
            f"cannot read {path} ({error.strerror}); give a folder that save() has written"
        ) from error
    except ValueError as error:
        raise FileFormatError(f"{path} is not JSON ({error}); the model is damaged") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise FileFormatError(f"{path} is not a causalformer model")
    if facts.get("version") != VERSION:
        raise FileFormatError(
            f"{path} has format version {facts.get('version')!r}, this is causalformer "
            f"{__version__} which reads version {VERSION}; update causalformer"
        )
    return facts


def _tensors(path: Path, checksum: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

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
