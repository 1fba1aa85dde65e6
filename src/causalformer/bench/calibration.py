"""Do p-values of the default keep their promise? Pairs without an effect, in ten families.

``python -m causalformer.bench.calibration --out benchmarks/calibration`` draws systems of every
family, fits the default, and asks how many of the pairs that have no effect get a p-value below
.001, .01, .05 and .1. A p-value keeps its promise if these shares are no larger than the levels.

Which pairs have no effect is read off the true graph, in three classes, each within the one before:

no effect
    The cause's past foretells nothing of the effect beside everybody else's past: it has no edge
    to the effect, nor one to a series that acts on the effect within the slot. This is the
    hypothesis of the test. Of a descendant it holds only given the series in between.
no path
    No directed path leads from the cause to the effect either.
unrelated
    Nor do they have a common ancestor, nor does the effect act on the cause: it holds whatever
    else is given.

Links within a slot are judged likewise, by links within the slot alone, either way round.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.bench.environment import write_environment
from causalformer.bench.suites import drawn_system
from causalformer.bench.tables import markdown
from causalformer.bench.violations import SEED_SETS, claims
from causalformer.datasets import Generated, make_random_system, make_slot_system, make_violation
from causalformer.files import write_text
from causalformer.graph import CausalGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

LEVELS: Final = (0.001, 0.01, 0.05, 0.1)
MOST: Final = 1.3
"""How many times its level a share may be."""

CLASSES: Final = ("no effect", "no path", "unrelated")
"""Pairs whose p-values should be uniform, each class within the one before."""

TESTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "past": "what the past of the cause foretells, as edges are drawn by",
        "few terms": "the same by the test of few terms alone, before the network speaks",
        "within": "links within the slot",
    }
)

_QUICK = 2  # systems of each family
_REPEATS = 64
_MANY = 1.645  # standard errors
_FEWEST = 5  # pairs below a level, expected: of fewer the plot says nothing

Draw = Callable[..., Generated]


@dataclass(frozen=True)
class Family:
    """Systems of one kind, drawn in turn by several recipes.

    Parameters
    ----------
    about : str
        What they are.
    draw : tuple of callable
        Each takes a `random_state`.
    within : bool
        Whether series without a link within the slot have nothing in common within it.
    """

    about: str
    draw: tuple[Draw, ...]
    within: bool = True


def _violations(*drawn: tuple[str, int]) -> tuple[Draw, ...]:
    return tuple(partial(make_violation, name, strength) for name, strength in drawn)


_drawn = partial(make_random_system, 8, 500)

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "AR noise": Family(
            "8 series without edges, 500 slots, memory .2 to .95",
            (partial(_drawn, n_edges=0, memory=(0.2, 0.95)),),
        ),
        "beside true edges": Family(
            "8 series, 500 slots, 8 edges, straight or bent", (partial(_drawn, links="mixed"),)
        ),
        "shared noise": Family(
            "20 to 80 % of the innovations common to all, beside edges",
            _violations(*(("innovations-common", strength) for strength in (1, 2, 3, 4))),
            within=False,
        ),
        "volatility": Family(
            "a common volatility, .6 and 1.2, without edges and beside edges",
            _violations(
                *((f, s) for s in (2, 4) for f in ("null-volatility", "volatility-common"))
            ),
        ),
        "season": Family(
            "a common season, 1 and 4 deviations, without edges and beside edges",
            _violations(*((f, s) for s in (2, 4) for f in ("null-season", "season"))),
        ),
        "missing": Family(
            "20, 40 and 60 % of the values missing at random, beside edges and without edges",
            (
                *_violations(*(("missing-random", strength) for strength in (1, 2, 3))),
                *(partial(drawn_system, missing_share=k, n_edges=0) for k in (0.2, 0.4, 0.6)),
            ),
        ),
        "short": Family(
            "23 to 76 slots of 5 series, 60 to 100 of 6, beside edges",
            _violations(*((f, s) for s in (1, 2, 3, 4) for f in ("short", "brief"))),
        ),
        "dense": Family(
            "10 series with 2 causes each, and 20 with 4; 600 slots",
            _violations(("dense", 0), ("dense", 0), ("dense", 1)),
        ),
        "contemporaneous": Family(
            "6 series, links within the slot, in half of the systems lagged ones, too; 500 slots",
            tuple(
                partial(make_slot_system, law, 6, 500)
                for law in ("gaussian", "lagged-gaussian", "laplace", "lagged-laplace")
            ),
        ),
        "heavy tails": Family(
            "Student's noise with 5 degrees of freedom beside 8 edges, and shocks",
            (
                partial(_drawn, noise_law="student"),
                *_violations(("innovations-shocks", 2), ("innovations-shocks", 4)),
            ),
        ),
    }
)


# ------------------------------------------------------------------ which pairs have no effect


def related(truth: CausalGraph) -> dict[str, NDArray[np.str_]]:
    """Say how every pair ``[cause, effect]`` is related, for tests of the past and within the slot.

    It is "effect" or the last of `CLASSES` that the pair is in.

    Examples
    --------
    >>> from causalformer.graph import Edge
    >>> truth = CausalGraph(("a", "b", "c"), (Edge("a", "b", 1), Edge("b", "c", 1)))
    >>> related(truth)["past"].tolist()[0]
    ['effect', 'effect', 'no effect']
    """
    n = len(truth.names)
    place = {name: number for number, name in enumerate(truth.names)}
    lagged, within = np.zeros((2, n, n), dtype=bool)
    for edge in truth:
        (lagged if edge.lag else within)[place[edge.cause], place[edge.effect]] = True
    inside, anyhow = _reached(within), _reached(lagged | within)
    own = np.eye(n, dtype=bool)
    return {
        "past": _classes(own | (lagged @ inside), anyhow),
        "within": _classes(own | within | within.T, inside, inside | inside.T),
    }


def _reached(steps: BoolArray) -> BoolArray:
    """Say which series are reached from which, at once or in many steps, also from themselves."""
    one = (steps | np.eye(len(steps), dtype=bool)).astype(np.int64)
    for _ in range(len(steps).bit_length()):
        one = np.minimum(one @ one, 1)
    return one > 0


def _classes(
    effect: BoolArray, reached: BoolArray, path: BoolArray | None = None
) -> NDArray[np.str_]:
    common = (reached.astype(np.int64).T @ reached) > 0
    path = reached if path is None else path
    return np.select([effect, path, common], ["effect", *CLASSES[:2]], CLASSES[2])


# ------------------------------------------------------------------ p-values


@dataclass(frozen=True)
class Outcome:
    """The p-values of a system's pairs of one class by one test.

    Attributes
    ----------
    family, recipe, seed
        The system.
    test : str
        One of `TESTS`.
    related : str
        The last of `CLASSES` that the pairs are in.
    n_tested : int
        Of these pairs. The others have p = 1, as in the rate of false discoveries.
    p_values : str
        Separated by spaces.
    n_false : int
        False edges between series in the system's graph.
    seconds : float
        For the fit.
    """

    family: str
    recipe: int
    seed: int
    test: str
    related: str
    n_tested: int
    p_values: str
    n_false: int
    seconds: float


def run(family: str, recipe: int, seed: int) -> list[Outcome]:
    """Draw a system, fit the default, and give the p-values of pairs without an effect."""
    import time
    import warnings

    from causalformer.bench.timing import one_thread
    from causalformer.errors import DataWarning
    from causalformer.estimator import CausalFormer

    made = FAMILIES[family].draw[recipe](random_state=seed)
    model = CausalFormer(device="cpu")
    started = time.perf_counter()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model.fit(made.series)
    seconds = round(time.perf_counter() - started, 3)
    judged = claims(model.graph_, made.truth)
    n_false = judged.n_claimed - judged.n_right
    classes, scores, outcomes = related(made.truth), model.scores_, []
    once = np.triu(np.ones_like(scores["tested"]), 1)  # a link within a slot is tested once
    for test, p_value, tested, counts in (
        ("past", scores["p_value"], scores["tested"], once | once.T),
        ("few terms", scores["terms_p_value"], scores["tested"], once | once.T),
        ("within", scores["contemporaneous_p_value"], once, once & FAMILIES[family].within),
    ):
        how = classes["within" if test == "within" else "past"]
        for name in CLASSES:
            which = counts & (how == name)
            if not which.any():
                continue
            p_values = np.where(tested, p_value, 1.0)[which]
            text = " ".join(f"{p:.4g}" for p in p_values)
            n_tested = int(tested[which].sum())
            outcomes.append(
                Outcome(family, recipe, seed, test, name, n_tested, text, n_false, seconds)
            )
    return outcomes


# ------------------------------------------------------------------ what they show


@dataclass(frozen=True)
class Share:
    """The share of p-values below a level, and its standard error.

    Examples
    --------
    >>> half = [np.array([0.01, 0.3]), np.array([0.02, 0.9])]
    >>> share = Share.below(0.05, half)
    >>> share.value, share.ratio, round(share.error, 3)
    (0.5, 10.0, 0.109)
    """

    level: float
    value: float
    error: float

    @classmethod
    def below(cls, level: float, systems: list[FloatArray]) -> "Share":
        """Count over systems, which are the units: pairs of one depend on each other.

        The standard error is that of a ratio of sums over systems; by chance, say if there are no
        p-values so small, it may come out too small, so it is at least that of as many independent
        pairs at the level.
        """
        n = np.array([len(p) for p in systems], dtype=float)
        k = np.array([(p <= level).sum() for p in systems], dtype=float)
        value, total, many = k.sum() / n.sum(), n.sum(), len(systems)
        between = ((k - value * n) ** 2).sum() * many / max(many - 1, 1)
        error = np.sqrt(max(between / total**2, level * (1.0 - level) / total))
        return cls(level, float(value), float(error))

    @property
    def ratio(self) -> float:
        """How many times the level it is."""
        return self.value / self.level

    @property
    def too_large(self) -> bool:
        """Whether it is more than `MOST` times the level."""
        return self.ratio > MOST

    @property
    def beyond_chance(self) -> bool:
        """Whether it is beyond chance (one-sided, 5 %) more than `MOST` times the level."""
        return self.value - _MANY * self.error > MOST * self.level

    def __str__(self) -> str:
        """Give share, standard error, and ratio to the level; marked if it is too large."""
        digits = 4 if self.level < 0.01 else 3
        mark = "**" if self.beyond_chance else "*" if self.too_large else ""
        text = f"{self.value:.{digits}f} ± {self.error:.{digits}f}"
        return f"{text}, {mark}{self.ratio:.2f}{mark}"


def distance_above(p_values: FloatArray) -> float:
    """Give the largest distance of the distribution of p-values above the uniform one.

    The one-sided statistic of Kolmogorov and Smirnov: conservative p-values have a small one.

    Examples
    --------
    >>> distance_above(np.array([0.25, 0.5, 0.75, 1.0])), distance_above(np.array([0.1, 0.1]))
    (0.0, 0.9)
    """
    rank = np.arange(1, len(p_values) + 1) / len(p_values)
    return float(max((rank - np.sort(p_values)).max(), 0.0))


def systems_of(results: "pd.DataFrame", test: str, name: str) -> dict[str, list[FloatArray]]:
    """Give the p-values of every family's systems, of pairs in a class."""
    systems: dict[str, list[FloatArray]] = {}
    for (family, _), rows in _of(results, test, name).groupby(["family", "seed"], sort=False):
        text = " ".join(rows["p_values"].astype(str))
        systems.setdefault(str(family), []).append(np.array(text.split(), dtype=float))
    return {family: systems[family] for family in FAMILIES if family in systems}


def _of(results: "pd.DataFrame", test: str, name: str) -> "pd.DataFrame":
    classes = CLASSES[CLASSES.index(name) :]
    return results[(results["test"] == test) & results["related"].isin(classes)]


def summary(results: "pd.DataFrame", test: str, name: str) -> "pd.DataFrame":
    """Give a row per family, and one of all together, for one test and one class of pairs."""
    import pandas as pd

    by_family = systems_of(results, test, name)
    n_tested = _of(results, test, name).groupby("family")["n_tested"].sum().to_dict()
    by_family["all"] = [p_values for systems in by_family.values() for p_values in systems]
    n_tested["all"] = sum(n_tested.values())
    lines = []
    for family, systems in by_family.items():
        p_values = np.concatenate(systems)
        line: dict[str, object] = {
            "family": family,
            "systems": len(systems),
            "pairs": len(p_values),
            "tested": f"{n_tested[family] / len(p_values):.0%}",
        }
        line |= {f"below {level:g}": str(Share.below(level, systems)) for level in LEVELS}
        line["KS above"] = distance_above(p_values)
        lines.append(line)
    return pd.DataFrame(lines)


def excesses(results: "pd.DataFrame", test: str, name: str) -> tuple[list[str], list[str]]:
    """List families and levels whose share is too large: beyond chance, and perhaps by chance."""
    clear, perhaps = list[str](), list[str]()
    for family, systems in systems_of(results, test, name).items():
        for level in LEVELS:
            share = Share.below(level, systems)
            if share.too_large:
                which = clear if share.beyond_chance else perhaps
                which.append(f"{family} at {level:g} ({share.ratio:.2f})")
    return clear, perhaps


def table(results: "pd.DataFrame") -> str:
    """Sum up as Markdown: a table per test and class of pairs, and what is above the limit."""
    import pandas as pd

    graphs = results.drop_duplicates(["family", "seed"]).groupby("family", sort=False)
    lines = [
        {
            "family": family,
            "what": FAMILIES[str(family)].about,
            "systems": len(rows),
            "graphs with a false edge": float((rows["n_false"] > 0).mean()),
            "seconds": float(rows["seconds"].mean()),
        }
        for family, rows in graphs
    ]
    text = ["# p-values of pairs without an effect\n", markdown(pd.DataFrame(lines)), _NOTE]
    for test, about in TESTS.items():
        for name in CLASSES if test == "past" else CLASSES[:1]:
            if not systems_of(results, test, name):
                continue
            text.append(f"## {test}, {name}\n\n{about[0].upper()}{about[1:]}.\n")
            text.append(markdown(summary(results, test, name)))
            clear, perhaps = excesses(results, test, name)
            text.append(
                f"Above {MOST:g} times the level beyond chance: {', '.join(clear) or 'none'}; "
                f"within chance of it: {', '.join(perhaps) or 'none'}.\n"
            )
    return "\n".join(text)


_NOTE: Final = f"""\
Share of the p-values up to a level ± standard error (systems are the units), and how many times the
level it is: in italics above {MOST:g}, in bold above it beyond chance (one-sided, 5 %). *KS above*
is the largest distance of the distribution function above that of uniform p-values. Pairs that are
not tested have p = 1, as in the rate of false discoveries. *No effect* is the hypothesis of the
test: no edge, nor one to what acts on the effect within the slot. *No path*: no directed path from
cause to effect either. *Unrelated*: nor a common ancestor. A false edge is one of any lag.
"""


def ratios(results: "pd.DataFrame") -> "Figure":
    """Draw, over the level, how many times the level the share of p-values below it is."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = drawn.subplots(1, 2, sharey=True)
    _draw_ratios(left, systems_of(results, "past", CLASSES[0]), "what the past foretells")
    _draw_ratios(right, systems_of(results, "within", CLASSES[0]), "links within the slot")
    left.set_ylabel("share of p-values below it, over the level")
    drawn.legend(*left.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return drawn


def _draw_ratios(axes: "Axes", by_family: Mapping[str, list[FloatArray]], title: str) -> None:
    """Draw a line per family; it begins where a few pairs are expected below a level."""
    for family, systems in by_family.items():
        place = list(FAMILIES).index(family)
        p_values = np.sort(np.concatenate(systems))
        levels = np.geomspace(min(_FEWEST / len(p_values), 0.5), 1.0, 100)
        below = np.searchsorted(p_values, levels, side="right") / len(p_values)
        axes.plot(
            levels,
            np.maximum(below / levels, 0.05),
            _LINES[place // len(_COLOURS)],
            color=_COLOURS[place % len(_COLOURS)],
            label=family,
        )
    axes.axhline(1.0, color="black", linewidth=1)
    axes.axhline(MOST, color="black", linewidth=1, linestyle="dotted", label=f"limit, {MOST:g}")
    axes.set(xscale="log", yscale="log", ylim=(0.1, 5), xlabel="level", title=title)
    axes.grid(alpha=0.3)


_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")  # Okabe and Ito's
_LINES: Final = ("-", "--")


def jobs(families: list[str], n_repeats: int, first_seed: int) -> Iterator[tuple[str, int, int]]:
    """List family, recipe and seed of every system; the recipes of a family take turns."""
    for repeat in range(n_repeats):
        for family in families:
            yield family, repeat % len(FAMILIES[family].draw), first_seed + repeat


def main() -> None:
    """Run all families and write the results."""
    import pandas as pd
    from joblib import Parallel, delayed

    from causalformer.bench.figures import save_figure

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=_REPEATS, help="systems of each family")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} of each at most")
    parser.add_argument("--seed-set", choices=list(SEED_SETS), default="report")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only this one")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    n_repeats = min(options.repeats, _QUICK) if options.quick else options.repeats
    wanted = jobs(options.family or list(FAMILIES), n_repeats, SEED_SETS[options.seed_set])
    found = Parallel(options.n_jobs, verbose=1)(delayed(run)(*job) for job in wanted)
    results = pd.DataFrame([asdict(outcome) for outcomes in found for outcome in outcomes])
    write_text(options.out / "results.csv", results.to_csv(index=False))
    write_text(options.out / "table.md", table(results))
    save_figure(ratios(results), options.out / "ratios.png")
    command = ["python", "-m", "causalformer.bench.calibration", *sys.argv[1:]]
    write_environment(options.out / "environment.json", command)


if __name__ == "__main__":
    main()
