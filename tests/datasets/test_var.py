import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from true_edges import cross_pairs, granger_pairs, triples

from causalformer.datasets import make_var
from causalformer.datasets.var import spectral_radius
from causalformer.errors import SettingsError


class TestVar:
    @given(
        seed=st.integers(0, 2**32 - 1),
        n_series=st.integers(2, 8),
        max_lag=st.integers(1, 5),
        density=st.floats(0, 1),
        noise_law=st.sampled_from(["gaussian", "laplace", "student", "skewed"]),
    )
    def test_every_system_is_stable(self, seed, n_series, max_lag, density, noise_law):
        made = make_var(
            n_series, 300, max_lag=max_lag, density=density, noise_law=noise_law, random_state=seed
        )
        assert np.isfinite(made.series.values).all()
        assert made.series.values.std() < 50
        assert all(1 <= lag <= max_lag for *_, lag in triples(made.truth))

    @pytest.mark.parametrize("noise_law", ["gaussian", "laplace", "student", "skewed"])
    def test_a_linear_test_recovers_the_graph(self, noise_law):
        made = make_var(5, 3000, density=0.3, noise_law=noise_law, random_state=4)
        truth, found = cross_pairs(made.truth), granger_pairs(made.series, level=1e-4)
        assert truth
        assert found == truth

    def test_noise_has_unit_variance(self):
        for law in ("gaussian", "laplace", "student", "skewed"):
            made = make_var(1, 20000, max_lag=1, noise_law=law, random_state=0)
            x = made.series.values[:, 0]
            slope = np.polyfit(x[:-1], x[1:], 1)[0]
            assert np.std(x[1:] - slope * x[:-1]) == pytest.approx(1.0, abs=0.05)

    def test_density_sets_the_number_of_edges(self):
        assert not cross_pairs(make_var(5, 10, density=0.0, random_state=0).truth)
        assert len(cross_pairs(make_var(5, 10, density=1.0, random_state=0).truth)) == 20

    def test_spectral_radius_of_two_lags(self):
        # x[t] = 0.5 x[t-1] + 0.3 x[t-2]: roots of z² - 0.5 z - 0.3
        expected = np.abs(np.roots([1, -0.5, -0.3])).max()
        assert spectral_radius(np.array([[[0.5, 0.3]]])) == pytest.approx(expected)

    def test_bad_options(self):
        with pytest.raises(SettingsError, match="density is 2"):
            make_var(density=2)
        with pytest.raises(SettingsError, match="'cauchy'; choose among gaussian"):
            make_var(noise_law="cauchy")
        with pytest.raises(SettingsError, match="max_lag is 0"):
            make_var(max_lag=0)
