"""How often an edge comes back when the data are drawn again in blocks."""

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.config import DetectorSettings
from causalformer.detect.calibrated import detect
from causalformer.detect.edges import lagged_edges
from causalformer.detect.samples import Samples
from causalformer.devices import fast_small_steps

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def edge_frequency(
    samples: Samples,
    settings: DetectorSettings,
    allowed: BoolArray,
    alpha: float,
    *,
    n_refits: int,
    n_jobs: int,
    random_state: int,
) -> FloatArray:
    """Refit on block-bootstrap samples; give the share of refits with each edge, any lag >= 1.

    Every refit has its own seed, so the result does not depend on `n_jobs`.
    """
    from joblib import Parallel, delayed

    def refit(seed: int) -> BoolArray:
        drawn = samples.pick(block_bootstrap(len(samples), np.random.default_rng(seed)))
        with fast_small_steps(torch.device("cpu"), samples.n_series):
            _, _, evidence = detect(drawn, settings, allowed, random_state=seed)
        return lagged_edges(evidence, alpha, settings)

    seeds = np.random.SeedSequence(random_state).generate_state(n_refits)
    found = Parallel(n_jobs=n_jobs)(delayed(refit)(int(seed)) for seed in seeds)
    return np.asarray(np.mean(found, axis=0))


def block_bootstrap(n_slots: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw blocks of slots with replacement; blocks are about the cube root of the length times 4.

    Examples
    --------
    >>> slots = block_bootstrap(100, np.random.default_rng(0))
    >>> len(slots), bool((np.diff(slots) == 1).mean() > 0.8)
    (100, True)
    """
    length = min(n_slots, int(np.ceil(4 * n_slots ** (1 / 3))))
    starts = rng.integers(n_slots - length + 1, size=-(-n_slots // length))
    return (np.sort(starts)[:, None] + np.arange(length)).ravel()[:n_slots]
