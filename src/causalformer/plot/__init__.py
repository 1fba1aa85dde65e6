"""Pictures of results, drawn with matplotlib and without touching its global state."""

from causalformer.plot.map import Ground, draw_map, map_picture
from causalformer.plot.network import draw_graph, picture

__all__ = ["Ground", "draw_graph", "draw_map", "map_picture", "picture"]
