"""TCDF: attention in convolutional networks, checked by shuffling each cause over time."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad, prelu

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least, windows_of
from causalformer.data.windows import all_to_train
from causalformer.errors import SettingsError
from causalformer.training import FixedSteps, train

_FEW_SERIES = 5  # up to so many, every attention above its start makes a candidate
_START = 1.0  # attention before training


class TCDF(Baseline):
    r"""Temporal causal discovery framework of Nauta, Bucur and Seifert (2019).

    One network per effect predicts it from all series up to the same slot, itself up to the slot
    before. Of cause i, effect j receives

    .. math:: c_{ji}(t) = v_{ji}\,\mathrm{PReLU}_{ji}\Big(b_{ji} + \sum_k w_{jik}\,
        \mathrm{softmax}(a_j)_i\, x_i(t - k)\Big),

    and the prediction is the sum over causes plus a constant. Causes whose attention
    :math:`a_{ji}` stands out are candidates (`candidates_by_gap`). A candidate is an edge if the
    loss, when the cause is shuffled over time, rises by at least the share ``1 - significance`` of
    what training had gained. Its lag is the tap with the largest weight.

    Parameters
    ----------
    max_lag : int
        The largest lag of a cause; the kernel has one tap more, the lag 0. The lags of a series
        with itself go from 1 to ``max_lag + 1``.
    significance : float
        A candidate is kept if at most this share of the gain is left when it is shuffled; the
        lower, the fewer edges.
    n_epochs : int
        Steps of training, each over the whole series.
    learning_rate : float
        Of Adam.
    n_permutations : int
        Shufflings over which the loss is averaged.
    random_state : int
        Seed of the weights and of the shuffling.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges. An edge of lag 0 acts within the slot; it may be found in both directions.
    scores_, edge_scores_ : array ``[cause, effect]``
        The share of the gain that is lost when the cause is shuffled.
    attention_ : array ``[cause, effect]``
        The attention after training, before the softmax; 1 at the start.

    Notes
    -----
    The settings are the authors' defaults for all data. DEVIATION: the series are standardised,
    as the attention's distance from its start depends on their scale. The first
    ``max_lag + 1`` slots of a segment are not predicted, where the authors put zeros before them.
    There is one convolution, the authors' default (their hidden layers are not offered). If no
    attention reaches its start, there are no candidates. One shuffling is the published procedure;
    averaging ten changed nothing on generated systems.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> for t in range(2, 300):
    ...     x[t] += [0.8 * x[t - 1, 0], np.tanh(x[t - 2, 0])]
    >>> print(TCDF(n_epochs=300).fit(x).graph_)
    CausalGraph(2 series, 2 edges)
      x0 → x0 (lag 1, score 1...)
      x0 → x1 (lag 2, score 1...)
    """

    method = "tcdf"

    def __init__(
        self,
        max_lag: int = 3,
        significance: float = 0.8,
        n_epochs: int = 1000,
        learning_rate: float = 0.01,
        n_permutations: int = 1,
        random_state: int = 0,
    ) -> None:
        self.max_lag = max_lag
        self.significance = significance
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.n_permutations = n_permutations
        self.random_state = random_state

    def check_settings(self) -> None:
        """Refuse parameters out of their range."""
        at_least("max_lag", self.max_lag, 0)
        at_least("n_epochs", self.n_epochs, 1)
        at_least("n_permutations", self.n_permutations, 1)
        if not 0 < self.significance <= 1:
            raise SettingsError(
                f"significance is {self.significance}; choose a share above 0 and up to 1"
            )
        if not self.learning_rate > 0:
            raise SettingsError(f"learning_rate is {self.learning_rate}; choose it above 0")

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give two slots more than the kernel with its shift by one."""
        return self.max_lag + 3

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Train one network per effect, then shuffle every cause."""
        generator = torch.Generator().manual_seed(self.random_state)
        n_taps = self.max_lag + 1
        windows = windows_of(values, segments, n_taps)
        n_samples = len(windows)
        networks = _Networks(values.shape[1], n_taps, generator)
        plan = FixedSteps(self.learning_rate, n_samples, self.n_epochs)
        with torch.no_grad():
            first = networks.losses(windows)
        adam = torch.optim.Adam(networks.parameters(), lr=self.learning_rate, fused=True)
        everything = all_to_train(n_samples)
        train(networks, windows, everything, _total_loss, plan, generator, optimizer=adam)

        rng = np.random.default_rng(self.random_state)
        lost = torch.zeros(values.shape[1], values.shape[1])
        with torch.no_grad():
            last = networks.losses(windows)
            for _ in range(self.n_permutations):
                shuffled = windows_of(values[rng.permutation(len(values))], segments, n_taps)
                lost += (networks.losses_without(windows, shuffled) - last) / self.n_permutations
        gain = first - last
        scores = torch.where(gain > 0, lost / gain, 0.0).double().numpy()
        self.attention_ = networks.attention.detach().T.double().numpy()
        candidates = np.stack([candidates_by_gap(a) for a in self.attention_.T], axis=1)
        adjacency = candidates & (scores >= 1 - self.significance)
        lags = lags_of_kernels(networks.kernel.detach().transpose(0, 1).double().numpy())
        return Findings(scores, adjacency, lags)


class _Networks(nn.Module):
    """All networks side by side; their weights are ``[effect, cause]``, taps oldest first."""

    def __init__(self, n_series: int, n_taps: int, generator: torch.Generator) -> None:
        super().__init__()

        def uniform(*shape: int, bound: float) -> nn.Parameter:
            return nn.Parameter((2 * torch.rand(shape, generator=generator) - 1) * bound)

        n, narrow, wide = n_series, n_taps**-0.5, n_series**-0.5
        self.attention = nn.Parameter(torch.full((n, n), _START))
        self.kernel = nn.Parameter(0.1 * torch.randn(n, n, n_taps, generator=generator))
        self.kernel_bias = uniform(n, n, bound=narrow)
        self.slope = nn.Parameter(torch.full((n, n), 0.25))
        self.weight = uniform(n, n, bound=wide)
        self.bias = uniform(n, bound=wide)

    def felt(
        self, windows: Float[Tensor, "sample cause slot"]
    ) -> Float[Tensor, "cause effect sample"]:
        """Give every cause as each effect feels it, before the weights of the sum."""
        n_series = len(self.bias)
        own = torch.eye(n_series, dtype=torch.bool)[..., None]
        later, now = pad(self.kernel, (0, 1)), pad(self.kernel, (1, 0))
        taps = torch.where(own, later, now) * self.attention.softmax(-1)[..., None]
        seen = torch.baddbmm(
            self.kernel_bias.T[..., None], taps.transpose(0, 1), windows.permute(1, 2, 0)
        )
        channels = seen.reshape(1, n_series**2, -1)
        return prelu(channels, self.slope.T.flatten()).reshape(seen.shape)

    def residuals(
        self,
        windows: Float[Tensor, "sample series slot"],
        felt: Float[Tensor, "cause effect sample"],
    ) -> Float[Tensor, "effect sample"]:
        """Give what the networks do not predict."""
        predicted = torch.bmm(self.weight[:, None], felt.transpose(0, 1)).squeeze(1)
        return windows[..., -1].T - predicted - self.bias[:, None]

    def losses(self, windows: Float[Tensor, "sample series slot"]) -> Float[Tensor, " effect"]:
        """Give the mean squared error of every effect."""
        return self.residuals(windows, self.felt(windows)).square().mean(-1)

    def losses_without(
        self,
        windows: Float[Tensor, "sample series slot"],
        shuffled: Float[Tensor, "sample series slot"],
    ) -> Float[Tensor, "cause effect"]:
        """Give the mean squared error of every effect with one cause shuffled at a time.

        Contributions add up, so each is exchanged for the one of the shuffled series.
        """
        felt = self.felt(windows)
        exchanged = (felt - self.felt(shuffled)) * self.weight.T[..., None]
        return (self.residuals(windows, felt) + exchanged).square().mean(-1)


def _total_loss(networks: _Networks, windows: Tensor) -> Tensor:
    return networks.losses(windows).sum()


def candidates_by_gap(attention: FloatArray) -> NDArray[np.bool_]:
    """Tell which causes of one effect stand out by their attention.

    Of up to five causes, those above the start, 1. Of more, those before the largest gap in
    descending order that leaves at least two and no more than half of them; gaps below 1 do not
    count. If there is no such gap, the first alone; if even that is below 1, none.

    Examples
    --------
    >>> candidates_by_gap(np.array([0.9, 1.2, 1.0]))
    array([False,  True, False])
    >>> candidates_by_gap(np.array([2.0, 0.4, 1.9, 1.2, 1.1, 0.3, 0.5])).nonzero()[0]
    array([0, 2])
    """
    n = len(attention)
    if n <= _FEW_SERIES:
        return attention > _START
    order = np.argsort(-attention, kind="stable")
    ranked = attention[order]
    gaps = (ranked[:-1] - ranked[1:])[ranked[:-1] >= _START]
    allowed = [p for p in np.argsort(-gaps, kind="stable") if 0 < p < (n - 1) / 2]
    chosen = np.zeros(n, dtype=np.bool_)
    if len(gaps):
        chosen[order[: (allowed[0] if allowed else 0) + 1]] = True
    return chosen


def lags_of_kernels(kernel: FloatArray) -> NDArray[np.int64]:
    """Read the lags ``[cause, effect]`` from kernels ``[cause, effect, tap]``, oldest tap first.

    The lag is that of the largest weight, of two equal ones 0; with itself, a series is seen one
    slot later.

    Examples
    --------
    >>> lags_of_kernels(np.array([[[0.1, -0.9, 0.2]]])).item()
    2
    """
    size = np.abs(kernel)[..., ::-1]
    lags: NDArray[np.int64] = size.argmax(-1)
    lags[(size == size.max(-1, keepdims=True)).sum(-1) > 1] = 0
    lags[np.diag_indices(len(lags))] += 1
    return lags
