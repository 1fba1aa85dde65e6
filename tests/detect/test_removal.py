import math

import numpy as np
import pytest
import torch

from causalformer.data.windows import lagged_samples
from causalformer.detect.folds import blocked_folds
from causalformer.detect.removal import removal_errors
from small_models import make_channels, make_series

RIDGE, LAG_WEIGHT = 0.02, [1.0, 4.0]


def arguments(n_slots=62):
    x = make_series(n_slots)
    x[1:, 1] += x[:-1, 0]
    past, now = lagged_samples(x, 2)
    return past, now, blocked_folds(len(now), 3)


def held_out(features, shrink, y, train):
    """Errors, on the slots left out, of a ridge regression on the others."""
    a, b = features[train], y[train]
    penalty = np.diag(np.array(shrink) * RIDGE * train.sum())
    weights = np.linalg.solve(a.T @ a + penalty, a.T @ b)
    return y[~train] - features[~train] @ weights


def slow_errors(model, past, now, fold, cause, channels=True):
    """Held-out errors ``[slot, effect]`` without a cause, features built one by one."""
    removed = torch.zeros(len(past), 3)
    if cause is not None:
        removed[:, cause] = 1
    summed = model.channels(past, removed).detach().numpy()
    errors = np.zeros(now.shape)
    for k in range(model.n_folds):
        for effect in range(3):
            columns, shrink = [np.ones(len(past))], [1e-6]
            if channels:
                for z in summed[:, k, effect].T:
                    columns.append(z / (1 + np.exp(-z)))
                    shrink.append(1.0)
            for j in range(3):
                if j == cause:
                    continue
                for lag in range(2):
                    columns.append(past[:, j, lag].numpy())
                    shrink.append(LAG_WEIGHT[lag])
            features, y = np.column_stack(columns), now[:, effect].numpy()
            errors[fold == k, effect] = held_out(features, shrink, y, fold != k)
    return errors


def slow_standard_error(grown, fold):
    """Newey and West's for the mean of all slots; slots of two folds are no neighbours."""
    n_slots, mean = len(grown), grown.mean()
    reach = math.ceil(4 * (n_slots / 100) ** (2 / 9))
    alone = together = grown.var()
    for distance in range(1, reach + 1):
        pairs = [
            grown[s] * grown[s + distance]
            for s in range(n_slots - distance)
            if fold[s] == fold[s + distance]
        ]
        together += 2 * (1 - distance / (reach + 1)) * (sum(pairs) / n_slots - mean**2)
    return math.sqrt(max(alone, together) / n_slots)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("temperature", [None, 1.0], ids=["plain", "attention"])
def test_equals_ridge_regressions_on_features_built_one_by_one(temperature):
    model, (past, now, fold) = make_channels(n_folds=3, temperature=temperature), arguments()
    found = removal_errors(model, past, now, fold, RIDGE, torch.tensor(LAG_WEIGHT))
    residual = slow_errors(model, past, now, fold, None)
    straight = slow_errors(model, past, now, fold, None, channels=False)
    np.testing.assert_allclose(found.error, (residual**2).mean(0), rtol=1e-8)
    np.testing.assert_allclose(found.linear_error, (straight**2).mean(0), rtol=1e-8)
    spread = np.sqrt((residual**2).mean(0))
    expected = residual.T @ residual / len(now) / np.outer(spread, spread)
    np.testing.assert_allclose(found.residual_correlation, expected, atol=1e-8)
    for cause in range(3):
        grown = slow_errors(model, past, now, fold, cause) ** 2 - residual**2
        np.testing.assert_allclose(found.gain[cause], grown.mean(0), rtol=1e-6, atol=1e-10)
        expected = [slow_standard_error(column, fold) for column in grown.T]
        np.testing.assert_allclose(found.gain_error[cause], expected, rtol=1e-6)


def test_single_precision_gives_the_same_within_rounding():
    model, (past, now, fold) = make_channels(n_folds=3), arguments()
    single = removal_errors(model, past, now, fold, RIDGE, torch.tensor(LAG_WEIGHT))
    exact = removal_errors(
        model.double(), past.double(), now.double(), fold, RIDGE, torch.tensor(LAG_WEIGHT).double()
    )
    np.testing.assert_allclose(single.gain, exact.gain, atol=1e-4)
    np.testing.assert_allclose(single.error, exact.error, rtol=1e-4)


def test_only_a_true_cause_is_missed():
    model, (past, now, fold) = make_channels(n_folds=3), arguments(400)
    with torch.no_grad():
        model.absent.zero_()
    found = removal_errors(model, past, now, fold, RIDGE, torch.tensor(LAG_WEIGHT))
    z = found.gain / found.gain_error
    assert z[0, 1] > 5
    z[0, 1] = 0
    assert z.max() < 3
