"""Where work that can be shared is done: threads or processes of this machine, a Dask cluster."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import urlsplit

from causalformer.errors import ClusterError, MissingExtraError, SettingsError

if TYPE_CHECKING:
    from dask.distributed import Client, LocalCluster

_SECONDS_TO_CONNECT = 20
_SECONDS_TO_FIRST_WORKER = 60
_ADDRESS = re.compile(r"(tcp|tls|ucx|wss?)://\S+:\d+")
_LONGEST_REASON = 200
_ADVICE = "give 'local' or an address such as tcp://10.0.0.5:8786"

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
        If that is no address, no scheduler answers there, or it has no workers.
    ClusterError
        By what is done inside, if the scheduler dies or gives a task up.

    Examples
    --------
    >>> with workers(None, 2) as n_jobs:
    ...     n_jobs
    2
    """
    if cluster is None:
        yield n_jobs
        return
    if not isinstance(cluster, str) or not (cluster == "local" or _ADDRESS.fullmatch(cluster)):
        raise SettingsError(f"cluster {cluster!r} is no address of a Dask scheduler; {_ADVICE}")
    from joblib import parallel_config

    try:
        import dask.distributed  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"cluster {cluster!r} needs Dask: pip install 'causalformer[dask]'"
        ) from None
    here = cluster == "local"
    opened = _local_client(_at_once(n_jobs)) if here else _client(cluster)
    with opened as client, parallel_config(backend=_backend(client)):
        yield _at_once(n_jobs) if here else -1


def elsewhere() -> bool:
    """Say whether what joblib does now is done by the workers of a cluster.

    Examples
    --------
    >>> elsewhere()
    False
    """
    from joblib.parallel import get_active_backend

    return hasattr(get_active_backend()[0], "client")


@contextmanager
def _local_client(n_workers: int) -> Iterator["Client"]:
    from dask.distributed import Client

    with (
        local_cluster(n_workers) as local,
        Client(local, set_as_default=False) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


@contextmanager
def _client(address: str) -> Iterator["Client"]:
    """Connect to a scheduler, and wait until it has a worker."""
    from dask.distributed import Client

    try:
        with ThreadPoolExecutor(1) as thread:  # in a notebook this thread has a loop that runs
            thread.submit(asyncio.run, _greet(address)).result()
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=_SECONDS_TO_CONNECT, set_as_default=False
        )
    except Exception as error:  # whatever else listens there may answer anything
        reason = str(error) or f"nothing came back within {_SECONDS_TO_CONNECT} seconds"
        raise SettingsError(
            f"no Dask scheduler answers at {address!r} ({reason}); {_ADVICE}"
        ) from error
    with client:
        _wait_for_a_worker(client, address)
        yield client


async def _greet(address: str) -> None:
    """Connect and leave again: `Client` itself waits for ever if nobody answers its greeting."""
    from dask.distributed import Client

    async with asyncio.timeout(_SECONDS_TO_CONNECT):
        # `Client` tries again and again where it is refused; a socket tells at once (UCX has none).
        if not address.startswith("ucx"):
            place = urlsplit(address)
            _, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.close()
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=_SECONDS_TO_CONNECT, set_as_default=False, asynchronous=True
        )
        try:
            await client
        finally:
            await client.close()  # type: ignore[no-untyped-call]


def _wait_for_a_worker(client: "Client", address: str) -> None:
    waiting = client.submit(int, pure=False)  # an adaptive cluster starts workers for tasks only
    try:
        client.wait_for_workers(1, timeout=_SECONDS_TO_FIRST_WORKER)
    except TimeoutError:
        raise SettingsError(
            f"the Dask scheduler at {address!r} has no workers; start one with "
            f"`dask worker {address} --nthreads 1`"
        ) from None
    finally:
        waiting.release()  # type: ignore[no-untyped-call]


def _backend(client: "Client") -> Any:
    """Give what lets joblib use these workers, be it only one, and hear of it if they give up.

    If there is one worker with one thread, joblib's own would do all the work in this process;
    `effective_n_jobs` still gives the true number: memory is planned with it. If the scheduler
    gives a task up, joblib's own would wait for ever.
    """
    from joblib._dask import DaskDistributedBackend

    class OnWorkers(DaskDistributedBackend):  # type: ignore[misc]
        def configure(self, *args: Any, **options: Any) -> int:
            return max(2, int(super().configure(*args, **options)))

        def submit(self, func: Any, callback: Callable[[Any], object]) -> Any:
            future = super().submit(func, callback)

            def tell(done: Any) -> None:
                if done.exception() is not None:
                    callback(done.exception())

            future.add_done_callback(tell)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, BaseException):  # those of the work itself come wrapped
                raise _given_up(out)
            return super().retrieve_result_callback(out)

    return OnWorkers(client=client)


def _given_up(error: BaseException) -> ClusterError:
    reason = shorten(" ".join(str(error).split()), _LONGEST_REASON, placeholder=" …")
    return ClusterError(
        f"the cluster has given the work up ({type(error).__name__}: {reason}); see the logs of "
        "its workers: do they have memory enough, and the same version of causalformer? Blocks "
        "that were finished are kept if there is a checkpoint: `resume` goes on from there"
    )


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
    with dask.config.set(settings):
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # any free port: 8787 may be another cluster's
            scheduler_kwargs={"dashboard": False},
        )
