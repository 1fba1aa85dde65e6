"""cLSTM: neural Granger causality by recurrent networks with sparse inputs (Tank et al., 2021)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from causalformer.baselines.cmlp import uniform
from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least, windows_of
from causalformer.baselines.proximal import SparseFit, SparseNetworks, prox_group

STRENGTHS: Final = tuple(0.02 * 2.0**i for i in range(6))
_WARM_UP: Final = 100
_RATE: Final = 0.1
_MOST_WINDOWS: Final = 250


class CLSTM(Baseline):
    """Componentwise long short-term memories (Tank et al., 2021, "Neural Granger Causality").

    Each effect is predicted, one slot ahead, by a recurrent network of its own that reads all
    series. A group lasso on the weights from the inputs to the gates sets all weights of a
    useless cause to zero exactly. An edge is a cause with non-zero weights; its score is their
    length. The method has no lags.

    Parameters
    ----------
    context : int
        Slots that a network reads, from an empty memory, before its last prediction.
    hidden : int
        Size of the memory of each network.
    strength : float, optional
        The weight λ of the penalty. If None, chosen for every effect as in `CMLP`.
    ridge : float
        Weight of the squares of the recurrent and the last weights.
    n_steps : int
        Gradient steps per λ.
    random_state : int
        Seed of the first weights.

    Attributes
    ----------
    strengths_ : array ``[effect]``
        The λ of every effect.

    Notes
    -----
    λ is chosen as in `CMLP`, on a path from 0.02 to 0.64 and by the error of the last
    prediction of each window. No truth is used.

    DEVIATION: 8 units in place of 100, series standardised, every fourth window (of long series
    250 windows) in place of all, and some 500 proximal steps with inertia for the whole path; the
    authors' 20 000 steps for a single λ take hours per data set on a CPU.

    Examples
    --------
    >>> from causalformer.datasets import make_var
    >>> made = make_var(3, 400, density=0.5, max_lag=1, random_state=1)
    >>> graph = CLSTM(context=4, strength=0.3).fit(made.series).graph_
    >>> sorted((e.cause, e.effect) for e in graph if e.cause != e.effect)
    [('x0', 'x2'), ('x1', 'x2'), ('x2', 'x1')]
    """

    method = "clstm"

    def __init__(
        self,
        context: int = 8,
        hidden: int = 8,
        strength: float | None = None,
        ridge: float = 0.01,
        n_steps: int = 40,
        random_state: int = 0,
    ) -> None:
        self.context = context
        self.hidden = hidden
        self.strength = strength
        self.ridge = ridge
        self.n_steps = n_steps
        self.random_state = random_state

    def check_settings(self) -> None:
        """Refuse sizes below one and negative weights."""
        super().check_settings()
        at_least("context", self.context, 1)
        at_least("hidden", self.hidden, 1)
        at_least("n_steps", self.n_steps, 1)
        at_least("ridge", self.ridge, 0)
        at_least("strength", self.strength or 0, 0)

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give enough slots for three windows to fit and one to judge by."""
        return self.context + 4

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Train the networks of all effects together."""
        generator = torch.Generator().manual_seed(self.random_state)
        windows = windows_of(values, segments, self.context)
        model = Memories(values.shape[1], self.hidden, generator)
        stride = max(4, len(windows) // _MOST_WINDOWS)
        fit = SparseFit(prox_group, _RATE, self.ridge, self.n_steps, _WARM_UP, generator, stride)
        if self.strength is None:
            self.strengths_ = fit.best(model, windows, STRENGTHS).double().numpy()
        else:
            fit.fixed(model, windows, self.strength)
            self.strengths_ = np.full(values.shape[1], float(self.strength))
        scores = model.norms()[..., 0].double().numpy()
        return Findings(scores, scores > 0)


class Memories(SparseNetworks):
    """One LSTM per effect, with a linear output at every slot."""

    def __init__(self, n_series: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        n = n_series
        self.inputs = uniform((n, 4 * hidden, n, 1), hidden, generator)
        self.recurrent = uniform((n, hidden, 4 * hidden), hidden, generator)
        self.bias = uniform((n, 1, 4 * hidden), hidden, generator)
        self.last = uniform((n, hidden), hidden, generator)
        self.offset = uniform((n,), hidden, generator)

    def forward(
        self, past: Float[Tensor, "sample cause step"]
    ) -> Float[Tensor, "sample step effect"]:
        """Predict the slot after every slot of the past."""
        n, size = self.last.shape
        weights = self.inputs.flatten(0, 1)[..., 0]
        driven = (past.permute(2, 0, 1) @ weights.T).unflatten(-1, (n, 4 * size)).transpose(1, 2)
        memory = state = past.new_zeros(n, len(past), size)
        states = []
        for drive in driven + self.bias:
            gates = torch.baddbmm(drive, state, self.recurrent)
            forget, write, read = gates[..., : 3 * size].sigmoid().chunk(3, -1)
            memory = forget * memory + write * gates[..., 3 * size :].tanh()
            state = read * memory.tanh()
            states.append((state * self.last[:, None]).sum(-1))
        return torch.stack(states).permute(2, 0, 1) + self.offset

    def errors(self, windows: Tensor) -> Float[Tensor, "sample step effect"]:
        """Give the squared errors for every slot of a window but the first."""
        error: Tensor = self(windows[:, :, :-1]) - windows[:, :, 1:].transpose(1, 2)
        return error.square()

    def energy(self) -> Tensor:
        """Give the sum of squares of the recurrent and the last weights."""
        return self.recurrent.square().sum() + self.last.square().sum()
