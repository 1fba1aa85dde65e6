"""The paper's case study: which part of the North Atlantic drives the temperature of which.

``python -m causalformer.bench.sst --data FILE_OR_FOLDER --out FOLDER`` reads sea surface
temperatures (ERSST, OISST or any other netCDF grid), fits the paper's preset and the default
method, draws their maps, and counts edges that lead north and south where the paper sees currents.
No truth is known, so counts stand beside those of edges that are placed at random.
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from causalformer.bench.environment import write_environment
from causalformer.bench.memory import peak_gb
from causalformer.bench.timing import one_thread
from causalformer.config import PRESETS
from causalformer.data import SeriesTable
from causalformer.data.regions import NORTH_ATLANTIC, Box, Cells, sea_series, typical_step
from causalformer.errors import CausalFormerError, DataError, DataWarning, SettingsError
from causalformer.explain.scores import main_lag
from causalformer.files import write_atomically, write_text
from causalformer.graph import CausalGraph, Edge
from causalformer.plot.map import Ground, direction_of, map_picture

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
OnStep = Callable[[str], object]

METHODS: Final = ("paper", "default", "reversed")
"""`reversed` is the default on series that run backwards: what currents carry would turn round.

Each gives a second graph from the same fit by a weaker rule: `paper-others`, `default-weak`.
"""

PAPER_SLOT_DAYS: Final = 38.0
SPEED: Final = 0.3  # m/s at the surface, after the paper
_WEST_OF: Final = -40.0  # where the paper's western North Atlantic ends, for us
_BIN_KM: Final = 200.0
_DRAWS: Final = 4000
_NEAR_KM: Final = 600.0
_ALPHA: Final = 0.05
_WEAK: Final = "-weak"
_QUICK_EPOCHS: Final = 2


@dataclass(frozen=True)
class Current:
    """Where the paper sees a current, and which way it says heat is carried there.

    An edge runs along it if both of its ends lie in one of the boxes.
    """

    key: str
    name: str
    boxes: tuple[Box, ...]
    direction: str

    def contains(self, cells: Cells) -> BoolArray:
        """Say which cells belong to it."""
        inside = [box.contains(cells.lat, cells.lon) for box in self.boxes]
        return np.asarray(np.any(inside, axis=0))


CURRENTS: Final = (
    # The drift leaves the Gulf Stream east of the Grand Banks (about 45° W, 44° N) and crosses to
    # the north-east; between Iceland and Scotland it becomes the Norway Current, most of which
    # runs east of 0°, beyond the paper's region.
    Current(
        "drift",
        "North Atlantic Drift and Norway Current",
        (Box(44, 60, -45, -10), Box(60, 70, -14, 0)),
        "S→N",
    ),
    # East Greenland Current through Denmark Strait (66° N, 28° W), round Cape Farewell (60° N,
    # 44° W), and the Labrador Current down the other side (64° W). The West Greenland Current in
    # between runs north.
    Current("greenland", "around Greenland", (Box(56, 70, -64, -26),), "N→S"),
)


@dataclass(frozen=True)
class Finding:
    """What one method found; edges are counted once per pair of different cells.

    ``*_random_low`` and ``*_random_high`` enclose 95 % of the counts of as many edges of the same
    lengths, placed at random.
    """

    method: str
    source: str
    n_series: int
    n_slots: int
    slot_days: float
    pairs: int
    edges: int
    s_to_n: int
    n_to_s: int
    e_w: int
    random_low: int
    random_high: int
    drift_s_to_n: int
    drift_n_to_s: int
    drift_random_low: int
    drift_random_high: int
    greenland_s_to_n: int
    greenland_n_to_s: int
    greenland_random_low: int
    greenland_random_high: int
    median_km: float
    median_km_of_pairs: float
    west_per_cell: float
    east_per_cell: float
    within_slot: int
    self_loops: int
    epochs: int
    seconds: float
    peak_gb: float


@dataclass(frozen=True, eq=False)
class _Fit:
    graph: CausalGraph
    epochs: int
    possible: BoolArray  # pairs that could be edges, [cause, effect]


def run_sst(
    path: str | Path,
    out: str | Path,
    methods: Sequence[str] = ("paper", "default"),
    *,
    slot_days: float | None = None,
    box: Box = NORTH_ATLANTIC,
    degrees: float = 4.0,
    variable: str | None = None,
    trend: bool = False,
    max_epochs: int | None = None,
    quick: bool = False,
    seed: int = 0,
    command: Sequence[str] | None = None,
    on_step: OnStep | None = None,
) -> "pd.DataFrame":
    """Repeat the case study on a file and write graphs, maps, ``results.csv`` and ``table.md``.

    Parameters
    ----------
    path : path
        A netCDF file, or a folder of such files that follow each other in time.
    out : path
        Folder for the results.
    methods : sequence of str
        Some of `METHODS`.
    slot_days : float, optional
        Days per slot. By default the paper's 38 where the file has at least four values in them,
        as daily and weekly files do, else the file's own step.
    box, degrees, variable, trend
        See `causalformer.data.regions.sea_series`.
    max_epochs : int, optional
        Fewer epochs than the preset's.
    quick : bool
        Two epochs: to see that everything works, not to learn anything.
    seed : int
        Seed of everything random.
    command : sequence of str, optional
        The command line for ``environment.json``.
    on_step : callable, optional
        Receives a line of text whenever something is done.

    Returns
    -------
    DataFrame
        One row per method: the fields of `Finding`.

    Raises
    ------
    DataError
        If the files cannot be used.
    """
    import pandas as pd

    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise SettingsError(f"methods are {list(methods)}; choose from {', '.join(METHODS)}")
    say = on_step or (lambda _: None)
    files = netcdf_files(path)
    if slot_days is None and typical_step(files[0], variable) <= PAPER_SLOT_DAYS / 4:
        slot_days = PAPER_SLOT_DAYS
    table, cells = sea_series(
        files, box, degrees=degrees, slot_days=slot_days, variable=variable, trend=trend
    )
    say(f"{table.n_series} sea cells, {table.n_slots} slots of {_slot_days(table):.0f} days")
    epochs = _QUICK_EPOCHS if quick else max_epochs
    out, findings = Path(out), []
    for method in methods:
        started = time.perf_counter()
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            fits = _fit(method, table, cells, epochs, seed, say)
        seconds = time.perf_counter() - started
        for name, fit in fits.items():
            findings.append(_finding(name, fit, table, cells, seconds, seed))
            _write_graph(out, name, fit.graph, cells, findings[-1])
            say(f"{name}: {findings[-1].edges} edges in {seconds:.0f} s")
    frame = pd.DataFrame([asdict(finding) for finding in findings])
    write_text(out / "results.csv", frame.to_csv(index=False))
    write_text(out / "table.md", sst_markdown(findings, table, cells, epochs))
    write_environment(out / "environment.json", command, seed=seed, max_epochs=epochs)
    return frame


def netcdf_files(path: str | Path) -> list[Path]:
    """Return the file itself, or all netCDF files of a folder."""
    path = Path(path)
    files = sorted(p for p in path.glob("*.nc") if p.is_file()) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise DataError(f"{path} holds no netCDF file (*.nc); give a file or a folder with some")
    return files


# -------------------------------------------------------------------- fits


def _fit(
    method: str, table: SeriesTable, cells: Cells, max_epochs: int | None, seed: int, say: OnStep
) -> dict[str, _Fit]:
    settings = {} if max_epochs is None else {"max_epochs": max_epochs}
    if method == "paper":
        return _fit_paper(table, settings, seed, say)
    if method == "reversed":
        table = replace(table, values=table.values[::-1])
    return _fit_neighbourhoods(method, table, cells, settings, seed, say)


def _fit_paper(
    table: SeriesTable, settings: dict[str, Any], seed: int, say: OnStep
) -> dict[str, _Fit]:
    """Fit all cells at once with the paper's preset; read the graph in two ways.

    DEVIATION: temperatures persist, so the class of the highest scores may hold nothing but the
    cell itself. `paper-others` looks for classes among the scores of the other cells.
    """
    from causalformer.detect.clustering import select_by_clusters
    from causalformer.estimator import CausalFormer

    model = CausalFormer(
        "paper-sst",
        settings=settings,
        random_state=seed,
        device="cpu",
        on_epoch=lambda epoch: say(f"paper: epoch {epoch.number + 1}, {epoch.seconds:.1f} s"),
    ).fit(table)
    epochs, preset = len(model.history_.epochs), PRESETS["paper-sst"]
    own = np.eye(table.n_series, dtype=bool)
    others = model.scores_.T[~own].reshape(len(own), -1).T  # [other cause, effect]
    chosen = np.zeros_like(own)
    top = select_by_clusters(others, preset.n_clusters, preset.top_clusters, seed)
    chosen[~own] = top.T.ravel()  # [effect, cause]
    about = {**model.graph_.metadata, "classes": "among the scores of the other cells"}
    lag = main_lag(model.lag_scores_, np.ones_like(model.lag_scores_, dtype=bool))
    graph = CausalGraph.from_arrays(table.names, chosen.T, lag, model.scores_, about)
    return {
        "paper": _Fit(model.graph_, epochs, ~own),
        "paper-others": _Fit(graph, epochs, ~own),
    }


def _fit_neighbourhoods(
    method: str,
    table: SeriesTable,
    cells: Cells,
    settings: dict[str, Any],
    seed: int,
    say: OnStep,
) -> dict[str, _Fit]:
    """Fit the default method to every cell and the cells that a current can reach it from.

    All cells at once would be more causes than slots: nothing could be tested. So each cell is an
    effect once, among its neighbours within the way of one slot. An edge must hold in its
    neighbourhood and, by the false discovery rate, among the tests of all neighbourhoods together.
    Contemporaneous edges have no sure direction and are not looked for. The second graph has all
    pairs that are significant by themselves, as some are by chance.
    """
    from causalformer.detect.evidence import edge_q
    from causalformer.estimator import CausalFormer

    n, names = table.n_series, table.names
    p_value, tested = np.ones((n, n)), np.zeros((n, n), dtype=bool)
    found: list[Edge] = []
    epochs = 0
    for effect, near in enumerate(neighbourhoods(cells, _slot_days(table), table.n_slots)):
        model = CausalFormer(
            max_lag=1,
            alpha=_ALPHA,
            instantaneous=False,
            settings=settings,
            random_state=seed,
            device="cpu",
        ).fit(table.select([names[i] for i in near]))
        p_value[near, effect] = model.scores_["p_value"][:, near.index(effect)]
        tested[near, effect] = True
        found += [edge for edge in model.graph_ if edge.effect == names[effect]]
        epochs = len(model.history_.epochs)
        if (effect + 1) % 20 == 0:
            say(f"{method}: {effect + 1} of {n} cells")
    place = {name: i for i, name in enumerate(names)}
    q_value = edge_q(p_value, tested)
    edges = [replace(e, q_value=q_value[place[e.cause], place[e.effect]]) for e in found]
    about = {
        **model.graph_.metadata,
        "n_fits": n,
        "candidates": "cells within the way of one slot, a fit per effect, q-values of all fits",
    }
    kept = CausalGraph(names, tuple(e for e in edges if e.q_value <= _ALPHA), about)
    weak = CausalGraph.from_arrays(
        names,
        p_value <= _ALPHA,
        np.ones((n, n), dtype=np.int64),
        -np.log10(p_value),
        {**about, "chosen": "p-value of the pair alone"},
        evidence={"p_value": p_value, "q_value": q_value},
    )
    possible = tested & ~np.eye(n, dtype=bool)
    return {method: _Fit(kept, epochs, possible), method + _WEAK: _Fit(weak, epochs, possible)}


def neighbourhoods(cells: Cells, slot_days: float, n_slots: int) -> Iterator[list[int]]:
    """Give for every cell those within the way of one slot at 0.3 m/s, itself first.

    At least one other, and at most a quarter of the slots: more could not be tested.

    Examples
    --------
    >>> lat, edges = np.array([40.0, 44.0, 60.0]), np.array([38.0, 62.0])
    >>> cells = Cells(lat, np.zeros(3), edges, edges, np.zeros((1, 1), bool))
    >>> list(neighbourhoods(cells, 30.0, 128))
    [[0, 1], [1, 0], [2, 1]]
    """
    reach = SPEED * 86.4 * slot_days  # km
    for distance in cells.distance_km:
        n_near = min(max(2, int((distance <= reach).sum())), max(2, n_slots // 4))
        yield np.argsort(distance, kind="stable")[:n_near].tolist()


# -------------------------------------------------------------------- counts


def _finding(
    method: str, fit: _Fit, table: SeriesTable, cells: Cells, seconds: float, seed: int
) -> Finding:
    place = {name: i for i, name in enumerate(table.names)}
    found = np.zeros((table.n_series,) * 2, dtype=bool)
    for edge in fit.graph:
        found[place[edge.cause], place[edge.effect]] = edge.kind != "self"
    distance, towards = cells.distance_km, directions(cells)
    counts: dict[str, Any] = {
        "s_to_n": int((found & (towards > 0)).sum()),
        "n_to_s": int((found & (towards < 0)).sum()),
        "e_w": int((found & (towards == 0)).sum()),
    }
    low, high = random_range(found, towards > 0, distance, seed)
    counts |= {"random_low": low, "random_high": high}
    for current in CURRENTS:
        inside = current.contains(cells)
        along = inside[:, None] & inside
        wanted = along & (towards > 0 if current.direction == "S→N" else towards < 0)
        low, high = random_range(found, wanted, distance, seed)
        counts |= {
            f"{current.key}_s_to_n": int((found & along & (towards > 0)).sum()),
            f"{current.key}_n_to_s": int((found & along & (towards < 0)).sum()),
            f"{current.key}_random_low": low,
            f"{current.key}_random_high": high,
        }
    west = cells.lon < _WEST_OF
    return Finding(
        method=method,
        source=table.source,
        n_series=table.n_series,
        n_slots=table.n_slots,
        slot_days=round(_slot_days(table), 1),
        pairs=int(fit.possible.sum()),
        edges=int(found.sum()),
        **counts,
        median_km=_median(distance[found]),
        median_km_of_pairs=_median(distance[fit.possible]),
        west_per_cell=_per_cell(found, west),
        east_per_cell=_per_cell(found, ~west),
        within_slot=sum(edge.kind == "instantaneous" for edge in fit.graph),
        self_loops=len({edge.cause for edge in fit.graph if edge.kind == "self"}),
        epochs=fit.epochs,
        seconds=round(seconds, 1),
        peak_gb=round(peak_gb(), 2),
    )


def directions(cells: Cells) -> NDArray[np.int64]:
    """Give 1 for pairs ``[cause, effect]`` that lead north, -1 south, 0 along a parallel."""
    sign = {"S→N": 1, "N→S": -1, "E–W": 0}
    return np.array([[sign[direction_of(a, b)] for b in cells.lat] for a in cells.lat])


def random_range(
    found: BoolArray, wanted: BoolArray, distance: FloatArray, seed: int = 0
) -> tuple[int, int]:
    """Enclose 95 % of the counts of `wanted` pairs if edges were placed at random.

    As many edges of each length (in steps of 200 km) as there are in `found` fall on any pairs of
    cells that far apart; the number of wanted ones among them is hypergeometric.

    Examples
    --------
    >>> found = ~np.eye(3, dtype=bool)
    >>> random_range(found, np.triu(found), np.ones((3, 3)))  # all pairs are edges: no choice
    (3, 3)
    """
    rng = np.random.default_rng(seed)
    total = np.zeros(_DRAWS, dtype=np.int64)
    length = (distance // _BIN_KM).astype(np.int64)
    length[np.eye(len(length), dtype=bool)] = -1
    for each in np.unique(length[found]):
        pairs = length == each
        n_pairs, n_wanted = int(pairs.sum()), int((pairs & wanted).sum())
        n_edges = int((pairs & found).sum())
        total += rng.hypergeometric(n_wanted, n_pairs - n_wanted, n_edges, _DRAWS)
    low, high = np.quantile(total, (0.025, 0.975), method="nearest")
    return int(low), int(high)


def _median(values: FloatArray) -> float:
    return round(float(np.median(values)), 0) if len(values) else math.nan


def _per_cell(found: BoolArray, cells: BoolArray) -> float:
    """Mean number of edges into one of some cells."""
    return round(float(found[:, cells].sum() / cells.sum()), 2) if cells.any() else math.nan


def _slot_days(table: SeriesTable) -> float:
    assert table.time is not None  # `sea_series` refuses files without dates
    return float(np.median(np.diff(table.time.astype("M8[s]")) / np.timedelta64(1, "D")))


# -------------------------------------------------------------------- results


def _write_graph(
    out: Path, method: str, graph: CausalGraph, cells: Cells, finding: Finding
) -> None:
    places = {
        name: (float(lat), float(lon))
        for name, lat, lon in zip(graph.names, cells.lat, cells.lon, strict=True)
    }
    title = f"Sea surface temperature, {method}, slots of {finding.slot_days:.0f} days"
    ground = Ground(cells.lat_edges, cells.lon_edges, cells.land)
    content = map_picture(graph, places, ground, title=title)
    graph.save(out / f"{method}.json")
    write_atomically(out / f"{method}.png", lambda p: p.write_bytes(content))


def sst_markdown(
    findings: Sequence[Finding], table: SeriesTable, cells: Cells, max_epochs: int | None
) -> str:
    """Say in a table and in words what was found, and what it can mean."""
    first, dates = findings[0], table.time
    period = "" if dates is None else f", {str(dates[0])[:7]} to {str(dates[-1])[:7]}"
    parts = [
        "# Sea surface temperature, North Atlantic\n",
        f"{first.source}{period}: {first.n_series} sea cells, {first.n_slots} slots of "
        f"{first.slot_days:.0f} days, the season taken out. {_likeness(table, cells)}\n",
    ]
    if max_epochs is not None:
        parts.append(
            f"Trained for at most {max_epochs} epochs instead of the preset's number: a trial run."
            "\n"
        )
    lines = [("", *(f.method for f in findings)), ("---", *["---:"] * len(findings))]
    lines += [(title, *(cell(f) for f in findings)) for title, cell in _LINES]
    parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    parts.append(_READING)
    parts += ["## What the paper reads from its map, and what is here\n"]
    parts += ["\n".join(_verdicts(finding)) + "\n" for finding in findings]
    parts += ["## What this can and cannot show\n", _limits(first)]
    return "\n".join(parts)


def _likeness(table: SeriesTable, cells: Cells) -> str:
    """Say how much of a cell its own past and its neighbours know."""
    import pandas as pd

    frame = pd.DataFrame(table.values)
    near = np.triu(cells.distance_km <= _NEAR_KM, 1)
    neighbours = frame.corr().to_numpy()[near]
    memory = frame.corrwith(frame.shift()).median()
    text = f"A cell correlates with its own slot before at {memory:.2f} (median)"
    if len(neighbours):
        text += f", with cells up to {_NEAR_KM:g} km away at {np.nanmean(neighbours):.2f} (mean)"
    return f"{text}."


def _range(low: int, high: int) -> str:
    return f"{low}–{high}"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:g}"


_LINES: Final[tuple[tuple[str, Callable[[Finding], str]], ...]] = (
    ("pairs that could be an edge", lambda f: str(f.pairs)),
    ("edges between cells", lambda f: str(f.edges)),
    ("S→N", lambda f: str(f.s_to_n)),
    ("N→S", lambda f: str(f.n_to_s)),
    ("E–W (same latitude)", lambda f: str(f.e_w)),
    ("S→N or N→S at random", lambda f: _range(f.random_low, f.random_high)),
    ("drift and Norway Current: S→N", lambda f: str(f.drift_s_to_n)),
    ("drift and Norway Current: N→S", lambda f: str(f.drift_n_to_s)),
    ("… at random", lambda f: _range(f.drift_random_low, f.drift_random_high)),
    ("around Greenland: S→N", lambda f: str(f.greenland_s_to_n)),
    ("around Greenland: N→S", lambda f: str(f.greenland_n_to_s)),
    ("… at random", lambda f: _range(f.greenland_random_low, f.greenland_random_high)),
    ("median length of an edge, km", lambda f: _number(f.median_km)),
    ("median length of a pair that could be one, km", lambda f: _number(f.median_km_of_pairs)),
    ("edges per cell west of 40° W", lambda f: _number(f.west_per_cell)),
    ("edges per cell east of 40° W", lambda f: _number(f.east_per_cell)),
    ("contemporaneous edges", lambda f: str(f.within_slot)),
    ("cells with a self-loop", lambda f: str(f.self_loops)),
    ("epochs", lambda f: str(f.epochs)),
    ("seconds on one core", lambda f: f"{f.seconds:.0f}"),
    ("highest memory of the process so far, GB", lambda f: f"{f.peak_gb:.2f}"),
)

_READING: Final = (
    "S→N: the cause has the lower latitude. *At random* encloses 95 % of the counts of as many "
    "edges of the same lengths between any cells; pairs lead north as often as south, so the range "
    "holds for both. An edge runs along a current if both of its ends lie in its boxes: 44–60° N, "
    "45–10° W and 60–70° N, 14–0° W for the drift and the Norway Current, 56–70° N, 64–26° W "
    "around Greenland.\n\n"
    "`paper` is the preset `paper-sst`, the settings of the published run, on all cells at once. "
    "Where its class of highest scores holds only the cell itself, it has no edge "
    "between cells; `paper-others` is the same fit with classes formed among the scores of the "
    "other cells, which is not the paper's rule. `default` tests, for each cell, the cells within "
    "the way of one slot at 0.3 m/s (a fit per effect, lag 1, one false discovery rate for all "
    "fits): all cells at once are more causes than slots. Its edges must also explain more than "
    "the errors of neighbours share within a slot, its guard against hidden common drivers. "
    "`default-weak` has all pairs of the same fits with p ≤ 0.05, among them 5 % of the pairs "
    "without an edge: a hint at directions, no graph to use. `reversed` is the default on series "
    "that run backwards: transport would change its direction, so what looks the same in both is "
    "none.\n"
)


def _verdicts(finding: Finding) -> Iterator[str]:
    f = finding
    yield f"**{f.method}**\n"
    if not f.edges:
        yield "- No edge between cells at all: no support for anything that the paper reads."
        return
    if f.method.endswith(_WEAK):
        yield (
            f"- {f.edges} of {f.pairs} pairs have p ≤ {_ALPHA:g}; chance alone would give "
            f"{_ALPHA * f.pairs:.0f}. Nothing below weighs more than that."
        )
    for current in CURRENTS:
        north, south = (getattr(f, f"{current.key}_{d}") for d in ("s_to_n", "n_to_s"))
        low, high = (getattr(f, f"{current.key}_random_{end}") for end in ("low", "high"))
        seen, other = (north, south) if current.direction == "S→N" else (south, north)
        against = "N→S" if current.direction == "S→N" else "S→N"
        verdict = "more than" if seen > high else "fewer than" if seen < low else "as many as"
        yield (
            f"- {current.name}: the paper sees many {current.direction}. Here {seen}, and {other} "
            f"{against}; {verdict} edges placed at random give ({_range(low, high)}). "
            + ("The same way as the paper." if seen > max(high, other) else "No support for it.")
        )
    if f.within_slot:
        yield (
            f"- {f.within_slot} of these edges are contemporaneous: time does not tell cause "
            "from effect, and their direction is the model's, not the sea's."
        )
    more = f.west_per_cell > f.east_per_cell
    yield (
        "- The paper finds the west more complex than the east. Here "
        f"{_number(f.west_per_cell)} edges per cell in the west and {_number(f.east_per_cell)} in "
        f"the east: {'the same way' if more else 'not so'}."
    )


def _limits(finding: Finding) -> str:
    reach = SPEED * 86.4 * finding.slot_days
    lines = [
        f"- {finding.n_slots} slots stand against {finding.n_series} series, "
        f"{finding.n_series - 1} possible causes for each. No method can tell so many apart from "
        "so few slots; single edges deserve no trust, only counts of many.",
        f"- A current of {SPEED} m/s goes {reach:.0f} km in a slot. Much of what travels has left "
        "a cell, or mixed with its neighbours, before the slot is over: it shows as a "
        "contemporaneous link, whose direction time does not tell.",
        "- Anomalies are made by the air above as well as carried by the water. Weather that spans "
        "several cells drives them together and is not among the series: a hidden common cause.",
        "- Under sea ice the water stays at its freezing point: cells by Greenland, Labrador and "
        "in Hudson Bay hardly change for months of each year.",
        "- Counts are compared with edges at random, but neighbouring edges are not independent. "
        "The range is therefore too narrow, and a count just outside of it says little.",
        "- The boxes are ours: the paper shows a map and gives no counts or dates of its "
        "slots. Agreement on a map that was looked at after the fit is weak evidence.",
    ]
    if "ersst" in finding.source.lower():
        lines.append(
            "- ERSST is a reconstruction: ships and buoys in 2° cells, monthly means, gaps filled "
            "by fitting large-scale patterns (empirical orthogonal teleconnections). Cells many "
            "hundred kilometres apart share their values by construction, in the same month. The "
            "paper used OISST, daily and from satellites, averaged to 38 days."
        )
    else:
        lines.append(
            "- Gridded temperatures are interpolated: neighbouring cells share measurements and "
            "are linked by construction."
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the case study from the command line; return 2 if it cannot be run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="netCDF file or folder of them")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--methods", default="paper,default", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--slot-days", type=float, help="days per slot")
    parser.add_argument("--trend", action="store_true", help="take a straight line out, too")
    parser.add_argument("--max-epochs", type=int)
    parser.add_argument("--quick", action="store_true", help="two epochs, to try it out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        run_sst(
            options.data,
            options.out,
            options.methods.split(","),
            slot_days=options.slot_days,
            trend=options.trend,
            max_epochs=options.max_epochs,
            quick=options.quick,
            seed=options.seed,
            command=["python", "-m", "causalformer.bench.sst", *sys.argv[1:]],
            on_step=lambda line: print(line, flush=True),
        )
    except CausalFormerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
