"""The causality-aware transformer, one module per block of the paper's figure."""

from causalformer.model.transformer import CausalityAwareTransformer

__all__ = ["CausalityAwareTransformer"]
