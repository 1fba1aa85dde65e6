"""Where work that can be shared is done: processes of this machine, or a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from causalformer.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    from dask.distributed import LocalCluster

_SECONDS_TO_CONNECT = 20


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
    from joblib import cpu_count, parallel_config

    try:
        from dask.distributed import Client
    except ImportError:
        raise MissingExtraError(
            f"cluster {cluster!r} needs Dask: pip install 'causalformer[dask]'"
        ) from None
    if cluster == "local":
        n_workers = n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)
        local = local_cluster(n_workers)
        client = Client(local)  # type: ignore[no-untyped-call]
        with local, client, parallel_config(backend="dask"):
            yield -1
        return
    try:
        client = Client(cluster, timeout=_SECONDS_TO_CONNECT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            f"no Dask scheduler answers at {cluster!r} ({error}); give 'local' or an address such "
            "as tcp://10.0.0.5:8786"
        ) from error
    with client, parallel_config(backend="dask"):
        yield -1


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
