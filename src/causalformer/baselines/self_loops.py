"""The graph of nothing but self-loops: what a figure is worth that counts them."""

from collections.abc import Sequence

import numpy as np

from causalformer.baselines.contract import Baseline, Findings, FloatArray


class SelfLoops(Baseline):
    """Say that every series drives itself at lag 1, and nothing else, whatever the data.

    Most published truths hold every self-loop, so this graph scores well wherever they are
    counted. A method that is not clearly better has found no cause.

    Attributes
    ----------
    graph_ : CausalGraph
        One self-loop of lag 1 per series.
    scores_, edge_scores_ : array ``[cause, effect]``
        The identity matrix.

    Examples
    --------
    >>> print(SelfLoops().fit({"sun": [1, 2, 4], "rain": [3, 0, 1]}).graph_)
    CausalGraph(2 series, 2 edges)
      sun → sun (lag 1, score 1)
      rain → rain (lag 1, score 1)
    """

    method = "self-loops"

    def discover(self, values: FloatArray, segments: Sequence[slice]) -> Findings:  # noqa: ARG002
        """Look at nothing but the number of series."""
        n = values.shape[1]
        return Findings(np.eye(n), np.eye(n, dtype=bool), np.ones((n, n), dtype=np.int64))
