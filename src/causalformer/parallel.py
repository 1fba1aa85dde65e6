"""Where work that can be shared is done: threads or processes of this machine, a Dask cluster."""

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from causalformer.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    from dask.distributed import LocalCluster

_SECONDS_TO_CONNECT = 20
_ADDRESS = re.compile(r"\w+://\S+:\d+")

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Map(Protocol):
    """Calls a function for every item and gives the results in order, as `map` does."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Iterable[Result]:
        """Call it."""


@contextmanager
def threads(n_jobs: int, most: int) -> Iterator[Map]:
    """Give a `map` that is shared among threads; computations in torch run side by side.

    Parameters
    ----------
    n_jobs : int
        Threads; -1 for one per core.
    most : int
        No more than so many are of use.

    Examples
    --------
    >>> with threads(2, most=4) as shared:
    ...     list(shared(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    import torch

    n_threads = min(most, _at_once(n_jobs))
    if n_threads == 1:
        yield map
        return
    here = copy_context()

    def as_here() -> None:
        torch.set_flush_denormal(True)  # as `fast_small_steps` has it
        for variable, value in here.items():
            variable.set(value)

    with ThreadPoolExecutor(n_threads, initializer=as_here) as pool:
        yield pool.map


@contextmanager
def workers(cluster: str | None, n_jobs: int) -> Iterator[int]:
    """Give the number of jobs for everything joblib does inside; it may be done by a cluster.

    Parameters
    ----------
    cluster : str, optional
        ``"local"``: `n_jobs` Dask workers, each a process of this machine, for as long as needed.
        An address such as ``"tcp://10.0.0.5:8786"``: the workers of that scheduler.
    n_jobs : int
        Processes; -1 for one per core. With the address of a scheduler it has all of its workers.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    SettingsError
        If no scheduler answers there.

    Examples
    --------
    >>> with workers(None, 2) as n_jobs:
    ...     n_jobs
    2
    """
    if cluster is None:
        yield n_jobs
        return
    from joblib import parallel_config

    try:
        from dask.distributed import Client
    except ImportError:
        raise MissingExtraError(
            f"cluster {cluster!r} needs Dask: pip install 'causalformer[dask]'"
        ) from None
    if cluster == "local":
        local = local_cluster(_at_once(n_jobs))
        client = Client(local, set_as_default=False)  # type: ignore[no-untyped-call]
        with local, client, parallel_config(backend="dask", client=client):
            yield -1
        return
    advice = "give 'local' or an address such as tcp://10.0.0.5:8786"
    if not _ADDRESS.fullmatch(cluster):
        raise SettingsError(f"cluster {cluster!r} is no address of a Dask scheduler; {advice}")
    try:
        client = Client(  # type: ignore[no-untyped-call]
            cluster, timeout=_SECONDS_TO_CONNECT, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            f"no Dask scheduler answers at {cluster!r} ({error}); {advice}"
        ) from error
    with client, parallel_config(backend="dask", client=client):
        yield -1


def _at_once(n_jobs: int) -> int:
    from joblib import cpu_count

    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def local_cluster(n_workers: int) -> "LocalCluster":
    """Start Dask workers on this machine, each a process with one thread.

    Dask tells its workers to give memory back at once. A training takes and frees the same memory
    thousands of times: with that setting most of its time goes into asking for it again.
    """
    import dask
    from dask.distributed import LocalCluster

    keep = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**30))
    settings = {f"distributed.nanny.pre-spawn-environ.{name}": n for name, n in keep.items()}
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    with dask.config.set(settings):
        return LocalCluster(**options)  # type: ignore[no-untyped-call]
