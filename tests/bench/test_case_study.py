import pandas as pd

from causalformer.bench.case_study import VARIANTS, counted, table
from causalformer.config import resolve_settings
from causalformer.graph import CausalGraph, Edge


def graph(*edges):
    return CausalGraph(tuple("abcd"), tuple(Edge(*pair, 1, 1.0) for pair in edges))


def test_edges_between_series_are_counted_and_self_loops_are_not():
    truth = graph("ab", "bc", "cd", "aa", "bb")
    found = graph("ab", "ac", "ad", "dc", "aa", "cc")
    assert counted(found, truth) == {"true": 1, "false": 3, "indirect": 2, "missed": 2}
    assert counted(truth, truth) == {"true": 3, "false": 0, "indirect": 0, "missed": 0}


def test_variants_are_settings_of_the_preset():
    chosen = [resolve_settings("paper-fmri", settings) for settings in VARIANTS.values()]
    assert len(set(map(str, chosen))) == len(VARIANTS)


def test_the_table_says_how_often_the_published_counts_came_out():
    rows = [("preset", 0, 4, 2, 2, 1), ("preset", 1, 0, 0, 0, 5)]
    names = ["variant", "seed", "true", "false", "indirect", "missed"]
    text = table(pd.DataFrame(rows, columns=names))
    assert "| preset | 2.000 | 1.000 | 1.000 | 3.000 | 0.500 | 0.500 |" in text
