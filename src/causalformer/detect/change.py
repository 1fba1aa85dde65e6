r"""Mechanisms that change: whether what one series does to another stays the same over time.

Every effect is predicted by its own past and that of its causes, straight, and bent where an edge
was drawn. If a past value x acts on it by a weight that changes, the errors e move with x in some
parts of the record and against it in others. So e is asked whether it hangs on

.. math:: x_t \cos(\pi k t / n), \quad k = 1 \dots 6 ,

all freed from what the prediction rests on and from x itself: a score test (Nyblom 1989, Hansen
1992) against weights that follow six half waves, which a break, a flip of sign and a link that is
switched off for a while all do. Links that were not drawn are tested, too: one that exists in one
part only may be none on average. The variance is White's; the smallest p-value must pass
Bonferroni's bound for all tests. Where a prediction is wrong in shape its errors are alike for a
while and seem to change. So there are three more rules: the test must stay below the level with
Newey and West's variance (1987); it must find the change in the values as well as in their normal
scores, as a relation that is bent on one scale may be straight on the other; and the change must
explain one percent of the effect's variance, as an edge must.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causalformer.arrays import orthonormal
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
MOST_VALUES = 2**24  # of the past in memory; larger tables are not tested
_MOST_TESTS = 20_000  # more, and only edges that were drawn are tested
_NEARLY = 0.99  # what is clearly less need not be looked at closely
_AT_ONCE = 2**10  # rows
_SAME = 1e-6  # share of a column's square below which others say the same


@dataclass(frozen=True)
class Change:
    """An effect of a past value that changes over time.

    Attributes
    ----------
    cause, effect : int
        The series.
    lag : int
        Slots from the one to the other.
    slot : int
        Where the change is felt most.
    p_value : float
        How likely such a change is by chance, all tests counted.
    """

    cause: int
    effect: int
    lag: int
    slot: int
    p_value: float


def find_changes(
    scales: Sequence[Samples], drawn: BoolArray, tested: BoolArray, clock: FloatArray
) -> tuple[Change, ...]:
    """Test whether mechanisms change; see the module.

    Parameters
    ----------
    scales : sequence of Samples
        The same samples on different scales; a change must show on all of them.
    drawn : array of bool ``[cause, effect, lag - 1]``
        The edges of the graph.
    tested : array of bool ``[cause, effect]``
        Pairs that may have an edge.
    clock : array ``[slot]``
        When in its recording a slot of the table is, from 0 to 1.

    Returns
    -------
    tuple of Change
        The clearest change of every pair, most certain first.

    Examples
    --------
    >>> from causalformer.detect.samples import make_samples
    >>> x, y = np.random.default_rng(0).standard_normal((2, 400))
    >>> y[1:] += np.where(np.arange(399) < 200, 1, -1) * x[:-1]
    >>> samples = make_samples(np.array([x, y]).T, [slice(0, 400)], np.zeros(400, int), 1, 4)
    >>> clock = np.linspace(0, 1, 400)
    >>> no_edge, pairs = np.zeros((2, 2, 1), bool), ~np.eye(2, dtype=bool)
    >>> (found,) = find_changes([samples], no_edge, pairs, clock)
    >>> found.cause, found.effect, found.lag, abs(found.slot - 200) < 5
    (0, 1, 1, True)
    """
    own = np.eye(len(tested), dtype=bool)
    candidates = np.repeat((tested | own)[..., None], drawn.shape[2], axis=2)
    if candidates.sum() > _MOST_TESTS:
        candidates = drawn
    n_tests = max(int(candidates.sum()), 1)
    found: dict[tuple[int, int], list[Change]] = {}
    for samples in scales:
        past = samples.past.cpu().double().numpy().clip(-POLICY.reach, POLICY.reach)
        if samples.hidden is not None:  # a value that is missing tells of no change
            past[samples.hidden.cpu().numpy()] = 0.0
        waves = np.cos(np.pi * np.outer(clock[samples.slot], np.arange(2 * POLICY.half_waves + 1)))
        clearest: dict[tuple[int, int], Change] = {}
        for effect in range(drawn.shape[1]):
            of_effect = candidates[:, effect]
            for change in _changes_of(samples, past, effect, drawn[:, effect], of_effect, waves):
                p_value = min(change.p_value * n_tests, 1.0)
                pair = (change.cause, effect)
                if p_value <= min(
                    POLICY.level, clearest[pair].p_value if pair in clearest else 1.0
                ):
                    clearest[pair] = Change(*pair, change.lag, change.slot, p_value)
        for pair, change in clearest.items():
            found.setdefault(pair, []).append(change)
    on_all = [changes for changes in found.values() if len(changes) == len(scales)]
    return tuple(sorted((changes[0] for changes in on_all), key=lambda c: c.p_value))


def _changes_of(
    samples: Samples,
    past: FloatArray,
    effect: int,
    drawn: BoolArray,
    candidates: BoolArray,
    waves: FloatArray,
) -> list[Change]:
    """Test the past values of one effect; those that Newey and West's variance confirms."""
    from scipy.special import chdtrc

    bent = drawn.copy()
    bent[effect, 0] = True
    held = np.repeat(np.asarray(bent.any(axis=1))[:, None], bent.shape[1], axis=1)
    rows = np.flatnonzero(samples.observed[:, effect].cpu().numpy() > 0)
    if samples.hidden is not None:
        rows = rows[~samples.hidden.cpu().numpy()[:, held][rows].any(axis=1)]
    parts = past[:, held][rows], *_bent_forms(past[:, bent][rows])
    base = np.column_stack([np.ones(len(rows)), *parts])
    if len(rows) < POLICY.samples_per_weight * (base.shape[1] + POLICY.half_waves):
        return []
    axes = orthonormal(base)
    now = samples.now[:, effect].cpu().double().numpy()[rows].clip(-POLICY.reach, POLICY.reach)
    error = now - axes @ (axes.T @ now)
    by_chance = POLICY.half_waves * error.var()
    least = POLICY.least_share * len(now) * now.var() + by_chance
    n_neighbours = int(np.ceil(4 * (len(rows) / 100) ** (2 / 9)))
    large = _explained(past, candidates, rows, axes, error, waves) > _NEARLY * least
    waves, slot = waves[rows, 1 : POLICY.half_waves + 1], samples.slot[rows]
    found = []
    for cause, lag in np.argwhere(candidates)[large].tolist():
        x = past[rows, cause, lag]
        straight = x - axes @ (axes.T @ x)
        square = float(straight @ straight)
        moved = x[:, None] * waves
        moved = moved - axes @ (axes.T @ moved)
        if square > _SAME * float(x @ x):
            moved = moved - np.outer(straight, straight @ moved / square)
        score = moved * error[:, None]
        total, variance = score.sum(axis=0), score.T @ score
        statistic = float(total @ np.linalg.pinv(variance, hermitian=True) @ total)
        p_value = float(chdtrc(POLICY.half_waves, statistic))
        if p_value > POLICY.level:
            continue
        explained = total @ np.linalg.pinv(moved.T @ moved, hermitian=True) @ total
        if explained < least or _confirmed_p(score, n_neighbours) > POLICY.level:
            continue
        at = int(np.abs(np.cumsum(x * error - (x * error).mean())).argmax())
        found.append(Change(cause, effect, lag + 1, int(slot[min(at + 1, len(slot) - 1)]), p_value))
    return found


def _explained(
    past: FloatArray,
    candidates: BoolArray,
    rows: IntArray,
    axes: FloatArray,
    error: FloatArray,
    waves: FloatArray,
) -> FloatArray:
    """Give what the waves of every candidate explain of an error that is free from axes.

    All follows from sums of products in the rows; the product of two waves is the sum of two
    others.
    """
    k, n_waves = np.arange(POLICY.half_waves) + 1, POLICY.half_waves + 1
    n_axes, n_columns = axes.shape[1], int(candidates.sum())
    square, products = np.zeros((waves.shape[1], n_columns)), np.zeros((1, n_columns))
    for first in range(0, len(rows), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        x, wave = past[rows[some]][:, candidates], waves[rows[some]]
        both = np.column_stack([axes[some], error[some]])
        products = products + (wave[:, :n_waves, None] * both[:, None]).reshape(len(x), -1).T @ x
        square += wave.T @ x**2
    known, total = np.split(products.reshape(n_waves, n_axes + 1, n_columns), [n_axes], axis=1)
    beside, known = known[0], known[1:]  # wave, axis, column
    at_level, total = total[0, 0], total[1:, 0]
    gram = (square[np.abs(k - k[:, None])] + square[k + k[:, None]]) / 2  # wave, wave, column
    rest = square[0] - (beside**2).sum(axis=0)
    by_itself = rest > _SAME * square[0]
    straight = np.where(by_itself, 1.0 / np.sqrt(np.where(by_itself, rest, 1.0)), 0.0)
    along = (square[k] - (known * beside).sum(axis=1)) * straight
    total = (total - along * straight * at_level).T
    gram = np.moveaxis(gram - along * along[:, None], -1, 0)
    gram = gram - np.einsum("kac,lac->ckl", known, known)
    weights = np.linalg.pinv(gram, hermitian=True) @ total[..., None]
    return np.asarray((total * weights[..., 0]).sum(axis=1))


def _bent_forms(past: FloatArray) -> list[FloatArray]:
    """Give the bent forms of past values that `causalformer.detect.few_terms` has."""
    return [past**2, past**3, np.sin(2.0 * past), np.cos(2.0 * past), np.abs(past)]


def _confirmed_p(score: FloatArray, n_neighbours: int) -> float:
    """Give the p-value with Newey and West's variance."""
    from scipy.special import chdtrc

    total, variance = score.sum(axis=0), score.T @ score
    for distance in range(1, n_neighbours + 1):
        product = score[distance:].T @ score[:-distance]
        variance = variance + (1 - distance / (n_neighbours + 1)) * (product + product.T)
    statistic = float(total @ np.linalg.pinv(variance, hermitian=True) @ total)
    return float(chdtrc(score.shape[1], max(statistic, 0.0)))
