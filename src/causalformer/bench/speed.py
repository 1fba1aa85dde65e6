"""Whole discoveries on one core, timed against the published implementation.

``python -m causalformer.bench.speed --data FOLDER --out benchmarks/speed.csv`` reads, trains with
the paper's settings and epochs, explains and builds the graph; then it measures the memory of one
training step (see `causalformer.bench.memory`). The exit code is 1 if a target is missed.
"""

import argparse
import csv
import io
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from causalformer.bench.environment import write_environment
from causalformer.bench.memory import describe as describe_memory
from causalformer.bench.memory import measure_in_new_process
from causalformer.bench.methods import PRESET_OF_FOLDER
from causalformer.bench.timing import one_thread, warm_up
from causalformer.errors import CausalFormerError
from causalformer.files import write_text


@dataclass(frozen=True)
class Target:
    """A file, the seconds of the published implementation on it, and the factor to beat it by.

    The published implementation was timed on one core of the same kind of machine.
    """

    folder: str
    file: str
    published_seconds: float
    factor: float


TARGETS: Final = (
    Target("lorenz96", "timeseries0", 726.0, 30.0),
    Target("v_structure", "data_0", 450.0, 30.0),
    Target("fmri", "timeseries15", 25.0, 10.0),
)


@dataclass(frozen=True)
class Timing:
    """How long one whole discovery took.

    Examples
    --------
    >>> timing = Timing(TARGETS[2], seconds=2.0, epochs=100)
    >>> timing.speed_up, timing.passed
    (12.5, True)
    """

    target: Target
    seconds: float
    epochs: int

    @property
    def speed_up(self) -> float:
        """How many times faster than the published implementation."""
        return self.target.published_seconds / self.seconds

    @property
    def passed(self) -> bool:
        """Whether the target was reached."""
        return self.speed_up >= self.target.factor

    def to_dict(self) -> dict[str, object]:
        """Return one row of ``speed.csv``."""
        return {
            "folder": self.target.folder,
            "file": self.target.file,
            "preset": PRESET_OF_FOLDER[self.target.folder],
            "epochs": self.epochs,
            "seconds": round(self.seconds, 3),
            "published_seconds": self.target.published_seconds,
            "speed_up": round(self.speed_up, 1),
            "target": self.target.factor,
            "passed": self.passed,
        }


def measure(target: Target, data: Path, seed: int = 0) -> Timing:
    """Time one discovery, from the file to the graph, on one core.

    Raises
    ------
    DataError
        If the file is not there.
    """
    from causalformer.estimator import CausalFormer

    warm_up()
    model = CausalFormer(PRESET_OF_FOLDER[target.folder], random_state=seed, device="cpu")
    with one_thread():
        started = time.perf_counter()
        model.fit(data / target.folder / f"{target.file}.csv")
        seconds = time.perf_counter() - started
    return Timing(target, seconds, len(model.history_.epochs))


def describe(timing: Timing) -> str:
    """Return one line about a timing.

    Examples
    --------
    >>> describe(Timing(TARGETS[2], seconds=2.0, epochs=100))
    'fmri/timeseries15: 2.0 s for 100 epochs, published 25 s: 12.5 times faster, target 10: passed'
    """
    target = timing.target
    return (
        f"{target.folder}/{target.file}: {timing.seconds:.1f} s for {timing.epochs} epochs, "
        f"published {target.published_seconds:g} s: {timing.speed_up:.1f} times faster, "
        f"target {target.factor:g}: {'passed' if timing.passed else 'MISSED'}"
    )


def main() -> int:
    """Measure, print, write, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data folders")
    parser.add_argument("--out", type=Path, required=True, help="CSV file for the results")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        timings = []
        for target in TARGETS:
            timings.append(measure(target, options.data, options.seed))
            print(describe(timings[-1]), flush=True)
        memory = measure_in_new_process()
        print(describe_memory(memory))
        write_text(options.out, _csv_text(timings))
        write_environment(
            options.out.with_name(f"{options.out.stem}-environment.json"),
            ["python", "-m", "causalformer.bench.speed", *sys.argv[1:]],
            seed=options.seed,
            memory=asdict(memory),
        )
    except CausalFormerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if memory.passed and all(timing.passed for timing in timings) else 1


def _csv_text(timings: list[Timing]) -> str:
    rows = [timing.to_dict() for timing in timings]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


if __name__ == "__main__":
    sys.exit(main())
