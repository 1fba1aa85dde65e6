"""The drawing: what is on it, where, and that it leaves matplotlib's global state alone."""

import io
import itertools
import math

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from causalformer.errors import DataError
from causalformer.graph import CausalGraph, Edge
from causalformer.plot import draw_graph, picture
from causalformer.plot.network import BLACK, GREY, VERMILLION
from fresh_interpreter import loaded_by
from graph_examples import doubtful


def dense(n):
    names = tuple(f"X{i}" for i in range(n))
    rng = np.random.default_rng(n)
    return CausalGraph(
        names,
        tuple(
            Edge(cause, effect, int(rng.integers(1, 5)), float(rng.random()))
            for cause in names
            for effect in names
            if cause == effect or rng.random() < 0.4
        ),
    )


def arrows(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def nodes(axes):
    return [patch for patch in axes.patches if isinstance(patch, Circle)]


def texts(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 15, 25])
def test_every_series_and_every_pair_is_drawn_inside_the_axes(n):
    graph = dense(n)
    axes = draw_graph(graph)
    assert len(nodes(axes)) == n
    assert len(arrows(axes)) == len(graph)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for arrow in arrows(axes):
        x, y = np.concatenate(arrow._path_original.to_polygons(closed_only=False)).T
        assert left < x.min() <= x.max() < right
        assert bottom < y.min() <= y.max() < top


def test_first_series_is_on_top_and_the_others_follow_clockwise():
    north, east, south, west = (circle.center for circle in nodes(draw_graph(dense(4))))
    assert north == pytest.approx((0, 1))
    assert east == pytest.approx((1, 0))
    assert south == pytest.approx((0, -1))
    assert west == pytest.approx((-1, 0))


def test_lags_of_a_pair_share_one_arrow():
    graph = CausalGraph(("a", "b"), (Edge("a", "b", 3, 0.9), Edge("a", "b", 1, 0.5)))
    axes = draw_graph(graph)
    assert len(arrows(axes)) == 1
    assert texts(axes) == ["a", "b", "1, 3"]


def test_higher_scores_are_wider_and_odd_scores_do_no_harm():
    scores = (math.inf, 0.9, 0.1, -math.inf, math.nan)
    names = tuple("abcdef")
    edges = tuple(Edge("a", name, 1, s) for name, s in zip(names[1:], scores, strict=True))
    widths = [arrow.get_linewidth() for arrow in arrows(draw_graph(CausalGraph(names, edges)))][
        ::-1
    ]
    assert widths[0] == widths[1] > widths[2] == widths[3] == widths[4] > 0
    for score in (1e308, -1e308):
        extreme = CausalGraph(("a", "b"), (Edge("a", "b", 1, score), Edge("b", "a", 1, 0.0)))
        assert np.isfinite([arrow.get_linewidth() for arrow in arrows(draw_graph(extreme))]).all()


def test_instantaneous_edges_are_dashed_and_explained():
    axes = draw_graph(CausalGraph(("a", "b"), (Edge("a", "b", 0), Edge("b", "a", 1))))
    (line,) = axes.lines
    assert line.is_dashed()
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["lagged", "contemporaneous"]


def test_edges_without_direction_have_no_head():
    guess = Edge("a", "b", 0, oriented=False)
    axes = draw_graph(CausalGraph(("a", "b", "c"), (guess, Edge("b", "c", 0))))
    assert len(axes.lines) == 2
    (arrow,) = arrows(axes)
    end = arrow._path_original.vertices[-1]
    assert np.linalg.norm(end - nodes(axes)[2].center) < 1.1 * nodes(axes)[2].radius
    assert axes.get_legend().get_texts()[-1].get_text() == "no head: direction unknown"
    both = draw_graph(CausalGraph(("a", "b"), (guess, Edge("a", "b", 2))))
    assert len(arrows(both)) == 1  # one of the two lags has a direction
    missed = draw_graph(CausalGraph(("a", "b")), truth=CausalGraph(("a", "b"), (guess,)))
    assert not arrows(missed)
    assert len(missed.lines) == 1


def test_edges_that_may_be_confounded_are_dash_dotted_and_explained():
    axes = draw_graph(doubtful())
    first, second = axes.lines
    assert first.get_linestyle() == second.get_linestyle() == "--"  # as matplotlib says
    assert len(arrows(axes)) == 2  # b — c has no head
    told = ["lagged", "contemporaneous", "perhaps a hidden driver", "no head: direction unknown"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == told
    lagged = CausalGraph(("a", "b"), doubtful().edges[:1])
    assert [t.get_text() for t in draw_graph(lagged).get_legend().get_texts()] == told[2:3]


def test_a_link_without_direction_beside_a_truth_the_other_way_round():
    guess = CausalGraph(("a", "b"), (Edge("a", "b", 0, oriented=False),))
    axes = draw_graph(guess, truth=CausalGraph(("a", "b"), (Edge("b", "a", 0),)))
    assert len(arrows(axes)) == 1  # the missed one
    assert len(axes.lines) == 2


def test_truth_colours_true_false_and_missed_pairs():
    found = CausalGraph(("a", "b", "c"), (Edge("a", "b", 2, 0.9), Edge("b", "c", 1, 0.5)))
    truth = CausalGraph(("c", "b", "a"), (Edge("a", "b", 1), Edge("c", "a", 3)))
    axes = draw_graph(found, truth=truth)
    colours = [to_hex(arrow.get_edgecolor()).upper() for arrow in arrows(axes)][::-1]
    assert colours == [BLACK, VERMILLION, GREY]
    assert texts(axes)[3:] == ["2", "1", "3"]
    assert len(axes.lines) == 1  # the missed one is dashed
    with pytest.raises(DataError, match="'c'"):
        draw_graph(found, truth=CausalGraph(("a", "b")))


@pytest.mark.parametrize("n", [3, 5, 10])
def test_labels_do_not_hide_each_other_or_lie_under_nodes(n):
    axes = draw_graph(dense(n))
    figure = axes.get_figure()
    renderer = FigureCanvasAgg(figure).get_renderer()
    labels = [text for text in axes.texts if text.get_text().isdigit()]
    boxes = [text.get_window_extent(renderer) for text in labels]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
    for text in labels:
        place = np.array(text.get_position())
        assert all(np.linalg.norm(place - c.center) > c.radius for c in nodes(axes))


def test_opposite_arrows_take_different_ways():
    for n in (2, 3, 4, 6):
        names = tuple(map(str, range(n)))
        for a, b in itertools.combinations(names, 2):
            graph = CausalGraph(names, (Edge(a, b, 1), Edge(b, a, 1)))
            one, two = (arrow._path_original.vertices[1] for arrow in arrows(draw_graph(graph)))
            assert np.linalg.norm(one - two) > 0.1


@pytest.mark.parametrize("n", [5, 10, 15])
def test_arrows_pass_beside_the_nodes_in_between(n):
    names = tuple(map(str, range(n)))
    full = CausalGraph(names, tuple(Edge(a, b, 1) for a in names for b in names if a != b))
    axes = draw_graph(full)
    t = np.linspace(0, 1, 41)[:, None]
    for arrow in arrows(axes):
        p, q, r = arrow._path_original.vertices
        points = (1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r
        for circle in nodes(axes):
            assert np.linalg.norm(points - circle.center, axis=1).min() > 0.99 * circle.radius


@pytest.mark.parametrize("file_format", ["png", "svg", "pdf"])
def test_hostile_and_long_names_can_be_drawn(file_format):
    names = (
        r"$\frac{1}{0$",
        "emoji 😀 \U0001f9ff",
        "日本語",
        "new\nline",
        "\x00\x1b\ufffe -- -->",
        "<b>&amp;</b>",
        "a_very_long_identifier_without_any_space_" * 3,
        "",
        "   ",
    )
    graph = CausalGraph(names, tuple(Edge(names[0], name, 1) for name in names))
    content = picture(graph, file_format)
    assert len(content) > 1000
    if file_format == "svg":
        import xml.etree.ElementTree as ET

        ET.parse(io.BytesIO(content))


def test_long_names_are_wrapped_and_cut():
    graph = CausalGraph(("Sea surface temperature, northern Pacific, monthly mean", "b"))
    caption = texts(draw_graph(graph))[0]
    assert caption == "Sea surface\ntemperature,\nnorthern…"


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_graphs_save_as_pictures(tmp_path, suffix):
    path = dense(3).save(tmp_path / f"graph{suffix}")
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)


def test_draws_on_given_axes_of_any_size():
    figure = Figure(figsize=(6, 2))
    for ax in figure.subplots(1, 4):
        assert dense(5).plot(ax) is ax
    figure.add_axes((0.0, 0.0, 0.001, 0.001))
    draw_graph(dense(5), figure.axes[-1])
    figure.savefig(io.BytesIO())


def test_global_state_of_matplotlib_is_left_alone():
    before = dict(mpl.rcParams)
    picture(dense(3), "png")
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in loaded_by(
        "from causalformer.graph import CausalGraph\n"
        "from causalformer.plot import picture; picture(CausalGraph(('a', 'b')), 'png')"
    )
