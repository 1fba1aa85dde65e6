"""Hidden drivers of lagged edges: told from edges by what the cause remembers."""

from dataclasses import replace

import numpy as np
import pytest

from causalformer.detect import hidden
from causalformer.detect.contemporaneous import Term
from causalformer.detect.hidden import explained_by_a_factor, hidden_drivers
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


FROM_0 = ([(0, 1)], [(0, 1)])
WITH_MEMORY = ([(0, 1)], [(0, 1), (1, 1)])


@pytest.mark.parametrize("seed", range(5))
def test_an_edge_follows_the_level_of_its_cause(seed):
    assert likely(direct(seed=seed), FROM_0)[0, 1] < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_a_hidden_driver_follows_its_surprises(seed):
    assert likely(driven(seed=seed), FROM_0)[0, 1] > 0.95


def test_only_edges_have_a_figure():
    found = likely(driven(), FROM_0)
    assert (found > 0).tolist() == [[False, True], [False, False]]
    no_edge = hidden_drivers(make_present(driven()), np.zeros((2, 2), bool), np.zeros((2, 2), int))
    assert not no_edge.any()


def test_a_hidden_driver_is_found_though_the_effect_remembers():
    assert likely(driven(own=0.5), WITH_MEMORY)[0, 1] > 0.95


def test_noise_that_remembers_as_the_cause_does_is_no_hidden_driver():
    """With the past of the effect given, x(t - 1) - a x(t - 2) is what acts, and a surprise."""
    for seed in range(5):
        x, e = noise(2, seed=seed), noise(1, seed=seed + 50)[:, 0]
        for t in range(1, N_SLOTS):
            x[t, 0] += 0.6 * x[t - 1, 0]
            e[t] += 0.6 * e[t - 1]
        x[1:, 1] = x[:-1, 0] + e[1:]
        assert likely(x, WITH_MEMORY)[0, 1] < 0.5


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
    assert likely(x, later, lag=3)[0, 1] > 0.95


def factor_of(x, chosen, max_lag=2, within=None):
    """Ask whether a hidden driver of all series explains some edges."""
    n_series = x.shape[1]
    scores = (x - x.mean(axis=0)) / x.std(axis=0)
    evidence = make_evidence(n_series, max_lag)
    evidence = replace(evidence, samples=samples_of(scores, max_lag))
    edges = np.zeros((n_series, n_series), dtype=bool)
    edges[tuple(np.transpose(chosen))] = True
    terms = [
        [Term(i, 0, 0), *(Term(j, 0, 0) for j, k in chosen if k == i)] for i in range(n_series)
    ]
    allowed = np.ones((n_series, n_series, max_lag), dtype=bool)
    present = make_present(x, terms, max_lag=max_lag)
    links = np.zeros_like(edges) if within is None else within
    return explained_by_a_factor(evidence, present, allowed, edges, links, 0.05, 0.01)


def eight_driven(seed=0, n_slots=600):
    """A hidden driver with a memory acts on eight series within the slot."""
    x, driver = noise(8, n_slots, seed), noise(1, n_slots, seed + 9)[:, 0]
    for t in range(1, n_slots):
        driver[t] += 0.9 * driver[t - 1]
    return x + 0.7 * driver[:, None]


RING = [(i, (i + 1) % 8) for i in range(8)]


def test_false_edges_of_a_driver_with_a_memory_are_explained():
    found = factor_of(eight_driven(), RING)
    assert found is not None
    assert found[tuple(np.transpose(RING))].mean() > 0.8
    assert not found[~np.isin(np.arange(64).reshape(8, 8), [8 * j + i for j, i in RING])].any()


def test_true_edges_beside_a_driver_are_kept():
    x = eight_driven()
    x[1:, 1] += noise(8, len(x))[:-1, 0]  # what 0 has for itself
    found = factor_of(x, RING)
    assert found is not None
    assert not found[0, 1]
    assert found[2, 3]


def test_a_clean_system_has_no_such_driver():
    for seed in range(3):
        x = noise(8, 600, seed)
        for t in range(1, len(x)):
            x[t] += 0.5 * x[t - 1]
            x[t, 1:] += 0.4 * x[t - 1, :-1]
        assert factor_of(x, [(i, i + 1) for i in range(7)]) is None


def test_what_comes_through_links_within_the_slot_is_no_drivers_work():
    links = np.zeros((5, 5), dtype=bool)
    links[0, 1:] = True
    blamed = []
    for seed in range(5):
        x = noise(5, 800, seed)
        for t in range(1, len(x)):
            x[t] += 0.6 * x[t - 1]
            x[t, 1:] += 0.7 * x[t, 0]
        assert factor_of(x, [(0, 1)], within=links) is None
        blamed.append(factor_of(x, [(0, 1)]) is not None)
    assert all(blamed)


def test_three_series_have_no_factor():
    assert factor_of(eight_driven()[:, :3], [(0, 1), (1, 2)]) is None
    assert factor_of(eight_driven()[:, :4], [(0, 1), (1, 2)]) is not None


def test_too_few_common_samples_have_no_factor():
    present = make_present(eight_driven(n_slots=18), max_lag=3)
    assert hidden._weights_of_factor(present) is None
    present = make_present(eight_driven(n_slots=19), max_lag=3)
    assert hidden._weights_of_factor(present) is not None


def test_the_factor_weighs_those_most_that_it_drives_most():
    x = noise(6, 2000) + np.array([0, 0.5, 1, 1, 1, 2]) * noise(1, 2000, 5)
    weight = hidden._weights_of_factor(make_present(x))
    size = np.abs(weight)
    assert size[0] < 0.1 * size[5]
    assert size[1] < size[2:5].min()
    assert size[2:5].max() < size[5]
