"""What the parts are worth: methods with one part taken out, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator

from causalformer.config import DEFAULT
from causalformer.detect.clustering import select_by_clusters
from causalformer.graph import CausalGraph

PAPER_ABLATIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper-without-interpretation": {"interpretation": False},
        "paper-without-relevance": {"relevance": False},
        "paper-without-gradient": {"gradient": False},
        "paper-without-bias": {"bias": False},
        "paper-without-multi-kernel": {"multi_kernel": False},
    }
)
"""The variants of the paper's Table 3, by the settings that they change."""

DEFAULT_ABLATIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "default-without-masked-sources": {"removed_share": 0.0},
        "default-without-sparse-tests": {"sparse_evidence": False},
        "default-without-lag-weighting": {"lag_power": 0.0},
        "default-with-attention": {"attention": True},
    }
)
"""The same for the default's own parts."""

BY_RELEVANCE: Final = "default-by-relevance"
"""The default's network, read as the paper reads its own: relevance and k-means, no tests."""


ABLATIONS: Final = (*PAPER_ABLATIONS, *DEFAULT_ABLATIONS, BY_RELEVANCE)
"""Every variant; a comparison of methods leaves them out."""


class ByRelevance(BaseEstimator):  # type: ignore[misc]
    """Read the default's trained network by relevance alone.

    An edge is in the higher of two k-means classes of what the causes of an effect contribute to
    its prediction; its lag is the one through which most of that comes.

    Parameters
    ----------
    settings : mapping, optional
        Settings that replace those of the default.
    random_state : int
        Seed of the network and of k-means.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, random_state: int = 0) -> None:
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Train the default's network and sort the causes of every effect into two classes."""
        from causalformer.estimator import CausalFormer

        model = CausalFormer(
            DEFAULT, settings=self.settings, random_state=self.random_state, device="cpu"
        ).fit(X)
        self.history_ = model.history_
        self.edge_scores_ = model.scores_["strength"]
        self.graph_ = CausalGraph.from_arrays(
            model.graph_.names,
            select_by_clusters(self.edge_scores_, 2, 1, self.random_state),
            np.argmax(model.scores_["lag_profile"], axis=-1) + 1,
            self.edge_scores_,
            metadata={"method": BY_RELEVANCE},
        )
        return self
