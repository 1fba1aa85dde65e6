"""Sparse stable vector autoregressions with noise of several laws."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np

from causalformer.datasets.generated import (
    BURN_IN,
    FloatArray,
    Generated,
    RandomState,
    check_count,
    generated,
    seeded_rng,
)
from causalformer.errors import SettingsError

NoiseLaw: TypeAlias = Literal["gaussian", "laplace", "student", "skewed"]


def make_var(
    n_series: int = 5,
    n_slots: int = 1000,
    *,
    max_lag: int = 3,
    density: float = 0.2,
    noise_law: NoiseLaw = "gaussian",
    radius: float = 0.9,
    random_state: RandomState = None,
) -> Generated:
    """Draw a sparse stable linear system.

    ``x[t] = Σ_l A_l x[t-l] + ε[t]``: every series drives itself at lag 1, and each ordered pair is
    joined with probability `density` at one lag. If the companion matrix has a spectral radius
    ``ρ`` above `radius`, each ``A_l`` is scaled by ``(radius / ρ)^l``, which makes it `radius`; in
    large dense systems the edges are weak therefore.

    Parameters
    ----------
    n_series, n_slots : int
        Number and length of the series.
    max_lag : int
        The largest lag.
    density : float
        Probability of each edge between two series.
    noise_law : {"gaussian", "laplace", "student", "skewed"}
        Law of the noise, each with variance one: Student's t has 5 degrees of freedom, the skewed
        law is a centred exponential.
    radius : float
        The largest spectral radius, below one.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series ``x0``, ``x1``, ... and their graph.

    Examples
    --------
    >>> made = make_var(4, 200, density=0.0, random_state=0)
    >>> [(e.cause, e.effect, e.lag) for e in made.truth.edges][:2]
    [('x0', 'x0', 1), ('x1', 'x1', 1)]
    """
    for option, value in (("n_series", n_series), ("n_slots", n_slots), ("max_lag", max_lag)):
        check_count(option, value, 1)
    if not (0.0 <= density <= 1.0 and 0.0 < radius < 1.0):
        raise SettingsError(
            f"density is {density} and radius {radius}; choose density from 0 to 1 and "
            "radius between 0 and 1"
        )
    rng = seeded_rng(random_state)
    weights = _var_weights(rng, n_series, max_lag, density)
    rho = spectral_radius(weights)
    if rho > radius:
        weights *= (radius / rho) ** np.arange(1, max_lag + 1)
    x = draw_noise(noise_law, rng, (max_lag + BURN_IN + n_slots, n_series))
    # newest slot last: the rows of `step` follow x[t - max_lag], ..., x[t - 1]
    step = weights[:, :, ::-1].transpose(2, 0, 1).reshape(max_lag * n_series, n_series)
    for t in range(max_lag, len(x)):
        x[t] += x[t - max_lag : t].reshape(-1) @ step
    causes, effects, lags = np.nonzero(weights)
    edges = list(zip(causes.tolist(), effects.tolist(), (lags + 1).tolist(), strict=True))
    edges.sort(key=lambda edge: edge[0] != edge[1])  # self-loops first
    return generated(x[-n_slots:], edges, "var")


def _var_weights(
    rng: np.random.Generator, n_series: int, max_lag: int, density: float
) -> FloatArray:
    """Draw the coefficients ``[cause, effect, lag - 1]``."""
    weights = np.zeros((n_series, n_series, max_lag))
    causes, effects = np.nonzero(
        (rng.random((n_series, n_series)) < density) & ~np.eye(n_series, dtype=bool)
    )
    lags = rng.integers(max_lag, size=len(causes))
    signs = rng.choice((-1.0, 1.0), size=len(causes))
    weights[causes, effects, lags] = signs * rng.uniform(0.2, 0.5, size=len(causes))
    own = np.arange(n_series)
    weights[own, own, 0] = rng.uniform(0.3, 0.6, size=n_series)
    return weights


def spectral_radius(weights: FloatArray) -> float:
    """Return the largest modulus among the eigenvalues of the companion matrix.

    Parameters
    ----------
    weights : array of shape (cause, effect, lag)
        Coefficients, lag 1 first.

    Examples
    --------
    >>> spectral_radius(np.array([[[0.5]]]))
    0.5
    """
    n_series, _, max_lag = weights.shape
    companion = np.eye(n_series * max_lag, k=-n_series)
    companion[:n_series] = weights.transpose(1, 2, 0).reshape(n_series, -1)
    return float(np.abs(np.linalg.eigvals(companion)).max())


def draw_noise(noise_law: NoiseLaw, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw noise of mean zero and variance one.

    Examples
    --------
    >>> draw_noise("laplace", np.random.default_rng(0), (2, 3)).shape
    (2, 3)
    """
    if noise_law not in _NOISE_LAWS:
        raise SettingsError(f"no noise_law {noise_law!r}; choose among {', '.join(_NOISE_LAWS)}")
    return _NOISE_LAWS[noise_law](rng, shape)


def _student(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return np.asarray(rng.standard_t(5, shape) / np.sqrt(5.0 / 3.0))


_NOISE_LAWS: Final[Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], FloatArray]]] = (
    MappingProxyType(
        {
            "gaussian": lambda rng, shape: rng.standard_normal(shape),
            "laplace": lambda rng, shape: rng.laplace(0.0, np.sqrt(0.5), shape),
            "student": _student,
            "skewed": lambda rng, shape: rng.standard_exponential(shape) - 1.0,
        }
    )
)
