"""What is lost when a cause is removed: held-out errors with and without every cause.

For every fold and every removed cause the read-out (channels and straight lags) is fitted again in
closed form on the slots the fold learned from, then judged on the slots it never saw. The kernels
behind the channels stay: they were trained with causes removed at random. Without the refit the
network's own answer for an absent cause is under-trained and invents edges.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer import scratch
from causalformer.detect.samples import Samples
from causalformer.errors import SettingsError
from causalformer.model.channels import ChannelNetwork
from causalformer.parallel import threads

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_CUT = 1e20  # penalty that makes a forbidden weight zero
NUMBERS = 2**24  # channels and columns in memory at a time, if they can be all there are
_PART = 2**20  # else: as many as the processor has at hand
_LEAST_SLOTS = 256  # but so many slots


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
    residual : array of float32 ``[sample, effect]``
        Held-out errors with all causes.
    """

    error: FloatArray
    linear_error: FloatArray
    gain: FloatArray
    gain_error: FloatArray
    residual_correlation: FloatArray
    n_together: FloatArray
    residual: NDArray[np.float32]

    @property
    def better_than_linear(self) -> FloatArray:
        """By which share the error of each effect is below that of the linear read-out."""
        return np.asarray(1 - self.error / np.maximum(self.linear_error, 1e-12))

    @property
    def shared(self) -> float:
        """Mean squared correlation of two series' errors in a slot, beyond that of pure noise."""
        squared = self.residual_correlation**2 - 1 / np.maximum(self.n_together, 1)
        return max(0.0, float(squared[~np.eye(len(squared), dtype=bool)].mean()))


def removal_errors(
    model: ChannelNetwork,
    samples: Samples,
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
    allowed: BoolArray,
    profile: FloatArray,
    n_jobs: int = 1,
) -> RemovalErrors:
    """Refit the read-out of every fold without each cause in turn and compare held-out errors.

    Where values of the cause are missing little can be lost: a sample weighs as much as was seen of
    what the cause means to the effect by the `profile`, ``[cause, effect, lag - 1]``. Folds are
    shared among `n_jobs` threads; the result does not depend on it.
    """

    def of_fold(k: int) -> _FoldErrors:
        return _errors_of_fold(model, k, samples, ridge, lag_weight, allowed, profile)

    with threads(n_jobs, model.n_folds) as share:
        parts = list(share(of_fold, range(model.n_folds)))
    residual = scratch.empty(tuple(samples.now.shape), np.float32)
    for k, part in enumerate(parts):
        residual[samples.fold == k] = part.residual
    correlation, together = errors_together(residual, samples)
    n_counted = np.maximum(samples.observed.sum(0, dtype=torch.float64).cpu().numpy(), 1.0)
    total = np.maximum(sum(part.total for part in parts), 1.0)
    gain = sum(part.gain for part in parts) / total
    products = sum(part.products for part in parts)
    n_pairs = sum(part.n_pairs for part in parts)
    covariance = (products - gain**2 * n_pairs) / total
    return RemovalErrors(
        error=sum(part.error for part in parts) / n_counted,
        linear_error=sum(part.linear_error for part in parts) / n_counted,
        gain=gain,
        gain_error=_standard_error(covariance, total),
        residual_correlation=correlation,
        n_together=together,
        residual=residual,
    )


def errors_together(
    residual: NDArray[np.float32], samples: Samples
) -> tuple[FloatArray, FloatArray]:
    """Correlate the errors of two series in a slot; also count the slots, ``[series, series]``."""
    n_effects = residual.shape[1]
    products, together = (np.zeros((n_effects, n_effects)) for _ in range(2))
    for some in scratch.parts(*residual.shape):
        count = samples.observed[some].cpu().double().numpy()
        counted = count * residual[some]
        products += counted.T @ counted
        together += count.T @ count
    common = products / np.maximum(together, 1.0)
    scale = np.sqrt(np.maximum(np.diag(common), 1e-300))
    return np.clip(common / np.outer(scale, scale), -1.0, 1.0), together


@dataclass(frozen=True, eq=False)
class _FoldErrors:
    """Sums over the held-out slots of one fold; see `RemovalErrors`."""

    residual: NDArray[np.float32]
    error: FloatArray
    linear_error: FloatArray
    gain: FloatArray
    total: FloatArray
    products: FloatArray  # distance, cause, effect
    n_pairs: FloatArray


@torch.no_grad()
def _errors_of_fold(
    model: ChannelNetwork,
    k: int,
    samples: Samples,
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
    allowed: BoolArray,
    profile: FloatArray,
) -> _FoldErrors:
    n_neighbours = int(np.ceil(4 * (samples.n_observed / 100) ** (2 / 9)))
    held_out = samples.fold == k
    readout = _ReadOut(model, k, samples, held_out, ridge, lag_weight, allowed)
    residual = scratch.empty((int(held_out.sum()), model.n_effects), np.float32)
    error, linear_error = np.zeros(model.n_effects), np.zeros(model.n_effects)
    sums = _PairSums(model.n_causes, model.n_effects, n_neighbours, alike=samples.complete)
    (whole,), linear = readout.weights_without([None]), readout.linear_weights()
    for causes in readout.groups_of_causes():
        weights, done = readout.weights_without(causes), 0
        for part in readout.test:
            wrong = readout.residual(part, None, whole)
            count = samples.observed[part.at].cpu().double().numpy()
            if causes[0] == 0:
                residual[done : (done := done + len(wrong))] = wrong
                error += (count * wrong**2).sum(0)
                linear_error += (count * readout.linear_residual(part, linear) ** 2).sum(0)
            slot = samples.slot[part.at.cpu().numpy()]
            for cause, weight in zip(causes, weights, strict=True):
                grown, seen = readout.residual(part, cause, weight) ** 2 - wrong**2, count
                if not samples.complete:
                    seen = count * samples.seen(cause, profile[cause], model.sources, part.at)
                    grown *= seen
                sums.add(cause, grown, seen, slot)
    return _FoldErrors(
        residual, error, linear_error, sums.gain, sums.total, sums.products, sums.n_pairs
    )


class _PairSums:
    """Sums over slots, taken part by part: of a gain, and of its products in neighbouring slots."""

    def __init__(self, n_causes: int, n_effects: int, n_neighbours: int, *, alike: bool) -> None:
        self.gain, self.total = (np.zeros((n_causes, n_effects)) for _ in range(2))
        shape = (n_neighbours + 1, n_causes, n_effects)
        self.products, self.n_pairs = np.zeros(shape), np.zeros(shape)
        self._alike = alike  # every cause has the same weights
        self._last: dict[int, tuple[FloatArray, FloatArray, IntArray]] = {}

    def add(self, cause: int, grown: FloatArray, weight: FloatArray, slot: IntArray) -> None:
        """Add the slots of a part; those of a cause come in order."""
        self.gain[cause] += grown.sum(0)
        self.total[cause] += weight.sum(0)
        n_new, n_neighbours = len(slot), len(self.products) - 1
        if cause in self._last:
            before = self._last[cause]
            joined = zip(before, (grown, weight, slot), strict=True)
            grown, weight, slot = (np.concatenate(both) for both in joined)
        for distance in range(min(n_neighbours + 1, len(slot))):
            self.products[distance, cause] += _neighbours(grown, slot, distance, n_new)
            if cause == 0 or not self._alike:
                self.n_pairs[distance, cause] += _neighbours(weight, slot, distance, n_new)
            else:
                self.n_pairs[distance, cause] = self.n_pairs[distance, 0]
        self._last[cause] = grown[-n_neighbours:], weight[-n_neighbours:], slot[-n_neighbours:]


def _neighbours(x: FloatArray, slot: IntArray, distance: int, n_new: int) -> FloatArray:
    """Sum the products of ``x[slot, effect]`` in a new slot and in the one so far before it.

    The last `n_new` slots are new.
    """
    first = max(distance, len(slot) - n_new)
    later, earlier = slice(first, None), slice(first - distance, len(slot) - distance)
    adjacent = slot[later] - slot[earlier] == distance
    return np.asarray((adjacent[:, None] * x[later] * x[earlier]).sum(0))


def _standard_error(covariance: FloatArray, n_counted: FloatArray) -> FloatArray:
    """Give a mean's standard error from ``covariance[distance, ...]`` of neighbouring slots."""
    alone, neighbours = covariance[0], covariance[1:]
    weight = 1 - np.arange(1, len(neighbours) + 1) / (len(neighbours) + 1)
    together = alone + 2 * np.tensordot(weight, neighbours, axes=1)
    return np.asarray(np.sqrt(np.maximum(np.maximum(alone, together), 0.0) / n_counted))


@dataclass(frozen=True, eq=False)
class _Part:
    """Some slots, and what the read-out takes from them."""

    at: Int[Tensor, " slot"]
    now: Float[Tensor, "slot effect"]
    observed: Float[Tensor, "slot effect"] | None  # None: all of them
    straight: Float[Tensor, "*effect slot column"]
    summed: Float[Tensor, "slot effect channel"]


class _Parts:
    """All training or all held-out slots, part by part; if there is one part only it is kept."""

    def __init__(self, model: ChannelNetwork, k: int, samples: Samples, at: BoolArray) -> None:
        per_slot = model.n_effects * (model.n_channels + model.n_causes * model.max_lag)
        slots = torch.from_numpy(np.flatnonzero(at)).to(samples.past.device)
        self._model, self._k, self._samples = model, k, samples
        at_once = NUMBERS if len(slots) * per_slot <= NUMBERS else _PART
        self._slots = slots.split(max(_LEAST_SLOTS, at_once // per_slot))
        self._only = self._part(self._slots[0]) if len(self._slots) == 1 else None

    def __iter__(self) -> Iterator[_Part]:
        return map(self._part, self._slots) if self._only is None else iter([self._only])

    def _part(self, slots: Tensor) -> _Part:
        model, samples = self._model, self._samples
        past = samples.past[slots]
        return _Part(
            slots,
            samples.now[slots],
            None if samples.complete else samples.observed[slots],
            model.straight(past),
            model.channels_of_fold(past, self._k),
        )


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
        self.model, self.k = model, k
        self.train = _Parts(model, k, samples, ~held_out)
        self.test = _Parts(model, k, samples, held_out)
        if samples.complete:
            n_train = torch.full_like(samples.now[0, :1], int((~held_out).sum()))  # for all effects
        else:  # a series may be missing in all of them
            n_train = samples.observed[torch.from_numpy(~held_out)].sum(0).clamp(min=1)
        self.straight_gram = _total(_straight_gram(part) for part in self.train)
        self.straight_now = _total(_straight_now(part) for part in self.train)
        weight = lag_weight.repeat(model.n_causes)
        weight = torch.cat([weight, torch.full_like(weight[:1], 1e-6)]) * ridge
        self.shrink = weight * n_train[:, None]  # effect, column
        if not allowed.all():
            cut = torch.from_numpy(~allowed).transpose(0, 1).flatten(1).to(weight.device)
            self.shrink = self.shrink.repeat(model.n_effects // len(self.shrink), 1)
            self.shrink[:, :-1].masked_fill_(cut, _CUT)
        self.channel_shrink = ridge * n_train[:, None]

    def groups_of_causes(self) -> list[range]:
        """Cut the causes into groups whose equations fit into memory at once."""
        n_columns = self.model.n_channels + self.shrink.shape[1]
        at_once = max(1, NUMBERS // (self.model.n_effects * n_columns**2))
        n_causes = self.model.n_causes
        return [range(i, min(i + at_once, n_causes)) for i in range(0, n_causes, at_once)]

    def residual(
        self, part: _Part, cause: int | None, weights: Float[Tensor, "effect column one"]
    ) -> FloatArray:
        """Give the errors ``[slot, effect]`` without a cause, by the weights for that."""
        wrong = part.now - self._predicted(cause, weights.to(part.now), part)
        return np.asarray(wrong.cpu().double().numpy())

    def _predicted(
        self, cause: int | None, weights: Float[Tensor, "effect column one"], part: _Part
    ) -> Float[Tensor, "slot effect"]:
        n_channels, kept = self.model.n_channels, self._columns_without(cause)
        bent = self._hidden_without(cause, part) @ weights[:, :n_channels]
        straight = weights.new_zeros(len(weights), self.shrink.shape[1])
        straight[:, kept] = weights[:, n_channels:, 0]
        return bent[..., 0].T + _read(part.straight, straight)

    def linear_weights(self) -> Float[Tensor, "effect column"]:
        """Fit the straight lags alone, all causes."""
        gram = self.straight_gram + torch.diag_embed(self.shrink.double())
        factor = torch.linalg.cholesky(gram)
        return torch.cholesky_solve(self.straight_now[..., None], factor)[..., 0]

    def linear_residual(self, part: _Part, weights: Float[Tensor, "effect column"]) -> FloatArray:
        """Give the errors ``[slot, effect]`` of the straight lags alone."""
        wrong = part.now - _read(part.straight, weights.to(part.now))
        return np.asarray(wrong.cpu().double().numpy())

    def weights_without(
        self, causes: Sequence[int | None]
    ) -> list[Float[Tensor, "effect column one"]]:
        """Fit the read-out without each cause in turn; None is without none."""
        equations = [self._equations_without(cause) for cause in causes]
        for part in self.train:
            for cause, (gram, target) in zip(causes, equations, strict=True):
                self._add(part, cause, gram, target)
        return [self._solved(gram, target) for gram, target in equations]

    def _equations_without(
        self, cause: int | None
    ) -> tuple[Float[Tensor, "effect column column"], Float[Tensor, "effect column"]]:
        """Set up the normal equations; what concerns channels is left zero."""
        n_channels, kept = self.model.n_channels, self._columns_without(cause)
        n_columns = n_channels + len(kept)
        gram = self.straight_gram.new_zeros(self.model.n_effects, n_columns, n_columns)
        target = self.straight_gram.new_zeros(self.model.n_effects, n_columns)
        gram[:, n_channels:, n_channels:] = self.straight_gram[:, kept][..., kept]
        target[:, n_channels:] = self.straight_now[:, kept]
        gram.diagonal(dim1=1, dim2=2)[:, n_channels:] += self.shrink[:, kept]
        return gram, target

    def _add(self, part: _Part, cause: int | None, gram: Tensor, target: Tensor) -> None:
        """Add what the channels have in common with each other, the columns and the effects."""
        n_channels, kept = self.model.n_channels, self._columns_without(cause)
        hidden = self._hidden_without(cause, part)
        learned = hidden if part.observed is None else hidden * part.observed.T[..., None]
        gram[:, :n_channels, :n_channels] += learned.mT @ hidden
        gram[:, :n_channels, n_channels:] += (learned.mT @ part.straight)[..., kept]
        target[:, :n_channels] += (learned * part.now.T[..., None]).sum(1)

    def _solved(self, gram: Tensor, target: Tensor) -> Float[Tensor, "effect column one"]:
        n_channels = self.model.n_channels
        gram[:, n_channels:, :n_channels] = gram[:, :n_channels, n_channels:].mT
        gram.diagonal(dim1=1, dim2=2)[:, :n_channels] += self.channel_shrink
        factor, failed = torch.linalg.cholesky_ex(gram)
        if failed.any():
            raise SettingsError(
                "the trained network gives no usable channels; lower learning_rate or raise ridge"
            )
        return torch.cholesky_solve(target[..., None], factor)

    def _hidden_without(
        self, cause: int | None, part: _Part
    ) -> Float[Tensor, "effect slot channel"]:
        return torch.nn.functional.silu(self._channels_without(cause, part)).transpose(0, 1)

    def _channels_without(
        self, cause: int | None, part: _Part
    ) -> Float[Tensor, "slot effect channel"]:
        if cause is None:
            return part.summed
        kernel, max_lag = self.model.kernel[cause, :, self.k], self.model.max_lag
        lags = part.straight[..., cause * max_lag : (cause + 1) * max_lag]
        by = "sl,lec->sec" if lags.ndim == 2 else "esl,lec->sec"
        return part.summed - torch.einsum(by, lags, kernel) + self.model.absent[cause, self.k]

    def _columns_without(self, cause: int | None) -> Tensor:
        columns = torch.arange(self.shrink.shape[1], device=self.shrink.device)
        if cause is None:
            return columns
        return columns[columns.div(self.model.max_lag, rounding_mode="floor") != cause]


def _total(tensors: Iterable[Tensor]) -> Tensor:
    return functools.reduce(torch.add, tensors)


def _straight_gram(part: _Part) -> Float[Tensor, "effect column column"]:
    """Products of the columns, one matrix for all effects if they share columns and slots."""
    straight = part.straight
    if part.observed is None:
        return (straight.mT @ straight).double().reshape(-1, *2 * straight.shape[-1:])
    of_effect = straight.expand(part.now.shape[1], *straight.shape[-2:])
    weighted = zip(of_effect, part.observed.T, strict=True)
    return torch.stack([((x * seen[:, None]).T @ x).double() for x, seen in weighted])


def _straight_now(part: _Part) -> Float[Tensor, "effect column"]:
    """Products of the columns with the effects."""
    target = part.now if part.observed is None else part.now * part.observed
    if part.straight.ndim == 2:
        return (part.straight.T @ target).double().T
    return (part.straight.mT @ target.T[..., None]).double()[..., 0]


def _read(
    straight: Float[Tensor, "*effect slot column"], weights: Float[Tensor, "effect column"]
) -> Float[Tensor, "slot effect"]:
    if straight.ndim == 2:
        return straight @ weights.T
    return (straight @ weights[..., None])[..., 0].T
