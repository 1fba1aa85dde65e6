import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalformer.data.quality import Finding, idle_columns, inspect, warn_of
from causalformer.errors import DataWarning

nan = np.nan


def rng(seed=0):
    return np.random.default_rng(seed)


def noise(n_slots=300, n_series=4, seed=0):
    return rng(seed).normal(size=(n_slots, n_series))


def looked_at(values, *, names=None, segments=None):
    values = np.asarray(values, dtype=float)
    names = names or tuple("abcdefghijkl"[: values.shape[1]])
    return inspect(values, names, segments or [slice(0, len(values))])


def found(values, kind, **options):
    return [finding for finding in looked_at(values, **options) if finding.kind == kind]


def only(values, kind, **options):
    (finding,) = found(values, kind, **options)
    return finding


def autoregression(memory, n_slots=500, seed=0):
    shocks = rng(seed).normal(size=n_slots)
    for t in range(1, n_slots):
        shocks[t] += memory * shocks[t - 1]
    return shocks


def troubled_table(seed):
    """A column or two of every kind, and some that are fine."""
    draw = rng(seed)
    a, b, c = draw.normal(size=(3, 300))
    wandering, other = draw.normal(size=(2, 300)).cumsum(axis=1)
    broken = np.where(draw.random(300) < 0.1, nan, draw.normal(size=300))
    hollow = np.where(draw.random(300) < 0.9, nan, draw.normal(size=300))
    return {
        "a": a,
        "b": b,
        "sum": a + b,
        "c": c,
        "near c": c + 1e-3 * draw.normal(size=300),
        "flat": np.full(300, 3.0),
        "flag": (draw.random(300) < 0.3).astype(float),
        "wandering": wandering,
        "other": other,
        "broken": broken,
        "hollow": hollow,
    }


def gist(columns, segments=(slice(0, 300),)):
    findings = inspect(np.stack([*columns.values()], axis=1), tuple(columns), segments)
    return {(finding.kind, frozenset(finding.columns)) for finding in findings}


def test_good_series_are_fine():
    assert looked_at(noise()) == ()


def test_every_trouble_is_found_and_nothing_else():
    assert gist(troubled_table(1)) == {
        ("constant", frozenset({"flat"})),
        ("collinear", frozenset({"c", "near c"})),
        ("collinear", frozenset({"a", "b", "sum"})),
        ("missing", frozenset({"hollow"})),
        ("missing", frozenset({"broken"})),
        ("categorical", frozenset({"flag"})),
        ("stationarity", frozenset({"wandering", "other"})),
    }


@given(seed=st.integers(0, 99), data=st.data())
def test_neither_scale_nor_offset_nor_order_matter(seed, data):
    columns = troubled_table(seed)
    order = data.draw(st.permutations(list(columns)))
    scales = st.integers(-12, 12).map(lambda power: 10.0**power)
    changed = {}
    for name in order:
        scale, offset = data.draw(scales), data.draw(st.sampled_from([0.0, 1.0, -1000.0]))
        changed[name] = scale * (columns[name] + offset)
    assert gist(changed) == gist(columns)


def test_texts_are_one_line_and_name_columns_in_the_order_of_the_table():
    columns = troubled_table(1)
    for finding in inspect(np.stack([*columns.values()], axis=1), (*columns,), [slice(0, 300)]):
        assert "\n" not in finding.text
        assert all(repr(name) in finding.text for name in finding.columns)
        assert list(finding.columns) == [name for name in columns if name in finding.columns]


def test_the_table_stays_as_it_is_and_warnings_stay_inside():
    values = noise(300).cumsum(axis=0)
    values.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        looked_at(values)


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (30, 1), (30, 0)])
def test_tiny_tables_pass(shape):
    assert found(noise(*shape), "collinear") == []


class TestIdle:
    def test_constant_columns(self):
        values = noise()
        values[:, 1], values[:, 3] = 4.0, -1e-12
        finding = only(values, "constant")
        assert finding.columns == ("b", "d")
        assert "constant column 'b', 'd'; it can neither" in finding.text

    def test_missing_values_do_not_hide_a_constant(self):
        values = noise()
        values[:, 1] = np.where(np.arange(300) % 2, 4.0, nan)
        assert only(values, "constant").columns == ("b",)

    def test_a_column_that_changes_between_segments_only_is_constant_within_them(self):
        values = noise()
        values[:, 1] = np.arange(300) >= 100
        finding = only(values, "constant", segments=[slice(0, 100), slice(100, 300)])
        assert "constant column 'b' within every segment" in finding.text
        assert found(values, "constant") == []

    def test_copies(self):
        values = noise(n_series=6)
        values[5, 1] = nan
        values[7, 1], values[:, 3] = 0.0, values[:, 1]
        values[:, 5], values[7, 3] = values[:, 0], -0.0
        finding = only(values, "duplicated")
        assert finding.columns == ("a", "b", "d", "f")
        assert "identical columns 'a' = 'f', 'b' = 'd'" in finding.text
        assert found(values, "collinear") == []

    def test_columns_without_values_are_neither_constant_nor_copies(self):
        values = noise()
        values[:, 2:] = nan
        assert {finding.kind for finding in looked_at(values)} == {"missing"}

    def test_findings_become_warnings_that_name_the_source(self):
        idle = idle_columns(np.ones((5, 1)), ["a"], [slice(0, 5)])
        with pytest.warns(DataWarning, match=r"^some.csv: constant column 'a'"):
            warn_of(idle, "some.csv")

    def test_a_warning_points_to_the_caller_asked_for(self):
        with pytest.warns(DataWarning) as said:
            warn_of([Finding("constant", ("a",), "flat")], "x.csv", stacklevel=1)
        assert said[0].filename == __file__


class TestCollinear:
    def test_a_sum_names_all_columns_involved(self):
        values = noise(n_series=6)
        values[:, 4] = values[:, 1] + values[:, 2]
        finding = only(values, "collinear")
        assert finding.columns == ("b", "c", "e")
        assert "drop 1 of ('b', 'c', 'e')" in finding.text

    def test_separate_relations_are_kept_apart_and_shared_ones_together(self):
        values = noise(n_series=9)
        values[:, 2] = values[:, 0] - 2 * values[:, 1]
        values[:, 6] = values[:, 3] + values[:, 4]
        values[:, 7] = values[:, 3] - values[:, 5]
        text = only(values, "collinear").text
        assert "1 of ('a', 'b', 'c')" in text
        assert "2 of ('d', 'e', 'f', 'g', 'h')" in text

    def test_shares_that_add_up_to_one(self):
        shares = rng().dirichlet([1, 2, 3], size=300)
        assert only(shares, "collinear").columns == ("a", "b", "c")

    def test_rounded_sums_are_found_and_noisy_ones_are_not(self):
        values = noise(n_series=3)
        values[:, 2] = np.round(values[:, 0] + values[:, 1], 3)
        assert only(values, "collinear").columns == ("a", "b", "c")
        values[:, 2] += 0.05 * noise(seed=1)[:, 0]
        assert found(values, "collinear") == []

    @pytest.mark.parametrize("factor", [1.8, -1e9])
    def test_copies_in_other_units(self, factor):
        values = noise()
        values[:, 3] = 32 + factor * values[:, 0]
        finding = only(values, "collinear")
        assert finding.columns == ("a", "d")
        assert "near-copies 'a' ≈ 'd' (correlation beyond 0.9999)" in finding.text

    def test_strong_correlation_alone_is_fine(self):
        values = noise()
        values[:, 3] = values[:, 0] + 0.03 * values[:, 3]
        assert np.corrcoef(values[:, 0], values[:, 3])[0, 1] > 0.999
        assert found(values, "collinear") == []

    def test_rows_with_gaps_are_left_out(self):
        values = noise(n_series=5)
        values[:, 2] = values[:, 0] + values[:, 1]
        values[::3, 1], values[1::7, 4] = nan, nan
        assert only(values, "collinear").columns == ("a", "b", "c")

    def test_a_hollow_column_does_not_hide_what_the_others_show(self):
        values = noise(n_series=5)
        values[:, 2] = values[:, 0] + values[:, 1]
        values[5:, 4] = nan
        assert only(values, "collinear").columns == ("a", "b", "c")

    def test_short_tables_show_no_relations_by_chance(self):
        assert found(noise(30, 12), "collinear") == []
        assert found(noise(12, 12), "collinear") == []

    def test_a_column_that_only_varies_in_incomplete_rows_is_no_copy(self):
        values = noise()
        values[:, 2] = 0.1
        values[:100, 2] = values[:100, 3]
        values[:100, 1] = nan
        assert found(values, "collinear") == []


class TestCategorical:
    @pytest.mark.parametrize("n_values", [2, 3, 5])
    def test_few_values_look_like_a_category(self, n_values):
        values = noise()
        values[:, 1] = rng().integers(n_values, size=300)
        finding = only(values, "categorical")
        assert finding.columns == ("b",)
        assert f"'b' ({n_values} values)" in finding.text

    def test_many_whole_numbers_are_a_measurement(self):
        values = noise()
        values[:, 1] = rng().integers(20, size=300)
        assert found(values, "categorical") == []

    def test_few_values_in_a_short_table_say_nothing(self):
        values = noise(40)
        values[:, 1] = np.arange(40) % 5
        values[:, 2] = np.arange(40) % 2
        assert only(values, "categorical").columns == ("c",)

    def test_missing_values_are_no_value_of_their_own(self):
        values = noise()
        values[:, 1] = np.where(np.arange(300) % 3, np.arange(300) % 5, nan)
        assert "'b' (5 values)" in only(values, "categorical").text


class TestStationarity:
    def test_walks_and_trends_are_named_with_advice(self):
        trend = 0.02 * np.arange(500) + noise(500)[:, 0]
        table = np.stack([autoregression(0.5), noise(500)[:, 1].cumsum(), trend], axis=1)
        finding = only(table, "stationarity")
        assert finding.columns == ("b", "c")
        assert "`detrend` or `difference`" in finding.text

    def test_an_exact_line_is_a_trend(self):
        assert only(np.arange(100.0)[:, None], "stationarity").columns == ("a",)

    @pytest.mark.parametrize("memory", [-0.9, 0.0, 0.5, 0.8])
    def test_stationary_series_are_rarely_named(self, memory):
        table = np.stack([autoregression(memory, seed=seed) for seed in range(60)], axis=1)
        names = tuple(map(str, range(60)))
        assert sum(len(f.columns) for f in found(table, "stationarity", names=names)) <= 2

    def test_only_unbroken_stretches_are_tested(self):
        step = noise(600, 1) + 5 * (np.arange(600) >= 300)[:, None]
        assert only(step, "stationarity").columns == ("a",)
        assert found(step, "stationarity", segments=[slice(0, 300), slice(300, 600)]) == []
        step[300] = nan
        assert found(step, "stationarity") == []

    def test_the_longest_stretch_decides(self):
        x = noise(400, 1)
        x[150:] = x[150:].cumsum(axis=0)
        x[149] = nan
        assert only(x, "stationarity").columns == ("a",)
        assert found(x[::-1][200:], "stationarity") == []

    def test_short_and_constant_stretches_are_skipped(self):
        walk = noise(300, 2).cumsum(axis=0)
        walk[::45, 0] = nan
        walk[20:, 1] = 1.0
        walk[20, 1] = nan
        assert found(walk, "stationarity") == []

    def test_columns_beyond_the_limit_are_said_to_be_untested(self):
        names = tuple(f"x{i}" for i in range(203))
        finding = found(noise(100, 203), "stationarity", names=names)[-1]
        assert finding.columns == names[200:]
        assert "only the first 200 of 203 columns were tested" in finding.text


class TestMissing:
    def test_shares_are_given_worst_first(self):
        values = noise()
        values[:3, 0] = nan
        values[:150, 2] = nan
        finding = only(values, "missing")
        assert finding.columns == ("a", "c")
        assert "column 'c' (50 %), 'a' (1 %); nothing" in finding.text

    def test_mostly_missing_columns_get_advice_of_their_own(self):
        values = noise()
        values[:240, 0] = nan
        values[:241, 1] = nan
        mostly, some = found(values, "missing")
        assert mostly.columns == ("b",)
        assert "'b' (80.3 %) is mostly missing; drop it" in mostly.text
        assert some.columns == ("a",)
