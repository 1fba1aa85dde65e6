"""The kinds of pictures by name; `CausalGraph.plot` and `CausalFormer.plot` call this."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph
from causalformer.names import did_you_mean
from causalformer.plot.lags import draw_lags
from causalformer.plot.map import Ground, draw_map
from causalformer.plot.network import draw_graph
from causalformer.plot.places import places_in_names
from causalformer.plot.scores import draw_scores
from causalformer.plot.series import draw_series
from causalformer.plot.style import new_figure
from causalformer.plot.training import draw_held_out, draw_training
from causalformer.plot.unrolled import draw_unrolled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from causalformer.data import SeriesTable
    from causalformer.estimator import CausalFormer

GraphKind = Literal["summary", "unrolled", "lags", "scores", "map"]
ModelKind = Literal[GraphKind, "p_values", "series", "training", "held_out"]

GRAPH_KINDS: Final[tuple[str, ...]] = get_args(GraphKind)
MODEL_KINDS: Final[tuple[str, ...]] = get_args(ModelKind)
WITH_TRUTH: Final = ("summary", "unrolled", "lags", "scores", "p_values")


def draw_kind(
    graph: CausalGraph,
    kind: str,
    ax: "Axes | None" = None,
    *,
    truth: CausalGraph | None = None,
    evidence: str = "score",
    places: Mapping[str, tuple[float, float]] | None = None,
    ground: Ground | None = None,
) -> "Axes":
    """Draw a graph; see `CausalGraph.plot`.

    Examples
    --------
    >>> draw_kind(CausalGraph(("a", "b")), "training")
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: kind 'training' needs a fitted model; a graph has the kinds
    summary, unrolled, lags, scores, map
    """
    _check(kind, GRAPH_KINDS, truth)
    if kind == "summary":
        return draw_graph(graph, ax, truth=truth)
    if kind == "unrolled":
        return draw_unrolled(graph, ax, truth=truth)
    if kind == "lags":
        return draw_lags(graph, ax, truth=truth)
    if kind == "scores":
        return draw_scores(graph, ax, evidence=evidence, truth=truth)
    return draw_map(graph, places_in_names(graph.names) if places is None else places, ground, ax)


def draw_model(
    model: "CausalFormer",
    kind: str,
    ax: "Axes | None" = None,
    *,
    truth: CausalGraph | None = None,
    evidence: str = "score",
    places: Mapping[str, tuple[float, float]] | None = None,
    ground: Ground | None = None,
    at: Any = None,
    effect: str | None = None,
    table: "SeriesTable | None" = None,
) -> "Axes":
    """Draw a fitted model; see `CausalFormer.plot`. For series, ``table`` holds them."""
    _check(kind, MODEL_KINDS, truth)
    is_default = hasattr(model, "diagnostics_")
    if kind in ("p_values", "series", "held_out") and not is_default:
        raise SettingsError(
            f"kind {kind!r} needs the default method; this model has the preset {model.preset!r}"
        )
    if kind in ("scores", "p_values"):
        return draw_scores(
            model.graph_,
            ax,
            evidence="p_value" if kind == "p_values" else evidence,
            matrices=model.scores_ if is_default else {"score": model.scores_},
            truth=truth,
            alpha=model.alpha if is_default else None,
        )
    if kind == "series":
        if at is None or table is None:
            raise SettingsError("kind 'series' explains one slot: say which with `at`")
        explanation = model.explain(at, table)
        predicted = model.predict(table).to_numpy()[explanation.slot]
        return draw_series(
            explanation, table.values, ax, effect=effect, predicted=predicted, time=table.time
        )
    if kind == "held_out":
        return draw_held_out(model.diagnostics_, ax)
    if kind == "training":
        if ax is not None or not is_default:
            return draw_training(model.history_, ax)
        height = min(max(3.2, 1.3 + 0.24 * len(model.names_)), 12.0)
        losses, held_out = new_figure((8.6, height)).subplots(1, 2)
        draw_held_out(model.diagnostics_, held_out)
        return draw_training(model.history_, losses)
    return draw_kind(model.graph_, kind, ax, truth=truth, places=places, ground=ground)


def _check(kind: str, kinds: tuple[str, ...], truth: CausalGraph | None) -> None:
    if kind not in kinds:
        if kind in MODEL_KINDS:
            raise SettingsError(
                f"kind {kind!r} needs a fitted model; a graph has the kinds {', '.join(kinds)}"
            )
        raise SettingsError(
            f"there is no kind {kind!r};{did_you_mean(kind, kinds)} choose from {', '.join(kinds)}"
        )
    if truth is not None and kind not in WITH_TRUTH:
        raise SettingsError(
            f"kind {kind!r} shows no truth; leave it out, or choose from {', '.join(WITH_TRUTH)}"
        )
