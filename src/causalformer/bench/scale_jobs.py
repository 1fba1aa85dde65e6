"""What the scale benchmark measures: systems of many sizes, and the methods that run on each."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from causalformer.bench.drawn import DrawnFile
from causalformer.bench.methods import REFERENCES, Method, method_for
from causalformer.bench.processes import measured
from causalformer.bench.result_file import Row, as_row
from causalformer.bench.runner import DataFile, Job
from causalformer.bench.sst import netcdf_files
from causalformer.config import DEFAULT
from causalformer.data import read_series
from causalformer.data.regions import sea_series
from causalformer.datasets import Generated, load_folder, make_random_system
from causalformer.datasets.random_system import Links
from causalformer.errors import DataError, DataWarning
from causalformer.graph import CausalGraph
from causalformer.metrics import evaluate

N_JOBS: Final = 2
"""Processes that the default may start."""

WITHOUT_SCREENING: Final = "default-without-screening"
LINEAR_RIVALS: Final = ("var-lasso", "var-ridge", "pcmci")
NONLINEAR_RIVALS: Final = ("cmlp", "tcdf", "cuts")

GROWTH_IN_N: Final = tuple((n, 1000) for n in (100, 200, 300, 500, 1000))
GROWTH_IN_T: Final = tuple((10, t) for t in (1_000, 10_000, 100_000, 1_000_000))
ACCURACY: Final[Mapping[int, int]] = MappingProxyType({100: 3, 300: 3, 1000: 1})
"""Number of systems for every number of series, each once linear and once nonlinear."""
PEERS: Final[Mapping[int, int]] = MappingProxyType({20: 3, 50: 3})

_CAUSES = 2  # per effect, besides itself
_FIRST_SEED = 60_000  # far from the seeds that settings were chosen on
_ALL_PAIRS = 100_000  # series up to which nothing is screened
_ALL_PAIRS_UP_TO = 300  # series: 1000 without screening would take hours
_ALL_SYSTEMS_UP_TO = 100  # series; of more, the first system only is tried by slow methods
_SLOW = (WITHOUT_SCREENING, "pcmci")
_RIVAL_TIMES = 10.0  # as long as the default at most
_LEAST_LIMIT = 60.0  # seconds that everybody has


def folder_name(links: str, n_series: int, n_slots: int) -> str:
    """Name the systems of one kind and size.

    Examples
    --------
    >>> folder_name("linear", 5, 120)
    'linear, N = 5, T = 120'
    """
    return f"{links}, N = {n_series}, T = {n_slots}"


def system(links: Links, n_series: int, n_slots: int, index: int = 0) -> tuple[str, DrawnFile]:
    """Describe a sparse system: two causes per effect on average, lags up to 3."""
    draw = partial(
        make_random_system,
        n_series,
        n_slots,
        n_edges=_CAUSES * n_series,
        links=links,
        random_state=_FIRST_SEED + index,
    )
    return folder_name(links, n_series, n_slots), DrawnFile(f"system_{index}", draw)


def sea_temperatures(folder: str) -> Generated:
    """Read the series of the case study; nobody knows their graph, so it is empty."""
    table, _ = sea_series(netcdf_files(folder))
    return Generated(table, CausalGraph(table.names))


def method_named(name: str) -> Method:
    """Look up a method; the default may use two processes."""
    if name == WITHOUT_SCREENING:
        plain = method_named(DEFAULT)
        return replace(plain, name=name, settings={**plain.settings, "screen_above": _ALL_PAIRS})
    found = method_for(name, "scale")
    return replace(found, options={**found.options, "n_jobs": N_JOBS}) if found.preset else found


def jobs_on(
    data: Sequence[tuple[str, DataFile]], methods: Sequence[str] = (DEFAULT, *REFERENCES)
) -> list[Job]:
    """List every method on every data set, the default first: others are limited by its time."""
    chosen = [method_named(name) for name in methods]
    return [
        Job(folder, (file,), method, 0 if method.seeded else None)
        for folder, file in data
        for method in chosen
    ]


def limit_jobs(data: Path) -> list[Job]:
    """List the data that have a limit of time or memory."""
    fourth = [file for file in load_folder(data / "fmri") if file.name == "timeseries4"]
    if not fourth:
        raise DataError(f"{data / 'fmri'} holds no timeseries4.csv, which the benchmark needs")
    return jobs_on(
        [
            ("fmri", fourth[0]),
            system("nonlinear", 100, 1000),
            ("sst", DrawnFile("ersst", partial(sea_temperatures, str(data / "sst")))),
            system("nonlinear", 1000, 1000),
            system("nonlinear", 10, 1_000_000),
        ]
    )


def growth_jobs(data: Path) -> list[Job]:  # noqa: ARG001 - every part has the same form
    """List systems that differ in size alone."""
    return jobs_on([system("nonlinear", n, t) for n, t in (*GROWTH_IN_N, *GROWTH_IN_T)])


def methods_for_accuracy(n_series: int, index: int) -> list[str]:
    """Name the methods that are tried on a system: the slow ones on few of the large ones.

    Examples
    --------
    >>> methods_for_accuracy(300, 1)
    ['default', 'self-loops', 'var', 'var-lasso', 'var-ridge']
    """
    methods = [DEFAULT, WITHOUT_SCREENING, *REFERENCES, *LINEAR_RIVALS]
    if n_series > _ALL_PAIRS_UP_TO:
        methods.remove(WITHOUT_SCREENING)
    many = n_series > _ALL_SYSTEMS_UP_TO and index > 0
    return [name for name in methods if not (many and name in _SLOW)]


def accuracy_jobs(data: Path) -> list[Job]:  # noqa: ARG001
    """List large systems, with and without screening and with linear methods for large systems."""
    kinds: tuple[Links, ...] = ("linear", "nonlinear")
    jobs = []
    for n, count in ACCURACY.items():
        for links in kinds:
            for index in range(count):
                chosen = methods_for_accuracy(n, index)
                jobs += jobs_on([system(links, n, 1000, index)], chosen)
    return jobs


def peer_jobs(data: Path) -> list[Job]:  # noqa: ARG001
    """List systems that the peers can manage."""
    systems = [
        system("nonlinear", n, 1000, index) for n, count in PEERS.items() for index in range(count)
    ]
    return jobs_on(systems, (DEFAULT, *REFERENCES, "pcmci", "varlingam", *NONLINEAR_RIVALS))


PARTS: Final[Mapping[str, Callable[[Path], list[Job]]]] = MappingProxyType(
    {
        "limits": limit_jobs,
        "growth": growth_jobs,
        "accuracy": accuracy_jobs,
        "peers": peer_jobs,
    }
)
"""What lists the jobs of every part; a job of several parts is measured once."""


@dataclass(frozen=True)
class Stored:
    """Series on disk as an array, with their names and their graph."""

    path: Path
    names: tuple[str, ...]
    n_slots: int
    truth: CausalGraph


class Store:
    """Data sets in a folder, each drawn or read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stored: dict[str, Stored] = {}

    def get(self, file: DataFile) -> Stored:
        """Write the series if they are not there yet."""
        if file.fingerprint not in self._stored:
            made = file.load()
            path = self._folder / f"{file.fingerprint}.npy"
            np.save(path, made.series.values)
            self._stored[file.fingerprint] = Stored(
                path, made.series.names, made.series.n_slots, made.truth
            )
        return self._stored[file.fingerprint]


def run_job(job: Job, store: Store, time_limit: float) -> Row:
    """Measure one job in a process of its own; failures and stops are rows, too."""
    (row,) = job.labels()
    data = store.get(job.file)
    done = measured(prepared_fit, job.method, job.seed, data, time_limit=time_limit)
    figures: dict[str, object] = {
        "n_series": len(data.names),
        "n_slots": data.n_slots,
        "seconds": round(done.seconds, 3),
        "cpu_seconds": round(done.cpu_seconds, 3),
        "peak_gb": round(done.peak_gb, 3),
        "stopped": f"after {time_limit:.0f} s" if done.stopped else None,
        "error": done.error.replace(str(data.path), job.file.name),
    }
    if done.value is not None and data.truth.edges:
        graph, scores = done.value
        figures |= evaluate(graph, data.truth, scores).to_dict()
    row.update({name: text for name, text in as_row(figures).items() if text})
    return row


def prepared_fit(method: Method, seed: int | None, data: Stored) -> Callable[[], Any]:
    """Load everything by a fit to little noise; return the fit that counts, from file to graph."""
    warnings.simplefilter("ignore", DataWarning)
    method.build(seed).fit(np.random.default_rng(0).standard_normal((120, 3)))
    model = method.build(seed)

    def fit() -> tuple[CausalGraph, Any]:
        model.fit(read_series(data.path, names=data.names))
        return model.graph_, model.edge_scores_

    return fit


def limit_for(job: Job, seconds_of_default: float | None, time_limit: float) -> float:
    """Give the seconds that a job may take: a rival ten times as long as the default at most.

    Examples
    --------
    >>> (job,) = jobs_on([system("linear", 5, 120)], ["pcmci"])
    >>> limit_for(job, 20.0, 3600), limit_for(job, 1.0, 3600), limit_for(job, None, 3600)
    (200.0, 60.0, 3600)
    """
    if job.method.name not in LINEAR_RIVALS or seconds_of_default is None:
        return time_limit
    return min(time_limit, max(_LEAST_LIMIT, _RIVAL_TIMES * seconds_of_default))
