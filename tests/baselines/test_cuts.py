"""CUTS: the gates against their definition, lags and directions on toys, missing values."""

import numpy as np
import pytest
import torch

from causalformer.baselines import CUTS
from causalformer.baselines.cuts import _GatedNetworks, _Lesson, _predict, hold_last, relaxed_gates
from causalformer.datasets import make_var
from causalformer.errors import SettingsError
from causalformer.metrics import evaluate


def driven(n_slots=400, lag=2, seed=0):
    x = np.random.default_rng(seed).normal(size=(n_slots, 2))
    x[lag:, 1] = np.tanh(x[:-lag, 0]) + 0.2 * x[lag:, 1]
    return x


QUICK = {"n_steps": 300, "hidden": 8, "learning_rate": 0.01, "gate_rate": 0.03}


@pytest.mark.parametrize("repo_compat", [False, True])
def test_one_logistic_number_equals_a_softmax_of_two_gumbels(repo_compat):
    rng = np.random.default_rng(0)
    g1, g2 = rng.gumbel(size=(2, 100))
    logits = rng.normal(size=100)
    m = 1 / (1 + np.exp(-logits))
    a, b = (m, 1 - m) if repo_compat else (np.log(m), np.log(1 - m))
    first, second = np.exp((a + g1) / 0.7), np.exp((b + g2) / 0.7)
    ours = relaxed_gates(torch.tensor(logits), torch.tensor(g1 - g2), 0.7, repo_compat)
    np.testing.assert_allclose(ours.numpy(), first / (first + second), rtol=1e-10)


@pytest.mark.parametrize(("repo_compat", "expected"), [(False, 0.1), (True, 1 / (1 + np.e**0.8))])
def test_gates_open_as_often_as_they_should(repo_compat, expected):
    uniform = torch.rand(100_000, generator=torch.Generator().manual_seed(0))
    logits = torch.logit(torch.tensor(0.1)).expand(100_000)
    gates = relaxed_gates(logits, torch.logit(uniform), 0.3, repo_compat)
    assert (gates > 0.5).double().mean().item() == pytest.approx(expected, abs=0.01)


def test_networks_side_by_side_equal_one_by_one():
    model = _GatedNetworks(2, 3, 5, torch.Generator().manual_seed(0))
    gated = torch.randn(2, 7, 2, 3, generator=torch.Generator().manual_seed(1))
    together = _predict(list(model.weights), gated)
    for effect in range(2):
        x = gated[effect].flatten(1)
        for k in (0, 2, 4):
            x = x @ model.weights[k][effect] + model.weights[k + 1][effect]
            x = torch.where(x > 0, x, 0.05 * x)
        alone = (x @ model.weights[6][effect] + model.weights[7][effect])[:, 0]
        torch.testing.assert_close(together[:, effect], alone)


def test_the_gates_learn_by_the_relaxed_term_and_the_networks_by_the_drawn_one():
    values = driven(60)
    generator = torch.Generator().manual_seed(0)
    model = _GatedNetworks(2, 3, 5, generator)
    lesson = _Lesson(CUTS(), 0.0, values, [slice(0, 60)], 10, generator)
    slots = torch.arange(3, 60)
    state = generator.get_state()
    lesson(model, slots).backward()
    by_both = [w.grad.clone() for w in model.weights]
    generator.set_state(state)
    noise = torch.logit(torch.rand(2, 57, 2, 3, generator=generator), eps=1e-6)
    past = torch.stack([lesson.filled[t - 3 : t].T for t in range(3, 60)])
    model.zero_grad()
    drawn = _predict(list(model.weights), past * (noise > 0))
    (drawn - lesson.filled[3:]).square().mean().backward()
    for both, alone in zip(by_both, model.weights, strict=True):
        torch.testing.assert_close(both, alone.grad)
    assert model.logits.grad is None


def test_finds_direction_and_exact_lag():
    model = CUTS(**QUICK).fit(driven())
    assert [(e.cause, e.effect, e.lag) for e in model.graph_] == [("x0", "x1", 2)]
    assert model.gates_.shape == (2, 2, 3)
    assert model.gates_[0, 1].argmax() == 1


def test_ranks_the_edges_of_a_linear_system_almost_perfectly():
    made = make_var(5, 600, density=0.3, random_state=0)
    model = CUTS(n_steps=300, hidden=16, learning_rate=3e-3, gate_rate=0.03).fit(made.series)
    assert evaluate(model.graph_, made.truth, model.scores_).auroc >= 0.98


def test_independent_series_have_no_edges_between_them():
    x = np.random.default_rng(0).normal(size=(100, 6))
    model = CUTS(n_steps=300, hidden=16, learning_rate=3e-3, gate_rate=0.03).fit(x)
    assert len(model.graph_) <= 3


def test_missing_values_do_not_hide_the_edge():
    x = driven(600)
    x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    graph = CUTS(**QUICK).fit(x).graph_
    assert [(e.cause, e.effect, e.lag) for e in graph] == [("x0", "x1", 2)]


def test_missing_values_are_filled_late_and_learned_from_later():
    values = driven(60)
    values[30, 1] = np.nan
    generator = torch.Generator().manual_seed(0)
    model = _GatedNetworks(2, 3, 5, generator)
    lesson = _Lesson(CUTS(update=1.0), 0.3, values, [slice(0, 60)], 10, generator)
    slot = torch.tensor([30])
    before = lesson.filled.clone()
    lesson(model, slot)
    torch.testing.assert_close(lesson.filled, before)  # phase one
    for done, learned in ((0.1, False), (0.4, True)):
        lesson.done = done
        lesson.filled = before.clone()
        lesson.filled[30, 1] = 1e3  # far from every prediction
        assert (lesson(model, slot).item() > 1e5) == learned
        assert abs(lesson.filled[30, 1].item()) < 1e2
        lesson.filled[30, 1] = before[30, 1]
        torch.testing.assert_close(lesson.filled, before)  # nothing observed has moved


def test_the_temperature_falls_twice():
    lesson = _Lesson(CUTS(), 0.3, driven(20), [slice(0, 20)], 10, torch.Generator())
    seen = []
    for lesson.done in (0.0, 0.2, 0.399999, 0.4, 0.7, 1.0):
        seen.append(lesson._temperature())
    assert seen == pytest.approx([1, 0.1**0.5, 0.1, 1, 0.1**0.5, 0.1], rel=1e-4)


def test_values_are_held_within_a_segment_only():
    gappy = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, 3.0], [4.0, np.nan]])
    held = hold_last(gappy, [slice(0, 2), slice(2, 4)])
    assert held.tolist() == [[1, 0], [1, 2], [0, 3], [4, 3]]


def test_no_window_reaches_across_segments():
    values = driven(100)
    segments = [slice(0, 40), slice(50, 100)]
    found = []
    for between in (0.0, 1e3):
        values[40:50] = between
        found.append(CUTS(n_steps=20).discover(values, segments).scores)
    np.testing.assert_array_equal(*found)


def test_the_same_seed_gives_the_same_graph():
    x = driven(150)
    first, second = (CUTS(n_steps=30, random_state=3).fit(x) for _ in range(2))
    np.testing.assert_array_equal(first.scores_, second.scores_)
    assert first.graph_ == second.graph_
    assert not np.array_equal(CUTS(n_steps=30).fit(x).scores_, first.scores_)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_lag": 0}, "max_lag"),
        ({"penalty": -1}, "penalty"),
        ({"n_steps": 0}, "n_steps"),
        ({"hidden": 0}, "hidden"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"gate_rate": -1}, "gate_rate"),
        ({"update": 2}, "update"),
    ],
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        CUTS(**options).fit(driven(50))
