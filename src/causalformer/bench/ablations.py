"""What the parts are worth: methods with one part taken out, by name."""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator

from causalformer.config import DEFAULT, Settings
from causalformer.data import SeriesTable
from causalformer.detect.clustering import select_by_clusters
from causalformer.devices import fast_small_steps
from causalformer.graph import CausalGraph
from causalformer.knowledge import PriorKnowledge
from causalformer.paper import TrainedNetwork, read_network, train_network

PAPER_ABLATIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper-without-interpretation": {"interpretation": False},
        "paper-without-relevance": {"relevance": False},
        "paper-without-gradient": {"gradient": False},
        "paper-without-bias": {"relevance_bias": False},
        "paper-without-multi-kernel": {"multi_kernel": False},
    }
)
"""The variants of the paper's Table 3, by the settings that they change.

The published runs themselves leave the bias out of the denominators, so "without bias" changes
nothing; `PAPER_READINGS` has its counterpart, with the bias.
"""

PAPER_READINGS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper-with-bias": {"relevance_bias": True},
        "paper-every-layer": {"relevance_layers": "all"},
        "paper-without-norms": {"normalisation": "none"},
        "paper-text": {
            "relevance_bias": True,
            "relevance_layers": "all",
            "normalisation": "none",
        },
        "paper-blocked": {"validation": "blocked"},
    }
)
"""Where the text says other than the published runs did, and a validation on unseen slots."""

DEFAULT_ABLATIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "default-without-masked-sources": {"removed_share": 0.0},
        "default-without-sparse-tests": {"sparse_evidence": False},
        "default-without-lag-weighting": {"lag_power": 0.0},
    }
)
"""The same for the default's own parts."""

BY_RELEVANCE: Final = "default-by-relevance"
"""The default's network, read as the paper reads its own: relevance and k-means, no tests."""


ABLATIONS: Final = (*PAPER_ABLATIONS, *PAPER_READINGS, *DEFAULT_ABLATIONS, BY_RELEVANCE)
"""Every variant; a comparison of methods leaves them out."""


class PaperVariant(BaseEstimator):  # type: ignore[misc]
    """The paper's method with one part changed; variants that only read otherwise train once.

    The network that was trained last is kept: a variant whose training is the same reads it. Its
    seconds are those of the reading then.

    Parameters
    ----------
    settings : mapping
        All settings of `causalformer.config.Settings`.
    random_state : int
        Seed of the network and of k-means.
    """

    def __init__(self, settings: Mapping[str, Any], random_state: int = 0) -> None:
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: SeriesTable, y: None = None) -> Self:  # noqa: ARG002
        """Train, unless the same has just been trained, and read the graph."""
        settings = Settings.model_validate(self.settings)
        cpu = torch.device("cpu")
        known = PriorKnowledge().resolve(X.names, settings.window - 1)
        with fast_small_steps(cpu, X.n_series):
            fit = read_network(
                self._trained(X, settings, cpu),
                X.names,
                settings,
                known,
                random_state=self.random_state,
                metadata={"method": "paper"},
            )
        self.graph_, self.edge_scores_, self.history_ = fit.graph, fit.scores, fit.history
        return self

    def _trained(self, X: SeriesTable, settings: Settings, device: torch.device) -> TrainedNetwork:
        key = (
            hashlib.sha256(X.values.tobytes()).hexdigest(),
            (X.values.shape, X.starts),
            training_settings(settings.model_dump()),
            self.random_state,
        )
        if _LAST_TRAINED.get("key") != key:
            network = train_network(X, settings, random_state=self.random_state, device=device)
            _LAST_TRAINED.update(key=key, network=network)
        trained: TrainedNetwork = _LAST_TRAINED["network"]
        return trained


_LAST_TRAINED: dict[str, Any] = {}
_READ_ONLY = (
    *("interpretation", "relevance", "gradient", "relevance_bias", "relevance_layers"),
    *("n_clusters", "top_clusters"),
)


def training_settings(settings: Mapping[str, Any]) -> str:
    """Name the settings of the paper's method that decide the training."""
    return json.dumps({k: v for k, v in settings.items() if k not in _READ_ONLY}, sort_keys=True)


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
