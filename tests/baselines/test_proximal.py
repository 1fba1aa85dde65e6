"""The prox of every penalty against a general solver, the optimiser, and the choice of λ."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from causalformer.baselines.proximal import (
    PENALTIES,
    ProximalGradient,
    shrink,
    stable_rate,
    strongest_within_one_error,
)


def penalty_by_definition(name, weights):
    """Give Ω of ``[hidden, cause, lag]``, oldest lag first, by plain loops."""
    total = 0.0
    for cause in range(weights.shape[1]):
        own = weights[:, cause]
        if name == "H":
            groups = [own[:, :s] for s in range(1, own.shape[1] + 1)]
        else:
            groups = [own] + ([own[:, [k]] for k in range(own.shape[1])] if name == "GSGL" else [])
        total += sum(np.sqrt((g**2).sum() + 1e-14) for g in groups)
    return total


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("amount", [0.1, 0.5])
def test_the_prox_is_what_a_general_solver_finds(name, amount):
    given = np.random.default_rng(3).standard_normal((2, 2, 3)) * 0.7

    def objective(flat):
        weights = flat.reshape(given.shape)
        return 0.5 * ((weights - given) ** 2).sum() + amount * penalty_by_definition(name, weights)

    ours = PENALTIES[name](torch.tensor(given)[None], amount)[0].numpy()
    solved = minimize(objective, given.ravel(), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(ours, solved.x.reshape(given.shape), atol=2e-3)
    assert objective(ours.ravel()) <= solved.fun + 1e-6


@pytest.mark.parametrize("name", PENALTIES)
def test_every_effect_may_have_an_amount_of_its_own(name):
    weights = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    together = PENALTIES[name](weights, torch.tensor([0.3, 0.8]))
    for effect, amount in enumerate((0.3, 0.8)):
        torch.testing.assert_close(together[[effect]], PENALTIES[name](weights[[effect]], amount))


def test_the_hierarchical_prox_shrinks_the_oldest_lags_most():
    left = PENALTIES["H"](torch.ones(1, 1, 1, 4), 0.4)[0, 0, 0]
    assert (left.diff() > 0).all()


def test_zero_weights_stay_zero_and_finite():
    assert (shrink(torch.zeros(1, 2, 3, 4), (1, 3), 0.0) == 0).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_optimiser_solves_the_lasso(momentum):
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((50, 4)), rng.standard_normal(50)
    penalty = 0.2
    weights = torch.zeros(1, 1, 4, 1, dtype=torch.float64, requires_grad=True)

    def prox(moved, rate):
        return PENALTIES["GL"](moved, rate * penalty)

    optimizer = ProximalGradient([{"params": [weights], "prox": prox}], 0.1, momentum)
    for _ in range(400):
        optimizer.zero_grad()
        residual = torch.tensor(x) @ weights.flatten() - torch.tensor(target)
        (residual.square().mean() / 2).backward()
        optimizer.step()
    w = weights.detach().flatten().numpy()
    slope = x.T @ (target - x @ w) / 50
    assert 0 < (w == 0).sum() < 4
    np.testing.assert_allclose(slope[w != 0], penalty * np.sign(w[w != 0]), atol=1e-6)
    assert (np.abs(slope[w == 0]) <= penalty).all()


def test_the_choice_of_the_penalty_is_its_definition():
    errors = np.random.default_rng(1).random((6, 20, 5)) + np.linspace(0, 0.2, 6)[:, None, None]
    chosen = []
    for effect in range(5):
        means = [errors[p, :, effect].mean() for p in range(6)]
        best = int(np.argmin(means))
        within = []
        for p in range(6):
            difference = errors[p, :, effect] - errors[best, :, effect]
            within.append(difference.mean() <= difference.std() / np.sqrt(20))
        chosen.append(max(np.flatnonzero(within)))
    assert strongest_within_one_error(torch.tensor(errors)).tolist() == chosen


def test_strong_correlation_shortens_the_steps():
    common = torch.randn(200, 1, generator=torch.Generator().manual_seed(0))
    assert stable_rate(common) == 0.05
    assert stable_rate(common.expand(200, 40)) < 0.02
