import numpy as np

from causalformer.bench.generated import Outcome, systems, table


def test_the_same_call_lists_the_same_systems():
    first, second = list(systems(1)), list(systems(1))
    assert [(s.suite, s.family, s.max_lag) for s in first] == [
        (s.suite, s.family, s.max_lag) for s in second
    ]
    np.testing.assert_array_equal(first[0].make().series.values, second[0].make().series.values)
    suites = {s.suite for s in first}
    assert suites == {"calibration", "hidden", "max_lag", "recordings"}


def test_ten_recordings_are_pieces_of_the_system_that_one_is_of():
    one, ten = (s.make() for s in systems(1) if s.family.startswith("var, 1"))
    assert one.truth == ten.truth
    assert (one.series.n_slots, len(one.series.recordings())) == (1000, 1)
    assert (ten.series.n_slots, len(ten.series.recordings())) == (1000, 10)
    np.testing.assert_array_equal(ten.series.values[:100], one.series.values[:100])
    np.testing.assert_array_equal(ten.series.values[100:200], one.series.values[200:300])


def test_the_table_counts_false_edges_and_graphs_that_have_one():
    def outcome(n_true, n_found, n_false):
        return Outcome(
            "calibration",
            "f",
            "default",
            5,
            3,
            100,
            n_true,
            n_found,
            n_false,
            0.5,
            0.5,
            1.0,
            False,
            1.0,
        )

    text = table([outcome(2, 4, 1), outcome(0, 0, 0), outcome(0, 1, 1)])
    assert "mean share of false edges 0.417 over 3 systems" in text
    assert "1 of 2 systems without edges got one" in text
