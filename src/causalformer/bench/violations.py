"""The suite of violated assumptions: which systems, and what a graph claims of each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from causalformer.bench.drawn import Drawn, DrawnFile
from causalformer.bench.methods import CORRECTED, REFERENCES
from causalformer.bench.runner import BenchPlan
from causalformer.config import DEFAULT
from causalformer.datasets import VIOLATIONS, Generated, make_violation
from causalformer.datasets.violations import STRENGTHS
from causalformer.errors import SettingsError
from causalformer.graph import CausalGraph

if TYPE_CHECKING:
    import pandas as pd

PEERS: Final = (
    *("self-loops", "var", "pcmci", "pcmci-plus", "varlingam", "var-lasso", "var-ridge"),
)
"""What the default is compared with; those of `CORRECTED` at two levels."""

SEED_SETS: Final[Mapping[str, int]] = MappingProxyType({"choose": 70_000, "report": 90_000})
"""The first seed of the systems that settings may be chosen on, and of those to report."""

_N_SYSTEMS = 6
_N_LARGE = 2
_QUICK_STRENGTHS = (0, 2, 4)
_AS_IT_IS = "units"  # the one family that is about standardising
_FILE = re.compile(r"strength-(\d+)_seed-(\d+)")


def violations_suite(
    data: str | Path | None,  # noqa: ARG001 - every suite has the same form
    methods: Sequence[str],
    *,
    quick: bool,
    seeds: str = "choose",
    families: Sequence[str] = (),
) -> list[BenchPlan]:
    """Compare on systems that violate assumptions, from not at all to severely.

    Every method looks at the same number of lags: the largest true one, and one more. Tests run
    at two levels (see `causalformer.bench.methods.CORRECTED`). PCMCI and PCMCI+ would take hours
    on the large systems and are left out there. Quick leaves out the large systems, and takes one
    system of each family, not the same one for all, at three strengths. `families` are names of
    families or groups, all unless given.

    Examples
    --------
    >>> small, large = violations_suite(None, ["default", "var"], quick=False)
    >>> small.all_methods, [item.name for item in large.folders]
    (('self-loops', 'var', 'var@bh', 'default'), ['dense', 'market'])
    """
    if seeds not in SEED_SETS:
        raise SettingsError(f"no seeds are called {seeds!r}; choose among {', '.join(SEED_SETS)}")
    wanted = [m for name in methods for m in ((*PEERS, DEFAULT) if name == "all" else (name,))]
    levels = {name: corrected for corrected, name in CORRECTED.items()}
    chosen = dict.fromkeys(m for name in (*REFERENCES, *wanted) for m in (name, levels.get(name)))
    names = tuple(name for name in chosen if name)
    known = {*VIOLATIONS, *(violation.group for violation in VIOLATIONS.values())}
    unknown = [name for name in families if name not in known]
    if unknown:
        raise SettingsError(
            f"no family or group is called {unknown[0]!r}; choose among {', '.join(sorted(known))}"
        )
    sets = [
        _drawn(family, number, SEED_SETS[seeds], quick)
        for number, (family, violation) in enumerate(VIOLATIONS.items())
        if not families or family in families or violation.group in families
    ]
    small = [item for item in sets if not VIOLATIONS[item.name].large]
    large = [] if quick else [item for item in sets if VIOLATIONS[item.name].large]
    fast = tuple(name for name in names if not name.startswith("pcmci"))
    return [BenchPlan(small, names), BenchPlan(large, fast)]


def _drawn(family: str, number: int, first_seed: int, quick: bool) -> Drawn:
    """List the systems of a family; strength 0 of the base system is a family of its own."""
    violation = VIOLATIONS[family]
    strengths = list(_QUICK_STRENGTHS if quick else STRENGTHS)
    if family == "none":
        strengths = strengths[:1]
    elif violation.from_base:
        strengths = strengths[1:]
    systems = range(_N_LARGE if violation.large else _N_SYSTEMS)
    if quick:
        systems = systems[:2] if family == "none" else systems[number % len(systems) :][:1]
    files = [
        DrawnFile(
            f"strength-{strength}_seed-{seed}",
            partial(drawn_violation, family, strength, random_state=seed),
        )
        for strength in strengths
        for seed in (first_seed + system for system in systems)
    ]
    return Drawn(family, tuple(files), violation.max_lag)


def drawn_violation(family: str, strength: int, *, random_state: int) -> Generated:
    """Draw a system with standardised series; those about standardising stay as they are.

    Examples
    --------
    >>> made = drawn_violation("trend", 4, random_state=0)
    >>> bool(np.allclose(made.series.values.std(axis=0), 1.0))
    True
    """
    made = make_violation(family, strength, random_state=random_state)
    if family == _AS_IT_IS:
        return made
    x = made.series.values
    standard = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
    return Generated(replace(made.series, values=standard), made.truth)


# ------------------------------------------------------------------ what a graph claims


@dataclass(frozen=True)
class Claims:
    """What a graph says of links between two series, and how much of it is right.

    A contemporaneous link without a direction is one claim, right if the truth links the pair
    either way.

    Attributes
    ----------
    n_true : int
        Ordered pairs that are linked.
    n_claimed, n_right : int
        Claimed pairs, and the right ones among them.
    n_directed, n_directed_right : int
        Claimed directions at lag 0, and those that are directions of the truth at lag 0.
    """

    n_true: int
    n_claimed: int
    n_right: int
    n_directed: int
    n_directed_right: int

    @property
    def f1(self) -> float:
        """Twice the right ones over all claimed and all true ones; 1 for nothing of nothing."""
        both = self.n_claimed + self.n_true
        return 2 * self.n_right / both if both else 1.0

    @property
    def false_share(self) -> float:
        """The false ones among the claimed; 0 of none."""
        return 1.0 - self.n_right / self.n_claimed if self.n_claimed else 0.0


def claims(graph: CausalGraph, truth: CausalGraph) -> Claims:
    """Compare the links between two series, unordered where the direction is open.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> truth = CausalGraph(("a", "b", "c"), (Edge("a", "b", 0), Edge("b", "c", 1)))
    >>> graph = CausalGraph(truth.names, (Edge("b", "a", 0, oriented=False), Edge("a", "c", 1)))
    >>> claims(graph, truth)
    Claims(n_true=2, n_claimed=2, n_right=1, n_directed=0, n_directed_right=0)
    """
    true = {(e.cause, e.effect) for e in truth if e.cause != e.effect}
    true_within = {(e.cause, e.effect) for e in truth if e.lag == 0}
    between = [e for e in graph if e.cause != e.effect]
    directed = {(e.cause, e.effect) for e in between if e.lag or e.oriented}
    within = [(e.cause, e.effect) for e in between if e.lag == 0 and e.oriented]
    either = {frozenset((e.cause, e.effect)) for e in between if not (e.lag or e.oriented)}
    either -= {frozenset(pair) for pair in directed}
    linked = {frozenset(pair) for pair in true}
    return Claims(
        n_true=len(true),
        n_claimed=len(directed) + len(either),
        n_right=len(directed & true) + len(either & linked),
        n_directed=len(within),
        n_directed_right=sum(pair in true_within for pair in within),
    )


def outcomes(results: "pd.DataFrame", out: str | Path) -> "pd.DataFrame":
    """Give a row per family, strength, seed and method: areas, claims, warnings, seconds.

    A method that failed, for want of rows, say, claims nothing: its F1 is 0, its ranking that of
    chance.

    Parameters
    ----------
    results : DataFrame
        What `causalformer.bench.run_bench` returns.
    out : str or Path
        The folder of the benchmark, with the graphs.
    """
    import pandas as pd

    rows = []
    for row in results[results["folder"].isin(VIOLATIONS)].to_dict("records"):
        family, method = str(row["folder"]), str(row["method"])
        named = _FILE.fullmatch(str(row["file"]))
        if named is None:
            continue
        strength, seed = map(int, named.groups())
        truth = _truth(family, strength, seed)
        graph = CausalGraph(truth.names)
        if not row["error"]:
            suffix = "" if np.isnan(row["seed"]) else f"-seed{int(row['seed'])}"
            place = Path(out) / "graphs" / family / str(row["file"])
            graph = CausalGraph.load(place / f"{method}{suffix}.json")
        claimed = claims(graph, truth)
        chance = claimed.n_true / (len(truth.names) * (len(truth.names) - 1))
        rows.append(
            {
                "group": VIOLATIONS[family].group,
                "family": family,
                "strength": strength,
                "seed": seed,
                "method": method,
                "f1": claimed.f1,
                "auroc": 0.5 if row["error"] else row["off_diagonal_auroc"],
                "auprc": chance if row["error"] else row["off_diagonal_auprc"],
                "false_share": claimed.false_share,
                **asdict(claimed),
                "seconds": row["seconds"],
                "warning": row["warning"],
                "error": row["error"],
            }
        )
    return pd.DataFrame(rows)


@lru_cache(maxsize=64)
def _truth(family: str, strength: int, seed: int) -> CausalGraph:
    return make_violation(family, strength, random_state=seed).truth
