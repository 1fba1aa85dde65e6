import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import ArrowStyle, FancyArrowPatch

from causalformer.errors import DataError
from causalformer.graph import CausalGraph, Edge
from causalformer.plot.map import ALONG, NORTHWARD, SOUTHWARD, Ground, draw_map, map_picture

PLACES = {"a": (40.0, -30.0), "b": (44.0, -26.0), "c": (44.0, -22.0)}
GROUND = Ground(np.array([38.0, 42, 46]), np.array([-32.0, -28, -24, -20]), np.eye(2, 3) > 0)
GRAPH = CausalGraph(
    tuple(PLACES),
    (
        Edge("a", "b", 1, 4.0),
        Edge("a", "b", 2, 1.0),
        Edge("c", "a", 1, 3.0),
        Edge("b", "c", 1, 2.0),
        Edge("a", "a", 1, 9.0),
    ),
)


def arrows(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().texts]


def test_one_arrow_per_pair_coloured_by_direction_and_no_self_loops():
    axes = draw_map(GRAPH, PLACES, GROUND)
    colours = [to_hex(arrow.get_edgecolor()).upper() for arrow in arrows(axes)]
    assert colours == [NORTHWARD, SOUTHWARD, ALONG]
    assert legend(axes) == ["S→N: 1", "N→S: 1", "E–W: 1"]
    assert axes.get_title(loc="left") == ""


def test_stronger_is_wider_and_east_west_is_thin():
    north, south, along = (arrow.get_linewidth() for arrow in arrows(draw_map(GRAPH, PLACES)))
    assert north > south > along


def test_the_title_says_what_is_left_out():
    axes = draw_map(GRAPH, PLACES, most=1, title="sea")
    assert len(arrows(axes)) == 1
    assert axes.get_title(loc="left") == "sea, the strongest 1 of 3 links"
    assert legend(axes) == ["S→N: 1", "N→S: 1", "E–W: 1"]


def test_degrees_on_the_axes_and_limits_of_the_ground():
    axes = draw_map(GRAPH, PLACES, GROUND)
    assert axes.get_xlim() == (-32, -20)
    assert axes.get_ylim() == (38, 46)
    x, y = axes.xaxis.get_major_formatter(), axes.yaxis.get_major_formatter()
    assert [x(-40.0, 0), x(0.0, 0), x(190.0, 0), y(50.0, 0)] == ["40°W", "0°", "170°W", "50°N"]


def test_an_edge_without_direction_has_no_head():
    graph = CausalGraph(("a", "b"), (Edge("a", "b", 0, 1.0, oriented=False),))
    axes = draw_map(graph, PLACES)
    (arrow,) = arrows(axes)
    assert type(arrow.get_arrowstyle()) is ArrowStyle.Curve
    assert to_hex(arrow.get_edgecolor()).upper() == ALONG
    assert legend(axes) == ["S→N: 0", "N→S: 0", "E–W: 0", "direction unknown: 1"]


def test_an_edge_that_may_be_confounded_is_dash_dotted_and_counted():
    doubtful = Edge("a", "b", 1, 1.0, may_be_confounded="c precedes both")
    axes = draw_map(CausalGraph(("a", "b"), (doubtful, Edge("b", "a", 1))), PLACES)
    assert [arrow.get_linestyle() == "-" for arrow in arrows(axes)].count(True) == 1
    assert legend(axes)[-1] == "perhaps a hidden driver: 1"


def test_a_graph_without_edges_and_a_foreign_axes():
    figure, axes = plt.subplots()
    assert draw_map(CausalGraph(("a", "b")), PLACES, ax=axes) is axes
    assert legend(axes) == ["S→N: 0", "N→S: 0", "E–W: 0"]
    assert axes.get_title(loc="left") == "no link between places"
    plt.close(figure)


def test_pictures_are_the_same_every_time_and_leave_pyplot_alone():
    assert map_picture(GRAPH, PLACES, GROUND) == map_picture(GRAPH, PLACES, GROUND)
    assert map_picture(GRAPH, PLACES, file_format="pdf").startswith(b"%PDF")
    assert not plt.get_fignums()


def test_every_series_needs_a_place():
    with pytest.raises(DataError, match="no place is given for 'c'"):
        draw_map(GRAPH, {"a": (0.0, 0.0), "b": (4.0, 0.0)})
