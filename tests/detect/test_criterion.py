"""The criterion of an equation: backward elimination, and the law of errors."""

import numpy as np
import pytest

from causalformer.detect.criterion import BesideDrivers, backward_elimination, negentropy

LAWS = ["laplace", "uniform", "exponential"]


def noise(law, n_slots=5000):
    x = getattr(np.random.default_rng(0), law)(size=n_slots)
    return (x - x.mean()) / x.std()


def eliminated_slowly(columns, effect, kept, price):
    """Fit anew without each term, drop the one that is missed least, again and again."""
    n, stays = len(effect), list(range(columns.shape[1]))

    def left(some):
        weights = np.linalg.lstsq(columns[:, some], effect, rcond=None)[0]
        return float(((effect - columns[:, some] @ weights) ** 2).mean())

    while True:
        worth = {
            k: n * np.log(left([i for i in stays if i != k]) / left(stays)) - price[k]
            for k in stays
            if not kept[k]
        }
        if not worth or min(worth.values()) > 0:
            return stays, left(stays), {k: worth[k] + price[k] for k in worth}
        stays.remove(min(worth, key=worth.get))


@pytest.mark.parametrize("seed", range(5))
def test_elimination_is_that_of_refits(seed):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((200, 8)) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    effect = columns[:, :3] @ [0.6, 0.2, -0.3] + rng.standard_normal(200)
    kept, price = np.arange(8) == 7, rng.uniform(1, 8, 8)
    gram, shared = columns.T @ columns / 200, columns.T @ effect / 200
    found = backward_elimination(gram, shared, float((effect**2).mean()), kept, 200, price)
    stays, left, gain = eliminated_slowly(columns, effect, kept, price)
    assert np.flatnonzero(found.stays).tolist() == stays
    assert found.left == pytest.approx(left, rel=1e-4)
    assert not found.weights[~found.stays].any()
    for k, value in gain.items():
        assert found.gain[k] == pytest.approx(value, rel=1e-3)


def test_no_terms():
    found = backward_elimination(np.zeros((0, 0)), np.zeros(0), 2.0, np.zeros(0, bool), 100, 5.0)
    assert found.left == 2.0
    assert not len(found.stays)


def test_negentropy_as_written():
    x = noise("laplace")
    by_hand = 79.047 * (np.log(np.cosh(x)).mean() - 0.374567) ** 2
    by_hand += 7.4129 * (x * np.exp(-(x**2) / 2)).mean() ** 2
    assert negentropy(x) == pytest.approx(by_hand)
    assert negentropy(3 * x - 7) == pytest.approx(by_hand)


def test_negentropy_of_other_laws_is_larger():
    gaussian, *others = (negentropy(noise(law)) for law in ("standard_normal", *LAWS))
    assert gaussian < 1e-3
    assert min(others) > 0.03
    assert negentropy(np.zeros(1)) == 0
    assert np.isfinite(negentropy(np.zeros(10)))


def test_weights_beside_drivers_are_those_of_least_squares():
    """Every effect has terms and drivers of its own; several sets of drivers at once."""
    rng = np.random.default_rng(0)
    columns, effects = rng.standard_normal((200, 6)), rng.standard_normal((200, 3))
    drivers = rng.standard_normal((4, 200, 2)) + columns[:, :2]
    terms, driven = rng.random((6, 3)) < 0.5, np.array([[True, True, False], [True, False, False]])
    beside = BesideDrivers(
        columns.T @ columns / 200, columns.T @ effects / 200, terms, driven, ridge=0.0
    )
    found = beside.solved(
        columns.T @ drivers / 200, drivers.mT @ drivers / 200, drivers.mT @ effects / 200
    )
    for which, driver in enumerate(drivers):
        for i in range(3):
            chosen = np.hstack([columns[:, terms[:, i]], driver[:, driven[:, i]]])
            weights = np.linalg.lstsq(chosen, effects[:, i])[0]
            n_terms = terms[:, i].sum()
            assert found.weights[which, terms[:, i], i] == pytest.approx(weights[:n_terms])
            assert found.loading[which, i, driven[:, i]] == pytest.approx(weights[n_terms:])
            explained = (effects[:, i] @ chosen @ weights) / 200
            assert found.explained[which, i] == pytest.approx(explained)
        assert not found.weights[which][~terms].any()
        assert not found.loading[which].T[~driven].any()
