"""cLSTM: directions, the networks against PyTorch's, determinism, settings."""

import numpy as np
import pytest
import torch

from causalformer.baselines import CLSTM
from causalformer.baselines.clstm import Memories
from causalformer.errors import SettingsError

QUICK = {"context": 4, "hidden": 4, "n_steps": 20}


def chain(n_slots=300):
    """Give x → y at lag 1, without memory."""
    x, noise = np.random.default_rng(0).standard_normal((2, n_slots))
    return np.column_stack([x, np.tanh(1.5 * np.roll(x, 1)) + 0.4 * noise])[1:]


def test_the_cause_comes_first_and_there_is_no_lag():
    model = CLSTM(**QUICK).fit(chain())
    assert model.scores_[0, 1] == model.scores_.max()
    assert model.scores_[1, 0] < 0.3 * model.scores_[0, 1]
    assert ("x0", "x1") in {(e.cause, e.effect) for e in model.graph_}
    assert model.graph_.metadata["lags"] is False


def test_a_single_network_is_the_lstm_of_pytorch():
    size, n = 3, 2
    ours = Memories(n, size, torch.Generator().manual_seed(0))
    past = torch.randn(5, n, 6, generator=torch.Generator().manual_seed(1))
    # PyTorch orders the gates write, forget, candidate, read; ours are forget, write, read, cand.
    order = [1, 0, 3, 2]
    for effect in range(n):
        lstm = torch.nn.LSTM(n, size, batch_first=True)
        with torch.no_grad():
            blocks = ours.inputs[effect, ..., 0].unflatten(0, (4, size))
            lstm.weight_ih_l0.copy_(blocks[order].flatten(0, 1))
            lstm.weight_hh_l0.copy_(
                ours.recurrent[effect].T.unflatten(0, (4, size))[order].flatten(0, 1)
            )
            lstm.bias_ih_l0.copy_(ours.bias[effect, 0].unflatten(0, (4, size))[order].flatten())
            lstm.bias_hh_l0.zero_()
        expected = lstm(past.transpose(1, 2))[0] @ ours.last[effect] + ours.offset[effect]
        torch.testing.assert_close(ours(past)[..., effect], expected)


def test_a_strong_penalty_leaves_no_edge_and_a_weak_one_all():
    assert len(CLSTM(**QUICK, strength=50.0).fit(chain()).graph_.edges) == 0
    assert len(CLSTM(**QUICK, strength=0.0).fit(chain()).graph_.edges) == 4


def test_the_same_seed_gives_the_same_graph():
    first, second = (CLSTM(**QUICK).fit(chain()) for _ in range(2))
    np.testing.assert_array_equal(first.scores_, second.scores_)
    assert first.graph_ == second.graph_


def test_no_window_crosses_the_ends_of_a_segment():
    values = np.random.default_rng(0).standard_normal((80, 2))
    apart = np.vstack([values[:40], np.full((3, 2), 1e3), values[40:]])
    model = CLSTM(**QUICK, strength=0.05)
    found = model.discover(values, [slice(0, 40), slice(40, 80)])
    part = model.discover(apart, [slice(0, 40), slice(43, 83)])
    np.testing.assert_array_equal(found.scores, part.scores)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"context": 0}, "context"),
        ({"hidden": 0}, "hidden"),
        ({"strength": -1.0}, "strength"),
        ({"ridge": -1.0}, "ridge"),
        ({"n_steps": 0}, "n_steps"),
    ],
)
def test_options_out_of_range_are_named(options, named):
    with pytest.raises(SettingsError, match=named):
        CLSTM(**options).fit(chain())
