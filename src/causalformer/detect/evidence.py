"""From single tests to edges: combining p-values and controlling the false discovery rate."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
SMALLEST = 1e-300
_ALMOST_CERTAIN = 0.99  # a p-value of one would outweigh all others


def normal_p(z: FloatArray) -> FloatArray:
    """Give the one-sided p-value of a standard normal statistic; large values are evidence."""
    from scipy.special import ndtr

    return np.asarray(np.maximum(ndtr(-z), SMALLEST))


def cauchy_combination(
    *p_values: FloatArray, weights: Sequence[float] | FloatArray | None = None
) -> FloatArray:
    """Combine p-values that may depend on each other (Liu and Xie's Cauchy rule).

    `weights` say how likely it is beforehand that each of them finds something; only their ratios
    count. Without any, all are equal.

    Examples
    --------
    >>> cauchy_combination(np.array([0.01]), np.array([0.6])).round(3)
    array([0.02])
    >>> cauchy_combination(np.array([0.01]), np.array([0.6]), weights=(0.8, 0.2)).round(4)
    array([0.0125])
    """
    stacked = np.clip(np.stack(p_values), SMALLEST, _ALMOST_CERTAIN)
    # tan((1/2 - p) π) = 1 / tan(π p), which keeps its digits for small p
    statistic = np.average(1.0 / np.tan(np.pi * stacked), axis=0, weights=weights)
    combined = np.where(
        statistic > 1e8,
        1.0 / (np.pi * np.maximum(statistic, 1.0)),
        0.5 - np.arctan(statistic) / np.pi,
    )
    return np.asarray(np.clip(combined, SMALLEST, 1.0))


def half_cauchy_combination(
    *p_values: FloatArray, weights: Sequence[float] | FloatArray
) -> FloatArray:
    """Combine p-values of which some may be conservative: near one, they say nothing.

    With Cauchy's rule a p-value near one speaks against a small one. That is right if both are
    uniform without an effect. A comparison of held-out errors of nested models is not: without an
    effect, and with a weak one, the larger model is the worse one (Clark and West 2007). By the
    half-Cauchy rule only small p-values count (Liu, Meng and Pillai 2025); of two uniform ones the
    result is below .05 in 5.3 % of the cases.

    Examples
    --------
    >>> half_cauchy_combination(np.array([0.01]), np.array([1.0]), weights=(0.8, 0.2)).round(4)
    array([0.0125])
    """
    stacked = np.clip(np.stack(p_values), SMALLEST, 1.0)
    statistic = np.average(1.0 / np.tan(np.pi / 2 * stacked), axis=0, weights=weights)
    combined = 2.0 / np.pi * np.arctan(1.0 / np.maximum(statistic, SMALLEST))
    return np.asarray(np.clip(combined, SMALLEST, 1.0))


def false_discovery_q(p_values: FloatArray) -> FloatArray:
    """Give Benjamini and Hochberg's q-value of every p-value in a family of tests.

    Examples
    --------
    >>> false_discovery_q(np.array([0.01, 0.04, 0.03, 0.5])).round(3)
    array([0.04 , 0.053, 0.053, 0.5  ])
    """
    flat = p_values.ravel()
    order = np.argsort(flat)
    scaled = flat[order] * len(flat) / np.arange(1, len(flat) + 1)
    q = np.empty_like(flat)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q.reshape(p_values.shape)


def local_false_discovery(p_values: FloatArray) -> FloatArray:
    """Estimate how likely each test of a family is a false discovery, given those near it.

    A q-value speaks for all tests up to one. The last of them may be false more often than not:
    behind a hundred clear edges the rate lets five pass that are nothing but the smallest p-values
    of noise. Noise has p-values of density one; their density where a p-value lies is estimated as
    falling (Grenander 1956), and says how much more there is than noise.

    Examples
    --------
    >>> noise = np.arange(1, 91) / 100
    >>> local_false_discovery(np.append(np.full(10, 1e-6), noise))[[0, 10]].round(3)
    array([0., 1.])
    """
    from scipy.optimize import isotonic_regression

    values, place, count = np.unique(p_values, return_inverse=True, return_counts=True)
    width = np.maximum(np.diff(values, prepend=0.0), SMALLEST)
    density = isotonic_regression(count / p_values.size / width, weights=width, increasing=False).x
    return np.asarray(np.minimum(1.0 / density, 1.0)[place.reshape(p_values.shape)])


def edge_local_fdr(p_values: FloatArray, tested: NDArray[np.bool_]) -> FloatArray:
    """Give the local false discovery rate of edges between series ``[cause, effect]``.

    It is zero for self-loops, and one for a pair that is not tested; see `edge_q`.
    """
    own = np.eye(len(p_values), dtype=bool)
    rate, family = np.where(own, 0.0, 1.0), ~own & tested
    if family.any():
        rate[family] = local_false_discovery(p_values[family])
    return rate


def edge_q(p_values: FloatArray, tested: NDArray[np.bool_]) -> FloatArray:
    """Give q-values ``[cause, effect]``; self-loops and edges between series are two families.

    Nearly every series drives itself. In one family the many true self-loops would let more false
    edges between series pass than the rate promises. A pair that is not tested gets one.
    """
    own = np.eye(len(p_values), dtype=bool)
    q = np.ones_like(p_values)
    for family in (own & tested, ~own & tested):
        q[family] = false_discovery_q(p_values[family])
    return q
