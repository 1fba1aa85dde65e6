"""TiMINo: who is nobody's cause, by the independence of residuals; the linear variant."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from causalformer.baselines.contract import Baseline, Findings, FloatArray
from causalformer.baselines.lagged import lagged_rows
from causalformer.errors import SettingsError


class TiMINo(Baseline):
    """Time series models with independent noise (Peters, Janzing and Schölkopf 2013), linear.

    Again and again, each remaining series is regressed on the past of all of them and, if
    ``instantaneous``, on the present of the others. What is left of a series that drives none of
    the others is independent of them; the one that looks most so is taken away as a sink. If none
    does at level ``alpha``, the series that remain are a cycle, or have a hidden common cause: the
    method stays undecided and gives no edge between them.

    From each sink parents are then struck, the least significant first, as long as the residual
    without them stays independent of all.

    Independence is tested by cross-covariances at all lags from ``-max_lag`` to ``max_lag``, the
    least p-value times the number of tests. As residuals are uncorrelated with their regressors,
    the other series are taken without what the regressors explain of them: the same covariance
    with less noise. There are neither lags, nor self-loops, nor random numbers.

    Parameters
    ----------
    max_lag : int
        Lags of the regressions and of the tests.
    alpha : float
        Level of every test of independence; 0.05 is usual for this method.
    instantaneous : bool
        Whether series may act within one slot, as the authors allow; needs as many rows more as
        there are series. On by default: better on benchmark files, slightly worse on generated
        systems (off-diagonal F1 0.60 against 0.63).

    Attributes
    ----------
    scores_, edge_scores_ : array ``[cause, effect]``
        ``-log10 p`` of the independence of the sink's residual when the cause is left out of the
        regression; 0 against the order of the sinks and between undecided series.
    sinks_ : tuple of int
        The series that were decided, in the order in which they were taken away.
    undecided_ : tuple of int
        The series that remained; one series is the source of all.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((300, 2))
    >>> x, y = noise.T.copy()
    >>> y[2:] += x[:-2]
    >>> model = TiMINo().fit({"x": x, "y": y})
    >>> [(edge.cause, edge.effect) for edge in model.graph_]
    [('x', 'y')]
    >>> model.sinks_, model.undecided_
    ((1,), (0,))
    """

    method = "timino"

    def __init__(self, max_lag: int = 3, alpha: float = 0.05, instantaneous: bool = True) -> None:
        self.max_lag = max_lag
        self.alpha = alpha
        self.instantaneous = instantaneous

    def check_settings(self) -> None:
        """Refuse a level that is none."""
        super().check_settings()
        if not 0 < self.alpha < 1:
            raise SettingsError(f"alpha is {self.alpha}; choose a level between 0 and 1")

    def min_slots(self, n_series: int) -> int:
        """Give two slots more than regressors and the slots lost at both ends."""
        return 2 * self.max_lag + (self.max_lag + self.instantaneous) * n_series + 2

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Take away one sink after the other, and strike parents it does not need."""
        reach = range(-self.max_lag, self.max_lag + 1)
        least = self.min_slots(values.shape[1]) - 2 * self.max_lag
        around = lagged_rows(values, segments, reach, least)  # [row, max_lag + lag, series]
        n_series = values.shape[1]
        scores = np.zeros((n_series, n_series))
        adjacency = np.zeros((n_series, n_series), dtype=np.bool_)
        remaining, sinks = list(range(n_series)), []
        with threadpool_limits(1, user_api="blas"):  # many small problems: threads only wait
            while len(remaining) > 1:
                independence = [self._log_p(around, k, remaining, remaining) for k in remaining]
                if max(independence) < np.log(self.alpha):
                    break
                sink = remaining[int(np.argmax(independence))]
                scores[:, sink], adjacency[:, sink] = self._parents(around, sink, remaining)
                remaining.remove(sink)
                sinks.append(sink)
        self.sinks_, self.undecided_ = tuple(sinks), tuple(remaining)
        return Findings(scores, adjacency)

    def _parents(
        self, around: FloatArray, sink: int, remaining: Sequence[int]
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Give the scores of all causes of a sink, and those it needs."""
        needed = np.zeros(around.shape[2], dtype=np.bool_)
        needed[remaining] = True
        scores = np.zeros(len(needed))
        others = [j for j in remaining if j != sink]
        for j in others:
            without = [k for k in remaining if k != j]
            scores[j] = abs(self._log_p(around, sink, without, remaining)) / np.log(10.0)
        for j in sorted(others, key=lambda j: scores[j]):
            needed[j] = False
            kept = np.flatnonzero(needed).tolist()
            needed[j] = self._log_p(around, sink, kept, remaining) < np.log(self.alpha)
        needed[sink] = False
        return scores, needed

    def _log_p(
        self, around: FloatArray, effect: int, causes: Sequence[int], series: Sequence[int]
    ) -> float:
        """Give log p of the independence of an effect's residual, regressed on causes, of series.

        The effect itself is among the causes, for its own past.
        """
        n_rows, now = len(around), self.max_lag
        present = [j for j in causes if j != effect] if self.instantaneous else []
        others = [j for j in series if j != effect]
        regressors = around[:, now + 1 :, causes].reshape(n_rows, -1)
        targets = around[:, :, others].reshape(n_rows, -1)
        basis = np.linalg.qr(np.hstack([regressors, around[:, now, present]]))[0]
        residual = _without(basis, around[:, now, [effect]])
        correlation = residual.T @ _without(basis, targets)
        largest = np.sqrt(n_rows - basis.shape[1]) * np.abs(correlation).max()
        return float(min(0.0, np.log(2 * targets.shape[1]) + norm.logsf(largest)))


def _without(basis: FloatArray, columns: FloatArray) -> FloatArray:
    """Take off what an orthonormal basis explains, and bring what is left to length one, or 0."""
    left = columns - basis @ (basis.T @ columns)
    length = np.linalg.norm(left, axis=0)
    known = length > 1e-8 * np.sqrt(len(left))  # of what is fully explained only rounding is left
    return np.asarray(np.where(known, left / np.where(known, length, 1.0), 0.0))
