import numpy as np
import pytest

from causalformer.datasets import make_random_system
from causalformer.errors import SettingsError


@pytest.mark.parametrize("links", ["linear", "nonlinear", "mixed"])
@pytest.mark.parametrize("noise_law", ["gaussian", "student", "skewed"])
def test_series_are_finite_and_bounded_for_every_kind(links, noise_law):
    made = make_random_system(
        8, 400, n_edges=30, links=links, noise_law=noise_law, memory=(0.8, 0.95), random_state=3
    )
    assert np.isfinite(made.series.values).all()
    assert np.abs(made.series.values).max() < 100


def test_the_truth_holds_the_asked_number_of_edges_and_all_self_loops():
    edges = make_random_system(6, 50, n_edges=7, max_lag=2, random_state=0).truth.edges
    assert sum(e.cause != e.effect for e in edges) == 7
    assert sum(e.cause == e.effect for e in edges) == 6
    assert {e.lag for e in edges} <= {1, 2}


def test_a_linear_edge_shows_at_its_lag():
    made = make_random_system(
        2, 20_000, n_edges=1, links="linear", memory=(0.0, 0.0), random_state=1
    )
    (edge,) = (e for e in made.truth.edges if e.cause != e.effect)
    x = made.series.values
    cause, effect = (made.series.names.index(n) for n in (edge.cause, edge.effect))
    correlation = [abs(np.corrcoef(x[:-lag, cause], x[lag:, effect])[0, 1]) for lag in (1, 2, 3)]
    assert int(np.argmax(correlation)) + 1 == edge.lag
    assert max(correlation) > 0.2


def test_hidden_drivers_make_series_without_edges_move_together():
    alone, driven = (
        make_random_system(
            10, 4000, n_edges=0, n_hidden=n_hidden, hidden_share=0.8, random_state=5
        ).series.values
        for n_hidden in (0, 2)
    )
    off_diagonal = ~np.eye(10, dtype=bool)
    assert np.abs(np.corrcoef(alone.T)[off_diagonal]).max() < 0.2
    assert np.abs(np.corrcoef(driven.T)[off_diagonal]).max() > 0.3


def test_the_same_seed_gives_the_same_series():
    first, second = (make_random_system(4, 60, random_state=9) for _ in range(2))
    np.testing.assert_array_equal(first.series.values, second.series.values)
    assert first.truth == second.truth


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n_edges": 99}, "n_edges"),
        ({"memory": (0.2, 1.0)}, "memory"),
        ({"hidden_share": 1.0}, "hidden_share"),
        ({"noise_law": "cauchy"}, "noise_law"),
        ({"n_series": 0}, "n_series"),
    ],
)
def test_bad_options_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        make_random_system(**{"n_series": 4, "n_slots": 50, **options})
