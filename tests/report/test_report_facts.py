"""What the report knows: everything about a fit, as strict JSON."""

import json

import numpy as np
import pytest

from causalformer import CausalFormer
from causalformer.data import SeriesTable
from causalformer.datasets import make_structure
from causalformer.graph import CausalGraph, Edge
from causalformer.report import collect_facts
from causalformer.report.layout import positions
from causalformer.report.numbers import rounded, thinned, with_breaks
from causalformer.report.words import summary
from graph_examples import doubtful, evident
from report_examples import (
    large_model,
    made_edge,
    made_model,
    made_table,
    paper_model,
    small_model,
)


@pytest.fixture(scope="module")
def small():
    model = small_model(warnings=("mind the gap",))
    return model, collect_facts(model, model._table, {"command": "causalformer discover x.csv"})


def test_facts_are_strict_json(small):
    assert json.loads(json.dumps(small[1], allow_nan=False)) == small[1]


def test_the_graph_comes_whole(small):
    model, facts = small
    assert CausalGraph.from_json(json.dumps(facts["graph"])) == model.graph_


def test_every_edge_has_its_evidence(small):
    model, facts = small
    for edge, known in zip(model.graph_, facts["edges"], strict=True):
        cause, effect = (model.names_.index(name) for name in (edge.cause, edge.effect))
        assert len(known["points"]["x"]) == len(known["points"]["y"]) > 50
        if edge.lag == 0:
            expected = model.scores_["partial_correlation"][cause, effect]
            assert known["partial_correlation"] == pytest.approx(expected, rel=1e-3)
            continue
        assert known["relative_gain"] == pytest.approx(
            model.scores_["relative_gain"][cause, effect], rel=1e-3
        )
        profile = model.scores_["lag_profile"][cause, effect]
        np.testing.assert_allclose(known["profile"]["values"], profile, rtol=1e-3)
        assert known["profile"]["first"] == 1


def test_scatter_points_are_the_cause_before_and_the_effect_now(small):
    model, facts = small
    values = model._table.values
    for edge, known in zip(facts["graph"]["edges"], facts["edges"], strict=True):
        cause, effect = (model.names_.index(edge[end]) for end in ("cause", "effect"))
        lag = edge["lag"]
        pairs = np.stack([values[3 - lag : len(values) - lag, cause], values[3:, effect]], axis=1)
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        drawn = np.array([known["points"]["x"], known["points"]["y"]]).T
        np.testing.assert_allclose(drawn, pairs, atol=0.05)


def test_partial_effects_are_the_shares_of_the_explanation(small):
    model, facts = small
    slots = facts["local"]["slots"]
    observed = ~model._table.missing
    edge, known = facts["graph"]["edges"][0], facts["edges"][0]
    cause, effect = (model.names_.index(edge[end]) for end in ("cause", "effect"))
    kept = [s for s in slots if observed[s - edge["lag"], cause] and observed[s, effect]]
    for k in (0, len(kept) // 2):
        told = model.explain(kept[k])
        share = told.relevance[cause, effect, edge["lag"] - 1]
        left = share + told.observed[effect] - told.prediction[effect]
        assert known["points"]["part"][k] == pytest.approx(share, abs=0.01)
        assert known["points"]["left"][k] == pytest.approx(left, abs=0.01)


def test_local_explanations_name_the_largest_shares(small):
    model, facts = small
    slot = facts["local"]["slots"][7]
    told = model.explain(slot)
    for effect, known in enumerate(facts["local"]["effects"]):
        assert known["prediction"][7] == pytest.approx(told.prediction[effect], rel=0.01)
        frame = told.to_frame().query("effect == @model.names_[@effect]")
        for (cause, lag, share, value), row in zip(
            known["shares"][7], frame.itertuples(), strict=False
        ):
            assert abs(share) == pytest.approx(abs(row.relevance), rel=0.01)
            assert (model.names_[cause], lag) == (row.cause, row.lag)
            assert (value is None) == np.isnan(row.value)


def test_near_misses_are_pairs_without_an_edge():
    model = large_model(30, 40)
    facts = collect_facts(model, model._table)
    edges = {(edge.cause, edge.effect) for edge in model.graph_}
    near = [(model.names_[e["cause"]], model.names_[e["effect"]]) for e in facts["near"]]
    assert near
    assert not edges & set(near)
    assert all(e["q_value"] <= 0.25 for e in facts["near"])
    p_values = [e["p_value"] for e in facts["near"]]
    assert p_values == sorted(p_values)


def test_warnings_times_figures_and_command(small):
    model, facts = small
    assert facts["warnings"] == ["mind the gap"]
    assert facts["series"]["times"][1] == "2024-01-02"
    assert facts["run"]["command"] == "causalformer discover x.csv"
    figures = facts["series"]["figures"][0]
    assert figures["mean"] == pytest.approx(np.nanmean(model._table.values[:, 0]), rel=1e-3)
    assert figures["observed"] < 1
    assert {"causalformer", "torch", "python"} <= set(facts["run"]["versions"])


def test_a_constant_column_is_named():
    values = np.array(made_table(("a", "b")).values)
    values[:, 1] = 1.0
    table = SeriesTable(values, ("a", "b"))
    facts = collect_facts(made_model(table, []), table)
    assert any("constant column 'b'" in text for text in facts["warnings"])
    json.dumps(facts, allow_nan=False)


def test_the_code_repeats_the_fit():
    series = make_structure("fork", 120, random_state=0).series
    model = CausalFormer(max_lag=2, settings={"max_epochs": 2}, random_state=3).fit(series)
    code = collect_facts(model, series)["run"]["code"].replace(repr(series.source), "series")
    names = {"series": series}
    exec(code.partition("model.report")[0], names)
    assert names["model"].graph_ == model.graph_


def test_a_preset_of_the_paper_has_scores_but_no_test():
    model = paper_model()
    facts = collect_facts(model, model._table)
    json.dumps(facts, allow_nan=False)
    assert (facts["tested"], facts["alpha"], facts["local"], facts["near"]) == (
        *(False, None, None),
        [],
    )
    assert "false" not in " ".join(facts["summary"])
    assert facts["edges"][0]["profile"]["first"] == 0
    assert "relative_gain" not in facts["edges"][0]


def test_pages_of_many_series_stay_small():
    model = large_model()
    facts = collect_facts(model, model._table)
    assert len(json.dumps(facts)) < 10e6
    assert len(facts["positions"]) == 260


def test_plots_come_with_the_strongest_of_very_many_edges():
    model = large_model(80, 2500)
    facts = collect_facts(model, model._table)
    assert (len(facts["graph"]["edges"]), len(facts["edges"])) == (2500, 1500)
    assert len(json.dumps(facts)) < 10e6


def test_several_recordings_are_not_joined_by_a_line():
    values = made_table(("a", "b"), 60).values
    table = SeriesTable(values, ("a", "b"), starts=(0, 30), runs=("anna", "ben"))
    facts = collect_facts(made_model(table, [made_edge("a", "b", 2)]), table)
    at = facts["series"]["slot"].index(29.5)
    assert facts["series"]["observed"][0][at] is None
    assert facts["series"]["recordings"] == 2
    assert not {30, 31, 32} & set(facts["local"]["slots"])


@pytest.mark.parametrize(
    "values",
    [
        [1e300, -1e300, 0.0],
        [1.7e308, -1.7e308],
        [1e-300, 2e-300],
        [0.0, 0.0],
        [np.nan, np.inf, 1.0],
        [np.nan],
        [],
        [1e15 + 1, 1e15 + 3],
    ],
)
def test_rounding_keeps_any_number_json_can_hold(values):
    small = rounded(values)
    json.dumps(small, allow_nan=False)
    known = [v for v in values if np.isfinite(v)] or [0.0]
    spread = max(known) / 1e3 - min(known) / 1e3
    for before, after in zip(values, small, strict=True):
        assert (after is None) == (not np.isfinite(before))
        if after is not None:
            assert after == pytest.approx(before, rel=1e-5, abs=spread)


def test_thinned_series_keep_their_outline():
    values = np.random.default_rng(0).normal(size=(10_000, 2))
    values[1234, 0] = 50.0
    values[:3000, 1] = np.nan
    slot, kept = thinned(values, 500)
    assert len(slot) == len(kept) == 500
    assert kept[:, 0].max() == 50.0
    assert kept[:, 0].min() == values[:, 0].min()
    assert np.isnan(kept[:100, 1]).all()
    assert (np.diff(with_breaks(slot, kept, (0, 77, 5000))[0]) >= 0).all()


def test_the_drawing_is_the_same_each_time_and_drivers_stand_left():
    model = small_model()
    first, again = positions(model.graph_), positions(model.graph_)
    np.testing.assert_array_equal(first, again)
    assert ((first >= 0) & (first <= 1)).all()
    assert len({tuple(place) for place in first.round(3)}) == 4
    rain, river = first[0], first[1]
    assert rain[0] < river[0]


@pytest.mark.parametrize("n_series", [1, 2, 5, 61])
def test_series_without_edges_have_places_of_their_own(n_series):
    places = positions(CausalGraph(tuple(f"x{i}" for i in range(n_series))))
    assert len({tuple(place) for place in places.round(4).tolist()}) == n_series


def test_the_summary_tells_the_strongest_first():
    told = summary(small_model().graph_, 0.05)
    assert told[0].startswith("rain drives river after 2 slots; rain drives soil after 1 slot;")
    assert "river and soil move together within the slot" in told[0]
    assert "Nothing was found that drives wind or is driven by it." in told


def test_the_summary_names_edges_that_may_be_confounded():
    told = summary(doubtful(), None)
    assert "A hidden common driver may be behind a → b, b — c." in told
    assert not any("hidden" in sentence for sentence in summary(evident(), None))


def test_links_without_direction_place_no_driver():
    one, other = (
        positions(CausalGraph(("a", "b"), (Edge(*ends, 0, oriented=False),)))
        for ends in ("ab", "ba")
    )
    np.testing.assert_array_equal(one, other)


def test_an_empty_graph_is_told_as_such():
    assert summary(CausalGraph(("a", "b")), 0.05) == ["No series was found to drive another one."]
