"""The default method from a table to a graph: test every cause out of sample, keep what holds."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.arrays import is_whole
from causalformer.config import DetectorSettings
from causalformer.data import SeriesTable, check_usable
from causalformer.data.interpolated import without_interpolated
from causalformer.data.quality import wandering
from causalformer.data.scaling import (
    NormalScores,
    TableScaling,
    fit_normal_scores,
    fit_table_scaling,
    levelled,
)
from causalformer.data.time_terms import (
    Season,
    TimeTerms,
    check_seen,
    find_seasons,
    find_time_terms,
    read_season,
)
from causalformer.data.windows import lagged_samples, slots_with_past
from causalformer.detect.blocks import detect
from causalformer.detect.change import MOST_VALUES, Change, find_changes
from causalformer.detect.contemporaneous import contemporaneous_evidence, make_present
from causalformer.detect.edges import FoundEdges, found_edges
from causalformer.detect.filling import fill_from_past
from causalformer.detect.lag_choice import LONGEST, LagChoice, affordable, suggest_max_lag
from causalformer.detect.memory import MemoryPlan, Size, memory_limit, plan_memory
from causalformer.detect.networks import new_network
from causalformer.detect.samples import Samples, make_samples
from causalformer.detect.stability import edge_frequency
from causalformer.devices import fast_small_steps
from causalformer.diagnostics import Diagnostics, diagnose
from causalformer.errors import DataError, SettingsError
from causalformer.explain.local import LocalExplanation, explain_slot, explain_slots
from causalformer.graph import CausalGraph
from causalformer.knowledge import KnownGraph, PriorKnowledge
from causalformer.model.channels import ChannelNetwork
from causalformer.model_files import StoredModel
from causalformer.policy import POLICY
from causalformer.training import CheckpointFile, Epoch, History

FloatArray = NDArray[np.float64]
Instantaneous = bool | Literal["auto"]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_MOST_QUANTILES = 2**17  # of a series that a model file keeps
_MASK = "scores.tested"  # in a model file, as 0 and 1
RENAMED = {  # scores in model files of older versions
    "effect": "relative_gain",
    "sparse_p_value": "terms_p_value",
    "instantaneous_p_value": "contemporaneous_p_value",
    "instantaneous_q_value": "contemporaneous_q_value",
}


@dataclass(frozen=True)
class DefaultOptions:
    """The options of the default method that users choose."""

    max_lag: int | Literal["auto"] = 5
    alpha: float = 0.05
    instantaneous: Instantaneous = "auto"
    stability: int = 0
    n_jobs: int = 1
    knowledge: PriorKnowledge = field(default_factory=PriorKnowledge)
    max_memory: str | float | None = None
    season: Season = "auto"

    def __post_init__(self) -> None:
        if not (_is_auto(self.max_lag) or (is_whole(self.max_lag) and int(self.max_lag) >= 1)):
            raise SettingsError(
                f"max_lag is {self.max_lag!r}; choose a whole number from 1, or 'auto'"
            )
        if not (isinstance(self.alpha, Real) and 0 < self.alpha < 1):
            raise SettingsError(f"alpha is {self.alpha!r}; choose a level between 0 and 1")
        if not (_is_auto(self.instantaneous) or isinstance(self.instantaneous, bool)):
            raise SettingsError(
                f"instantaneous is {self.instantaneous!r}; choose True, False or 'auto'"
            )
        if not (is_whole(self.stability) and self.stability >= 0):
            raise SettingsError(f"stability is {self.stability!r}; choose 0 or a number of refits")
        if not is_whole(self.n_jobs) or self.n_jobs == 0:
            raise SettingsError(
                f"n_jobs is {self.n_jobs!r}; choose a number of processes, or -1 for all cores"
            )
        read_season(self.season)
        memory_limit(self.max_memory)


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """What the default method leaves behind.

    Everything is in the order of the user's columns, `names`, but for `model` and `scaling`: their
    series are ``names[order[0]]``, ``names[order[1]]``, ... (see `canonical_order`). So are those
    of `time_terms`, which tables are freed from before they are scaled.
    """

    settings: DetectorSettings
    names: tuple[str, ...]
    order: tuple[int, ...]
    scaling: TableScaling
    model: ChannelNetwork
    history: History
    graph: CausalGraph
    scores: Mapping[str, NDArray[Any]]
    diagnostics: Diagnostics
    time_terms: TimeTerms = field(default_factory=TimeTerms)

    def attributes(self) -> dict[str, Any]:
        """Name the results as the estimator shows them."""
        return {
            "scores_": dict(self.scores),
            "edge_scores_": self.scores["score"],
            "diagnostics_": self.diagnostics,
        }

    def predict(self, table: SeriesTable) -> FloatArray:
        """Predict every slot that has enough past, in the units of the data; else NaN.

        Missing past values are predicted from the past before them.
        """
        check_usable(table, min_slots=self.model.max_lag + 1, option="max_lag", missing_ok=True)
        max_lag = self.model.max_lag
        table = table.select(self._inner_names)
        predicted = np.full(table.values.shape, np.nan)
        slot = slots_with_past(table.segments, max_lag)
        terms = self.time_terms.anew(table)
        freed = terms.without(table)
        past, _ = lagged_samples(torch.from_numpy(self._filled(freed)), max_lag)
        predicted[slot] = self._predict(past[slot - max_lag])
        predicted = self.scaling.undo(predicted, freed) + terms.of(table)
        return predicted[:, np.argsort(self.order)]

    def explain(self, table: SeriesTable, slot: int) -> LocalExplanation:
        """Share the prediction of one slot among the past values it rests on."""
        table = table.select(self._inner_names)
        segment = next(s for s in reversed(table.segments) if s.start <= max(slot, 0))
        scores = self._scores(table)
        inner = explain_slot(self.model, scores, table.values, slot, table.names, segment)
        return inner.in_order(self.names)

    def explain_many(self, table: SeriesTable, slots: Sequence[int]) -> Iterator[LocalExplanation]:
        """Explain many slots, each with enough past in its own segment, for the price of few."""
        table = table.select(self._inner_names)
        scores = self._scores(table)
        for inner in explain_slots(self.model, scores, table.values, slots, table.names):
            yield inner.in_order(self.names)

    @property
    def _inner_names(self) -> list[str]:
        return [self.names[i] for i in self.order]

    def _scores(self, table: SeriesTable) -> torch.Tensor:
        freed = self.time_terms.anew(table).without(table)
        return torch.from_numpy(self._filled(freed)).to(next(self.model.parameters()))

    def _filled(self, table: SeriesTable) -> FloatArray:
        scores = self.scaling.apply(table)
        if not np.isnan(scores).any():
            return scores
        return fill_from_past(scores, table.segments, self.model.max_lag, self._predict)

    def _predict(self, past: torch.Tensor) -> FloatArray:
        weights = next(self.model.parameters())
        with torch.no_grad():
            parts = [self.model(part.to(weights)).mean(1).cpu() for part in past.split(1024)]
        return torch.cat(parts).double().numpy()

    def stored(self) -> dict[str, Any]:
        """Give the parts that `StoredModel` keeps."""
        ordered = self.scaling.normal.thinned(_MOST_QUANTILES).ordered
        arrays: dict[str, NDArray[Any]] = {
            "scaling.ordered": np.ascontiguousarray(ordered),
            "scaling.by_run": np.array(self.scaling.by_run, dtype=np.float64),
            "order": np.array(self.order, dtype=np.float64),
        }
        arrays |= self.time_terms.stored()
        arrays |= {f"scores.{k}": v.astype(np.float64, copy=False) for k, v in self.scores.items()}
        arrays |= {f"diagnostics.{k}": v for k, v in self.diagnostics.arrays().items()}
        return {"weights": self.model.state_dict(), "arrays": arrays}

    @classmethod
    def restored(cls, stored: StoredModel) -> Self:
        """Build from a stored model; weights that do not fit the settings raise an error."""
        settings = DetectorSettings.model_validate(stored.settings)
        scores: dict[str, NDArray[Any]] = {}
        for stored_name, matrix in stored.arrays.items():
            if stored_name.startswith("scores."):
                name = stored_name.removeprefix("scores.")
                is_mask = stored_name == _MASK
                scores[RENAMED.get(name, name)] = matrix.astype(bool) if is_mask else matrix
        max_lag = stored.weights["skip"].shape[1]
        sources = stored.weights.get("sources")
        model = new_network(len(stored.names), max_lag, settings, sources=sources)
        model.load_state_dict(stored.weights)
        diagnostics = Diagnostics(
            names=stored.names,
            r2=stored.arrays["diagnostics.r2"],
            better_than_linear=stored.arrays["diagnostics.better_than_linear"],
            observed=stored.arrays["diagnostics.observed"],
            counted=stored.arrays["diagnostics.counted"],
            max_lag=max_lag,
            max_lag_reason=str(stored.graph.metadata.get("max_lag_reason", "")),
            time_terms=tuple(stored.graph.metadata.get("time_terms", ())),
            warnings=tuple(stored.graph.metadata.get("warnings", ())),
        )
        return cls(
            settings=settings,
            names=stored.names,
            order=tuple(map(int, stored.arrays["order"])),
            scaling=TableScaling(
                NormalScores(stored.arrays["scaling.ordered"]),
                bool(stored.arrays["scaling.by_run"]),
            ),
            model=model.eval(),
            history=stored.history,
            graph=stored.graph,
            scores=scores,
            diagnostics=diagnostics,
            time_terms=TimeTerms.restored(stored.arrays),
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
    lines_are_data: bool = False,
) -> DefaultFit:
    """Discover the graph of a table; see `causalformer.detect.calibrated` for the steps.

    Values that interpolation left count as missing unless `lines_are_data`.
    """
    check_usable(table, min_slots=2, missing_ok=True)
    if table.n_slots < POLICY.least_samples:
        raise DataError(
            f"{table.source} has {table.n_slots} rows; fewer than {POLICY.least_samples} cannot be "
            "tested out of sample: give more rows"
        )
    expected_plan(table, options, settings)
    table, interpolated = (table, "") if lines_are_data else without_interpolated(table)
    order = canonical_order(table)
    given, table = table, table.select([table.names[i] for i in order])
    time_terms = find_time_terms(table, _seasons(table, options.season))
    told = time_terms.told(table, given.names)
    table = time_terms.without(table)
    scaling = fit_table_scaling(table)
    values = scaling.apply(table)
    values.setflags(write=False)  # the table may keep it without a copy
    scores = replace(table, values=values)
    choice = _max_lag(options, scores)
    n_samples = len(slots_with_past(table.segments, choice.max_lag))
    least = POLICY.least_samples // 2
    if n_samples < least:
        raise DataError(
            f"{table.source}: {n_samples} rows have {choice.max_lag} rows of their own recording "
            f"before them, at least {least} are needed; choose a smaller max_lag, or give "
            "longer recordings"
        )
    longest = max((edge.lag or 0 for edge in options.knowledge.required), default=0)
    if choice.lowered and longest > choice.max_lag:
        raise SettingsError(
            f"a required edge has lag {longest}, but max_lag was {choice.reason}; give more rows"
        )
    known = options.knowledge.resolve(table.names, choice.max_lag)
    if options.instantaneous is False and known.required_lags[..., 0].any():
        raise SettingsError(
            "a contemporaneous edge is required, but instantaneous is False; drop one of them"
        )
    size = Size(table.n_slots, table.n_series, choice.max_lag, int(known.n_required.max()))
    plan = plan_memory(size, settings, options.n_jobs, options.max_memory)
    with fast_small_steps(device, table.n_series):
        samples = make_samples(
            scores.values,
            table.segments,
            table.run_of_slot,
            choice.max_lag,
            settings.n_folds,
            device,
            wandering(scores.values, table.segments),
        )
        model, history, evidence = detect(
            samples,
            settings,
            known,
            random_state=random_state,
            n_jobs=plan.n_jobs,
            effects_per_block=plan.effects_per_block,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
        )
    present = make_present(
        levelled(table) if scaling.by_run else table.values,
        samples,
        evidence.q_value <= POLICY.second_look,
        known.allowed[..., 1:],
        evidence.removal.error,
        evidence.removal.residual,
    )
    within = None
    if options.instantaneous:
        within = contemporaneous_evidence(present, known.allowed[..., 0])
    found = found_edges(
        evidence, within, present, known, options.alpha, settings, options.instantaneous
    )
    frequency = None
    if options.stability:
        frequency = edge_frequency(
            samples,
            settings,
            known,
            options.alpha,
            n_refits=options.stability,
            n_jobs=plan.n_jobs,
            random_state=random_state,
            checkpoint=checkpoint,
        )
    changes = _changes(table, samples, found, known)
    diagnostics = diagnose(given, scores, found, choice, told, changes, interpolated)
    facts = {
        **metadata,
        "n_slots": table.n_slots,
        "n_recordings": len(table.recordings()),
        "n_segments": len(table.segments),
        "missing_share": round(float(table.n_missing.mean() / table.n_slots), 6),
        "max_lag_used": choice.max_lag,
        "max_lag_reason": choice.reason,
        "time_terms": list(told),
        "warnings": list(diagnostics.warnings),
    }
    back = np.argsort(order)
    at = np.ix_(back, back)
    return DefaultFit(
        settings=settings,
        names=given.names,
        order=order,
        scaling=scaling,
        model=model,
        history=history,
        graph=CausalGraph(given.names, found.edges(table.names, frequency), facts),
        scores={name: m[at] for name, m in _score_matrices(found).items()},
        diagnostics=diagnostics,
        time_terms=time_terms,
    )


def _seasons(table: SeriesTable, season: Season) -> tuple[float, ...]:
    periods = read_season(season)
    if periods == "auto":
        return find_seasons(table)
    check_seen(table, periods)
    return periods


def _changes(
    table: SeriesTable, samples: Samples, found: FoundEdges, known: KnownGraph
) -> tuple[Change, ...]:
    """Test whether mechanisms change, by the scores and by the values of the freed table."""
    if samples.past.numel() > MOST_VALUES:
        return ()
    run = table.run_of_slot
    values = make_samples(
        levelled(table), table.segments, run, samples.max_lag, int(samples.fold.max()) + 1
    )
    lengths = np.bincount(run)
    place = np.arange(table.n_slots) - (np.cumsum(lengths) - lengths)[run]
    tested = np.asarray(known.allowed[..., 1:].any(axis=-1))
    return find_changes([samples, values], found.lagged, tested, (place + 0.5) / lengths[run])


def expected_plan(
    table: SeriesTable, options: DefaultOptions, settings: DetectorSettings
) -> MemoryPlan:
    """Plan the memory of a fit before anything is computed; raise an error if it cannot fit."""
    longest = LagChoice(LONGEST if options.max_lag == "auto" else int(options.max_lag), "")
    longest = affordable(longest, table.n_slots)
    size = Size(table.n_slots, table.n_series, longest.max_lag, options.knowledge.most_required)
    return plan_memory(size, settings, options.n_jobs, options.max_memory)


def canonical_order(table: SeriesTable) -> tuple[int, ...]:
    """Put the series in an order that follows from their ranks alone.

    Random initial weights belong to positions. In this order neither the order of the columns nor
    their names or units change the graph.

    Examples
    --------
    >>> x = np.array([[1.0, 5.0], [3.0, 4.0], [2.0, 3.0]])
    >>> ab, ba = SeriesTable(x, ("a", "b")), SeriesTable(10 * x[:, ::-1], ("b", "a"))
    >>> [[t.names[i] for i in canonical_order(t)] for t in (ab, ba)]
    [['b', 'a'], ['b', 'a']]
    """
    digests = []
    for i in range(table.n_series):
        column = table.values[:, i : i + 1]
        digests.append(hashlib.sha256(fit_normal_scores(column).apply(column).data).digest())
    return tuple(sorted(range(table.n_series), key=digests.__getitem__))


def _max_lag(options: DefaultOptions, scores: SeriesTable) -> LagChoice:
    if options.max_lag == "auto":
        choice = suggest_max_lag(np.nan_to_num(scores.values), scores.segments)
    else:
        choice = LagChoice(int(options.max_lag), "chosen by the user")
    n_observed = int(scores.n_slots - scores.n_missing.mean())
    n_lost = (len(scores.segments) - 1) * choice.max_lag  # the first slots of further segments
    return affordable(choice, max(1, n_observed - n_lost))


def _score_matrices(found: FoundEdges) -> dict[str, NDArray[Any]]:
    evidence, within = found.evidence, found.within_evidence
    pairs = evidence.pairs
    return {
        "score": found.score,
        "p_value": pairs.p_value,
        "q_value": evidence.q_value,
        "relative_gain": pairs.relative_gain,
        "strength": pairs.strength,
        "lag_profile": pairs.lag_profile,
        "terms_p_value": pairs.terms_p,
        "contemporaneous_p_value": within.p_value,
        "contemporaneous_q_value": found.within_q,
        "partial_correlation": within.partial,
        "tested": pairs.tested,
    }
