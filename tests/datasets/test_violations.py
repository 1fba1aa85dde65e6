"""Systems that violate assumptions: the same graph at every strength, and true to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalformer.datasets import VIOLATIONS, make_slot_system, make_violation
from causalformer.datasets.violations import STRENGTHS
from causalformer.datasets.violations.base import (
    GRID,
    RADIUS,
    draw_base,
    links_of,
    radius_of,
    simulate,
    stable,
    standard_curve,
)
from causalformer.errors import SettingsError

CHANGES_WITH_STRENGTH = {"change-graph", "dense", "aggregated", "subsampled"}
SMALL = [name for name, violation in VIOLATIONS.items() if not violation.large]


@given(st.sampled_from(SMALL), st.sampled_from(STRENGTHS), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_every_system_can_be_used_and_its_lags_are_within_reach(family, strength, seed):
    made = make_violation(family, strength, random_state=seed)
    values = made.series.values
    assert np.isfinite(np.nanmax(np.abs(values)))
    assert (np.nanstd(values, axis=0) > 0).all()
    assert max(edge.lag for edge in made.truth) < VIOLATIONS[family].max_lag
    assert any(e.cause != e.effect for e in made.truth) != (VIOLATIONS[family].group == "nulls")


@pytest.mark.parametrize("family", SMALL)
def test_strengths_of_one_seed_share_their_graph_and_differ_in_their_series(family):
    mild, severe, again = (make_violation(family, s, random_state=1) for s in (1, 4, 4))
    if family not in CHANGES_WITH_STRENGTH:
        assert mild.truth == severe.truth
    np.testing.assert_array_equal(severe.series.values, again.series.values)
    if family != "none":
        assert not np.array_equal(mild.series.values, severe.series.values, equal_nan=True)


@pytest.mark.parametrize("family", [name for name, v in VIOLATIONS.items() if v.from_base])
def test_strength_zero_is_the_base_system_whatever_its_units(family):
    base = make_violation("none", 0, random_state=4)
    none = make_violation(family, 0, random_state=4)
    assert none.truth == base.truth
    for ours, theirs in zip(none.series.values.T, base.series.values.T, strict=True):
        assert np.corrcoef(ours, theirs)[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(4))
def test_regressions_give_the_coefficients_of_the_base_system(seed):
    base = draw_base(np.random.default_rng(seed))
    n_series, _, n_lags = base.weights.shape
    noise = np.random.default_rng(seed).standard_normal((20_000, n_series))
    x = simulate(base.weights, noise)
    past = np.hstack([x[n_lags - lag : len(x) - lag] for lag in range(1, n_lags)])
    for effect in range(n_series):
        causes = np.flatnonzero(base.weights[:, effect, 0])
        regressors = np.hstack((x[n_lags:, causes], past))
        found = np.linalg.lstsq(regressors, x[n_lags:, effect], rcond=None)[0]
        true = base.weights[:, effect]
        expected = np.concatenate((true[causes, 0], true[:, 1:].T.ravel()))
        np.testing.assert_allclose(found, expected, atol=0.06)


def test_base_systems_are_as_described():
    bases = [draw_base(np.random.default_rng(seed)) for seed in range(40)]
    sizes = {(b.n_series, b.weights.shape[2] - 1, b.n_slots) for b in bases}
    assert sizes == {(5, 3, 250), (5, 3, 1000), (7, 4, 250), (7, 4, 1000)}
    within = sum(bool(b.weights[:, :, 0].any()) for b in bases)
    assert 8 <= within <= 28
    for base in bases:
        size = np.abs(base.weights[base.weights != 0])
        assert 0.3 <= size.min() <= size.max() <= 0.5
        assert (np.diagonal(base.weights)[1] != 0).all()
        assert radius_of(base.weights) <= RADIUS
        assert links_of(base.weights)


def test_a_system_that_would_explode_is_shrunk_link_by_link():
    weights = np.zeros((2, 2, 3))
    weights[0, 1, 0], weights[1, 0, 1], weights[0, 0, 2] = 0.5, 1.5, 0.7
    calm = stable(weights)
    assert radius_of(calm) == pytest.approx(RADIUS)
    assert calm[0, 1, 0] == 0.5
    assert links_of(calm) == links_of(weights)


def test_contemporaneous_links_pass_on_within_the_slot_in_causal_order():
    weights = np.zeros((3, 3, 2))
    weights[2, 0, 0], weights[0, 1, 0] = 2.0, 3.0
    assert simulate(weights, np.array([[0.0, 0.0, 1.0]])).tolist() == [[2.0, 6.0, 1.0]]


def test_bent_links_are_looked_up_and_standardised():
    curve = standard_curve(np.abs(GRID))
    weights = np.zeros((2, 2, 2))
    weights[0, 1, 1] = 1.0
    noise = np.zeros((20_001, 2))
    noise[:, 0] = np.random.default_rng(0).standard_normal(20_001)
    driven = simulate(weights, noise, links={(0, 1, 1): curve})[1:, 1]
    assert (driven.mean(), driven.std()) == pytest.approx((0.0, 1.0), abs=0.05)
    assert np.corrcoef(driven, np.abs(noise[:-1, 0]))[0, 1] > 0.99


def test_holes_have_the_share_that_is_promised_and_their_reason():
    for family in ("missing-random", "missing-observed", "missing-value"):
        missing = make_violation(family, 3, random_state=2).series.missing
        assert missing[:, 1:].mean() == pytest.approx(0.6, abs=0.02)
    whole = make_violation("none", 0, random_state=2).series.values
    holed = make_violation("missing-value", 2, random_state=2).series.missing
    for values, holes in zip(whole.T, holed.T, strict=True):
        assert values[holes].mean() > values[~holes].mean()
    assert not make_violation("missing-observed", 4, random_state=2).series.missing[:, 0].any()
    assert not make_violation("filled-value", 4, random_state=2).series.missing.any()


def test_measurement_noise_has_the_promised_size_and_may_be_common():
    clean = make_violation("none", 0, random_state=3).series.values
    for family in ("measurement-additive", "measurement-common", "measurement-shocks"):
        noise = make_violation(family, 3, random_state=3).series.values - clean
        np.testing.assert_allclose(clean.var(0) / noise.var(0), 0.2, rtol=0.01)
        together = np.corrcoef(noise.T)[0, 1]
        assert (together > 0.99) == (family == "measurement-common")


def test_counts_are_counts_and_binary_columns_have_two_values():
    counts = make_violation("counts", 4, random_state=0).series.values
    assert (counts >= 0).all()
    assert (counts == np.rint(counts)).all()
    binary = make_violation("binary", 4, random_state=0).series.values
    assert set(np.unique(binary)) == {-1.0, 1.0}


def test_null_series_are_not_linked_but_look_alike():
    for family in (name for name, v in VIOLATIONS.items() if v.group == "nulls"):
        made = make_violation(family, 4, random_state=0)
        assert {(e.cause, e.effect) for e in made.truth} == {(n, n) for n in made.truth.names}
        assert made.series.values.shape == (500, 5)
    trend = make_violation("null-trend", 4, random_state=0).series.values
    assert np.corrcoef(trend.T).min() > 0.5


@pytest.mark.parametrize("law", ["gaussian", "uniform", "nonlinear", "lagged-laplace"])
def test_slot_systems_are_linked_within_the_slot(law):
    made = make_slot_system(law, 5, 400, random_state=1)
    lags = [edge.lag for edge in made.truth if edge.cause != edge.effect]
    assert lags.count(0) == 5
    assert (max(lags) > 0) == law.startswith("lagged")


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: make_violation("weather"), "weather"),
        (lambda: make_violation("trend", 5), "0 to 4"),
        (lambda: make_violation("trend", 1, random_state="x"), "random_state"),
        (lambda: make_slot_system("cauchy"), "cauchy"),
        (lambda: make_slot_system("laplace", memory=(0.5, 1.0)), "memory"),
        (lambda: make_slot_system("laplace", 1), "n_series"),
    ],
)
def test_wrong_options_are_named(call, named):
    with pytest.raises(SettingsError, match=named):
        call()
