"""How much memory one training step takes on a large grid of series.

``python -m causalformer.bench.memory`` takes one step with N = 260 series, the window of 32 slots
and the 8 heads of the preset ``paper-sst``, batch 32, and prints the highest resident memory of the
whole process, libraries included. It must be a process of its own for that.
"""

import argparse
import json
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

LIMIT_GB = 4.0


@dataclass(frozen=True)
class MemoryUse:
    """The peak of one process, and the size of the step that caused it."""

    n_series: int
    window: int
    n_heads: int
    batch_size: int
    peak_gb: float
    limit_gb: float = LIMIT_GB

    @property
    def passed(self) -> bool:
        """Whether the peak stays below the limit."""
        return self.peak_gb < self.limit_gb


def measure_step(n_series: int = 260, preset: str = "paper-sst") -> MemoryUse:
    """Take one training step in this process and read its peak.

    Everything that the process did before counts, too; see `measure_in_new_process`.
    """
    import torch

    from causalformer.config import PRESETS
    from causalformer.model import CausalityAwareTransformer
    from causalformer.model.loss import penalised_loss

    settings = PRESETS[preset]
    generator = torch.Generator().manual_seed(0)
    model = CausalityAwareTransformer(n_series, settings, generator)
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True, fused=True)
    x = torch.rand(settings.batch_size, n_series, settings.window, generator=generator)
    penalised_loss(model, x, settings.l1_kernel, settings.l1_mask).backward()
    optimizer.step()
    return MemoryUse(
        n_series, settings.window, settings.n_heads, settings.batch_size, round(peak_gb(), 3)
    )


def measure_in_new_process(n_series: int = 260) -> MemoryUse:
    """Run `measure_step` in a fresh interpreter."""
    command = [sys.executable, "-m", __name__, "--json", "--n-series", str(n_series)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return MemoryUse(**json.loads(done.stdout))


def forget_peak() -> None:
    """Let `peak_gb` count from now on, where the system can (Linux); what is loaded stays in it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_gb() -> float:
    """Return the highest resident memory of this process so far, in GB (10⁹ bytes).

    On Linux from ``/proc``: what ``getrusage`` says includes the parent process at the time of the
    fork.
    """
    peak = high_water_gb("self")
    if peak is not None:
        return peak
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == "darwin" else 1024) / 1e9


def high_water_gb(process: int | str) -> float | None:
    """Return the highest resident memory of any process so far in GB; None if nobody tells it."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 / 1e9 if found else None


def main() -> int:
    """Measure, print, and return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n-series", type=int, default=260)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    use = measure_step(options.n_series)
    if options.json:
        print(json.dumps(asdict(use)))
    else:
        print(describe(use))
    return 0 if use.passed or options.json else 1


def describe(use: MemoryUse) -> str:
    """Return one line about a measurement.

    Examples
    --------
    >>> describe(MemoryUse(260, 32, 8, 32, 1.25))
    'one training step (N = 260, T = 32, h = 8, batch 32): peak 1.25 GB, limit 4 GB: passed'
    """
    return (
        f"one training step (N = {use.n_series}, T = {use.window}, h = {use.n_heads}, "
        f"batch {use.batch_size}): peak {use.peak_gb:.2f} GB, limit {use.limit_gb:g} GB: "
        f"{'passed' if use.passed else 'MISSED'}"
    )


if __name__ == "__main__":
    sys.exit(main())
