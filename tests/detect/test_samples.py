import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalformer.detect.filling import past_covariance
from causalformer.detect.samples import make_samples
from evidence_examples import samples_of

SEGMENTS = [slice(0, 40), slice(40, 43), slice(43, 100)]


def scores(n_slots=100, n_series=3, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_slots, n_series))
    x[rng.random(x.shape) < missing] = np.nan
    return x


@st.composite
def tables(draw):
    """Scores with gaps, their segments, and how many lags to look at."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    stops = np.cumsum(lengths)
    segments = [slice(stop - n, stop) for stop, n in zip(stops.tolist(), lengths, strict=True)]
    max_lag = draw(st.integers(1, max(1, max(lengths) - 1)))
    missing = draw(st.sampled_from([0.0, 0.3]))
    return scores(sum(lengths), 2, missing, draw(st.integers(0, 99))), segments, max_lag


class TestMaking:
    @given(made=tables())
    def test_a_sample_is_a_slot_and_its_past_in_the_same_segment(self, made):
        x, segments, max_lag = made
        if len(x) <= max_lag:
            return
        samples = samples_of(x, max_lag, 2, segments)
        segment_of = np.repeat(np.arange(len(segments)), [s.stop - s.start for s in segments])
        expected = [
            slot
            for slot in range(max_lag, len(x))
            if segment_of[slot] == segment_of[slot - max_lag]
        ]
        assert samples.slot.tolist() == expected
        seen = ~np.isnan(x)
        for i, slot in enumerate(expected):
            np.testing.assert_array_equal(samples.observed[i], seen[slot])
            for lag in range(1, max_lag + 1):
                before = seen[slot - lag]
                np.testing.assert_allclose(
                    samples.past[i, before, lag - 1], x[slot - lag, before], rtol=1e-6
                )
                if samples.hidden is not None:
                    np.testing.assert_array_equal(samples.hidden[i, :, lag - 1], ~before)
            np.testing.assert_allclose(samples.now[i][seen[slot]], x[slot][seen[slot]], rtol=1e-6)
        assert torch.isfinite(samples.past).all()
        assert torch.isfinite(samples.now).all()

    def test_complete_data_have_nothing_hidden(self):
        samples = samples_of(scores(), 2, segments=SEGMENTS)
        assert samples.complete
        assert samples.hidden is None
        assert samples.observed.all()
        assert samples.n_observed == len(samples) == 38 + 1 + 55

    def test_one_missing_value_is_hidden_from_the_slots_after_it(self):
        x = scores()
        x[50, 1] = np.nan
        samples = samples_of(x, 2, segments=SEGMENTS)
        assert not samples.complete
        hidden = {
            (samples.slot[i], cause, lag + 1) for i, cause, lag in samples.hidden.nonzero().tolist()
        }
        assert hidden == {(51, 1, 1), (52, 1, 2)}
        assert [(samples.slot[i], e) for i, e in (1 - samples.observed).nonzero().tolist()] == [
            (50, 1)
        ]

    def test_n_observed_is_the_mean_over_the_effects(self):
        x = scores()
        x[10:20, 0] = np.nan
        x[30:32, 1] = np.nan
        assert samples_of(x, 2).n_observed == 98 - 12 // 3

    def test_recordings_are_held_out_whole(self):
        run = np.repeat(np.arange(4), 25)
        segments = [slice(25 * i, 25 * i + 25) for i in range(4)]
        samples = make_samples(scores(), segments, run, 2, 4)
        np.testing.assert_array_equal(samples.fold, run[samples.slot])

    def test_the_table_may_be_read_only(self):
        for missing in (0.0, 0.2):
            x = scores(missing=missing)
            x.setflags(write=False)
            assert len(samples_of(x, 2)) == 98


class TestBefore:
    """The value before the past, where a series wanders."""

    def test_it_is_one_lag_further_in_the_same_segment(self):
        x = scores()
        samples = samples_of(x, 2, segments=SEGMENTS, wanders=np.array([True, False, False]))
        for i, slot in enumerate(samples.slot.tolist()):
            begins = any(slot - 2 == segment.start for segment in SEGMENTS)
            expected = x[slot - 2 if begins else slot - 3]
            np.testing.assert_allclose(samples.before[i], expected, rtol=1e-6)

    def test_an_unknown_one_is_like_the_next(self):
        x = scores()
        x[10, 0] = np.nan
        samples = samples_of(x, 2, wanders=np.array([True, False, False]))
        at = samples.slot.tolist().index(13)
        assert samples.before[at, 0] == samples.past[at, 0, 1]

    def test_it_stays_with_its_samples_and_series(self):
        samples = samples_of(scores(), 2, wanders=np.array([True, False, False]))
        picked = samples.pick(np.array([5, 2])).of([1, 0], [0]).thinned(1)
        np.testing.assert_array_equal(picked.before, samples.before[5:6, [1, 0]])
        assert picked.wanders.tolist() == [False, True]

    def test_there_is_none_unless_a_series_wanders(self):
        assert samples_of(scores(), 2, wanders=np.zeros(3, dtype=bool)).before is None
        assert samples_of(scores(), 2).before is None


class TestPicking:
    def test_positions_are_taken_with_repetition_in_blocks_of_time(self):
        samples = samples_of(scores(missing=0.2), 2)
        positions = np.array([5, 6, 7, 5, 90, 91, 3, 3])
        picked = samples.pick(positions)
        assert len(picked) == 8
        for name in ("past", "now", "observed", "hidden"):
            assert torch.equal(getattr(picked, name), getattr(samples, name)[positions])
        np.testing.assert_array_equal(picked.slot, samples.slot[positions])
        assert picked.fold.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]

    def test_complete_samples_stay_complete(self):
        assert samples_of(scores(), 2).pick(np.arange(9)).complete

    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_some_causes_and_some_effects(self, missing):
        samples = samples_of(scores(missing=missing), 2)
        part = samples.of([2, 0], [1])
        assert part.past.shape == (98, 2, 2)
        assert part.now.shape == (98, 1)
        assert torch.equal(part.past, samples.past[:, [2, 0]])
        assert torch.equal(part.observed[:, 0], samples.observed[:, 1])
        assert part.complete == samples.complete
        if not part.complete:
            assert torch.equal(part.hidden, samples.hidden[:, [2, 0]])
        np.testing.assert_array_equal(part.fold, samples.fold)


class TestFilling:
    @given(slot=st.integers(2, 99), seed=st.integers(0, 20), change=st.floats(-9, 9))
    def test_a_sample_is_filled_without_a_look_at_its_own_slot_or_later(self, slot, seed, change):
        x = scores(missing=0.3, seed=seed)
        covariance = past_covariance(x, SEGMENTS, 2)
        changed = x.copy()
        changed[slot:] += change
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("causalformer.detect.samples.past_covariance", lambda *_: covariance)
            before, after = (samples_of(s, 2, segments=SEGMENTS) for s in (x, changed))
        assert torch.equal(before.past[before.slot <= slot], after.past[after.slot <= slot])

    def test_a_missing_mediator_is_told_by_its_cause(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((2000, 2))
        x[1:, 1] = 0.9 * x[:-1, 0] + np.sqrt(1 - 0.81) * x[1:, 1]
        truth, gone = x[:, 1].copy(), rng.random(2000) < 0.3
        x[gone, 1] = np.nan
        samples = samples_of(x, 2)
        filled, there = samples.past[:, 1, 0].numpy(), truth[samples.slot - 1]
        hidden = samples.hidden[:, 1, 0].numpy()
        error = np.mean((filled - there)[hidden] ** 2)
        assert 0.15 < error < 0.25  # no better than its cause can tell, 0.19, and hardly worse


class TestSeen:
    def test_without_missing_values_all_is_seen(self):
        assert (samples_of(scores(), 2).seen(1, np.ones((3, 2))) == 1).all()

    def test_is_the_share_of_the_profile_that_was_there(self):
        x = scores(n_series=2)
        x[50, 0] = np.nan
        samples = samples_of(x, 2)
        seen = samples.seen(0, np.array([[3.0, 1.0], [0.0, 2e-9]]))
        for slot, expected in ((51, [0.25, 1.0]), (52, [0.75, 0.0])):
            np.testing.assert_allclose(seen[samples.slot == slot], [expected], atol=1e-12)
        elsewhere = (samples.slot != 51) & (samples.slot != 52)
        np.testing.assert_allclose(seen[elsewhere], 1.0)
        np.testing.assert_allclose(samples.seen(1, np.ones((2, 2))), 1.0)

    def test_a_cause_without_relevance_is_seen_everywhere(self):
        samples = samples_of(scores(missing=0.3), 2)
        assert (samples.seen(0, np.zeros((3, 2))) == 1).all()


class TestInformed:
    def test_complete_samples_are_all_informed(self):
        assert samples_of(scores(), 2).n_informed == 98

    @pytest.mark.parametrize("missing", [0.05, 0.2, 0.5])
    def test_holes_cost_more_than_the_slots_they_are_in(self, missing):
        samples = samples_of(scores(3000, missing=missing), 2)
        assert samples.n_informed == pytest.approx(3000 * (1 - missing) ** 5, rel=0.1)

    def test_there_is_always_one(self):
        assert samples_of(scores(missing=0.97), 2).n_informed == 1
