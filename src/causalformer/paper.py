"""The paper's method from a table to a graph: scale, window, train, explain, select."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer.config import Settings
from causalformer.data import SeriesTable, check_usable
from causalformer.data.scaling import Scaling, fit_scaling
from causalformer.data.windows import (
    Split,
    sliding_windows,
    slots_with_past,
    split_at_random,
    split_by_time,
)
from causalformer.detect.clustering import check_clusters, select_by_clusters
from causalformer.devices import fast_small_steps
from causalformer.errors import DataError, SettingsError
from causalformer.explain.scores import causal_scores, main_lag
from causalformer.graph import CausalGraph, Edge
from causalformer.knowledge import KnownGraph, PriorKnowledge
from causalformer.model import CausalityAwareTransformer
from causalformer.model.loss import penalised_loss, prediction_error
from causalformer.model_files import StoredModel
from causalformer.training import CheckpointFile, Epoch, History, TrainingPlan, train

FloatArray = NDArray[np.float64]

_SEEDS_OF_KMEANS = 2**32  # torch takes larger ones


@dataclass(frozen=True, eq=False)
class PaperFit:
    """What the paper's method leaves behind."""

    settings: Settings
    names: tuple[str, ...]
    scaling: Scaling
    model: CausalityAwareTransformer
    history: History
    graph: CausalGraph
    scores: FloatArray
    lag_scores: FloatArray

    def attributes(self) -> dict[str, Any]:
        """Name the results as the estimator shows them."""
        return {
            "scores_": self.scores,
            "edge_scores_": self.scores,
            "lag_scores_": self.lag_scores,
        }

    def predict(self, table: SeriesTable) -> FloatArray:
        """Predict the last slot of every complete window, in the units of the data; else NaN."""
        check_usable(table, min_slots=self.settings.window, option="window", missing_ok=True)
        device = next(self.model.parameters()).device
        windows, slot = _windows(table, self.scaling, self.settings, device)
        predicted = np.full(table.values.shape, np.nan)
        with torch.no_grad():
            last = [self.model(x)[..., -1].cpu().numpy() for x in windows.split(1024)]
        predicted[slot] = self.scaling.undo(np.concatenate(last))
        return predicted

    def stored(self) -> dict[str, Any]:
        """Give the parts that `StoredModel` keeps."""
        return {
            "weights": self.model.state_dict(),
            "arrays": {
                "scaling.offset": self.scaling.offset,
                "scaling.factor": self.scaling.factor,
                "scaling.base": np.array(self.scaling.base),
                "scores": self.scores,
                "lag_scores": self.lag_scores,
            },
        }

    @classmethod
    def restored(cls, stored: StoredModel) -> Self:
        """Build from a stored model; weights that do not fit the settings raise an error."""
        settings = Settings.model_validate(stored.settings)
        model = CausalityAwareTransformer(len(stored.names), settings)
        model.load_state_dict(stored.weights)
        arrays = stored.arrays
        return cls(
            settings=settings,
            names=stored.names,
            scaling=Scaling(
                arrays["scaling.offset"], arrays["scaling.factor"], float(arrays["scaling.base"])
            ),
            model=model.eval(),
            history=stored.history,
            graph=stored.graph,
            scores=arrays["scores"],
            lag_scores=arrays["lag_scores"],
        )


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network that has learned to predict, and the windows it is read on."""

    scaling: Scaling
    windows: Tensor
    model: CausalityAwareTransformer
    history: History


def fit_paper(
    table: SeriesTable,
    settings: Settings,
    knowledge: PriorKnowledge,
    *,
    random_state: int,
    device: torch.device,
    metadata: Mapping[str, Any],
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> PaperFit:
    """Train the causality-aware transformer and read its graph."""
    check_usable(table, min_slots=settings.window + 1, option="window", missing_ok=True)
    known = knowledge.resolve(table.names, settings.window - 1)
    check_clusters(settings.n_clusters, table.n_series)
    with fast_small_steps(device, table.n_series):
        trained = train_network(
            table,
            settings,
            random_state=random_state,
            device=device,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
        )
        return read_network(
            trained, table.names, settings, known, random_state=random_state, metadata=metadata
        )


def train_network(
    table: SeriesTable,
    settings: Settings,
    *,
    random_state: int,
    device: torch.device,
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> TrainedNetwork:
    """Scale, cut into windows, and train to predict."""
    scaling = fit_scaling(table.values, settings.scaling)
    windows, _ = _windows(table, scaling, settings, device, least=2)
    generator = torch.Generator().manual_seed(random_state)
    model = CausalityAwareTransformer(table.n_series, settings, generator).to(device)
    history = train(
        model,
        windows,
        _split(len(windows), settings),
        lambda net, x: penalised_loss(net, x, settings.l1_kernel, settings.l1_mask),
        TrainingPlan.from_settings(settings),
        generator,
        validation_loss=prediction_error,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
    )
    return TrainedNetwork(scaling, windows, model, history)


def read_network(
    trained: TrainedNetwork,
    names: tuple[str, ...],
    settings: Settings,
    known: KnownGraph,
    *,
    random_state: int,
    metadata: Mapping[str, Any],
) -> PaperFit:
    """Decompose the network's predictions, cluster the scores, and read the lags."""
    scores = causal_scores(trained.model, trained.windows, settings)
    if not np.isfinite(scores.pair).all():
        raise SettingsError(
            "the network gives no finite scores: its training diverged; lower learning_rate, or "
            "check the data's scale"
        )
    chosen = select_by_clusters(
        scores.pair, settings.n_clusters, settings.top_clusters, random_state % _SEEDS_OF_KMEANS
    )
    required = known.required_lags.any(axis=-1, keepdims=True)
    lag = main_lag(scores.lag, np.where(required, known.required_lags, known.allowed))
    found = CausalGraph.from_arrays(
        names, chosen & known.allowed.any(axis=-1) | known.required, lag, scores.pair
    )
    further = tuple(
        Edge(names[j], names[i], int(k), scores.pair[j, i])
        for j, i, k in np.argwhere(known.required_lags)
        if k != lag[j, i]
    )
    return PaperFit(
        settings=settings,
        names=names,
        scaling=trained.scaling,
        model=trained.model,
        history=trained.history,
        graph=CausalGraph(names, (*found, *further), metadata),
        scores=scores.pair,
        lag_scores=scores.lag,
    )


def _split(n_windows: int, settings: Settings) -> Split:
    if settings.validation == "random":
        return split_at_random(n_windows, settings.validation_share)
    return split_by_time(n_windows, settings.window, settings.validation_share)


def _windows(
    table: SeriesTable, scaling: Scaling, settings: Settings, device: torch.device, least: int = 1
) -> tuple[Tensor, NDArray[np.int64]]:
    """Give the windows without a gap or a missing value, and the last slot of each."""
    n_before = settings.window - 1
    scaled = torch.from_numpy(scaling.apply(table.values)).to(device, torch.float32)
    windows = sliding_windows(scaled, settings.window)
    slot = slots_with_past(table.segments, n_before)
    if table.missing.any():
        n_missing = np.cumsum(np.vstack([table.missing[:1] * 0, table.missing]), axis=0)
        slot = slot[(n_missing[slot + 1] == n_missing[slot - n_before]).all(axis=1)]
    if len(slot) < least:
        raise DataError(
            f"{table.source} has {len(slot)} windows of {settings.window} slots without a gap, but "
            f"at least {least} are needed; fill the missing values (`missing`), or choose a "
            "smaller `window`"
        )
    if len(slot) < len(windows):
        windows = windows[torch.from_numpy(slot - n_before).to(device)]
    return windows, slot
