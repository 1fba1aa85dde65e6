"""Work in a process of its own: its seconds, its memory with that of its workers, and a limit.

Memory is the sum of the peaks of the process and of everything that it started, as Linux knows
them; pages that processes share are counted once for each, so the sum is rather too high.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from causalformer.bench.memory import high_water_gb, peak_gb

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_PAUSE: Final = 0.2  # seconds between two looks at a process
_FAREWELL: Final = 10.0  # seconds in which a process that is done may end by itself


@dataclass(frozen=True)
class Measured:
    """What work gave and what it took.

    Attributes
    ----------
    value : object
        What the work returned; None if it failed or was stopped.
    seconds, cpu_seconds : float
        Wall and processor time of the work, workers included, without what went before it.
    peak_gb : float
        Sum of the peaks of all processes, libraries included.
    stopped : bool
        Whether the time limit ended it.
    error : str
        Why it failed, or empty.
    """

    value: Any = None
    seconds: float = float("nan")
    cpu_seconds: float = float("nan")
    peak_gb: float = float("nan")
    stopped: bool = False
    error: str = ""


def measured(
    prepare: Callable[..., Callable[[], Any]], *arguments: Any, time_limit: float
) -> Measured:
    """Run ``prepare(*arguments)`` and then, on the clock, what it returns, in a new process.

    Parameters
    ----------
    prepare : callable
        Loads what is needed and returns the work. It and its arguments travel by pickle, as does
        what the work returns.
    time_limit : float
        Seconds of work after which the process and its workers are killed; preparing has as many.
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, prepare, arguments))
    process.start()
    sender.close()  # so that the end of the process is the end of the pipe
    assert process.pid is not None
    peaks: dict[int, float] = {}
    try:
        result = _watch(receiver, process.pid, peaks, time_limit)
        if not result.stopped:
            process.join(_FAREWELL)
    finally:
        for pid in family(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.join()
    return result


def _watch(
    receiver: "Connection", pid: int, peaks: dict[int, float], time_limit: float
) -> Measured:
    """Look at a process until it reports, ends or has used up its time."""
    started = time.monotonic()
    while True:
        while not receiver.poll(_PAUSE):
            peaks |= peaks_of(family(pid))
            if time.monotonic() - started > time_limit:
                return Measured(
                    seconds=time.monotonic() - started,
                    peak_gb=sum(peaks.values()),
                    stopped=True,
                )
        try:
            report = receiver.recv()
        except EOFError:
            return Measured(peak_gb=sum(peaks.values()), error="the process was killed")
        if report is None:  # prepared: from now on time counts
            started = time.monotonic()
            continue
        value, seconds, cpu_seconds, last_peaks, error = report
        return Measured(
            value, seconds, cpu_seconds, sum((peaks | last_peaks).values()), error=error
        )


def _work(
    sender: "Connection", prepare: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...]
) -> None:
    value, error = None, ""
    started, before = time.perf_counter(), _cpu_seconds()
    try:
        work = prepare(*arguments)
        sender.send(None)
        started, before = time.perf_counter(), _cpu_seconds()
        value = work()
    except Exception as problem:  # a method that fails is a result, too
        error = " ".join(f"{type(problem).__name__}: {problem}".split())
    seconds, cpu_seconds = time.perf_counter() - started, _cpu_seconds() - before
    peaks = peaks_of(family(os.getpid())) or {os.getpid(): peak_gb()}
    sender.send((value, seconds, cpu_seconds, peaks, error))


def _cpu_seconds() -> float:
    """Add up the processor time of this process and of its workers, living and dead."""
    used = os.times()
    living = sum(_stat(pid)[1] for pid in family(os.getpid()) if pid != os.getpid())
    return time.process_time() + used.children_user + used.children_system + living


def peaks_of(pids: Iterator[int]) -> dict[int, float]:
    """Give the peak memory of processes in GB, without those that have just ended."""
    peaks = ((pid, high_water_gb(pid)) for pid in pids)
    return {pid: peak for pid, peak in peaks if peak is not None}


def family(pid: int) -> Iterator[int]:
    """List a process and everything that it started, as far as the system tells.

    Examples
    --------
    >>> os.getpid() in family(os.getpid())
    True
    """
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        children.setdefault(_stat(int(entry.name))[0], []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting += children.get(one, [])
        yield one


def _stat(pid: int) -> tuple[int, float]:
    """Give the parent of a process and its own processor seconds; (0, 0) if it has ended."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0, 0.0
    fields = line.rpartition(")")[2].split()  # the name before may hold spaces
    ticks = int(fields[11]) + int(fields[12])
    return int(fields[1]), ticks / os.sysconf("SC_CLK_TCK")
