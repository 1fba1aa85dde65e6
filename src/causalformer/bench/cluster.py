"""How much a second Dask worker gives, and what losing one costs.

``python -m causalformer.bench.cluster --out benchmarks/scale`` fits 100 series of 1000 slots in
this process, by one worker process, by two, and by two of which one is killed after the first
block, each several times, in turn. Workers have loaded the library before the clock starts; seconds
are medians, and speed-ups are over one worker.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

from causalformer.bench.environment import write_environment
from causalformer.bench.tables import markdown
from causalformer.datasets import make_random_system
from causalformer.files import write_text
from causalformer.graph import CausalGraph
from causalformer.parallel import local_cluster


@dataclass(frozen=True)
class Outcome:
    """Fits of one kind: by whom, how long, and whether each graph is that of one process."""

    workers: str
    seconds: float
    fastest: float
    slowest: float
    speed_up: float
    same_graph: bool


def measure(n_series: int, n_slots: int, n_repeats: int) -> list[Outcome]:
    """Fit the same series in every way, so many times."""
    ways = {
        "no cluster": partial(_fit, n_series, n_slots, 0),
        "one worker": partial(_fit, n_series, n_slots, 1),
        "two workers": partial(_fit, n_series, n_slots, 2),
        "two, one killed after the first block": partial(_fit, n_series, n_slots, 2, kill=True),
    }
    rounds = [{name: fit() for name, fit in ways.items()} for _ in range(n_repeats)]
    alone, _ = rounds[0]["no cluster"]
    seconds = {name: [fits[name][1] for fits in rounds] for name in ways}
    return [
        Outcome(
            name,
            median(took),
            min(took),
            max(took),
            median(seconds["one worker"]) / median(took),
            all(fits[name][0].edges == alone.edges for fits in rounds),
        )
        for name, took in seconds.items()
    ]


def _fit(
    n_series: int, n_slots: int, n_workers: int, *, kill: bool = False
) -> tuple[CausalGraph, float]:
    from causalformer.estimator import CausalFormer

    made = make_random_system(n_series, n_slots, n_edges=2 * n_series, random_state=0)
    if not n_workers:
        _load()
        started = time.perf_counter()
        model = CausalFormer(device="cpu").fit(made.series)
        return model.graph_, time.perf_counter() - started

    from dask.distributed import Client

    local = local_cluster(n_workers)
    client = Client(local, set_as_default=False)  # type: ignore[no-untyped-call]
    killed: list[int] = []

    def kill_one(_: object) -> None:
        if kill and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with local, client:
        client.run(_load)
        started = time.perf_counter()
        model = CausalFormer(device="cpu", cluster=local.scheduler_address, on_epoch=kill_one)
        model.fit(made.series)
        return model.graph_, time.perf_counter() - started


def _load() -> None:
    """Load in a worker what a fit needs."""
    from causalformer.bench.timing import warm_up

    warm_up()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write ``cluster.md``, and return 1 if a graph differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n-series", type=int, default=100)
    parser.add_argument("--n-slots", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    outcomes = measure(options.n_series, options.n_slots, options.repeats)
    import pandas as pd

    frame = pd.DataFrame([asdict(outcome) for outcome in outcomes])
    title = f"# A cluster: N = {options.n_series}, T = {options.n_slots}\n\n"
    write_text(options.out / "cluster.md", title + markdown(frame))
    command = ["causalformer.bench.cluster", *sys.argv[1:]]
    write_environment(options.out / "cluster-environment.json", command)
    print(frame.to_string(index=False))
    return 0 if frame["same_graph"].all() else 1


if __name__ == "__main__":
    sys.exit(main())
