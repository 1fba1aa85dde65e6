"""A hidden series with a memory, beside links of all lags."""

import numpy as np
import pytest

from causalformer import CausalFormer
from causalformer.bench.violations import claims, drawn_violation
from causalformer.detect import hidden_series
from causalformer.detect.contemporaneous import Term
from causalformer.detect.hidden_series import find_hidden_series
from causalformer.errors import DataWarning
from causalformer.policy import POLICY, varied
from evidence_examples import make_present, samples_of

N_SLOTS, MAX_LAG, N_SERIES = 600, 3, 5


def system(loadings=(), links=(), memory=0.7, seed=0):
    """Series with a memory of .5; loadings are (series, lag), links (cause, effect, lag, size)."""
    rng = np.random.default_rng(seed)
    x, driver = rng.standard_normal((N_SLOTS, N_SERIES)), rng.standard_normal(N_SLOTS)
    for t in range(MAX_LAG, N_SLOTS):
        driver[t] += memory * driver[t - 1]
        x[t] += 0.5 * x[t - 1]
        for series, lag in loadings:
            x[t, series] += 0.8 * driver[t - lag]
        for cause, effect, lag, size in links:
            x[t, effect] += size * x[t - lag, cause]
    return x / x.std(axis=0)


def found_in(x, within=None, **options):
    past = [[Term(i, 0, 0)] for i in range(N_SERIES)]
    present = make_present(x, past, **options)
    samples = samples_of(x, present.max_lag)
    allowed = np.ones((N_SERIES, N_SERIES, present.max_lag + 1), dtype=bool)
    within = np.zeros((N_SERIES, N_SERIES), dtype=bool) if within is None else within
    return find_hidden_series(samples, present, allowed, within)


def n_links_alone(x):
    present = make_present(x, [[Term(i, 0, 0)] for i in range(N_SERIES)])
    allowed = np.ones((N_SERIES, N_SERIES, present.max_lag + 1), dtype=bool)
    none = np.zeros((N_SERIES, N_SERIES), dtype=bool)
    return hidden_series._Design(samples_of(x, present.max_lag), present, allowed, none).n_links


def links_of(found):
    return [tuple(link) for link in np.argwhere(found.links).tolist()]


WITHIN_THE_SLOT = tuple((i, 0) for i in range(4))
AT_LAGS = ((0, 0), (1, 1), (2, 1), (3, 2))
CHAIN = ((0, 4, 1, 0.5), (4, 1, 2, 0.5))


@pytest.mark.parametrize("seed", [0, 1])
def test_links_beside_a_driver_within_the_slot(seed):
    found = found_in(system(WITHIN_THE_SLOT, CHAIN, seed=seed))
    assert found.driven.tolist() == [True] * 4 + [False]
    assert links_of(found) == [(0, 4, 1), (4, 1, 2)]
    assert found.memory == pytest.approx(0.7, abs=0.15)


@pytest.mark.parametrize("seed", [0, 1])
def test_links_beside_a_driver_that_acts_at_several_lags(seed):
    """Without it the four series are linked with each other, at several lags."""
    x = system(AT_LAGS, CHAIN, seed=seed)
    found = found_in(x)
    assert found.driven.tolist() == [True] * 4 + [False]
    assert {(0, 4, 1), (4, 1, 2)} <= set(links_of(found))
    assert len(links_of(found)) <= n_links_alone(x) / 2


def test_noise_that_series_share_has_no_memory():
    found = found_in(system(WITHIN_THE_SLOT, CHAIN, memory=0.0))
    assert found.memory == pytest.approx(0.0, abs=0.15)
    assert {(0, 4, 1), (4, 1, 2)} <= set(links_of(found))


@pytest.mark.parametrize("seed", range(2))
def test_links_alone_need_no_driver(seed):
    """Neither a chain nor one cause of three series, within the slot or later."""
    fork = ((0, 1, 0, 0.8), (0, 2, 1, 0.8), (0, 3, 2, 0.8))
    assert found_in(system(links=fork, seed=seed), within=_within((0, 1))) is None
    assert found_in(system(links=(*CHAIN, (1, 2, 1, 0.5)), seed=seed)) is None


def _within(*links):
    within = np.zeros((N_SERIES, N_SERIES), dtype=bool)
    within[tuple(np.transpose(links))] = True
    return within


def test_two_series_are_too_few():
    assert found_in(system(((0, 0), (1, 0)), CHAIN)) is None


def test_begins_beside_the_strongest_links(monkeypatch):
    """Beside all links that stand in for the driver there is nothing left for it."""
    x = system(AT_LAGS, CHAIN)
    monkeypatch.setattr(hidden_series, "_STRONG", (1.0,))
    poor = found_in(x)
    monkeypatch.undo()
    good = found_in(x)
    assert poor is None or poor.better < good.better


def test_gain_is_a_likelihood_ratio():
    """Of links that are kept it exceeds their price, of others it does not."""
    found = found_in(system(WITHIN_THE_SLOT, CHAIN))
    kept = found.gain[found.links]
    other = found.gain[~found.links & ~np.eye(N_SERIES, dtype=bool)[..., None]]
    assert kept.min() > np.log(N_SLOTS) > np.median(other)


def test_nothing_is_said_of_series_with_gaps():
    x = system(WITHIN_THE_SLOT, CHAIN)
    shown = np.ones(x.shape, dtype=bool)
    shown[50, 2] = False
    assert found_in(x, shown=shown) is None


@pytest.fixture(scope="module")
def fit():
    """A driver of all five series within the slot; without it three of nine edges are false."""
    made = drawn_violation("hidden-driver", 4, random_state=70004)
    with pytest.warns(DataWarning, match="was not recorded"):
        return made, CausalFormer(max_lag=5).fit(made.series)


def test_only_links_beside_it_are_drawn(fit):
    made, model = fit
    assert claims(model.graph_, made.truth).false_share == 0.0


def test_links_beside_it_come_first_in_the_ranking(fit):
    made, model = fit
    names, score = made.truth.names, model.edge_scores_
    true = {(names.index(e.cause), names.index(e.effect)) for e in made.truth}
    other = {(i, j) for i in range(5) for j in range(5)} - true
    assert min(score[pair] for pair in true) > max(score[pair] for pair in other)


def test_a_warning_names_the_series_that_it_drives(fit):
    _, model = fit
    said = [text for text in model.diagnostics_.warnings if "was not recorded" in text]
    assert all(name in said[0] for name in ("x0", "x1", "x2", "x3", "x4"))


def test_it_must_be_likelier_than_it_is_rare():
    """One system in five has a hidden series beforehand; from 19 to 1 it is believed."""
    x = system(WITHIN_THE_SLOT, CHAIN)
    better = found_in(x).better
    rare = 1.0 / (1.0 + np.exp((better - POLICY.clearly) / 2.0))
    with varied(hidden_share=rare * 1.01):
        assert found_in(x) is not None
    with varied(hidden_share=rare * 0.99):
        assert found_in(x) is None


def test_a_driver_that_is_given_up_is_not_looked_for(monkeypatch):
    """Each beginning chooses terms once; if too few series keep the driver it ends there."""
    n_choices, chosen = 0, hidden_series._Fit._chosen

    def without_driver(fit, driver):
        nonlocal n_choices
        n_choices += 1
        state, stays, gain = chosen(fit, driver)
        stays[len(fit._d.tags) :, 2:] = False
        return state, stays, gain

    monkeypatch.setattr(hidden_series._Fit, "_chosen", without_driver)
    assert found_in(system(WITHIN_THE_SLOT, CHAIN)) is None
    assert 1 <= n_choices <= len(hidden_series._STRONG)


def test_no_term_is_left_out_beside_a_driver_that_cannot_win(monkeypatch):
    """Were all terms idle that may go, links alone would still cost less."""
    tried, leave_out = [], hidden_series._Fit.leave_out
    monkeypatch.setattr(
        hidden_series._Fit, "leave_out", lambda fit: (tried.append(fit), leave_out(fit))
    )
    found_in(system(WITHIN_THE_SLOT, CHAIN))
    assert len(tried) == 1
    with varied(hidden_share=1e-300):
        assert found_in(system(WITHIN_THE_SLOT, CHAIN)) is None
    assert len(tried) == 1
