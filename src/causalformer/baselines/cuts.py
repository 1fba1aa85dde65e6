"""CUTS: a gate for every lag of every pair, learned with the networks; takes missing values."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least
from causalformer.data.windows import all_to_train, slots_with_past
from causalformer.errors import SettingsError
from causalformer.training import Epoch, FixedSteps, train

_BATCH = 128
_FILL_FROM, _LEARN_ALL_FROM = 0.1, 0.4  # of the training: where phases two and three begin
_COLDEST = 0.1  # temperature of the gates, 1 at first, at the end of phases two and three


class CUTS(Baseline):
    r"""Causal discovery from irregular time series of Cheng et al. (ICLR 2023).

    Every lag of every pair has a gate, open with probability :math:`m = \mathrm{sigmoid}(θ)`. One
    network per effect predicts it from the gated past of all series. Gates and networks minimise

    .. math:: \mathrm{MSE}(\text{gates drawn, network learns})
        + \mathrm{MSE}(\text{gates relaxed, gates learn}) + \frac{λ}{N^2} \sum m.

    A pair is an edge if one of its gates is open with a probability above one half; the most
    probable gives the lag.

    Missing values first repeat the last value. After a tenth of the training they move towards
    what the networks predict for them, and are predicted from; after four tenths they are also
    learned from.

    Parameters
    ----------
    max_lag : int
        Lags with a gate.
    penalty : float, optional
        The weight λ of the open gates. Roughly, a gate stays open if it explains more than
        ``penalty / N`` of the variance of its effect. If None, 0.3, but at least ``6 N / T``.
    n_steps : int
        Steps of training, each with 128 samples (or all, if there are fewer), rounded up to whole
        passes over the series.
    hidden : int
        Units in each of three hidden layers.
    learning_rate, gate_rate : float
        Of Adam for the networks and for the gates; both fall to a tenth.
    update : float
        Share of its way to the prediction that a missing value goes in each pass.
    repo_compat : bool
        Relax the gates as the authors' code does, with m and 1 - m in place of their logarithms:
        a gate that should be shut is still more open than shut in 27 % of the draws.
    random_state : int
        Seed of weights, batches and gates.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges.
    scores_, edge_scores_ : array ``[cause, effect]``
        The largest gate of each pair.
    gates_ : array ``[cause, effect, lag - 1]``
        The probability that each gate is open.

    Notes
    -----
    The authors use one configuration per data set; here all data have the same. Three lags and
    shares of the phases of 10, 30 and 60 % are those of their Lorenz-96 and linear systems. Among
    their penalties (0.1, 0.3, 5), 0.3 is the least that keeps independent series apart; DEVIATION:
    with many or short series it must grow. Of the pairs of autoregressions without any link, one
    draw each, 0.1 joined 25 % (5 series of 200 slots) and 85 % (15 of 200), 0.3 joined 0 and 7 %,
    and ``6 N / T`` joined 0.5 % (15 of 200), 0.2 % (50 of 200) and 4 % (10 of 100). That it must
    grow was seen on a benchmark file (50 series of 200 slots); its size follows from these draws.

    DEVIATION: for speed, 32 hidden units learn at a rate of 1e-3 for 1000 steps (published: 128
    units, 1e-4, 1000 to 4000 steps). Networks and gates take their steps together instead of in
    alternate passes, each with the other held fixed, and with the same random numbers. Missing
    values move at once, not at the end of a pass. A last batch that is not full is used.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> x[2:, 1] = np.tanh(x[:-2, 0]) + 0.1 * x[2:, 1]
    >>> x[50:60, 0] = np.nan
    >>> print(CUTS(n_steps=200, hidden=8, learning_rate=0.01, gate_rate=0.03).fit(x).graph_)
    CausalGraph(2 series, 1 edge)
      x0 → x1 (lag 2, score 0.8...)
    """

    method = "cuts"
    missing_ok = True

    def __init__(
        self,
        max_lag: int = 3,
        penalty: float | None = None,
        n_steps: int = 1000,
        hidden: int = 32,
        learning_rate: float = 1e-3,
        gate_rate: float = 1e-2,
        update: float = 0.01,
        repo_compat: bool = False,
        random_state: int = 0,
    ) -> None:
        self.max_lag = max_lag
        self.penalty = penalty
        self.n_steps = n_steps
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.gate_rate = gate_rate
        self.update = update
        self.repo_compat = repo_compat
        self.random_state = random_state

    def check_settings(self) -> None:
        """Refuse parameters out of their range."""
        super().check_settings()
        at_least("penalty", self.penalty or 0, 0)
        at_least("n_steps", self.n_steps, 1)
        at_least("hidden", self.hidden, 1)
        for option in ("learning_rate", "gate_rate"):
            if not getattr(self, option) > 0:
                raise SettingsError(f"{option} is {getattr(self, option)}; choose it above 0")
        if not 0 <= self.update <= 1:
            raise SettingsError(f"update is {self.update}; choose a share between 0 and 1")

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Learn gates and networks, and fill missing values on the way."""
        generator = torch.Generator().manual_seed(self.random_state)
        slots = torch.as_tensor(slots_with_past(segments, self.max_lag))
        n_samples = len(slots)
        n_batches = -(-n_samples // _BATCH)
        n_epochs = -(-self.n_steps // n_batches)
        rate = self.learning_rate
        model = _GatedNetworks(values.shape[1], self.max_lag, self.hidden, generator)
        groups: list[dict[str, Any]] = [
            {"params": list(model.weights)},
            {"params": [model.logits], "rate_scale": self.gate_rate / rate},
        ]
        chosen = max(0.3, 6 * values.shape[1] / n_samples)
        penalty = chosen if self.penalty is None else self.penalty
        lesson = _Lesson(self, penalty, values, segments, n_epochs, generator)
        train(
            model,
            slots,
            all_to_train(n_samples),
            lesson,
            FixedSteps(rate, _BATCH, n_epochs, last_rate=rate / 10),
            generator,
            optimizer=torch.optim.Adam(groups, lr=rate, fused=True),
            on_epoch=lesson.advance,
        )
        gates = model.logits.detach().sigmoid().double().numpy()
        self.gates_ = gates.transpose(1, 0, 2)[..., ::-1]  # from oldest to newest first
        scores = self.gates_.max(-1)
        return Findings(scores, scores > 0.5, self.gates_.argmax(-1) + 1)


class _GatedNetworks(nn.Module):
    """Gates ``[effect, cause, slot]``, oldest slot first, and one network per effect."""

    def __init__(
        self, n_series: int, max_lag: int, hidden: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_series, n_series, max_lag))
        self.weights = nn.ParameterList()
        for n_in, n_out in pairwise((n_series * max_lag, hidden, hidden, hidden, 1)):
            drawn = torch.rand(n_series, n_in, n_out, generator=generator)
            self.weights.append((2 * drawn - 1) * (6 / (n_in + n_out)) ** 0.5)
            self.weights.append(torch.zeros(n_series, 1, n_out))


class _Lesson:
    """The loss of a batch, in the phase that the training has come to."""

    def __init__(
        self,
        settings: CUTS,
        penalty: float,
        values: FloatArray,
        segments: Sequence[slice],
        n_epochs: int,
        generator: torch.Generator,
    ) -> None:
        self.settings, self.penalty = settings, penalty
        self.filled = torch.as_tensor(hold_last(values, segments), dtype=torch.float32)
        self.missing = torch.as_tensor(np.isnan(values))
        self.n_epochs = n_epochs
        self.generator = generator
        self.done = 0.0

    def advance(self, epoch: Epoch) -> None:
        """Go on to the next pass."""
        self.done = (epoch.number + 1) / self.n_epochs

    def __call__(self, model: _GatedNetworks, slots: Int[Tensor, " sample"]) -> Tensor:
        """Give the loss; move the missing values of the batch."""
        max_lag, n_series = self.settings.max_lag, self.filled.shape[1]
        past = self.filled[slots[:, None] - torch.arange(max_lag, 0, -1)].transpose(1, 2)
        now, missing = self.filled[slots], self.missing[slots]
        weights, logits = list(model.weights), model.logits[:, None]
        uniform = torch.rand(n_series, len(slots), n_series, max_lag, generator=self.generator)
        noise = torch.logit(uniform, eps=1e-6)

        drawn = logits.detach() + noise > 0
        relaxed = relaxed_gates(logits, noise, self._temperature(), self.settings.repo_compat)
        predicted = _predict(weights, past * drawn)
        by_gates = _predict([weight.detach() for weight in weights], past * relaxed)
        counts = torch.ones_like(missing) if self.done >= _LEARN_ALL_FROM else ~missing
        loss = _mean_square(predicted - now, counts) + _mean_square(by_gates - now, counts)

        if self.done >= _FILL_FROM and self.missing.any():
            moved = torch.lerp(now, predicted.detach(), self.settings.update)
            self.filled[slots] = torch.where(missing, moved, now)
        return loss + self.penalty * logits.sigmoid().sum() / n_series**2

    def _temperature(self) -> float:
        bounds = (0.0, _LEARN_ALL_FROM) if self.done < _LEARN_ALL_FROM else (_LEARN_ALL_FROM, 1.0)
        return float(_COLDEST ** ((self.done - bounds[0]) / (bounds[1] - bounds[0])))


def relaxed_gates(logits: Tensor, noise: Tensor, temperature: float, repo_compat: bool) -> Tensor:
    """Draw gates between 0 and 1 that can be differentiated.

    The softmax over ``[log m + g, log(1 - m) + g']`` with Gumbel numbers g, g' is a sigmoid of the
    logit of m plus one logistic number, the difference of the two.

    Examples
    --------
    >>> relaxed_gates(torch.tensor([-2.0, 2.0]), torch.zeros(2), 0.1, repo_compat=False).round()
    tensor([0., 1.])
    """
    level = 2 * logits.sigmoid() - 1 if repo_compat else logits
    return ((level + noise) / temperature).sigmoid()


def _predict(
    weights: Sequence[Tensor], gated: Float[Tensor, "effect sample cause slot"]
) -> Float[Tensor, "sample effect"]:
    x = gated.flatten(2)
    *hidden, last = zip(weights[::2], weights[1::2], strict=True)
    for weight, bias in hidden:
        x = leaky_relu(torch.baddbmm(bias, x, weight), 0.05)
    return torch.baddbmm(last[1], x, last[0]).squeeze(-1).T


def _mean_square(
    error: Float[Tensor, "sample effect"], counts: Bool[Tensor, "sample effect"]
) -> Tensor:
    return (error.square() * counts).sum() / counts.sum().clamp(min=1)


def hold_last(values: FloatArray, segments: Sequence[slice]) -> FloatArray:
    """Repeat the last value of the segment where one is missing; zero if there is none before.

    Examples
    --------
    >>> gappy = np.array([[np.nan], [2.0], [np.nan], [np.nan], [5.0]])
    >>> hold_last(gappy, [slice(0, 3), slice(3, 5)]).ravel()
    array([0., 2., 2., 0., 5.])
    """
    filled = values.copy()
    for segment in segments:
        part = values[segment]
        known = np.where(np.isnan(part), 0, np.arange(len(part))[:, None])
        filled[segment] = np.take_along_axis(part, np.maximum.accumulate(known, axis=0), axis=0)
    return np.nan_to_num(filled)
