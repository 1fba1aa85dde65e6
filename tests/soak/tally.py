"""What a loop has to tell: how often it ran, what it met, what went wrong."""

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts of one loop; `met` says what the rounds came across."""

    part: str
    rounds: int = 0
    met: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def add(self, met: str, failure: str | None = None) -> None:
        self.rounds += 1
        self.met[met] += 1
        if failure:
            self.failures.append(failure)
        self.seconds = time.monotonic() - self.began

    def __str__(self) -> str:
        met = ", ".join(f"{name} {count}" for name, count in sorted(self.met.items()))
        counts = f"{self.rounds:6} rounds  {len(self.failures):3} failures  {self.seconds:7.1f} s"
        return f"{self.part:24} {counts}  {met}"
