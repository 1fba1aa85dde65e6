"""The estimator: options in, results out; the work is done by `default` and `paper`."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from html import escape
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from causalformer._version import __version__
from causalformer.arrays import is_whole
from causalformer.config import DEFAULT, DetectorSettings, Settings, resolve_settings
from causalformer.data import SeriesTable, read_series
from causalformer.data.imputation import Missing, impute
from causalformer.data.time_terms import Season, read_season
from causalformer.data.windows import slots_with_past
from causalformer.default import DefaultFit, DefaultOptions, expected_plan, fit_default
from causalformer.detect.memory import MemoryPlan, memory_limit
from causalformer.devices import choose_device
from causalformer.errors import DataError, SettingsError
from causalformer.explain.local import LocalExplanation
from causalformer.knowledge import PriorKnowledge, read_knowledge
from causalformer.model_files import StoredModel, load_model, save_model
from causalformer.names import listed
from causalformer.paper import PaperFit, fit_paper
from causalformer.parallel import workers
from causalformer.progress import TrainingProgress
from causalformer.scratch import memory_limited
from causalformer.training import CheckpointFile, Epoch

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from matplotlib.axes import Axes

    from causalformer.each import EachRecording
    from causalformer.graph import CausalGraph
    from causalformer.plot import Ground
    from causalformer.plot.kinds import ModelKind

_OF_THE_DEFAULT = ("max_lag", "alpha", "instantaneous", "stability", "season")
_SEEDS = 2**63  # that torch takes


class CausalFormer(BaseEstimator):  # type: ignore[misc]
    """Discover which series drives which, and after how long.

    By default a network with several kernels per (cause, effect) learns to predict every series
    with and without each cause; a cause is an edge if held-out errors grow significantly without
    it. With a preset of the paper, its causality-aware transformer is trained and decomposed by
    relevance propagation instead.

    Parameters
    ----------
    preset : str
        ``"default"``, or one of `causalformer.config.PRESETS` for the paper's method, which has no
        `max_lag`, `alpha`, `instantaneous`, `stability` or `season`.
    max_lag : int or "auto"
        Lags to look at. Generous is fine: long lags cost more. ``"auto"`` suggests a number and
        `diagnostics_` says why.
    alpha : float
        Share of false edges to tolerate (false discovery rate), for self-loops and for edges
        between series separately.
    instantaneous : bool or "auto"
        Whether to look for contemporaneous edges, of lag 0; ``"auto"`` does where they explain
        more than edges from the past do.
    stability : int
        Refits on block-bootstrap samples; each edge then carries the share that found it, too.
    season : "auto", "none", float or sequence of float
        Seasons that the series may follow, in slots, such as 24 or ``(24, 168)``. They are held
        fixed, as are trends and level shifts, so that they make no edges. ``"auto"`` looks for
        them; `diagnostics_` says what was found. See `causalformer.data.time_terms`.
    n_jobs : int
        Processes (-1: one per core) for the refits and, above 16 series, for blocks of effects;
        with fewer series, threads for the folds. The result does not depend on it.
    cluster : str, optional
        A Dask cluster in place of processes: ``"local"``, or the address of a scheduler such as
        ``"tcp://10.0.0.5:8786"``; see `causalformer.parallel.workers`.
    max_memory : str or float, optional
        What the fit may take, such as ``"4GB"`` or a number of bytes; 70 % of what is free unless
        given. See `causalformer.detect.memory`.
    missing : {"mask", "interpolate", "previous", "mean"}
        What to do about missing values (NaN). ``"mask"``: nothing is learned from them or judged
        by them, and values that were interpolated before count as missing, too (see
        `causalformer.data.interpolated`). The others fill them in first and take all values as
        observed; see `causalformer.data.imputation.impute`.
    knowledge : PriorKnowledge, mapping or path, optional
        Edges that must or cannot be, tiers, series that only cause or only are driven; see
        `causalformer.knowledge.PriorKnowledge`. The graph respects it.
    settings : mapping, optional
        Single settings that replace the preset's, for example ``{"window": 8}``; see
        `causalformer.config.Settings` and, for the default, `causalformer.config.DetectorSettings`.
    random_state : int
        Seed of everything random: the same seed gives the same graph.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.
    checkpoint : path, optional
        File in which the state of the training is kept; if it exists, training goes on from it.
    on_epoch : callable, optional
        Receives a `causalformer.training.Epoch` after every epoch.
    verbose : bool
        Whether to show a progress bar, in a terminal or a notebook.

    Attributes
    ----------
    graph_ : CausalGraph
        The discovered edges, by name; by default with p-value, q-value and strength.
    scores_ : dict of arrays, or array ``[cause, effect]``
        By default the full matrices by name: score, p_value, q_value, relative_gain,
        strength, lag_profile, tested (a mask) and more. With a preset, the causal score of every
        pair.
    edge_scores_ : array ``[cause, effect]``
        How strongly the data speak for each pair, to rank them: ``-log10 p``, in a graph with
        contemporaneous edges of the stronger test; with a preset, the causal score.
    lag_scores_ : array ``[cause, effect, lag]``
        With a preset: causal score of every lag, from 0 to window - 1.
    diagnostics_ : Diagnostics
        By default: held-out R² per series, how much better than linear, warnings.
    history_ : History
        Losses of every epoch, and why training ended.
    settings_ : Settings or DetectorSettings
        The settings in force.
    names_ : tuple of str
        Names of the series.
    model_ : nn.Module
        The trained network.

    Examples
    --------
    >>> from causalformer.datasets import make_var
    >>> made = make_var(3, 300, density=0.4, random_state=1)
    >>> model = CausalFormer(max_lag=3).fit(made.series)
    >>> model.graph_.to_frame().columns.tolist()
    ['cause', 'effect', 'lag', 'kind', 'score', 'p_value', 'q_value', 'strength']
    """

    def __init__(
        self,
        preset: str = DEFAULT,
        *,
        max_lag: int | Literal["auto"] = 5,
        alpha: float = 0.05,
        instantaneous: bool | Literal["auto"] = "auto",
        stability: int = 0,
        season: Season = "auto",
        n_jobs: int = 1,
        cluster: str | None = None,
        max_memory: str | float | None = None,
        missing: Missing = "mask",
        knowledge: PriorKnowledge | Mapping[str, Any] | str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: int = 0,
        device: str = "auto",
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[Epoch], object] | None = None,
        verbose: bool = False,
    ) -> None:
        self.preset = preset
        self.max_lag = max_lag
        self.alpha = alpha
        self.instantaneous = instantaneous
        self.stability = stability
        self.season = season
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.max_memory = max_memory
        self.missing = missing
        self.knowledge = knowledge
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.checkpoint = checkpoint
        self.on_epoch = on_epoch
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, *, group: str | None = None) -> Self:  # noqa: ARG002
        """Train on ``X`` and build the causal graph.

        Parameters
        ----------
        X : frame, array, path or SeriesTable
            One column per series, one row per time slot; see `causalformer.data.read_series`.
        y : None
            Ignored; here for scikit-learn's sake.
        group : str, optional
            The column that says which recording (subject, run) a row belongs to.

        Returns
        -------
        CausalFormer
            The estimator itself.
        """
        check_seed(self.random_state)
        _check_hooks(self.checkpoint, self.on_epoch)
        settings = resolve_settings(self.preset, self.settings)
        device = choose_device(self.device)
        options = self._options()
        with memory_limited(memory_limit(self.max_memory)):
            table = impute(read_series(X, group=group), self.missing)
            self._fit_table(table, settings, options, device)
        return self

    def _fit_table(
        self,
        table: SeriesTable,
        settings: Settings | DetectorSettings,
        options: DefaultOptions,
        device: "torch.device",
    ) -> None:
        common: dict[str, Any] = {
            "random_state": _plain(self.random_state),
            "device": device,
            "checkpoint": self._checkpoint_file(table),
            "metadata": {
                "method": "causalformer",
                **self._parameters(),
                "settings": settings.model_dump(),
                "version": __version__,
            },
        }
        with TrainingProgress(settings.max_epochs) if self.verbose else nullcontext() as bar:

            def tell(epoch: Epoch) -> None:
                for watcher in (bar, self.on_epoch):
                    if watcher is not None:
                        watcher(epoch)

            common["on_epoch"] = tell
            if isinstance(settings, DetectorSettings):
                plan = expected_plan(table, self._here(options), settings)
                with workers(self.cluster, plan.n_jobs) as n_jobs:
                    options = self._here(replace(options, n_jobs=n_jobs))
                    lines_are_data = self.missing != "mask"  # or were asked for
                    fit = fit_default(
                        table, options, settings, lines_are_data=lines_are_data, **common
                    )
                    self._keep(fit, table)
            else:
                self._keep(fit_paper(table, settings, options.knowledge, **common), table)

    def memory_plan(self, X: Any, *, group: str | None = None) -> MemoryPlan | None:
        """Say what a fit would take, before it starts; None with a preset of the paper.

        Raises
        ------
        SettingsError
            If it cannot stay below `max_memory`; the message says what would fit.

        Examples
        --------
        >>> from causalformer.datasets import make_var
        >>> plan = CausalFormer().memory_plan(make_var(3, 300, random_state=0).series)
        >>> 0.1e9 < plan.n_bytes < 1e9
        True
        """
        settings, options = resolve_settings(self.preset, self.settings), self._options()
        if not isinstance(settings, DetectorSettings):
            return None
        with memory_limited(memory_limit(self.max_memory)):
            return expected_plan(read_series(X, group=group), self._here(options), settings)

    def _here(self, options: DefaultOptions) -> DefaultOptions:
        """Count the processes of this machine only: workers elsewhere bring their own memory."""
        return options if self.cluster in (None, "local") else replace(options, n_jobs=1)

    def predict(self, X: Any, *, group: str | None = None) -> "pd.DataFrame":
        """Predict every slot of ``X`` from the slots before it, in the units of the data.

        The first rows of each recording have too little past for a prediction (NaN). If the model
        was fitted to several recordings freed from their own level, the level of each recording is
        that of all its rows.
        """
        import pandas as pd

        check_is_fitted(self, "model_")
        table = impute(self._same_series(X, group), self.missing)
        predicted = self._fit.predict(table)
        return pd.DataFrame(predicted, columns=list(table.names), index=table.time)

    def explain(self, at: Any, X: Any = None, *, group: str | None = None) -> LocalExplanation:
        """Say which past values of which series drove the prediction at a time slot.

        Parameters
        ----------
        at : int or time
            Row number, or an entry of the time column.
        X : frame, array, path or SeriesTable, optional
            The series; those of `fit` unless given.
        group : str, optional
            The column of `X` that says which recording a row belongs to.

        Returns
        -------
        LocalExplanation
            Relevances that add up to the prediction.
        """
        fit, table = self._explained_by(), self._series("explain(at, X)", X, group)
        return fit.explain(table, _slot(table, at))

    def explain_many(
        self, slots: Sequence[int], X: Any = None, *, group: str | None = None
    ) -> Iterator[LocalExplanation]:
        """Explain many slots, much faster than one by one; each needs enough past.

        Parameters
        ----------
        slots : sequence of int
            Row numbers.
        X, group
            As in `explain`.

        Yields
        ------
        LocalExplanation
            One per slot, in the same order.
        """
        fit, table = self._explained_by(), self._series("explain_many(slots, X)", X, group)
        enough = set(slots_with_past(table.segments, fit.model.max_lag).tolist())
        for slot in slots:
            if slot not in enough:
                raise DataError(
                    f"slot {slot!r} cannot be explained: it needs {fit.model.max_lag} rows of its "
                    "own recording before it"
                )
        return fit.explain_many(table, slots)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        kind: "ModelKind" = "summary",
        truth: "CausalGraph | None" = None,
        evidence: str = "score",
        places: Mapping[str, tuple[float, float]] | None = None,
        ground: "Ground | None" = None,
        at: Any = None,
        effect: str | None = None,
        X: Any = None,
        group: str | None = None,
    ) -> "Axes":
        """Draw the result with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure that pyplot does not know (``ax.figure``).
        kind : str
            Those of `CausalGraph.plot`, ``"scores"`` with numbers of all pairs. Besides:
            ``"p_values"`` of all pairs; ``"series"``: what drove one prediction; ``"training"``:
            losses over the epochs, by default beside ``"held_out"``: R² of every series.
        truth, evidence, places, ground
            As in `CausalGraph.plot`; `evidence` may be any matrix of `scores_`.
        at : int or time
            For series: the slot, as in `explain`.
        effect : str, optional
            For series: whose prediction; by default the one farthest from its usual level.
        X, group
            For series: as in `explain`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from causalformer.plot import draw_model

        check_is_fitted(self, "model_")
        table = None
        if kind == "series":
            self._explained_by()
            table = self._series('plot(kind="series", X=...)', X, group)
        return draw_model(
            self,
            kind,
            ax,
            truth=truth,
            evidence=evidence,
            places=places,
            ground=ground,
            at=at,
            effect=effect,
            table=table,
        )

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        group: str | None = None,
        each: "EachRecording | None" = None,
    ) -> Path:
        """Write the result as one HTML page that works offline: graph, evidence, data, caveats.

        Parameters
        ----------
        path : str or Path
            The file.
        X : frame, array, path or SeriesTable, optional
            The series; those of `fit` unless given.
        group : str, optional
            The column of `X` that says which recording a row belongs to.
        each : EachRecording, optional
            The graphs of the recordings on their own, to be shown, too.

        Returns
        -------
        Path
            The file, which is either whole or as it was before.

        Examples
        --------
        >>> import tempfile
        >>> from causalformer.datasets import make_var
        >>> model = CausalFormer(max_lag=2).fit(make_var(3, 200, random_state=0).series)
        >>> model.report(Path(tempfile.mkdtemp()) / "report.html").name
        'report.html'
        """
        from causalformer.report import write_report

        check_is_fitted(self, "model_")
        return write_report(path, self, self._series("report(path, X)", X, group), each=each)

    def save(self, folder: str | Path) -> Path:
        """Write the fitted model to a folder: JSON and safetensors, never pickle."""
        check_is_fitted(self, "model_")
        fit = self._fit
        stored = StoredModel(
            parameters=self._parameters(),
            settings=fit.settings.model_dump(),
            names=fit.names,
            history=fit.history,
            graph=fit.graph,
            **fit.stored(),
        )
        return save_model(folder, stored)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that `save` has written; foreign or damaged files give a clear error."""
        return load_model(folder, cls._restored)

    @classmethod
    def _restored(cls, stored: StoredModel) -> Self:
        kind = DefaultFit if stored.parameters["preset"] == DEFAULT else PaperFit
        loaded = cls(**stored.parameters, settings=stored.settings)
        loaded._keep(kind.restored(stored))
        return loaded

    def _keep(self, fit: DefaultFit | PaperFit, table: SeriesTable | None = None) -> None:
        """Take over the results under the names that users see."""
        self._fit = fit
        self._table = table
        self.settings_, self.names_, self.graph_ = fit.settings, fit.names, fit.graph
        self.model_, self.history_ = fit.model, fit.history
        self.n_features_in_ = len(fit.names)
        for name, value in fit.attributes().items():
            setattr(self, name, value)

    def _options(self) -> DefaultOptions:
        options = DefaultOptions(
            self.max_lag,
            self.alpha,
            _plain(self.instantaneous),
            self.stability,
            self.n_jobs,
            read_knowledge(self.knowledge),
            self.max_memory,
            self.season,
        )
        if self.preset != DEFAULT:
            self._refuse_unused()
        return options

    def _refuse_unused(self) -> None:
        """Refuse options that the paper's method would ignore."""
        usual = signature(type(self)).parameters
        given = [name for name in _OF_THE_DEFAULT if getattr(self, name) != usual[name].default]
        if given:
            raise SettingsError(
                f"the preset {self.preset!r} has no {listed(f'`{name}`' for name in given)}; "
                f"leave it out, or choose `preset={DEFAULT!r}`"
            )

    def _parameters(self) -> dict[str, Any]:
        """Give the constructor's arguments that decide the result, besides the settings."""
        names = ["preset", "random_state", "missing"]
        if self.preset == DEFAULT:
            names += ["max_lag", "alpha", "instantaneous", "stability"]
        given = {name: _plain(getattr(self, name)) for name in names}
        if self.preset == DEFAULT:
            season = read_season(self.season)
            given["season"] = season if isinstance(season, str) else list(season) or "none"
        known = read_knowledge(self.knowledge)
        return given if known == PriorKnowledge() else given | {"knowledge": known.to_dict()}

    def _repr_html_(self) -> str:
        """Show what was found, in notebooks; an estimator without a graph as scikit-learn does."""
        if not hasattr(self, "graph_"):
            return str(estimator_html_repr(self))
        return f"<p><code>{escape(repr(self))}</code></p>\n{self.graph_._repr_html_()}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Replace scikit-learn's, which notebooks would ask before `_repr_html_`."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _explained_by(self) -> DefaultFit:
        check_is_fitted(self, "model_")
        if not isinstance(self._fit, DefaultFit):
            raise SettingsError(
                f"explain needs the default method; this model has the preset {self.preset!r}"
            )
        return self._fit

    def _series(self, call: str, X: Any, group: str | None) -> SeriesTable:
        """Give the series of `X`, or those of `fit`."""
        if X is not None:
            return impute(self._same_series(X, group), self.missing)
        if self._table is None:
            raise DataError(f"a loaded model does not hold the series: give them as {call}")
        return self._table

    def _same_series(self, X: Any, group: str | None) -> SeriesTable:
        table = read_series(X, group=group)
        if sorted(table.names) != sorted(self.names_):
            raise DataError(
                f"the columns are {list(table.names)}, but the model was fitted to "
                f"{list(self.names_)}; give the same columns"
            )
        return table.select(self.names_)

    def _checkpoint_file(self, table: SeriesTable) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        settings = resolve_settings(self.preset, self.settings).model_dump()
        shape = [table.names, table.values.shape, table.starts, table.runs]
        facts = [__version__, settings, self._parameters(), *shape]
        digest = hashlib.sha256(json.dumps(facts, default=str).encode())
        digest.update(table.values.data)
        return CheckpointFile(Path(self.checkpoint), digest.hexdigest())


def _plain(value: Any) -> Any:
    """Give a NumPy number as Python's own, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def _in_utc(time: "pd.Timestamp") -> "pd.Timestamp":
    """Give the time as tables keep it: in UTC, without saying so."""
    return time if time.tz is None else time.tz_convert("UTC").tz_localize(None)


def check_seed(random_state: Any) -> None:
    """Refuse what is no seed: the same seed must give the same graph, so there has to be one."""
    if not is_whole(random_state) or not 0 <= random_state < _SEEDS:
        raise SettingsError(
            f"random_state is {random_state!r}; choose a whole number from 0, below 2**63"
        )


def _check_hooks(checkpoint: Any, on_epoch: Any) -> None:
    if not (checkpoint is None or isinstance(checkpoint, str | os.PathLike)):
        raise SettingsError(f"checkpoint is {checkpoint!r}; give the path of a file, or None")
    if not (on_epoch is None or callable(on_epoch)):
        raise SettingsError(f"on_epoch is {on_epoch!r}; give a function of one epoch, or None")


def _slot(table: SeriesTable, at: Any) -> int:
    """Find the row of a time; whole numbers are row numbers."""
    if is_whole(at):
        return int(at)
    if table.time is not None:
        import pandas as pd

        index = pd.Index(table.time)
        with suppress(TypeError, ValueError):  # what is no time is no slot either
            with_type = _in_utc(pd.Timestamp(at)) if isinstance(index, pd.DatetimeIndex) else at
            if with_type in index:
                return int(np.flatnonzero(index == with_type)[0])
    raise DataError(f"there is no slot {at!r}; give a row number or an entry of the time column")
