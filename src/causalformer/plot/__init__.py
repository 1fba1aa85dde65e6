"""Pictures of results, drawn with matplotlib and without touching its global state."""

from causalformer.plot.kinds import GRAPH_KINDS, MODEL_KINDS, draw_kind, draw_model
from causalformer.plot.lags import draw_lags
from causalformer.plot.map import Ground, draw_map, map_picture
from causalformer.plot.network import draw_graph, picture
from causalformer.plot.places import places_in_names, read_places
from causalformer.plot.scores import draw_scores
from causalformer.plot.series import draw_series
from causalformer.plot.style import picture_of
from causalformer.plot.training import draw_held_out, draw_training
from causalformer.plot.unrolled import draw_unrolled

__all__ = [
    "GRAPH_KINDS",
    "MODEL_KINDS",
    "Ground",
    "draw_graph",
    "draw_held_out",
    "draw_kind",
    "draw_lags",
    "draw_map",
    "draw_model",
    "draw_scores",
    "draw_series",
    "draw_training",
    "draw_unrolled",
    "map_picture",
    "picture",
    "picture_of",
    "places_in_names",
    "read_places",
]
