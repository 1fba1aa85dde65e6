"""The suites of the benchmark: which methods run on which data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from causalformer.bench.ablations import (
    BY_RELEVANCE,
    DEFAULT_ABLATIONS,
    PAPER_ABLATIONS,
    PAPER_READINGS,
)
from causalformer.bench.drawn import Drawn, DrawnFile, with_holes
from causalformer.bench.methods import COMPARED, PAPER
from causalformer.bench.runner import BenchPlan
from causalformer.bench.violations import violations_suite
from causalformer.config import DEFAULT
from causalformer.datasets import Generated, make_random_system
from causalformer.errors import SettingsError

ALL: Final = "all"
"""Stands for every method of the comparison."""

PAPER_VARIANTS: Final = "paper-variants"
"""Stands for the ablations of the paper's Table 3 and for the text's form of single parts."""

_GROUPS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {ALL: COMPARED, PAPER_VARIANTS: (*PAPER_ABLATIONS, *PAPER_READINGS)}
)

PAPER_FOLDERS: Final = ("diamond", "mediator", "v_structure", "fork", "lorenz96", "fmri")
"""The folders of the paper's Table 1."""

PARTS_FILES: Final = 4
"""Files of each folder on which the default's parts are taken out one by one."""

QUICK_ROWS: Final = 1000
"""Rows of a file that a quick run looks at."""

ANY_PRESET: Final = "paper-fmri"
"""The paper's preset for data that are not the paper's."""

_FIRST_SEED = 50_000  # far from the seeds that settings were chosen on
_N_SYSTEMS = 2


def paper_suite(data: str | Path | None, methods: Sequence[str], *, quick: bool) -> list[BenchPlan]:
    """Compare on the folders of the paper's Table 1; with all methods, also without their parts.

    Quick looks at the first 1000 rows of the first file of each folder.
    """
    if data is None:
        raise SettingsError("the suite 'paper' needs --data, the folder of its data folders")
    folders = [Path(data) / name for name in PAPER_FOLDERS]
    whole = BenchPlan(
        folders=folders,
        methods=expanded(methods),
        orientation="both",
        max_files=1 if quick else None,
        max_rows=QUICK_ROWS if quick else None,
    )
    if ALL not in methods:
        return [whole]
    parts = (DEFAULT, *DEFAULT_ABLATIONS, BY_RELEVANCE)
    return [
        whole,
        replace(whole, folders=folders[-1:], methods=(PAPER, *PAPER_ABLATIONS, *PAPER_READINGS)),
        replace(whole, methods=parts, max_files=1 if quick else PARTS_FILES),
    ]


def generated_suite(
    data: str | Path | None,  # noqa: ARG001 - every suite has the same form
    methods: Sequence[str],
    *,
    quick: bool,
) -> list[BenchPlan]:
    """Compare on random systems that differ from one another in a single respect."""
    changes = dict(list(GENERATED.items())[::3]) if quick else GENERATED
    sets = [_drawn(name, change, 1 if quick else _N_SYSTEMS) for name, change in changes.items()]
    return [BenchPlan(sets, _on_any_data(methods))]


def scaling_suite(
    data: str | Path | None,  # noqa: ARG001 - every suite has the same form
    methods: Sequence[str],
    *,
    quick: bool,
) -> list[BenchPlan]:
    """Measure time and memory over the number of series and of slots."""
    sizes = [(n, 500) for n in (5, 10, 20, 40)] + [(5, t) for t in (1000, 2000, 4000)]
    sets = [
        _drawn(f"N = {n}, T = {t}", {"n_series": n, "n_slots": t, "n_edges": n}, 1)
        for n, t in (sizes[:2] if quick else sizes)
    ]
    return [BenchPlan(sets, _on_any_data(methods))]


SUITES: Final[Mapping[str, Callable[..., list[BenchPlan]]]] = MappingProxyType(
    {
        "paper": paper_suite,
        "generated": generated_suite,
        "scaling": scaling_suite,
        "violations": violations_suite,
    }
)
"""What makes the plans of a suite, by its name."""

GENERATED: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "base": {},
        "N = 4": {"n_series": 4, "n_edges": 4},
        "N = 16": {"n_series": 16, "n_edges": 16},
        "T = 200": {"n_slots": 200},
        "T = 2000": {"n_slots": 2000},
        "sparse": {"n_edges": 4},
        "dense": {"n_edges": 16},
        "lag 1": {"max_lag": 1},
        "linear": {"links": "linear"},
        "nonlinear": {"links": "nonlinear"},
        "student noise": {"noise_law": "student"},
        "skewed noise": {"noise_law": "skewed"},
        "instantaneous": {"n_instantaneous": 4},
        "missing 10 %": {"missing_share": 0.1},
        "missing 30 %": {"missing_share": 0.3},
    }
)
"""How each data set of the suite differs from 8 series of 500 slots with 8 mixed links."""


def drawn_system(random_state: int, missing_share: float = 0.0, **options: Any) -> Generated:
    """Draw a random system, with holes if asked for.

    Examples
    --------
    >>> made = drawn_system(0, missing_share=0.3, n_slots=100)
    >>> made.series.n_series, bool(made.series.missing.any())
    (8, True)
    """
    made = make_random_system(
        **{"n_series": 8, "n_slots": 500, **options}, random_state=random_state
    )
    if not missing_share:
        return made
    rng = np.random.default_rng(random_state)
    holes = with_holes(made.series.values, missing_share, "random", rng)
    return Generated(replace(made.series, values=holes), made.truth)


def _drawn(name: str, change: Mapping[str, Any], n_systems: int) -> Drawn:
    files = [
        DrawnFile(f"system_{i}", partial(drawn_system, random_state=_FIRST_SEED + i, **change))
        for i in range(n_systems)
    ]
    return Drawn(name, tuple(files))


def expanded(methods: Sequence[str]) -> tuple[str, ...]:
    """Put methods in the place of ``"all"`` and ``"paper-variants"``.

    Examples
    --------
    >>> expanded(["all", "default"])[:3]
    ('self-loops', 'var', 'var-lasso')
    """
    return tuple(dict.fromkeys(m for name in methods for m in _GROUPS.get(name, [name])))


def _on_any_data(methods: Sequence[str]) -> tuple[str, ...]:
    """Let one preset stand for the paper's, each of which belongs to data of its own."""
    return tuple(ANY_PRESET if name == PAPER else name for name in expanded(methods))
