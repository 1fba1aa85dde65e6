"""Fitted models on disk: ``model.json`` beside ``weights.safetensors``; no pickle anywhere.

``model.json`` carries the checksum of the weights it belongs to, so that a folder in which only
one of the two files was replaced is noticed.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from causalformer._version import __version__
from causalformer.config import Settings
from causalformer.data.scaling import Scaling
from causalformer.errors import FileFormatError
from causalformer.files import write_atomically, write_text
from causalformer.graph import CausalGraph
from causalformer.model import CausalityAwareTransformer
from causalformer.training import Epoch, History

FORMAT = "causalformer-model"
VERSION = 1
_ARRAYS = ("scaling.offset", "scaling.factor", "scores", "lag_scores")


@dataclass(frozen=True, eq=False)
class StoredModel:
    """Everything a fitted estimator is made of."""

    preset: str
    settings: Settings
    random_state: int
    names: tuple[str, ...]
    scaling: Scaling
    history: History
    graph: CausalGraph
    weights: dict[str, Tensor]
    scores: NDArray[np.float64]
    lag_scores: NDArray[np.float64]

    def network(self) -> CausalityAwareTransformer:
        """Build the network and give it its weights."""
        network = CausalityAwareTransformer(len(self.names), self.settings)
        network.load_state_dict(self.weights)
        return network.eval()


def save_model(folder: str | Path, model: StoredModel) -> Path:
    """Write the model; each of the two files appears whole or not at all."""
    from safetensors.torch import save

    folder = Path(folder)
    tensors = {f"network.{k}": v.detach().cpu().contiguous() for k, v in model.weights.items()}
    arrays = (model.scaling.offset, model.scaling.factor, model.scores, model.lag_scores)
    tensors |= {name: torch.tensor(a) for name, a in zip(_ARRAYS, arrays, strict=True)}
    content = save(tensors)
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        "preset": model.preset,
        "settings": model.settings.model_dump(),
        "random_state": model.random_state,
        "names": list(model.names),
        "scaling_base": model.scaling.base,
        "history": model.history.to_dict(),
        "graph": json.loads(model.graph.to_json()),
    }
    write_atomically(folder / "weights.safetensors", lambda p: p.write_bytes(content))
    write_text(folder / "model.json", json.dumps(facts, indent=1, ensure_ascii=False))
    return folder


def load_model(folder: str | Path) -> StoredModel:
    """Read what `save_model` has written.

    Raises
    ------
    FileFormatError
        If a file is missing, foreign, damaged or of a newer version; the message names it.
    """
    folder = Path(folder)
    facts = _facts(folder / "model.json")
    try:
        tensors = _tensors(folder / "weights.safetensors", facts["weights_sha256"])
        names = tuple(str(name) for name in facts["names"])
        offset, factor, scores, lag_scores = (tensors.pop(name).numpy() for name in _ARRAYS)
        model = StoredModel(
            preset=str(facts["preset"]),
            settings=Settings.model_validate(facts["settings"]),
            random_state=int(facts["random_state"]),
            names=names,
            scaling=Scaling(offset, factor, float(facts["scaling_base"])),
            history=_history(facts["history"]),
            graph=CausalGraph.from_json(json.dumps(facts["graph"])),
            weights={key.removeprefix("network."): value for key, value in tensors.items()},
            scores=scores,
            lag_scores=lag_scores,
        )
        model.network()  # weights that do not fit the settings are found here, not later
    except (KeyError, TypeError, ValueError, RuntimeError, ValidationError) as error:
        if isinstance(error, FileFormatError):
            raise
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise FileFormatError(
            f"{folder} is a damaged model ({reason}); save it again or restore it from a copy"
        ) from error
    return model


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
