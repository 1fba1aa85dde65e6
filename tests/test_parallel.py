"""The same graph whoever does the work: this process, others, or a Dask cluster that loses some."""

import os
import signal
import socket
import sys
from concurrent.futures import CancelledError
from contextlib import suppress
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from causalformer import CausalFormer, parallel
from causalformer.cli.program import app
from causalformer.datasets import make_random_system
from causalformer.detect import blocks
from causalformer.each import fit_each
from causalformer.errors import ClusterError, MissingExtraError, SettingsError
from causalformer.parallel import local_cluster, workers

SMALL = {"screen_above": 5, "max_candidates": 16, "max_epochs": 8, "n_channels": 16}


def fitted(**options):
    made = make_random_system(60, 150, random_state=0)
    return CausalFormer(max_lag=3, device="cpu", settings=SMALL, **options).fit(made.series)


@pytest.fixture(scope="module")
def alone():
    return fitted()


@pytest.fixture
def scheduler():
    """A scheduler with two workers, each a process of its own, as on a cluster."""
    distributed = pytest.importorskip("dask.distributed")
    with (
        local_cluster(2) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster.scheduler_address, client


def assert_same(first, second):
    assert first.graph_.edges == second.graph_.edges
    for name, matrix in first.scores_.items():
        np.testing.assert_array_equal(matrix, second.scores_[name], name)


def test_processes_give_the_same_graph(alone, monkeypatch):
    monkeypatch.setattr(blocks, "_WORTH_PROCESSES", 0)
    assert_same(fitted(n_jobs=2), alone)


def test_a_local_cluster_has_no_more_workers_than_memory_allows(monkeypatch):
    pytest.importorskip("dask.distributed")
    started = []
    monkeypatch.setattr(parallel, "local_cluster", lambda n: started.append(n) or local_cluster(n))
    fitted(cluster="local", n_jobs=4, max_memory="1.2GB")
    assert started == [1]


def test_workers_elsewhere_bring_their_own_memory(alone, scheduler):
    address, _ = scheduler
    series = make_random_system(60, 150, random_state=0).series
    enough = CausalFormer(max_lag=3, settings=SMALL).memory_plan(series).n_bytes
    assert_same(fitted(cluster=address, n_jobs=64, max_memory=enough), alone)


def test_workers_elsewhere_are_not_in_the_plan():
    series = np.zeros((1000, 60))
    alone = CausalFormer().memory_plan(series)
    assert CausalFormer(cluster="tcp://127.0.0.1:1", n_jobs=8).memory_plan(series) == alone


def test_a_task_that_costs_its_workers_their_lives_is_an_error():
    pytest.importorskip("dask.distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        local_cluster(1) as cluster,
        workers(cluster.scheduler_address, 1),
        pytest.raises(ClusterError, match=r"given the work up \(KilledWorker.*`resume` goes on"),
    ):
        list(Parallel(-1, return_as="generator")(delayed(os._exit)(1) for _ in range(2)))


def test_a_scheduler_that_dies_is_an_error():
    pytest.importorskip("dask.distributed")
    with local_cluster(1) as cluster, workers(cluster.scheduler_address, 1):
        backend, _ = get_active_backend()
        with pytest.raises(ClusterError, match="scheduler-connection-lost"):
            backend.retrieve_result_callback(CancelledError("scheduler-connection-lost"))


def test_a_cluster_gives_the_same_graph_even_if_it_loses_a_worker(alone, scheduler):
    address, client = scheduler
    killed = []

    def kill_one(_):
        if not killed:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    assert_same(fitted(cluster=address, on_epoch=kill_one), alone)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()


def test_a_cluster_of_this_machine_shares_the_recordings(tmp_path):
    pytest.importorskip("dask.distributed")
    subjects = [make_random_system(3, 120, random_state=seed).series for seed in range(2)]
    options = {"max_lag": 2, "settings": {"max_epochs": 2, "n_channels": 4}}
    by_cluster = fit_each(CausalFormer(cluster="local", **options), subjects, n_jobs=1)
    assert by_cluster.graphs == fit_each(CausalFormer(**options), subjects).graphs


def test_without_a_cluster_jobs_are_processes():
    with workers(None, 3) as n_jobs:
        assert n_jobs == 3


def processes_that_work(cluster):
    with workers(cluster, 1) as n_jobs:
        return set(Parallel(n_jobs)(delayed(os.getpid)() for _ in range(4)))


def test_a_single_worker_of_this_machine_does_the_work():
    pytest.importorskip("dask.distributed")
    assert os.getpid() not in processes_that_work("local")


def test_the_single_worker_of_a_scheduler_does_the_work():
    pytest.importorskip("dask.distributed")
    with local_cluster(1) as cluster:
        assert os.getpid() not in processes_that_work(cluster.scheduler_address)


def test_a_cluster_that_starts_workers_when_there_is_work_does_it():
    pytest.importorskip("dask.distributed")
    with local_cluster(0) as cluster:
        cluster.adapt(minimum=0, maximum=1, interval="100ms")
        assert os.getpid() not in processes_that_work(cluster.scheduler_address)


def refusal(cluster):
    """The message with which a cluster is refused; nothing half-made may be left behind."""
    pytest.importorskip("dask.distributed")
    import dask

    pytest.importorskip("dask.distributed")
    with pytest.raises(SettingsError) as refused, workers(cluster, 1):
        pass
    # Else whatever of this process uses Dask next, such as xarray writing a file, would fail.
    assert dask.config.get("scheduler", None) is None
    return str(refused.value)


@pytest.mark.parametrize(
    "cluster", ["nonsense://", "", "127.0.0.1:8786", "http://127.0.0.1:8786", 5, ["local"]]
)
def test_what_is_no_address_is_refused_with_what_to_give(cluster):
    assert refusal(cluster) == (
        f"cluster {cluster!r} is no address of a Dask scheduler; give 'local' or an address such "
        "as tcp://10.0.0.5:8786"
    )


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "ws://127.0.0.1:1", "tcp://[::1]:99999"])
def test_where_nothing_listens_no_scheduler_answers(address):
    message = refusal(address)
    assert message.startswith(f"no Dask scheduler answers at {address!r} (")
    assert message.endswith("give 'local' or an address such as tcp://10.0.0.5:8786")
    assert "nothing came back" not in message  # it did not wait until the time was over


def test_a_server_that_never_answers_is_no_scheduler(monkeypatch):
    monkeypatch.setattr("causalformer.parallel._SECONDS_TO_CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert refusal(address).startswith(
            f"no Dask scheduler answers at {address!r} (nothing came back within 0.5 seconds)"
        )


def test_a_server_that_answers_something_else_is_no_scheduler():
    class Other(BaseRequestHandler):
        def handle(self):
            self.request.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

    with TCPServer(("127.0.0.1", 0), Other) as server:
        Thread(target=server.serve_forever).start()
        address = f"tcp://127.0.0.1:{server.server_address[1]}"
        message = refusal(address)
        server.shutdown()
    assert message.startswith(f"no Dask scheduler answers at {address!r}")


def test_a_scheduler_without_workers_says_how_to_start_one(monkeypatch):
    pytest.importorskip("dask.distributed")
    monkeypatch.setattr("causalformer.parallel._SECONDS_TO_FIRST_WORKER", 0.5)
    with local_cluster(0) as cluster:
        address = cluster.scheduler_address
        assert refusal(address) == (
            f"the Dask scheduler at {address!r} has no workers; start one with "
            f"`dask worker {address} --nthreads 1`"
        )


def test_a_local_cluster_is_quiet_beside_another(recwarn):
    pytest.importorskip("dask.distributed")
    with socket.socket() as other:
        with suppress(OSError):  # a Dask that runs here has the port already
            other.bind(("127.0.0.1", 8787))
            other.listen()
        local_cluster(0).close()
    assert not recwarn.list


def test_without_dask_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(MissingExtraError, match=r"causalformer\[dask\]"), workers("local", 1):
        pass


def test_the_command_takes_a_cluster(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    path = tmp_path / "a.csv"
    made = make_random_system(3, 100, random_state=0).series
    np.savetxt(path, made.values, delimiter=",", header="a,b,c", comments="")
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["discover", str(path), "--cluster", "local"])
    assert isinstance(result.exception, MissingExtraError) or "causalformer[dask]" in result.output
