import numpy as np
import pytest

from causalformer.bench import missing
from causalformer.bench.missing import Outcome, table_of, with_holes
from causalformer.datasets import make_structure
from causalformer.datasets.folders import load_folder


@pytest.mark.parametrize("pattern", ["random", "blocks"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_a_share_of_the_values_is_removed_and_the_rest_stays(pattern, share):
    x = np.random.default_rng(0).standard_normal((2000, 3))
    holed = with_holes(x, share, pattern, np.random.default_rng(1))
    gone = np.isnan(holed)
    np.testing.assert_allclose(gone.mean(axis=0), share, atol=0.04)
    np.testing.assert_array_equal(holed[~gone], x[~gone])
    again = with_holes(x, share, pattern, np.random.default_rng(1))
    np.testing.assert_array_equal(holed, again)


def test_blocks_are_holes_of_twenty_slots_of_one_series():
    gone = np.isnan(with_holes(np.zeros((400, 2)), 0.3, "blocks", np.random.default_rng(0)))
    for block in gone.reshape(20, 20, 2):
        assert (block == block[:1]).all()
    assert (gone[:, 0] != gone[:, 1]).any()


def test_the_table_says_how_far_below_complete_data_a_method_is():
    def row(share, f1):
        return Outcome("fork", "a", "random" if share else "none", share, "default", f1, f1, 1, 1)

    table = table_of([row(0.0, 0.9), row(0.3, 0.8)])
    assert "| fork | random | 0.300 | default | 0.800 | 0.100 |" in table


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_a_file_is_judged_by_every_method(tmp_path, monkeypatch):
    make_structure("fork", 150, random_state=0).save(tmp_path, 0)
    (file,) = load_folder(tmp_path)
    from causalformer import estimator

    quick = {"max_epochs": 2, "n_channels": 4}
    plain = estimator.CausalFormer
    monkeypatch.setattr(estimator, "CausalFormer", lambda **k: plain(**k, settings=quick))
    outcomes = missing.run("fork", file, 0.1, "random")
    assert [o.method for o in outcomes] == ["default", "interpolated, var", "interpolated, pcmci"]
    assert all(0 <= o.f1 <= 1 for o in outcomes)
