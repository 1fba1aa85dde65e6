"""Pictures of results, drawn with matplotlib and without touching its global state."""

from causalformer.plot.network import draw_graph, picture

__all__ = ["draw_graph", "picture"]
