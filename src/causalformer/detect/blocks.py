"""The detector for few and for many series: all at once, or effects in blocks with candidates.

Effects do not share weights, so any of them can be fitted alone. Every effect has a seed of its
own, and what all share, the order of the samples, has the same seed in every block: neither the
blocks nor the workers that fit them change the graph.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from causalformer.checkpoint import load_tensors, save_tensors
from causalformer.config import DetectorSettings
from causalformer.detect.calibrated import detect_together, judge_pairs, known_by_terms
from causalformer.detect.few_terms import SparseTests
from causalformer.detect.lag_choice import network_lags
from causalformer.detect.networks import new_network, train_network
from causalformer.detect.pair_tests import Evidence, PairTests
from causalformer.detect.removal import RemovalErrors, errors_together
from causalformer.detect.samples import Samples
from causalformer.detect.screening import TOGETHER, n_candidates, screen
from causalformer.devices import fast_small_steps
from causalformer.errors import DamagedFileError
from causalformer.knowledge import KnownGraph
from causalformer.model.channels import ChannelNetwork, side_by_side
from causalformer.parallel import Item, Map, Result, elsewhere
from causalformer.policy import POLICY
from causalformer.training import CheckpointFile, Epoch, History

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_WORTH_PROCESSES = 25_000  # slots of all effects
_MOST_TO_COPY = 2**26  # past values


class _Fitted(NamedTuple):
    """A block that is trained and tested; causes are candidates, by their place."""

    pairs: PairTests
    removal: RemovalErrors
    epochs: FloatArray  # the loss and the seconds of each
    weights: Mapping[str, NDArray[Any]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name all arrays, as `of` reads them."""
        parts = {"pairs": vars(self.pairs), "removal": vars(self.removal), "weights": self.weights}
        named = {f"{part}.{k}": a for part, arrays in parts.items() for k, a in arrays.items()}
        return {**named, "epochs": self.epochs}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "_Fitted":
        """Read what `arrays` named; a TypeError or KeyError if another version named it."""
        parts: dict[str, dict[str, NDArray[Any]]] = {"pairs": {}, "removal": {}, "weights": {}}
        for name, array in arrays.items():
            part, _, of_part = name.partition(".")
            if part in parts:
                parts[part][of_part] = array
        return cls(
            PairTests(**parts["pairs"]),
            RemovalErrors(**parts["removal"]),
            arrays["epochs"],
            parts["weights"],
        )


def detect(
    samples: Samples,
    settings: DetectorSettings,
    known: KnownGraph,
    *,
    random_state: int,
    n_jobs: int = 1,
    effects_per_block: int = 10,
    checkpoint: CheckpointFile | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> tuple[ChannelNetwork, History, Evidence]:
    """Train on samples of normal scores and test every pair, or those that screening leaves.

    Few series are one network, and `n_jobs` threads share the tests; of many, `n_jobs` processes
    share the blocks. The result depends on neither.
    """
    allowed = known.allowed[..., 1:]
    family = np.asarray(allowed.any(axis=-1))
    most, n_lags = _reach(samples, settings)
    at_once = samples.n_series <= TOGETHER or _is_small(samples) or _is_long(samples)
    share = map if at_once else _in_processes(n_jobs)
    sources, sparse = screen(samples.to("cpu"), most, allowed, known.required, share)
    own = np.eye(samples.n_series, dtype=bool)[..., None]
    # others would stand in for what a shorter memory leaves out
    allowed = allowed & (own | (np.arange(samples.max_lag) < n_lags))
    if most < samples.n_series:
        allowed &= _among(sources, np.maximum(most, known.n_required + 1))[..., None]
    if most == samples.n_series or samples.n_series <= TOGETHER:
        return detect_together(
            samples,
            settings,
            allowed,
            sparse,
            family,
            random_state=random_state,
            n_jobs=n_jobs,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
        )
    done = {} if checkpoint is None else _read_blocks(checkpoint, sources)
    blocks = _cut(samples.n_series, effects_per_block, done)
    results = _all_blocks(
        samples,
        sources,
        blocks,
        {block: done[block] for block in blocks if block in done},
        settings,
        allowed,
        sparse,
        random_state,
        n_jobs,
        checkpoint,
        on_epoch,
    )
    network = side_by_side(
        [_network(samples, settings, sources[list(b)], results[b]) for b in blocks]
    )
    whole = _assembled(samples, settings, sources, family, sparse, results)
    return network.to(samples.past.device), _joint_history(results.values()), whole


def _reach(samples: Samples, settings: DetectorSettings) -> tuple[int, int]:
    """Say how many series and how many lags the network may look at for an effect."""
    n_series, n_slots, max_lag = samples.n_series, samples.n_observed, samples.max_lag
    screened = n_candidates(n_slots, max_lag, n_series, settings) < n_series
    n_lags = network_lags(max_lag, n_slots, POLICY.least_candidates if screened else n_series)
    return n_candidates(n_slots, n_lags, n_series, settings), n_lags


def _among(sources: Int[Tensor, "effect candidate"], n_each: IntArray) -> BoolArray:
    """Say which pairs ``[cause, effect]`` are among the first `n_each` candidates of the effect."""
    counts = torch.arange(sources.shape[1]) < torch.from_numpy(n_each)[:, None]
    among = torch.zeros(len(sources), len(sources), dtype=torch.bool)
    return among.scatter(1, sources, counts).T.numpy()


def _cut(n_series: int, size: int, done: Iterable[range]) -> list[range]:
    """Cut the effects into blocks; those that are done stay as they are.

    Examples
    --------
    >>> _cut(10, 4, [])
    [range(0, 4), range(4, 8), range(8, 10)]
    >>> _cut(10, 3, [range(0, 4), range(8, 10)])
    [range(0, 4), range(4, 7), range(7, 8), range(8, 10)]
    """
    blocks: list[range] = []
    first = 0
    for block in [*done, range(n_series, n_series)]:
        if first <= block.start and block.stop <= n_series:
            gap = range(first, block.start)
            blocks += [gap[i : i + size] for i in range(0, len(gap), size)]
            blocks += [block] if block else []
            first = block.stop
    return blocks


def _all_blocks(
    samples: Samples,
    sources: Int[Tensor, "effect candidate"],
    blocks: list[range],
    done: dict[range, _Fitted],
    settings: DetectorSettings,
    allowed: BoolArray,
    sparse: SparseTests,
    random_state: int,
    n_jobs: int,
    checkpoint: CheckpointFile | None,
    on_epoch: Callable[[Epoch], object] | None,
) -> dict[range, _Fitted]:
    """Fit every block that is not done yet; give the results in order."""
    missing = [b for b in blocks if b not in done]
    workers, n_threads = (1, n_jobs) if _is_small(samples) else (n_jobs, 1)
    tasks = (
        _Task(
            *_only(samples, sources, block),
            list(block),
            _local(allowed, sources, block),
            sparse.of(sources[list(block)].numpy().T, np.array(block)),
            settings,
            random_state,
            n_threads,
        )
        for block in missing
    )
    results = _in_processes(workers)(_fit_block, tasks)
    began = time.monotonic()
    for number, (block, result) in enumerate(zip(missing, results, strict=True), start=1):
        done[block] = result
        if checkpoint is not None:
            _write_block(checkpoint, block, result, sources[list(block)])
        if on_epoch:  # as if all blocks were trained at once
            n_epochs = max(1, settings.max_epochs * len(done) // len(blocks))
            each = (time.monotonic() - began) * len(blocks) / (number * settings.max_epochs)
            loss = result.epochs[-1, 0]
            on_epoch(Epoch(n_epochs - 1, loss, loss, each, True))
    return {block: done[block] for block in blocks}


def _is_small(samples: Samples) -> bool:
    """Say whether threads of this process do it all.

    To start other processes takes seconds, and they cannot share an accelerator.
    """
    few = len(samples) * samples.n_series < _WORTH_PROCESSES
    return (few or samples.past.device.type != "cpu") and not elsewhere()


def _is_long(samples: Samples) -> bool:
    """Say whether the past of all series is too much for every process to have a copy."""
    return samples.past.numel() > _MOST_TO_COPY


def _in_processes(n_jobs: int) -> Map:
    """Give a `map` that is shared among processes, or the workers of a cluster."""
    from joblib import Parallel, delayed

    def shared(function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]:
        parallel = Parallel(n_jobs, return_as="generator", batch_size=1)
        results: Iterable[Result] = parallel(delayed(function)(item) for item in items)
        return results

    return shared


def _only(
    samples: Samples, sources: Int[Tensor, "effect candidate"], block: range
) -> tuple[Samples, Int[Tensor, "effect candidate"]]:
    """Take the effects of a block and their candidates; say where these are in what was taken.

    Little travels to other processes, and nothing is shared that could be lost with one of them.
    """
    series, at = torch.unique(sources[list(block)], return_inverse=True)
    return samples.of(series.tolist(), block), at


def _local(allowed: BoolArray, sources: Int[Tensor, "effect candidate"], block: range) -> BoolArray:
    """Take what concerns some effects and their candidates, ``[candidate, effect, ...]``."""
    effects = np.array(block)
    return np.asarray(allowed[sources[effects].numpy().T, effects])


class _Task(NamedTuple):
    """What it takes to fit a block, in one piece.

    Single arrays joblib would leave with one of Dask's workers, where they can be lost.
    """

    samples: Samples
    sources: Int[Tensor, "effect candidate"]
    effects: list[int]
    allowed: BoolArray
    sparse: SparseTests
    settings: DetectorSettings
    random_state: int
    n_threads: int


def _fit_block(task: _Task) -> _Fitted:
    """Train and test the effects of one block; everything may have come from another process."""
    samples, sources, effects, allowed, sparse, settings, random_state, n_threads = task
    device = samples.past.device
    with fast_small_steps(device, len(effects)):
        model = side_by_side(
            [
                new_network(
                    samples.n_series,
                    samples.max_lag,
                    settings,
                    torch.Generator().manual_seed(_seed(random_state, effect)),
                    sources[i : i + 1],
                )
                for i, effect in enumerate(effects)
            ]
        ).to(device)
        generator = torch.Generator().manual_seed(random_state)
        history = train_network(model, samples, settings, allowed, generator, n_threads)
        if history.stopped == "interrupted":
            raise KeyboardInterrupt  # finished blocks are on disk; half a block is of no use
        pairs, removal = judge_pairs(model, samples, settings, allowed, sparse, n_threads)
    epochs = np.array([(epoch.train_loss, epoch.seconds) for epoch in history.epochs])
    weights = {name: w.detach().cpu().numpy() for name, w in model.named_parameters()}
    return _Fitted(pairs, removal, epochs, weights)


def _seed(random_state: int, effect: int) -> int:
    return int(np.random.SeedSequence([random_state, effect]).generate_state(1)[0])


def _network(
    samples: Samples,
    settings: DetectorSettings,
    sources: Int[Tensor, "effect candidate"],
    result: _Fitted,
) -> ChannelNetwork:
    """Build the trained network of a block."""
    weights = {name: torch.from_numpy(array) for name, array in result.weights.items()}
    network = new_network(samples.n_series, samples.max_lag, settings, sources=sources)
    network.load_state_dict({**weights, "sources": sources})
    return network


def _assembled(
    samples: Samples,
    settings: DetectorSettings,
    sources: Int[Tensor, "effect candidate"],
    family: BoolArray,
    sparse: SparseTests,
    results: Mapping[range, _Fitted],
) -> Evidence:
    """Put what the blocks found where it belongs among all series."""
    parts = [result.removal for result in results.values()]
    residual = np.concatenate([part.residual for part in parts], axis=1)
    correlation, together = errors_together(residual, samples)
    removal = RemovalErrors(
        error=np.concatenate([part.error for part in parts]),
        linear_error=np.concatenate([part.linear_error for part in parts]),
        gain=np.zeros(family.shape),
        gain_error=np.zeros(family.shape),
        residual_correlation=correlation,
        n_together=together,
        residual=residual,
    )
    looked_at = []
    for block, result in results.items():
        place, at = np.nonzero(result.pairs.candidates)
        whole = sources[list(block)].numpy()[at, place], np.array(block)[at]
        removal.gain[whole] = result.removal.gain[place, at]
        removal.gain_error[whole] = result.removal.gain_error[place, at]
        looked_at.append((whole, result.pairs.at((place, at))))
    causes, effects = np.concatenate([whole for whole, _ in looked_at], axis=1)
    found = PairTests.joined([pairs for _, pairs in looked_at])
    pairs = known_by_terms(sparse, removal, samples, family, settings)
    pairs = pairs.put((causes, effects), found)
    # a pair that is not tested counts in the family of tests: see `screening`
    return Evidence(pairs, family, samples, removal)


def _joint_history(results: Iterable[_Fitted]) -> History:
    """Add up the losses of all blocks: the loss of a network is a sum over its effects."""
    epochs = np.sum([result.epochs for result in results], axis=0).tolist()
    return History(
        tuple(Epoch(i, loss, loss, took, True) for i, (loss, took) in enumerate(epochs)),
        "max_epochs",
    )


def _write_block(
    checkpoint: CheckpointFile,
    block: range,
    result: _Fitted,
    sources: Int[Tensor, "effect candidate"],
) -> None:
    """Keep the results of a block, and which candidates they are about."""
    tensors = {k: torch.from_numpy(a.copy()) for k, a in result.arrays().items()}
    tensors["sources"] = sources
    save_tensors(checkpoint.block(block), checkpoint.fingerprint, tensors, {})


def _read_blocks(
    checkpoint: CheckpointFile, sources: Int[Tensor, "effect candidate"]
) -> dict[range, _Fitted]:
    """Read the blocks that are on disk, but for damaged ones and those of other candidates.

    Nor those that another version wrote, which do not have the same parts.
    """
    done = {}
    for block in checkpoint.blocks():
        with suppress(DamagedFileError, KeyError, TypeError):
            tensors, _ = load_tensors(checkpoint.block(block), checkpoint.fingerprint)
            if torch.equal(tensors["sources"], sources[list(block)]):
                done[block] = _Fitted.of({name: t.numpy() for name, t in tensors.items()})
    return done
