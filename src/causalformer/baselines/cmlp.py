"""cMLP: neural Granger causality by perceptrons with sparse inputs (Tank et al., 2021)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least, windows_of
from causalformer.baselines.proximal import PENALTIES, SparseFit, SparseNetworks, stable_rate
from causalformer.errors import SettingsError

STRENGTHS: Final = tuple(0.02 * 1.5**i for i in range(11))
_WARM_UP: Final = 200


class CMLP(Baseline):
    """Componentwise multilayer perceptrons (Tank et al., 2021, "Neural Granger Causality").

    Each effect is predicted from the last `max_lag` slots of all series by a perceptron of its
    own with one hidden layer. A group penalty on the first layer, minimised by proximal gradient
    steps, sets all weights of a useless cause to zero exactly. An edge is a cause with non-zero
    weights; its score is their length, its lag the one with the longest weights (for "H" after a
    short refit without penalty, as it favours recent lags).

    Parameters
    ----------
    max_lag : int
        Lags that the networks see.
    hidden : int
        Units of the hidden layer of each network.
    penalty : {"H", "GL", "GSGL"}
        Hierarchical (old lags vanish first), group lasso, or sparse group lasso.
    strength : float, optional
        The weight λ of the penalty. If None, chosen for every effect as described below.
    ridge : float
        Weight of the squares of the last layer.
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
    The authors choose no λ but sweep it. Here a path of λ from 0.02 to 1.15 is followed, the
    weights of each λ starting from those of the one before. For each λ the non-zero weights are
    refitted briefly without penalty and judged on the last quarter of the series, since the
    shrunken ones predict best with far too many causes. Per effect, the largest λ is taken whose
    error exceeds the least by no more than one standard error of the difference, and training
    goes on with it on the whole series. No truth enters the rule.

    On generated systems the rule did as well as the usual form, one standard error of the least
    error (mean F1 0.87 for both); it was preferred after the usual form had been seen to lose
    weak edges in some benchmark files.

    DEVIATION: the path goes from small λ to large. From a large λ, all inputs and with them the
    last layer may die, after which no gradient brings them back (an argument, not measured).
    DEVIATION: 16 hidden units in place of 100, inertia (0.9) in the proximal steps, and about
    1400 steps for the whole path where the authors take up to 50 000 for one λ, for speed; their
    sizes were not compared with ours. The step size is theirs (0.05) unless the series are
    strongly correlated.

    Examples
    --------
    >>> from causalformer.datasets import make_var
    >>> made = make_var(3, 400, density=0.5, random_state=1)
    >>> graph = CMLP(max_lag=3, n_steps=20).fit(made.series).graph_
    >>> sorted((e.cause, e.effect, e.lag) for e in graph if e.cause != e.effect)
    [('x0', 'x2', 1), ('x1', 'x2', 1), ('x2', 'x1', 3)]
    """

    method = "cmlp"

    def __init__(
        self,
        max_lag: int = 5,
        hidden: int = 16,
        penalty: str = "H",
        strength: float | None = None,
        ridge: float = 0.01,
        n_steps: int = 60,
        random_state: int = 0,
    ) -> None:
        self.max_lag = max_lag
        self.hidden = hidden
        self.penalty = penalty
        self.strength = strength
        self.ridge = ridge
        self.n_steps = n_steps
        self.random_state = random_state

    def check_settings(self) -> None:
        """Refuse sizes below one, negative weights and penalties without a name."""
        super().check_settings()
        at_least("hidden", self.hidden, 1)
        at_least("n_steps", self.n_steps, 1)
        at_least("ridge", self.ridge, 0)
        at_least("strength", self.strength or 0, 0)
        if self.penalty not in PENALTIES:
            raise SettingsError(f"no penalty {self.penalty!r}; choose among {', '.join(PENALTIES)}")

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give enough slots for three samples to fit and one to judge by."""
        return self.max_lag + 4

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Train the networks of all effects together."""
        generator = torch.Generator().manual_seed(self.random_state)
        windows = windows_of(values, segments, self.max_lag)
        model = Perceptrons(values.shape[1], self.max_lag, self.hidden, generator)
        fit = SparseFit(
            PENALTIES[self.penalty],
            stable_rate(windows[:, :, :-1].flatten(1)),
            self.ridge,
            self.n_steps,
            _WARM_UP,
            generator,
        )
        if self.strength is None:
            self.strengths_ = fit.best(model, windows, STRENGTHS).double().numpy()
        else:
            fit.fixed(model, windows, self.strength)
            self.strengths_ = np.full(values.shape[1], float(self.strength))
        scores = model.norms().norm(dim=-1).double().numpy()
        # the hierarchical penalty favours recent lags, so they are read without it
        judged = fit.refit(model, windows) if self.penalty == "H" else model
        oldest_first = judged.norms()
        return Findings(scores, scores > 0, self.max_lag - oldest_first.argmax(-1).numpy())


class Perceptrons(SparseNetworks):
    """One perceptron per effect: all lags of all causes, one hidden layer with ReLU, one output."""

    def __init__(
        self, n_series: int, max_lag: int, hidden: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        n, fan_in = n_series, n_series * max_lag
        self.inputs = uniform((n, hidden, n, max_lag), fan_in, generator)
        self.bias = uniform((n, hidden), fan_in, generator)
        self.last = uniform((n, hidden), hidden, generator)
        self.offset = uniform((n,), hidden, generator)

    def forward(self, past: Float[Tensor, "sample cause lag"]) -> Float[Tensor, "sample effect"]:
        """Predict the slot after the past, whose oldest slot comes first."""
        weights = self.inputs.flatten(0, 1).flatten(1)
        hidden = torch.addmm(self.bias.flatten(), past.flatten(1), weights.T).relu()
        predicted: Tensor = (hidden.unflatten(1, self.last.shape) * self.last).sum(-1) + self.offset
        return predicted

    def errors(self, windows: Tensor) -> Float[Tensor, "sample step effect"]:
        """Give the squared errors for the last slot of each window."""
        error: Tensor = self(windows[:, :, :-1]) - windows[:, :, -1]
        return error.square()[:, None]

    def energy(self) -> Tensor:
        """Give the sum of squares of the last layer."""
        energy: Tensor = self.last.square().sum()
        return energy


def uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> nn.Parameter:
    """Draw first weights as PyTorch's linear layers do: from ``±1/√fan_in``."""
    return nn.Parameter((2 * torch.rand(shape, generator=generator) - 1) / fan_in**0.5)
