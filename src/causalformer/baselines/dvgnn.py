"""DVGNN, its first stage: links between latent states of one slot and the next (experimental)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least, windows_of
from causalformer.data.windows import all_to_train
from causalformer.detect.clustering import select_by_clusters
from causalformer.errors import SettingsError
from causalformer.training import FixedSteps, train

_BATCH = 1024
_UNITS, _LATENT = 16, 8
_TINY = 1e-4


class DVGNN(Baseline):
    r"""Graph generation of the dynamic variational graph network of Liang et al. (2023).

    **Experimental**, for completeness of comparisons. A shared encoder gives each series at each
    slot the deviations σ of a latent state. With :math:`S = σ_t σ_{t+1}^T` and
    :math:`Q = 2ΦΦ^T`, Φ a free matrix, the link of row and column is

    .. math:: L = \exp\Big(-\Big|\frac{S^2}{S^2 - Q + ε} - \log(2π|S^2 - Q| + ε)\Big|\Big).

    It is trained, as a logit, to tell self-loops from the rest, together with the divergence of
    the latent states from a standard normal law. The score of a pair is its mean link over time,
    row = cause; edges are the higher of two classes of each effect's incoming scores.

    Nothing in the objective rewards a link between two series: off the diagonal, expect chance.

    Parameters
    ----------
    n_epochs : int
        Passes over the transitions.
    learning_rate : float
        Of Adam.
    random_state : int
        Seed of weights, batches and k-means.

    Attributes
    ----------
    graph_ : CausalGraph
        The edges; the method has no lags.
    scores_, edge_scores_ : array ``[cause, effect]``
        The mean links.

    Notes
    -----
    The prior graph holds the self-loops alone, as the authors chose for fMRI, so the series do
    not mix in the encoder. The second stage makes forecasts and no graph.

    DEVIATION: the series are standardised (the authors' are not). Adam with batches of 1024
    transitions for 100 passes stands in for gradient descent with single ones for 300, for speed.
    How the published comparisons read a graph from the links is not documented.

    Examples
    --------
    >>> import numpy as np
    >>> model = DVGNN(n_epochs=5).fit(np.random.default_rng(0).normal(size=(60, 3)))
    >>> model.scores_.shape
    (3, 3)
    """

    method = "dvgnn"

    def __init__(
        self, n_epochs: int = 100, learning_rate: float = 0.01, random_state: int = 0
    ) -> None:
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.random_state = random_state

    def check_settings(self) -> None:
        """Refuse parameters out of their range."""
        at_least("n_epochs", self.n_epochs, 1)
        if not self.learning_rate > 0:
            raise SettingsError(f"learning_rate is {self.learning_rate}; choose it above 0")

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Train the first stage and average its links."""
        generator = torch.Generator().manual_seed(self.random_state)
        windows = windows_of(values, segments, 1)
        n_samples = len(windows)
        model = _LinkModel(values.shape[1], generator)
        train(
            model,
            windows,
            all_to_train(n_samples),
            _loss,
            FixedSteps(self.learning_rate, _BATCH, self.n_epochs),
            generator,
        )
        with torch.no_grad():
            total = sum(model.forward(batch)[0].double().sum(0) for batch in windows.split(_BATCH))
        scores = (torch.as_tensor(total) / n_samples).numpy()
        return Findings(scores, select_by_clusters(scores, 2, 1, self.random_state))


class _LinkModel(nn.Module):
    def __init__(self, n_series: int, generator: torch.Generator) -> None:
        super().__init__()

        def glorot(n_in: int, n_out: int) -> nn.Parameter:
            drawn = 2 * torch.rand(n_in, n_out, generator=generator) - 1
            return nn.Parameter(drawn * (6 / (n_in + n_out)) ** 0.5)

        def bias(size: int) -> nn.Parameter:
            return nn.Parameter(torch.full((size,), 0.01))

        self.entrance = glorot(1, _UNITS)
        self.mean_entrance_bias, self.spread_entrance_bias = bias(_UNITS), bias(_UNITS)
        self.to_mean, self.mean_bias = glorot(_UNITS, _LATENT), bias(_LATENT)
        self.to_spread, self.spread_bias = glorot(_UNITS, _LATENT), bias(_LATENT)
        self.diffusion = glorot(n_series, n_series)

    def forward(
        self, windows: Float[Tensor, "sample series 2"]
    ) -> tuple[Float[Tensor, "sample cause effect"], Tensor]:
        """Give the links from each slot to the next, and the divergence of the latent states."""
        entered = windows.transpose(1, 2)[..., None] * self.entrance[0]
        mean = (entered + self.mean_entrance_bias).relu() @ self.to_mean + self.mean_bias
        spread = (entered + self.spread_entrance_bias).relu() @ self.to_spread + self.spread_bias
        mean, log_spread = mean.sigmoid(), spread.sigmoid()
        sigma = log_spread.exp()  # [sample, slot, series, latent]
        square = (sigma[:, 0] @ sigma[:, 1].transpose(1, 2)).square()
        apart = square - 2 * self.diffusion @ self.diffusion.T
        size = torch.log(2 * torch.pi * apart.abs() + _TINY)
        links = torch.exp(-(square / (apart + _TINY) - size).abs())
        n_series = windows.shape[1]
        inside = 1 + 2 * log_spread - mean.square() - sigma.square()
        divergence = -0.5 / n_series * inside.sum(-1).mean((0, 2)).sum()
        return links, divergence


def _loss(model: _LinkModel, windows: Tensor) -> Tensor:
    links, divergence = model.forward(windows)
    n_series = windows.shape[1]
    self_loops = torch.eye(n_series).expand_as(links)
    rare = torch.tensor(float(n_series - 1))  # others for each self-loop
    told_apart = binary_cross_entropy_with_logits(links, self_loops, pos_weight=rare)
    return told_apart * n_series / (n_series - 1) + divergence
