import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.data.windows import lagged_samples
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.model.channel_loss import masked_source_loss
from causalformer.model.channels import ChannelNetwork
from small_models import make_channels, make_series

LAG_WEIGHT = [1.0, 4.0]


def sample(n_slots=7, seed=1):
    return lagged_samples(make_series(n_slots, seed=seed), 2)


def slow_prediction(model, past, removed):
    """The network written from its definition, one number at a time."""
    p = {name: value.detach().numpy() for name, value in model.named_parameters()}
    past, removed = past.numpy() * (1 - removed.numpy())[..., None], removed.numpy()
    causes, lags = range(model.n_series), range(model.max_lag)
    predicted = np.zeros((len(past), model.n_folds, model.n_series))
    for b, f, e in np.ndindex(predicted.shape):
        total = p["offset"][f, e]
        for c in range(model.n_channels):
            z = p["threshold"][f, e, c]
            for j in causes:
                if removed[b, j]:
                    z += p["absent"][j, f, e, c]
                else:
                    z += sum(p["kernel"][j, k, f, e, c] * past[b, j, k] for k in lags)
            total += p["mix"][f, e, c] * z / (1 + math.exp(-z))
        for j in causes:
            if not removed[b, j]:
                total += sum(p["skip"][j, k, f, e] * past[b, j, k] for k in lags)
        predicted[b, f, e] = total
    return predicted


@pytest.mark.usefixtures("double")
class TestPrediction:
    def test_equals_the_definition_written_with_loops(self):
        model, (past, _) = make_channels(), sample()
        expected = slow_prediction(model, past, torch.zeros(len(past), 3))
        np.testing.assert_allclose(model(past).detach().numpy(), expected, atol=1e-12)

    def test_folds_do_not_share_weights(self):
        model, (past, _) = make_channels(n_folds=3), sample()
        before = model(past)
        with torch.no_grad():
            for name, value in model.named_parameters():
                fold_axis = {"kernel": 2, "skip": 2, "absent": 1}.get(name, 0)
                value.select(fold_axis, 1).normal_()
        after = model(past)
        torch.testing.assert_close(after[:, [0, 2]], before[:, [0, 2]], rtol=0, atol=1e-13)
        assert not torch.isclose(after[:, 1], before[:, 1]).any()

    def test_the_untrained_network_knows_no_straight_path_and_no_absence(self):
        model = ChannelNetwork(2, 3, 2, 4)
        assert not model.skip.any()
        assert not model.absent.any()

    def test_the_seed_decides_the_weights(self):
        first, second, other = (
            ChannelNetwork(2, 3, 2, 4, torch.Generator().manual_seed(seed)).kernel
            for seed in (1, 1, 2)
        )
        assert torch.equal(first, second)
        assert not torch.equal(first, other)


@pytest.mark.usefixtures("double")
class TestLoss:
    def arguments(self, seed=1):
        past, now = sample(seed=seed)
        learns = torch.ones(len(past), 2, 1)
        learns[:2, 0] = learns[3:, 1] = 0
        removed = torch.zeros(len(past), 3)
        removed[1, 2] = 1
        return past, now, learns, removed

    def loss(self, model, past, now, learns, removed, ridge=0.0):
        weight = torch.tensor(LAG_WEIGHT)
        return masked_source_loss(model, past, now, learns, removed, ridge, weight)

    def test_equals_its_definition(self):
        model, (past, now, learns, removed) = make_channels(), self.arguments()
        predicted = slow_prediction(model, past, removed)
        expected = 0.0
        for f in range(2):
            slots = np.flatnonzero(learns[:, f, 0])
            wrong = (predicted[slots, f] - now.numpy()[slots]) ** 2
            expected += wrong.sum() / len(slots)
        squares = 0.0
        for name, value in model.named_parameters():
            for place, weight in np.ndenumerate(value.detach().numpy()):
                if name in ("kernel", "skip"):
                    squares += LAG_WEIGHT[place[1]] * weight**2
                elif name in ("mix", "absent"):
                    squares += weight**2
        loss = self.loss(model, past, now, learns, removed, ridge=0.3)
        assert loss.item() == pytest.approx(expected + 0.3 * squares)

    def test_nothing_of_a_removed_cause_is_seen(self):
        model, (past, now, learns, removed) = make_channels(), self.arguments()
        usual = self.loss(model, past, now, learns, removed)
        for cause in range(3):
            other = past.clone()
            other[1, cause] += 9.0  # in slot 1 cause 2 is removed
            assert (self.loss(model, other, now, learns, removed) == usual) == (cause == 2)

    def test_a_fold_learns_nothing_from_slots_that_it_may_not_see(self):
        model, (past, now, learns, removed) = make_channels(), self.arguments()
        learns[2] = 0
        usual = self.loss(model, past, now, learns, removed)
        for slot in range(len(past)):
            other = past.clone()
            other[slot] += 1.0
            assert (self.loss(model, other, now, learns, removed) == usual) == (slot == 2)

    def test_only_the_folds_that_may_see_a_slot_move_with_it(self):
        model, (past, now, learns, removed) = make_channels(), self.arguments()
        elsewhere = now.clone()
        elsewhere[0] += 5.0  # fold 1 may learn from it, fold 0 may not
        slopes = [
            torch.autograd.grad(self.loss(model, past, target, learns, removed), model.kernel)[0]
            for target in (now, elsewhere)
        ]
        assert torch.equal(slopes[0][:, :, 0], slopes[1][:, :, 0])
        assert not torch.allclose(slopes[0][:, :, 1], slopes[1][:, :, 1])

    def test_every_effect_may_learn_from_slots_of_its_own(self):
        model, (past, now, _, removed) = make_channels(), self.arguments()
        learns = (torch.rand(len(past), 2, 3, generator=torch.Generator().manual_seed(2)) < 0.6) * 1
        learns[:, 1, 2] = 0
        predicted = slow_prediction(model, past, removed)
        expected = 0.0
        for f, e in np.ndindex(2, 3):
            slots = np.flatnonzero(learns[:, f, e])
            wrong = (predicted[slots, f, e] - now.numpy()[slots, e]) ** 2
            expected += wrong.sum() / max(len(slots), 1)
        loss = self.loss(model, past, now, learns.double(), removed)
        assert loss.item() == pytest.approx(expected)

    @pytest.mark.parametrize("number", [1e3, -7.0])
    def test_a_value_that_may_not_be_learned_from_moves_no_weight(self, number):
        model, (past, now, _, removed) = make_channels(), self.arguments()
        learns = torch.ones(len(past), 2, 3)
        learns[1, :, 0] = learns[3, 0, 2] = 0
        other = now.clone()
        other[1, 0] = number
        slopes = [
            torch.autograd.grad(
                self.loss(model, past, target, learns, removed, 0.1), model.parameters()
            )
            for target in (now, other)
        ]
        assert all(torch.equal(a, b) for a, b in zip(*slopes, strict=True))

    def test_a_fold_without_slots_adds_nothing(self):
        model, (past, now, _, removed) = make_channels(), self.arguments()
        none = torch.zeros(len(past), 2, 3)
        assert self.loss(model, past, now, none, removed).item() == 0


class TestForbiddenLinks:
    """Cause 0 never drives effect 1; cause 2 drives effect 0 only at lag 1."""

    allowed = torch.ones(3, 3, 2, dtype=torch.bool)
    allowed[0, 1] = allowed[2, 0, 1] = False

    def trained(self, steps=5):
        model = make_channels()
        model.allow(self.allowed)
        past, now = sample(40)
        learns, weight = torch.ones(len(past), 2, 1), torch.tensor(LAG_WEIGHT)
        generator = torch.Generator().manual_seed(0)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05, amsgrad=True)
        for _ in range(steps):
            removed = torch.zeros(len(past), 3)
            removed[::2, int(torch.randint(3, (), generator=generator))] = 1
            optimizer.zero_grad()
            masked_source_loss(model, past, now, learns, removed, 0.01, weight).backward()
            optimizer.step()
        return model

    def test_their_weights_are_zero_and_stay_so(self):
        before, after = self.trained(steps=0), self.trained()
        for model in (before, after):
            for weight in (model.kernel, model.skip):
                assert not weight[0, :, :, 1].any()
                assert not weight[2, 1, :, 0].any()
            assert not model.absent[0, :, 1].any()
        links = self.allowed.transpose(1, 2)[:, :, None].expand_as(after.skip)
        assert after.skip[links].all()
        assert (after.skip != before.skip)[links].all()
        assert (after.kernel != before.kernel)[links].all()
        assert after.absent[2, :, 0].any()  # one lag of it is allowed

    def test_a_prediction_does_not_hang_on_a_forbidden_cause_or_lag(self):
        model, (past, _) = self.trained(), sample()
        without_cause, without_lag = past.clone(), past.clone()
        without_cause[:, 0] = 9.0
        without_lag[:, 2, 1] = -9.0
        with torch.no_grad():
            plain, no_cause, no_lag = (model(x) for x in (past, without_cause, without_lag))
        torch.testing.assert_close(no_cause[..., 1], plain[..., 1], rtol=0, atol=1e-6)
        torch.testing.assert_close(no_lag[..., 0], plain[..., 0], rtol=0, atol=1e-6)
        assert (no_cause[..., [0, 2]] != plain[..., [0, 2]]).all()
        assert (no_lag[..., [1, 2]] != plain[..., [1, 2]]).all()

    def test_nothing_is_relevant_that_is_forbidden(self):
        share, _ = channel_relevance(self.trained(), sample()[0])
        assert not share[:, 0, :, 1].any()
        assert not share[:, 2, 1, 0].any()
        assert share[:, 2, 0, 0].all()

    def test_the_network_works_on_without_any_link(self):
        model, (past, _) = make_channels(), sample()
        model.allow(torch.zeros(3, 3, 2, dtype=torch.bool))
        predicted = model(past)
        assert (predicted == predicted[:1]).all()


class TestTemporalPriority:
    @given(
        slot=st.integers(0, 11),
        series=st.integers(0, 2),
        change=st.floats(-5, 5).filter(lambda c: abs(c) > 1e-3),
        seed=st.integers(0, 50),
    )
    def test_a_change_touches_no_prediction_up_to_its_own_slot(self, slot, series, change, seed):
        model, x = make_channels(seed=seed), make_series(seed=seed + 1)
        changed = x.clone()
        changed[slot, series] += change
        with torch.no_grad():
            before, after = (model(lagged_samples(values, 2)[0]) for values in (x, changed))
        upto = max(0, slot + 1 - 2)  # the first prediction is that of slot 2
        assert torch.equal(before[:upto], after[:upto])

    def test_the_slots_after_it_do_see_a_change(self):
        model, x = make_channels(), make_series()
        changed = x.clone()
        changed[6, 0] += 1
        before, after = (model(lagged_samples(values, 2)[0]) for values in (x, changed))
        moved = (before != after).any(dim=2).any(dim=1)
        assert (moved.nonzero()[:, 0] + 2).tolist() == [7, 8]
