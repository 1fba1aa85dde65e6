"""JRNGC: one network whose Jacobian is sparse (Zhou et al., 2024)."""

from collections.abc import Sequence
from math import ceil, log
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least, windows_of
from causalformer.data.windows import all_to_train
from causalformer.training import FixedSteps, train

_BATCH: Final = 128
_CHANCES: Final = 20


class JRNGC(Baseline):
    """Neural Granger causality by a penalty on the Jacobian (Zhou et al., ICML 2024).

    Written from the published description; no code of the authors was used.

    One residual network predicts all series from the last `max_lag` slots of all. Its loss is the
    squared error plus λ times the sum of ``|∂ effect / ∂ cause at a lag|``, averaged over the
    samples. The mean absolute derivative over all samples, at the lag where it is largest, is the
    score of a pair, and that lag is its lag.

    Parameters
    ----------
    max_lag : int
        Lags that the network sees.
    hidden : int
        Width of the network.
    strength : float
        λ in units of ``√(log(inputs) / samples)``, the order of what noise does to a derivative.
    n_steps : int
        Training steps, of 128 samples each.
    random_state : int
        Seed of the first weights, the order of the samples, and the surrogates.

    Attributes
    ----------
    threshold_ : float
        Score above which a pair is an edge.

    Notes
    -----
    The authors report areas under curves and give no rule for a graph. Here the network is trained
    again on surrogates, series with the same spectra but random phases, so that none can predict
    another; the highest score between two of them is what chance can do, and pairs above it are
    edges. With few series there are several surrogates, for at least 20 such pairs: an absent edge
    should be found with a chance of about 1 in 20 or less, if surrogates behave as absent edges.
    No truth is used.

    DEVIATION: the Jacobian is exact, not estimated by random projections, since one residual block
    makes it cheap; λ follows the length of the series, where the authors search it per data set.

    Examples
    --------
    >>> from causalformer.datasets import make_var
    >>> made = make_var(3, 400, density=0.5, random_state=1)
    >>> graph = JRNGC(max_lag=3, n_steps=100).fit(made.series).graph_
    >>> sorted((e.cause, e.effect, e.lag) for e in graph if e.cause != e.effect)
    [('x0', 'x2', 1), ('x1', 'x0', 2), ('x1', 'x2', 1), ('x2', 'x1', 3)]

    All three true edges are found, with their lags; x1 → x0 is false.
    """

    method = "jrngc"

    def __init__(
        self,
        max_lag: int = 5,
        hidden: int = 64,
        strength: float = 1.0,
        n_steps: int = 600,
        random_state: int = 0,
    ) -> None:
        self.max_lag = max_lag
        self.hidden = hidden
        self.strength = strength
        self.n_steps = n_steps
        self.random_state = random_state

    def check_settings(self) -> None:
        """Refuse sizes below one and a negative penalty."""
        super().check_settings()
        at_least("hidden", self.hidden, 1)
        at_least("n_steps", self.n_steps, 1)
        at_least("strength", self.strength, 0)

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Train on the series, and on surrogates for the threshold."""
        n_series = values.shape[1]
        per_lag = self._derivatives(values, segments)
        scores = per_lag.max(-1)
        between = ~np.eye(n_series, dtype=bool)
        rng = np.random.default_rng(self.random_state)
        chance = [
            self._derivatives(without_links(values, segments, rng), segments).max(-1)[between]
            for _ in range(ceil(_CHANCES / max(1, between.sum())))
        ]
        self.threshold_ = float(np.concatenate(chance).max(initial=0.0))
        return Findings(scores, scores > self.threshold_, self.max_lag - per_lag.argmax(-1))

    def _derivatives(self, values: FloatArray, segments: Sequence[slice]) -> FloatArray:
        """Train; give the mean absolute derivatives ``[cause, effect, lag]``, the oldest first."""
        generator = torch.Generator().manual_seed(self.random_state)
        windows = windows_of(values, segments, self.max_lag)
        n, n_inputs = len(windows), values.shape[1] * self.max_lag
        weight = self.strength * (log(n_inputs + 1) / n) ** 0.5
        model = ResidualNetwork(values.shape[1], self.max_lag, self.hidden, generator)

        def loss(model: ResidualNetwork, batch: Tensor) -> Tensor:
            predicted, jacobian = model.with_jacobian(batch[:, :, :-1])
            error = (predicted - batch[:, :, -1]).square().sum(-1).mean()
            total: Tensor = error + weight * jacobian.abs().sum((1, 2)).mean()
            return total

        n_epochs = ceil(self.n_steps / ceil(n / _BATCH))
        plan = FixedSteps(0.01, _BATCH, n_epochs, last_rate=0.0005)
        train(model, windows, all_to_train(n), loss, plan, generator)
        with torch.no_grad():
            parts = windows[:, :, :-1].split(_BATCH)
            total = sum(model.with_jacobian(part)[1].abs().sum(0) for part in parts)
        mean = torch.as_tensor(total).double() / n
        return np.asarray(mean.unflatten(1, (-1, self.max_lag)).transpose(0, 1).numpy())


class ResidualNetwork(nn.Module):
    """``y = C (h + D tanh(B h + b)) + c`` with ``h = A x + a``, and its exact Jacobian."""

    def __init__(
        self, n_series: int, max_lag: int, hidden: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.enter = nn.Linear(n_series * max_lag, hidden)
        self.narrow = nn.Linear(hidden, hidden)
        self.widen = nn.Linear(hidden, hidden)
        self.leave = nn.Linear(hidden, n_series)
        with torch.no_grad():
            for weights in self.parameters():
                bound = (weights.shape[-1] if weights.ndim > 1 else hidden) ** -0.5
                weights.uniform_(-bound, bound, generator=generator)

    def forward(self, past: Float[Tensor, "sample cause lag"]) -> Float[Tensor, "sample effect"]:
        """Predict the slot after the past."""
        return self.with_jacobian(past)[0]

    def with_jacobian(
        self, past: Float[Tensor, "sample cause lag"]
    ) -> tuple[Float[Tensor, "sample effect"], Float[Tensor, "sample effect input"]]:
        """Predict, and give the derivatives of the predictions by all inputs."""
        entered = self.enter(past.flatten(1))
        bent = self.narrow(entered).tanh()
        predicted = self.leave(entered + self.widen(bent))
        outer = self.leave.weight @ self.widen.weight
        inner = self.narrow.weight @ self.enter.weight
        slope = 1 - bent.square()
        jacobian = self.leave.weight @ self.enter.weight + (outer * slope[:, None]) @ inner
        return predicted, jacobian


def without_links(
    values: FloatArray, segments: Sequence[slice], rng: np.random.Generator
) -> FloatArray:
    """Give series with the same spectra but random phases: no series can predict another.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((64, 2))
    >>> other = without_links(x, [slice(0, 64)], rng)
    >>> bool(np.allclose(other.var(0), x.var(0))), bool(np.allclose(other, x))
    (True, False)
    """
    surrogate = np.empty_like(values)
    for segment in segments:
        spectrum = np.fft.rfft(values[segment], axis=0)
        n = segment.stop - segment.start
        phases = np.exp(2j * np.pi * rng.random(spectrum.shape))
        phases[[0, *([-1] if n % 2 == 0 else [])]] = 1.0  # real by definition
        surrogate[segment] = np.fft.irfft(spectrum * phases, n, axis=0)
    return surrogate
