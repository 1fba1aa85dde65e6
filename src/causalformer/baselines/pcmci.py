"""PCMCI and PCMCI+ by the package tigramite, an optional extra under the GPL."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from causalformer.baselines.contract import Baseline, Findings, FloatArray
from causalformer.errors import DataError, MissingExtraError, SettingsError

_MISSING = 1e30  # in place of NaN, which tigramite refuses; no standardised value is so large


class _ConditionalIndependence(Baseline):
    """What both methods share: handing over the series, and reading the links."""

    missing_ok = True

    max_lag: int
    alpha: float

    @abstractmethod
    def _links(self, analysis: Any) -> dict[str, Any]:
        """Run the method on tigramite's object."""

    def check_settings(self) -> None:
        """Refuse levels that are none."""
        super().check_settings()
        for option in ("alpha", "pc_alpha"):
            level = getattr(self, option, 0.5)
            if not 0 < level < 1:
                raise SettingsError(f"{option} is {level}; choose a level between 0 and 1")

    def min_slots(self, n_series: int) -> int:  # noqa: ARG002
        """Give a few rows to test with: each needs the past of its past."""
        return 2 * self.max_lag + 10

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:
        """Run the method on all unbroken stretches that are long enough, as one data set."""
        try:
            from tigramite import pcmci
            from tigramite.data_processing import DataFrame
            from tigramite.independence_tests.parcorr import ParCorr
        except ImportError as error:
            raise MissingExtraError(
                f"{type(self).__name__} needs the package tigramite, which is under the GPL: "
                "pip install causalformer[pcmci]"
            ) from error
        whole = np.where(np.isnan(values), _MISSING, values)
        parts = [whole[s] for s in segments if s.stop - s.start > 2 * self.max_lag]
        if sum(len(part) - 2 * self.max_lag for part in parts) < 10:
            raise DataError(
                f"too few of {len(segments)} unbroken stretches are longer than twice `max_lag`; "
                "give longer ones or choose a smaller `max_lag`"
            )
        several = {"data": dict(enumerate(parts)), "analysis_mode": "multiple"}
        data = DataFrame(
            **(several if len(parts) > 1 else {"data": parts[0]}), missing_flag=_MISSING
        )
        with threadpool_limits(1, user_api="blas"):  # many small problems: threads only wait
            links = self._links(pcmci.PCMCI(data, ParCorr(), verbosity=0))
        tossed = tosses(values.shape[1], getattr(self, "random_state", 0))
        return _findings(links["graph"], np.abs(links["val_matrix"]), tossed)


def tosses(n_series: int, random_state: int) -> NDArray[np.bool_]:
    """Toss a coin for the direction of every pair: one of ``[i, j]`` and ``[j, i]`` is True.

    Examples
    --------
    >>> forwards = tosses(5, 0)
    >>> bool((forwards ^ forwards.T | np.eye(5, dtype=bool)).all())
    True
    """
    coin = np.random.default_rng(random_state).random((n_series, n_series)) < 0.5
    upper = np.triu(np.ones_like(coin), 1)
    return np.asarray(coin & upper | (~coin & upper).T)


def _findings(marks: Any, strengths: FloatArray, tossed: NDArray[np.bool_]) -> Findings:
    """Read links ``[cause, effect, lag]``, the strongest of each pair.

    Marks are ``-->``, ``<--`` and, at lag 0 only, ``o-o`` or ``x-x`` for a link whose direction is
    unknown or contradictory. Such a link becomes one edge, its direction that of a coin: the order
    of the columns, which is that of cause and effect in some benchmarks, must not help.
    """
    n = len(marks)
    unknown = np.isin(marks, ("o-o", "x-x"))
    present = (marks == "-->") | (unknown & tossed[..., None])
    possible = marks != "<--"
    possible[np.arange(n), np.arange(n), 0] = False
    ranked = np.where(possible, strengths + 2.0 * present, -1.0)  # strengths are at most 1
    lags = ranked.argmax(axis=2)
    at_lag = (*np.indices((n, n)), lags)
    scores = np.where(possible, strengths, 0.0)[at_lag]
    return Findings(scores, present.any(axis=2), lags, ~unknown[at_lag])


class PCMCI(_ConditionalIndependence):
    """Lagged edges by tests of conditional independence (Runge et al. 2019).

    First, the past of every series is searched for candidate parents at the liberal level
    ``pc_alpha``; then every lagged link is tested given the parents of both of its ends. The tests
    are partial correlations: links that are not linear may be missed. Needs the package tigramite
    (GPL): ``pip install causalformer[pcmci]``.

    A pair is an edge if the test of any lag has p at most ``alpha``; its lag is the strongest of
    those. There are no random numbers. Missing values are left out test by test.

    Parameters
    ----------
    max_lag : int
        Largest lag.
    pc_alpha : float
        Level of the search for parents.
    alpha : float
        Level of the final tests; as in `VarGranger`, without a correction for their number.
    fdr : bool
        Whether to correct for their number after all (Benjamini and Hochberg).

    Attributes
    ----------
    scores_, edge_scores_ : array ``[cause, effect]``
        The partial correlation of the strongest lag, without its sign.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((200, 2))
    >>> x, y = noise.T.copy()
    >>> y[2:] += x[:-2]
    >>> [(e.cause, e.effect, e.lag) for e in PCMCI().fit({"x": x, "y": y}).graph_]
    [('x', 'y', 2)]
    """

    method = "pcmci"

    def __init__(
        self, max_lag: int = 3, pc_alpha: float = 0.05, alpha: float = 0.01, fdr: bool = False
    ) -> None:
        self.max_lag = max_lag
        self.pc_alpha = pc_alpha
        self.alpha = alpha
        self.fdr = fdr

    def _links(self, analysis: Any) -> dict[str, Any]:
        links: dict[str, Any] = analysis.run_pcmci(
            tau_min=1,
            tau_max=self.max_lag,
            pc_alpha=self.pc_alpha,
            alpha_level=self.alpha,
            fdr_method="fdr_bh" if self.fdr else "none",
        )
        return links


class PCMCIPlus(_ConditionalIndependence):
    """Lagged and contemporaneous edges by tests of conditional independence (Runge 2020).

    As `PCMCI`, but series may act within one slot. The direction of such an edge follows from the
    tests only in part; where it does not, one edge is given, in a direction that a coin decides,
    with ``oriented=False``. The scores of such a pair are the same both ways. Needs the package
    tigramite (GPL): ``pip install causalformer[pcmci]``.

    Missing values are left out test by test.

    Parameters
    ----------
    max_lag : int
        Largest lag.
    alpha : float
        Level of all tests; 0.01 is tigramite's default.
    random_state : int
        Seed of the coin.
    fdr : bool
        Whether to correct for the number of tests (Benjamini and Hochberg).

    Attributes
    ----------
    scores_, edge_scores_ : array ``[cause, effect]``
        The partial correlation of the strongest lag, without its sign.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((200, 3))
    >>> x, y = noise[:, 0], noise[:, 1].copy()
    >>> y[2:] += x[:-2]
    >>> graph = PCMCIPlus().fit({"x": x, "y": y, "z": y + noise[:, 2]}).graph_
    >>> sorted((e.cause, e.effect, e.lag) for e in graph)
    [('x', 'y', 2), ('y', 'z', 0)]
    """

    method = "pcmci-plus"

    def __init__(
        self, max_lag: int = 3, alpha: float = 0.01, random_state: int = 0, fdr: bool = False
    ) -> None:
        self.max_lag = max_lag
        self.alpha = alpha
        self.random_state = random_state
        self.fdr = fdr

    def _links(self, analysis: Any) -> dict[str, Any]:
        links: dict[str, Any] = analysis.run_pcmciplus(
            tau_min=0,
            tau_max=self.max_lag,
            pc_alpha=self.alpha,
            fdr_method="fdr_bh" if self.fdr else "none",
        )
        if self.fdr:  # tigramite corrects the p-values, but not the graph
            links["graph"] = np.where(links["p_matrix"] <= self.alpha, links["graph"], "")
        return links
