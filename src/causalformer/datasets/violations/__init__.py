"""Systems that violate what methods assume, from not at all to severely."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from causalformer.arrays import is_whole
from causalformer.datasets.generated import Generated, RandomState, seeded_rng
from causalformer.datasets.violations.base import Base, Violation, made_of, on_base, seen, simulate
from causalformer.datasets.violations.dynamics import COLUMNS, DYNAMICS, STRUCTURE, TIME
from causalformer.datasets.violations.holes import DATA
from causalformer.datasets.violations.links import (
    CHANGE,
    FAITHFULNESS,
    FUNCTION,
    HIDDEN,
    INTERACTIONS,
)
from causalformer.datasets.violations.noise import INNOVATIONS, MEASUREMENT
from causalformer.datasets.violations.nulls import NULLS
from causalformer.datasets.violations.slot import SLOT, SlotLaw, make_slot_system
from causalformer.errors import SettingsError

__all__ = ["STRENGTHS", "VIOLATIONS", "SlotLaw", "Violation", "make_slot_system", "make_violation"]

STRENGTHS: Final = range(5)
"""From none, or mild, to severe."""


def _unviolated(base: Base, _: int) -> Generated:
    return made_of(seen(simulate(base.weights, base.noise)), base.weights)


VIOLATIONS: Final[Mapping[str, Violation]] = MappingProxyType(
    {
        "none": Violation(
            "none", "linear, normal, stationary; the same at every strength", on_base(_unviolated)
        ),
        **INNOVATIONS,
        **MEASUREMENT,
        **FUNCTION,
        **HIDDEN,
        **CHANGE,
        **FAITHFULNESS,
        **DATA,
        **SLOT,
        **STRUCTURE,
        **INTERACTIONS,
        **TIME,
        **COLUMNS,
        **DYNAMICS,
        **NULLS,
    }
)
"""The violations by name."""


def make_violation(
    family: str, strength: int = 2, *, random_state: RandomState = None
) -> Generated:
    """Draw a system that violates an assumption.

    Most violations start from a base system: 5 series with 3 lags or 7 with 4, of 250 or 1000
    slots, linear, sparse, half of them with contemporaneous links. For one seed, graph and
    innovations are the same at every strength, and for all violations of the base system.

    Parameters
    ----------
    family : str
        One of `VIOLATIONS`, whose ``about`` says what the strengths stand for.
    strength : int
        From 0 (none, or mild) to 4 (severe).
    random_state : int, Generator or None
        Seed: equal seeds give equal series.

    Returns
    -------
    Generated
        The series ``x0``, ``x1``, ... and their graph, self-links included; lag 0 is
        contemporaneous.

    Raises
    ------
    SettingsError
        If there is no such family or strength.

    Examples
    --------
    >>> mild, severe = (make_violation("trend", s, random_state=3) for s in (0, 4))
    >>> mild.truth == severe.truth, float(severe.series.values.std() / mild.series.values.std()) > 2
    (True, True)
    >>> VIOLATIONS["trend"].about
    'a common trend of 0 to 8 standard deviations'
    """
    if family not in VIOLATIONS:
        raise SettingsError(
            f"no violation is called {family!r}; choose among {', '.join(VIOLATIONS)}"
        )
    if not (is_whole(strength) and strength in STRENGTHS):
        raise SettingsError(f"strength is {strength!r}; choose a whole number from 0 to 4")
    return VIOLATIONS[family].make(seeded_rng(random_state), int(strength))
