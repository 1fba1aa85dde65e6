"""The state of a training on disk: one safetensors file, written atomically, no pickle.

A checksum covers all of it: going on from a damaged state would end in another graph unnoticed.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from causalformer.errors import DamagedFileError, FileFormatError
from causalformer.files import write_atomically

_FORMAT = "causalformer-checkpoint"
_VERSION = "3"


@dataclass
class TrainingState:
    """What a training needs to go on: the best weights so far and the epochs behind it."""

    epochs: list[dict[str, Any]] = field(default_factory=list)
    best_loss: float = float("inf")
    best_epoch: int = -1
    best_weights: dict[str, Tensor] | None = None

    def keep_best(self, model: nn.Module, loss: float) -> None:
        """Remember the current weights; called before the epoch is appended."""
        self.best_loss, self.best_epoch = loss, len(self.epochs)
        self.best_weights = {k: v.detach().clone() for k, v in model.state_dict().items()}


def save_state(
    path: Path,
    fingerprint: str,
    state: TrainingState,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> None:
    """Write everything `load_state` needs to continue as if nothing had happened."""
    tensors = {"generator": generator.get_state()}
    tensors |= {f"model/{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best/{k}": v for k, v in (state.best_weights or {}).items()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{k}": torch.as_tensor(v) for k, v in slots.items()}
    facts = {
        "epochs": json.dumps(state.epochs),
        "best_loss": repr(state.best_loss),
        "best_epoch": str(state.best_epoch),
    }
    save_tensors(path, fingerprint, tensors, facts)


def load_state(
    path: Path,
    fingerprint: str,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> TrainingState:
    """Read a checkpoint back into model, optimizer and generator.

    Raises
    ------
    FileFormatError
        If the file is damaged, or belongs to other data or settings.
    """
    tensors, facts = load_tensors(path, fingerprint)
    try:
        model.load_state_dict(_below(tensors, "model"))
        optimizer_state = optimizer.state_dict()
        for key, value in _below(tensors, "optimizer").items():
            index, name = key.split("/")
            optimizer_state["state"].setdefault(int(index), {})[name] = value
        optimizer.load_state_dict(optimizer_state)
        generator.set_state(tensors["generator"])
        device = next(model.parameters()).device
        best = {key: value.to(device) for key, value in _below(tensors, "best").items()}
        return TrainingState(
            epochs=json.loads(facts["epochs"]),
            best_loss=float(facts["best_loss"]),
            best_epoch=int(facts["best_epoch"]),
            best_weights=best or None,
        )
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DamagedFileError(f"checkpoint {path} is damaged ({error}); delete it") from error


def save_tensors(
    path: Path, fingerprint: str, tensors: dict[str, Tensor], facts: dict[str, str]
) -> None:
    """Write tensors and facts to a file that names what it belongs to."""
    from safetensors.torch import save

    facts = {"format": _FORMAT, "version": _VERSION, "fingerprint": fingerprint, **facts}
    contiguous = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
    facts["sha256"] = _checksum(contiguous, facts)
    content = save(contiguous, metadata=facts)
    write_atomically(path, lambda p: p.write_bytes(content))


def load_tensors(path: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what `save_tensors` wrote; raise `FileFormatError` as `load_state` does."""
    facts, tensors = _read(path)
    if (facts.get("format"), facts.get("version")) != (_FORMAT, _VERSION):
        raise FileFormatError(f"{path} is not a checkpoint of this version; delete it")
    if facts.get("fingerprint") != fingerprint:
        raise FileFormatError(
            f"checkpoint {path} belongs to other data, settings or another seed; begin anew "
            "without --resume, or with another `checkpoint`"
        )
    if facts.pop("sha256", None) != _checksum(tensors, facts):
        raise DamagedFileError(f"checkpoint {path} is damaged (its checksum is wrong); delete it")
    return tensors, facts


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    if path.is_dir():
        raise FileFormatError(f"checkpoint {path} is a folder; give the path of a file")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return dict(file.metadata() or {}), tensors
    except (SafetensorError, OSError) as error:
        raise DamagedFileError(f"checkpoint {path} is damaged ({error}); delete it") from error


def _checksum(tensors: dict[str, Tensor], facts: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _below(tensors: dict[str, Tensor], folder: str) -> dict[str, Tensor]:
    prefix = f"{folder}/"
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
