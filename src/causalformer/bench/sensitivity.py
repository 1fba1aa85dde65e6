"""How much depends on every number that decides, if it is half or twice as large.

``python -m causalformer.bench.sensitivity --out benchmarks/sensitivity`` fits about twenty drawn
systems, one of every fourth family of the violations suite and some more, with each number of
`causalformer.policy`, and each setting of the default that decides, at half and at twice its
value, and compares the graphs with those as it is. ``--quick`` takes every second of the systems. A
probability that would pass 1 is brought half of the way there. Finished numbers are kept in
``results.csv``; the same command goes on behind them.
"""

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from causalformer.bench.environment import write_environment
from causalformer.bench.timing import one_thread
from causalformer.bench.violations import claims, drawn_violation
from causalformer.config import DetectorSettings
from causalformer.datasets import VIOLATIONS, Generated
from causalformer.files import write_text
from causalformer.policy import numbers, varied

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED: Final = 74_000
SETTINGS: Final = (
    *("n_channels", "n_folds", "max_epochs", "learning_rate", "ridge", "ridge_slots", "lag_power"),
    *("removed_share", "min_effect", "screen_above", "max_candidates"),
)
"""The settings of the default that decide."""

_ALWAYS = ("none", "hidden-driver", "season", "lorenz96", "brief", "null-noise", "null-walks")
TIMES: Final = (0.5, 2.0)
_QUICK = 2


@dataclass(frozen=True)
class Outcome:
    """The graph of one system with one number changed, beside the graph as it is."""

    number: str
    value: float
    times: float
    family: str
    strength: int
    seed: int
    f1: float
    false_share: float
    edges_changed: int
    warnings_changed: int


@dataclass(frozen=True)
class System:
    """A drawn system."""

    family: str
    strength: int
    seed: int

    @property
    def drawn(self) -> Generated:
        """The series and the truth."""
        return drawn_violation(self.family, self.strength, random_state=self.seed)


def systems(*, quick: bool = False) -> list[System]:
    """List a system of every fourth family, of those without links, of many series, and short.

    Examples
    --------
    >>> len(systems()), systems(quick=True)[0]
    (23, System(family='none', strength=0, seed=74000))
    """
    families = [name for name, violation in VIOLATIONS.items() if not violation.large]
    some = [
        System(name, 0 if name == "none" else (2, 4)[number % 2], FIRST_SEED + number)
        for number, name in enumerate(families)
        if number % 4 == 3 or name in _ALWAYS
    ]
    return some[::_QUICK] if quick else some


def values() -> dict[str, float]:
    """Give every number that decides: those of the policy, and the settings of the default."""
    settings = DetectorSettings()
    return {
        **{name: value for name, (value, _, _) in numbers().items()},
        **{name: getattr(settings, name) for name in SETTINGS},
    }


def changed(name: str, times: float) -> float:
    """Give a number at half or at twice its value, whole numbers whole, probabilities below one.

    Examples
    --------
    >>> changed("level", 2.0), changed("claim", 2.0), changed("least_driven", 0.5)
    (0.1, 0.975, 2)
    """
    value = values()[name]
    new = value * times
    if isinstance(value, int):
        return max(int(new), 2 if name == "n_folds" else 1)
    return (1.0 + value) / 2 if value < 1.0 <= new and name not in _BEYOND_ONE else new


_BEYOND_ONE = ("level_shift",)


@contextmanager
def _trained_once() -> Iterator[None]:
    """Train a network once for all graphs that differ only in what is made of it."""
    from causalformer.detect import blocks, calibrated, networks

    known: dict[str, tuple[dict[str, Any], Any]] = {}
    train, users = networks.train_network, (blocks, calibrated)

    def trained(model: Any, samples: Any, settings: Any, allowed: Any, rng: Any, *more: Any) -> Any:
        key = sha256(repr(settings).encode() + allowed.tobytes() + samples.fold.tobytes())
        for part in (samples.past, samples.now, samples.observed, rng.get_state()):
            key.update(part.contiguous().numpy().tobytes())
        name = key.hexdigest()
        if name not in known:
            history = train(model, samples, settings, allowed, rng, *more)
            known[name] = deepcopy(model.state_dict()), history
        model.load_state_dict(known[name][0])
        return known[name][1]

    for module in users:
        setattr(module, "train_network", trained)  # noqa: B010 - not one of its exported names
    try:
        yield
    finally:
        for module in users:
            setattr(module, "train_network", train)  # noqa: B010


@dataclass(frozen=True)
class _Found:
    f1: float
    false_share: float
    edges: frozenset[tuple[object, ...]]
    warnings: frozenset[str]


def _fit(system: System, name: str | None, value: float) -> _Found:
    """Fit a system with a number changed."""
    from causalformer.errors import DataWarning
    from causalformer.estimator import CausalFormer

    of_policy = name in numbers()
    settings: Mapping[str, float] = {} if name is None or of_policy else {name: value}
    made = system.drawn
    changes = varied(**{name: value}) if name and of_policy else nullcontext()
    with changes, one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        lags = VIOLATIONS[system.family].max_lag
        model = CausalFormer(max_lag=lags, settings=settings, device="cpu").fit(made.series)
    claimed = claims(model.graph_, made.truth)
    edges = (
        (e.cause, e.effect, e.lag, e.oriented, bool(e.may_be_confounded)) for e in model.graph_
    )
    said = frozenset(model.diagnostics_.warnings)
    return _Found(claimed.f1, claimed.false_share, frozenset(edges), said)


@cache
def _as_it_is(system: System) -> _Found:
    return _fit(system, None, 0.0)


def run(name: str, chosen: Iterable[System]) -> list[Outcome]:
    """Fit systems with one number at half and at twice."""
    outcomes = []
    for system in chosen:
        before = _as_it_is(system)
        for times in TIMES:
            value = changed(name, times)
            found = _fit(system, name, value)
            outcomes.append(
                Outcome(
                    name,
                    value,
                    times,
                    system.family,
                    system.strength,
                    system.seed,
                    found.f1,
                    found.false_share,
                    len(found.edges ^ before.edges),
                    len(found.warnings ^ before.warnings),
                )
            )
    return outcomes


def table_of(frame: "pd.DataFrame") -> str:
    """Give a row per number: F1, false share and edges changed at half and at twice."""
    as_it_is = frame[frame["number"] == AS_IT_IS]
    rows = []
    for name in dict.fromkeys(frame["number"]):
        if name == AS_IT_IS:
            continue
        row: dict[str, object] = {"number": f"`{name}`", "value": f"{values()[name]:g}"}
        for times, label in zip(TIMES, ("half", "twice"), strict=True):
            some = frame[(frame["number"] == name) & (frame["times"] == times)]
            row[label] = f"{some['value'].iloc[0]:g}"
            row[f"F1, {label}"] = f"{some['f1'].mean():.3f}"
            row[f"false, {label}"] = f"{some['false_share'].mean():.3f}"
            row[f"edges, {label}"] = int(some["edges_changed"].sum())
            row[f"warnings, {label}"] = int(some["warnings_changed"].sum())
        rows.append(row)
    columns = list(rows[0]) if rows else ["number"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row[c]) for c in columns) + " |" for row in rows]
    still = [
        str(row["number"])
        for row in rows
        if not any(row[f"{what}, {label}"] for what in ("edges", "warnings") for label in _LABELS)
    ]
    note = (
        f"As it is: F1 {as_it_is['f1'].mean():.3f}, share of false edges "
        f"{as_it_is['false_share'].mean():.3f}, mean of {len(as_it_is)} systems. Edges and "
        "warnings are those that are in one of the two graphs only. "
    )
    note += f"Nothing changes with {', '.join(still)}." if still else "Every number changes some."
    return "\n".join(["# Numbers at half and at twice", "", note, "", *lines, ""])


AS_IT_IS: Final = "as it is"
_LABELS: Final = ("half", "twice")


def main() -> None:
    """Vary every number and write the results."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="every second system")
    parser.add_argument("--number", action="append", help="only this one; may be repeated")
    options = parser.parse_args()
    chosen = systems(quick=options.quick)
    path = options.out / "results.csv"
    frame = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["number"])
    done = set(frame["number"])
    left = [name for name in [AS_IT_IS, *(options.number or values())] if name not in done]
    command = ["python", "-m", "causalformer.bench.sensitivity", *sys.argv[1:]]
    with _trained_once():
        for name in left:
            outcomes = _reference(chosen) if name == AS_IT_IS else run(name, chosen)
            new = pd.DataFrame([asdict(outcome) for outcome in outcomes])
            frame = new if frame.empty else pd.concat([frame, new], ignore_index=True)
            write_text(path, frame.to_csv(index=False))
            write_text(options.out / "table.md", table_of(frame))
            write_environment(options.out / "environment.json", command)
            print(name, flush=True)


def _reference(chosen: Iterable[System]) -> list[Outcome]:
    """Give the outcomes with no number changed."""
    rows = []
    for system in chosen:
        found = _as_it_is(system)
        place = system.family, system.strength, system.seed
        rows.append(Outcome(AS_IT_IS, 0.0, 1.0, *place, found.f1, found.false_share, 0, 0))
    return rows


if __name__ == "__main__":
    main()
