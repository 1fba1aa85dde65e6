"""Hidden drivers of lagged edges: told from edges by what the cause remembers."""

from dataclasses import replace

import numpy as np
import pytest

from causalformer.detect import hidden
from causalformer.detect.contemporaneous import PREDICTED, Term
from causalformer.detect.hidden import beside_a_driver, hidden_drivers
from evidence_examples import make_evidence, make_present, samples_of

N_SLOTS = 1500


def noise(n_series, n_slots=N_SLOTS, seed=0):
    return np.random.default_rng(seed).standard_normal((n_slots, n_series))


def likely(x, terms, lag=1, shown=None):
    """How likely a hidden driver is behind 0 -> 1 at a lag; `terms` are (cause, lag) by effect."""
    past = [[Term(cause, at - 1, 0) for cause, at in some] for some in terms]
    edges = np.zeros((x.shape[1], x.shape[1]), dtype=bool)
    edges[0, 1] = True
    at = np.full(edges.shape, lag - 1)
    return hidden_drivers(make_present(x, past, shown=shown), edges, at)


def direct(memory=0.6, seed=0, n_slots=N_SLOTS):
    """0 has a memory and drives 1 after a slot."""
    x = noise(2, n_slots, seed)
    for t in range(1, n_slots):
        x[t, 0] += memory * x[t - 1, 0]
        x[t, 1] += x[t - 1, 0]
    return x


def driven(memory=0.6, seed=0, own=0.0, n_slots=N_SLOTS):
    """White noise drives 0, which has a memory, and 1 a slot later."""
    x, driver = noise(2, n_slots, seed), noise(1, n_slots, seed + 100)[:, 0]
    for t in range(2, n_slots):
        x[t, 0] += memory * x[t - 1, 0] + driver[t - 1]
        x[t, 1] += own * x[t - 1, 1] + driver[t - 2]
    return x


# The price of a second weight, log n / 2, bounds the evidence against one: with one edge in 1500
# slots a hidden driver is at most 39 times likelier, with a probability of .89
SUSPECTED = 0.6

FROM_0 = ([(0, 1)], [(0, 1)])
WITH_MEMORY = ([(0, 1)], [(0, 1), (1, 1)])


@pytest.mark.parametrize("seed", range(5))
def test_an_edge_follows_the_level_of_its_cause(seed):
    assert likely(direct(seed=seed), FROM_0)[0, 1] < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_a_hidden_driver_follows_its_surprises(seed):
    assert likely(driven(seed=seed), FROM_0)[0, 1] > SUSPECTED


def test_only_edges_have_a_figure():
    found = likely(driven(), FROM_0)
    assert (found > 0).tolist() == [[False, True], [False, False]]
    no_edge = hidden_drivers(make_present(driven()), np.zeros((2, 2), bool), np.zeros((2, 2), int))
    assert not no_edge.any()


def test_a_hidden_driver_is_found_though_the_effect_remembers():
    assert likely(driven(own=0.5), WITH_MEMORY)[0, 1] > SUSPECTED


def test_noise_that_remembers_as_the_cause_does_is_no_hidden_driver():
    """With the past of the effect given, x(t - 1) - a x(t - 2) is what acts, and a surprise."""
    for seed in range(5):
        x, e = noise(2, seed=seed), noise(1, seed=seed + 50)[:, 0]
        for t in range(1, N_SLOTS):
            x[t, 0] += 0.6 * x[t - 1, 0]
            e[t] += 0.6 * e[t - 1]
        x[1:, 1] = x[:-1, 0] + e[1:]
        assert likely(x, WITH_MEMORY)[0, 1] < 0.5


def test_an_effect_with_noise_that_has_another_memory_is_no_hidden_drivers():
    """The effect remembers, too: of the two roots of its own past, one is that of its noise."""
    for seed in range(5):
        x, e = noise(2, seed=seed), noise(1, seed=seed + 50)[:, 0]
        for t in range(2, N_SLOTS):
            x[t, 0] += 0.6 * x[t - 1, 0]
            e[t] += 0.6 * e[t - 1]
            x[t, 1] = 0.3 * x[t - 1, 1] + x[t - 1, 0] + e[t]
        terms = ([(0, 1)], [(0, 1), (0, 2), (1, 1), (1, 2)])
        assert likely(x, terms)[0, 1] < 0.5


def test_an_edge_at_two_lags_is_no_hidden_drivers():
    for seed in range(5):
        x = direct(seed=seed)
        x[2:, 1] -= 0.9 * x[:-2, 0]
        assert likely(x, ([(0, 1)], [(0, 1), (0, 2)]))[0, 1] < 0.5


def test_nothing_is_said_of_effects_that_the_network_knows_better():
    terms = [[Term(0, 0, 0)], [Term(0, 0, 0), Term(1, PREDICTED, 0)]]
    edges = np.array([[False, True], [False, False]])
    found = hidden_drivers(make_present(driven(), terms), edges, np.zeros((2, 2), int))
    assert found[0, 1] == 0


def test_without_memory_nothing_is_said():
    for seed in range(5):
        assert likely(driven(memory=0.0, seed=seed), FROM_0)[0, 1] < 0.5


@pytest.mark.parametrize("n_edges", [2, 20, 90])
def test_many_edges_of_which_nothing_can_be_said_are_not_suspected(n_edges):
    """Without past terms, level and surprise are the same."""
    n_series = 10
    edges = np.zeros((n_series, n_series), dtype=bool)
    off = np.argwhere(~np.eye(n_series, dtype=bool))
    edges[tuple(off[:n_edges].T)] = True
    present = make_present(noise(n_series, 400))
    assert hidden_drivers(present, edges, np.zeros(edges.shape, int)).max() < 0.05


@pytest.mark.parametrize(("times", "expected"), [(8, 3 / 7), (5, 0), (1e9, 1)])
def test_four_edges_are_direct_beforehand(monkeypatch, times, expected):
    """The share s of hidden drivers is the likeliest: of one edge p(s) = 5 s."""
    monkeypatch.setattr(hidden, "_log_odds", lambda *_: np.log(times))
    assert likely(direct(), FROM_0)[0, 1] == pytest.approx(expected, abs=1e-6)


def test_most_edges_of_a_driven_graph_are_suspected_together():
    """What is doubtful alone is likely where the other edges are a hidden driver's."""
    few = 150
    alone, together = [], []
    for seed in range(10):
        weak = driven(memory=0.3, seed=seed, n_slots=few)
        pairs = [weak, *(driven(seed=20 + k, n_slots=few) for k in range(3))]
        x = np.hstack(pairs)
        terms = [[Term(i - i % 2, 0, 0)] for i in range(8)]
        edges = np.zeros((8, 8), dtype=bool)
        edges[0, 1] = True
        present, lag = make_present(x, terms), np.zeros((8, 8), int)
        alone.append(hidden_drivers(present, edges, lag)[0, 1])
        edges[[2, 4, 6], [3, 5, 7]] = True
        together.append(hidden_drivers(present, edges, lag)[0, 1])
    assert np.mean(together) > np.mean(alone) + 0.1
    assert (np.array(together) >= np.array(alone)).all()


@pytest.mark.parametrize("make", [direct, driven])
def test_gaps_do_not_turn_it_round(make):
    x = make()
    shown = np.random.default_rng(1).random(x.shape) > 0.2
    x = np.where(shown, x, 0.0)
    found = likely(x, FROM_0, shown=shown)[0, 1]
    assert (found > 0.5) == (make is driven)


def test_too_few_slots_say_nothing():
    assert likely(driven(n_slots=32), FROM_0)[0, 1] < 0.01  # 28 samples have a past


def test_the_lag_is_the_edges():
    x = driven()
    x[2:, 1] = x[:-2, 1].copy()
    later = ([(0, 1)], [(0, 3)])
    assert likely(x, later, lag=3)[0, 1] > SUSPECTED


def beside(x, chosen, *, within=(), by_network=(), max_lag=2):
    """Test pairs beside a hidden driver of all series; None if there is no such driver."""
    n_series = x.shape[1]
    scores = (x - x.mean(axis=0)) / x.std(axis=0)
    evidence = make_evidence(n_series, max_lag)
    evidence = replace(evidence, samples=samples_of(scores, max_lag))
    terms = [
        [Term(i, 0, 0), *(Term(j, 0, 0) for j, k in chosen if k == i)] for i in range(n_series)
    ]
    for i in by_network:
        terms[i].append(Term(i, PREDICTED, 0))
    allowed = np.ones((n_series, n_series, max_lag), dtype=bool)
    present = make_present(x, terms, max_lag=max_lag)
    return beside_a_driver(
        evidence, present, allowed, pairs(chosen, n_series), pairs(within, n_series)
    )


def pairs(some, n_series):
    matrix = np.zeros((n_series, n_series), dtype=bool)
    for pair in some:
        matrix[pair] = True
    return matrix


def eight_driven(seed=0, n_slots=600):
    """A hidden driver with a memory acts on eight series within the slot."""
    x, driver = noise(8, n_slots, seed), noise(1, n_slots, seed + 9)[:, 0]
    for t in range(1, n_slots):
        driver[t] += 0.9 * driver[t - 1]
    return x + 0.7 * driver[:, None]


RING = [(i, (i + 1) % 8) for i in range(8)]


def test_edges_of_a_driver_with_a_memory_lose_their_evidence():
    found = beside(eight_driven(), RING)
    between = ~np.eye(8, dtype=bool)
    assert np.median(found.pairs.p_value[between]) > 0.2
    assert (found.q_value[between] <= 0.05).mean() < 0.05
    assert found.pairs.size[between].max() < 0.1


def test_true_edges_beside_a_driver_are_found_chosen_before_or_not():
    x = eight_driven()
    x[1:, 1] += noise(8, len(x))[:-1, 0]  # what 0 has for itself
    for chosen in (RING, RING[1:]):
        found = beside(x, chosen)
        assert found.q_value[0, 1] < 1e-3
        assert found.q_value[2, 3] > 0.05
        assert found.pairs.lag_profile[0, 1].argmax() == 0


def test_memory_keeps_its_evidence():
    found = beside(eight_driven(), RING)
    assert (np.diag(found.pairs.p_value) == 0.9).all()


def test_a_clean_system_has_no_such_driver():
    for seed in range(3):
        x = noise(8, 600, seed)
        for t in range(1, len(x)):
            x[t] += 0.5 * x[t - 1]
            x[t, 1:] += 0.4 * x[t - 1, :-1]
        assert beside(x, [(i, i + 1) for i in range(7)]) is None


def test_what_comes_through_links_within_the_slot_is_no_driver():
    x, links = noise(6, 1000), [(i, i + 1) for i in range(5)]
    for t in range(1, len(x)):
        x[t] += 0.6 * x[t - 1]
        for cause, effect in links:
            x[t, effect] += 0.9 * x[t, cause]
    assert beside(x, []) is not None
    assert beside(x, [], within=links) is None


def test_effects_that_the_network_knows_better_are_left_out():
    assert beside(eight_driven(), RING, by_network=range(8)) is None
    found = beside(eight_driven(), RING, by_network=[3])
    assert (found.pairs.p_value[:, 3] == 0.9).all()
    assert found.pairs.p_value[2, 4] != 0.9


def test_three_series_have_no_factor():
    assert beside(eight_driven()[:, :3], [(0, 1), (1, 2)]) is None
    assert beside(eight_driven()[:, :4], [(0, 1), (1, 2)]) is not None


def test_too_few_common_samples_have_no_factor():
    present = make_present(eight_driven(n_slots=18), max_lag=3)
    assert hidden._past_of_factors(present) is None
    present = make_present(eight_driven(n_slots=19), max_lag=3)
    assert hidden._past_of_factors(present) is not None


def test_the_past_of_the_factor_is_that_of_the_driver():
    x, driver = noise(6, 2000), noise(1, 2000, 5)[:, 0]
    for t in range(1, len(x)):
        driver[t] += 0.8 * driver[t - 1]
        x[t] += 0.5 * x[t - 1] + driver[t]
    terms = [[Term(i, 0, 0)] for i in range(6)]
    past = hidden._past_of_factors(make_present(x, terms, max_lag=3))
    for lag in (1, 2, 3):
        then = driver[3 - lag : len(driver) - lag]
        assert abs(np.corrcoef(past[10:, 0, lag - 1], then[10:])[0, 1]) > 0.9


def test_errors_that_have_nothing_in_common_have_no_factor():
    x, memory = noise(6, 1000), np.array([0.9, 0.8, 0.9, 0.8, 0.9, 0.8])
    for t in range(1, len(x)):
        x[t] += memory * x[t - 1] + 0.1 * np.roll(x[t - 1], 1)
    terms = [[Term(i, 0, 0), Term((i - 1) % 6, 0, 0)] for i in range(6)]
    assert hidden._past_of_factors(make_present(x, terms, max_lag=2)) is None
