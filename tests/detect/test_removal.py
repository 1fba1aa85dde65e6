import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.detect import removal
from causalformer.detect.removal import RemovalErrors, removal_errors
from evidence_examples import samples_of
from small_models import make_channels, make_series

RIDGE, LAG_WEIGHT = 0.02, [1.0, 4.0]
EVERYTHING = np.ones((3, 3, 2), dtype=bool)
NO_LINK = EVERYTHING.copy()
PROFILE = np.random.default_rng(1).random((3, 3, 2))
NO_LINK[0, 1] = NO_LINK[2, 0, 1] = NO_LINK[1, 1, 0] = False


def make(n_slots=62, *, gaps=False, double=False):
    """Samples of three series; 0 drives 1. With `gaps`, two recordings with missing values."""
    x = make_series(n_slots).double().numpy()
    x[1:, 1] += x[:-1, 0]
    if not gaps:
        samples = samples_of(x, 2, 3)
    else:
        rng = np.random.default_rng(0)
        x[rng.random(x.shape) < 0.1] = np.nan
        x[20:25, 2] = np.nan
        segments = [slice(0, 30), slice(30, n_slots)]
        samples = samples_of(x, 2, 3, segments)
        assert 0 < samples.observed.sum() < samples.observed.numel()
    if double:
        parts = {"past", "now", "observed"}
        samples = replace(samples, **{name: getattr(samples, name).double() for name in parts})
    return samples


def errors_of(model, samples, allowed=EVERYTHING):
    weight = torch.tensor(LAG_WEIGHT).to(samples.past)
    return removal_errors(model, samples, RIDGE, weight, allowed, PROFILE)


def held_out(features, shrink, y, learned, judged):
    """Errors, on the slots judged, of a ridge regression on those to learn from."""
    a, b = features[learned], y[learned]
    penalty = np.diag(np.array(shrink) * RIDGE * learned.sum())
    weights = np.linalg.solve(a.T @ a + penalty, a.T @ b)
    return y[judged] - features[judged] @ weights


def slow_errors(model, samples, cause, allowed, channels=True):
    """Held-out errors ``[slot, effect]`` without a cause, features built one by one."""
    past, now, fold = samples.past, samples.now.numpy(), samples.fold
    kept = past.clone()
    absent = torch.zeros_like(model.absent[0])
    if cause is not None:
        kept[:, cause], absent = 0, model.absent[cause]
    summed = (model.channels(kept) + absent).detach().numpy()
    errors = np.zeros(now.shape)
    for k in range(model.n_folds):
        for effect in range(3):
            columns, shrink = [np.ones(len(past))], [1e-6]
            if channels:
                for z in summed[:, k, effect].T:
                    columns.append(z / (1 + np.exp(-z)))
                    shrink.append(1.0)
            for j in range(3):
                for lag in range(2):
                    if j == cause or not allowed[j, effect, lag]:
                        continue
                    columns.append(past[:, j, lag].numpy())
                    shrink.append(LAG_WEIGHT[lag])
            learned = (fold != k) & (samples.observed.numpy()[:, effect] > 0)
            errors[fold == k, effect] = held_out(
                np.column_stack(columns), shrink, now[:, effect], learned, fold == k
            )
    return errors


def slow_weights(samples, cause, effect):
    """Zero where the effect is missing, else the share of the profile that was seen."""
    weights = np.zeros(len(samples))
    for i in range(len(samples)):
        if samples.observed[i, effect]:
            lost = 0 if samples.complete else PROFILE[cause, effect][samples.hidden[i, cause]].sum()
            weights[i] = 1 - lost / PROFILE[cause, effect].sum()
    return weights


def slow_standard_error(grown, samples, weights):
    """Newey and West's for the weighted mean of the slots.

    Two slots are neighbours if they are so far apart in one stretch of the same fold.
    """
    mean = (weights * grown).sum() / weights.sum()
    at = {slot: i for i, slot in enumerate(samples.slot.tolist())}
    reach = math.ceil(4 * (samples.n_observed / 100) ** (2 / 9))
    alone = together = (weights**2 * (grown**2 - mean**2)).sum()
    for distance in range(1, reach + 1):
        pairs = [
            weights[i] * weights[j] * (grown[i] * grown[j] - mean**2)
            for slot, i in at.items()
            if all(before in at for before in range(slot - distance, slot))
            and samples.fold[i] == samples.fold[j := at[slot - distance]]
        ]
        together += 2 * (1 - distance / (reach + 1)) * sum(pairs)
    return math.sqrt(max(alone, together, 0.0)) / weights.sum()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("allowed", [EVERYTHING, NO_LINK], ids=["all", "some"])
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_equals_ridge_regressions_on_features_built_one_by_one(gaps, allowed):
    model = make_channels(n_folds=3)
    samples = make(gaps=gaps, double=True)
    counts = samples.observed.numpy() > 0
    found = errors_of(model, samples, allowed)
    residual = slow_errors(model, samples, None, allowed) * counts
    straight = slow_errors(model, samples, None, allowed, channels=False) * counts
    n = counts.sum(0)
    np.testing.assert_allclose(found.error, (residual**2).sum(0) / n, rtol=1e-8)
    np.testing.assert_allclose(found.linear_error, (straight**2).sum(0) / n, rtol=1e-8)
    spread = np.sqrt((residual**2).sum(0) / n)
    together = counts.T.astype(float) @ counts
    expected = residual.T @ residual / together / np.outer(spread, spread)
    np.testing.assert_allclose(found.residual_correlation, expected.clip(-1, 1), atol=1e-8)
    np.testing.assert_array_equal(found.n_together, together)
    for cause in range(3):
        without = slow_errors(model, samples, cause, allowed) * counts
        grown = without**2 - residual**2
        for effect in range(3):
            weights = slow_weights(samples, cause, effect)
            gain = (weights * grown[:, effect]).sum() / weights.sum()
            assert found.gain[cause, effect] == pytest.approx(gain, rel=1e-6, abs=1e-10)
            error = slow_standard_error(grown[:, effect], samples, weights)
            assert found.gain_error[cause, effect] == pytest.approx(error, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_single_precision_gives_the_same_within_rounding(gaps):
    model = make_channels(n_folds=3)
    single = errors_of(model, make(gaps=gaps))
    exact = errors_of(model.double(), make(gaps=gaps, double=True))
    np.testing.assert_allclose(single.gain, exact.gain, atol=1e-4)
    np.testing.assert_allclose(single.error, exact.error, rtol=1e-4)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_only_a_true_cause_is_missed(gaps):
    model = make_channels(n_folds=3)
    with torch.no_grad():
        model.absent.zero_()
    found = errors_of(model, make(400, gaps=gaps))
    z = found.gain / found.gain_error
    assert z[0, 1] > 5
    z[0, 1] = 0
    assert z.max() < 3


@given(number=st.floats(-1e6, 1e6))
def test_whatever_stands_in_an_unobserved_slot_changes_nothing(number):
    model, samples = make_channels(n_folds=3), make(gaps=True)
    other = replace(samples, now=torch.where(samples.observed > 0, samples.now, number))
    first, second = errors_of(model, samples), errors_of(model, other)
    for name in ("error", "linear_error", "gain", "gain_error", "residual_correlation"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_a_slot_judged_for_one_effect_need_not_count_for_the_other():
    samples = make()
    observed = samples.observed.clone()
    observed[::2, 0] = 0
    observed[:30, 1] = 0
    found = errors_of(make_channels(n_folds=3), replace(samples, observed=observed))
    assert np.diag(found.n_together).tolist() == [30, 30, 60]
    assert found.n_together[0, 1] == 15


class TestShared:
    def removal(self, correlation, n_together):
        one = np.ones((3, 3))
        return RemovalErrors(one[0], one[0], one, one, correlation, n_together, one)

    def test_is_the_mean_square_beyond_noise_off_the_diagonal(self):
        correlation = np.array([[1, 0.3, 0.2], [0.3, 1, 0.4], [0.2, 0.4, 1]])
        n = np.array([[50, 20, 25], [20, 60, 40], [25, 40, 70]], dtype=float)
        expected = np.mean([0.09 - 1 / 20, 0.04 - 1 / 25, 0.16 - 1 / 40])
        assert self.removal(correlation, n).shared == pytest.approx(expected)

    def test_is_never_negative_and_survives_pairs_that_never_meet(self):
        nothing = np.zeros((3, 3))
        assert self.removal(np.eye(3), nothing).shared == 0
        assert self.removal(np.eye(3), nothing + 9).shared == 0


@pytest.mark.parametrize("gaps", [False, True])
def test_long_series_are_gone_through_in_parts_and_folds_in_threads(monkeypatch, gaps):
    model, samples = make_channels(n_folds=3), make(gaps=gaps)
    whole = errors_of(model, samples)
    monkeypatch.setattr(removal, "NUMBERS", 100)
    monkeypatch.setattr(removal, "_PART", 300)
    monkeypatch.setattr(removal, "_LEAST_SLOTS", 7)
    parts = errors_of(model, samples)
    for name in ("error", "linear_error", "gain", "gain_error", "residual_correlation"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-3, atol=1e-6)
    weight = torch.tensor(LAG_WEIGHT)
    threads = removal_errors(model, samples, RIDGE, weight, EVERYTHING, PROFILE, n_jobs=3)
    np.testing.assert_array_equal(threads.gain, parts.gain)
