"""The figures of the paper's tables, as printed there: mean ± standard deviation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

METHODS: Final = ("cmlp", "clstm", "tcdf", "dvgnn", "cuts", "paper")
"""The columns of the paper's Table 1, by the names that our benchmark gives the methods."""


def _table(methods: tuple[str, ...], lines: str) -> Mapping[str, Mapping[str, str]]:
    rows = {}
    for line in lines.strip().splitlines():
        folder, *cells = line.split()
        spread = [cell.replace("±", " ± ") for cell in cells]
        rows[folder] = MappingProxyType(dict(zip(methods, spread, strict=True)))
    return MappingProxyType(rows)


F1: Final = _table(
    METHODS,
    """
    diamond     0.55±0.19 0.63±0.13 0.68±0.09 0.65±0.04 0.49±0.20 0.68±0.08
    mediator    0.71±0.14 0.59±0.24 0.69±0.06 0.65±0.05 0.52±0.23 0.71±0.06
    v_structure 0.73±0.15 0.60±0.20 0.76±0.09 0.73±0.06 0.49±0.15 0.77±0.05
    fork        0.51±0.33 0.47±0.32 0.73±0.10 0.75±0.00 0.50±0.19 0.79±0.11
    lorenz96    0.64±0.03 0.63±0.06 0.46±0.05 0.48±0.07 0.58±0.02 0.69±0.06
    fmri        0.58±0.14 0.56±0.13 0.59±0.12 0.56±0.12 0.61±0.13 0.66±0.09
    """,
)
"""Table 1: F1 by folder and method; fMRI as published."""

OFF_DIAGONAL: Final[Mapping[str, float]] = MappingProxyType(
    {
        "diamond": 0.14,
        "mediator": 0.23,
        "v_structure": 0.20,
        "fork": 0.33,
        "lorenz96": 0.58,
        "fmri": 0.24,
    }
)
"""Mean off-diagonal F1 of the published runs; the paper does not print it, their edges tell it
(see `causalformer.bench.published_runs`)."""

POD: Final = _table(
    ("cmlp", "tcdf", "paper"),
    """
    diamond     0.82±0.17 0.92±0.13 0.74±0.20
    mediator    0.91±0.12 0.97±0.11 0.63±0.40
    v_structure 0.91±0.16 1.00±0.00 0.59±0.39
    fork        0.76±0.41 1.00±0.00 0.46±0.34
    lorenz96    0.45±0.17 0.77±0.08 0.42±0.18
    """,
)
"""Table 2: precision of delay by folder and method."""

ABLATION: Final = _table(
    ("precision", "recall", "f1"),
    """
    paper-without-interpretation 0.47±0.24 0.45±0.17 0.44±0.18
    paper-without-relevance      0.64±0.32 0.44±0.12 0.50±0.17
    paper-without-gradient       0.60±0.60 0.54±0.54 0.54±0.54
    paper-without-bias           0.79±0.31 0.44±0.12 0.55±0.18
    paper-without-multi-kernel   0.74±0.25 0.56±0.12 0.61±0.12
    paper                        0.80±0.17 0.59±0.13 0.66±0.09
    """,
)
"""Table 3: what the parts are worth on fMRI, as published."""
