"""What regressions share: slots with what lies around them, and edges from coefficients."""

from collections.abc import Sequence

import numpy as np

from causalformer.baselines.contract import Findings, FloatArray
from causalformer.data.windows import slots_with_past
from causalformer.errors import DataError


def lagged_rows(
    values: FloatArray, segments: Sequence[slice], lags: range, least: int
) -> FloatArray:
    """Give every slot at each of some lags, centred: ``[row, lag, series]``.

    Parameters
    ----------
    values : array of float ``[slot, series]``
        The series.
    segments : sequence of slice
        Unbroken stretches of slots; no row reaches across their ends.
    lags : range
        Rising; a negative lag looks ahead.
    least : int
        The number of rows that the method needs.

    Raises
    ------
    DataError
        If there are fewer rows.

    Examples
    --------
    >>> values = np.array([[0.0], [1.0], [5.0], [9.0], [7.0]])
    >>> lagged_rows(values, [slice(0, 4)], range(2), least=1)[:, :, 0]
    array([[-4., -2.], [ 0., -1.], [ 4.,  3.]])
    """
    ahead = -min(lags[0], 0)
    slot = slots_with_past(segments, lags[-1] + ahead) - ahead
    if len(slot) < least:
        raise DataError(
            f"{len(slot)} slots have the slots around them that `max_lag` needs, out of "
            f"{len(values)} in {len(segments)} unbroken stretches, but {least} are needed; "
            "give more rows or choose a smaller `max_lag`"
        )
    rows = values[slot[:, None] - np.array(lags)]
    return np.asarray(rows - rows.mean(axis=0))


def largest_of(coefficients: FloatArray, threshold: float) -> Findings:
    """Read the largest of each pair's coefficients ``[cause, effect, lag]``, lag 0 first.

    Examples
    --------
    >>> found = largest_of(np.array([[[0.0, 0.5], [0.1, -0.7]], [[0.4, 0.2], [0.0, 0.0]]]), 0.45)
    >>> found.adjacency
    array([[ True,  True], [False, False]])
    >>> found.lags
    array([[1, 1], [0, 1]])
    """
    sizes = np.abs(coefficients)
    scores, lags = sizes.max(axis=2), sizes.argmax(axis=2)
    np.fill_diagonal(lags, sizes.diagonal()[1:].argmax(axis=0) + 1)  # never lag 0
    return Findings(scores, scores > threshold, lags)
