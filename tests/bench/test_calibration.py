"""Whether p-values keep their promise: which pairs have no effect, and how shares are counted."""

import sys

import numpy as np
import pandas as pd
import pytest

from causalformer.bench import calibration
from causalformer.bench.calibration import (
    CLASSES,
    FAMILIES,
    LEVELS,
    Share,
    distance_above,
    excesses,
    jobs,
    ratios,
    related,
    systems_of,
    table,
)
from causalformer.graph import CausalGraph, Edge


def outcomes(p_values, family="short", test="past", name="unrelated"):
    """One row of ``results.csv`` per system."""
    return pd.DataFrame(
        {
            "family": family,
            "recipe": 0,
            "seed": range(len(p_values)),
            "test": test,
            "related": name,
            "n_tested": [len(row) for row in p_values],
            "p_values": [" ".join(map(str, row)) for row in p_values],
            "n_false": 0,
            "seconds": 1.0,
        }
    )


def classes(names, edges, test):
    truth = CausalGraph(tuple(names), tuple(Edge(*edge) for edge in edges))
    how = related(truth)[test]
    return {a + b: how[i, j] for i, a in enumerate(names) for j, b in enumerate(names) if a != b}


def test_only_pairs_without_an_effect_count_each_in_the_last_class_it_is_in():
    chain_and_stranger = [("a", "a", 1), ("a", "b", 2), ("b", "c", 1)]
    how = classes("abcd", chain_and_stranger, "past")
    assert how["ab"] == how["bc"] == "effect"
    assert how["ac"] == "no effect"  # holds only given b
    assert how["ba"] == how["ca"] == "no path"  # not unrelated: the effect acts on the cause
    assert how["ad"] == how["da"] == "unrelated"
    fork = classes("abc", [("a", "b", 1), ("a", "c", 1)], "past")
    assert fork["bc"] == "no path"


def test_the_past_foretells_what_reaches_the_effect_within_the_slot():
    how = classes("abc", [("a", "b", 1), ("b", "c", 0), ("b", "b", 1)], "past")
    assert how["ac"] == "effect"  # through the present of b, which no test of the past holds fixed
    assert how["bc"] == "effect"  # b remembers, and acts within the slot
    without_memory = classes("bc", [("b", "c", 0)], "past")
    assert without_memory["bc"] == "no effect"


def test_links_within_a_slot_are_judged_by_what_happens_within_it():
    edges = [("a", "b", 0), ("b", "c", 0), ("a", "d", 0), ("c", "e", 1)]
    how = classes("abcde", edges, "within")
    assert how["ab"] == how["ba"] == "effect"
    assert how["ac"] == how["ca"] == "no effect"  # a path, whichever way round
    assert how["cd"] == "no path"
    assert how["ce"] == "unrelated"


def test_uniform_p_values_have_a_ratio_of_one_and_no_distance():
    p_values = np.arange(1, 20_001) / 20_000
    systems = np.split(np.random.default_rng(0).permutation(p_values), 100)
    for level in LEVELS:
        share = Share.below(level, systems)
        assert share.ratio == pytest.approx(1.0)
        assert not share.too_large
    assert distance_above(p_values) == pytest.approx(0.0)


def test_the_distance_is_the_largest_one_above_the_uniform_distribution():
    assert distance_above(np.array([0.3, 0.1, 0.2])) == pytest.approx(0.7)
    assert distance_above(np.array([0.9, 0.1, 0.5])) == pytest.approx(1 / 3 - 0.1)
    assert distance_above(np.ones(5)) == 0.0


def test_systems_are_the_units_of_the_standard_error():
    one_bad_of_ten = [np.full(20, 0.5)] * 9 + [np.full(20, 0.01)]
    share = Share.below(0.05, one_bad_of_ten)
    assert share.value == pytest.approx(0.1)
    assert share.error == pytest.approx(0.1)  # of ten coin tosses, not of two hundred
    assert share.too_large
    assert not share.beyond_chance
    assert Share.below(0.05, one_bad_of_ten[8:] * 50).beyond_chance
    never = Share.below(0.01, [np.full(100, 0.5)] * 10)
    assert never.error == pytest.approx(np.sqrt(0.01 * 0.99 / 1000))


def test_a_class_takes_in_those_within_it():
    results = pd.concat([outcomes([[0.1]], name=name) for name in CLASSES])
    counts = [len(systems_of(results, "past", name)["short"][0]) for name in CLASSES]
    assert counts == [3, 2, 1]


def test_the_table_names_what_is_above_the_limit():
    rng = np.random.default_rng(0)
    good = outcomes(rng.uniform(size=(50, 100)), "dense")
    bad = outcomes(rng.uniform(size=(50, 100)) / 3)
    results = pd.concat([good, bad])
    clear, _ = excesses(results, "past", "no effect")
    assert {text.split(" at ")[0] for text in clear} == {"short"}
    assert "short at 0.1 (3.0" in table(results)
    (left, right) = ratios(results).axes
    assert len(left.lines) == 4  # two families, one, and the limit
    assert len(right.lines) == 2


def test_recipes_of_a_family_take_turns():
    found = list(jobs(["short", "AR noise"], 3, 10))
    assert [job for job in found if job[0] == "short"] == [
        ("short", 0, 10),
        ("short", 1, 11),
        ("short", 2, 12),
    ]
    assert {recipe for family, recipe, _ in found if family == "AR noise"} == {0}


def test_every_family_has_pairs_without_an_effect():
    assert len(FAMILIES) == 10
    for family in FAMILIES.values():
        for draw in family.draw:
            truths = [related(draw(random_state=seed).truth)["past"] for seed in range(2)]
            assert any((how != "effect").any() for how in truths)


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_the_command_writes_table_figure_and_p_values(tmp_path, monkeypatch):
    words = ["--out", str(tmp_path), "--quick", "--seed-set", "choose", "--family", "short"]
    monkeypatch.setattr(sys, "argv", ["calibration", *words])
    calibration.main()
    results = pd.read_csv(tmp_path / "results.csv")
    assert results["seed"].unique().tolist() == [70_000, 70_001]
    assert set(results["test"]) == {"past", "few terms", "within"}
    p_values = np.concatenate(systems_of(results, "past", "no effect")["short"])
    assert 0 < p_values.min() < p_values.max() <= 1
    assert "## past, no effect" in (tmp_path / "table.md").read_text()
    assert {p.name for p in tmp_path.iterdir()} == {
        "results.csv",
        "table.md",
        "ratios.png",
        "environment.json",
    }
