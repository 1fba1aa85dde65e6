import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from true_edges import cross_pairs, granger_pairs, triples

from causalformer.datasets import make_structure
from causalformer.datasets.structures import LINKS, STRUCTURES
from causalformer.errors import SettingsError


class TestStructures:
    def test_truth(self):
        made = make_structure("diamond", 10, random_state=0)
        assert {t for t in triples(made.truth) if t[0] != t[1]} == {
            ("x0", "x1", 1),
            ("x0", "x2", 2),
            ("x1", "x3", 1),
            ("x2", "x3", 1),
        }

    @settings(max_examples=100)
    @given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(sorted(STRUCTURES)))
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
