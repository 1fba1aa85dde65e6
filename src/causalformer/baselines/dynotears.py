"""DYNOTEARS: a sparse structural VAR whose contemporaneous part has no cycle."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import expm
from scipy.optimize import Bounds, minimize
from threadpoolctl import threadpool_limits

from causalformer.baselines.contract import Baseline, Findings, FloatArray, at_least
from causalformer.baselines.lagged import lagged_rows, largest_of
from causalformer.errors import SettingsError

_LARGEST_PENALTY = 1e16
_FACTOR = 10.0  # of the penalty, while a step takes off less than three quarters of the cycles


class DYNOTEARS(Baseline):
    r"""Lagged and contemporaneous edges by one penalised regression (Pamfil et al. 2020).

    .. math::

        \min_{W, A} \tfrac{1}{2n} \|X - XW - YA\|^2 + \lambda_w \|W\|_1 + \lambda_a \|A\|_1
        \quad\text{subject to}\quad h(W) = \operatorname{tr} e^{W \circ W} - N = 0,

    where X is the present and Y the past. The constraint, which says that W has no cycle, is met
    by an augmented Lagrangian; each of its problems is solved by L-BFGS-B with W and A split into
    positive and negative parts. All sums over time are taken once, so that the cost of a step
    does not depend on the number of slots.

    A pair is an edge if its largest \|coefficient\| exceeds ``threshold``; its lag is the one of
    that coefficient, and may be 0 between two series. There are no random numbers.

    Parameters
    ----------
    max_lag : int
        Lags in the regression.
    sparsity : float
        The weights λ of both penalties, on series of variance one; 0.1 is the authors' default.
    threshold : float
        Coefficients up to this one are no edges. The default is the best of a grid on generated
        series of variance one (`make_var` and `make_structure`, 50 to 4000 slots).
    max_steps : int
        Most steps of the augmented Lagrangian.
    tolerance : float
        The h at which there counts as no cycle.

    Attributes
    ----------
    coefficients_ : array ``[cause, effect, lag]``
        W at lag 0 and A at the others.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((500, 3))
    >>> x, y = noise[:, 0], noise[:, 1].copy()
    >>> y[2:] += x[:-2]
    >>> series = {"x": x, "y": y, "z": y + 0.5 * noise[:, 2]}
    >>> sorted((e.cause, e.effect, e.lag) for e in DYNOTEARS().fit(series).graph_)
    [('x', 'y', 2), ('y', 'z', 0)]
    """

    method = "dynotears"

    def __init__(
        self,
        max_lag: int = 3,
        sparsity: float = 0.1,
        threshold: float = 0.1,
        max_steps: int = 100,
        tolerance: float = 1e-8,
    ) -> None:
        self.max_lag = max_lag
        self.sparsity = sparsity
        self.threshold = threshold
        self.max_steps = max_steps
        self.tolerance = tolerance

    def check_settings(self) -> None:
        """Refuse negative weights and thresholds."""
        super().check_settings()
        at_least("sparsity", self.sparsity, 0)
        at_least("threshold", self.threshold, 0)
        at_least("max_steps", self.max_steps, 1)
        if not self.tolerance > 0:
            raise SettingsError(f"tolerance is {self.tolerance}; choose more than 0")

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Fit the coefficients and read the largest of each pair."""
        n = values.shape[1]
        rows = lagged_rows(values, segments, range(self.max_lag + 1), least=2)
        columns = rows.reshape(len(rows), -1)
        with threadpool_limits(1, user_api="blas"):  # many small problems: threads only wait
            stacked = self._fit(columns.T @ columns / len(rows), n)
        self.coefficients_ = stacked.reshape(self.max_lag + 1, n, n).transpose(1, 2, 0)
        return largest_of(self.coefficients_, self.threshold)

    def _fit(self, moments: FloatArray, n: int) -> FloatArray:
        """Give W above A, ``[(lag, cause), effect]``, from the moments of present and past."""
        free = np.ones((2, len(moments), n))
        free[:, np.arange(n), np.arange(n)] = 0.0
        bounds = Bounds(0.0, np.where(free.ravel() > 0, np.inf, 0.0))
        parts, multiplier, penalty, cycles = np.zeros(free.size), 0.0, 1.0, np.inf
        for _ in range(self.max_steps):
            while True:
                trial = minimize(
                    _lagrangian,
                    parts,
                    args=(moments, n, self.sparsity, multiplier, penalty),
                    method="L-BFGS-B",
                    jac=True,
                    bounds=bounds,
                ).x
                left = _cycles(_difference(trial, n)[:n])[0]
                if left <= 0.25 * cycles or penalty >= _LARGEST_PENALTY:
                    break
                penalty *= _FACTOR
            parts, cycles = trial, left
            multiplier += penalty * cycles
            if cycles <= self.tolerance or penalty >= _LARGEST_PENALTY:
                break
        return _difference(parts, n)


def _lagrangian(
    flat: FloatArray,
    moments: FloatArray,
    n: int,
    sparsity: float,
    multiplier: float,
    penalty: float,
) -> tuple[float, FloatArray]:
    """Give the augmented Lagrangian and its gradient by both parts."""
    weights = _difference(flat, n)
    pull = moments @ weights
    cycles, by_cycles = _cycles(weights[:n])
    fit = 0.5 * np.trace(moments[:n, :n]) + ((0.5 * pull - moments[:, :n]) * weights).sum()
    value = fit + (multiplier + 0.5 * penalty * cycles) * cycles + sparsity * flat.sum()
    gradient = pull - moments[:, :n]
    gradient[:n] += (multiplier + penalty * cycles) * by_cycles
    return float(value), np.concatenate([gradient.ravel(), -gradient.ravel()]) + sparsity


def _cycles(instantaneous: FloatArray) -> tuple[float, FloatArray]:
    """Give h(W), which is 0 if and only if W has no cycle, and its gradient 2 W ∘ exp(W ∘ W)ᵀ."""
    power = expm(instantaneous * instantaneous)
    return float(np.trace(power)) - len(power), 2.0 * instantaneous * power.T


def _difference(flat: FloatArray, n: int) -> FloatArray:
    """Join the positive and the negative part: ``[(lag, cause), effect]``."""
    positive, negative = flat.reshape(2, -1, n)
    return np.asarray(positive - negative)
