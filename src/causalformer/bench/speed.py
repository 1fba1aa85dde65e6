"""Whole discoveries on one core, against the published implementation or a limit in seconds.

``python -m causalformer.bench.speed --data FOLDER --out benchmarks/speed`` reads, trains with the
paper's settings and epochs, explains and builds the graph. It states the arithmetic of a training
step (multiplications needed, share of the machine's peak reached) and measures the memory of one
(see `causalformer.bench.memory`). The exit code is 1 if a target is missed.
"""

import argparse
import csv
import io
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from causalformer.bench.environment import write_environment
from causalformer.bench.memory import MemoryUse, measure_in_new_process
from causalformer.bench.memory import describe as describe_memory
from causalformer.bench.methods import PRESET_OF_FOLDER
from causalformer.bench.tables import markdown
from causalformer.bench.timing import one_thread, warm_up
from causalformer.config import DEFAULT, PRESETS, Settings
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
    _paper("lorenz96", "timeseries0", 726.0, 10.0),
    _paper("v_structure", "data_0", 450.0, 10.0),
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
        """Return one row of ``results.csv``."""
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


@dataclass(frozen=True)
class Arithmetic:
    """What a training step of a preset has to compute, and how fast it does.

    `multiplications` are those of the products in the forward pass, `literal` those of the layers
    as the paper writes them. The backward pass has twice as many.
    """

    preset: str
    n_series: int
    multiplications: int
    literal: int
    milliseconds: float
    peak_gflops: float

    @property
    def gflops(self) -> float:
        """Operations per second in 10⁹: a multiplication and an addition, forwards and back."""
        return 6 * self.multiplications / self.milliseconds / 1e6

    def to_row(self) -> dict[str, object]:
        """Return one line of the table."""
        return {
            "preset": self.preset,
            "N": self.n_series,
            "10⁶ multiplications, forward": round(self.multiplications / 1e6, 1),
            "as written in the paper": round(self.literal / 1e6, 1),
            "ms per step": round(self.milliseconds, 2),
            "GFLOP/s": round(self.gflops, 1),
            "share of peak": f"{self.gflops / self.peak_gflops:.1%}",
        }


def multiplications(settings: Settings, n_series: int) -> tuple[int, int]:
    """Count the multiplications of a forward pass: ours, and layer by layer as written.

    Examples
    --------
    >>> ours, literal = multiplications(PRESETS["paper-lorenz96"], 10)
    >>> literal // ours
    16
    """
    b, n, h, d = settings.batch_size, n_series, settings.n_heads, settings.d_model
    t, width = settings.window, settings.window + 2
    form = 2 * width * d * d + 2 * width * width * d
    logits = b * n * h * width * (width + n)
    convolution = b * n * n * t * (h + t)
    embedding = b * n * t * d + 2 * b * n * d * d + b * n * n * d
    per_head = b * h * n * n * t * (t + 1)
    feed_forward = 2 * b * n * t * settings.d_ffn
    return form + logits + convolution, embedding + per_head + feed_forward


def measure_step(preset: str, n_series: int, n_steps: int = 30) -> Arithmetic:
    """Time training steps on one core, and the product of two large matrices beside them."""
    import torch

    from causalformer.devices import fast_small_steps
    from causalformer.model import CausalityAwareTransformer
    from causalformer.model.loss import penalised_loss
    from causalformer.training import Adam

    settings = PRESETS[preset]
    generator = torch.Generator().manual_seed(0)
    model = CausalityAwareTransformer(n_series, settings, generator)
    x = 0.5 + 0.5 * torch.rand(settings.batch_size, n_series, settings.window, generator=generator)
    optimizer = Adam(model.parameters(), amsgrad=True, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        penalised_loss(model, x, settings.l1_kernel, settings.l1_mask).backward()
        optimizer.step()

    square = torch.rand(1024, 1024, generator=generator)
    with one_thread(), fast_small_steps(torch.device("cpu"), n_series):
        seconds = _least_seconds(step, n_steps)
        peak = 2 * 1024**3 / _least_seconds(lambda: square @ square, 5) / 1e9
    needed, literal = multiplications(settings, n_series)
    return Arithmetic(preset, n_series, needed, literal, 1e3 * seconds, peak)


def _least_seconds(work: Callable[[], object], times: int) -> float:
    """Give the shortest of several times: the others were disturbed."""
    work()
    least = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - started)
    return least


def speed_markdown(timings: list[Timing], steps: list[Arithmetic], memory: MemoryUse) -> str:
    """Give everything that was measured as a Markdown document."""
    import pandas as pd

    lines = ["# Whole discoveries on one core\n"]
    lines.append(markdown(pd.DataFrame([timing.to_dict() for timing in timings])))
    lines.append("## The arithmetic of a training step\n")
    lines.append(markdown(pd.DataFrame([step.to_row() for step in steps])))
    lines.append(
        "A step computes forwards and back: six operations per multiplication of the forward pass. "
        f"Peak is the product of two 1024 × 1024 matrices, {steps[0].peak_gflops:.0f} GFLOP/s on "
        "this core. The products are small, so most of a step is the calling of some hundred "
        "operations and Adam's pass over the weights, not arithmetic.\n"
    )
    lines.append(f"Memory: {describe_memory(memory)}.\n")
    return "\n".join(lines)


STEPS: Final = (("paper-lorenz96", 10), ("paper-v-fork", 3), ("paper-fmri", 5))
"""Presets and numbers of series whose step is taken apart."""


def main() -> int:
    """Measure, print, write, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data folders")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        timings = []
        for target in TARGETS:
            timings.append(measure(target, options.data, options.seed))
            print(describe(timings[-1]), flush=True)
        steps = [measure_step(preset, n_series) for preset, n_series in STEPS]
        memory = measure_in_new_process()
        print(describe_memory(memory))
        write_text(options.out / "results.csv", _csv_text(timings))
        write_text(options.out / "table.md", speed_markdown(timings, steps, memory))
        write_environment(
            options.out / "environment.json",
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
