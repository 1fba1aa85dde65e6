"""What is lost when a cause is removed: held-out errors with and without every cause.

For every fold and every removed cause the read-out (channels and straight lags) is fitted again in
closed form on the slots the fold learned from, then judged on the slots it never saw. The kernels
behind the channels stay: they were trained with causes removed at random. Without the refit the
network's own answer for an absent cause is under-trained and invents edges.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.errors import SettingsError
from causalformer.model.channels import ChannelNetwork

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RemovalErrors:
    """Held-out squared errors; matrices are ``[cause, effect]``.

    Attributes
    ----------
    error : array ``[effect]``
        Mean squared error with all causes.
    linear_error : array ``[effect]``
        The same of a linear read-out of all lags, without the channels.
    gain, gain_error : array ``[cause, effect]``
        By how much the squared error grows without a cause, and the standard error of that mean.
        Where series have a long memory neighbouring slots go wrong together; the standard error
        counts that (Newey and West), and is never below that of independent slots.
    residual_correlation : array ``[series, series]``
        Correlation of the held-out errors of two series in the same slot.
    """

    error: FloatArray
    linear_error: FloatArray
    gain: FloatArray
    gain_error: FloatArray
    residual_correlation: FloatArray
    n_slots: int

    @property
    def better_than_linear(self) -> FloatArray:
        """By which share the error of each effect is below that of the linear read-out."""
        return np.asarray(1 - self.error / np.maximum(self.linear_error, 1e-12))

    @property
    def shared(self) -> float:
        """Mean squared correlation of two series' errors in a slot, beyond that of pure noise."""
        off_diagonal = ~np.eye(len(self.residual_correlation), dtype=bool)
        squared = float((self.residual_correlation[off_diagonal] ** 2).mean())
        return max(0.0, squared - 1 / self.n_slots)


@torch.no_grad()
def removal_errors(
    model: ChannelNetwork,
    past: Float[Tensor, "slot cause lag"],
    now: Float[Tensor, "slot effect"],
    fold: NDArray[np.int64],
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
) -> RemovalErrors:
    """Refit the read-out of every fold without each cause in turn and compare held-out errors."""
    n_slots, n_series = now.shape
    error, linear_error = (np.zeros(n_series) for _ in range(2))
    n_neighbours = int(np.ceil(4 * (n_slots / 100) ** (2 / 9)))
    gain = np.zeros((n_series, n_series))
    products = np.zeros((n_neighbours + 1, n_series, n_series))  # distance, cause, effect
    residuals = np.zeros((n_series, n_series))
    for k in range(model.n_folds):
        held_out = torch.from_numpy(fold == k).to(past.device)
        readout = _ReadOut(model, k, past, now, held_out, ridge, lag_weight)
        residual = readout.held_out_residuals(None)
        residuals += residual.T @ residual
        whole = residual**2
        error += whole.sum(0)
        linear_error += readout.linear_errors().sum(0)
        for cause in range(n_series):
            grown = readout.held_out_residuals(cause) ** 2 - whole
            gain[cause] += grown.sum(0)
            for distance in range(min(n_neighbours + 1, len(grown))):
                products[distance, cause] += (
                    grown[distance:] * grown[: len(grown) - distance]
                ).sum(0)
    gain /= n_slots
    scale = np.sqrt(np.maximum(np.diag(residuals), 1e-300))
    return RemovalErrors(
        error=error / n_slots,
        linear_error=linear_error / n_slots,
        gain=gain,
        gain_error=_standard_error(products / n_slots - gain**2, n_slots),
        residual_correlation=residuals / np.outer(scale, scale),
        n_slots=n_slots,
    )


def _standard_error(covariance: FloatArray, n_slots: int) -> FloatArray:
    """Give a mean's standard error from ``covariance[distance, ...]`` of neighbouring slots."""
    alone, neighbours = covariance[0], covariance[1:]
    weight = 1 - np.arange(1, len(neighbours) + 1) / (len(neighbours) + 1)
    together = alone + 2 * np.tensordot(weight, neighbours, axes=1)
    return np.asarray(np.sqrt(np.maximum(np.maximum(alone, together), 0.0) / n_slots))


class _ReadOut:
    """The closed-form read-out of one fold: channels, straight lags and a constant."""

    def __init__(
        self,
        model: ChannelNetwork,
        k: int,
        past: Tensor,
        now: Tensor,
        held_out: Tensor,
        ridge: float,
        lag_weight: Tensor,
    ) -> None:
        self.model, self.k, self.past = model, k, past
        self.now, self.held_out = now, held_out
        self.n_train = int((~held_out).sum())
        flat = torch.cat([past.flatten(1), torch.ones_like(past[:, 0, :1])], dim=1)
        self.straight = flat  # slot, (cause, lag) and one
        trained = flat[~held_out]
        self.straight_gram = (trained.T @ trained).double()
        self.straight_now = (trained.T @ now[~held_out]).double()
        weight = lag_weight.repeat(model.n_series)
        self.shrink = torch.cat([weight, torch.full_like(weight[:1], 1e-6)]) * ridge * self.n_train
        self.channel_shrink = ridge * self.n_train
        self.summed = model.channels(past)[:, k]  # slot, effect, channel

    def held_out_residuals(self, cause: int | None) -> FloatArray:
        """Fit without a cause; give the errors ``[slot, effect]`` on the held-out slots."""
        hidden = torch.nn.functional.silu(self._channels_without(cause)).transpose(0, 1)
        kept = self._columns_without(cause)
        straight = self.straight[:, kept]
        train, test = hidden[:, ~self.held_out], hidden[:, self.held_out]
        n_channels = hidden.shape[-1]
        gram = torch.empty(
            len(hidden), *2 * (n_channels + len(kept),), dtype=torch.float64, device=hidden.device
        )
        cross = train.transpose(1, 2) @ straight[~self.held_out]
        gram[:, :n_channels, :n_channels] = train.transpose(1, 2) @ train
        gram[:, :n_channels, n_channels:] = cross
        gram[:, n_channels:, :n_channels] = cross.transpose(1, 2)
        gram[:, n_channels:, n_channels:] = self.straight_gram[kept][:, kept]
        diagonal = gram.diagonal(dim1=1, dim2=2)
        diagonal[:, :n_channels] += self.channel_shrink
        diagonal[:, n_channels:] += self.shrink[kept]
        target = torch.cat(
            [
                (train * self.now[~self.held_out].T[..., None]).sum(1).double(),
                self.straight_now[kept].T,
            ],
            dim=1,
        )
        factor, failed = torch.linalg.cholesky_ex(gram)
        if failed.any():
            raise SettingsError(
                "the trained network gives no usable channels; lower learning_rate or raise ridge"
            )
        weights = torch.cholesky_solve(target[..., None], factor).to(test)
        predicted = test @ weights[:, :n_channels]
        predicted = predicted[..., 0].T + straight[self.held_out] @ weights[:, n_channels:, 0].T
        return self._residual(predicted)

    def linear_errors(self) -> FloatArray:
        """Squared errors of the straight lags alone, all causes."""
        gram = self.straight_gram + torch.diag(self.shrink.double())
        weights = torch.linalg.solve(gram, self.straight_now).to(self.now)
        return self._residual(self.straight[self.held_out] @ weights) ** 2

    def _residual(self, predicted: Tensor) -> FloatArray:
        return (self.now[self.held_out] - predicted).double().cpu().numpy()

    def _channels_without(self, cause: int | None) -> Float[Tensor, "slot effect channel"]:
        if cause is None:
            return self.summed
        if self.model.attention is not None:
            removed = torch.zeros_like(self.past[..., 0])
            removed[:, cause] = 1.0
            return self.model.channels(self.past, removed)[:, self.k]
        share = torch.einsum(
            "sl,lec->sec", self.past[:, cause], self.model.kernel[cause, :, self.k]
        )
        return self.summed - share + self.model.absent[cause, self.k]

    def _columns_without(self, cause: int | None) -> Tensor:
        columns = torch.arange(self.straight.shape[1], device=self.straight.device)
        if cause is None:
            return columns
        return columns[columns.div(self.model.max_lag, rounding_mode="floor") != cause]
