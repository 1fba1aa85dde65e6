"""Links within a slot: known graphs, a slow twin, and what must not be a link."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalformer.data.scaling import fit_normal_scores
from causalformer.detect import contemporaneous
from causalformer.detect.contemporaneous import (
    Present,
    Term,
    contemporaneous_evidence,
    make_present,
    no_links,
    standardised,
)
from causalformer.detect.criterion import negentropy
from causalformer.detect.edges import contemporaneous_q
from causalformer.policy import POLICY, Policy, varied
from evidence_examples import make_present as present_of
from evidence_examples import samples_of

NORMAL, LAWS = "standard_normal", ["laplace", "uniform", "exponential"]


def noise(n_series, law=NORMAL, n_slots=1000, seed=0):
    x = getattr(np.random.default_rng(seed), law)(size=(n_slots, n_series))
    return (x - x.mean(axis=0)) / x.std(axis=0)


def with_memory(x, links, memory=0.6):
    """Every series remembers; ``links`` are (cause, effect, weight) within the slot, in order."""
    x = x.copy()
    for t in range(1, len(x)):
        x[t] += memory * x[t - 1]
        for cause, effect, weight in links:
            x[t, effect] += weight * x[t, cause]
    return x


def linked(x, links):
    """The same without memory."""
    x = x.copy()
    for cause, effect, weight in links:
        x[:, effect] += weight * x[:, cause]
    return x


def found(x, terms=None, allowed=None, shown=None):
    present = present_of(x, terms, max_lag=2, shown=shown)
    allowed = ~np.eye(x.shape[1], dtype=bool) if allowed is None else allowed
    return contemporaneous_evidence(present, allowed)


def past_of_all(n_series):
    """All hang on the last value of all, as lagged tests find it where links pass memory on."""
    return [[Term(j, 0, 0) for j in range(n_series)] for _ in range(n_series)]


def pairs(matrix):
    return {(int(j), int(i)) for j, i in np.argwhere(matrix)}


def undirected(matrix):
    return {tuple(sorted(pair)) for pair in pairs(matrix)}


COLLIDER = [(0, 2, 0.7), (1, 2, 0.7)]
FORK = [(0, 1, 0.7), (0, 2, 0.7)]
CHAIN = [(0, 1, 0.8), (1, 2, 0.8)]
GRAPHS = {"collider": COLLIDER, "fork": FORK, "chain": CHAIN}


class TestKnownGraphs:
    @pytest.mark.parametrize("links", GRAPHS.values(), ids=GRAPHS)
    @pytest.mark.parametrize("law", LAWS)
    def test_noise_that_is_not_gaussian_orients_without_memory(self, links, law):
        evidence = found(linked(noise(3, law), links))
        truth = {(j, i) for j, i, _ in links}
        assert pairs(evidence.oriented) == pairs(evidence.linked) == truth
        assert not evidence.by_hidden_driver.any()

    @pytest.mark.parametrize("links", GRAPHS.values(), ids=GRAPHS)
    def test_the_past_orients_gaussian_noise(self, links):
        evidence = found(with_memory(noise(3), links), past_of_all(3))
        truth = {(j, i) for j, i, _ in links}
        assert pairs(evidence.linked) == pairs(evidence.oriented) == truth

    @pytest.mark.parametrize("links", [FORK, CHAIN], ids=["fork", "chain"])
    def test_gaussian_noise_without_memory_has_no_direction(self, links):
        evidence = found(linked(noise(3), links))
        assert undirected(evidence.linked) == {(j, i) for j, i, _ in links}
        assert not evidence.oriented.any()

    def test_causes_of_a_common_effect_are_not_joined_though_they_are_given_all_others(self):
        x = linked(noise(3), COLLIDER)
        precision = np.linalg.inv(np.corrcoef(x.T))
        assert abs(precision[0, 1]) > 0.3
        evidence = found(x)
        assert undirected(evidence.linked) == {(0, 2), (1, 2)}
        assert evidence.p_value[0, 1] > 0.05

    def test_gaussian_links_are_rarely_oriented_by_chance(self):
        oriented = [
            found(linked(noise(2, n_slots=300, seed=seed), [(0, 1, 0.8)])).oriented.any()
            for seed in range(60)
        ]
        assert np.mean(oriented) <= 0.1

    def test_noise_is_rarely_linked(self):
        p_value = np.array(
            [found(noise(2, n_slots=200, seed=seed)).p_value[0, 1] for seed in range(200)]
        )
        assert (p_value < 0.05).mean() < 0.1
        assert (p_value < 0.001).mean() < 0.01

    @pytest.mark.parametrize("bend", [np.square, lambda v: np.sin(2 * v), np.abs])
    def test_a_bent_link_is_found_and_oriented(self, bend):
        x = noise(3)
        x[:, 1] += bend(x[:, 0])
        evidence = found(x)
        assert pairs(evidence.oriented) == {(0, 1)}
        assert evidence.p_value[0, 1] < 1e-6

    def test_a_direction_turns_with_the_series(self):
        x, order = linked(noise(4, "laplace"), [*CHAIN, (0, 3, -0.6)]), [2, 0, 3, 1]
        plain, turned = found(x), found(x[:, order])
        at = np.ix_(order, order)
        np.testing.assert_array_equal(turned.linked, plain.linked[at])
        for name in ("p_value", "partial", "probability", "hidden"):
            one, other = getattr(turned, name), getattr(plain, name)[at]
            np.testing.assert_allclose(one, other, atol=1e-6)

    def test_the_sign_is_that_of_the_partial_correlation(self):
        evidence = found(linked(noise(3, "laplace"), [(0, 2, 0.7), (1, 2, -0.7)]))
        assert evidence.partial[0, 2] > 0.3
        assert evidence.partial[1, 2] < -0.3


class TestShape:
    def test_figures_are_symmetric_and_probabilities_add_up(self):
        evidence = found(linked(noise(4, "laplace"), CHAIN))
        for matrix in (evidence.p_value, evidence.partial, evidence.hidden):
            np.testing.assert_array_equal(matrix, matrix.T)
        drawn = evidence.linked | evidence.linked.T
        total = evidence.probability + evidence.probability.T
        np.testing.assert_allclose(total, drawn.astype(float))
        assert (evidence.probability[evidence.linked] >= 0.5).all()
        np.testing.assert_array_equal(np.diag(evidence.p_value), 1)

    def test_nobody_has_looked(self):
        none = no_links(3)
        assert not none.linked.any() | none.oriented.any() | none.by_hidden_driver.any()
        assert (none.p_value == 1).all()

    def test_a_direction_is_claimed_from_a_level_on(self):
        probability = np.array([[0, 0.95, 0.94], [0.05, 0, 0.99], [0.06, 0.01, 0]])
        drawn = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]) > 0
        ones, hidden = np.ones((3, 3)), np.array([[0, 0.94, 0.95], [0.94, 0, 0], [0.95, 0, 0]])
        evidence = contemporaneous.ContemporaneousEvidence(
            ones, ones, drawn, probability, hidden, np.zeros(3, bool)
        )
        assert pairs(evidence.oriented) == {(0, 1)}
        assert pairs(evidence.by_hidden_driver) == {(0, 2), (2, 0)}

    def test_a_direction_that_may_not_be_is_not_drawn(self):
        x, allowed = linked(noise(3, "laplace"), [(0, 1, 0.8)]), ~np.eye(3, dtype=bool)
        allowed[0, 1] = False
        assert pairs(found(x, allowed=allowed).linked) == {(1, 0)}
        allowed[1, 0] = False
        evidence = found(x, allowed=allowed)
        assert not evidence.linked.any()

    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 10**6), st.integers(2, 5))
    def test_there_is_no_directed_cycle(self, seed, n_series):
        rng = np.random.default_rng(seed)
        mix = np.eye(n_series) + 0.4 * rng.standard_normal((n_series, n_series))
        links = found(noise(n_series, n_slots=100, seed=seed) @ mix).linked
        reach = np.linalg.matrix_power(links + np.eye(n_series), n_series) > 0
        assert not (reach & reach.T & ~np.eye(n_series, dtype=bool)).any()

    def test_links_that_would_close_a_cycle_are_turned(self):
        drawn, probability = np.zeros((2, 3, 3))
        for (j, i), likely in {(0, 1): 0.9, (1, 2): 0.8, (2, 0): 0.6}.items():
            probability[j, i], probability[i, j] = likely, 1 - likely
        drawn, anything = drawn > 0, ~np.eye(3, dtype=bool)
        contemporaneous._draw(drawn, [(0, 1), (1, 2), (2, 0)], probability, anything)
        assert pairs(drawn) == {(0, 1), (1, 2), (0, 2)}


class TestNoLink:
    @pytest.mark.parametrize("n_series", [2, 3])
    def test_noise_whose_size_changes_together(self, n_series):
        """No more links than chance has, after the correction that edges get; as noise has."""
        drawn, naive = [], []
        for seed in range(40):
            storm = np.exp(with_memory(noise(1, seed=seed + 50), [], 0.95) * 0.35)
            x = noise(n_series, seed=seed) * storm
            evidence = found(x)
            q_value = contemporaneous_q(evidence, ~np.eye(n_series, dtype=bool))
            some = q_value <= 0.025  # one of two families: half of alpha
            drawn.append((evidence.linked & some).any())
            naive.append(abs(np.corrcoef(x.T)[0, 1]) > 2 / np.sqrt(len(x)))
        assert np.mean(naive) > 0.15
        assert np.mean(drawn) < 0.1

    def test_storms_are_no_factor(self):
        for seed in range(4):
            storm = np.exp(with_memory(noise(1, seed=seed + 50), [], 0.95) * 0.35)
            assert not found(noise(6, seed=seed) * storm).factor.any()

    def test_a_row_of_glitches(self):
        x = noise(3)
        x[500] = 1e6
        present = present_of(standardised(x), max_lag=2)
        evidence = contemporaneous_evidence(present, ~np.eye(3, dtype=bool))
        assert not evidence.linked.any()

    def test_constant_series(self):
        x = linked(noise(3, "laplace"), [(0, 1, 0.8)])
        now = standardised(np.column_stack([x, np.full(len(x), 7.1)]))
        present = contemporaneous.Present(
            now, np.ones(now.shape, bool), [[]] * 4, lambda _: now[:, 0], np.arange(len(x)), 1
        )
        evidence = contemporaneous_evidence(present, ~np.eye(4, dtype=bool))
        assert pairs(evidence.linked) == {(0, 1)}
        assert np.isfinite(evidence.p_value).all()

    def test_memory_alone(self):
        """Slow independent series look correlated unless their past is held fixed."""
        x = with_memory(noise(3, n_slots=400), [], memory=0.97)
        assert np.abs(np.corrcoef(x.T)[np.triu_indices(3, 1)]).max() > 0.2
        own = [[Term(i, 0, 0)] for i in range(3)]
        assert found(x, own).p_value.min() > 0.01

    def test_a_copy_gives_finite_figures(self):
        x = noise(3)
        x[:, 1] = x[:, 0]
        evidence = found(x)
        assert undirected(evidence.linked) == {(0, 1)}
        for name in ("p_value", "partial", "probability", "hidden"):
            assert np.isfinite(getattr(evidence, name)).all()


class TestLevels:
    """Where what is fast is noise of each series' own, levels show what joins them."""

    def seen_slowly(self, seed=0, n_slots=300):
        """A chain of slow series, each seen with noise and a delay of its own."""
        slow = linked(with_memory(noise(3, "exponential", n_slots + 2, seed), [], 0.8), CHAIN)
        x = np.column_stack([slow[2:, 0], slow[1:-1, 1] + slow[2:, 1], slow[2:, 2]])
        x = x / x.std(axis=0) + 0.7 * noise(3, NORMAL, n_slots, seed + 100)
        return (x - x.mean(axis=0)) / x.std(axis=0)

    def own_past(self, n_series, n_lags):
        return [[Term(i, lag, 0) for lag in range(n_lags)] for i in range(n_series)]

    @pytest.mark.parametrize("seed", [0, 3, 6])
    def test_what_is_seen_slowly_is_linked_by_levels(self, seed):
        x = self.seen_slowly(seed)
        present = present_of(x, self.own_past(3, 2), max_lag=2)
        view = contemporaneous.likelier_view(present)
        assert view.independent is not None
        assert not any(view.terms)
        evidence = found(x, self.own_past(3, 2))
        assert evidence.levels
        assert undirected(evidence.linked) >= {(0, 1), (1, 2)}

    @pytest.mark.parametrize("graph", GRAPHS)
    def test_links_within_the_slot_are_seen_in_surprises(self, graph):
        x = with_memory(noise(3), GRAPHS[graph])
        present = present_of(x, past_of_all(3), max_lag=2)
        assert contemporaneous.likelier_view(present) is present
        assert not found(x, past_of_all(3)).levels

    def test_what_the_past_of_others_foretells_is_seen_in_surprises(self):
        """A lagged link and memory make levels alike."""
        x = noise(2, n_slots=500)
        for t in range(1, len(x)):
            x[t] += 0.9 * x[t - 1]
            x[t, 1] += 0.3 * x[t - 1, 0]
        present = present_of(x, past_of_all(2), max_lag=2)
        levels = contemporaneous.as_levels(present)
        joined = contemporaneous._of_correlation(levels.now, levels.observed, levels.share)
        alone = present_of(x, self.own_past(2, 1), max_lag=2)
        assert joined > contemporaneous._evidence_of_surprises(alone) + POLICY.clearly
        assert contemporaneous.likelier_view(present) is present

    def test_memory_counts_as_fewer_samples(self):
        """Of two first-order series, (1 - ab) / (1 + ab) (Bartlett 1935)."""
        x = noise(2, n_slots=20_000)
        x[:, :1], x[:, 1:] = with_memory(x[:, :1], [], 0.8), with_memory(x[:, 1:], [], 0.5)
        shares = contemporaneous.as_levels(present_of(x, None, max_lag=2)).shares
        expected = [[0.36 / 1.64, 0.6 / 1.4], [0.6 / 1.4, 0.75 / 1.25]]
        assert shares == pytest.approx(np.array(expected), abs=0.06)

    def test_series_that_wander_have_no_levels_to_compare(self):
        x = np.cumsum(noise(3, n_slots=2000), axis=0)
        levels = contemporaneous.as_levels(present_of(x, None, max_lag=2))
        assert not levels.shares.any()
        assert contemporaneous._of_correlation(x, levels.observed, levels.share) == 0.0

    def test_a_few_rows_are_no_evidence(self):
        x = np.hstack([noise(1, n_slots=12)] * 4) + 0.1 * noise(4, n_slots=12, seed=1)
        every = np.ones(x.shape, dtype=bool)
        assert contemporaneous._of_correlation(x, every, 1.0) == 0.0
        assert contemporaneous._of_correlation(x[:, :3], every[:, :3], 1.0) > 10.0


class TestGaps:
    @pytest.mark.parametrize("law", ["laplace", "uniform"])
    def test_links_are_found_in_spite_of_missing_values(self, law):
        x = linked(noise(3, law, 2000), COLLIDER)
        shown = np.random.default_rng(1).random(x.shape) > 0.3
        evidence = found(x, shown=shown)
        assert pairs(evidence.linked) == {(0, 2), (1, 2)}
        assert evidence.p_value[0, 2] < 1e-6

    def test_series_that_never_meet_are_not_linked(self):
        x, shown = linked(noise(3), CHAIN), np.ones((1000, 3), dtype=bool)
        shown[::2, 0] = shown[1::2, 1] = False
        evidence = found(x, shown=shown)
        assert evidence.p_value[0, 1] == 1
        assert not evidence.linked[0, 1] | evidence.linked[1, 0]
        for name in ("p_value", "partial", "probability", "hidden"):
            assert np.isfinite(getattr(evidence, name)).all()

    def test_what_is_hidden_does_not_count(self):
        x = linked(noise(2, "laplace"), [(0, 1, 0.8)])
        shown = np.random.default_rng(1).random(x.shape) > 0.3
        wild = np.where(shown, x, x + 1e-3)
        wild = wild * x.std(axis=0) / wild.std(axis=0)  # `present_of` standardises
        one, other = found(x, shown=shown), found(wild, shown=shown)
        np.testing.assert_allclose(one.partial, other.partial, atol=1e-3)


class TestIrrelevant:
    @pytest.mark.parametrize("extra", ["row number", "noise", "many"])
    @pytest.mark.parametrize("law", ["laplace", "uniform"])
    def test_an_irrelevant_column_undoes_no_link(self, extra, law):
        x = linked(noise(3, law), CHAIN)
        more = {
            "row number": np.arange(1000.0)[:, None],
            "noise": noise(1, seed=7),
            "many": noise(10, seed=7),
        }[extra]
        evidence = found(np.hstack([x, more]))
        assert {(0, 1), (1, 2)} <= pairs(evidence.oriented)
        assert not evidence.factor.any()
        assert len(pairs(evidence.linked)) <= 3


class TestHiddenDrivers:
    def test_one_driver_of_six_series_is_a_factor(self):
        for law in (NORMAL, "laplace"):
            evidence = found(noise(6) + 0.8 * noise(1, law, seed=8))
            assert evidence.factor.all()
            assert not evidence.linked.any()

    def test_a_series_that_is_not_driven_is_no_part_of_it(self):
        x = np.hstack([noise(6) + noise(1, seed=8), noise(2, "laplace", seed=9)])
        x = linked(x, [(6, 7, 0.8)])
        evidence = found(x)
        assert np.flatnonzero(evidence.factor).tolist() == list(range(6))
        assert pairs(evidence.linked) == {(6, 7)}

    def test_links_beside_a_driver_are_drawn_without_a_direction(self):
        x = linked(noise(6) + noise(1, seed=8), [(1, 4, 0.8)])
        evidence = found(x)
        assert evidence.factor.all()
        assert not evidence.oriented.any()
        some = contemporaneous_q(evidence, ~np.eye(6, dtype=bool)) <= 0.01
        assert undirected(evidence.linked & some) == {(1, 4)}
        assert evidence.p_value[1, 4] == evidence.p_value[4, 1] < 1e-6
        assert (evidence.p_value[2, [0, 1, 3, 4, 5]] == 1).all()

    def test_a_driver_is_claimed_only_if_it_is_clearly_likelier(self, monkeypatch):
        x = noise(6) + noise(1, seed=8)
        monkeypatch.setattr(Policy, "clearly", 1e9)
        assert not found(x).factor.any()

    def test_one_of_the_series_is_no_hidden_driver(self):
        """All hang on the first one, which is as good a factor as any, but is seen."""
        x = linked(noise(6), [(0, i, 1.0) for i in range(1, 6)])
        evidence = found(x)
        assert not evidence.factor.any()
        assert undirected(evidence.linked) == {(0, i) for i in range(1, 6)}

    @pytest.mark.parametrize("law", [NORMAL, "laplace"])
    def test_a_graph_is_no_factor(self, law):
        x = linked(noise(6, law), [(i, i + 1, 0.8) for i in range(5)])
        evidence = found(x)
        assert not evidence.factor.any()
        assert undirected(evidence.linked) == {(i, i + 1) for i in range(5)}

    def test_a_driver_of_two_series_that_remember(self):
        hidden = []
        for seed in range(10):
            shared = noise(1, seed=seed + 30)
            x = with_memory(noise(2, seed=seed) + shared, [], memory=0.7)
            hidden.append(found(x, [[Term(0, 0, 0)], [Term(1, 0, 0)]]).hidden[0, 1])
        assert np.median(hidden) > 0.8  # beforehand one in five
        assert np.mean(np.array(hidden) > 0.5) >= 0.8

    def test_a_link_of_series_that_remember_is_none(self):
        for seed in range(10):
            x = with_memory(noise(2, seed=seed), [(0, 1, 0.8)], memory=0.7)
            assert found(x, past_of_all(2)).hidden[0, 1] < 0.2

    def test_without_memory_a_link_of_gaussian_noise_may_be_either(self):
        for seed in range(5):
            evidence = found(linked(noise(2, seed=seed), [(0, 1, 0.8)]))
            assert evidence.hidden[0, 1] < 0.5

    def test_one_link_in_five_is_a_hidden_drivers_beforehand(self):
        x = with_memory(noise(2), [(0, 1, 0.8)], memory=0.7)
        likely = found(x, past_of_all(2)).hidden[0, 1]
        with varied(hidden_share=0.5):
            even = found(x, past_of_all(2)).hidden[0, 1]
        assert likely / (1 - likely) == pytest.approx(even / (1 - even) / 4)


class TestOrder:
    """The best order of all, against trying every one."""

    def equations(self, law="laplace", n_series=4, seed=0, eliminate_past=True):
        x = noise(n_series, law, 300, seed)
        links = [(0, 1, 0.5), (0, 2, -0.4), (1, 3, 0.5), (2, 3, 0.4)]
        x = with_memory(x, [link for link in links if max(link[:2]) < n_series], 0.4)
        present = present_of(x, past_of_all(n_series), max_lag=1)
        every = ~np.eye(n_series, dtype=bool)
        designs = {i: contemporaneous._Design(present, every, i) for i in range(n_series)}
        return contemporaneous._Equations(designs, every, eliminate_past=eliminate_past)

    def cost(self, equations, order):
        return sum(equations.given(i, order[:k]).cost for k, i in enumerate(order))

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("law", [NORMAL, "laplace"])
    def test_as_by_trying_all(self, law, seed):
        equations = self.equations(law, seed=seed)
        costs = {order: self.cost(equations, order) for order in permutations(range(4))}
        every = contemporaneous._AllOrders(equations, [0, 1, 2, 3])
        assert costs[every.best] == pytest.approx(min(costs.values()))
        order = contemporaneous._Order(equations, every.best, every)
        for x, y in combinations(range(4), 2):
            forth = min(c for o, c in costs.items() if o.index(x) < o.index(y))
            assert every.cost(x, y) == pytest.approx(forth)
            back = min(c for o, c in costs.items() if o.index(x) > o.index(y))
            assert order.worse_reversed(x, y) == pytest.approx(back - forth)
            assert order.worse_reversed(y, x) == pytest.approx(forth - back)

    @pytest.mark.parametrize("seed", range(4))
    def test_climbing_finds_it_nearly_always(self, seed):
        equations = self.equations(seed=seed)
        every = contemporaneous._AllOrders(equations, [0, 1, 2, 3])
        best = self.cost(equations, every.best)
        climbed = contemporaneous._climbed(
            equations, contemporaneous._greedy_order(equations, [0, 1, 2, 3])
        )
        assert climbed.cost == pytest.approx(best)

    def test_a_large_graph_is_oriented_too(self, monkeypatch):
        monkeypatch.setattr(contemporaneous, "_MOST_EXACT", 0)
        evidence = found(linked(noise(4, "laplace"), [*CHAIN, (0, 3, 0.7)]))
        assert pairs(evidence.oriented) == {(0, 1), (1, 2), (0, 3)}

    def test_an_equation_is_the_least_squares_of_its_terms(self):
        x = linked(noise(3, "laplace", 400), COLLIDER)
        present = present_of(x, [[Term(i, 0, 0)] for i in range(3)], max_lag=1)
        every = ~np.eye(3, dtype=bool)
        design = contemporaneous._Design(present, every, 2)
        equation = design.fitted((0, 1), eliminate_past=True)
        assert equation.parents == (0, 1)
        now = present.now
        columns = np.column_stack(
            [np.ones(len(now)), present.column(Term(2, 0, 0)), now[:, 0], now[:, 1]]
        )
        left = now[:, 2] - columns @ np.linalg.lstsq(columns, now[:, 2], rcond=None)[0]
        left /= now[:, 2].std()
        np.testing.assert_allclose(equation.errors, left, atol=1e-4)
        n, n_offered = len(now), 3 + 8
        assert design.price == pytest.approx(np.log(n) + np.log(n_offered))
        assert design.price_of_link == pytest.approx(np.log(n) + np.log(2 / 0.8))
        prices = design.price + 2 * design.price_of_link
        expected = n * np.log((left**2).mean()) - 2 * n * negentropy(left) + prices
        assert equation.cost == pytest.approx(expected, abs=0.05)

    def test_a_bent_link_costs_more_than_a_straight_one(self):
        x = noise(2, n_slots=400)
        x[:, 1] += (x[:, 0] ** 2 - 1) / np.sqrt(2)
        present, every = present_of(x, max_lag=1), ~np.eye(2, dtype=bool)
        design = contemporaneous._Design(present, every, 1)
        equation = design.fitted((0,), eliminate_past=True)
        assert equation.now == ((0, 1),)
        n, left = len(equation.errors), (equation.errors**2).mean()
        expected = n * np.log(left) - 2 * n * negentropy(equation.errors)
        assert equation.cost - expected == pytest.approx(np.log(n) + np.log(3 / 0.2), abs=0.05)

    def test_a_term_goes_that_does_not_pay(self):
        x = linked(noise(3, n_slots=400), [(0, 2, 0.7)])
        present, every = present_of(x, past_of_all(3), max_lag=1), ~np.eye(3, dtype=bool)
        design = contemporaneous._Design(present, every, 2)
        assert design.fitted((0, 1), eliminate_past=True).parents == (0,)
        assert design.fitted((1,), eliminate_past=True).parents == ()
        thrifty, whole = (design.fitted((0,), eliminate_past=yes).cost for yes in (True, False))
        assert whole == pytest.approx(thrifty + 2 * design.price, abs=design.price)


class TestTested:
    """What found a link also tests it."""

    def test_by_what_it_adds_to_the_equation_of_its_effect(self):
        """Student's t of the link in the equation, but for the correction for unequal errors."""
        x = linked(noise(3, n_slots=200), [(0, 2, 0.3), (1, 2, 0.8)])
        present, every = present_of(x, past_of_all(3), max_lag=1), ~np.eye(3, dtype=bool)
        equation = contemporaneous._Design(present, every, 2).fitted((0, 1), eliminate_past=True)
        assert (equation.past, equation.now) == ((Term(2, 0, 0),), ((0, 0), (1, 0)))
        now = present.now
        past = [present.column(Term(i, 0, 0)) for i in (2, 0)]  # of the effect, and of the cause
        given = np.column_stack([np.ones(len(now)), *past, now[:, 1]])
        a, b = (v - given @ np.linalg.lstsq(given, v, rcond=None)[0] for v in now[:, [0, 2]].T)
        _, partial = contemporaneous._tested(present, 0, 2, equation)
        assert partial == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-4)

    def test_in_both_equations_that_may_have_found_it(self, monkeypatch):
        x, asked = linked(noise(3, "laplace"), [(0, 1, 0.8), (2, 1, 0.8)]), []

        def tested(_present, cause, effect, equation):
            asked.append((cause, effect, equation.parents))
            return (0.01 if cause < effect else 0.6), 0.3

        monkeypatch.setattr(contemporaneous, "_tested", tested)
        evidence = found(x)
        assert evidence.p_value[0, 1] == evidence.p_value[1, 0] == pytest.approx(0.02, abs=1e-3)
        assert evidence.partial[0, 1] == evidence.partial[1, 0] == 0.3
        assert asked[0] == (0, 1, (0, 2))
        assert asked[1][:2] == (1, 0)
        assert 1 in asked[1][2]

    def test_a_short_series_can_be_tested_beside_much_of_the_past(self):
        """Five series hang on five lags each: three of them would take a quarter of 60 slots."""
        passed = []
        for seed in range(20):
            x = linked(noise(5, n_slots=60, seed=seed), [(0, 2, 0.7), (1, 2, 0.7)])
            terms = [[Term(i, lag, 0) for lag in range(5)] for i in range(5)]
            present = present_of(x, terms, max_lag=5)
            evidence = contemporaneous_evidence(present, ~np.eye(5, dtype=bool))
            some = contemporaneous_q(evidence, ~np.eye(5, dtype=bool)) <= 0.05
            passed.append(((evidence.linked | evidence.linked.T) & some)[2, :2])
        assert np.mean(passed) > 0.8

    def test_a_link_does_not_count_against_itself(self):
        """With it, the variance of a normal correlation is (1 - r²)² / n; of any law as written."""
        x = linked(noise(2, n_slots=20_000), [(0, 1, 2.0)])
        ones = np.ones(x.shape)
        r = np.corrcoef(x.T)
        unequal = contemporaneous._unequal_with_link(x - x.mean(axis=0), ones, r - np.eye(2))
        assert unequal[0, 1] == pytest.approx(1.0, abs=0.1)
        u, v = ((x - x.mean(axis=0)) / x.std(axis=0)).T
        assert (u**2 * v**2).mean() > 2
        by_hand = ((u * v - r[0, 1] * (u**2 + v**2) / 2) ** 2).mean() / (1 - r[0, 1] ** 2) ** 2
        assert unequal[0, 1] == pytest.approx(by_hand)
        np.testing.assert_allclose(unequal, unequal.T)

    def test_unequal_errors_are_seen_where_both_series_are(self):
        x, shown = noise(2, "laplace", 500), np.ones((500, 2), dtype=bool)
        shown[300:, 1] = False
        x = np.where(shown, x, 0.0)
        none, whole = np.zeros((2, 2)), shown.astype(float)
        part = contemporaneous._unequal_with_link(x[:300], whole[:300], none)[0, 1]
        assert contemporaneous._unequal_with_link(x, whole, none)[0, 1] == pytest.approx(part)

    def test_straight_links_are_as_common_as_in_lagged_tests(self):
        """A p-value of a straight link counts by the share that the lagged tests give them."""
        x = linked(noise(2, n_slots=300), [(0, 1, 0.3)])
        left = np.moveaxis(contemporaneous.forms(x - x.mean(axis=0)), 2, 0)
        left = left - left.mean(axis=1, keepdims=True)
        p_value, r = contemporaneous._pair_tests(
            left, np.ones(x.shape, bool), np.zeros((2, 2)), np.ones((2, 2))
        )
        unequal = max(contemporaneous._unequal_with_link(left[0], np.ones(x.shape), r)[0, 1], 1)
        from scipy.stats import t as student

        straight = r[0, 1] * np.sqrt(298 / (1 - r[0, 1] ** 2)) / np.sqrt(unequal)
        assert p_value[0, 1] == pytest.approx(2 * student.sf(abs(straight), 298) / 0.8, rel=0.05)


class TestFigures:
    @pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
    def test_standardised_in_any_unit(self, scale):
        x = noise(2, n_slots=500)
        np.testing.assert_allclose(standardised(x * scale), standardised(x), atol=1e-9)

    def test_standardised_but_for_glitches(self):
        x = noise(2, n_slots=500)
        np.testing.assert_allclose(standardised(x), (x - x.mean(0)) / x.std(0))
        bad = x.copy()
        bad[7], bad[8, 0] = 1e9, np.nan
        z = standardised(bad)
        assert np.isnan(z[8, 0])
        assert np.nanmax(np.abs(z)) < 6
        rest = np.arange(500) > 8
        assert np.corrcoef(z[rest, 0], x[rest, 0])[0, 1] > 0.999
        assert np.nanstd(z, axis=0) == pytest.approx(1)

    def test_rare_events_are_no_glitches(self):
        x = np.where(np.random.default_rng(0).random((500, 1)) < 0.1, 1.0, 0.0)
        assert np.unique(standardised(x)).size == 2

    def test_a_series_without_a_spread_is_zero(self):
        assert (standardised(np.full((10, 1), 3.3)) == 0).all()


class TestMakePresent:
    """From normal scores and values to what the present is explained by."""

    def made(self, values, likely, error=1.0, max_lag=2):
        samples = samples_of(fit_normal_scores(values).apply(values), max_lag)
        n_series = values.shape[1]
        residual = np.full((len(samples), n_series), 0.25, dtype=np.float32)
        allowed = np.ones((n_series, n_series, max_lag), dtype=bool)
        return samples, make_present(
            values, samples, likely, allowed, np.full(n_series, error), residual
        )

    def system(self):
        x = noise(3, "laplace", 500)
        for t in range(2, len(x)):
            x[t, 0] += 0.5 * x[t - 1, 0]
            x[t, 1] += 0.8 * x[t - 2, 0]
        return x

    def likely(self):
        likely = np.zeros((3, 3), dtype=bool)
        likely[0, 1] = True
        return likely

    def test_terms_are_those_of_likely_causes_and_the_own_past(self):
        _, present = self.made(self.system(), self.likely())
        assert Term(0, 0, 0) in present.terms[0]
        assert Term(0, 1, 0) in present.terms[1]
        assert {term.cause for term in present.terms[2]} == {2}
        assert {term.cause for term in present.terms[1]} == {0, 1}

    def test_columns_are_of_standardised_values_not_of_scores(self):
        x = self.system()
        _, present = self.made(x, self.likely())
        z = (standardised(x))[1:-1, 0]
        np.testing.assert_allclose(present.column(Term(0, 0, 0)), z)
        np.testing.assert_allclose(present.column(Term(0, 0, 1)), (z**2 - 1) / np.sqrt(2))
        np.testing.assert_allclose(present.now, standardised(x)[2:])
        assert present.slot.tolist() == list(range(2, 500))

    def test_a_missing_past_value_has_the_rank_that_was_filled_in(self):
        x = self.system()
        x[100, 0] = np.nan
        samples, present = self.made(x, self.likely())
        value = present.column(Term(0, 0, 0))[99]  # slot 101
        assert np.isfinite(value)
        z = standardised(x)[:, 0]
        score = float(samples.past[99, 0, 0])
        from scipy.stats import norm

        assert (z[np.isfinite(z)] < value).mean() == pytest.approx(norm.cdf(score), abs=0.01)
        assert not present.observed[98, 0]
        assert present.now[98, 0] == 0

    def test_a_network_that_knows_more_is_one_more_term(self):
        for error, expected in ((1.0, False), (1e-6, True)):
            samples, present = self.made(self.system(), self.likely(), error)
            predicted = Term(1, contemporaneous.PREDICTED, 0)
            assert (predicted in present.terms[1]) == expected
            by_hand = samples.now.double().numpy()[:, 1] - 0.25
            np.testing.assert_allclose(present.column(predicted), by_hand)

    def test_long_series_are_thinned(self, monkeypatch):
        monkeypatch.setattr(contemporaneous, "MOST_SAMPLES", 200)
        _, present = self.made(self.system(), self.likely())
        assert len(present.now) == 166
        assert present.slot[:3].tolist() == [2, 5, 8]
        predicted = Term(1, contemporaneous.PREDICTED, 0)
        assert len(present.column(predicted)) == 166


def test_beside_a_network_that_knows_more_a_link_must_be_large():
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(3000, 2))
    x[:, 1] += 0.2 * x[:, 0]
    predicted = rng.standard_normal(3000)  # the network's, as good as none
    for terms, expected in (([], True), ([Term(0, -1, 0)], False)):
        present = Present(
            x / x.std(axis=0),
            np.ones(x.shape, dtype=bool),
            [terms, []],
            lambda _: predicted,
            np.arange(3000),
            1,
        )
        found = contemporaneous_evidence(present, ~np.eye(2, dtype=bool))
        assert found.linked.any() == expected


def test_factors_of_series_with_noise_that_is_not_gaussian_are_no_links():
    rng = np.random.default_rng(1)
    loading = rng.standard_normal((3, 12))
    x = rng.standard_normal((1500, 3)) @ loading + 0.8 * rng.laplace(size=(1500, 12))
    present = Present(
        x / x.std(axis=0),
        np.ones(x.shape, dtype=bool),
        [[]] * 12,
        lambda _: x[:, 0],
        np.arange(1500),
        1,
    )
    found = contemporaneous_evidence(present, ~np.eye(12, dtype=bool))
    assert found.factor.all()
    assert not found.linked.any()


class TestWanderingSeries:
    """Levels that wander are alike by chance: of random walks, few may be linked."""

    def walks(self, seed):
        return noise(4, n_slots=400, seed=seed).cumsum(axis=0)

    def test_few_are_linked(self):
        drawn = []
        for seed in range(40):
            evidence = found(self.walks(seed), [[Term(i, 0, 0)] for i in range(4)])
            q_value = contemporaneous_q(evidence, ~np.eye(4, dtype=bool))
            drawn.append((evidence.linked & (q_value <= 0.025)).any())
        assert np.mean(drawn) <= 0.1

    def test_no_p_value_is_absurd(self):
        for seed in range(40):
            evidence = found(self.walks(seed), [[Term(i, 0, 0)] for i in range(4)])
            assert evidence.p_value.min() > 1e-6


class TestExactRelations:
    def test_shares_of_a_whole_have_no_links(self):
        x = noise(5)
        x -= x.mean(axis=1, keepdims=True)
        assert not found(x).linked.any()

    def test_a_copy_is_linked(self):
        x = noise(3)
        x[:, 2] = x[:, 0]
        assert undirected(found(x).linked) == {(0, 2)}


class TestVeryMany:
    """Where one driver acts on very many series, all are candidates of each other."""

    def test_an_equation_has_no_more_candidates_than_samples_can_tell(self):
        x = noise(40, n_slots=200) + noise(1, n_slots=200, seed=1)
        present = present_of(x, max_lag=1)
        _, _, candidate = contemporaneous._first_look(present, ~np.eye(40, dtype=bool))
        most = int(199 / 2 / 4)
        assert candidate.sum(axis=0).min() >= 4
        assert np.median(candidate.sum(axis=0)) <= 2 * most  # each has its closest, either way
        assert (candidate == candidate.T).all()

    def test_a_factor_needs_no_search_for_an_order(self, monkeypatch):
        def searched(*_):
            raise AssertionError

        monkeypatch.setattr(contemporaneous, "_greedy_order", searched)
        x = noise(30, n_slots=400) + noise(1, n_slots=400, seed=1)
        assert found(x).factor.all()

    def test_orders_of_very_many_are_not_improved(self, monkeypatch):
        climbed = []
        monkeypatch.setattr(
            contemporaneous, "_climbed", lambda _, order: climbed.append(1) or order
        )
        x = linked(noise(16, n_slots=400), [(i, i + 1, 0.9) for i in range(15)])
        for most, expected in ((15, []), (16, [1])):
            monkeypatch.setattr(contemporaneous, "_MOST_MOVED", most)
            climbed.clear()
            found(x)
            assert climbed[:1] == expected


def test_links_of_a_clique_may_be_a_hidden_drivers():
    drawn = np.zeros((6, 6), dtype=bool)
    for x, y in combinations(range(4), 2):
        drawn[x, y] = drawn[y, x] = True
    drawn[3, 4] = drawn[4, 3] = drawn[4, 5] = drawn[5, 4] = drawn[3, 5] = drawn[5, 3] = True
    marked = contemporaneous._in_cliques(drawn)
    assert undirected(marked) == set(combinations(range(4), 2))  # three are not enough
    assert (marked == marked.T).all()
    drawn[0, 1] = drawn[1, 0] = False
    assert not contemporaneous._in_cliques(drawn).any()


def test_a_clique_of_links_is_as_likely_a_hidden_drivers():
    x = linked(noise(4, "laplace"), [(i, j, 0.9) for i, j in combinations(range(4), 2)])
    evidence = found(x)
    assert undirected(evidence.linked) == set(combinations(range(4), 2))
    assert evidence.hidden[evidence.linked].min() >= 0.5
    assert not evidence.by_hidden_driver.any()
