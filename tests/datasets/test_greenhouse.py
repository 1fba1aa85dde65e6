from pathlib import Path

import numpy as np
from true_edges import cross_pairs, granger_pairs, triples

from causalformer.datasets import load_example, make_greenhouse


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
