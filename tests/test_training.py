import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from causalformer.data.windows import (
    Split,
    all_to_train,
    sliding_windows,
    split_at_random,
    split_by_time,
)
from causalformer.errors import FileFormatError, SettingsError
from causalformer.training import CheckpointFile, OneCycle, TrainingPlan, train
from fresh_interpreter import loaded_by

PLAN = TrainingPlan(
    learning_rate=0.05, decay_every=4, decay_factor=0.5, batch_size=8, max_epochs=12, patience=100
)
WINDOWS = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
SPLIT = Split(train=np.arange(32), validation=np.arange(32, 40))


def linear_loss(model, batch):
    return (model(batch[:, :2])[:, 0] - batch[:, 0] + 2 * batch[:, 1]).square().mean()


def fresh():
    torch.manual_seed(0)
    return nn.Linear(2, 1), torch.Generator().manual_seed(1)


def run(plan=PLAN, **options):
    model, generator = fresh()
    return model, train(model, WINDOWS, SPLIT, linear_loss, plan, generator, **options)


def weights_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


class TestLoop:
    def test_it_learns(self):
        _, history = run()
        assert history.epochs[-1].validation_loss < 0.2 * history.epochs[0].validation_loss
        assert history.stopped == "max_epochs"
        assert len(history.epochs) == 12

    def test_the_same_seed_gives_the_same_weights(self):
        assert torch.equal(weights_of(run()[0]), weights_of(run()[0]))

    def test_learning_rate_falls_in_steps(self):
        assert [PLAN.rate_at(n) for n in (0, 3, 4, 8)] == pytest.approx([0.05, 0.05, 0.025, 0.0125])

    def test_it_stops_when_nothing_gets_better(self):
        epochs = itertools.count()

        def rising(_model, _batch):
            return torch.tensor(float(next(epochs)))

        plan = replace(PLAN, max_epochs=50, patience=3)
        _, history = run(plan, validation_loss=rising)
        assert history.stopped == "patience"
        assert history.best.number == 0
        assert len(history.epochs) == 1 + 3 + 1  # the best, three borne, one too many

    def test_equal_losses_count_as_better(self):
        plan = replace(PLAN, max_epochs=9, patience=3)
        _, history = run(plan, validation_loss=lambda _model, _batch: torch.tensor(1.0))
        assert history.stopped == "max_epochs"
        assert history.best.number == 8

    def test_the_best_weights_are_restored(self):
        model, generator = fresh()
        seen = []

        def remember(epoch):
            seen.append((epoch.validation_loss, weights_of(model).clone()))

        plan = TrainingPlan(0.9, 100, 1.0, 8, max_epochs=15, patience=100)  # too fast: it jumps
        history = train(model, WINDOWS, SPLIT, linear_loss, plan, generator, on_epoch=remember)
        best = min(range(len(seen)), key=lambda n: seen[n][0])
        assert history.best.number == best
        assert torch.equal(weights_of(model), seen[best][1])

    def test_ctrl_c_keeps_the_best_model(self):
        epochs = itertools.count()

        def interrupt(_):
            if next(epochs) == 4:
                raise KeyboardInterrupt

        model, history = run(on_epoch=interrupt)
        assert history.stopped == "interrupted"
        assert len(history.epochs) == 5
        assert torch.isfinite(weights_of(model)).all()

    def test_ctrl_c_before_any_model_is_passed_on(self):
        model, generator = fresh()

        def interrupted(_model, _batch):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(model, WINDOWS, SPLIT, interrupted, PLAN, generator)

    def test_a_diverged_training_names_what_to_change(self):
        model, generator = fresh()
        with pytest.raises(SettingsError, match="learning_rate"):
            train(
                model, WINDOWS, SPLIT, lambda m, b: linear_loss(m, b) * torch.nan, PLAN, generator
            )


class TestOneCycle:
    PLAN = OneCycle(learning_rate=0.3, batch_size=8, max_epochs=9)
    ALL = all_to_train(40)

    def run(self, **options):
        model, generator = fresh()
        return model, train(model, WINDOWS, self.ALL, linear_loss, self.PLAN, generator, **options)

    def test_the_rate_climbs_to_its_top_in_the_first_third_and_falls_to_zero(self):
        rates = [self.PLAN.rate_at(epoch / 10) for epoch in range(91)]
        assert rates.index(max(rates)) == 30
        assert max(rates) == pytest.approx(0.3)
        assert rates[:31] == sorted(rates[:31])
        assert rates[30:] == sorted(rates[30:], reverse=True)
        assert 0 < rates[0] < 0.1 * 0.3
        assert rates[-1] == pytest.approx(0, abs=1e-12)

    def test_it_learns_without_validation_for_the_whole_time(self):
        _, history = self.run()
        assert history.stopped == "max_epochs"
        assert len(history.epochs) == 9
        assert history.epochs[-1].train_loss < 0.1 * history.epochs[0].train_loss
        assert all(epoch.validation_loss == epoch.train_loss for epoch in history.epochs)

    def test_the_last_weights_are_kept_even_if_the_loss_was_lower_before(self):
        model, generator = fresh()
        seen = []

        def rising(network, batch):
            return linear_loss(network, batch) + len(seen)  # one more after every epoch

        history = train(
            model,
            WINDOWS,
            self.ALL,
            rising,
            self.PLAN,
            generator,
            on_epoch=lambda _: seen.append(weights_of(model).clone()),
        )
        assert history.epochs[-1].train_loss > history.epochs[0].train_loss
        assert history.best.number == 8
        assert torch.equal(weights_of(model), seen[-1])

    def test_a_training_that_diverges_on_the_way_keeps_what_it_had(self):
        model, generator = fresh()
        seen = []

        def breaking(network, batch):
            return linear_loss(network, batch) * (torch.nan if len(seen) == 3 else 1.0)

        history = train(
            model,
            WINDOWS,
            self.ALL,
            breaking,
            self.PLAN,
            generator,
            on_epoch=lambda _: seen.append(weights_of(model).clone()),
        )
        assert history.stopped == "diverged"
        assert history.best.number == 2
        assert torch.equal(weights_of(model), seen[2])

    def test_a_resumed_run_ends_as_an_uninterrupted_one(self, tmp_path):
        path = tmp_path / "state.safetensors"

        def interrupt(epoch):
            if epoch.number == 4:
                raise KeyboardInterrupt

        _, stopped = self.run(
            on_epoch=interrupt, checkpoint=CheckpointFile(path, "x", every_seconds=0)
        )
        assert stopped.stopped == "interrupted"
        resumed, history = self.run(checkpoint=CheckpointFile(path, "x"))
        assert len(history.epochs) == 9
        assert torch.equal(weights_of(resumed), weights_of(self.run()[0]))


class TestAdam:
    def test_it_steps_as_torchs_own(self):
        ours, torchs = (
            run(optimizer=None)[0],
            self.trained_by(lambda p: torch.optim.Adam(p, 0.05, amsgrad=True, fused=True)),
        )
        assert torch.equal(weights_of(ours), weights_of(torchs))

    def trained_by(self, make):
        model, generator = fresh()
        optimizer = make(model.parameters())
        train(model, WINDOWS, SPLIT, linear_loss, PLAN, generator, optimizer=optimizer)
        return model

    def test_a_fit_does_not_load_torchs_compiler(self, tmp_path):
        path = str(tmp_path / "state")
        loaded = loaded_by(
            "import warnings; warnings.simplefilter('ignore')\n"
            "import numpy as np; from causalformer import CausalFormer\n"
            f"model = CausalFormer(settings={{'max_epochs': 2}}, checkpoint={path!r})\n"
            "model.fit(np.random.default_rng(0).standard_normal((60, 2)))"
        )
        assert "torch" in loaded
        assert "torch._dynamo" not in loaded


class TestCheckpoint:
    def interrupted_after(self, n_epochs, path, fingerprint="x"):
        epochs = itertools.count(1)

        def interrupt(_):
            if next(epochs) == n_epochs:
                raise KeyboardInterrupt

        run(on_epoch=interrupt, checkpoint=CheckpointFile(path, fingerprint, every_seconds=0))

    @pytest.mark.parametrize("n_epochs", [2, 5, 11])
    def test_a_resumed_run_ends_as_an_uninterrupted_one(self, tmp_path, n_epochs):
        path = tmp_path / "state.safetensors"
        self.interrupted_after(n_epochs, path)
        model, history = run(checkpoint=CheckpointFile(path, "x"))
        whole_model, whole_history = run()
        assert torch.equal(weights_of(model), weights_of(whole_model))
        losses = [[e.validation_loss for e in h.epochs] for h in (history, whole_history)]
        assert losses[0] == losses[1]

    def test_a_checkpoint_of_something_else_is_refused(self, tmp_path):
        path = tmp_path / "state.safetensors"
        self.interrupted_after(3, path)
        with pytest.raises(FileFormatError, match="other data"):
            run(checkpoint=CheckpointFile(path, "y"))

    @pytest.mark.parametrize("content", [b"", b"junk", b"\x08\0\0\0\0\0\0\0{}      "])
    def test_a_damaged_checkpoint_is_refused(self, tmp_path, content):
        path = tmp_path / "state.safetensors"
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"state\.safetensors"):
            run(checkpoint=CheckpointFile(path, "x"))

    @pytest.mark.parametrize("place", [-1, -200, 300])
    def test_one_wrong_byte_is_noticed(self, tmp_path, place):
        path = tmp_path / "state.safetensors"
        self.interrupted_after(3, path)
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"state\.safetensors"):
            run(checkpoint=CheckpointFile(path, "x"))

    def test_the_first_epoch_is_kept_however_short_the_training(self, tmp_path):
        path = tmp_path / "state.safetensors"
        run(checkpoint=CheckpointFile(path, "x", every_seconds=1000))
        assert path.exists()


class TestSplit:
    def test_windows_are_views(self):
        series = torch.arange(20.0).reshape(10, 2)
        windows = sliding_windows(series, 4)
        assert windows.shape == (7, 2, 4)
        assert windows.data_ptr() == series.data_ptr()
        assert windows[3, 1].tolist() == [7, 9, 11, 13]

    @pytest.mark.parametrize(("n_windows", "share"), [(985, 0.1), (3985, 0.01), (200, 0.2)])
    def test_training_shares_no_slot_with_validation(self, n_windows, share):
        split = split_by_time(n_windows, 16, share)
        assert split.train[-1] + 15 < split.validation[0]
        assert split.validation[-1] == n_windows - 1

    def test_short_series_keep_enough_to_train(self):
        split = split_by_time(19, 32, 0.01)
        assert split.train.tolist() == list(range(18))
        assert split.validation.tolist() == [18]

    @pytest.mark.parametrize(
        ("n_windows", "share", "n_validation"), [(985, 0.1, 98), (199, 0.01, 1), (69, 0.01, 0)]
    )
    def test_a_random_share_is_cut_down_to_whole_windows(self, n_windows, share, n_validation):
        split = split_at_random(n_windows, share)
        assert len(split.validation) == n_validation
        assert sorted([*split.train, *split.validation]) == list(range(n_windows))
        again = split_at_random(n_windows, share)
        assert split.validation.tolist() == again.validation.tolist()

    def test_a_random_share_is_spread_over_time(self):
        validation = split_at_random(1000, 0.1).validation
        assert validation[0] < 100
        assert validation[-1] > 900
