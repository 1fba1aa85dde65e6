"""The estimator: read, scale, window, train, explain, select; thin by intention."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from causalformer._version import __version__
from causalformer.config import Settings, resolve_settings
from causalformer.data import SeriesTable, check_usable, read_series
from causalformer.data.scaling import Scaling, fit_scaling
from causalformer.data.windows import sliding_windows, split_by_time
from causalformer.detect.clustering import check_clusters, select_by_clusters
from causalformer.devices import choose_device, fast_small_steps
from causalformer.errors import DataError
from causalformer.explain.scores import causal_scores
from causalformer.graph import CausalGraph
from causalformer.model import CausalityAwareTransformer
from causalformer.model.loss import penalised_loss
from causalformer.model_files import StoredModel, load_model, save_model
from causalformer.training import CheckpointFile, Epoch, TrainingPlan, train

if TYPE_CHECKING:
    import pandas as pd


class CausalFormer(BaseEstimator):  # type: ignore[misc]
    """Discover which series drives which, and after how long.

    A causality-aware transformer learns to predict every series from the past of all; relevance
    propagation then says which causes and lags the prediction rests on.

    Parameters
    ----------
    preset : str
        Named settings, one of `causalformer.config.PRESETS`.
    settings : mapping, optional
        Single settings that replace the preset's, for example ``{"window": 8}``; see
        `causalformer.config.Settings`.
    random_state : int
        Seed of the initial weights, the order of the batches and k-means: the same seed gives the
        same graph.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.
    checkpoint : path, optional
        File in which the state of the training is kept; if it exists, training goes on from it.
    on_epoch : callable, optional
        Receives a `causalformer.training.Epoch` after every epoch.

    Attributes
    ----------
    graph_ : CausalGraph
        The discovered edges, by name.
    scores_ : array ``[cause, effect]``
        Causal score of every pair.
    lag_scores_ : array ``[cause, effect, lag]``
        Causal score of every lag, from 0 to the window.
    history_ : History
        Losses of every epoch, and why training ended.
    settings_ : Settings
        The settings in force.
    names_ : tuple of str
        Names of the series.
    model_ : CausalityAwareTransformer
        The trained network.

    Examples
    --------
    >>> from causalformer.datasets import load_example
    >>> model = CausalFormer("paper-diamond-mediator", settings={"max_epochs": 2, "d_model": 8})
    >>> model.fit(load_example().series).graph_.to_frame().columns.tolist()
    ['cause', 'effect', 'lag', 'kind', 'score']
    """

    def __init__(
        self,
        preset: str = "paper-fmri",
        *,
        settings: Mapping[str, Any] | None = None,
        random_state: int = 0,
        device: str = "auto",
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[Epoch], object] | None = None,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.checkpoint = checkpoint
        self.on_epoch = on_epoch

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Train on ``X`` and build the causal graph.

        Parameters
        ----------
        X : frame, array, path or SeriesTable
            One column per series, one row per time slot; see `causalformer.data.read_series`.
        y : None
            Ignored; here for scikit-learn's sake.

        Returns
        -------
        CausalFormer
            The estimator itself.
        """
        settings = resolve_settings(self.preset, self.settings)
        device = choose_device(self.device)
        table = read_series(X)
        check_usable(table, min_slots=settings.window + 1, option="window")
        check_clusters(settings.n_clusters, table.n_series)
        scaling = fit_scaling(table.values, settings.scaling, settings.zoom_low, settings.zoom_high)
        with fast_small_steps(device, table.n_series):
            windows = self._windows(table, scaling, settings, device)
            generator = torch.Generator().manual_seed(self.random_state)
            level = float(windows.mean())
            model = CausalityAwareTransformer(table.n_series, settings, generator, level).to(device)
            history = train(
                model,
                windows,
                split_by_time(len(windows), settings.window, settings.validation_share),
                lambda net, x: penalised_loss(net, x, settings.l1_kernel, settings.l1_mask),
                TrainingPlan.from_settings(settings),
                generator,
                on_epoch=self.on_epoch,
                checkpoint=self._checkpoint_file(table, settings),
            )
            scores = causal_scores(model, windows, settings)
        self.settings_, self.names_, self.scaling_ = settings, table.names, scaling
        self.n_features_in_ = table.n_series
        self.model_, self.history_ = model, history
        self.scores_, self.lag_scores_ = scores.pair, scores.lag
        self.graph_ = self._build_graph(settings)
        return self

    def predict(self, X: Any) -> "pd.DataFrame":
        """Predict every slot of ``X`` from the slots before it, in the units of the data.

        Every row is the last slot of the window that ends there, so the first ``window - 1`` rows
        have no prediction (NaN).
        """
        import pandas as pd

        check_is_fitted(self, "model_")
        table = read_series(X)
        if table.names != self.names_:
            raise DataError(
                f"the columns are {list(table.names)}, but the model was fitted to "
                f"{list(self.names_)}; give the same columns in the same order"
            )
        check_usable(table, min_slots=self.settings_.window, option="window")
        device = next(self.model_.parameters()).device
        windows = self._windows(table, self.scaling_, self.settings_, device)
        with torch.no_grad():
            last = [self.model_(x)[..., -1].cpu().numpy() for x in windows.split(1024)]
        predicted = np.full(table.values.shape, np.nan)
        predicted[self.settings_.window - 1 :] = self.scaling_.undo(np.concatenate(last))
        return pd.DataFrame(predicted, columns=list(table.names), index=table.time)

    def save(self, folder: str | Path) -> Path:
        """Write the fitted model to a folder: JSON and safetensors, never pickle."""
        check_is_fitted(self, "model_")
        return save_model(
            folder,
            StoredModel(
                preset=self.preset,
                settings=self.settings_,
                random_state=self.random_state,
                names=self.names_,
                scaling=self.scaling_,
                history=self.history_,
                graph=self.graph_,
                weights=self.model_.state_dict(),
                scores=self.scores_,
                lag_scores=self.lag_scores_,
            ),
        )

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that `save` has written; foreign or damaged files give a clear error."""
        stored = load_model(folder)
        loaded = cls(
            stored.preset,
            settings=stored.settings.model_dump(),
            random_state=stored.random_state,
        )
        loaded.settings_, loaded.names_ = stored.settings, stored.names
        loaded.scaling_, loaded.history_ = stored.scaling, stored.history
        loaded.n_features_in_ = len(stored.names)
        loaded.scores_, loaded.lag_scores_ = stored.scores, stored.lag_scores
        loaded.graph_, loaded.model_ = stored.graph, stored.network()
        return loaded

    def _build_graph(self, settings: Settings) -> CausalGraph:
        chosen = select_by_clusters(
            self.scores_, settings.n_clusters, settings.top_clusters, self.random_state
        )
        return CausalGraph.from_arrays(
            self.names_,
            chosen,
            self.lag_scores_.argmax(axis=-1),
            self.scores_,
            metadata={
                "method": "causalformer",
                "preset": self.preset,
                "settings": settings.model_dump(),
                "random_state": self.random_state,
                "version": __version__,
            },
        )

    @staticmethod
    def _windows(
        table: SeriesTable, scaling: Scaling, settings: Settings, device: torch.device
    ) -> torch.Tensor:
        scaled = torch.from_numpy(scaling.apply(table.values)).to(device, torch.float32)
        return sliding_windows(scaled, settings.window)

    def _checkpoint_file(self, table: SeriesTable, settings: Settings) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        digest = hashlib.sha256(settings.model_dump_json().encode())
        digest.update(repr((self.random_state, table.names, table.values.shape)).encode())
        digest.update(np.ascontiguousarray(table.values).tobytes())
        return CheckpointFile(Path(self.checkpoint), digest.hexdigest())
