from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.api import VAR

from causalformer.data import check_usable, read_series
from causalformer.datasets import (
    GENERATORS,
    load_example,
    make_dataset,
    make_greenhouse,
    make_lorenz96,
    make_structure,
    make_var,
)
from causalformer.datasets.generators import LINKS, STRUCTURES, _lorenz_steps, spectral_radius
from causalformer.errors import OutputError, SettingsError
from causalformer.graph import read_truth

seeds = st.integers(0, 2**32 - 1)


def triples(graph):
    return {(e.cause, e.effect, e.lag) for e in graph.edges}


def cross_pairs(graph):
    return {(e.cause, e.effect) for e in graph.edges if e.cause != e.effect}


def granger_pairs(series, max_lag=3, level=0.01):
    fitted = VAR(series.values).fit(max_lag)
    n = range(series.n_series)
    return {
        (series.names[cause], series.names[effect])
        for cause in n
        for effect in n
        if cause != effect and fitted.test_causality(effect, [cause], kind="f").pvalue < level
    }


@pytest.mark.parametrize("name", GENERATORS)
class TestEveryGenerator:
    def test_equal_seeds_give_equal_series(self, name):
        one, two = (make_dataset(name, n_slots=60, random_state=7) for _ in range(2))
        np.testing.assert_array_equal(one.series.values, two.series.values)
        assert triples(one.truth) == triples(two.truth)
        other = make_dataset(name, n_slots=60, random_state=8)
        assert not np.array_equal(one.series.values, other.series.values)

    def test_series_are_usable_and_truth_speaks_of_them(self, name):
        made = make_dataset(name, n_slots=60, random_state=np.random.default_rng(3))
        check_usable(made.series, min_slots=60)
        assert made.truth.names == made.series.names
        assert {(n, n, 1) for n in made.series.names} <= triples(made.truth)

    def test_saved_files_read_back(self, name, tmp_path):
        made = make_dataset(name, n_slots=20, random_state=0)
        path = made.save(tmp_path / "new", 3)
        assert path == tmp_path / "new" / "data_3.csv"
        series = read_series(path)
        assert series.names == made.series.names
        np.testing.assert_array_equal(series.values, made.series.values)
        truth = read_truth(tmp_path / "new" / "truth.csv", series.names)
        assert triples(truth) == triples(made.truth)

    def test_no_slots_are_refused(self, name):
        with pytest.raises(SettingsError, match="n_slots is 0"):
            make_dataset(name, n_slots=0)


class TestMakeDataset:
    def test_unknown_name_lists_the_known(self):
        with pytest.raises(SettingsError, match=r"'dimond'; choose among diamond, .*greenhouse"):
            make_dataset("dimond")

    def test_unknown_option_lists_the_known(self):
        with pytest.raises(
            SettingsError, match=r"'fork' has no option 'forcing'.*n_slots, coupling"
        ):
            make_dataset("fork", forcing=1)

    @pytest.mark.parametrize("seed", [-1, "seven"])
    def test_a_bad_seed_is_named(self, seed):
        with pytest.raises(SettingsError, match="random_state is"):
            make_dataset("var", random_state=seed)

    def test_a_file_in_the_way_of_the_folder(self, tmp_path):
        (tmp_path / "x").write_text("")
        with pytest.raises(OutputError, match="cannot write"):
            make_dataset("fork", n_slots=5).save(tmp_path / "x")


class TestStructures:
    def test_truth(self):
        made = make_structure("diamond", 10, random_state=0)
        assert {t for t in triples(made.truth) if t[0] != t[1]} == {
            ("x0", "x1", 1),
            ("x0", "x2", 2),
            ("x1", "x3", 1),
            ("x2", "x3", 1),
        }

    @settings(max_examples=150, deadline=None)
    @given(seed=seeds, name=st.sampled_from(sorted(STRUCTURES)))
    def test_no_seed_blows_up(self, seed, name):
        values = make_structure(name, 400, random_state=seed).series.values
        assert np.isfinite(values).all()
        deviation = values.std(axis=0)
        assert (deviation > 0.7).all()
        assert (deviation < 10).all()

    def test_the_lag_is_the_true_one(self):
        made = make_structure("fork", 5000, memory=(0.0, 0.0), random_state=1)
        x = made.series.values
        for effect, true_lag in ((1, 1), (2, 2)):
            # any link is seen by a binned mean of the effect given the cause
            explained = []
            for lag in (1, 2, 3):
                cause, later = x[:-lag, 0], x[lag:, effect]
                bins = np.digitize(cause, np.quantile(cause, np.linspace(0.1, 0.9, 9)))
                explained.append(np.var([later[bins == b].mean() for b in range(10)]))
            assert np.argmax(explained) + 1 == true_lag

    def test_a_linear_test_finds_most_but_not_all(self):
        made = [make_structure("diamond", 1000, random_state=seed) for seed in range(15)]
        n_true = sum(len(cross_pairs(m.truth)) for m in made)
        n_found = sum(len(cross_pairs(m.truth) & granger_pairs(m.series)) for m in made)
        assert 0.6 < n_found / n_true < 0.95

    def test_links_are_smooth_and_tame(self):
        x = np.linspace(-8, 8, 2001)
        for link in LINKS:
            assert np.abs(np.diff(link(x))).max() < 0.03

    def test_bad_options(self):
        with pytest.raises(SettingsError, match="'chain'; choose among diamond"):
            make_structure("chain")
        with pytest.raises(SettingsError, match="memory"):
            make_structure("fork", memory=(0.5, 1.0))


class TestLorenz96:
    def test_truth(self):
        made = make_lorenz96(6, 5, random_state=0)
        assert {c for c, e, _ in triples(made.truth) if e == "x0"} == {"x4", "x5", "x0", "x1"}
        assert {lag for *_, lag in triples(made.truth)} == {1}

    def test_velocity_follows_the_definition(self):
        x = np.random.default_rng(0).normal(size=7)
        n, step = len(x), 1e-6
        moved = (_lorenz_steps(x, 8.0, step, 1) - x) / step
        expected = [(x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + 8.0 for i in range(n)]
        np.testing.assert_allclose(moved, expected, atol=1e-4)

    def test_integration_is_fine_enough(self):
        x = np.random.default_rng(0).normal(size=8)
        coarse, fine = _lorenz_steps(x, 35.0, 0.01, 20), _lorenz_steps(x, 35.0, 0.001, 200)
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


class TestVar:
    @settings(max_examples=40, deadline=None)
    @given(
        seed=seeds,
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


class TestExample:
    def test_the_file_is_what_the_generator_makes(self):
        bundled, made = load_example(), make_greenhouse()
        assert bundled.series.names == made.series.names
        assert triples(bundled.truth) == triples(made.truth)
        np.testing.assert_allclose(bundled.series.values, made.series.values, atol=2e-3)

    def test_it_is_small(self):
        assert Path(load_example().series.source).stat().st_size < 60_000

    def test_its_relations_can_be_found(self):
        example = load_example()
        assert granger_pairs(example.series) == cross_pairs(example.truth)
        assert {lag for *_, lag in triples(example.truth)} == {1, 2, 3}
