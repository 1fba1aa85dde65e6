"""Temporal causal graphs from time series: which drives which, and after how long.

>>> from causalformer import CausalFormer
>>> from causalformer.datasets import load_example
>>> model = CausalFormer("paper-diamond-mediator", settings={"max_epochs": 2, "d_model": 8})
>>> graph = model.fit(load_example().series).graph_
>>> graph.names
('sun', ...)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from causalformer._version import __version__
from causalformer.errors import CausalFormerError, DataWarning
from causalformer.graph import CausalGraph, Edge

if TYPE_CHECKING:
    from causalformer.data import read_series
    from causalformer.estimator import CausalFormer
    from causalformer.knowledge import PriorKnowledge

__all__ = [
    "CausalFormer",
    "CausalFormerError",
    "CausalGraph",
    "DataWarning",
    "Edge",
    "PriorKnowledge",
    "__version__",
    "read_series",
]

_LAZY = {
    "CausalFormer": "causalformer.estimator",
    "PriorKnowledge": "causalformer.knowledge",
    "read_series": "causalformer.data",
}


def __getattr__(name: str) -> object:
    """Import what takes time, torch above all, only when it is asked for."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'causalformer' has no attribute {name!r}")
