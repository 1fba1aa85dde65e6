r"""What an equation costs: the extended information criterion, with the law of its errors.

.. math:: C = n \log \hat\sigma^2 - 2 n J(e) + k (\log n + \log p)

is twice the negative log-likelihood of an equation with k of p terms, whatever law its errors have,
and the price of its terms (Chen and Chen 2008).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_RIDGE = 1e-6  # keeps the equations of collinear terms solvable
_TINY = 1e-12


class Kept(NamedTuple):
    """What backward elimination leaves of some terms."""

    stays: BoolArray  # term
    weights: FloatArray  # term; zero if it does not stay
    left: float  # variance that is not explained
    gain: FloatArray  # term: what its loss would add to the criterion, but for its price


def backward_elimination(
    gram: FloatArray,
    shared: FloatArray,
    variance: float,
    kept: BoolArray,
    n_samples: float,
    price: float | FloatArray,
) -> Kept:
    """Drop terms whose loss adds less to the criterion than their price, one by one.

    Parameters
    ----------
    gram : array ``[term, term]``
        Mean products of the terms.
    shared : array ``[term]``
        Mean products with what is to be explained.
    variance : float
        Its mean square.
    kept : array of bool ``[term]``
        Terms that are never dropped.
    n_samples : float
        Samples.
    price : float or array ``[term]``
        What a term costs.

    Examples
    --------
    >>> gram, shared = np.eye(2), np.array([0.5, 0.01])
    >>> found = backward_elimination(gram, shared, 1.0, np.array([False, False]), 100, 5.0)
    >>> found.stays.tolist(), round(found.left, 2)
    ([True, False], 0.75)
    """
    inverse = np.linalg.inv(gram + _RIDGE * np.eye(len(gram)))
    weights = inverse @ shared
    left = max(variance - float(shared @ weights), _TINY)
    stays = np.ones(len(gram), dtype=bool)
    while True:
        lost = np.where(stays, weights**2 / np.where(stays, inverse.diagonal(), 1.0), 0.0)
        gain = n_samples * np.log1p(lost / left)
        worth = np.where(stays & ~kept, gain - price, np.inf)
        least = int(worth.argmin()) if len(gain) else 0
        if not len(gain) or worth[least] > 0.0:
            return Kept(stays, np.where(stays, weights, 0.0), left, gain)
        left += float(lost[least])
        row = inverse[least] / inverse[least, least]
        weights = weights - row * weights[least]
        inverse = inverse - np.outer(inverse[least], row)
        stays[least] = False


def negentropy(x: FloatArray) -> float:
    """Approximate how far noise is from Gaussian (Hyvärinen 1998): zero if it is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> laws = rng.standard_normal(10_000), rng.laplace(size=10_000), rng.uniform(size=10_000)
    >>> [round(negentropy(x), 2) for x in laws]
    [0.0, 0.11, 0.06]
    """
    if len(x) < 2:
        return 0.0
    u = (x - x.mean()) / max(float(x.std()), _TINY)
    size = np.abs(u)
    flat = float((size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).mean()) - 0.374567
    skewed = float((u * np.exp(-(u**2) / 2.0)).mean())
    return 79.047 * flat**2 + 7.4129 * skewed**2
