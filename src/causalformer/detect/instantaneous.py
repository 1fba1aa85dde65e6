"""Edges within one time slot: where sampling is slower than the dynamics, as in fMRI.

Each series is freed from its own past (one lag). What remains is tested for partial correlation,
and a pair that is linked is oriented by a measure that only a non-Gaussian cause can move
(Hyvärinen and Smith's pairwise likelihood ratio, in its robust form)::

    ρ E[x tanh(y) - tanh(x) y] > 0   if x drives y

With Gaussian noise the measure is zero in both directions, and the edge stays unoriented.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causalformer import scratch
from causalformer.data.windows import slots_with_past
from causalformer.detect.evidence import false_discovery_q

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_ORIENTED_Z = 1.96
_LEAST_TOGETHER = 10  # slots per series
_GLITCH = 5.0  # standard deviations of a normal law
_NUMBERS = 2**20  # values at a time


@dataclass(frozen=True, eq=False)
class InstantaneousEvidence:
    """Links within a slot; all arrays ``[cause, effect]``, the first three symmetric.

    Attributes
    ----------
    p_value, q_value : array
        Test of the partial correlation; q among all pairs.
    partial : array
        The partial correlation.
    direction : array
        z-value of the direction measure: positive if the row drives the column.
    """

    p_value: FloatArray
    q_value: FloatArray
    partial: FloatArray
    direction: FloatArray

    def linked(self, alpha: float, least: float) -> BoolArray:
        """Say which pairs are linked: at most this q-value, at least this squared correlation."""
        return np.asarray((self.q_value <= alpha) & (self.partial**2 >= least))

    @property
    def common(self) -> float:
        """Squared partial correlation that three of four pairs exceed: a hidden driver of all."""
        squared = (self.partial**2)[np.triu_indices(len(self.partial), 1)]
        return float(np.quantile(squared, 0.25, method="lower")) if len(squared) > 1 else 0.0

    @property
    def oriented(self) -> NDArray[np.bool_]:
        """Whether the direction is more than a guess."""
        return np.abs(self.direction) > _ORIENTED_Z


def instantaneous_evidence(
    values: FloatArray, segments: Sequence[slice] | None = None
) -> InstantaneousEvidence:
    """Test all pairs of ``values[slot, series]`` within a slot; NaN is a missing value.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> x = rng.laplace(size=(3000, 3))
    >>> x[:, 1] += 0.5 * x[:, 0]
    >>> found = instantaneous_evidence(x)
    >>> found.q_value < 0.05
    array([[False,  True, False], [ True, False, False], [False, False, False]])
    >>> bool(found.direction[0, 1] > 2)
    True
    """
    slot = slots_with_past(segments or [slice(0, len(values))], 1)
    residual, observed = _without_own_past(values, slot, glitches=False)
    n_together = _n_together(observed)
    found = partial_correlations(residual.T @ residual / n_together, n_together)
    del residual, observed  # long series take much memory
    direction = _direction(*_without_own_past(values, slot, glitches=True))
    return replace(found, direction=direction)


def partial_correlations(correlation: FloatArray, n_together: FloatArray) -> InstantaneousEvidence:
    """Test the partial correlations of what remains of series within a slot; without directions.

    Parameters
    ----------
    correlation : array ``[series, series]``
        Correlation of every pair.
    n_together : array ``[series, series]``
        Slots that it rests on; fewer than in the most of them where values are missing.
    """
    from scipy.stats import t as student

    n_series, n_least = len(correlation), float(n_together.min())
    precision = np.linalg.pinv(_possible(correlation), hermitian=True)
    scale = np.sqrt(np.maximum(np.diag(precision), 1e-12))
    partial = np.clip(-precision / np.outer(scale, scale), -1 + 1e-12, 1 - 1e-12)
    np.fill_diagonal(partial, 0.0)
    freedom = max(n_least - n_series, 3)
    p_value = 2 * student.sf(np.abs(partial) * np.sqrt(freedom / (1 - partial**2)), freedom)
    np.fill_diagonal(p_value, 1.0)
    if n_least < min(float(n_together.max()), _LEAST_TOGETHER * n_series):
        p_value = np.ones_like(p_value)  # too few slots in which two series were observed
    upper = np.triu_indices(n_series, 1)
    q_value = np.ones_like(p_value)
    q_value[upper] = false_discovery_q(p_value[upper])
    q_value = np.minimum(q_value, q_value.T)
    return InstantaneousEvidence(p_value, q_value, partial, np.zeros_like(partial))


def _without_own_past(
    values: FloatArray, slot: IntArray, *, glitches: bool
) -> tuple[FloatArray, BoolArray]:
    """Regress every series on its own last value; give standardised residuals of the slots.

    Also give where there is one: without both values the residual is zero and does not count.
    Unless `glitches` shall stay, they are cut off before.
    """
    residual = scratch.empty((len(slot), values.shape[1]))
    observed = scratch.empty(residual.shape, np.bool_)
    at_once = max(1, _NUMBERS // len(values))
    for first in range(0, values.shape[1], at_once):
        some = slice(first, first + at_once)
        _, exponent = np.frexp(np.nanmax(np.abs(values[:, some]), axis=0))
        scaled = np.ldexp(values[:, some], -exponent)  # exact, and no square can overflow now
        scaled = scaled if glitches else _without_glitches(scaled)
        residual[:, some], observed[:, some] = _residual(scaled, slot)
    return residual, observed


def _residual(values: FloatArray, slot: IntArray) -> tuple[FloatArray, BoolArray]:
    centred = values - np.nanmean(values, axis=0)
    before, now = centred[slot - 1], centred[slot]
    observed = np.isfinite(before) & np.isfinite(now)
    before, now = np.where(observed, before, 0.0), np.where(observed, now, 0.0)
    n_observed = np.maximum(observed.sum(0), 1)
    slope = (before * now).sum(0) / np.maximum((before**2).sum(0), np.finfo(float).tiny)
    residual = now - slope * before
    residual = np.where(observed, residual - residual.sum(0) / n_observed, 0.0)
    spread = np.sqrt((residual**2).sum(0) / n_observed)
    return residual / np.where(spread > 0, spread, 1.0), observed


def _n_together(observed: BoolArray) -> FloatArray:
    """Count the slots in which two series were observed, at least one."""
    at_once = max(1, _NUMBERS // observed.shape[1])
    parts = range(0, len(observed), at_once)
    seen = (observed[first : first + at_once].astype(np.float64) for first in parts)
    return np.maximum(sum(part.T @ part for part in seen), 1.0)


def _possible(correlation: FloatArray) -> FloatArray:
    """Mend a matrix that pairs of different slots made impossible: no negative eigenvalue."""
    size, axes = np.linalg.eigh(correlation)
    if size[0] >= -1e-9:
        return correlation
    mended = (axes * np.maximum(size, 1e-3)) @ axes.T
    scale = np.sqrt(np.diag(mended))
    return np.asarray(mended / np.outer(scale, scale))


def _without_glitches(values: FloatArray) -> FloatArray:
    """Bring values far beyond the middle half of a series to a limit that noise hardly reaches.

    One bad row in all series would otherwise link them all.
    """
    lower, middle, upper = np.nanquantile(values, (0.25, 0.5, 0.75), axis=0)
    reach = _GLITCH * (upper - lower) / 1.349  # quartiles of a normal law are 1.349 apart
    reach = np.where(reach > 0, reach, np.inf)
    return np.clip(values, middle - reach, middle + reach)


def _direction(residual: FloatArray, observed: BoolArray) -> FloatArray:
    """Give the z-value of the direction measure; long tails are its evidence, so none are cut."""
    correlation, skew, square, product = (
        np.zeros((residual.shape[1], residual.shape[1])) for _ in range(4)
    )
    at_once = max(1, _NUMBERS // residual.shape[1])
    for first in range(0, len(residual), at_once):
        rows = slice(first, first + at_once)
        part, bent = residual[rows], np.tanh(residual[rows])
        correlation += part.T @ part
        skew += part.T @ bent - bent.T @ part
        # second moment of x tanh(y) - tanh(x) y, without a [slot, series, series] array
        square += (part**2).T @ bent**2
        product += (part * bent).T @ (part * bent)
    n_together = _n_together(observed)
    correlation /= n_together
    mean = correlation * skew / n_together
    second = correlation**2 * (square + square.T - 2 * product) / n_together
    error = np.sqrt(np.maximum(second - mean**2, 1e-300) / n_together)
    direction = mean / np.maximum(error, 1e-12)
    np.fill_diagonal(direction, 0.0)
    return np.asarray(direction)
