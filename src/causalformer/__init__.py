"""Temporal causal graphs from time series: which drives which, and after how long.

>>> from causalformer import CausalFormer
>>> from causalformer.datasets import load_example
>>> model = CausalFormer("paper-diamond-mediator", settings={"max_epochs": 2, "d_model": 8})
>>> graph = model.fit(load_example().series).graph_
>>> graph.names
('sun', ...)
"""

from typing import TYPE_CHECKING

from causalformer._version import __version__
from causalformer.errors import CausalFormerError, DataWarning
from causalformer.graph import CausalGraph, Edge

if TYPE_CHECKING:
    from causalformer.estimator import CausalFormer

__all__ = ["CausalFormer", "CausalFormerError", "CausalGraph", "DataWarning", "Edge", "__version__"]


def __getattr__(name: str) -> object:
    """Import the estimator, and torch with it, only when it is asked for."""
    if name == "CausalFormer":
        from causalformer.estimator import CausalFormer

        return CausalFormer
    raise AttributeError(f"module 'causalformer' has no attribute {name!r}")
