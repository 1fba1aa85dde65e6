"""How much memory a fit takes, estimated before it starts, and how to stay below a limit."""

import math
import re
from dataclasses import dataclass, replace

from causalformer.config import DetectorSettings
from causalformer.detect.few_terms import TERMS_IN_ROWS, n_shared_products
from causalformer.detect.removal import NUMBERS
from causalformer.detect.screening import TOGETHER, n_candidates
from causalformer.errors import SettingsError
from causalformer.scratch import (
    free_memory,
    largest_in_memory,
    limit_in_force,
    memory_limited,
    resident_memory,
)

_MAIN = 0.5e9  # bytes of the interpreter and its libraries
_WORKER = 0.45e9  # the same in a worker process
_PER_SLOT = 100.0  # bytes, whatever the number of series
_SLOTS_PER_BLOCK = 50_000  # of all its effects: large blocks of short series are faster
_SLACK = 0.1  # of a pair of blocks: so much larger they may be, if that saves a pair
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}  # powers of 1000, of 1024 in KiB and so on


@dataclass(frozen=True)
class Size:
    """What decides how much memory a fit takes."""

    n_slots: int
    n_series: int
    max_lag: int
    n_required: int = 0  # causes that an effect must have, at most


@dataclass(frozen=True)
class MemoryPlan:
    """How a fit is cut up, and the bytes that it may take, all processes together."""

    n_jobs: int
    effects_per_block: int
    n_bytes: float


def memory_limit(value: str | float | None) -> float:
    """Read a limit in bytes, the interpreter included.

    Without one, take that of the fit that is under way: what it has taken since it began is in its
    plan. Else take 70 % of what is free, and the interpreter as far as it is loaded: that memory is
    no longer free, but the plan counts it.

    Examples
    --------
    >>> memory_limit("1.5GB"), memory_limit("1500M"), memory_limit(2e9)
    (1500000000.0, 1500000000.0, 2000000000.0)
    """
    if value is None:
        limit = limit_in_force()
        return free_memory() + min(_MAIN, resident_memory()) if limit is None else limit
    found = re.fullmatch(r"\s*([\d.]+(?:e[+-]?\d+)?)\s*([kmgt]?)(i?)b?\s*", str(value).lower())
    try:
        unit = (1024.0 if found[3] else 1000.0) ** _PREFIXES[found[2]] if found else 0.0
        limit = float(found[1]) * unit if found else 0.0
    except ValueError:
        limit = 0.0
    if not 0 < limit < math.inf:
        raise SettingsError(
            f"max_memory is {value!r}; give an amount such as '4GB' or '800MB', or bytes"
        )
    return limit


def plan_memory(
    size: Size, settings: DetectorSettings, n_jobs: int, max_memory: str | float | None = None
) -> MemoryPlan:
    """Cut the work up so that it fits: smaller blocks first, then fewer processes.

    Raises
    ------
    SettingsError
        If nothing fits; the message says what would.

    Examples
    --------
    >>> plan = plan_memory(Size(1000, 1000, 5), DetectorSettings(), n_jobs=2, max_memory=4e9)
    >>> plan.n_jobs, plan.effects_per_block
    (2, 25)
    >>> plan_memory(Size(1000, 1000, 5), DetectorSettings(), n_jobs=2, max_memory=1e9)
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: 1000 series of 1000 slots with 5 lags take about ...
    """
    limit = memory_limit(max_memory)
    with memory_limited(limit):
        return _planned(size, settings, n_jobs, limit)


def _planned(size: Size, settings: DetectorSettings, n_jobs: int, limit: float) -> MemoryPlan:
    plan = _smallest_cut(size, settings, n_jobs, limit)
    if plan is not None:
        return plan
    least = _least_limit(size, settings)
    fits = [
        f"{what} {n}"
        for what, n in (
            ("max_lag", _largest(size, "max_lag", settings, limit)),
            ("the number of series", _largest(size, "n_series", settings, limit)),
            ("the number of slots", _largest(size, "n_slots", settings, limit)),
        )
        if n > 1
    ]
    advice = f"; {' or '.join(fits)} would fit, or" if fits else ";"
    raise SettingsError(
        f"{size.n_series} series of {size.n_slots} slots with {size.max_lag} lags take about "
        f"{least / 1e9:.3g} GB of memory, but only {limit / 1e9:.3g} GB may be used{advice} choose "
        f"`max_memory={least / 1e9:g}GB`"
    )


def _least_limit(size: Size, settings: DetectorSettings) -> float:
    """Give the least limit that would do, in steps of 10 MB; with more, less lies on disk."""
    limit = 0.0
    while True:
        with memory_limited(limit):
            n_bytes = _n_bytes(size, settings, 1, 1)
        if n_bytes <= limit:
            return limit
        limit = math.ceil(n_bytes / 1e7) * 1e7


def _smallest_cut(
    size: Size, settings: DetectorSettings, n_jobs: int, limit: float
) -> MemoryPlan | None:
    from joblib import effective_n_jobs

    most = effective_n_jobs(n_jobs)
    for jobs in range(most, 0, -1):
        for effects in _block_sizes(size):
            n_bytes = _n_bytes(size, settings, jobs, effects)
            if n_bytes <= limit:
                return MemoryPlan(n_jobs if jobs == most else jobs, effects, n_bytes)
    return None


def _block_sizes(size: Size) -> list[int]:
    """Give the numbers of effects that a block may have, the best first.

    Blocks are of one size but for the last, and mostly even in number, so that two workers end at
    about the same time. How many workers there are does not count: blocks of another size round
    differently.

    Examples
    --------
    >>> [_block_sizes(Size(1000, n_series, 5))[0] for n_series in (20, 51, 70, 300)]
    [10, 26, 18, 25]
    """
    best = max(10, min(25, _SLOTS_PER_BLOCK // max(1, size.n_slots)))
    n_pairs = max(1, math.ceil(size.n_series / (2 * best) - _SLACK))
    best = max(1, -(-size.n_series // (2 * n_pairs)))
    return [best, *(n for n in (10, 5, 2, 1) if n < best)]


def _largest(size: Size, what: str, settings: DetectorSettings, limit: float) -> int:
    """Give the largest number that would fit in place of the one there is; 0 if none does."""
    low, high = 0, int(getattr(size, what))
    while low < high:
        middle = (low + high + 1) // 2
        fits = _n_bytes(replace(size, **{what: middle}), settings, 1, 1) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _n_bytes(size: Size, settings: DetectorSettings, n_jobs: int, effects: int) -> float:
    """Estimate the bytes of all processes together."""
    slots, series, lags = size.n_slots, max(1, size.n_series), size.max_lag
    table, past = 8.0 * slots * series, 4.0 * slots * series * lags
    per_block = past / series * min(effects, series)
    table, past = (min(n, largest_in_memory()) for n in (table, past))  # the rest lies on disk
    matrices = 8.0 * series**2 * (20 + 8 * lags)
    most = n_candidates(slots, lags, series, settings)
    together = series <= max(TOGETHER, most)
    causes = series if together else min(max(most, size.n_required + 1), series)
    n_effects = series if together else min(effects, series)
    columns = settings.n_channels + causes * lags
    weights = 4.0 * n_effects * causes * lags * settings.n_folds * settings.n_channels
    batch = 4.0 * min(slots, 350) * n_effects * settings.n_folds * settings.n_channels
    features = 4.0 * min(NUMBERS, slots * n_effects * columns)
    grams = 8.0 * max(n_effects * columns**2, min(NUMBERS, causes * n_effects * columns**2))
    training, testing = 6 * weights + 10 * batch, 6 * features + 2 * grams
    main = _MAIN + 6 * table + 2 * past + matrices + _PER_SLOT * slots
    if together:  # threads share the tests
        return main + max(training, n_jobs * testing)
    screening = 24.0 * n_shared_products(series, lags) + 8.0 * TERMS_IN_ROWS
    work = max(training, testing, screening) + 3.0 * per_block * causes + past
    main += 1.5 * weights * series / n_effects
    n_jobs = min(n_jobs, math.ceil(series / effects))  # others would have nothing to do
    return main + (work if n_jobs == 1 else n_jobs * (_WORKER + work))
