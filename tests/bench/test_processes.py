"""Work in a process of its own: what comes back from work that ends, fails, dies or never ends."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from causalformer.bench.processes import family, measured, peaks_of
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")

MEGABYTES_100 = 100 * 1024 * 1024


def sum_of(a, b):
    return lambda: a + b


def failing(at_once):
    def fail():
        raise ValueError("no such\nthing")

    return fail() if at_once else fail


def dying():
    return lambda: os._exit(3)


def endless():
    def wait():
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        while True:
            time.sleep(60)

    return wait


def with_worker():
    code = f"x = bytearray({MEGABYTES_100}); x[::1000] = b'1' * len(x[::1000]); input()"

    def run():
        worker = subprocess.Popen(
            [sys.executable, "-c", code + "; print()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        while sum(peaks_of(iter([worker.pid])).values()) < 0.1:
            time.sleep(0.01)
        return worker.pid

    return run


def test_work_gives_its_value_and_what_it_took():
    done = measured(sum_of, 1, 2, time_limit=PATIENCE)
    assert (done.value, done.stopped, done.error) == (3, False, "")
    assert done.seconds >= 0
    assert done.cpu_seconds >= 0
    assert done.peak_gb > 0


@pytest.mark.parametrize("at_once", [True, False])
def test_a_failure_is_told(at_once):
    done = measured(failing, at_once, time_limit=PATIENCE)
    assert done.error == "ValueError: no such thing"
    assert done.value is None


def test_a_process_that_dies_is_told():
    assert measured(dying, time_limit=PATIENCE).error == "the process was killed"


def test_the_memory_of_workers_counts_and_nothing_is_left_running():
    done = measured(with_worker, time_limit=PATIENCE)
    assert done.peak_gb > 0.1
    assert peaks_of(iter([done.value])) == {}


def test_work_beyond_the_limit_is_stopped_with_its_workers():
    before = set(family(os.getpid()))
    done = measured(endless, time_limit=1.0)
    assert done.stopped
    assert math.isnan(done.cpu_seconds)
    assert set(family(os.getpid())) - before <= tracker()


def tracker():
    """The helper that multiprocessing starts once and keeps."""
    from multiprocessing import resource_tracker

    return {resource_tracker._resource_tracker._pid}
