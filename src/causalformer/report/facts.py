"""Everything that the page tells, as one plain object that strict JSON holds.

Series are numbers, their place in ``graph.names``. What a method does not know is None or left out.
"""

import hashlib
import inspect as signatures
import json
import platform
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causalformer._version import __version__
from causalformer.config import DEFAULT
from causalformer.data import SeriesTable
from causalformer.data.quality import idle_columns, inspect
from causalformer.data.windows import slots_with_past
from causalformer.errors import DataWarning
from causalformer.report.layout import positions
from causalformer.report.numbers import (
    none_for_nan,
    number,
    rounded,
    sampled,
    thinned,
    time_labels,
    with_breaks,
)
from causalformer.report.recordings import recording_facts
from causalformer.report.words import PAPER_CAVEATS, TESTED_CAVEATS, shown_name, summary

if TYPE_CHECKING:
    from causalformer.each import EachRecording
    from causalformer.estimator import CausalFormer
    from causalformer.explain.local import LocalExplanation

FloatArray = NDArray[np.float64]

_POINTS = 2000  # of a plotted series, at most
_ALL_POINTS = 300_000  # of all plotted series together
_SAMPLES = 60, 400  # slots for scatter plots and local explanations: at least, at most
_ALL_SAMPLES = 240_000  # numbers that they may take together
_TOP = 6  # past values that explain a prediction
_NEAR_Q = 0.25  # pairs up to this q-value are near misses
_NEAR = 20, 200  # near misses that are shown: at least, at most
_PLOTTED = 1500  # edges that come with plots, the strongest ones
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "networkx")


@dataclass(frozen=True)
class _Link:
    """A pair of series at a lag: an edge, or one that just failed to be one."""

    cause: int
    effect: int
    lag: int


def collect_facts(
    model: "CausalFormer",
    table: SeriesTable,
    run: Mapping[str, Any] | None = None,
    each: "EachRecording | None" = None,
) -> dict[str, Any]:
    """Collect what the page tells of a fitted model.

    Parameters
    ----------
    model : CausalFormer
        Fitted.
    table : SeriesTable
        The series it was fitted to.
    run : mapping, optional
        What else is known of the run; ``command`` is shown.
    each : EachRecording, optional
        The graphs of the recordings on their own.

    Returns
    -------
    dict
        Plain: what ``json.dumps(..., allow_nan=False)`` takes.

    Examples
    --------
    >>> from causalformer import CausalFormer
    >>> from causalformer.datasets import make_var
    >>> made = make_var(3, 300, density=0.4, random_state=1)
    >>> facts = collect_facts(CausalFormer(max_lag=3).fit(made.series), made.series)
    >>> sorted(facts)
    ['alpha', 'caveats', 'edges', 'graph', 'labels', 'local', 'near', 'positions', 'recordings',
     'run', 'series', 'summary', 'tested', 'title', 'warnings']
    """
    table = table.select(model.names_)
    tested = model.preset == DEFAULT
    alpha = float(model.alpha) if tested else None
    number_of = {name: i for i, name in enumerate(model.names_)}
    links = [_Link(number_of[e.cause], number_of[e.effect], e.lag) for e in model.graph_]
    near = _near_misses(model, links) if tested else []
    shown = [*links[:_PLOTTED], *near]
    slots = _sample_slots(table, shown, _longest_lag(model))
    local, parts = _explained(model, table, slots, shown) if tested else (None, {})
    evidence = [
        _evidence(model, link) | {"points": _scatter(table, slots, link, parts)} for link in shown
    ]
    return {
        "title": Path(table.source).name or table.source,
        "tested": tested,
        "alpha": alpha,
        "summary": summary(model.graph_, alpha),
        "warnings": _warnings(model, table),
        "caveats": list(TESTED_CAVEATS if tested else PAPER_CAVEATS),
        "graph": json.loads(model.graph_.to_json()),
        "labels": [shown_name(name) for name in model.names_],
        "positions": np.round(positions(model.graph_), 4).tolist(),
        "edges": evidence[: len(shown) - len(near)],
        "near": [
            _near_facts(model, link) | known
            for link, known in zip(near, evidence[len(shown) - len(near) :], strict=True)
        ],
        "recordings": None if each is None else recording_facts(each, number_of),
        "series": _series(model, table),
        "local": local,
        "run": _run(model, table, run or {}),
    }


def _longest_lag(model: "CausalFormer") -> int:
    if model.preset == DEFAULT:
        return int(model.scores_["lag_profile"].shape[-1])
    return int(model.lag_scores_.shape[-1]) - 1


# --- Edges ----------------------------------------------------------------------------------------


def _near_misses(model: "CausalFormer", links: Sequence[_Link]) -> list[_Link]:
    """Find pairs that are no edge but nearly were, best first."""
    q_value, p_value = model.scores_["q_value"], model.scores_["p_value"]
    open_ = (q_value <= _NEAR_Q) & ~np.eye(len(q_value), dtype=bool)
    for link in links:
        open_[link.cause, link.effect] = False
        if link.lag == 0:
            open_[link.effect, link.cause] = False
    pairs = np.argwhere(open_)
    best = np.argsort(p_value[open_], kind="stable")
    least, most = _NEAR
    profile = model.scores_["lag_profile"]
    return [
        _Link(int(c), int(e), int(profile[c, e].argmax()) + 1)
        for c, e in pairs[best][: min(most, max(least, len(links)))]
    ]


def _near_facts(model: "CausalFormer", link: _Link) -> dict[str, Any]:
    pair = link.cause, link.effect
    known = ("p_value", "q_value", "strength")
    return {
        "cause": link.cause,
        "effect": link.effect,
        "lag": link.lag,
        **{name: number(model.scores_[name][pair]) for name in known},
    }


def _evidence(model: "CausalFormer", link: _Link) -> dict[str, Any]:
    """Give what speaks for a pair beside the numbers that the edge itself carries."""
    pair = link.cause, link.effect
    if model.preset != DEFAULT:
        profile = model.lag_scores_[pair]
        return {"profile": {"first": 0, "values": [number(value) for value in profile.tolist()]}}
    if link.lag == 0:
        return {"partial_correlation": number(model.scores_["partial_correlation"][pair])}
    profile = model.scores_["lag_profile"][pair]
    return {
        "relative_gain": number(model.scores_["relative_gain"][pair]),
        "terms_p_value": number(model.scores_["terms_p_value"][pair]),
        "profile": {"first": 1, "values": [number(value) for value in profile.tolist()]},
    }


# --- Scatter plots and local explanations ---------------------------------------------------------


def _sample_slots(table: SeriesTable, links: Sequence[_Link], longest: int) -> list[int]:
    """Choose the slots for scatter plots and explanations: fewer if there are many series."""
    each = _ALL_SAMPLES // (4 * len(links) + 4 * _TOP * table.n_series)
    return sampled(slots_with_past(table.segments, longest), int(np.clip(each, *_SAMPLES)))


def _scatter(
    table: SeriesTable, slots: Sequence[int], link: _Link, parts: Mapping[_Link, FloatArray]
) -> dict[str, Any]:
    """Give the cause before and the effect now, where both were observed.

    ``part`` is what the past value adds to the prediction, ``left`` that plus the prediction's
    error: a partial residual plot, in standard deviations of the effect.
    """
    at = np.asarray(slots, dtype=np.int64)
    x, y = table.values[at - link.lag, link.cause], table.values[at, link.effect]
    both = np.isfinite(x) & np.isfinite(y)
    points = {"x": rounded(x[both]), "y": rounded(y[both])}
    if link in parts:
        part, left = parts[link]
        points |= {"part": rounded(part[both]), "left": rounded(left[both])}
    return points


def _explained(
    model: "CausalFormer", table: SeriesTable, slots: Sequence[int], links: Sequence[_Link]
) -> tuple[dict[str, Any], dict[_Link, FloatArray]]:
    """Explain the predictions of some slots: the largest shares, and those of every edge."""
    lagged = [link for link in links if link.lag > 0]
    parts = {link: np.full((2, len(slots)), np.nan) for link in lagged}
    columns = ("prediction", "observed", "bias", "shares")
    told: list[dict[str, list[Any]]] = [{name: [] for name in columns} for _ in table.names]
    for k, found in enumerate(model.explain_many(slots, table)):
        error = found.observed - found.prediction
        for link in lagged:
            part = found.relevance[link.cause, link.effect, link.lag - 1]
            parts[link][:, k] = part, part + error[link.effect]
        rows = zip(
            found.prediction.tolist(), found.observed.tolist(), found.bias.tolist(), strict=True
        )
        for effect, row, shares in zip(told, rows, _largest_shares(found), strict=True):
            for name, value in zip(columns, row, strict=False):
                effect[name].append(number(value, 3))
            effect["shares"].append(shares)
    times = None if table.time is None else time_labels(table.time, np.asarray(slots, np.int64))
    return {"slots": list(slots), "times": times, "effects": told}, parts


def _largest_shares(found: "LocalExplanation") -> Iterator[list[list[float | None]]]:
    """Give ``[cause, lag, share, value]`` of the largest shares, effect by effect."""
    n_lags = found.relevance.shape[-1]
    by_effect = found.relevance.transpose(1, 0, 2).reshape(len(found.names), -1)
    n_top = min(_TOP, by_effect.shape[1])
    for shares in by_effect:
        size = -np.abs(shares)
        top = np.argpartition(size, n_top - 1)[:n_top]
        top = top[np.argsort(size[top], kind="stable")]
        columns = top // n_lags, top % n_lags + 1, shares[top], found.value.ravel()[top]
        yield [
            [cause, lag, number(share, 3), number(value)]
            for cause, lag, share, value in zip(*(c.tolist() for c in columns), strict=True)
        ]


# --- Data -----------------------------------------------------------------------------------------


def _series(model: "CausalFormer", table: SeriesTable) -> dict[str, Any]:
    """Give the series and their predictions as outlines, and a few figures of each."""
    with warnings.catch_warnings():  # the fit has said it, and the page says it again
        warnings.simplefilter("ignore", DataWarning)
        predicted = model.predict(table).to_numpy()
    each = int(np.clip(_ALL_POINTS // (2 * table.n_series), 100, _POINTS))
    slot, both = thinned(np.hstack([table.values, predicted]), each)
    slot, both = with_breaks(slot, both, table.starts)
    times = None
    if table.time is not None:
        times = time_labels(table.time, slot.astype(np.int64))
    return {
        "n_slots": table.n_slots,
        "thinned": table.n_slots > each,
        "slot": none_for_nan(np.round(slot, 1).tolist()),
        "times": times,
        "observed": [rounded(column) for column in both[:, : table.n_series].T],
        "predicted": [rounded(column) for column in both[:, table.n_series :].T],
        "figures": _figures(model, table),
        "recordings": len(table.recordings()),
        "segments": len(table.segments),
    }


def _figures(model: "CausalFormer", table: SeriesTable) -> list[dict[str, float | None]]:
    with np.errstate(over="ignore", invalid="ignore"):
        columns = {
            "observed": 1.0 - table.missing.mean(axis=0),
            "mean": np.nanmean(table.values, axis=0),
            "sd": np.nanstd(table.values, axis=0),
            "least": np.nanmin(table.values, axis=0),
            "most": np.nanmax(table.values, axis=0),
        }
    if hasattr(model, "diagnostics_"):
        columns["r2"] = model.diagnostics_.r2
        columns["better_than_linear"] = model.diagnostics_.better_than_linear
    return [
        {name: number(values[i]) for name, values in columns.items()} for i in range(table.n_series)
    ]


def _warnings(model: "CausalFormer", table: SeriesTable) -> list[str]:
    """Repeat what was said of the columns on reading and by the diagnostics."""
    look = idle_columns if hasattr(model, "diagnostics_") else inspect
    found = [finding.text for finding in look(table.values, table.names, table.segments)]
    return [*found, *getattr(getattr(model, "diagnostics_", None), "warnings", ())]


# --- How to repeat it -----------------------------------------------------------------------------


def _run(model: "CausalFormer", table: SeriesTable, run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "command": run.get("command"),
        "code": _code(model, table),
        "source": table.source,
        "sha256": hashlib.sha256(table.values.data).hexdigest(),
        "settings": {name: _shown(value) for name, value in model.settings_.model_dump().items()},
        "versions": _versions(),
    }


def _code(model: "CausalFormer", table: SeriesTable) -> str:
    """Write the call that repeats the fit."""
    defaults = signatures.signature(type(model)).parameters
    given = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in ("n_jobs", "device", "checkpoint", "on_epoch", "verbose", "knowledge")
        and value != defaults[name].default
        and value != {}
    }
    if "knowledge" in model.graph_.metadata:
        given["knowledge"] = model.graph_.metadata["knowledge"]
    given["random_state"] = model.random_state
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return (
        "from causalformer import CausalFormer\n\n"
        f"model = CausalFormer({arguments}).fit({table.source!r})\n"
        'model.report("report.html")'
    )


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _versions() -> dict[str, str]:
    return {
        "causalformer": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
    }
