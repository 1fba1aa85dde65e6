"""Run every loop for long: `python -m soak`, from the folder `tests`."""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from soak.disk import full_disk, locked_folder
from soak.frames import frame_readers
from soak.fuzz import fuzz, readers
from soak.kills import kill_and_resume
from soak.runs import METHODS
from soak.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25, help="kills and full disks per method")
    parser.add_argument("--examples", type=int, default=1000, help="contents per reader")
    parser.add_argument("--seconds", type=float, default=0, help="repeat with new seeds until then")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first repetition")
    options = parser.parse_args()
    began, failures = time.monotonic(), []
    for seed in itertools.count(options.seed):
        with tempfile.TemporaryDirectory() as folder:
            for tally in _once(Path(folder), options.rounds, options.examples, seed):
                print(tally, flush=True)
                failures += tally.failures
        if failures or time.monotonic() - began >= options.seconds:
            break
    print(*failures, sep="\n")
    print(f"{len(failures)} failures, seeds {options.seed} to {seed}, ", end="")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if failures else 0


def _once(folder: Path, rounds: int, examples: int, seed: int) -> Iterator[Tally]:
    for method in METHODS:
        yield kill_and_resume(method, folder / "kills", rounds, seed)
        yield full_disk(method, folder / "disk" / method, rounds, seed)
        yield locked_folder(method)
    for number, reader in enumerate([*readers(folder / "valid"), *frame_readers()]):
        yield fuzz(reader, folder / "fuzz" / str(number), examples, seed)


if __name__ == "__main__":
    sys.exit(main())
