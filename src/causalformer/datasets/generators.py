"""Seeded generators of series whose causal graph is known."""

import csv
import inspect
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from causalformer.data.series import SeriesTable
from causalformer.errors import SettingsError
from causalformer.files import write_text
from causalformer.graph import CausalGraph, Edge

FloatArray: TypeAlias = npt.NDArray[np.float64]
RandomState: TypeAlias = int | np.random.Generator | None
NoiseLaw: TypeAlias = Literal["gaussian", "laplace", "student", "skewed"]
Triple: TypeAlias = tuple[int, int, int]

BURN_IN: Final = 200


@dataclass(frozen=True, eq=False)
class Generated:
    """Series together with the graph that made them.

    Parameters
    ----------
    series : SeriesTable
        The series.
    truth : CausalGraph
        The graph, self-loops included.

    Examples
    --------
    >>> made = make_structure("fork", 100, random_state=0)
    >>> made.series.n_slots, len(made.truth.edges)
    (100, 5)
    """

    series: SeriesTable
    truth: CausalGraph

    def save(self, folder: str | Path, index: int = 0) -> Path:
        """Write ``data_<index>.csv`` and ``truth.csv``, the form that `load_folder` reads.

        Parameters
        ----------
        folder : str or Path
            Made if it does not exist.
        index : int
            Number of the data file, for several realisations of one graph.

        Returns
        -------
        Path
            The data file: a header and one row per slot. The truth file has no header and one line
            ``cause,effect,lag`` per edge, with zero-based column numbers.

        Raises
        ------
        OutputError
            If the folder cannot be written.
        """
        position = {name: i for i, name in enumerate(self.series.names)}
        edges = sorted((position[e.cause], position[e.effect], e.lag) for e in self.truth.edges)
        write_text(Path(folder) / "truth.csv", "".join(f"{c},{e},{lag}\n" for c, e, lag in edges))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.series.names)
        writer.writerows(self.series.values.tolist())
        return write_text(Path(folder) / f"data_{index}.csv", text.getvalue())


def _generated(
    values: FloatArray, edges: Sequence[Triple], source: str, names: Sequence[str] | None = None
) -> Generated:
    names = tuple(names or (f"x{i}" for i in range(values.shape[1])))
    named = tuple(Edge(names[cause], names[effect], lag) for cause, effect, lag in edges)
    return Generated(SeriesTable(values, names, None, source), CausalGraph(names, named))


def _check_count(option: str, value: int, least: int) -> None:
    if value < least:
        raise SettingsError(f"{option} is {value}; choose at least {least}")


def _rng(random_state: RandomState) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"random_state is {random_state!r}; choose a whole number from 0, or None"
        ) from error


# --- Small nonlinear structures -------------------------------------------------------------------

STRUCTURES: Final[Mapping[str, tuple[Triple, ...]]] = MappingProxyType(
    {
        "diamond": ((0, 1, 1), (0, 2, 2), (1, 3, 1), (2, 3, 1)),
        "mediator": ((0, 1, 1), (0, 2, 2), (1, 2, 1)),
        "v_structure": ((0, 2, 2), (1, 2, 1)),
        "fork": ((0, 1, 1), (0, 2, 2)),
    }
)
"""Edges ``(cause, effect, lag)`` of the four structures; every series also drives itself, lag 1."""


def _softplus(x: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, 2.0 * x))


def _wavelet(x: FloatArray) -> FloatArray:
    return np.asarray(x * np.exp(-0.5 * x * x))


def _well(x: FloatArray) -> FloatArray:
    return np.asarray(1.0 - np.exp(-0.5 * x * x))


def _tanh(x: FloatArray) -> FloatArray:
    return np.asarray(np.tanh(1.5 * x))


def _sine(x: FloatArray) -> FloatArray:
    return np.asarray(np.sin(1.5 * x))


# smooth links; `_well` is even, so that no linear test sees it
LINKS: Final[tuple[Callable[[FloatArray], FloatArray], ...]] = (
    *(_tanh, _sine, _wavelet, _softplus, _well),
)
_NORMAL_GRID: Final = np.linspace(-6.0, 6.0, 1201)
_NORMAL_WEIGHTS: Final = np.exp(-0.5 * _NORMAL_GRID**2) / np.exp(-0.5 * _NORMAL_GRID**2).sum()


def _standard_link(link: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
    """Apply `link`, scaled to mean zero and variance one for a standard normal cause."""
    grid = link(_NORMAL_GRID)
    mean = float(grid @ _NORMAL_WEIGHTS)
    deviation = float(np.sqrt((grid - mean) ** 2 @ _NORMAL_WEIGHTS))
    return np.asarray((link(x) - mean) / deviation)


def make_structure(
    name: str,
    n_slots: int = 1000,
    *,
    coupling: tuple[float, float] = (0.6, 1.2),
    memory: tuple[float, float] = (0.2, 0.6),
    random_state: RandomState = None,
) -> Generated:
    """Draw one of the four basic structures, with nonlinear links and additive normal noise.

    ``x_e[t] = a_e x_e[t-1] + Σ_c b_ce f_ce(x_c[t - lag]) + ε_e[t]``

    Each link ``f`` is drawn among smooth functions (tanh, sine, ``x exp(-x²/2)``, softplus, and
    the even ``1 - exp(-x²/2)``, which linear tests miss) and scaled to unit variance. As the
    structures have no loops but ``|a| < 1``, the series are stationary for every seed.

    Parameters
    ----------
    name : {"diamond", "mediator", "v_structure", "fork"}
        The structure, see `STRUCTURES`.
    n_slots : int
        Length of the series.
    coupling : (float, float)
        Range of ``|b|``; the sign is drawn too.
    memory : (float, float)
        Range of ``a``, below one.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series ``x0``, ``x1``, ... and their graph.

    Examples
    --------
    >>> made = make_structure("v_structure", 500, random_state=1)
    >>> sorted((e.cause, e.effect, e.lag) for e in made.truth.edges if e.cause != e.effect)
    [('x0', 'x2', 2), ('x1', 'x2', 1)]
    """
    from scipy.signal import lfilter

    if name not in STRUCTURES:
        raise SettingsError(
            f"no structure is called {name!r}; choose among {', '.join(STRUCTURES)}"
        )
    _check_count("n_slots", n_slots, 1)
    if not -1.0 < min(memory) <= max(memory) < 1.0:
        raise SettingsError(f"memory is {memory}; both ends must lie between -1 and 1")
    rng = _rng(random_state)
    edges = STRUCTURES[name]
    n_series = 1 + max(effect for _, effect, _ in edges)
    x = rng.standard_normal((n_series, BURN_IN + n_slots))
    for effect in range(n_series):  # causes come first in every structure
        for cause, _, lag in (edge for edge in edges if edge[1] == effect):
            link = LINKS[rng.integers(len(LINKS))]
            strength = rng.uniform(*coupling) * rng.choice((-1.0, 1.0))
            x[effect, lag:] += strength * _standard_link(link, x[cause, :-lag])
        x[effect] = lfilter([1.0], [1.0, -rng.uniform(*memory)], x[effect])
    loops = tuple((i, i, 1) for i in range(n_series))
    return _generated(x[:, BURN_IN:].T, loops + edges, name)


# --- Lorenz 96 ------------------------------------------------------------------------------------

_LORENZ_STEP: Final = 0.01
_LORENZ_BURN_IN: Final = 10.0


def make_lorenz96(
    n_series: int = 10,
    n_slots: int = 1000,
    *,
    forcing: float | None = None,
    step: float = 0.1,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> Generated:
    """Integrate the Lorenz-96 model of the atmosphere along a circle of latitude.

    ``dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F``, by Runge-Kutta steps of at most 0.01.

    Parameters
    ----------
    n_series : int
        Places on the circle, at least 4.
    n_slots : int
        Length of the series.
    forcing : float, optional
        F; drawn from 30 to 40 if None.
    step : float
        Time between two slots.
    noise : float
        Standard deviation of normal noise added to each observation.
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series; ``i-2, i-1, i, i+1`` cause ``i``, all at lag 1 by convention.

    Examples
    --------
    >>> made = make_lorenz96(5, 50, random_state=0)
    >>> sorted(e.cause for e in made.truth.edges if e.effect == "x2")
    ['x0', 'x1', 'x2', 'x3']
    """
    _check_count("n_series", n_series, 4)
    _check_count("n_slots", n_slots, 1)
    if step <= 0 or noise < 0:
        raise SettingsError(f"step is {step} and noise {noise}; choose step > 0 and noise >= 0")
    rng = _rng(random_state)
    force = rng.uniform(30.0, 40.0) if forcing is None else float(forcing)
    n_inner = int(np.ceil(step / _LORENZ_STEP - 1e-9))
    state = force + rng.standard_normal(n_series)
    state = _lorenz_steps(state, force, _LORENZ_STEP, round(_LORENZ_BURN_IN / _LORENZ_STEP))
    values = np.empty((n_slots, n_series))
    for slot in range(n_slots):
        state = _lorenz_steps(state, force, step / n_inner, n_inner)
        values[slot] = state
    if not np.isfinite(values).all():
        raise SettingsError(f"forcing is {force}; the model blows up, choose a smaller one")
    values += noise * rng.standard_normal(values.shape)
    edges = [((i + d) % n_series, i, 1) for i in range(n_series) for d in (-2, -1, 0, 1)]
    return _generated(values, edges, "lorenz96")


def _lorenz_steps(state: FloatArray, force: float, step: float, n_steps: int) -> FloatArray:
    n_series = len(state)
    ring = np.empty(n_series + 3)  # x_{-2}, x_{-1}, x_0 ... x_{n-1}, x_n

    def velocity(x: FloatArray) -> FloatArray:
        ring[2:-1] = x
        ring[:2] = x[-2:]
        ring[-1] = x[0]
        return np.asarray((ring[3:] - ring[:n_series]) * ring[1:-2] - x + force)

    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for a blow-up
        for _ in range(n_steps):
            k1 = velocity(state)
            k2 = velocity(state + 0.5 * step * k1)
            k3 = velocity(state + 0.5 * step * k2)
            k4 = velocity(state + step * k3)
            state = state + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
    return state


# --- Vector autoregression ------------------------------------------------------------------------


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
        _check_count(option, value, 1)
    if not (0.0 <= density <= 1.0 and 0.0 < radius < 1.0):
        raise SettingsError(
            f"density is {density} and radius {radius}; choose density from 0 to 1 and "
            "radius between 0 and 1"
        )
    if noise_law not in _NOISE_LAWS:
        raise SettingsError(f"no noise_law {noise_law!r}; choose among {', '.join(_NOISE_LAWS)}")
    rng = _rng(random_state)
    weights = _var_weights(rng, n_series, max_lag, density)
    rho = spectral_radius(weights)
    if rho > radius:
        weights *= (radius / rho) ** np.arange(1, max_lag + 1)
    x = _NOISE_LAWS[noise_law](rng, (max_lag + BURN_IN + n_slots, n_series))
    # newest slot last: the rows of `step` follow x[t - max_lag], ..., x[t - 1]
    step = weights[:, :, ::-1].transpose(2, 0, 1).reshape(max_lag * n_series, n_series)
    for t in range(max_lag, len(x)):
        x[t] += x[t - max_lag : t].reshape(-1) @ step
    causes, effects, lags = np.nonzero(weights)
    edges = list(zip(causes.tolist(), effects.tolist(), (lags + 1).tolist(), strict=True))
    edges.sort(key=lambda edge: edge[0] != edge[1])  # self-loops first
    return _generated(x[-n_slots:], edges, "var")


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


# --- The bundled example --------------------------------------------------------------------------

GREENHOUSE_NAMES: Final = ("sun", "temperature", "humidity", "soil_moisture", "growth")
GREENHOUSE_EDGES: Final[tuple[Triple, ...]] = (
    (0, 1, 1),  # sun warms the air
    (1, 2, 1),  # warm air dries
    (2, 3, 2),  # dry air drains the soil
    (3, 4, 3),  # moist soil feeds the plants
    (0, 4, 1),  # sun drives growth, up to a limit
)


def make_greenhouse(n_slots: int = 500, *, random_state: RandomState = 2024) -> Generated:
    """Simulate an invented greenhouse: five series, five causal relations, lags 1 to 3.

    Nothing here was measured: the relations are those of `GREENHOUSE_EDGES`, each series also
    remembers itself, and the sun's effect on growth saturates. Values have three decimals.

    Parameters
    ----------
    n_slots : int
        Length of the series (hours, say).
    random_state : int, Generator or None
        Seed; its default gives the bundled file.

    Returns
    -------
    Generated
        The series and their graph.

    Examples
    --------
    >>> print(*make_greenhouse(50).series.names)
    sun temperature humidity soil_moisture growth
    """
    from scipy.signal import lfilter

    _check_count("n_slots", n_slots, 1)
    rng = _rng(random_state)
    x = rng.standard_normal((5, BURN_IN + n_slots))
    strengths = (0.8, -0.8, 0.7, 0.7, 0.8)
    for effect, memory in enumerate((0.7, 0.5, 0.4, 0.6, 0.3)):
        for (cause, target, lag), strength in zip(GREENHOUSE_EDGES, strengths, strict=True):
            if target == effect:
                past = x[cause, :-lag]
                x[effect, lag:] += strength * (np.tanh(past) if (cause, target) == (0, 4) else past)
        x[effect] = lfilter([1.0], [1.0, -memory], x[effect])
    level = np.array([500.0, 24.0, 65.0, 40.0, 20.0])
    spread = np.array([60.0, 1.2, 2.0, 1.0, 1.0])
    values = np.round(level + spread * x[:, BURN_IN:].T, 3)
    loops = tuple((i, i, 1) for i in range(5))
    return _generated(values, loops + GREENHOUSE_EDGES, "greenhouse", GREENHOUSE_NAMES)


# --- By name --------------------------------------------------------------------------------------

GENERATORS: Final[Mapping[str, Callable[..., Generated]]] = MappingProxyType(
    {
        **{name: partial(make_structure, name) for name in STRUCTURES},
        "lorenz96": make_lorenz96,
        "var": make_var,
        "greenhouse": make_greenhouse,
    }
)
"""The generators that `make_dataset` and ``causalformer datasets make`` know."""


def make_dataset(name: str, **options: object) -> Generated:
    """Make a data set by the name of its generator.

    Parameters
    ----------
    name : str
        One of `GENERATORS`: diamond, mediator, v_structure, fork, lorenz96, var, greenhouse.
    **options
        Options of that generator, such as ``n_slots`` and ``random_state``.

    Returns
    -------
    Generated
        The series and their graph.

    Raises
    ------
    SettingsError
        Unknown name, or an option that the generator does not have.

    Examples
    --------
    >>> make_dataset("diamond", n_slots=300, random_state=0).series.n_series
    4
    """
    if name not in GENERATORS:
        raise SettingsError(f"no data set is called {name!r}; choose among {', '.join(GENERATORS)}")
    known = [p for p in inspect.signature(GENERATORS[name]).parameters if p != "name"]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise SettingsError(
            f"data set {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"its options are {', '.join(known)}"
        )
    return GENERATORS[name](**options)
