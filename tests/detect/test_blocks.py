"""Effects in blocks with candidates: the same as one by one, whoever fits them."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from causalformer.checkpoint import load_tensors, save_tensors
from causalformer.config import DetectorSettings
from causalformer.detect import blocks, screening
from causalformer.detect.blocks import detect
from causalformer.detect.calibrated import judge_pairs, known_by_terms
from causalformer.detect.few_terms import SparseTests
from causalformer.errors import FileFormatError
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.explain.local import of_all_series
from causalformer.knowledge import KnownGraph, PriorKnowledge
from causalformer.training import CheckpointFile
from evidence_examples import make_evidence, samples_of

TINY = DetectorSettings(max_epochs=3, n_channels=4, screen_above=3, max_candidates=8)
NAMES = tuple("abcdefghijklmnopqr")
ANYTHING = KnownGraph.anything(len(NAMES), 2)


@pytest.fixture(scope="module")
def samples():
    x = np.random.default_rng(0).standard_normal((160, len(NAMES)))
    x[1:, 1] += 2 * x[:-1, 0]
    x[2:, 2] += x[:-2, 1] ** 2
    return samples_of(x, 2)


@pytest.fixture(scope="module")
def found(samples):
    return detect(samples, TINY, ANYTHING, random_state=0)


def assert_same(first, second):
    for name, array in vars(first[2].pairs).items():
        np.testing.assert_array_equal(array, getattr(second[2].pairs, name), name)
    np.testing.assert_array_equal(first[2].q_value, second[2].q_value)
    for a, b in zip(first[0].state_dict().values(), second[0].state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_edges_are_found_where_they_are(found):
    model, history, evidence = found
    assert (evidence.q_value[0, 1], evidence.q_value[1, 0]) == (pytest.approx(0, abs=1e-6), 1)
    assert evidence.pairs.lag_profile[0, 1].argmax() == 0
    assert evidence.pairs.candidates.sum(0).tolist() == [8] * len(NAMES)
    assert evidence.pairs.candidates.diagonal().all()
    assert model.sources.shape == (len(NAMES), 8)
    assert len(history.epochs) == 3


def test_what_the_network_did_not_look_at_is_tested_by_few_terms(found):
    evidence = found[2]
    outside = ~evidence.pairs.candidates
    alone = outside & evidence.pairs.tested
    np.testing.assert_array_equal(evidence.pairs.p_value[alone], evidence.pairs.terms_p[alone])
    np.testing.assert_array_equal(
        evidence.pairs.lag_profile[outside], evidence.pairs.t[outside] ** 2
    )
    assert (evidence.pairs.relative_gain[outside] == 0).all()
    n_pairs = len(NAMES) * (len(NAMES) - 1)
    smallest = np.where(np.eye(len(NAMES)), 1, evidence.pairs.p_value).min()
    assert evidence.q_value[evidence.pairs.p_value == smallest].max() <= smallest * n_pairs


def test_more_causes_than_candidates_are_found():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, len(NAMES)))
    x[1:, 0] += 0.6 * x[:-1, 1:13].sum(axis=1)
    _, _, evidence = detect(samples_of(x, 2), TINY, ANYTHING, random_state=0)
    assert evidence.pairs.candidates[:, 0].sum() == 8
    assert (evidence.q_value[1:13, 0] < 1e-6).all()
    assert (evidence.pairs.strength[1:13, 0] > 0).all()
    assert (evidence.pairs.size[1:13, 0] > 0.1).all()
    assert (evidence.pairs.lag_profile[1:13, 0].argmax(axis=-1) == 0).all()


def test_pairs_without_a_test_have_a_rank_but_no_evidence(monkeypatch):
    zeros = np.zeros((2, 2))
    sparse = SparseTests(
        p_value=np.array([[0.001, 0.2], [0.5, 0.9]]),
        explained=zeros + 0.3,
        strength=zeros + 0.4,
        t=zeros[..., None],
        hangs_on=zeros > 0,
        tested=np.array([[True, True], [False, True]]),
        residual=np.zeros((5, 2), dtype=np.float32),
    )
    family = np.array([[True, True], [True, False]])
    samples = samples_of(np.zeros((7, 2)), 2)
    removal = make_evidence(2).removal
    monkeypatch.setattr(SparseTests, "refuted", lambda *_: np.array([False, True]))
    known = known_by_terms(sparse, removal, samples, family, DetectorSettings())
    assert known.tested.tolist() == [[True, False], [False, False]]
    assert known.p_value.tolist() == [[0.001, 0.6], [0.75, 1.0]]
    assert known.size.tolist() == [[0.3, 0.0], [0.0, 0.0]]
    assert known.strength.tolist() == [[0.4, 0.0], [0.0, 0.0]]
    alone = DetectorSettings(sparse_evidence=False)
    assert not known_by_terms(sparse, removal, samples, family, alone).tested.any()


def test_long_lags_are_in_reach_of_short_series():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 6))
    x[4:, 1] += 2 * x[:-4, 0]
    samples = samples_of(x, 4)
    model, _, evidence = detect(samples, TINY, KnownGraph.anything(6, 4), random_state=0)
    long = model.kernel[:, 2:].abs().amax(dim=(1, 2, 4))  # cause, effect
    own = torch.eye(6, dtype=torch.bool)
    assert (long[~own] == 0).all()  # the network looks at two lags of others,
    assert (long[own] > 0).all()  # and at all of an effect's own
    assert evidence.q_value[0, 1] < 1e-6
    assert evidence.pairs.lag_profile[0, 1].argmax() == 3


@pytest.mark.parametrize("effects_per_block", [1, 4, 100])
def test_blocks_do_not_change_the_result(samples, found, effects_per_block):
    other = detect(samples, TINY, ANYTHING, random_state=0, effects_per_block=effects_per_block)
    for name, array in vars(other[2].pairs).items():
        expected = getattr(found[2].pairs, name)
        np.testing.assert_allclose(array, expected, rtol=1e-2, atol=1e-4, err_msg=name)


def test_a_task_is_one_piece_that_dask_cannot_lose_parts_of(samples, found, monkeypatch):
    """Joblib leaves arguments that can be weakly referenced with single workers."""
    tasks, fit = [], blocks._fit_block
    monkeypatch.setattr(blocks, "_fit_block", lambda *a: tasks.append(a) or fit(*a))
    detect(samples, TINY, ANYTHING, random_state=0)
    for (task,) in tasks:
        with pytest.raises(TypeError, match="weak reference"):
            weakref.ref(task)


def test_threads_do_not_change_the_result(samples, found):
    assert_same(detect(samples, TINY, ANYTHING, random_state=0, n_jobs=2), found)


def test_processes_do_not_change_the_result(samples, found, monkeypatch):
    monkeypatch.setattr(blocks, "_WORTH_PROCESSES", 0)
    assert_same(detect(samples, TINY, ANYTHING, random_state=0, n_jobs=2), found)


def test_another_seed_gives_other_weights(samples, found):
    other = detect(samples, TINY, ANYTHING, random_state=1)
    assert not torch.equal(other[0].kernel, found[0].kernel)


def test_with_all_series_as_candidates_the_tests_are_those_of_one_network(samples, monkeypatch):
    """The two shapes of the network, shared past and candidates, are one computation."""
    kept = []

    def everything(samples, _, *rest):
        kept.append(screening.screen(samples, len(NAMES), *rest))
        return kept[0]._replace(sources=torch.tensor(circle))

    circle = [np.roll(np.arange(len(NAMES)), -i).tolist() for i in range(len(NAMES))]
    monkeypatch.setattr(blocks, "n_candidates", lambda *_: len(NAMES) - 1)
    monkeypatch.setattr(blocks, "screen", everything)
    model, _, found = detect(samples, TINY, ANYTHING, random_state=0)
    order = model.sources.argsort(dim=1)  # back to the order of the series
    dense = blocks.new_network(len(NAMES), 2, TINY)
    picked = torch.arange(len(NAMES))
    with torch.no_grad():
        for name in ("threshold", "mix", "offset"):
            getattr(dense, name).copy_(getattr(model, name))
        dense.kernel.copy_(
            model.kernel.permute(3, 0, 1, 2, 4)[picked[:, None], order].permute(1, 2, 3, 0, 4)
        )
        dense.skip.copy_(model.skip.permute(3, 0, 1, 2)[picked[:, None], order].permute(1, 2, 3, 0))
        dense.absent.copy_(
            model.absent.permute(2, 0, 1, 3)[picked[:, None], order].permute(1, 2, 0, 3)
        )
        torch.testing.assert_close(dense(samples.past), model(samples.past), atol=1e-5, rtol=1e-4)
    allowed = found.pairs.candidates[..., None].repeat(2, axis=-1)
    pairs, removal = judge_pairs(dense, samples, TINY, allowed, kept[0].sparse)
    looked_at = found.pairs.candidates
    for name in ("relative_gain", "strength", "lag_profile", "terms_p", "t"):
        given, expected = (getattr(of, name)[looked_at] for of in (found.pairs, pairs))
        np.testing.assert_allclose(given, expected, rtol=2e-2, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(found.removal.error, removal.error, rtol=1e-3)
    np.testing.assert_allclose(
        found.removal.residual_correlation, removal.residual_correlation, atol=1e-3
    )


def test_relevance_of_candidates_adds_up_to_the_prediction(samples, found):
    model = found[0]
    share, bias = channel_relevance(model, samples.past[:5])
    everywhere = of_all_series(share, model)
    assert everywhere.shape == (5, len(NAMES), 2, len(NAMES))
    with torch.no_grad():
        predicted = model(samples.past[:5]).mean(1)
    torch.testing.assert_close(everywhere.sum((1, 2)) + bias, predicted, atol=1e-5, rtol=1e-4)
    candidates = torch.from_numpy(found[2].pairs.candidates)
    assert (everywhere.abs().sum((0, 2))[~candidates] == 0).all()


def test_missing_values(samples):
    hidden = torch.zeros_like(samples.past, dtype=torch.bool)
    hidden[::7, 0, 0] = True
    observed = samples.observed.clone()
    observed[::5, 3] = 0
    holey = replace(samples, hidden=hidden, observed=observed)
    model, _, evidence = detect(holey, TINY, ANYTHING, random_state=0)
    assert evidence.q_value[0, 1] < 1e-3
    n_together = np.diag(evidence.removal.n_together)
    assert n_together.tolist() == observed.sum(0).tolist()
    position = np.flatnonzero(model.sources[1].numpy() == 0)[0]  # of series 0 for effect 1
    profile = evidence.pairs.lag_profile[model.sources[:, position].numpy(), np.arange(len(NAMES))]
    seen = holey.seen(position, profile, model.sources)
    assert (seen[::7, 1] < 1).all()
    assert (seen[1::7, 1] == 1).all()


def test_knowledge_is_respected(samples):
    known = PriorKnowledge(required=["r -> a"], forbidden=["a -> b", "b -> c @ 2"])
    known = known.resolve(NAMES, 2)
    evidence = detect(samples, TINY, known, random_state=0)[2]
    assert evidence.pairs.candidates[17, 0]
    assert not evidence.pairs.tested[0, 1]
    assert evidence.pairs.p_value[0, 1] == 1
    assert evidence.pairs.lag_profile[1, 2, 1] == 0


def test_who_must_have_many_causes_does_not_give_candidates_to_others(samples):
    known = PriorKnowledge(required=[f"{name} -> a" for name in NAMES[3:15]]).resolve(NAMES, 2)
    evidence = detect(samples, TINY, known, random_state=0)[2]
    assert evidence.pairs.candidates.sum(0).tolist() == [13, *[8] * (len(NAMES) - 1)]
    assert evidence.pairs.candidates[3:15, 0].all()


class TestFewSeries:
    """Up to some series one network holds all effects, with their candidates."""

    @pytest.fixture
    def few(self):
        x = np.random.default_rng(0).standard_normal((160, 12))
        x[1:, 1] += 2 * x[:-1, 0]
        return samples_of(x, 2)

    def test_each_is_tested_for_its_candidates(self, few):
        model, _, evidence = detect(few, TINY, KnownGraph.anything(12, 2), random_state=0)
        assert model.sources is None
        assert evidence.pairs.candidates.sum(0).tolist() == [8] * 12
        assert evidence.q_value[0, 1] < 1e-6
        outside = ~evidence.pairs.candidates
        alone = outside & evidence.pairs.tested
        np.testing.assert_array_equal(evidence.pairs.p_value[alone], evidence.pairs.terms_p[alone])

    def test_all_pairs_count_among_the_tests(self, few):
        _, _, evidence = detect(few, TINY, KnownGraph.anything(12, 2), random_state=0)
        smallest = np.where(np.eye(12), 1, evidence.pairs.p_value).min()
        q_value = evidence.q_value[evidence.pairs.p_value == smallest].max()
        assert q_value == pytest.approx(smallest * 12 * 11)

    def test_long_series_need_no_candidates(self):
        x = np.random.default_rng(0).standard_normal((12 * 2 * 20 + 2, 12))
        settings = TINY.model_copy(update={"max_candidates": 20})
        evidence = detect(samples_of(x, 2), settings, KnownGraph.anything(12, 2), random_state=0)[2]
        assert evidence.pairs.candidates.all()


def test_progress_ends_with_the_last_epoch(samples):
    epochs = []
    detect(samples, TINY, ANYTHING, random_state=0, on_epoch=epochs.append)
    assert [epoch.number for epoch in epochs] == sorted(epoch.number for epoch in epochs)
    assert epochs[-1].number == TINY.max_epochs - 1


class TestCheckpoint:
    def test_finished_blocks_are_not_fitted_again(self, samples, found, tmp_path, monkeypatch):
        checkpoint = CheckpointFile(tmp_path / "state.safetensors", "mine")
        calls = []
        fit = blocks._fit_block

        def fit_but_fail_once(task):
            calls.append(task.effects)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return fit(task)

        monkeypatch.setattr(blocks, "_fit_block", fit_but_fail_once)
        with pytest.raises(KeyboardInterrupt):
            detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint)
        again = detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint)
        assert [call[0] for call in calls] == [0, 10, 10]
        assert_same(again, found)

    def test_finished_blocks_count_whatever_their_size(self, samples, found, tmp_path, monkeypatch):
        checkpoint = CheckpointFile(tmp_path / "state.safetensors", "mine")
        settings = {"random_state": 0, "checkpoint": checkpoint}
        detect(samples, TINY, ANYTHING, **settings)
        checkpoint.block(range(10, 18)).unlink()
        calls, fit = [], blocks._fit_block
        monkeypatch.setattr(
            blocks, "_fit_block", lambda task: calls.append(task.effects) or fit(task)
        )
        again = detect(samples, TINY, ANYTHING, effects_per_block=5, **settings)
        assert calls == [[10, 11, 12, 13, 14], [15, 16, 17]]
        np.testing.assert_allclose(
            again[2].pairs.p_value, found[2].pairs.p_value, rtol=1e-2, atol=1e-4
        )

    def test_a_block_of_other_candidates_is_fitted_again(
        self, samples, found, tmp_path, monkeypatch
    ):
        checkpoint = CheckpointFile(tmp_path / "state.safetensors", "mine")
        plain = blocks.screen

        def other(*given):
            sources, sparse = plain(*given)
            return sources.roll(1, dims=1).sort(1).values, sparse

        monkeypatch.setattr(blocks, "screen", other)
        detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint)
        monkeypatch.setattr(blocks, "screen", plain)
        assert_same(detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint), found)

    def test_checkpoints_that_differ_after_the_last_dot_share_nothing(self, samples, tmp_path):
        for name in ("run.1", "run.2"):
            checkpoint = CheckpointFile(tmp_path / name, name)
            detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint)
            assert checkpoint.blocks() == [range(10), range(10, 18)]

    def test_a_damaged_block_is_fitted_again(self, samples, found, tmp_path):
        checkpoint = CheckpointFile(tmp_path / "state.safetensors", "mine")
        detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint)
        block = checkpoint.block(range(10, 18))
        block.write_bytes(block.read_bytes()[:-3])
        assert_same(detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint), found)

    def test_a_block_of_another_version_is_fitted_again(self, samples, found, tmp_path):
        checkpoint = CheckpointFile(tmp_path / "state.safetensors", "mine")
        detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint)
        for block, lost in zip(checkpoint.blocks(), ("pairs.size", "epochs"), strict=True):
            tensors, _ = load_tensors(checkpoint.block(block), checkpoint.fingerprint)
            tensors["lag_error"] = tensors.pop(lost)
            save_tensors(checkpoint.block(block), checkpoint.fingerprint, tensors, {})
        assert_same(detect(samples, TINY, ANYTHING, random_state=0, checkpoint=checkpoint), found)

    def test_a_block_of_something_else_is_refused(self, samples, tmp_path):
        path = tmp_path / "state.safetensors"
        mine, other = CheckpointFile(path, "mine"), CheckpointFile(path, "other")
        detect(samples, TINY, ANYTHING, random_state=0, checkpoint=mine)
        with pytest.raises(FileFormatError, match="belongs to other data"):
            detect(samples, TINY, ANYTHING, random_state=0, checkpoint=other)
