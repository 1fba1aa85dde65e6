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

from causalformer.detect.samples import Samples
from causalformer.errors import SettingsError
from causalformer.model.channels import ChannelNetwork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_CUT = 1e20  # penalty that makes a forbidden weight zero


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
    n_together : array ``[series, series]``
        Slots that count for both series; on the diagonal, for the one.
    """

    error: FloatArray
    linear_error: FloatArray
    gain: FloatArray
    gain_error: FloatArray
    residual_correlation: FloatArray
    n_together: FloatArray

    @property
    def better_than_linear(self) -> FloatArray:
        """By which share the error of each effect is below that of the linear read-out."""
        return np.asarray(1 - self.error / np.maximum(self.linear_error, 1e-12))

    @property
    def shared(self) -> float:
        """Mean squared correlation of two series' errors in a slot, beyond that of pure noise."""
        squared = self.residual_correlation**2 - 1 / np.maximum(self.n_together, 1)
        return max(0.0, float(squared[~np.eye(len(squared), dtype=bool)].mean()))


@torch.no_grad()
def removal_errors(
    model: ChannelNetwork,
    samples: Samples,
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
    allowed: BoolArray,
    profile: FloatArray,
) -> RemovalErrors:
    """Refit the read-out of every fold without each cause in turn and compare held-out errors.

    Where values of the cause are missing little can be lost: a sample weighs as much as was seen of
    what the cause means to the effect by the `profile`, ``[cause, effect, lag - 1]``.
    """
    n_series = samples.n_series
    counts = samples.observed.double().cpu().numpy()
    n_neighbours = int(np.ceil(4 * (samples.n_observed / 100) ** (2 / 9)))
    error, linear_error = (np.zeros(n_series) for _ in range(2))
    gain, total, products_now, together = (np.zeros((n_series, n_series)) for _ in range(4))
    n_pairs, products = (np.zeros((n_neighbours + 1, n_series, n_series)) for _ in range(2))
    for k in range(model.n_folds):
        held_out = samples.fold == k
        readout = _ReadOut(model, k, samples, held_out, ridge, lag_weight, allowed)
        count, slot = counts[held_out], samples.slot[held_out]
        residual = readout.held_out_residuals(None)
        products_now += (count * residual).T @ (count * residual)
        together += count.T @ count
        error += (count * residual**2).sum(0)
        linear_error += (readout.linear_errors() * count).sum(0)
        for cause in range(n_series):
            weight = count * samples.seen(cause, profile[cause])[held_out]
            grown = weight * (readout.held_out_residuals(cause) ** 2 - residual**2)
            gain[cause] += grown.sum(0)
            total[cause] += weight.sum(0)
            for distance in range(min(n_neighbours + 1, len(slot))):
                products[distance, cause] += _neighbours(grown, slot, distance)
                n_pairs[distance, cause] += _neighbours(weight, slot, distance)
    n_counted, total = np.maximum(np.diag(together), 1.0), np.maximum(total, 1.0)
    gain /= total
    covariance = (products - gain**2 * n_pairs) / total
    common = products_now / np.maximum(together, 1.0)
    scale = np.sqrt(np.maximum(np.diag(common), 1e-300))
    return RemovalErrors(
        error=error / n_counted,
        linear_error=linear_error / n_counted,
        gain=gain,
        gain_error=_standard_error(covariance, total),
        residual_correlation=np.clip(common / np.outer(scale, scale), -1.0, 1.0),
        n_together=together,
    )


def _neighbours(x: FloatArray, slot: IntArray, distance: int) -> FloatArray:
    """Sum the products of ``x[slot, effect]`` in a slot and in the one so far before it."""
    n = len(slot) - distance
    adjacent = slot[distance:] - slot[:n] == distance
    return np.asarray((adjacent[:, None] * x[distance:] * x[:n]).sum(0))


def _standard_error(covariance: FloatArray, n_counted: FloatArray) -> FloatArray:
    """Give a mean's standard error from ``covariance[distance, ...]`` of neighbouring slots."""
    alone, neighbours = covariance[0], covariance[1:]
    weight = 1 - np.arange(1, len(neighbours) + 1) / (len(neighbours) + 1)
    together = alone + 2 * np.tensordot(weight, neighbours, axes=1)
    return np.asarray(np.sqrt(np.maximum(np.maximum(alone, together), 0.0) / n_counted))


class _ReadOut:
    """The closed-form read-out of one fold: channels, straight lags and a constant."""

    def __init__(
        self,
        model: ChannelNetwork,
        k: int,
        samples: Samples,
        held_out: BoolArray,
        ridge: float,
        lag_weight: Tensor,
        allowed: BoolArray,
    ) -> None:
        past, now = samples.past, samples.now
        self.model, self.k, self.past, self.now = model, k, past, now
        self.held_out = torch.from_numpy(held_out).to(past.device)
        flat = torch.cat([past.flatten(1), torch.ones_like(past[:, 0, :1])], dim=1)
        self.straight = flat  # slot, (cause, lag) and one
        trained, target = flat[~self.held_out], now[~self.held_out]
        self.observed = None if samples.complete else samples.observed[~self.held_out]
        if self.observed is None:
            n_train = torch.full_like(now[0, :1], len(trained))  # one for all effects
            self.straight_gram = (trained.T @ trained).double()[None]
        else:
            n_train = self.observed.sum(0).clamp(min=1)  # a series may be missing in all of them
            target = target * self.observed
            self.straight_gram = torch.stack(
                [((trained * seen[:, None]).T @ trained).double() for seen in self.observed.T]
            )
        self.straight_now = (trained.T @ target).double()
        weight = lag_weight.repeat(model.n_series)
        weight = torch.cat([weight, torch.full_like(weight[:1], 1e-6)]) * ridge
        self.shrink = weight * n_train[:, None]  # effect, column
        if not allowed.all():
            cut = torch.from_numpy(~allowed).transpose(0, 1).flatten(1).to(past.device)
            self.shrink = self.shrink.repeat(len(allowed) // len(self.shrink), 1)
            self.shrink[:, :-1].masked_fill_(cut, _CUT)
        self.channel_shrink = ridge * n_train[:, None]
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
        learned = train if self.observed is None else train * self.observed.T[..., None]
        cross = learned.transpose(1, 2) @ straight[~self.held_out]
        gram[:, :n_channels, :n_channels] = learned.transpose(1, 2) @ train
        gram[:, :n_channels, n_channels:] = cross
        gram[:, n_channels:, :n_channels] = cross.transpose(1, 2)
        gram[:, n_channels:, n_channels:] = self.straight_gram[:, kept][..., kept]
        diagonal = gram.diagonal(dim1=1, dim2=2)
        diagonal[:, :n_channels] += self.channel_shrink
        diagonal[:, n_channels:] += self.shrink[:, kept]
        target = torch.cat(
            [
                (learned * self.now[~self.held_out].T[..., None]).sum(1).double(),
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
        gram = self.straight_gram + torch.diag_embed(self.shrink.double())
        factor = torch.linalg.cholesky(gram)
        weights = torch.cholesky_solve(self.straight_now.T[..., None], factor)[..., 0].to(self.now)
        return self._residual(self.straight[self.held_out] @ weights.T) ** 2

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
