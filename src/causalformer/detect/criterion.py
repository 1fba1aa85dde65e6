r"""What an equation costs: the extended information criterion, with the law of its errors.

.. math:: C = n \log \hat\sigma^2 - 2 n J(e) + k (\log n + \log p)

is twice the negative log-likelihood of an equation with k of p terms, whatever law its errors have,
and the price of its terms (Chen and Chen 2008).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
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
    weights, squares = inverse @ shared, inverse.diagonal()  # a view: it follows
    left = max(variance - float(shared @ weights), _TINY)
    stays = np.ones(len(gram), dtype=bool)
    asked = np.where(kept, -np.inf, price)  # of what cannot go any more whatever its price
    while True:
        lost = weights**2 / squares
        gain = n_samples * np.log1p(lost / left)
        worth = gain - asked
        least = int(worth.argmin()) if len(gain) else 0
        if not len(gain) or worth[least] > 0.0:
            return Kept(stays, np.where(stays, weights, 0.0), left, np.where(stays, gain, 0.0))
        left += float(lost[least])
        row = inverse[least] / inverse[least, least]
        weights -= row * weights[least]
        inverse -= inverse[least][:, None] * row
        inverse[least, least] = 1.0
        stays[least], asked[least] = False, -np.inf


class BesideDrivers:
    """Least squares of several effects on terms of their own and on drivers that are expected.

    In every round of an EM algorithm the products of the drivers change, those of the terms do not;
    so the terms are taken out once, and what is left to solve is as small as the drivers are few.

    Parameters
    ----------
    gram : array ``[column, column]``
        Mean products of all columns that may be terms.
    shared : array ``[column, effect]``
        Their mean products with the effects.
    terms : array of bool ``[column, effect]``
        The terms of each effect.
    driven : array of bool ``[driver, effect]``
        The effects of each driver.
    ridge : float
        Added to the squares of terms and drivers.

    Examples
    --------
    >>> beside = BesideDrivers(np.eye(1), np.array([[0.5]]), *np.ones((2, 1, 1), dtype=bool))
    >>> solved = beside.solved(np.array([[0.5]]), np.array([[1.0]]), np.array([[1.0]]))
    >>> solved.weights.round(3).tolist(), solved.loading.round(3).tolist()
    ([[0.0]], [[1.0]])
    """

    def __init__(
        self,
        gram: FloatArray,
        shared: FloatArray,
        terms: BoolArray,
        driven: BoolArray,
        ridge: float = _RIDGE,
    ) -> None:
        n_columns, n_effects = terms.shape
        most = max(int(terms.sum(axis=0).max(initial=0)), 1)
        self._at = np.full((n_effects, most), n_columns)  # the last column is empty
        self._inverse = np.zeros((n_effects, most, most))
        self._shared = np.zeros((n_effects, most))
        for i in range(n_effects):
            at = np.flatnonzero(terms[:, i])
            self._at[i, : len(at)], self._shared[i, : len(at)] = at, shared[at, i]
            some = gram[np.ix_(at, at)] + ridge * np.eye(len(at))
            self._inverse[i, : len(at), : len(at)] = np.linalg.inv(some)
        self._alone = (self._inverse @ self._shared[..., None])[..., 0]
        self._driven, self._n_columns = driven.T, n_columns
        self._both = self._driven[:, :, None] & self._driven[:, None]
        self._ridge = ridge * np.eye(len(driven))

    def solved(
        self,
        with_driver: Float[np.ndarray, "*b column driver"],
        moment: Float[np.ndarray, "*b driver driver"],
        shared: Float[np.ndarray, "*b driver effect"],
    ) -> "Solved":
        """Give the weights, from the mean products of drivers: with columns, own, with effects."""
        *batch, _, n_drivers = with_driver.shape
        padded = np.concatenate([with_driver, np.zeros((*batch, 1, n_drivers))], axis=-2)
        known = padded[..., self._at, :]  # *b, effect, term, driver
        through = self._inverse @ known
        beside = moment[..., None, :, :] + self._ridge - known.mT @ through
        beside = np.where(self._both, beside, np.eye(n_drivers))
        left = shared.mT - (known.mT @ self._alone[..., None])[..., 0]
        loading = np.linalg.solve(beside, np.where(self._driven, left, 0.0)[..., None])[..., 0]
        some = self._alone - (through @ loading[..., None])[..., 0]
        weights = np.zeros((*batch, self._n_columns + 1, len(self._at)))
        weights[..., self._at, np.arange(len(self._at))[:, None]] = some
        explained = (self._shared * some).sum(axis=-1) + (shared.mT * loading).sum(axis=-1)
        return Solved(weights[..., :-1, :], loading, explained)


class Solved(NamedTuple):
    """Weights of terms and drivers, and the mean square of the effects that they explain."""

    weights: FloatArray  # *b, column, effect
    loading: FloatArray  # *b, effect, driver
    explained: FloatArray  # *b, effect


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
