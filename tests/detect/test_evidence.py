import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import cauchy, false_discovery_control, halfcauchy, norm

from causalformer.detect.evidence import (
    cauchy_combination,
    edge_local_fdr,
    edge_q,
    false_discovery_q,
    half_cauchy_combination,
    local_false_discovery,
    normal_p,
)

p_values = hnp.arrays(float, st.integers(1, 30), elements=st.floats(0, 1))
one_p = st.floats(1e-300, 1)


class TestFalseDiscoveryRate:
    @given(p=p_values)
    def test_equals_scipy(self, p):
        np.testing.assert_allclose(false_discovery_q(p), false_discovery_control(p))

    @given(p=p_values)
    def test_q_keeps_the_order_of_p_and_is_no_smaller(self, p):
        q = false_discovery_q(p)
        assert (np.diff(q[np.argsort(p)]) >= 0).all()
        assert ((q >= p * (1 - 1e-15)) & (q <= 1)).all()

    def test_a_single_test_needs_no_correction(self):
        assert false_discovery_q(np.array([0.03])).tolist() == [0.03]

    def test_no_tests_give_no_q(self):
        assert false_discovery_q(np.array([])).shape == (0,)

    def test_shape_is_kept(self):
        p = np.random.default_rng(0).random((3, 4))
        np.testing.assert_array_equal(false_discovery_q(p).ravel(), false_discovery_q(p.ravel()))

    def test_self_loops_and_edges_between_series_are_two_families(self):
        p = np.random.default_rng(0).random((4, 4)) ** 3
        own = np.eye(4, dtype=bool)
        q = edge_q(p, np.ones_like(own))
        np.testing.assert_allclose(q[own], false_discovery_control(p[own]))
        np.testing.assert_allclose(q[~own], false_discovery_control(p[~own]))

    def test_strong_self_loops_make_no_edge_between_series_more_likely(self):
        p = np.full((4, 4), 0.04)
        own = np.eye(4, dtype=bool)
        weak = edge_q(p, np.ones_like(own))
        np.fill_diagonal(p, 1e-20)
        np.testing.assert_array_equal(edge_q(p, np.ones_like(own))[~own], weak[~own])

    def test_what_is_not_tested_neither_counts_nor_is_found(self):
        p = np.random.default_rng(0).random((4, 4)) ** 3
        own, tested = np.eye(4, dtype=bool), np.random.default_rng(1).random((4, 4)) < 0.6
        p[~tested] = 1e-9
        q = edge_q(p, tested)
        assert (q[~tested] == 1).all()
        for family in (own & tested, ~own & tested):
            np.testing.assert_allclose(q[family], false_discovery_control(p[family]))


class TestCauchyCombination:
    @given(first=st.floats(1e-10, 0.99), second=st.floats(1e-10, 0.99))
    def test_equals_the_formula(self, first, second):
        statistic = (cauchy.isf(first) + cauchy.isf(second)) / 2
        combined = cauchy_combination(np.array([first]), np.array([second]))
        np.testing.assert_allclose(combined, cauchy.sf(statistic), rtol=1e-5)

    def test_a_p_value_of_one_does_not_outweigh_all_others(self):
        assert cauchy_combination(*np.array([[1e-5], [0.5], [1.0]]))[0] < 1e-4

    def test_weights_are_those_of_the_statistics(self):
        first, second = np.array([0.01]), np.array([0.3])
        statistic = (3 * cauchy.isf(first) + cauchy.isf(second)) / 4
        for weights in ((0.75, 0.25), (3, 1)):
            combined = cauchy_combination(first, second, weights=weights)
            np.testing.assert_allclose(combined, cauchy.sf(statistic), rtol=1e-5)

    @pytest.mark.parametrize("p", [1e-12, 1e-20, 1e-100, 1e-250])
    def test_tiny_p_values_keep_their_digits(self, p):
        combined = cauchy_combination(np.array([p]), np.array([0.5]))
        np.testing.assert_allclose(combined, 2 * p, rtol=1e-6)

    @given(first=st.floats(0, 1), second=st.floats(0, 1))
    def test_it_is_a_p_value_that_is_never_zero(self, first, second):
        combined = cauchy_combination(np.array([first]), np.array([second]))
        assert 0 < combined[0] <= 1

    @given(p=st.tuples(one_p, one_p, one_p).map(sorted), other=one_p)
    def test_more_evidence_never_makes_an_edge_less_likely(self, p, other):
        low, _, high = (cauchy_combination(np.array([value]), np.array([other])) for value in p)
        assert low[0] <= high[0] * (1 + 1e-6)

    @given(p=st.floats(1e-200, 0.99))
    def test_equal_tests_say_the_same_together(self, p):
        same = np.array([p])
        np.testing.assert_allclose(cauchy_combination(same, same), same, rtol=1e-5)

    def test_pairs_are_combined_one_by_one(self):
        p = np.random.default_rng(0).random((2, 3, 3))
        combined = cauchy_combination(*p)
        for place in np.ndindex(3, 3):
            alone = cauchy_combination(p[0][place].reshape(1), p[1][place].reshape(1))
            assert combined[place] == alone[0]


class TestHalfCauchy:
    @given(first=st.floats(1e-10, 0.99), second=st.floats(1e-10, 0.99))
    def test_is_the_half_cauchy_law_of_the_weighted_sum(self, first, second):
        statistic = 0.8 * halfcauchy.isf(first) + 0.2 * halfcauchy.isf(second)
        combined = half_cauchy_combination(
            np.array([first]), np.array([second]), weights=(0.8, 0.2)
        )
        np.testing.assert_allclose(combined, halfcauchy.sf(statistic), rtol=1e-5)

    def test_a_p_value_of_one_says_nothing(self):
        for p in (1e-250, 1e-5, 0.03):
            combined = half_cauchy_combination(np.array([p]), np.ones(1), weights=(0.8, 0.2))
            assert p < combined[0] <= 1.26 * p

    def test_of_two_uniform_ones_it_is_nearly_uniform(self):
        p_values = np.random.default_rng(0).random((2, 200_000))
        combined = half_cauchy_combination(*p_values, weights=(0.8, 0.2))
        for level in (0.01, 0.05):
            assert level <= (combined < level).mean() < 1.08 * level


class TestNormalP:
    def test_equals_scipy(self):
        z = np.linspace(-5, 30, 50)
        np.testing.assert_allclose(normal_p(z), norm.sf(z))

    def test_it_is_never_zero(self):
        assert normal_p(np.array([1e9, np.inf])).min() > 0


class TestLocalFalseDiscovery:
    @given(p=hnp.arrays(float, st.integers(1, 60), elements=one_p))
    def test_is_a_rate_that_grows_with_the_p_value(self, p):
        rate = local_false_discovery(p)
        assert ((rate >= 0) & (rate <= 1)).all()
        assert (np.diff(rate[np.argsort(p)]) >= -1e-12).all()

    def test_is_one_over_the_density_of_p_values(self):
        p = np.concatenate([np.linspace(0, 0.1, 51)[1:], np.linspace(0.1, 1, 51)[1:]])
        rate = local_false_discovery(p)  # half of them in a tenth of the range
        np.testing.assert_allclose(rate[:50], 0.2)
        np.testing.assert_allclose(rate[50:], 1.0)

    def test_a_pair_that_may_not_be_is_no_part_of_the_family(self):
        p = np.ones((10, 10))
        p[0, 1:] = [1e-9, 1e-9, 1e-9, 0.018, 0.5, 0.5, 0.5, 0.5, 0.5]
        tested = np.zeros((10, 10), dtype=bool)
        tested[0] = True
        doubt = edge_local_fdr(p, tested)
        np.testing.assert_array_equal(doubt[0, 1:], local_false_discovery(p[0, 1:]))
        assert doubt[0, 4] < 0.5
        assert (doubt[1, 2:] == 1).all()
        assert (np.diag(doubt) == 0).all()

    def test_keeps_the_form_of_what_is_given(self):
        p = np.array([[0.01, 0.5], [0.9, 1e-300]])
        np.testing.assert_array_equal(
            local_false_discovery(p), local_false_discovery(p.ravel()).reshape(2, 2)
        )
