"""Hidden drivers of many series, beside links between single ones."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from causalformer.detect import factors
from causalformer.detect.criterion import negentropy
from causalformer.detect.factors import BesideFactors, factor_model, links_beside_factors

PRICE = 10.0


def noise(n_series, n_slots=800, seed=0):
    return np.random.default_rng(seed).standard_normal((n_slots, n_series))


def fitted(x, past=None, own=None, before=None, price=PRICE):
    """Let all links in the order of the columns be, none of the past unless it is given."""
    n_series = x.shape[1]
    past = [np.zeros((len(x), 0))] * n_series if past is None else past
    own = [np.zeros(columns.shape[1], dtype=bool) for columns in past] if own is None else own
    before = np.triu(np.ones((n_series, n_series), dtype=bool), 1) if before is None else before
    scale = x.std(axis=0)
    now = (x - x.mean(axis=0)) / scale
    return links_beside_factors(past, own, now, before, price, price)


def links(found):
    return [tuple(pair) for pair in np.argwhere(found.gain).tolist()]


class TestWhatIsFound:
    def test_one_driver_without_links(self):
        found = fitted(noise(6) + noise(1, seed=1))
        assert found.driven.all()
        assert links(found) == []
        np.testing.assert_allclose(np.abs(found.loading[:, 0]), np.sqrt(0.5), atol=0.1)

    @pytest.mark.parametrize("seed", [0, 2, 3])
    def test_links_beside_a_driver(self, seed):
        """The strongest pair is no factor of its own: the start is one that few links change."""
        x = noise(6, seed=seed) + noise(1, seed=seed + 40)
        x[:, 3] -= 0.7 * x[:, 1]
        x[:, 5] += 0.7 * x[:, 2]
        assert links(fitted(x)) == [(1, 3), (2, 5)]

    def test_only_links_that_may_be(self):
        x = noise(6) + noise(1, seed=1)
        x[:, 3] -= 0.7 * x[:, 1]
        found = fitted(x, before=np.zeros((6, 6), dtype=bool))
        assert found is None or links(found) == []

    def test_a_series_that_is_not_driven(self):
        x = np.hstack([noise(5) + noise(1, seed=1), noise(2, seed=2)])
        assert fitted(x).driven.tolist() == [True] * 5 + [False] * 2

    def test_as_many_drivers_as_pay(self):
        weights = np.random.default_rng(5).standard_normal((3, 12))
        for n_factors in (1, 2, 3):
            x = noise(12) + noise(n_factors, seed=1) @ weights[:n_factors]
            found = fitted(x)
            assert found.loading.shape == (12, n_factors)
            assert len(links(found)) <= 1

    def test_the_past_is_freed_from_the_driver(self):
        """A weak past that the noise of the driver hides is found beside the driver."""
        x, then = noise(6) + 5 * noise(1, seed=1), noise(1, seed=6)
        x[:, 2] += 0.4 * then[:, 0]
        alone = np.corrcoef(then[:, 0], x[:, 2])[0, 1]
        assert -len(x) * np.log1p(-(alone**2)) < PRICE  # does not pay without it
        with_it, without = fitted(x, [then] * 6), fitted(x)
        assert without.cost - with_it.cost > 50

    def test_what_always_stays_costs_its_price(self):
        x, then = noise(5) + noise(1, seed=1), noise(1, seed=3)
        free = fitted(x, [then] * 5)
        kept = fitted(x, [then] * 5, [np.ones(1, dtype=bool)] * 5)
        assert kept.cost == pytest.approx(free.cost + 5 * PRICE, abs=PRICE)


class TestNoFactor:
    def test_of_three_series(self):
        assert fitted(noise(3) + noise(1, seed=1)) is None

    def test_of_noise(self):
        for seed in range(5):
            assert fitted(noise(6, seed=seed)) is None

    def test_of_noise_whose_size_changes_together(self):
        for seed in range(5):
            size = np.exp(np.repeat(noise(1, 20, seed=seed + 50), 40, axis=0))
            assert fitted(noise(6, seed=seed) * size) is None

    def test_that_is_one_of_the_series(self):
        x = noise(6)
        x[:, 1:] += x[:, :1]
        assert fitted(x, before=np.zeros((6, 6), dtype=bool)) is None


class TestCopies:
    def test_sensors_of_one_quantity_are_a_factor(self):
        """All have next to nothing of their own: the factor is none of them."""
        for own in (0.03, 0.1, 0.3):
            found = fitted(noise(1, seed=1) + own * noise(5))
            assert found.driven.all()
            assert links(found) == []


class TestCost:
    def test_is_twice_the_negative_log_likelihood_and_prices(self):
        """A twin by a general optimiser, without links: one factor of five series."""
        x = noise(5, 300) + noise(1, 300, seed=4) * [1, 0.8, 0.6, 0.7, 0.9]
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        r = x.T @ x / 300

        def misfit(parameters):
            loading, unique = parameters[:5], np.exp(parameters[5:])
            sigma = np.outer(loading, loading) + np.diag(unique)
            return np.linalg.slogdet(sigma)[1] + np.trace(np.linalg.solve(sigma, r)) - 5

        best = minimize(misfit, np.r_[np.full(5, 0.6), np.full(5, -0.5)])
        found = fitted(x)
        np.testing.assert_allclose(np.abs(found.loading[:, 0]), np.abs(best.x[:5]), atol=0.02)
        assert links(found) == []
        loading, unique = found.loading, np.exp(best.x[5:])[:, None]
        weight = loading / unique / (1 + (loading**2 / unique).sum())
        left = x - x @ weight @ loading.T
        expected = 300 * best.fun + 5 * np.log(300) - 2 * 300 * sum(map(negentropy, left.T))
        assert found.cost == pytest.approx(expected, abs=0.5)

    def test_the_loadings_of_a_group_cost_as_much_as_links(self):
        """They were chosen among others; those of a factor of all series were not."""
        x = np.hstack([noise(5) + noise(1, seed=1), noise(4, seed=2)])
        group, whole = fitted(x), fitted(x[:, :5])
        assert group.driven.sum() == 5
        more = 5 * (PRICE - np.log(len(x)))
        assert group.cost - whole.cost == pytest.approx(more, abs=6.0)

    def test_a_group_of_nearly_all_costs_no_more_than_all(self):
        x = np.hstack([noise(5) + noise(1, seed=1), noise(1, seed=2)])
        group, whole = fitted(x), fitted(x[:, :5])
        assert group.driven.sum() == 5
        assert group.cost - whole.cost == pytest.approx(np.log(len(x)), abs=3.0)

    def test_three_factors_count_though_two_do_not_pay(self, monkeypatch):
        costs = {1: -10.0, 2: -5.0, 3: -20.0}

        def made(fit):
            empty = np.zeros((8, 8))
            return BesideFactors(costs[fit._n_factors], np.ones((8, fit._n_factors)), empty)

        monkeypatch.setattr(factors._Fit, "found", made)
        assert fitted(noise(8)).loading.shape == (8, 3)

    def test_errors_that_are_not_gaussian_are_likelier_as_they_are(self):
        rng = np.random.default_rng(0)
        laplace = rng.laplace(size=(800, 5)) / np.sqrt(2) + noise(1, seed=1)
        assert fitted(laplace).cost < fitted(noise(5) + noise(1, seed=1)).cost - 100

    def test_p_values_are_those_of_likelihood_ratios(self):
        gain = np.zeros((4, 4))
        gain[0, 2] = 12.0
        p_value = BesideFactors(0.0, np.ones((4, 1)), gain).p_value
        assert p_value[0, 2] == p_value[2, 0] == pytest.approx(chi2.sf(12.0, 1))
        assert p_value[0, 1] == 1


class TestFactorModel:
    def test_one_factor_fits_as_the_best_an_optimiser_finds(self):
        x = noise(5, 300) + noise(1, 300, seed=4) * [1, 0.8, 0.6, 0.4, 0.9]
        x[:, 0] += 0.3 * x[:, 1]
        r = np.corrcoef(x.T)

        def misfit(loading):
            sigma = np.outer(loading, loading)
            np.fill_diagonal(sigma, 1.0)
            return np.linalg.slogdet(sigma)[1] + np.trace(np.linalg.solve(sigma, r)) - 5

        best = minimize(misfit, np.full(5, 0.6), method="L-BFGS-B", bounds=[(-0.99, 0.99)] * 5)
        loading, _ = factor_model(r)
        np.testing.assert_allclose(np.abs(loading[:, 0]), np.abs(best.x), atol=0.05)

    def test_the_scores_follow_the_factor(self):
        driver = noise(1, seed=1)
        x = noise(8) + driver
        x /= x.std(axis=0)
        _, weight = factor_model(np.corrcoef(x.T))
        assert abs(np.corrcoef(x @ weight[0], driver[:, 0])[0, 1]) > 0.9

    def test_no_more_than_the_variance_is_a_factors(self):
        loading, _ = factor_model(np.ones((4, 4)))
        assert (loading**2).sum(axis=1).max() <= 1.0 + factors._LEAST_UNIQUE
