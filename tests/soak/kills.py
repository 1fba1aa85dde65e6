"""Kill a discovery at any moment: nothing is lost, and `--resume` ends with the same graph."""

import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soak.runs import IDENTICAL, RESULTS, contents, discover, make_data, start
from soak.tally import Tally


@dataclass(frozen=True)
class Reference:
    """An uninterrupted run: its results, those of another seed, and how long it took."""

    data: Path
    method: str
    results: dict[str, bytes]
    older: Path
    seconds: float
    seconds_writing: float


def kill_and_resume(method: str, folder: Path, rounds: int, seed: int = 0) -> Tally:
    """Kill `rounds` runs, every third while it writes; go on with each until it is through.

    A run that was through before it could be killed is tried, too, but is not one of them.
    """
    reference = _reference(method, folder / method)
    rng = random.Random(seed)
    tally = Tally(f"kill, {method}")
    while tally.rounds - tally.met["finished"] < rounds:
        number = tally.rounds
        out = folder / method / f"killed-{number}"
        if rng.random() < 0.5:
            shutil.copytree(reference.older, out)
        met = _killed(reference, out, rng, while_writing=number % 3 == 0)
        failure = _half_written(reference, out)
        if rng.random() < 0.3:
            _killed(reference, out, rng, resume=True)
            failure = failure or _half_written(reference, out)
        failure = failure or _resumed(reference, out)
        tally.add(met, failure and f"{method}, round {number}, killed while {met}: {failure}")
        if not failure:
            shutil.rmtree(out)
    return tally


def _reference(method: str, folder: Path) -> Reference:
    data, out, older = make_data(folder), folder / "whole", folder / "older"
    start(discover(data, older, method, "--seed", 1)).finished()
    began = time.monotonic()
    run = start(discover(data, out, method))
    _wait(lambda: _writes(out) or not run.process.is_alive())
    writing = time.monotonic()
    code, said = run.finished()
    assert code == 0, said
    ended = time.monotonic()
    return Reference(data, method, contents(out), older, ended - began, ended - writing)


def _killed(
    reference: Reference,
    out: Path,
    rng: random.Random,
    *,
    while_writing: bool = False,
    resume: bool = False,
) -> str:
    """Start a run, kill it at a random moment, and say what it was at."""
    words = discover(reference.data, out, reference.method, *["--resume"] * resume)
    run = start(words)
    if while_writing:
        _wait(lambda: _writes(out) or not run.process.is_alive())
        time.sleep(rng.uniform(0, reference.seconds_writing))
    else:
        time.sleep(rng.uniform(0, reference.seconds))
    run.kill()
    if run.process.exitcode == 0:
        return "finished"
    if _writes(out):
        return "writing"
    return "training" if (out / "checkpoint.safetensors").exists() else "starting"


def _half_written(reference: Reference, out: Path) -> str | None:
    """Name a result that is neither the old one nor the new one."""
    from causalformer import CausalFormer

    older = contents(reference.older)
    for name in IDENTICAL:
        path = out / name
        if path.exists() and path.read_bytes() not in (older[name], reference.results[name]):
            return f"{name} is neither the old one nor the new one"
    if (out / "run.json").exists():
        json.loads((out / "run.json").read_text())
    if (out / "model" / "model.json").exists():
        CausalFormer.load(out / "model")
    return None


def _resumed(reference: Reference, out: Path) -> str | None:
    """Go on, and name what differs from an uninterrupted run."""
    code, said = start(discover(reference.data, out, reference.method, "--resume")).finished()
    if code != 0:
        return f"exit code {code}: {said}"
    found = contents(out)
    names = {Path(name).parts[0] for name in found}
    if names != RESULTS or set(found) != set(reference.results):
        return f"the folder holds {sorted(found)}"
    different = [name for name in IDENTICAL if found[name] != reference.results[name]]
    return f"{different} differ from an uninterrupted run" if different else None


def _writes(out: Path) -> bool:
    return any(out.glob(".unfinished-*"))


def _wait(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(0.005)
