"""Relevance rules, propagation through the trained network, causal scores."""
