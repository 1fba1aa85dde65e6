import numpy as np
import pytest
from true_edges import triples

from causalformer.data import check_usable, read_series
from causalformer.datasets import GENERATORS, make_dataset
from causalformer.errors import OutputError, SettingsError
from causalformer.truth import read_truth


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
