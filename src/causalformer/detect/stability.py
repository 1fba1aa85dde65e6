"""How often an edge comes back when the data are drawn again in blocks."""

import json
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from causalformer.config import DetectorSettings
from causalformer.detect.blocks import detect
from causalformer.detect.edges import lagged_edges
from causalformer.detect.samples import Samples
from causalformer.devices import fast_small_steps
from causalformer.errors import FileFormatError
from causalformer.files import read_text, write_text
from causalformer.knowledge import KnownGraph
from causalformer.training import CheckpointFile

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def edge_frequency(
    samples: Samples,
    settings: DetectorSettings,
    known: KnownGraph,
    alpha: float,
    *,
    n_refits: int,
    n_jobs: int,
    random_state: int,
    checkpoint: CheckpointFile | None = None,
) -> FloatArray:
    """Refit on block-bootstrap samples; give the share of refits with each edge, any lag >= 1.

    Every refit has its own seed, so the result does not depend on `n_jobs`. With a `checkpoint`
    every finished refit is kept beside it, and those that are there already are not done again.
    """
    from joblib import Parallel, delayed

    def refit(seed: int) -> BoolArray:
        drawn = samples.pick(block_bootstrap(len(samples), np.random.default_rng(seed)))
        with fast_small_steps(torch.device("cpu"), samples.n_series):
            _, history, evidence = detect(drawn, settings, known, random_state=seed)
        if history.stopped == "interrupted":
            raise KeyboardInterrupt  # half a refit is of no use
        return lagged_edges(evidence, alpha, settings)

    seeds = np.random.SeedSequence(random_state).generate_state(n_refits).tolist()
    done = {} if checkpoint is None else _read_refits(checkpoint, samples.n_series)
    missing = [seed for seed in seeds if seed not in done]
    results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(refit)(s) for s in missing)
    for seed, found in zip(missing, results, strict=True):
        done[seed] = found
        if checkpoint is not None:
            _write_refits(checkpoint, done)
    return np.asarray(np.mean([done[seed] for seed in seeds], axis=0))


def _write_refits(checkpoint: CheckpointFile, done: Mapping[int, BoolArray]) -> None:
    edges = {str(seed): np.argwhere(found).tolist() for seed, found in done.items()}
    content = {"fingerprint": checkpoint.fingerprint, "edges": edges}
    write_text(checkpoint.refits, json.dumps(content))


def _read_refits(checkpoint: CheckpointFile, n_series: int) -> dict[int, BoolArray]:
    if not checkpoint.refits.exists():
        return {}
    try:
        content = json.loads(read_text(checkpoint.refits))
        if content["fingerprint"] != checkpoint.fingerprint:
            raise FileFormatError(
                f"{checkpoint.refits} belongs to other data, settings or another seed; delete it"
            )
        done = {}
        for seed, edges in content["edges"].items():
            found = np.zeros((n_series, n_series), dtype=bool)
            for cause, effect in edges:
                found[cause, effect] = True
            done[int(seed)] = found
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{checkpoint.refits} is damaged ({error}); delete it") from error
    return done


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
