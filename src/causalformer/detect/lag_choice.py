"""How many lags to look at, if the user leaves it open."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causalformer.data.windows import slots_with_past
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
LONGEST = 10


@dataclass(frozen=True)
class LagChoice:
    """A number of lags, and why."""

    max_lag: int
    reason: str
    advice: str = ""  # what to do if it was lowered

    @property
    def lowered(self) -> bool:
        """Whether the series were too short for as many as were asked for."""
        return bool(self.advice)


def affordable(choice: LagChoice, n_slots: int) -> LagChoice:
    """Take fewer lags if the series are too short even for an effect's own past.

    That is always among its causes; of others only those count that are chosen. A coefficient
    takes four slots.

    Examples
    --------
    >>> choice = affordable(LagChoice(10, "chosen by the user"), 30)
    >>> choice.max_lag, choice.reason
    (7, 'lowered from 10: 30 slots allow no more')
    """
    most = network_lags(choice.max_lag, n_slots, 1)
    if choice.max_lag <= most:
        return choice
    reason = f"lowered from {choice.max_lag}: {n_slots} slots allow no more"
    return LagChoice(most, reason, "record longer")


def network_lags(max_lag: int, n_slots: int, n_causes: int) -> int:
    """Say how many lags the network may look at, if an effect may hang on so many causes.

    With less than four slots per coefficient its held-out test draws false edges. The search of few
    terms pays for those only that it chooses, so it looks at more lags than that.

    Examples
    --------
    >>> [network_lags(5, n_slots, 8) for n_slots in (60, 100, 1000)]
    [1, 3, 5]
    """
    return min(max_lag, max(1, n_slots // (POLICY.samples_per_weight * n_causes)))


def suggest_max_lag(scores: FloatArray, segments: Sequence[slice] | None = None) -> LagChoice:
    """Take the order of the vector autoregression with the best BIC, and one lag to spare.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((500, 2))
    >>> x[3:, 1] += 0.8 * x[:-3, 0]
    >>> suggest_max_lag(x).max_lag
    4
    """
    n_slots, n_series = scores.shape
    segments = segments or [slice(0, n_slots)]
    longest = int(np.clip((n_slots // POLICY.samples_per_weight - 1) // n_series, 1, LONGEST))
    while (
        longest > 1
        and len(slots_with_past(segments, longest)) < POLICY.samples_per_weight * longest * n_series
    ):
        longest -= 1  # short recordings leave few slots with a long past
    slot = slots_with_past(segments, longest)
    now = scores[slot]
    bic = []
    for order in range(1, longest + 1):
        design = np.column_stack(
            [np.ones(len(now)), *(scores[slot - lag] for lag in range(1, order + 1))]
        )
        residual = now - design @ np.linalg.lstsq(design, now, rcond=None)[0]
        # effects one by one: the determinant of all would drown weak effects of single series
        fit = np.log(np.maximum(residual.var(axis=0), 1e-12))
        bic.append(len(now) * fit + n_series * order * np.log(len(now)))
    order = int(np.max(np.argmin(bic, axis=0)) + 1)
    chosen = min(order + 1, LONGEST)
    return LagChoice(
        chosen,
        f"a vector autoregression of order {order} has the best BIC for the slowest series "
        f"(orders up to {longest} were tried); one lag to spare",
    )
