"""The paper's choice of edges: k-means over the incoming scores of every effect."""

import warnings

import numpy as np
from numpy.typing import NDArray

from causalformer.errors import SettingsError


def select_by_clusters(
    scores: NDArray[np.float64], n_clusters: int, top_clusters: int, random_state: int
) -> NDArray[np.bool_]:
    """Keep, for every effect, the causes in the highest classes of its incoming scores.

    Parameters
    ----------
    scores : array ``[cause, effect]``
        Causal scores.
    n_clusters, top_clusters : int
        Classes per effect, and how many of them, by centroid, are causes (``m / n``).
    random_state : int
        Seed of k-means.

    Returns
    -------
    array of bool ``[cause, effect]``

    Examples
    --------
    >>> select_by_clusters(np.array([[9.0, 0.1], [0.1, 8.0]]), 2, 1, random_state=0)
    array([[ True, False],
           [False,  True]])
    """
    check_clusters(n_clusters, n_series=len(scores))
    return np.stack(
        [_top(incoming, n_clusters, top_clusters, random_state) for incoming in scores.T], axis=1
    )


def check_clusters(n_clusters: int, n_series: int) -> None:
    """Refuse more classes than series, before any work is done."""
    if n_clusters > n_series:
        raise SettingsError(
            f"n_clusters = {n_clusters} classes need at least as many series, there are {n_series}"
        )


def _top(
    incoming: NDArray[np.float64], n_clusters: int, top_clusters: int, random_state: int
) -> NDArray[np.bool_]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    spread = np.ptp(incoming)
    if not spread > 0:  # nothing distinguishes the causes: none is better than another
        return np.zeros(len(incoming), dtype=bool)
    scaled = (incoming - incoming.min()) / spread
    with warnings.catch_warnings():  # fewer distinct scores than classes
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans = KMeans(n_clusters, n_init=10, random_state=random_state).fit(scaled[:, None])
    found = np.unique(kmeans.labels_)
    ranked = found[np.argsort(-kmeans.cluster_centers_[found, 0], kind="stable")]
    kept = min(top_clusters, len(found) - 1)  # two distinct scores are two classes: one is dropped
    return np.isin(kmeans.labels_, ranked[:kept])
