"""One graph per recording, and how far they agree."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from causalformer.data import SeriesTable, read_series
from causalformer.errors import CausalFormerError, DataError
from causalformer.estimator import CausalFormer
from causalformer.graph import CausalGraph
from causalformer.parallel import workers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class EachRecording:
    """The graphs of single recordings.

    Attributes
    ----------
    graphs : mapping of str to CausalGraph
        By the name of the recording.
    refused : mapping of str to str
        Recordings that gave no graph, and why: most are too short.
    """

    graphs: Mapping[str, CausalGraph]
    refused: Mapping[str, str]

    def agreement(self) -> "pd.DataFrame":
        """Count, for every pair, the recordings that have an edge; most first.

        `lag` is the one that most of them found, the shortest of several.
        """
        import pandas as pd

        lags: dict[tuple[str, str], list[int]] = {}
        for graph in self.graphs.values():
            for pair in {(edge.cause, edge.effect) for edge in graph}:
                edges = [edge for edge in graph if (edge.cause, edge.effect) == pair]
                lags.setdefault(pair, []).append(max(edges, key=lambda e: e.score).lag)
        rows = [
            (*pair, min(found, key=lambda lag: (-Counter(found)[lag], lag)), len(found))
            for pair, found in lags.items()
        ]
        frame = pd.DataFrame(rows, columns=["cause", "effect", "lag", "recordings"])
        frame["share"] = frame["recordings"] / max(len(self.graphs), 1)
        order = {name: i for graph in self.graphs.values() for i, name in enumerate(graph.names)}
        key = frame["cause"].map(order) * len(order) + frame["effect"].map(order)
        sort = pd.DataFrame({"share": -frame["share"], "key": key})
        return frame.loc[sort.sort_values(["share", "key"]).index].reset_index(drop=True)


def fit_each(
    model: CausalFormer, X: Any, *, group: str | None = None, n_jobs: int = 1
) -> EachRecording:
    """Fit every recording on its own, with the options of `model`.

    Parameters
    ----------
    model : CausalFormer
        Its options are taken; it stays as it is.
    X : frame, list of frames, folder or SeriesTable
        Several recordings; see `causalformer.data.read_series`.
    group : str, optional
        The column that says which recording a row belongs to.
    n_jobs : int
        Processes, unless the model names a cluster; the result does not depend on it.

    Raises
    ------
    DataError
        If no recording gives a graph.

    Examples
    --------
    >>> from causalformer.datasets import make_var
    >>> subjects = [make_var(3, 300, density=0.4, random_state=1).series for _ in range(2)]
    >>> each = fit_each(CausalFormer(max_lag=2), subjects)
    >>> int(each.agreement()["recordings"].max())
    2
    """
    from joblib import Parallel, delayed

    recordings = read_series(X, group=group).recordings()
    options = CausalFormer(
        **model.get_params(deep=False)
        | {"checkpoint": None, "on_epoch": None, "verbose": False, "n_jobs": 1, "cluster": None}
    )
    with workers(model.cluster, n_jobs) as at_once:
        results = Parallel(n_jobs=at_once)(
            delayed(_graph_or_reason)(options, table) for table in recordings.values()
        )
    by_name = dict(zip(recordings, results, strict=True))
    each = EachRecording(
        {name: found for name, found in by_name.items() if isinstance(found, CausalGraph)},
        {name: found for name, found in by_name.items() if isinstance(found, str)},
    )
    if not each.graphs:
        name, reason = next(iter(each.refused.items()))
        raise DataError(f"no recording can be fitted on its own; {name!r}: {reason}")
    return each


def _graph_or_reason(options: CausalFormer, table: SeriesTable) -> CausalGraph | str:
    import warnings

    from causalformer.errors import DataWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # in the graph's metadata, too
        try:
            graph: CausalGraph = clone(options).fit(table).graph_
            return graph
        except CausalFormerError as error:
            return str(error)
