"""The one training loop, used by every network in the project."""

import inspect
import math
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from causalformer.checkpoint import TrainingState, load_state, save_state
from causalformer.config import Settings
from causalformer.data.windows import Split
from causalformer.errors import SettingsError

Network = TypeVar("Network", bound=nn.Module)
Loss = Callable[[Network, Tensor], Tensor]
StopReason = Literal["patience", "max_epochs", "interrupted", "diverged"]


class Plan(Protocol):
    """How long and how fast to train; `TrainingPlan`, `OneCycle` and `FixedSteps` are such."""

    @property
    def batch_size(self) -> int:
        """Samples in a step."""

    @property
    def max_epochs(self) -> int:
        """Passes over the samples, at most."""

    @property
    def patience(self) -> int:
        """Passes in a row without a better loss that are borne; one more ends the training."""

    def rate_at(self, epoch: float) -> float:
        """Give the learning rate after so many epochs."""


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast to train."""

    learning_rate: float
    decay_every: int
    decay_factor: float
    batch_size: int
    max_epochs: int
    patience: int

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Take the part of the settings that concerns training."""
        return cls(**{f.name: getattr(settings, f.name) for f in fields(cls)})

    def rate_at(self, epoch: float) -> float:
        """Give the learning rate after so many epochs: cut in steps."""
        cuts = int(epoch // self.decay_every)
        return self.learning_rate * float(self.decay_factor**cuts)


@dataclass(frozen=True)
class OneCycle:
    """Train for a fixed time: the rate climbs to its top in the first third, then falls to zero."""

    learning_rate: float
    batch_size: int
    max_epochs: int

    @property
    def patience(self) -> int:
        """As long as the training: nothing stops it early."""
        return self.max_epochs

    def rate_at(self, epoch: float) -> float:
        """Give the learning rate after so many epochs.

        Examples
        --------
        >>> plan = OneCycle(0.01, 32, 30)
        >>> [round(plan.rate_at(epoch), 4) for epoch in (0, 10, 20, 30)]
        [0.0004, 0.01, 0.005, 0.0]
        """
        progress, climb = epoch / self.max_epochs, 1 / 3
        if progress < climb:
            return self.learning_rate * (0.52 - 0.48 * math.cos(math.pi * progress / climb))
        fall = (progress - climb) / (1 - climb)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * fall))


@dataclass(frozen=True)
class FixedSteps:
    """Train for a fixed time; the rate falls evenly on a log scale from the first to the last."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    last_rate: float | None = None

    @property
    def patience(self) -> int:
        """As long as the training: nothing stops it early."""
        return self.max_epochs

    def rate_at(self, epoch: float) -> float:
        """Give the learning rate after so many epochs.

        Examples
        --------
        >>> plan = FixedSteps(0.01, 32, 100, last_rate=0.0001)
        >>> [round(plan.rate_at(epoch), 4) for epoch in (0, 50, 100)]
        [0.01, 0.001, 0.0001]
        """
        if self.last_rate is None:
            return self.learning_rate
        fall = self.last_rate / self.learning_rate
        return float(self.learning_rate * fall ** (epoch / self.max_epochs))


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training windows gave."""

    number: int
    train_loss: float
    validation_loss: float
    seconds: float
    is_best: bool


@dataclass(frozen=True)
class History:
    """The course of one training, in order, and why it ended."""

    epochs: tuple[Epoch, ...]
    stopped: StopReason

    @property
    def best(self) -> Epoch:
        """The epoch whose weights were kept."""
        return max((e for e in self.epochs if e.is_best), key=lambda e: e.number)

    @property
    def validated(self) -> bool:
        """Whether samples were held back; if none were, both losses are the training's."""
        return any(epoch.validation_loss != epoch.train_loss for epoch in self.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class CheckpointFile:
    """Where the state of a training is kept, and what it belongs to.

    `fingerprint` names data and settings: a checkpoint of something else is refused. The state is
    written after the first epoch, then every so many seconds, or more often where that takes no
    more than a fiftieth of the time.
    """

    path: Path
    fingerprint: str
    every_seconds: float = 5.0

    @property
    def refits(self) -> Path:
        """Where the refits of a stability run are kept, beside the state of the training."""
        return self._beside("refits.json")

    def block(self, effects: range) -> Path:
        """Where the finished results of a block of effects are kept."""
        return self._beside(f"{effects.start}-{effects.stop}.safetensors")

    def _beside(self, ending: str) -> Path:
        """Name a file by the whole name of this one: `run.1` and `run.2` share nothing."""
        return self.path.with_name(f"{self.path.name}.{ending}")

    def blocks(self) -> list[range]:
        """List the blocks of effects whose results are kept, in order."""
        name = re.compile(rf"{re.escape(self.path.name)}\.(\d+)-(\d+)\.safetensors")
        found = (name.fullmatch(path.name) for path in self.path.parent.glob("*.safetensors"))
        bounds = sorted((int(match[1]), int(match[2])) for match in found if match)
        return [range(*each) for each in bounds if each[0] < each[1]]

    def wait_after(self, cost: float) -> float:
        """Give the seconds until the next writing, if the last one took `cost` seconds.

        Examples
        --------
        >>> file = CheckpointFile(Path("state.safetensors"), "")
        >>> file.wait_after(0.01), file.wait_after(2)
        (0.5, 5.0)
        """
        return min(self.every_seconds, 50 * cost)


class Adam(torch.optim.Adam):
    """Adam as torch has it, without loading torch's compiler: that takes longer than small fits.

    Torch wraps these methods so that its compiler leaves them alone, and imports it to say so.
    """

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


def train(
    model: Network,
    windows: Tensor,
    split: Split,
    loss: Loss[Network],
    plan: Plan,
    generator: torch.Generator,
    *,
    validation_loss: Loss[Network] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    most_per_epoch: int | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
    checkpoint: CheckpointFile | None = None,
) -> History:
    """Fit ``model`` in place with early stopping; the best weights are restored.

    Ctrl-C ends the training after the current step and keeps the best weights so far.

    Parameters
    ----------
    model : nn.Module
        Changed in place; on return it holds the weights of the best validation loss.
    windows : Tensor
        Samples along the first axis, in time order; a view is fine.
    split : Split
        Which of them train and which validate; with none to validate, the last weights are kept.
    loss : callable
        ``loss(model, batch) -> scalar``.
    plan : Plan
        Learning rate, batch size, epochs, patience.
    generator : torch.Generator
        Order of the batches; on the CPU.
    validation_loss : callable, optional
        What decides which weights are the best, if it is not `loss`; of equal ones the last.
    optimizer : torch.optim.Optimizer, optional
        What takes the steps; Adam (AMSGrad) unless given. The plan sets the rate of all its
        groups, in a group with ``rate_scale`` times that.
    most_per_epoch : int, optional
        An epoch ends after so many samples, drawn at random, even if there are more.
    on_epoch : callable, optional
        Receives every `Epoch`: progress lives outside the loop.
    checkpoint : CheckpointFile, optional
        Written now and then; if the file exists, training goes on from it and ends with the same
        weights as an uninterrupted run.

    Returns
    -------
    History
    """
    optimizer = optimizer or Adam(
        model.parameters(), lr=plan.rate_at(0), amsgrad=True, fused=_can_fuse(model)
    )
    state = _begin(model, optimizer, generator, checkpoint)
    save_at = time.monotonic()
    stopped: StopReason = "max_epochs"
    training, validating = (torch.from_numpy(part) for part in (split.train, split.validation))
    validation = windows[validating.to(windows.device)]
    try:
        for number in range(len(state.epochs), plan.max_epochs):
            started = time.monotonic()
            order = training[torch.randperm(len(training), generator=generator)[:most_per_epoch]]
            train_loss = _one_epoch(model, optimizer, windows, order, loss, plan, number)
            if len(validation):
                judged = validation_loss or loss
                held_out = _mean_loss(model, validation, judged, plan.batch_size)
                is_best = held_out <= state.best_loss and math.isfinite(held_out)
            else:
                held_out, is_best = train_loss, math.isfinite(train_loss)
            if is_best:
                state.keep_best(model, held_out)
            seconds = time.monotonic() - started
            epoch = Epoch(number, train_loss, held_out, seconds, is_best)
            state.epochs.append(asdict(epoch))
            if on_epoch:
                on_epoch(epoch)
            if not math.isfinite(held_out):
                stopped = "diverged"
                break
            if number - state.best_epoch > plan.patience:
                stopped = "patience"
                break
            if checkpoint and time.monotonic() >= save_at:
                began = time.monotonic()
                save_state(
                    checkpoint.path, checkpoint.fingerprint, state, model, optimizer, generator
                )
                now = time.monotonic()
                save_at = now + checkpoint.wait_after(now - began)
    except KeyboardInterrupt:
        stopped = "interrupted"
    if state.best_weights is None:
        if stopped == "interrupted":
            raise KeyboardInterrupt
        raise SettingsError(
            "training diverged in the first epoch; lower learning_rate or check the data's scale"
        )
    model.load_state_dict(state.best_weights)
    return History(tuple(Epoch(**e) for e in state.epochs), stopped)


def _can_fuse(model: nn.Module) -> bool:
    return all(p.device.type in ("cpu", "cuda") for p in model.parameters())


def _begin(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    checkpoint: CheckpointFile | None,
) -> TrainingState:
    if checkpoint and checkpoint.path.exists():
        return load_state(checkpoint.path, checkpoint.fingerprint, model, optimizer, generator)
    return TrainingState()


def _one_epoch(
    model: Network,
    optimizer: torch.optim.Optimizer,
    windows: Tensor,
    order: Tensor,
    loss: Loss[Network],
    plan: Plan,
    number: int,
) -> float:
    """Pass once over the training windows in a random order; give the mean loss."""
    model.train()
    total = torch.zeros((), device=windows.device)
    batches = order.to(windows.device).split(plan.batch_size)
    for done, chosen in enumerate(batches):
        rate = plan.rate_at(number + done / len(batches))
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate_scale", 1.0)
        optimizer.zero_grad(set_to_none=True)
        value = loss(model, windows[chosen])
        value.backward()
        optimizer.step()
        total += value.detach() * len(chosen)
    return float(total) / len(order)


@torch.no_grad()
def _mean_loss(model: Network, windows: Tensor, loss: Loss[Network], batch_size: int) -> float:
    model.eval()
    total = sum(loss(model, batch).item() * len(batch) for batch in windows.split(batch_size))
    return total / len(windows)
