"""How many lags to look at, if the user leaves it open."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causalformer.data.windows import slots_with_past

FloatArray = NDArray[np.float64]

LONGEST = 10
_SLOTS_PER_COEFFICIENT = 4


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


def affordable(
    choice: LagChoice, n_slots: int, n_series: int, n_candidates: int | None = None
) -> LagChoice:
    """Take fewer lags if the series are too short for so many coefficients.

    With less than four slots per coefficient the held-out test draws false edges. With
    `n_candidates` an effect hangs on so many series, not on all.

    Examples
    --------
    >>> choice = affordable(LagChoice(5, "chosen by the user"), 200, 20)
    >>> choice.max_lag, choice.reason
    (2, 'lowered from 5: 200 slots of 20 series allow no more')
    """
    n_causes = n_candidates or max(1, n_series)
    most = max(1, n_slots // (_SLOTS_PER_COEFFICIENT * n_causes))
    if choice.max_lag <= most:
        return choice
    reason = f"lowered from {choice.max_lag}: {n_slots} slots of {n_series} series allow no more"
    advice = "record longer" if n_candidates else "record longer, or leave out series"
    return LagChoice(most, reason, advice)


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
    longest = int(np.clip((n_slots // 5 - 1) // n_series, 1, LONGEST))
    while longest > 1 and len(slots_with_past(segments, longest)) < 4 * longest * n_series:
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
