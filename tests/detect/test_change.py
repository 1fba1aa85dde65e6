"""Mechanisms that change are noticed, with the pair and the time; others are not."""

import numpy as np
import pytest

from causalformer.detect.change import find_changes
from evidence_examples import samples_of

N = 400
HALF = np.arange(N) < N // 2


def system(weight, seed=0, n_series=3):
    """The first series drives the second by a weight that may change; memory in all."""
    x = np.random.default_rng(seed).standard_normal((N, n_series))
    for t in range(1, N):
        x[t] += 0.4 * x[t - 1]
        x[t, 1] += weight[t] * x[t - 1, 0]
    return x / x.std(axis=0)


def changes(x, *, drawn=True, scales=1, max_lag=2):
    n_series = x.shape[1]
    edges = np.zeros((n_series, n_series, max_lag), dtype=bool)
    edges[0, 1, 0] = drawn
    clock = (np.arange(N) + 0.5) / N
    return find_changes(
        [samples_of(x, max_lag)] * scales, edges, np.ones((n_series, n_series), bool), clock
    )


@pytest.mark.parametrize(
    ("weight", "slot"),
    [
        (np.where(HALF, 0.0, 0.9), 200),
        (np.where(HALF, 0.5, -0.5), 200),
        (np.where(np.arange(N) < 100, -0.5, 0.7), 100),
    ],
)
@pytest.mark.parametrize("drawn", [False, True])
def test_a_break_is_found_with_its_pair_and_time(weight, slot, drawn):
    first, *_ = changes(system(weight), drawn=drawn)
    assert (first.cause, first.effect, first.lag) == (0, 1, 1)
    assert abs(first.slot - slot) < 30
    assert first.p_value < 0.05


def test_a_link_that_is_switched_off_for_a_while_is_found():
    off = (np.arange(N) // 80) % 2 == 0
    first, *_ = changes(system(np.where(off, 0.0, 0.9)))
    assert (first.cause, first.effect) == (0, 1)


def test_what_stays_the_same_gives_no_alarm():
    assert sum(bool(changes(system(np.full(N, 0.5), seed))) for seed in range(40)) <= 2


def test_all_tests_count():
    """Without Bonferroni's bound one of sixteen tests would often be below the level."""
    alone = [c for s in range(40) for c in changes(system(np.full(N, 0.5), s), max_lag=4)]
    assert all(change.p_value <= 0.05 for change in alone)
    assert len(alone) <= 2


def test_a_change_must_show_on_every_scale():
    x = system(np.where(HALF, 0.5, -0.5))
    steady = system(np.full(N, 0.5))
    samples = [samples_of(x, 2), samples_of(steady, 2)]
    edges = np.zeros((3, 3, 2), dtype=bool)
    clock = np.linspace(0, 1, N)
    assert find_changes(samples[:1], edges, np.ones((3, 3), bool), clock)
    assert not find_changes(samples, edges, np.ones((3, 3), bool), clock)


def test_a_change_of_no_size_is_none():
    """Where hardly anything is left to explain, the least misfit is significant."""
    x = system(np.full(N, 0.5))
    before, wiggle = x[:-1, 0], np.where(HALF, 1, -1)[1:]
    x[1:, 2] = 5 * before + 0.05 * wiggle * before + 0.01 * x[1:, 2]
    x /= x.std(axis=0)
    assert not [c for c in changes(x, drawn=False) if c.effect == 2 and c.cause == 0]


def test_volatility_is_no_change():
    n_alarms = 0
    for seed in range(20):
        x = system(np.full(N, 0.5), seed)
        n_alarms += bool(changes(x * np.where(HALF, 1.0, 3.0)[:, None]))
    assert n_alarms <= 1


def test_gaps_hide_no_change_and_make_none():
    x = system(np.where(HALF, 0.5, -0.5))
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    first, *_ = changes(x, drawn=False)
    assert (first.cause, first.effect) == (0, 1)
    x = system(np.full(N, 0.5))
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    assert not changes(x)


def test_only_pairs_that_may_be_are_tested():
    x = system(np.where(HALF, 0.5, -0.5))
    samples = samples_of(x, 2)
    edges, tested = np.zeros((3, 3, 2), dtype=bool), np.ones((3, 3), dtype=bool)
    tested[0, 1] = False
    found = find_changes([samples], edges, tested, np.linspace(0, 1, N))
    assert (0, 1) not in {(c.cause, c.effect) for c in found}
