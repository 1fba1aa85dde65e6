import numpy as np
import pytest
import torch

from causalformer.config import DetectorSettings
from causalformer.data.scaling import fit_normal_scores
from causalformer.datasets import make_random_system
from causalformer.detect import screening
from causalformer.detect.few_terms import sparse_tests
from causalformer.detect.screening import n_candidates, screen
from evidence_examples import samples_of


def looked_at(x, n_kept, *, max_lag=3, allowed=None, required=None):
    n_series = x.shape[1]
    scores = fit_normal_scores(x).apply(x)
    allowed = np.ones((n_series, n_series), dtype=bool) if allowed is None else allowed
    required = np.zeros((n_series, n_series), dtype=bool) if required is None else required
    lags = np.repeat(allowed[..., None], max_lag, axis=-1)
    return screen(samples_of(scores, max_lag), n_kept, lags, required)


def screened(x, n_kept, **options):
    return looked_at(x, n_kept, **options).sources


def noise(n_series=30, n_slots=400):
    return np.random.default_rng(0).standard_normal((n_slots, n_series))


def test_every_effect_comes_first_among_its_own_candidates_and_none_twice():
    sources = screened(noise(), 7)
    assert sources.shape == (30, 7)
    assert sources[:, 0].tolist() == list(range(30))
    assert all(len(set(row)) == 7 for row in sources.tolist())


@pytest.mark.parametrize(
    "link",
    [lambda x, _: x, lambda x, _: x**2, lambda x, own: 2 * x * np.clip(own, -2, 2)],
    ids=["straight", "bent", "modulated by the effect itself"],
)
def test_a_cause_is_seen_whatever_its_form(link):
    x = noise()
    for t in range(2, len(x)):
        x[t, 5] += 0.5 * x[t - 1, 5] + link(x[t - 2, 9], x[t - 1, 5])
    assert 9 in screened(x, 4)[5]


def test_a_weak_cause_comes_into_sight_behind_strong_ones():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((600, 40))
    shared = rng.standard_normal(600)
    x[:, 1:9] += 3 * shared[:, None]  # eight series that say nearly the same
    x[1:, 0] += 4 * x[:-1, 1] + 0.8 * x[:-1, 20]
    assert 20 in screened(x, 9)[0]


def test_most_edges_of_a_sparse_system_survive():
    made = make_random_system(120, 800, n_edges=240, links="mixed", random_state=3)
    sources = screened(made.series.values, 16)
    place = {name: i for i, name in enumerate(made.series.names)}
    edges = [(place[e.cause], place[e.effect]) for e in made.truth.edges]
    assert np.mean([cause in sources[effect] for cause, effect in edges]) > 0.95


def test_what_is_known_beforehand_comes_first():
    x = noise()
    x[1:, 0] += 2 * x[:-1, 1]
    allowed, required = np.ones((30, 30), dtype=bool), np.zeros((30, 30), dtype=bool)
    allowed[1, 0], required[2:8, 0] = False, True
    sources = screened(x, 5, allowed=allowed, required=required)
    assert set(sources[0].tolist()) == {0, 2, 3, 4, 5, 6, 7}  # more than asked for: all are needed
    assert 1 not in sources[0]


def test_what_one_effect_must_have_takes_nothing_from_others():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((400, 40))
    x[:, 2:9] = x[:, [1]] + 0.3 * x[:, 2:9]  # seven near copies of a cause
    x[1:, 0] += 3 * x[:-1, 1] + 0.8 * x[:-1, 20] + 0.8 * x[:-1, 21]
    required = np.zeros((40, 40), dtype=bool)
    required[:30, 39] = True
    plain, known = screened(x, 8), screened(x, 8, required=required)
    assert {20, 21} <= set(plain[0].tolist())
    assert torch.equal(known[:39, :8], plain[:39])


def test_missing_values_do_not_hide_a_cause():
    x = noise(n_slots=800)
    x[1:, 3] += x[:-1, 4]
    x[np.random.default_rng(2).random(x.shape) < 0.2] = np.nan
    sources = screened(x, 4)
    assert 4 in sources[3]
    assert torch.equal(sources, screened(x, 4))


def test_long_series_are_gone_through_in_parts(monkeypatch):
    x = noise()
    whole = screened(x, 6)
    monkeypatch.setattr("causalformer.detect.screening._NUMBERS", 2000)
    assert (screened(x, 6) == whole).float().mean() > 0.99  # up to rounding


def test_few_slots_leave_fewer_candidates_but_never_less_than_the_least():
    assert n_candidates(100_000, 5, 1000, DetectorSettings()) == 20
    assert n_candidates(10, 5, 1000, DetectorSettings()) == 8
    assert n_candidates(10, 5, 7, DetectorSettings()) == 7


def test_terms_are_chosen_among_all_series():
    x = noise()
    x[1:, 0] += 0.5 * x[:-1, 1:13].sum(axis=1)  # more causes than there are candidates
    sources, sparse = looked_at(x, 8)
    assert sources.shape[1] == 8
    assert sparse.tested.all()
    assert (sparse.p_value[1:13, 0] < 1e-6).all()
    everywhere = sparse_tests(
        samples_of(fit_normal_scores(x).apply(x), 3), np.ones((30, 30, 3), bool), np.eye(30) > 0
    )
    np.testing.assert_allclose(sparse.p_value, everywhere.p_value, rtol=1e-6)


def test_of_very_many_series_terms_are_chosen_from_a_pool_and_the_rest_has_a_rank(monkeypatch):
    monkeypatch.setattr(screening, "n_shared_products", lambda *_: 0)
    x = noise(n_series=40)
    x[1:, 0] += 0.5 * x[:-1, 1]
    x[1:, 0] += 0.15 * x[:-1, 2]
    sparse = looked_at(x, 4).sparse
    assert sparse.tested.sum(axis=0).tolist() == [30] * 40
    assert sparse.p_value[1, 0] < 1e-6
    outside = sparse.p_value[~sparse.tested]
    assert len(np.unique(outside)) == len(outside)  # no ties
    assert (sparse.t[~sparse.tested] == 0).all()


def test_the_p_value_of_a_score_is_that_of_the_largest_of_all_tries():
    rng = np.random.default_rng(0)
    best = (rng.standard_normal((4000, 12)) ** 2 / 500).max(axis=1)
    p_values = screening._p_values(best, 500, 12)
    assert [(p_values < level).mean() for level in (0.5, 0.1)] == pytest.approx(
        [0.5, 0.1], abs=0.02
    )
