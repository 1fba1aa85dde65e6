"""The same graph whoever does the work: this process, others, or a Dask cluster that loses some."""

import os
import signal
import sys

import numpy as np
import pytest

from causalformer import CausalFormer
from causalformer.cli.program import app
from causalformer.datasets import make_random_system
from causalformer.each import fit_each
from causalformer.errors import MissingExtraError, SettingsError
from causalformer.parallel import workers

SMALL = {"screen_above": 5, "max_candidates": 16, "max_epochs": 8, "n_channels": 16}


def fitted(**options):
    made = make_random_system(60, 150, random_state=0)
    return CausalFormer(max_lag=2, device="cpu", settings=SMALL, **options).fit(made.series)


@pytest.fixture(scope="module")
def alone():
    return fitted()


@pytest.fixture
def scheduler():
    """A scheduler with two workers, each a process of its own, as on a cluster."""
    distributed = pytest.importorskip("dask.distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster.scheduler_address, client


def assert_same(first, second):
    assert first.graph_.edges == second.graph_.edges
    for name, matrix in first.scores_.items():
        np.testing.assert_array_equal(matrix, second.scores_[name], name)


def test_processes_give_the_same_graph(alone):
    assert_same(fitted(n_jobs=2), alone)


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


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://", ""])
def test_where_no_scheduler_answers_the_message_says_what_to_give(address, monkeypatch):
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.distributed")
    monkeypatch.setattr("causalformer.parallel._SECONDS_TO_CONNECT", 1)
    with pytest.raises(SettingsError, match=r"Dask scheduler.*'local'"), workers(address, 1):
        pass
    # Else whatever of this process uses Dask next, such as xarray writing a file, would fail.
    assert dask.config.get("scheduler", None) is None


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
