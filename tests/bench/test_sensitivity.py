"""The benchmark that varies every number that decides."""

import pandas as pd
import pytest

from causalformer.bench import sensitivity
from causalformer.bench.sensitivity import System, changed, run, systems, table_of, values
from causalformer.config import DetectorSettings
from causalformer.policy import POLICY, numbers

SHORT = System("short", 2, 0)


def test_every_number_and_every_setting_that_decides_is_varied():
    assert set(numbers()) <= set(values())
    assert set(DetectorSettings.model_fields) - set(values()) == {"sparse_evidence"}


@pytest.mark.parametrize("name", values())
def test_all_are_brought_to_another_value(name):
    half, twice = (changed(name, times) for times in (0.5, 2.0))
    assert half < values()[name] < twice
    assert twice < 1.0 or not values()[name] < 1.0
    settings = {} if name in numbers() else {name: half}
    assert DetectorSettings(**settings)


def test_there_are_systems_without_links_and_a_quick_choice():
    chosen = systems()
    assert {"null-noise", "null-walks"} <= {system.family for system in chosen}
    assert len(set(chosen)) == len(chosen) < 30
    assert set(systems(quick=True)) < set(chosen)


def test_a_graph_with_a_number_changed_is_compared_with_the_graph_as_it_is(monkeypatch):
    seen = []
    fit = sensitivity._fit

    def watched(system, name, value):
        seen.append((name, value))
        return fit(system, None, 0.0)

    monkeypatch.setattr(sensitivity, "_fit", watched)
    sensitivity._as_it_is.cache_clear()
    outcomes = run("level", [SHORT])
    assert seen == [(None, 0.0), ("level", 0.025), ("level", 0.1)]
    assert [outcome.edges_changed for outcome in outcomes] == [0, 0]


def test_a_changed_number_changes_the_graph_and_is_restored():
    linked = System("none", 0, 1)
    with sensitivity._trained_once():
        as_it_is, again = (sensitivity._fit(linked, None, 0.0) for _ in range(2))
        other = sensitivity._fit(linked, "min_effect", 0.99)
        sensitivity._fit(linked, "bent_share", 0.9)
    assert as_it_is == again
    assert as_it_is.edges != other.edges
    assert POLICY.bent_share == 0.2


def test_the_table_names_what_changes_nothing():
    rows = [("as it is", 1.0, 0), ("claim", 0.5, 0), ("claim", 2.0, 0), ("doubt", 0.5, 3)]
    frame = pd.DataFrame(
        [
            {
                "number": name,
                "value": 0.1,
                "times": times,
                "f1": 0.8,
                "false_share": 0.1,
                "edges_changed": n,
                "warnings_changed": 0,
            }
            for name, times, n in [*rows, ("doubt", 2.0, 0)]
        ]
    )
    table = table_of(frame)
    assert "Nothing changes with `claim`." in table
    assert "| `doubt` | 0.25 | 0.1 | 0.800 | 0.100 | 3 | 0 |" in table
