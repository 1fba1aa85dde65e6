"""Whole discoveries on one core, against the published implementation or a limit in seconds.

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
from causalformer.config import DEFAULT
from causalformer.errors import CausalFormerError
from causalformer.files import write_text


@dataclass(frozen=True)
class Target:
    """A file, the method, and the seconds it may take at most.

    For the paper's presets that is a share of the seconds of the published implementation, which
    was timed on one core of the same kind of machine.
    """

    folder: str
    file: str
    preset: str
    most_seconds: float
    published_seconds: float | None = None


def _paper(folder: str, file: str, published_seconds: float, factor: float) -> Target:
    preset = PRESET_OF_FOLDER[folder]
    return Target(folder, file, preset, published_seconds / factor, published_seconds)


TARGETS: Final = (
    _paper("lorenz96", "timeseries0", 726.0, 30.0),
    _paper("v_structure", "data_0", 450.0, 30.0),
    _paper("fmri", "timeseries15", 25.0, 10.0),
    *(Target(f, "data_0", DEFAULT, 5.0) for f in ("diamond", "mediator", "v_structure", "fork")),
    Target("lorenz96", "timeseries0", DEFAULT, 5.0),
    Target("fmri", "timeseries15", DEFAULT, 3.0),
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
    def speed_up(self) -> float | None:
        """How many times faster than the published implementation, if that was timed."""
        published = self.target.published_seconds
        return None if published is None else published / self.seconds

    @property
    def passed(self) -> bool:
        """Whether the target was reached."""
        return self.seconds <= self.target.most_seconds

    def to_dict(self) -> dict[str, object]:
        """Return one row of ``speed.csv``."""
        return {
            "folder": self.target.folder,
            "file": self.target.file,
            "preset": self.target.preset,
            "epochs": self.epochs,
            "seconds": round(self.seconds, 3),
            "most_seconds": round(self.target.most_seconds, 3),
            "published_seconds": self.target.published_seconds,
            "speed_up": None if self.speed_up is None else round(self.speed_up, 1),
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
    model = CausalFormer(target.preset, random_state=seed, device="cpu")
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
    'fmri/timeseries15, paper-fmri: 2.0 s (at most 2.5 s), 12.5 times the published speed: passed'
    """
    target = timing.target
    faster = f", {timing.speed_up:.1f} times the published speed" if timing.speed_up else ""
    return (
        f"{target.folder}/{target.file}, {target.preset}: {timing.seconds:.1f} s (at most "
        f"{target.most_seconds:.1f} s){faster}: {'passed' if timing.passed else 'MISSED'}"
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
