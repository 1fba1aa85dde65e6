"""Networks with sparse inputs: group penalties, proximal steps, and the choice of the penalty.

The networks of all effects are trained together, yet do not interact: every parameter has the
effect as its first axis, and the loss is a sum over effects.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from causalformer.data.windows import all_to_train
from causalformer.training import FixedSteps, train

Weights = Float[Tensor, "effect hidden cause lag"]
Amount = float | Float[Tensor, " effect"]
Prox = Callable[[Tensor, Amount], Tensor]

# ------------------------------------------------------------------------------ penalties


def shrink(weights: Weights, dims: tuple[int, ...], amount: Amount) -> Weights:
    """Shorten every group of weights by `amount`, to zero at most; `dims` span a group.

    Examples
    --------
    >>> shrink(torch.tensor([3.0, 4.0]).reshape(1, 2, 1, 1), (1,), 1.0).flatten().tolist()
    [2.4..., 3.2...]
    """
    length = weights.norm(dim=dims, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    per_effect = torch.as_tensor(amount, dtype=weights.dtype).reshape(-1, 1, 1, 1)
    kept: Tensor = (1 - per_effect / length).clamp_min(0)
    return weights * kept


def prox_group(weights: Weights, amount: Amount) -> Weights:
    """Apply the prox of GL, ``Σ_cause ‖W_cause‖``."""
    return shrink(weights, (1, 3), amount)


def prox_sparse_group(weights: Weights, amount: Amount) -> Weights:
    """Apply the prox of GSGL, ``Σ_cause (‖W_cause‖ + Σ_lag ‖W_cause,lag‖)``."""
    return prox_group(shrink(weights, (1,), amount), amount)


def prox_hierarchical(weights: Weights, amount: Amount) -> Weights:
    """Apply the prox of H, ``Σ_cause Σ_s ‖W_cause, the s oldest lags‖``; the oldest come first.

    The groups are nested, so shrinking them from the smallest to the largest is exact.
    """
    weights = weights.clone()
    for s in range(1, weights.shape[-1] + 1):
        weights[..., :s] = prox_group(weights[..., :s], amount)
    return weights


PENALTIES: Final[Mapping[str, Prox]] = MappingProxyType(
    {"GL": prox_group, "GSGL": prox_sparse_group, "H": prox_hierarchical}
)
"""The prox of every penalty, by its name."""

# ------------------------------------------------------------------------------ optimiser


class ProximalGradient(torch.optim.Optimizer):
    """Gradient steps, each followed by the prox of a penalty; with inertia.

    ``w' = prox(w - lr ∇ + momentum (w - w_before), lr)``, the method ISTA if `momentum` is zero
    and iPiano (Ochs et al., 2014) otherwise. A group of parameters with the entry ``prox``, a
    function of weights and step size, is penalised; the others are not.
    """

    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]], lr: float, momentum: float = 0.9
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "prox": None})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Take one step."""
        for group in self.param_groups:
            for weights in group["params"]:
                now = weights.clone()
                before = self.state[weights].get("before", now)
                moved = now.add(now - before, alpha=group["momentum"])
                moved.add_(weights.grad, alpha=-group["lr"])
                weights.copy_(group["prox"](moved, group["lr"]) if group["prox"] else moved)
                self.state[weights]["before"] = now


# ------------------------------------------------------------------------------ training


class SparseNetworks(nn.Module):
    """One network per effect, whose first layer is penalised so that it ignores most causes.

    Attributes
    ----------
    inputs : Parameter ``[effect, hidden, cause, lag]``
        The weights of the first layer.
    """

    inputs: nn.Parameter

    @abstractmethod
    def errors(self, windows: Tensor) -> Float[Tensor, "sample step effect"]:
        """Give the squared error of every prediction; the last step has the longest past."""

    @abstractmethod
    def energy(self) -> Tensor:
        """Give the sum of the squares of all weights that a ridge holds back."""

    @torch.no_grad()
    def norms(self) -> Float[Tensor, "cause effect lag"]:
        """Give the length of the weights of every cause and lag."""
        lengths: Tensor = self.inputs.norm(dim=1)
        return lengths.transpose(0, 1)


Sparse = TypeVar("Sparse", bound=SparseNetworks)


@dataclass(frozen=True)
class SparseFit:
    """How networks with sparse inputs are trained: full batches, a step size, a penalty.

    Attributes
    ----------
    prox : callable
        Prox of the penalty, see `PENALTIES`.
    rate : float
        Step size.
    ridge : float
        Weight of `SparseNetworks.energy`.
    n_steps : int
        Steps per penalty; the first takes `warm_up` more.
    warm_up : int
        Steps from random weights.
    generator : torch.Generator
        Order of the samples, which full batches do not depend on but for rounding.
    stride : int
        Train on every so many windows; all are used to judge.
    """

    prox: Prox
    rate: float
    ridge: float
    n_steps: int
    warm_up: int
    generator: torch.Generator
    stride: int = 1

    def run(self, model: SparseNetworks, windows: Tensor, prox: Prox, n_steps: int) -> None:
        """Train in place."""
        windows = windows[:: self.stride]
        others = [p for p in model.parameters() if p is not model.inputs]
        groups: list[dict[str, Any]] = [
            {"params": [model.inputs], "prox": prox},
            {"params": others},
        ]
        train(
            model,
            windows,
            all_to_train(len(windows)),
            self._loss,
            FixedSteps(self.rate, len(windows), n_steps),
            self.generator,
            optimizer=ProximalGradient(groups, self.rate),
        )

    def fixed(self, model: SparseNetworks, windows: Tensor, strength: float) -> None:
        """Train in place with a given strength of the penalty."""
        self.run(model, windows, self._penalty(strength), self.warm_up + self.n_steps)

    def best(
        self, model: SparseNetworks, windows: Tensor, strengths: Sequence[float]
    ) -> Float[Tensor, " effect"]:
        """Train in place with the best strength for every effect, which is returned.

        From the weakest to the strongest penalty, each network starts from the one before and is
        judged, after a refit of its non-zero inputs without penalty, on the last quarter of the
        samples. The strongest penalty that is within one standard error of the best is taken, and
        the network trained further with it on all samples.
        """
        n_fit = len(windows) - max(1, len(windows) // 4)
        fitted, held = windows[:n_fit], windows[n_fit:]
        errors, states = [], []
        for i, strength in enumerate(sorted(strengths)):
            n_steps = self.n_steps + (0 if i else self.warm_up)
            self.run(model, fitted, self._penalty(strength), n_steps)
            states.append(deepcopy(model.state_dict()))
            errors.append(self.refit(model, fitted).errors(held)[:, -1].detach())
        chosen = strongest_within_one_error(torch.stack(errors))
        every = torch.arange(len(chosen))
        model.load_state_dict(
            {name: torch.stack([s[name] for s in states])[chosen, every] for name in states[0]}
        )
        strength_of = torch.tensor(sorted(strengths))[chosen]
        self.run(model, windows, self._penalty(strength_of), self.n_steps)
        return strength_of

    def _penalty(self, strength: Amount) -> Prox:
        return lambda weights, rate: self.prox(weights, rate * strength)

    def refit(self, model: Sparse, windows: Tensor) -> Sparse:
        """Train a copy briefly without penalty; inputs that are zero stay so."""
        model = deepcopy(model)
        support = model.inputs.detach().norm(dim=1, keepdim=True) > 0
        n_steps = max(1, 2 * self.n_steps // 3)
        self.run(model, windows, lambda weights, _: weights * support, n_steps)
        return model

    def _loss(self, model: SparseNetworks, batch: Tensor) -> Tensor:
        return model.errors(batch).mean((0, 1)).sum() + self.ridge * model.energy()


def strongest_within_one_error(
    errors: Float[Tensor, "penalty sample effect"],
) -> Int[Tensor, " effect"]:
    """Give the last penalty that is not clearly worse than the best one.

    Its mean error may be larger than the least by one standard error of the difference.

    Examples
    --------
    >>> errors = torch.tensor([[1.0, 3.0], [0.0, 3.0], [1.0, 2.5], [2.0, 3.0]])
    >>> strongest_within_one_error(errors[:, :, None])
    tensor([2])
    """
    best = errors.mean(1).argmin(0)
    excess = errors - errors.gather(0, best.expand(1, *errors.shape[1:]))
    error = excess.std(1, correction=0) / errors.shape[1] ** 0.5
    position = torch.arange(len(errors))[:, None]
    return torch.where(excess.mean(1) <= error, position, -1).amax(0)


def stable_rate(inputs: Float[Tensor, "sample input"]) -> float:
    """Give the authors' step size 0.05, or less where the inputs are strongly correlated."""
    largest = torch.linalg.matrix_norm(torch.atleast_2d(inputs.T.cov()), ord=2)
    return min(0.05, 0.5 / float(largest))
