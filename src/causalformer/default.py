"""The default method from a table to a graph: test every cause out of sample, keep what holds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.arrays import is_whole
from causalformer.config import DetectorSettings
from causalformer.data import SeriesTable, check_usable
from causalformer.data.scaling import NormalScores, fit_normal_scores
from causalformer.data.windows import lagged_samples
from causalformer.detect.calibrated import detect, new_network
from causalformer.detect.edges import FoundEdges, found_edges
from causalformer.detect.instantaneous import instantaneous_evidence
from causalformer.detect.lag_choice import LagChoice, affordable, suggest_max_lag
from causalformer.detect.stability import edge_frequency
from causalformer.devices import fast_small_steps
from causalformer.diagnostics import Diagnostics, diagnose
from causalformer.errors import DataError, SettingsError
from causalformer.explain.local import LocalExplanation, explain_slot
from causalformer.graph import CausalGraph
from causalformer.model.channels import ChannelNetwork
from causalformer.model_files import StoredModel
from causalformer.training import CheckpointFile, Epoch, History

FloatArray = NDArray[np.float64]
Instantaneous = bool | Literal["auto"]

_LEAST_SLOTS = 20


@dataclass(frozen=True)
class DefaultOptions:
    """The options of the default method that users choose."""

    max_lag: int | Literal["auto"] = 5
    alpha: float = 0.05
    instantaneous: Instantaneous = "auto"
    stability: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if self.max_lag != "auto" and not (is_whole(self.max_lag) and self.max_lag >= 1):
            raise SettingsError(
                f"max_lag is {self.max_lag!r}; choose a whole number from 1, or 'auto'"
            )
        if not (isinstance(self.alpha, Real) and 0 < self.alpha < 1):
            raise SettingsError(f"alpha is {self.alpha!r}; choose a level between 0 and 1")
        if self.instantaneous not in (True, False, "auto"):
            raise SettingsError(
                f"instantaneous is {self.instantaneous!r}; choose True, False or 'auto'"
            )
        if not (is_whole(self.stability) and self.stability >= 0):
            raise SettingsError(f"stability is {self.stability!r}; choose 0 or a number of refits")
        if not is_whole(self.n_jobs) or self.n_jobs == 0:
            raise SettingsError(
                f"n_jobs is {self.n_jobs!r}; choose a number of processes, or -1 for all cores"
            )


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """What the default method leaves behind."""

    settings: DetectorSettings
    names: tuple[str, ...]
    scaling: NormalScores
    model: ChannelNetwork
    history: History
    graph: CausalGraph
    scores: Mapping[str, FloatArray]
    diagnostics: Diagnostics

    @property
    def n_past(self) -> int:
        """Slots that a prediction needs before its own."""
        return self.model.max_lag

    def attributes(self) -> dict[str, Any]:
        """Name the results as the estimator shows them."""
        return {
            "scores_": dict(self.scores),
            "edge_scores_": -np.log10(self.scores["p_value"]),
            "diagnostics_": self.diagnostics,
        }

    def predict(self, values: FloatArray) -> FloatArray:
        """Predict every slot that has enough past, in the units of the data."""
        past, _ = lagged_samples(self._scaled(values), self.model.max_lag)
        with torch.no_grad():
            predicted = [self.model(part).mean(1).cpu().numpy() for part in past.split(1024)]
        return self.scaling.undo(np.concatenate(predicted).astype(np.float64))

    def explain(self, values: FloatArray, slot: int) -> LocalExplanation:
        """Share the prediction of one slot among the past values it rests on."""
        return explain_slot(self.model, self._scaled(values), values, slot, self.names)

    def _scaled(self, values: FloatArray) -> torch.Tensor:
        device = next(self.model.parameters()).device
        return torch.from_numpy(self.scaling.apply(values)).to(device, torch.float32)

    def stored(self) -> dict[str, Any]:
        """Give the parts that `StoredModel` keeps."""
        arrays = {"scaling.ordered": self.scaling.ordered}
        arrays |= {f"scores.{name}": matrix for name, matrix in self.scores.items()}
        arrays |= {f"diagnostics.{k}": v for k, v in self.diagnostics.arrays().items()}
        return {"weights": self.model.state_dict(), "arrays": arrays}

    @classmethod
    def restored(cls, stored: StoredModel) -> Self:
        """Build from a stored model; weights that do not fit the settings raise an error."""
        settings = DetectorSettings.model_validate(stored.settings)
        scores = {
            name.removeprefix("scores."): matrix
            for name, matrix in stored.arrays.items()
            if name.startswith("scores.")
        }
        max_lag = stored.weights["skip"].shape[1]
        model = new_network(len(stored.names), max_lag, settings)
        model.load_state_dict(stored.weights)
        diagnostics = Diagnostics(
            names=stored.names,
            r2=stored.arrays["diagnostics.r2"],
            better_than_linear=stored.arrays["diagnostics.better_than_linear"],
            max_lag=max_lag,
            max_lag_reason=str(stored.graph.metadata.get("max_lag_reason", "")),
            warnings=tuple(stored.graph.metadata.get("warnings", ())),
        )
        return cls(
            settings=settings,
            names=stored.names,
            scaling=NormalScores(stored.arrays["scaling.ordered"]),
            model=model.eval(),
            history=stored.history,
            graph=stored.graph,
            scores=scores,
            diagnostics=diagnostics,
        )


def fit_default(
    table: SeriesTable,
    options: DefaultOptions,
    settings: DetectorSettings,
    *,
    random_state: int,
    device: torch.device,
    metadata: Mapping[str, Any],
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> DefaultFit:
    """Discover the graph of a table; see `causalformer.detect.calibrated` for the steps."""
    check_usable(table, min_slots=2)
    if table.n_slots < _LEAST_SLOTS:
        raise DataError(
            f"{table.source} has {table.n_slots} rows; fewer than {_LEAST_SLOTS} cannot be tested "
            "out of sample: give more rows"
        )
    scaling = fit_normal_scores(table.values)
    scores = scaling.apply(table.values)
    choice = _max_lag(options, scores)
    with fast_small_steps(device, table.n_series):
        model, history, evidence = detect(
            scores,
            choice.max_lag,
            settings,
            random_state=random_state,
            device=device,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
        )
    within = instantaneous_evidence(table.values)
    found = found_edges(evidence, within, scores, options.alpha, settings, options.instantaneous)
    frequency = None
    if options.stability:
        frequency = edge_frequency(
            scores,
            choice.max_lag,
            settings,
            options.alpha,
            n_refits=options.stability,
            n_jobs=options.n_jobs,
            random_state=random_state,
        )
    diagnostics = diagnose(table, scores, found, choice)
    facts = {
        **metadata,
        "max_lag_used": choice.max_lag,
        "max_lag_reason": choice.reason,
        "warnings": list(diagnostics.warnings),
    }
    return DefaultFit(
        settings=settings,
        names=table.names,
        scaling=scaling,
        model=model,
        history=history,
        graph=found.graph(table.names, facts, frequency),
        scores=_score_matrices(found),
        diagnostics=diagnostics,
    )


def _max_lag(options: DefaultOptions, scores: FloatArray) -> LagChoice:
    if options.max_lag == "auto":
        choice = suggest_max_lag(scores)
    else:
        choice = LagChoice(int(options.max_lag), "chosen by the user")
    return affordable(choice, *scores.shape)


def _score_matrices(found: FoundEdges) -> dict[str, FloatArray]:
    evidence, within = found.evidence, found.within_evidence
    return {
        "p_value": found.p_value,
        "q_value": found.q_value,
        "effect": evidence.effect,
        "strength": evidence.strength,
        "lag_profile": evidence.lag_profile,
        "linear_p_value": evidence.linear_p,
        "instantaneous_p_value": within.p_value,
        "instantaneous_q_value": within.q_value,
        "partial_correlation": within.partial,
    }
