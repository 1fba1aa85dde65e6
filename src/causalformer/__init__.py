"""causalformer."""
