import numpy as np
import pytest
import torch

from causalformer.detect.lags import single_lag_errors
from evidence_examples import samples_of
from small_models import make_channels, make_series

RIDGE, LAG_WEIGHT = 0.02, [1.0, 4.0]
PAIRS = np.array([[False, True, True], [False, False, False], [True, False, False]])


def make(*, gaps=False):
    x = make_series(62).double().numpy()
    x[2:, 1] += x[:-2, 0]
    if gaps:
        x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    return samples_of(x, 2)


def errors_of(model, samples, pairs=PAIRS):
    return single_lag_errors(model, samples, pairs, RIDGE, torch.tensor(LAG_WEIGHT))


def slow_error(model, samples, cause, effect, kept):
    """Mean squared error of a ridge regression with one lag of a cause, features one by one."""
    past = samples.past.double().numpy()
    kernel, threshold = (w.detach().double().numpy() for w in (model.kernel, model.threshold))
    columns, shrink = [np.ones(len(past))], [1e-6]
    used = [(j, lag) for j in range(3) for lag in range(2) if j != cause or lag == kept]
    for c in range(model.n_channels):
        z = threshold[0, effect, c]
        for j, lag in used:
            z = z + past[:, j, lag] * kernel[j, lag, 0, effect, c]
        columns.append(z / (1 + np.exp(-z)))
        shrink.append(1.0)
    for j, lag in used:
        columns.append(past[:, j, lag])
        shrink.append(LAG_WEIGHT[lag])
    rows = samples.observed[:, effect].numpy() > 0
    a, b = np.column_stack(columns)[rows], samples.now[rows, effect].double().numpy()
    weights = np.linalg.solve(a.T @ a + RIDGE * len(a) * np.diag(shrink), a.T @ b)
    return ((b - a @ weights) ** 2).mean()


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_equals_ridge_regressions_on_features_built_one_by_one(gaps):
    model, samples = make_channels(), make(gaps=gaps)
    found = errors_of(model, samples)
    for cause, effect in np.argwhere(PAIRS):
        for lag in range(2):
            expected = slow_error(model, samples, cause, effect, lag)
            assert found[cause, effect, lag] == pytest.approx(expected, rel=1e-3)


def test_pairs_that_are_not_asked_for_are_infinite():
    assert (np.isfinite(errors_of(make_channels(), make())).all(-1) == PAIRS).all()
    nothing = errors_of(make_channels(), make(), np.zeros((3, 3), dtype=bool))
    assert np.isinf(nothing).all()


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_the_true_lag_leaves_the_least_error(gaps):
    assert errors_of(make_channels(), make(gaps=gaps))[0, 1].argmin() == 1
