"""The numbers that decide: documented, restored, and each decides where it says it does.

Every test here stands on one side of a number and fails at half or at twice its value; `mutants`
counts that.
"""

from contextlib import suppress
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from causalformer.config import DetectorSettings
from causalformer.data import SeriesTable
from causalformer.data.quality import wandering
from causalformer.data.time_terms import Term as TimeTerm
from causalformer.data.time_terms import check_seen, dickey_fuller, find_time_terms
from causalformer.detect.contemporaneous import (
    PREDICTED,
    Present,
    Term,
    _Design,
    _first_look,
    _given_all,
    _left_over,
    as_levels,
    standardised,
)
from causalformer.detect.edges import lagged_edges, main_lag
from causalformer.detect.factors import links_beside_factors
from causalformer.detect.few_terms import SparseTests, sparse_tests
from causalformer.detect.lag_choice import network_lags
from causalformer.detect.pair_tests import Evidence
from causalformer.detect.samples import make_samples
from causalformer.detect.screening import n_candidates
from causalformer.errors import SettingsError
from causalformer.policy import POLICY, numbers, varied
from evidence_examples import make_evidence, make_within

SETTINGS = DetectorSettings()


def present_of(x):
    """A present without a past."""
    n_slots, n_series = x.shape
    none = [[] for _ in range(n_series)]
    return Present(x, np.ones(x.shape, bool), none, lambda _: x[:, 0], np.arange(n_slots), 1)


class TestNumbers:
    def test_each_says_what_it_decides_and_where_it_comes_from(self):
        assert len(numbers()) <= 25
        for _, decides, source in numbers().values():
            assert decides.endswith(".")
            assert source.endswith(".")

    def test_they_are_frozen_but_for_a_while(self):
        before = replace(POLICY)
        with pytest.raises(FrozenInstanceError):
            POLICY.level = 0.5  # type: ignore[misc]
        with suppress(ZeroDivisionError), varied(level=0.5, least_driven=2.0):
            assert (POLICY.level, POLICY.least_driven) == (0.5, 2)
            _ = 1 / 0
        assert before == POLICY

    def test_there_is_none_of_another_name(self):
        with pytest.raises(AttributeError, match="levl"), varied(levl=0.5):
            pass


@pytest.mark.parametrize(("least", "most", "counts"), [(1.70, 1.90, True), (1.35, 1.60, False)])
def test_level_at_which_memory_counts(least, most, counts):
    """Of 400 samples the second has a memory from .082 on, five times in a hundred by chance."""
    for seed in range(1000):
        x = np.random.default_rng(seed).standard_normal((400, 1))
        x -= x.mean()
        if least < 20 * abs((x[1:] * x[:-1]).sum() / (x**2).sum()) < most:
            assert (as_levels(present_of(x)).share < 1.0) == counts
            return
    raise AssertionError("no such noise")


@pytest.mark.parametrize(("n_more", "refuted"), [(26, True), (24, False)])
def test_refuted_from_one_of_two_hundred_on(n_more, refuted):
    one, left = np.zeros((1, 1)), np.ones((100, 1), dtype=np.float32)
    tests = SparseTests(one, one, one, one[..., None], one > 0, one > 0, left)
    better = np.where(np.arange(100) < (100 + n_more) / 2, 1.0, -1.0)[:, None]
    assert tests.refuted((left - better).astype(np.float32), left)[0] == refuted


@pytest.mark.parametrize(
    ("least", "most", "second_look"), [(0.06, 0.09, True), (0.11, 0.19, False)]
)
def test_second_look_at_pairs_within_the_slot(least, most, second_look):
    for seed in range(1000):
        present = present_of(np.random.default_rng(seed).standard_normal((100, 2)))
        p_value, _, candidate = _first_look(present, ~np.eye(2, dtype=bool))
        given = _given_all(present.now - present.now.mean(0), present.observed, present.shares)
        if least < min(p_value[0, 1], given[0, 1]) < most:
            assert candidate[0, 1] == second_look
            return
    raise AssertionError("no such noise")


@pytest.mark.parametrize(("probability", "claimed"), [(0.96, True), (0.94, False)])
def test_claim(probability, claimed):
    within = make_within(linked={(0, 1): probability})
    assert within.oriented[0, 1] == claimed


@pytest.mark.parametrize(("doubt", "drawn"), [(0.24, True), (0.26, False)])
def test_doubt(monkeypatch, doubt, drawn):
    evidence = make_evidence(p_value={(0, 1): 1e-9})
    local_fdr = np.where(evidence.pairs.p_value < 1e-6, doubt, 1.0)
    monkeypatch.setattr(Evidence, "local_fdr", local_fdr)
    assert lagged_edges(evidence, 0.05, SETTINGS)[0, 1] == drawn


def test_bent_share():
    """One link in five is bent, in one of three forms: such a term costs log 12 more."""
    present = present_of(np.random.default_rng(0).standard_normal((100, 2)))
    prices = _Design(present, ~np.eye(2, dtype=bool), 0)._prices
    assert prices[1:] - prices[0] == pytest.approx(np.log(12.0))


@pytest.mark.parametrize(("square", "left_over"), [(0.055, True), (0.065, False)])
def test_left_over(square, left_over):
    """Beside a network that knows more a link must explain six percent."""
    present = present_of(np.random.default_rng(0).standard_normal((100, 2)))
    known = replace(present, terms=[[Term(0, PREDICTED, 0)], []])
    partial = np.full((2, 2), np.sqrt(square))
    assert _left_over(known, partial)[0, 1] == left_over
    assert not _left_over(present, partial).any()


@pytest.mark.parametrize(("farthest", "same"), [(7.0, True), (4.0, False)])
def test_reach(farthest, same):
    """Beyond five standard deviations of a normal law nothing counts as farther out."""
    from scipy.special import ndtri

    x = ndtri((np.arange(200) + 0.5) / 200)
    near, far = (standardised(np.append(x, last)[:, None]) for last in (farthest, 100.0))
    assert np.allclose(near, far) == same


@pytest.mark.parametrize(("earlier", "lag"), [(0.82, 0), (0.78, 1)])
def test_near_lag(earlier, lag):
    evidence = make_evidence(profile={(0, 1): [earlier, 1.0, 0.0]})
    assert main_lag(evidence.pairs.lag_profile, np.ones((3, 3, 3), bool))[0, 1] == lag


def test_samples_per_weight():
    assert [network_lags(5, n_slots, 5) for n_slots in (59, 60, 99, 100)] == [2, 3, 4, 5]


def test_candidates():
    n_each = [n_candidates(n_slots, 5, 300, SETTINGS) for n_slots in (100, 899, 900, 5000)]
    assert n_each == [8, 8, 9, 20]


@pytest.mark.parametrize(("n_slots", "searched"), [(50, True), (49, False)])
def test_least_segment(n_slots, searched):
    x = np.random.default_rng(0).standard_normal((n_slots, 2)) + np.arange(n_slots)[:, None]
    found = find_time_terms(SeriesTable(x, ("a", "b")))
    assert (found.followed.get((0, 0)) == (TimeTerm("trend", 0),)) == searched
    walk = np.random.default_rng(2).standard_normal((300, 1)).cumsum(axis=0)[:n_slots]
    assert not wandering(walk[:49], [slice(0, 49)]).any()


@pytest.mark.parametrize(("n_driven", "found"), [(4, True), (3, False)])
def test_least_driven(n_driven, found):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1000, 7))
    x[:, :n_driven] += 1.5 * rng.standard_normal((1000, 1))
    none = [np.zeros((1000, 0))] * 7
    before = np.triu(np.ones((7, 7), dtype=bool), 1)
    factor = links_beside_factors(none, [np.zeros(0, bool)] * 7, x / x.std(0), before, 10, 10)
    assert (factor is not None and factor.driven.sum() == n_driven) == found


@pytest.mark.parametrize(("share", "found"), [(0.06, True), (0.04, False)])
def test_least_side(share, found):
    x = np.random.default_rng(0).standard_normal((1000, 1))
    x[int(share * 1000) :] += 4.0
    followed = find_time_terms(SeriesTable(x, ("a",))).followed.get((0, 0), ())
    assert (TimeTerm("shift", int(share * 1000)) in followed) == found


def test_needed_values():
    x = np.random.default_rng(0).standard_normal((401, 2))
    x[::2, 0] = np.nan
    samples = make_samples(x, [slice(0, 401)], np.zeros(401, int), 1, 4)
    share = 1.0 - float(samples.hidden.double().mean())
    assert samples.n_informed == int(samples.n_observed * share**4)


def test_near_past():
    """Of 400 slots a walk is told by five past changes, of 100 by four."""
    for n_slots, n_lags in ((100, 4), (400, 5)):
        x = np.random.default_rng(0).standard_normal(n_slots).cumsum()
        change, level = np.diff(x), x[:-1]
        columns = [level, *(np.append(np.zeros(k), change[:-k]) for k in range(1, n_lags + 1))]
        design = np.column_stack([*columns, np.ones(len(level))])[n_lags:]
        inverse = np.linalg.inv(design.T @ design)
        weights = inverse @ design.T @ change[n_lags:]
        left = change[n_lags:] - design @ weights
        variance = (left @ left) / (len(design) - design.shape[1])
        expected = weights[0] / np.sqrt(variance * inverse[0, 0])
        assert dickey_fuller(x) == pytest.approx(expected)


def test_half_waves():
    """A wave of three periods is a trend, one of four is none; a season is seen three times."""
    t = (np.arange(400) + 0.5) / 400
    noise = np.random.default_rng(0).standard_normal((400, 1)) / 2
    for n_half_waves, held in ((6, True), (8, False)):
        wave = 3.0 * np.cos(np.pi * n_half_waves * t)[:, None]
        terms = find_time_terms(SeriesTable(wave + noise, ("a",))).followed.get((0, 0), ())
        assert (TimeTerm("trend", n_half_waves) in terms) == held
    table = SeriesTable(np.zeros((60, 1)), ("a",))
    check_seen(table, [20])
    with pytest.raises(SettingsError, match="too long"):
        check_seen(table, [21])


def test_gap_caution():
    """Where values are missing unequal errors raise a variance by its root only."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 2))
    x[1:, 1] = 0.7 * x[:-1, 0] + np.abs(x[:-1, 0]) * x[1:, 1]
    x[rng.random(x.shape) < 0.1] = np.nan
    samples = make_samples(x, [slice(0, 400)], np.zeros(400, int), 1, 4)
    allowed, own = np.ones((2, 2, 1), bool), np.eye(2, dtype=bool)

    def p_value():
        return np.log(sparse_tests(samples, allowed, own).p_value[0, 1])

    with varied(gap_caution=0.0):
        none = p_value()
    with varied(gap_caution=1.0):
        whole = p_value()
    assert 0.42 < (p_value() - none) / (whole - none) < 0.72
