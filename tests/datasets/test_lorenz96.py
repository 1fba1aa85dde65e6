import numpy as np
import pytest
from true_edges import triples

from causalformer.datasets import make_lorenz96
from causalformer.datasets.lorenz96 import runge_kutta_steps
from causalformer.errors import SettingsError


class TestLorenz96:
    def test_truth(self):
        made = make_lorenz96(6, 5, random_state=0)
        assert {c for c, e, _ in triples(made.truth) if e == "x0"} == {"x4", "x5", "x0", "x1"}
        assert {lag for *_, lag in triples(made.truth)} == {1}

    def test_velocity_follows_the_definition(self):
        x = np.random.default_rng(0).normal(size=7)
        n, step = len(x), 1e-6
        moved = (runge_kutta_steps(x, 8.0, step, 1) - x) / step
        expected = [(x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + 8.0 for i in range(n)]
        np.testing.assert_allclose(moved, expected, atol=1e-4)

    def test_integration_is_fine_enough(self):
        x = np.random.default_rng(0).normal(size=8)
        coarse, fine = runge_kutta_steps(x, 35.0, 0.01, 20), runge_kutta_steps(x, 35.0, 0.001, 200)
        np.testing.assert_allclose(coarse, fine, atol=2e-2)

    @pytest.mark.parametrize("seed", range(4))
    def test_series_are_chaotic_but_bounded(self, seed):
        values = make_lorenz96(8, 150, random_state=seed).series.values
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 100
        assert (values.std(axis=0) > 4).all()

    def test_noise_is_added_to_the_observations(self):
        clean, noisy = (make_lorenz96(5, 200, noise=n, random_state=1) for n in (0.0, 2.0))
        difference = noisy.series.values - clean.series.values
        assert difference.std() == pytest.approx(2.0, rel=0.1)

    def test_bad_options(self):
        with pytest.raises(SettingsError, match="n_series is 3; choose at least 4"):
            make_lorenz96(3)
        with pytest.raises(SettingsError, match="step is 0"):
            make_lorenz96(step=0)
        with pytest.raises(SettingsError, match=r"forcing is 1000000\.0"):
            make_lorenz96(n_slots=2, forcing=1e6)
