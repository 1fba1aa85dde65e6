"""Methods that results must be compared with, one file each; all have the estimator's contract.

`METHODS` lists them by the names that benchmarks use. None is imported before it is asked for.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

_MODULES: Final = {
    "SelfLoops": "self_loops",
    "VarGranger": "var_granger",
    "VarLasso": "var_penalised",
    "VarRidge": "var_penalised",
    "CMLP": "cmlp",
    "CLSTM": "clstm",
    "TCDF": "tcdf",
    "DVGNN": "dvgnn",
    "CUTS": "cuts",
    "JRNGC": "jrngc",
    "DYNOTEARS": "dynotears",
    "TiMINo": "timino",
    "VARLiNGAM": "varlingam",
    "PCMCI": "pcmci",
    "PCMCIPlus": "pcmci",
}

METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "self-loops": "SelfLoops",
        "var": "VarGranger",
        "var-lasso": "VarLasso",
        "var-ridge": "VarRidge",
        "cmlp": "CMLP",
        "clstm": "CLSTM",
        "tcdf": "TCDF",
        "dvgnn": "DVGNN",
        "cuts": "CUTS",
        "jrngc": "JRNGC",
        "dynotears": "DYNOTEARS",
        "timino": "TiMINo",
        "varlingam": "VARLiNGAM",
        "pcmci": "PCMCI",
        "pcmci-plus": "PCMCIPlus",
    }
)
"""The class of every method, by its name in benchmarks."""

__all__ = ["METHODS", *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a method, and torch with it, only when it is asked for."""
    if name in _MODULES:
        return getattr(import_module(f"causalformer.baselines.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'causalformer.baselines' has no attribute {name!r}")
