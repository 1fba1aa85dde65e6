"""Where work that can be shared is done: processes of this machine, or a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from causalformer.errors import MissingExtraError, SettingsError

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
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError(
            f"cluster {cluster!r} needs Dask: pip install 'causalformer[dask]'"
        ) from None
    if cluster == "local":
        n_workers = n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)
        options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
        local = LocalCluster(**options)  # type: ignore[no-untyped-call]
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
