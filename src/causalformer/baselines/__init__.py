"""Simple methods that every result must be compared with; each has the estimator's contract."""

from causalformer.baselines.self_loops import SelfLoops
from causalformer.baselines.var_granger import VarGranger

__all__ = ["SelfLoops", "VarGranger"]
