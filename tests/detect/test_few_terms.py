"""Tests beside the few terms that matter, against a slow twin and against what they promise."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f as fisher
from scipy.stats import t as student

from causalformer import scratch
from causalformer.data.scaling import fit_normal_scores
from causalformer.detect import few_terms
from causalformer.detect.evidence import cauchy_combination
from causalformer.detect.few_terms import search_terms, sparse_tests
from causalformer.policy import varied
from evidence_examples import samples_of


def noise(n_slots=300, n_series=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n_slots, n_series))


def everything(n_series, max_lag):
    return np.ones((n_series, n_series, max_lag), dtype=bool)


def judged(x, max_lag=2):
    n_series = x.shape[1]
    return sparse_tests(samples_of(x, max_lag), everything(n_series, max_lag), np.eye(n_series) > 0)


def twin(x, max_lag, effect):
    """Choose terms by fitting everything anew, and test by regression: p-values by cause."""
    n_slots, n_series = x.shape
    columns, owner = [], []
    for cause in range(n_series):
        for lag in range(1, max_lag + 1):
            v = x[max_lag - lag : n_slots - lag, cause].astype(np.float32).astype(float)
            columns += [v, v**2, v**3 - 3 * v, np.sin(2 * v), np.cos(2 * v), np.abs(v)]
            owner += 6 * [cause]
    terms, owner = np.array(columns).T, np.array(owner)
    y = x[max_lag:, effect].astype(np.float32).astype(float)
    n = len(y)
    at, form = np.arange(len(owner)) // 6 % max_lag, np.arange(len(owner)) % 6
    likely = np.where(form == 0, 0.8, 0.2 / 3) / (1 + at)
    price = np.log(n) - np.log(likely / likely[form < 4].sum())

    def error(chosen):
        design = np.column_stack([np.ones(n), terms[:, chosen]])
        return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())

    def gain(chosen, k):
        without = error([c for c in chosen if c != k])
        return (n - len(chosen) - 1) * np.log(without / error(chosen)) - price[k]

    def chosen_among(usable):
        first = [k for k in usable if owner[k] == effect and k % 6 == 0]
        chosen, refused = list(first), []
        while True:
            matters = {k // 6 for k in chosen}
            rest = [k for k in usable if k not in chosen and (k % 6 < 4 or k // 6 in matters)]
            rest = [k for k in rest if k not in refused]
            gains = [gain([*chosen, k], k) for k in rest]
            best = rest[int(np.argmax(gains))]
            share = 1 - error([*chosen, best]) / error(chosen)
            if max(gains) <= 0:
                break
            unequal, _ = unequal_errors(best, chosen)
            share = share / (share + unequal * (1 - share))
            pays = -(n - len(chosen) - 2) * np.log1p(-share) > price[best]
            (chosen if pays else refused).append(best)
        return without_idle(chosen, first)

    def unequal_errors(k, chosen):
        design = np.column_stack([np.ones(n), terms[:, chosen], terms[:, k]])
        wrong = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        before = np.linalg.lstsq(design[:, :-1], terms[:, k], rcond=None)[0]
        freed = terms[:, k] - design[:, :-1] @ before
        pull = freed**2 / (freed**2).sum()
        parts = pull * (wrong / (1 - pull)) ** 2
        raised = parts.sum() / (wrong**2).mean()
        by_chance = 1 + 1.645 * np.sqrt(2 * ((pull - 1 / n) ** 2).sum())
        freedom = 3 * parts.sum() ** 2 / (parts**2).sum()
        return raised if raised > by_chance else 1.0, freedom

    def without_idle(chosen, kept):
        while set(chosen) - set(kept):
            idle = [k for k in chosen if k not in kept]
            gains = [gain(chosen, k) for k in idle]
            if min(gains) > 0:
                break
            chosen = [k for k in chosen if k != idle[int(np.argmin(gains))]]
        return chosen

    def of_memory(chosen):
        others = [k for k in chosen if owner[k] != effect]
        own = [k for k in range(len(owner)) if owner[k] == effect and k % 6 == 0]
        freedom = n - len(others) - len(own) - 1
        ratio = error(others) / error([*others, *own]) - 1
        return fisher.sf(ratio * freedom / len(own), len(own), freedom)

    def of_cause(cause, chosen):
        freedom = n - len(chosen) - 2
        tested = np.flatnonzero((owner == cause) & (np.arange(len(owner)) % 6 < 4))
        straight = tested % 6 == 0
        unequal, known = np.array([unequal_errors(k, chosen) for k in tested]).T
        for form in range(4):
            alike = tested % 6 == form
            unequal[alike] = np.maximum(unequal[alike], unequal[alike].mean())
            known[alike] = np.minimum(known[alike], known[alike].mean())
        known = np.minimum(unequal**2 / (1 / freedom + (unequal - 1) ** 2 / known), freedom)
        share = np.array([1 - error([*chosen, k]) / error(chosen) for k in tested])
        likely = 1 / (1 + tested // 6 % max_lag)
        likely = np.where(straight, 0.4 * likely, 0.2 / 3 * likely) / likely[straight].sum()
        weights = [*likely, 0.4]
        lags = tested[straight].tolist()
        t = np.sqrt(freedom * share / (1 - share))
        ratio = (error(chosen) / error([*chosen, *lags]) - 1) / len(lags)
        ratio *= freedom + 1 - len(lags)

        def combined(unequal, known):
            less = np.average(unequal[straight], weights=share[straight])
            alone = 2 * student.sf(t / np.sqrt(unequal), known)
            free = max(known[straight].min() + 1 - len(lags), 1)
            at_once = fisher.sf(ratio / less, len(lags), free)
            return float(cauchy_combination(*alone, at_once, weights=weights))

        ones = np.ones(len(tested))
        plain = combined(ones, freedom * ones)
        return plain if plain >= 0.1 else combined(unequal, known)

    p_values = []
    for cause in range(n_series):
        chosen = chosen_among(range(len(owner)))
        if cause == effect:
            p_values.append(of_memory(chosen))
            continue
        if not any(owner[k] == cause for k in chosen):
            p_values.append(of_cause(cause, chosen))
            continue
        chosen = chosen_among([k for k in range(len(owner)) if owner[k] != cause])
        p_value, n_chosen = of_cause(cause, chosen), len(chosen)
        tested = [k for k in range(len(owner)) if owner[k] == cause and k % 6 < 4]
        gains = [gain([*chosen, k], k) for k in tested]
        best = tested[int(np.argmax(gains))]
        if max(gains) > 0:
            own = [k for k in chosen if owner[k] == effect and k % 6 == 0]
            chosen = [k for k in without_idle([*chosen, best], [*own, best]) if k != best]
        fewer = len(chosen) < n_chosen
        p_values.append(max(of_cause(cause, chosen), p_value**2) if fewer else p_value)
    return p_values


@pytest.mark.parametrize("effect", [0, 1, 2])
def test_as_by_fitting_every_set_anew(effect):
    x = noise()
    for t in range(2, len(x)):
        x[t, 1] += 0.5 * x[t - 1, 1] + 0.4 * x[t - 2, 0]
        x[t, 2] += 0.3 * (x[t - 1, 0] ** 2 - 1)
    found = judged(x).p_value[:, effect]
    np.testing.assert_allclose(np.log(found), np.log(twin(x, 2, effect)), rtol=1e-3, atol=1e-3)


def with_stand_in(seed=0):
    """Series 0 drives 2; 1 is what a noisy instrument shows of 0."""
    x = noise(400, seed=seed)
    for t in range(1, len(x)):
        x[t, 0] += 0.8 * x[t - 1, 0]
        x[t, 2] += 0.6 * x[t - 1, 0]
    x[:, 1] = x[:, 0] + 0.8 * x[:, 1]
    return x


def test_as_by_fitting_every_set_anew_where_one_stands_in_for_another():
    x = with_stand_in()
    found = judged(x).p_value[:, 2]
    np.testing.assert_allclose(np.log(found), np.log(twin(x, 2, 2)), rtol=1e-3, atol=1e-3)


def test_a_stand_in_takes_little_power_from_a_cause():
    for seed in range(5):
        x = with_stand_in(seed)
        p_value = judged(x).p_value[:, 2]
        assert p_value[0] < 1e-8
        assert p_value[1] > 1e-3


@pytest.mark.parametrize("link", [lambda v: v, lambda v: v**2 - 1, lambda v: np.sin(2 * v), np.abs])
def test_straight_bent_and_turned_links_are_found_at_their_lag(link):
    x = noise(400)
    x[2:, 1] += 0.5 * link(x[:-2, 0])
    found = judged(x)
    assert found.p_value[0, 1] < 1e-5
    assert found.t[0, 1].argmax() == 1
    assert found.explained[0, 1] > 0.05
    assert found.residual[:, 1].var() < 0.95 * x[:, 1].var()
    others = found.p_value[~np.eye(3, dtype=bool)]
    assert (others < 0.01).sum() == 1


@pytest.mark.parametrize("link", [np.square, lambda v: np.sin(2 * v), lambda v: np.tanh(2 * v)])
def test_two_effects_of_a_bent_cause_do_not_drive_each_other(link):
    x = noise(2000)
    for t in range(1, len(x)):
        x[t, 0] += 0.5 * x[t - 1, 0]
    x[1:, 1] = 0.8 * link(x[:-1, 0]) + 0.5 * x[1:, 1]
    x[2:, 2] = 0.8 * link(x[:-2, 0]) + 0.5 * x[2:, 2]
    found = judged(fit_normal_scores(x).apply(x))
    assert (found.p_value[0, 1:] < 1e-9).all()
    assert found.p_value[1, 2] > 1e-3
    assert found.p_value[2, 1] > 1e-3


def test_idle_series_cost_no_power():
    x = noise(120, 20)
    x[1:, 1] += 0.6 * x[:-1, 0]
    alone, among = judged(x[:, :2]).p_value[0, 1], judged(x).p_value[0, 1]
    assert np.log10(among) == pytest.approx(np.log10(alone), abs=2)
    assert among < 1e-6


def test_memory_that_comes_from_a_cause_is_no_self_loop():
    x = noise(600)
    for t in range(1, len(x)):
        x[t, 0] += 0.9 * x[t - 1, 0]
        x[t, 1] += x[t - 1, 0]
    found = judged(x)
    assert found.p_value[0, 0] < 1e-9
    assert found.p_value[0, 1] < 1e-9
    assert found.p_value[1, 1] > 1e-3


def test_memory_is_found_though_others_could_stand_in_for_it():
    x = noise(200)
    for t in range(2, len(x)):
        x[t] += 0.6 * x[t - 1] - 0.3 * x[t - 2]
    x += 0.8 * x.sum(axis=1, keepdims=True)  # what every series says of the others' past
    assert (np.diag(judged(x).p_value) < 1e-5).all()


def test_what_comes_through_another_series_is_no_edge():
    x = noise(800)
    for t in range(1, len(x)):
        x[t, 1] += 0.8 * x[t - 1, 0]
        x[t, 2] += 0.8 * x[t - 1, 1]
    found = judged(x)
    assert found.p_value[0, 1] < 1e-9
    assert found.p_value[1, 2] < 1e-9
    assert found.p_value[0, 2] > 0.01


def test_in_noise_small_p_values_are_as_rare_as_they_say():
    p = np.concatenate([judged(noise(200, 4, seed)).p_value.ravel() for seed in range(60)])
    for level in (0.2, 0.05, 0.01):
        assert (p < level).mean() < 1.5 * level + 0.005


class TestWandering:
    """The level of a cause that wanders is held beside its past."""

    def judged_with(self, x, wanders, max_lag=2):
        n_series = x.shape[1]
        samples = samples_of(x, max_lag, wanders=np.array(wanders))
        return sparse_tests(samples, everything(n_series, max_lag), np.eye(n_series) > 0)

    def small(self, level, *, wanders):
        between = ~np.eye(4, dtype=bool)
        walks = (noise(300, 4, seed).cumsum(axis=0) for seed in range(40))
        scores = (fit_normal_scores(x).apply(x) for x in walks)
        p = [self.judged_with(x, [wanders] * 4).p_value[between] for x in scores]
        return float((np.concatenate(p) < level).mean())

    def test_of_independent_walks_small_p_values_are_as_rare_as_they_say(self):
        assert self.small(0.01, wanders=True) < 0.015
        assert self.small(0.01, wanders=False) > 0.02

    def test_what_a_walk_does_is_found_at_its_lag(self):
        x = noise(300, 3)
        x[:, 0] = x[:, 0].cumsum() / 10
        x[2:, 1] += x[:-2, 0] * 2
        x[1:, 2] += 10 * np.diff(x[:, 0])
        found = self.judged_with(x, [True, False, False], max_lag=3)
        assert found.t.shape == (3, 3, 3)
        assert found.p_value[0, 1] < 1e-3
        assert found.t[0, 1].argmax() == 1

    def test_without_a_walk_nothing_changes(self):
        x = noise()
        np.testing.assert_array_equal(self.judged_with(x, [False] * 3).p_value, judged(x).p_value)

    @pytest.mark.parametrize("missing", [0.0, 0.1])
    def test_it_is_the_same_as_one_more_lag_that_is_not_tested(self, missing):
        x = noise(400, 2).cumsum(axis=0) / 10
        x[np.random.default_rng(1).random(x.shape) < missing] = np.nan
        p = self.judged_with(x, [True, False]).p_value
        assert p[0, 1] != pytest.approx(judged(x).p_value[0, 1], rel=1e-3)
        assert np.isfinite(p).all()


def test_slots_without_the_effect_do_not_count():
    x = noise()
    x[1:, 1] += 0.3 * x[:-1, 0]
    gone = np.random.default_rng(1).random(298) < 0.3
    samples = samples_of(x, 2)
    observed = torch.ones(298, 3)
    observed[torch.from_numpy(gone), 1] = 0.0
    hidden = torch.zeros(298, 3, 2, dtype=torch.bool)
    weighed = replace(samples, observed=observed, hidden=hidden)
    kept = samples.pick(np.flatnonzero(~gone))
    with varied(gap_caution=1.0):
        found = sparse_tests(weighed, everything(3, 2), np.eye(3) > 0)
    expected = sparse_tests(kept, everything(3, 2), np.eye(3) > 0)
    for name in ("p_value", "explained", "t"):
        a, b = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(a[:, 1], b[:, 1], rtol=1e-5)
    np.testing.assert_allclose(found.residual[~gone, 1], expected.residual[:, 1], atol=1e-5)


def test_samples_that_lack_what_matters_are_no_evidence():
    p_values = []
    for seed in range(20):
        x = noise(400, seed=seed)
        x[1:, 1] = x[:-1, 0] ** 2 - 1 + 0.3 * x[1:, 1]
        x[np.random.default_rng(seed).random(x.shape) < 0.15] = np.nan
        found = judged(x)
        assert found.p_value[0, 1] < 1e-40
        p_values.append(found.p_value[2, 1])
    assert min(p_values) > 1e-3


@pytest.mark.parametrize("kind", ["storms", "rare events"])
def test_what_happens_to_all_at_once_is_no_evidence(kind):
    p = []
    for seed in range(40):
        x, rng = noise(300, 4, seed), np.random.default_rng(seed)
        if kind == "storms":
            x *= np.exp(np.cumsum(rng.standard_normal((300, 1)), axis=0) * 0.15)
            x /= np.abs(x).std(axis=0)
        else:
            x = (rng.random((300, 4)) < 0.03) * (3 + rng.random((300, 4)))
        scores = fit_normal_scores(x).apply(x)
        p.append(judged(scores).p_value[~np.eye(4, dtype=bool)])
    p = np.concatenate(p)
    assert (p < 0.01).mean() < 0.03
    assert (p < 1e-4).mean() < 0.01


def test_a_stand_in_is_tested_beside_what_it_stood_in_for():
    p_values = []
    for seed in range(10):
        z, *e = noise(500, 3, seed).T
        smooth = np.convolve(z, np.ones(4) / 2)[:500]
        c = np.r_[0.0, smooth[:-1]] + 0.3 * e[0]
        y = np.r_[0.0, 0.0, 0.5 * smooth[:-2]] + e[1]
        p_values.append(judged(np.column_stack([z, c, y])[10:], 5).p_value[1, 2])
    assert np.median(p_values) > 0.01


def test_an_effect_that_was_never_observed_is_no_effect():
    x = noise()
    x[3:, 2] = np.nan
    found = judged(x, 3)
    assert (found.p_value[:, 2] == 1).all()
    assert np.isfinite(found.p_value).all()


def test_sources_say_which_series_the_causes_are():
    x = noise(n_series=4)
    x[1:, 3] += 0.4 * x[:-1, 1]
    samples, own = samples_of(x, 2), np.array([[True, True], [False, False]])
    found = sparse_tests(
        samples.of(range(4), [3, 0]), np.ones((2, 2, 2), bool), own, torch.tensor([[3, 1], [0, 2]])
    )
    for effect, causes in enumerate(([3, 1], [0, 2])):
        alone = sparse_tests(samples.of(causes, causes[:1]), np.ones((2, 1, 2), bool), own[:, :1])
        np.testing.assert_array_equal(found.p_value[:, effect], alone.p_value[:, 0])
        np.testing.assert_array_equal(found.t[:, effect], alone.t[:, 0])


@pytest.mark.parametrize("complete", [True, False])
def test_products_that_effects_share_are_those_of_each(complete, monkeypatch):
    x = noise(n_series=5)
    x[1:, 3] += 0.4 * x[:-1, 1]
    x[1:, 0] += 0.4 * x[:-1, 3]
    if not complete:
        x[7, 2] = np.nan
    sources, own = torch.tensor([[3, 1, 0, 2], [0, 2, 3, 4]]), np.eye(4, 2) > 2
    own[0] = True
    allowed = np.ones((4, 2, 2), bool)
    allowed[1, 0, 0] = allowed[2, 1] = False
    found = []
    for shared in (True, False):
        monkeypatch.setattr(few_terms, "_worth_sharing", lambda *_, shared=shared: shared)
        found.append(sparse_tests(samples_of(x, 2).of(range(5), [3, 0]), allowed, own, sources))
    for figure in ("p_value", "explained", "t", "residual"):
        one, other = (getattr(tests, figure) for tests in found)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


def test_candidates_may_lie_on_another_device():
    class Elsewhere(torch.Tensor):
        def numpy(self):
            raise TypeError("can't convert a tensor of another device to numpy")

        def cpu(self):
            return self.as_subclass(torch.Tensor)

    samples, sources = samples_of(noise(), 2), torch.tensor([[0, 1], [1, 2], [2, 0]])
    own = np.array([[True] * 3, [False] * 3])
    there, here = (
        sparse_tests(samples, np.ones((2, 3, 2), bool), own, tensor).p_value
        for tensor in (sources.as_subclass(Elsewhere), sources)
    )
    np.testing.assert_array_equal(there, here)


def test_a_forbidden_lag_is_no_term():
    x = noise()
    x[1:, 1] += x[:-1, 0]
    samples, allowed = samples_of(x, 2), everything(3, 2)
    allowed[0, 1, 0] = allowed[2, 0] = False
    found = sparse_tests(samples, allowed, np.eye(3) > 0)
    assert found.p_value[0, 1] > 1e-3
    assert found.t[0, 1, 0] == 0
    assert found.p_value[2, 0] == 1
    assert found.explained[2, 0] == 0


def test_parts_of_the_samples_add_up(monkeypatch):
    x = noise()
    whole = judged(x)
    monkeypatch.setattr(scratch, "_NUMBERS", 1000)
    np.testing.assert_allclose(judged(x).p_value, whole.p_value, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(3, 40),
    st.integers(1, 4),
    st.sampled_from(["constant", "copy", "noise"]),
    st.integers(0, 9),
)
def test_whatever_the_series_the_figures_are_finite(n_slots, n_series, kind, seed):
    x = noise(n_slots + 8, n_series, seed)
    if kind == "constant":
        x[:, 0] = 0.0
    if kind == "copy":
        x[:] = x[:, :1]
    found = judged(x, 2)
    assert ((found.p_value > 0) & (found.p_value <= 1)).all()
    assert ((found.explained >= 0) & (found.explained <= 1)).all()
    assert np.isfinite(found.t).all()
    assert np.isfinite(found.residual).all()


def dense_system(n_slots=400, n_series=20, n_causes=10, size=0.14, seed=0):
    """Every series hangs on many others, straight, at lag 1; also give who drives whom."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((n_series, n_series))
    for effect in range(n_series):
        causes = rng.choice(np.delete(np.arange(n_series), effect), n_causes, replace=False)
        weights[causes, effect] = size * rng.choice([-1.0, 1.0], n_causes)
    x = rng.standard_normal((n_slots, n_series))
    for t in range(1, n_slots):
        x[t] += x[t - 1] @ weights
    return x, weights != 0


class TestRefuted:
    """Terms are not believed if another prediction knows more."""

    def predictions(self, seed, link):
        x = noise(400, seed=seed)
        x[1:, 1] = link(x[:-1].T) + 0.5 * x[1:, 1]
        return x, judged(x, 1)

    def test_a_prediction_that_knows_more_does_so(self):
        for seed in range(5):
            x, tests = self.predictions(seed, lambda v: v[0] * v[2])  # no sum of terms
            other = np.zeros_like(tests.residual)
            other[:, 1] = x[1:, 1] - 0.8 * x[:-1, 0] * x[:-1, 2]
            other[:, [0, 2]] = tests.residual[:, [0, 2]]
            observed = np.ones_like(other)
            assert tests.refuted(other, observed).tolist() == [False, True, False]
            observed[:, 1] = 0.0
            assert not tests.refuted(other, observed).any()

    def test_a_worse_or_a_noisy_one_rarely_does(self):
        wrongly = []
        for seed in range(60):
            x, tests = self.predictions(seed, lambda v: v[0] ** 2)
            rng = np.random.default_rng(seed)
            noisy = x[1:] - 0.2 * rng.standard_normal(x[1:].shape)
            noisy[:, 1] -= x[:-1, 0] ** 2
            observed = np.ones(noisy.shape)
            wrongly += tests.refuted(noisy.astype(np.float32), observed).tolist()
            wrongly += tests.refuted(x[1:].astype(np.float32), observed).tolist()
        assert np.mean(wrongly) < 0.02

    def test_long_series_are_judged_by_some_of_their_samples(self, monkeypatch):
        x = noise(400)
        x[1:, 1] = x[:-1, 0] * x[:-1, 2] + 0.5 * x[1:, 1]
        other = noise(400, seed=1)[1:].astype(np.float32)
        other[:, 1] = x[1:, 1] - 0.8 * x[:-1, 0] * x[:-1, 2]
        monkeypatch.setattr(few_terms, "_shared_rows", lambda _: 150)
        tests = judged(x, 1)
        assert (tests.every, len(tests.residual)) == (3, 133)
        assert tests.refuted(other, np.ones(other.shape))[1]


class TestCrowd:
    """Causes too weak to be chosen one by one are held fixed all the same."""

    def search(self, x, effect=0, max_lag=1):
        n_series = x.shape[1]
        samples = samples_of(x, max_lag)
        own = np.eye(n_series, dtype=bool)
        found = few_terms._searches(samples, everything(n_series, max_lag), own, None)
        return list(found)[effect]

    def test_a_few_causes_are_no_crowd(self):
        x = noise(400, 10)
        x[1:, 0] += 0.5 * x[:-1, 1] - 0.5 * x[:-1, 2]
        assert self.search(x)._crowd.amount == 0

    def test_many_weak_causes_are_one(self):
        x = noise(400, 30)
        x[1:, 0] += 0.12 * x[:-1, 1:].sum(axis=1)
        assert self.search(x)._crowd.amount > 0

    def test_as_by_generalised_least_squares(self):
        """The same figures from the covariance of the errors that a crowd makes."""
        x = noise(300, 25)
        x[1:, 0] += 0.13 * x[:-1, 1:].sum(axis=1)
        search = self.search(x)
        z = x.astype(np.float32).astype(float)
        past, y = z[:-1] - z[:-1].mean(axis=0), z[1:, 0] - z[1:, 0].mean()
        past, y, n = past / past.std(axis=0), y / y.std(), len(y)
        amount, chosen = search._crowd.amount / n, search._chosen
        assert amount > 0
        assert set(chosen % 6) == {0}
        for cause in np.setdiff1d(np.arange(25), chosen // 6)[:5]:
            others = np.delete(past, cause, axis=1)
            inverse = np.linalg.inv(np.eye(n) + amount * others @ others.T)
            columns = past[:, [*(chosen // 6), cause]]
            of_weights = np.linalg.inv(columns.T @ inverse @ columns)
            weights = of_weights @ columns.T @ inverse @ y
            wrong = y - columns @ weights
            freedom = n - len(chosen) - 2
            spread = wrong @ inverse @ wrong / freedom * of_weights[-1, -1]
            share = search._rest[6 * cause]
            t = np.sqrt(freedom * share / (1 - share))
            assert t == pytest.approx(abs(weights[-1]) / np.sqrt(spread), rel=1e-3)
            at_once = search._p_value_at_once(
                np.array([6 * cause]), freedom, search._beside, unequal=1.0
            )
            assert at_once == pytest.approx(2 * student.sf(t, freedom), rel=1e-3)

    def test_it_predicts_as_a_ridge_does(self):
        x = noise(300, 25)
        x[1:, 0] += 0.13 * x[:-1, 1:].sum(axis=1)
        search = self.search(x)
        wrong = search.residual
        n = len(wrong)
        known = search._crowd.amount * search._terms.crowd.power
        k = len(search._chosen) + 1 + (known / (1 + known)).sum()
        assert search.error == pytest.approx((wrong**2).mean() * (n + k) / (n - k), rel=1e-3)
        assert search.error < 0.9 * x[:, 0].var()

    def test_without_it_more_is_missed(self, monkeypatch):
        def share_found():
            found = []
            for seed in range(3):
                x, truth = dense_system(seed=seed)
                p_value = judged(x, 1).p_value
                found.append((p_value < 0.01)[truth].mean())
            return np.mean(found)

        with_crowd = share_found()
        monkeypatch.setattr(few_terms, "_CROWDS", np.array([1e-9]))
        assert with_crowd > share_found() + 0.01

    def test_false_ones_stay_rare(self):
        p_values = []
        for seed in range(4):
            x, truth = dense_system(seed=seed)
            p_values.append(judged(x, 1).p_value[~truth & ~np.eye(20, dtype=bool)])
        assert (np.concatenate(p_values) < 0.01).mean() < 0.02


def test_an_effect_that_is_spread_over_lags_is_found():
    p_values = []
    for seed in range(10):
        x = noise(300, 2, seed)
        x[5:, 1] += sum(0.11 * x[5 - lag : -lag, 0] for lag in range(1, 6))
        p_values.append(judged(x, 5).p_value[0, 1])
    assert np.median(p_values) < 3e-3


def test_more_causes_than_a_handful_are_found():
    x, truth = dense_system(500, 34, 28, 0.14)
    found = judged(x, 1).p_value < 0.01
    assert found[truth].mean() > 0.6


def test_noise_is_rarely_chosen_in_short_series():
    n_chosen = []
    for seed in range(40):
        samples = samples_of(noise(56, 5, seed), 4)
        for effect in range(5):
            search = search_terms(samples.of(range(5), [effect]), np.ones((5, 4), bool), effect)
            n_chosen.append(len(search.terms) - 4)
    assert np.mean(n_chosen) < 0.22


def test_equal_errors_take_no_power_from_short_series():
    found = {}
    for level in (0.05, 0.5):  # beyond chance only, or always
        p_values = []
        with varied(level=level):
            for seed in range(20):
                x = noise(60, 2, seed)
                x[1:, 1] += 0.5 * x[:-1, 0]
                p_values.append(judged(x).p_value[0, 1])
        found[level] = np.exp(np.mean(np.log(p_values)))
    assert found[0.05] < 0.8 * found[0.5]


def test_lags_that_nothing_comes_through_cost_little_power():
    short, generous = [], []
    for seed in range(20):
        x = noise(200, 2, seed)
        x[1:, 1] += 0.25 * x[:-1, 0]
        short.append(judged(x, 1).p_value[0, 1])
        generous.append(judged(x, 8).p_value[0, 1])
    assert np.median(np.log10(np.divide(generous, short))) < 0.8  # of eight lags: one is .9


def test_a_short_lag_is_likelier_than_a_long_one():
    p_value = {}
    for lag in (1, 8):
        found = []
        for seed in range(10):
            x = noise(200, 2, seed)
            x[lag:, 1] += 0.25 * x[:-lag, 0]
            found.append(judged(x, 8).p_value[0, 1])
        p_value[lag] = np.exp(np.mean(np.log(found)))
    assert p_value[1] < 0.4 * p_value[8]
