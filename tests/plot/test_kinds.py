"""Every kind of picture: what is on it, for any names and sizes; and its files."""

import math
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from causalformer.errors import DataError, SettingsError
from causalformer.explain.local import LocalExplanation
from causalformer.graph import CausalGraph, Edge
from causalformer.plot import (
    GRAPH_KINDS,
    draw_graph,
    draw_lags,
    draw_scores,
    draw_series,
    draw_training,
    draw_unrolled,
    picture_of,
    places_in_names,
    read_places,
)
from causalformer.plot.style import BLACK, FAINT, GREY, VERMILLION
from causalformer.training import Epoch, History
from graph_examples import HOSTILE, doubtful, evident

KINDS = [kind for kind in GRAPH_KINDS if kind != "map"]
EMPTY = CausalGraph(("a", "b", "c"))
GUESS = CausalGraph(("a", "b"), (Edge("a", "b", 0, 0.5, oriented=False),))

STRANGE = CausalGraph(HOSTILE, tuple(Edge(HOSTILE[0], name, 1, 0.5) for name in HOSTILE))


def sparse(n, words=False):
    rng = np.random.default_rng(n)
    names = tuple(f"variable_{i}" if words else f"X{i}" for i in range(n))
    pairs = {tuple(rng.choice(n, 2, replace=False).tolist()) for _ in range(n)}
    edges = [Edge(names[i], names[j], int(rng.integers(0, 6)), rng.random()) for i, j in pairs]
    return CausalGraph(names, (*edges, *(Edge(name, name, 1, 0.2) for name in names[::2])))


def arrows(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def colours(axes):
    return [to_hex(arrow.get_edgecolor()).upper() for arrow in arrows(axes)]


def frames(axes):
    return {
        (round(p.get_y() + 0.44), round(p.get_x() + 0.44))
        for p in axes.patches
        if isinstance(p, Rectangle)
    }


def texts(axes):
    return [text.get_text() for text in axes.texts]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def png(axes):
    return picture_of(axes.get_figure(root=True), "png", dpi=40)


# -------------------------------------------------------------------- all kinds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("graph", [EMPTY, CausalGraph(("a",)), GUESS, STRANGE])
def test_no_graph_and_no_name_is_too_strange(kind, graph):
    assert png(graph.plot(kind=kind)).startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", KINDS)
def test_dollars_and_underscores_are_not_read_as_formulas(kind):
    graph = CausalGraph((r"$\frac{1}{0$", "a_b^c"), (Edge("a_b^c", r"$\frac{1}{0$", 1, 0.5),))
    axes = graph.plot(kind=kind)
    shown = [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]
    assert {t.get_text() for t in shown if not t.get_parse_math()} >= set(graph.names)
    png(axes)


@pytest.mark.parametrize("kind", KINDS)
def test_the_axes_given_are_used_and_equal_graphs_give_equal_files(kind):
    figure = Figure()
    ax = figure.add_subplot()
    assert evident().plot(ax, kind=kind) is ax
    one, two = (picture_of(evident().plot(kind=kind).get_figure(), "svg") for _ in range(2))
    assert one == two
    assert b"<dc:date>" not in one


def test_pdf_files_have_no_date():
    content = picture_of(EMPTY.plot(kind="lags").get_figure(), "pdf")
    assert b"CreationDate" not in content


def test_wrong_kinds_are_refused():
    with pytest.raises(SettingsError, match="no kind 'lag'; did you mean 'lags'"):
        EMPTY.plot(kind="lag")
    with pytest.raises(SettingsError, match="'training' needs a fitted model"):
        EMPTY.plot(kind="training")
    with pytest.raises(SettingsError, match="write kind='lags'"):
        EMPTY.plot("lags")
    with pytest.raises(SettingsError, match="'map' shows no truth"):
        EMPTY.plot(kind="map", truth=EMPTY)
    for kind in KINDS:
        with pytest.raises(DataError, match="different series: 'd'"):
            EMPTY.plot(kind=kind, truth=CausalGraph(("a", "b", "c", "d")))


# -------------------------------------------------------------------- summary of many series


@pytest.mark.parametrize("words", [False, True])
def test_fifty_series_are_apart_with_captions_that_do_not_collide(words):
    graph = sparse(50, words)
    axes = draw_graph(graph)
    nodes = [patch for patch in axes.patches if isinstance(patch, Circle)]
    centres = np.array([node.center for node in nodes])
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2) + 1e9 * np.eye(50)
    assert len(nodes) == 50
    assert gaps.min() > 2.5 * nodes[0].radius
    assert len(arrows(axes)) + sum(not e.oriented for e in graph) == len(
        graph.summary().nonzero()[0]
    )
    renderer = FigureCanvasAgg(axes.get_figure()).get_renderer()
    captions = [text for text in axes.texts if text.get_text() in graph.names]
    boxes = [text.get_window_extent(renderer) for text in captions]
    overlaps = sum(box.overlaps(other) for i, box in enumerate(boxes) for other in boxes[:i])
    assert len(captions) == 50
    assert overlaps <= 2
    labels = [text for text in axes.texts if text.get_text() not in graph.names]
    assert len(labels) > 0.6 * len(graph)


def test_many_series_look_the_same_every_time_and_arrows_pass_beside_nodes():
    graph = sparse(30)
    one, two = draw_graph(graph), draw_graph(graph)
    assert [a._path_original.vertices.tolist() for a in arrows(one)] == [
        a._path_original.vertices.tolist() for a in arrows(two)
    ]
    nodes = [patch for patch in one.patches if isinstance(patch, Circle)]
    hits = 0
    for arrow in arrows(one):
        if len(arrow._path_original.vertices) == 3:
            p, q, r = arrow._path_original.vertices
            t = np.linspace(0, 1, 41)[:, None]
            points = (1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r
            hits += sum(
                np.linalg.norm(points - n.center, axis=1).min() < 0.95 * n.radius for n in nodes
            )
    assert hits <= 1


def test_width_is_strength_where_all_edges_have_one():
    edges = (Edge("a", "b", 1, 9.0, strength=0.1), Edge("b", "c", 1, 1.0, strength=0.8))
    weak, strong = reversed(arrows(draw_graph(CausalGraph(("a", "b", "c"), edges))))
    assert strong.get_linewidth() > weak.get_linewidth()


# -------------------------------------------------------------------- unrolled


def test_unrolled_edges_lead_into_the_last_slot_and_repeat_faintly():
    graph = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.9), Edge("b", "b", 1, 0.5)))
    axes = draw_unrolled(graph)
    assert len(arrows(axes)) == 3  # lag 1 fits in twice
    assert colours(axes).count(FAINT) == 1
    assert [t.get_text() for t in axes.get_yticklabels()] == ["b", "a"]
    assert axes.get_legend() is None


def test_unrolled_edges_within_a_slot_are_dashed_and_guesses_have_no_head():
    axes = draw_unrolled(CausalGraph(("a", "b", "c"), (*GUESS, Edge("b", "c", 0))))
    assert len(arrows(axes)) == 2  # one edge, twice
    assert len(axes.lines) == 4
    assert all(line.is_dashed() for line in axes.lines)
    assert legend(axes) == ["lagged", "contemporaneous", "no head: direction unknown"]


def test_unrolled_edges_that_may_be_confounded_are_explained():
    axes = draw_unrolled(doubtful())
    png(axes)
    told = ["lagged", "contemporaneous", "perhaps a hidden driver", "no head: direction unknown"]
    assert legend(axes) == told


def test_unrolled_truth_counts_the_lag():
    found = CausalGraph(("a", "b"), (Edge("a", "b", 2, 0.9), Edge("b", "b", 1, 0.5)))
    truth = CausalGraph(("a", "b"), (Edge("a", "b", 1), Edge("b", "b", 1)))
    axes = draw_unrolled(found, truth=truth)
    shown = [colour for colour in colours(axes) if colour != FAINT]
    assert sorted(shown) == sorted([GREY, BLACK, VERMILLION])
    assert legend(axes) == ["true", "false", "missed"]


# -------------------------------------------------------------------- matrices


def test_lags_are_numbers_and_guesses_have_a_question_mark():
    axes = draw_lags(evident(), truth=CausalGraph(("c", "b", "a"), (Edge("a", "c", 1),)))
    assert texts(axes) == ["2", "0?", "1"]
    assert frames(axes) == {(0, 2)}
    assert axes.get_title(loc="left") == (
        "lag of the strongest edge; ?: direction unknown; frame: true pair"
    )
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("cause", "effect")


def test_lags_that_may_be_confounded_have_a_star():
    axes = draw_lags(doubtful())
    assert texts(axes) == ["2*", "0?*", "1"]
    assert axes.get_title(loc="left") == (
        "lag of the strongest edge; ?: direction unknown; *: perhaps a hidden driver"
    )


def test_scores_of_edges_and_of_all_pairs():
    assert texts(draw_scores(evident(), evidence="q_value")) == [".003", ".04"]
    full = {"p_value": np.full((3, 3), 0.5), "lag_profile": np.zeros((3, 3, 2))}
    axes = draw_scores(evident(), evidence="p_value", matrices=full, alpha=0.05)
    assert texts(axes) == ["•"] * 3
    assert "α = 0.05" in [t.get_text() for t in axes.get_figure().axes[1].get_yticklabels()]
    with pytest.raises(SettingsError, match="no evidence called 'pvalue'; did you mean 'p_value'"):
        draw_scores(evident(), evidence="pvalue")
    with pytest.raises(SettingsError, match="no frequency"):
        draw_scores(evident(), evidence="frequency")
    with pytest.raises(SettingsError, match="lag_profile"):
        draw_scores(evident(), evidence="lag_profile", matrices=full)


def test_odd_scores_do_no_harm():
    odd = (math.inf, -math.inf, math.nan, 1e308, -1e308, 0.0)
    names = tuple("abcdefg")
    edges = tuple(Edge("a", n, 1, s) for n, s in zip(names[1:], odd, strict=True))
    for kind in KINDS:
        png(CausalGraph(names, edges).plot(kind=kind))
    zero = CausalGraph(("a", "b"), (Edge("a", "b", 1, p_value=0.0),))
    png(zero.plot(kind="scores", evidence="p_value"))


# -------------------------------------------------------------------- series, training, places


def explanation(n_series=3, n_lags=2, slot=20):
    relevance = np.zeros((n_series, n_series, n_lags))
    relevance[0, 1] = [0.5, -0.2]
    prediction = np.array([0.1, -0.8, 0.3])
    names = ("$x$", "y_1", "😀")
    zeros = np.zeros(n_series)
    return LocalExplanation(
        slot, names, relevance, zeros, prediction, relevance[:, 0], observed=zeros
    )


def test_series_show_what_drove_the_most_remarkable_prediction():
    values = np.random.default_rng(0).normal(size=(40, 3))
    values[18, 2] = np.nan
    axes = draw_series(explanation(), values, predicted=values[20])
    assert [t.get_text() for t in axes.get_yticklabels()] == ["y_1", "$x$", "😀"]
    assert axes.get_title(loc="left") == "What drove y_1 at slot 20"
    assert legend(axes) == ["observed", "predicted"]
    png(axes)
    top, second = axes.collections[:2]
    np.testing.assert_allclose(second.get_array().ravel(), [-0.2, 0.5])
    assert not top.get_array().any()


def test_series_of_a_chosen_effect_with_times():
    values = np.zeros((40, 3))
    time = np.arange("2024-01", "2024-02-10", dtype="datetime64[D]").astype("datetime64[ns]")
    axes = draw_series(explanation(), values, effect="$x$", time=time, most=1)
    assert axes.get_title(loc="left") == "What drove $x$ at 2024-01-21"
    assert len(axes.get_yticklabels()) == 1
    with pytest.raises(DataError, match="no series is called 'z'"):
        draw_series(explanation(), values, effect="z")


def boxes(artists):
    return [artist.get_window_extent() for artist in artists]


@pytest.mark.parametrize(
    ("unit", "step", "named"),
    [("s", 3600 * 24 * 30, "2024-01-01"), ("us", 1_500_000, "2024-01-01 00:00:01.5")],
)
def test_times_do_not_overlap_and_are_as_short_as_they_can_be(unit, step, named):
    time = np.datetime64("2024-01-01", unit) + step * np.arange(40)
    axes = draw_series(explanation(), np.zeros((40, 3)), predicted=np.zeros(3), time=time)
    png(axes)  # places everything
    labels = axes.get_xticklabels()
    assert len(labels) >= 2
    assert all(len(label.get_text()) <= len(named) for label in labels)
    across = boxes(labels)
    assert all(a.x1 < b.x0 for a, b in pairwise(across))
    title, shown = boxes([axes._left_title, axes.get_legend()])
    assert title.y0 >= shown.y1


def test_the_legend_hides_no_node():
    edges = (Edge("a", "b", 0), Edge("c", "d", 1))
    for n in (3, 4, 5):
        axes = draw_graph(CausalGraph(tuple("abcdefgh"[: n + 1]), edges))
        png(axes)
        key = axes.get_legend().get_window_extent()
        nodes = [patch for patch in axes.patches if isinstance(patch, Circle)]
        assert not any(key.overlaps(box) for box in boxes(nodes))


def test_losses_with_and_without_validation():
    def history(gap):
        epochs = [Epoch(k, 1 / (k + 1), 1 / (k + 1) + gap, 0.1, k < 3) for k in range(5)]
        return History(tuple(epochs), "patience")

    assert [line.get_label() for line in draw_training(history(0.1)).lines] == [
        *("training", "validation", "kept: epoch 3")
    ]
    assert len(draw_training(history(0.0)).lines) == 1


def test_places_come_from_names_or_a_file(tmp_path):
    graph = CausalGraph(("40N 30W", "44.5N 26E"), (Edge("40N 30W", "44.5N 26E", 1, 0.9),))
    assert len(arrows(graph.plot(kind="map"))) == 1
    with pytest.raises(DataError, match="'a', 'b', 'c' tell no place"):
        places_in_names(EMPTY.names)
    path = tmp_path / "places.csv"
    path.write_text("a,1,2\nb,3,4\nc,x,5\n")
    with pytest.raises(DataError.__mro__[1], match="line 3"):
        read_places(path)
    path.write_text("name,lat,lon\na,1,2\nb,3,4\nc,-5,5\n")
    axes = EMPTY.plot(kind="map", places=read_places(path))
    assert axes.get_title(loc="left") == "no link between places"
