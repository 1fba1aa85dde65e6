"""Disks that fill up and folders that cannot be written: old results stay as they were."""

import random
import resource
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from soak.runs import contents, discover, make_data, start
from soak.tally import Tally


def full_disk(method: str, folder: Path, rounds: int, seed: int = 0) -> Tally:
    """Rerun into a folder of results; from a random moment on no file may exceed a random size."""
    data, older = make_data(folder), folder / "older"
    began = time.monotonic()
    start(discover(data, older, method, "--seed", 1)).finished()
    seconds = time.monotonic() - began
    before = contents(older)
    sizes = sorted(map(len, before.values()))
    rng = random.Random(seed)
    tally = Tally(f"full disk, {method}")
    for number in range(rounds):
        out = folder / f"full-{number}"
        shutil.copytree(older, out)
        limit = rng.randrange(sizes[rng.randrange(len(sizes))] + 1)
        run = start(discover(data, out, method, "--quiet"))
        time.sleep(rng.uniform(0, seconds))
        with suppress(ProcessLookupError):
            resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        code, said = run.finished()
        failure = None if code == 0 else _refusal(code, said, contents(out), before)
        met = "no room for a checkpoint" if "checkpoint" in said else "no room for results"
        tally.add(met if code else "written in time", failure and f"limit {limit}: {failure}")
        shutil.rmtree(out)
    return tally


def locked_folder(method: str) -> Tally:
    """Rerun into a folder of results that may be read but not written."""
    tally = Tally(f"locked folder, {method}")
    folder = Path(tempfile.mkdtemp())  # not below pytest's own, which others may not enter
    try:
        folder.chmod(0o755)
        data, out = make_data(folder), folder / "locked"
        start(discover(data, out, method)).finished()
        before = contents(out)
        for place in (out, out / "model"):
            place.chmod(0o555)
        code, said = start(discover(data, out, method, "--seed", 1), as_nobody=True).finished()
        tally.add("refused" if code else "written", _refusal(code, said, contents(out), before))
    finally:
        for place in (folder / "locked", folder / "locked" / "model"):
            place.chmod(0o755)
        shutil.rmtree(folder)
    return tally


def _refusal(
    code: int | None, said: str, after: dict[str, bytes], before: dict[str, bytes]
) -> str | None:
    """Say what is wrong with a refusal: exit code 2, one line, everything as it was."""
    if code != 2 or said.count("\n") != 1 or not said.startswith("error: cannot write"):
        return f"exit code {code}: {said}"
    checkpoint = {"checkpoint.safetensors"}  # is kept on purpose: the run can go on
    changed = {name for name in after | before if after.get(name) != before.get(name)}
    return f"{sorted(changed)} changed" if changed - checkpoint else None
