import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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
        assert torch.equal(samples.counts, samples.observed)

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


class TestPicking:
    def test_positions_are_taken_with_repetition_in_blocks_of_time(self):
        samples = samples_of(scores(missing=0.2), 2)
        positions = np.array([5, 6, 7, 5, 90, 91, 3, 3])
        picked = samples.pick(positions)
        assert len(picked) == 8
        for name in ("past", "now", "observed", "counts", "hidden"):
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
        assert torch.equal(part.counts[:, 0], samples.counts[:, 1])
        assert part.complete == samples.complete
        if not part.complete:
            assert torch.equal(part.hidden, samples.hidden[:, [2, 0]])
        np.testing.assert_array_equal(part.fold, samples.fold)


class TestInformed:
    """Two series and two lags: 32 samples count at least, if there are."""

    def profile(self, **shares):
        """Relevance ``[cause, effect, lag - 1]``, by letters for cause, effect and lag."""
        made = np.zeros((2, 2, 2))
        for place, share in shares.items():
            made["ab".index(place[1]), "ab".index(place[2]), int(place[3]) - 1] = share
        return made

    def x(self, n_slots=100):
        x = scores(n_slots, 2)
        x[::4, 0] = np.nan
        return x

    def test_without_missing_values_everything_counts(self):
        samples = samples_of(scores(n_series=2), 2)
        assert samples.informed(self.profile(_aa1=1.0)) is samples

    def test_slots_count_where_no_relevant_value_was_missing(self):
        samples = samples_of(self.x(), 2)
        found = samples.informed(self.profile(_aa1=1.0, _bb1=1.0))
        before = samples.slot - 1
        expected_a = (samples.slot % 4 != 0) & (before % 4 != 0)
        np.testing.assert_array_equal(found.counts[:, 0].numpy() > 0, expected_a)
        assert found.counts[:, 1].all()  # b hangs on itself alone, and is all there
        assert torch.equal(found.observed, samples.observed)
        assert torch.equal(samples.counts, samples.observed)  # the given samples stay as they were

    @pytest.mark.parametrize(("share", "counts"), [(0.05, True), (0.5, False)])
    def test_a_small_share_of_the_relevance_may_rest_on_missing_values(self, share, counts):
        samples = samples_of(self.x(), 2)
        found = samples.informed(self.profile(_ab1=share, _bb1=1 - share))
        after_a_gap = (samples.slot - 1) % 4 == 0
        assert found.counts[after_a_gap, 1].all() == counts
        assert found.counts[~after_a_gap, 1].all()

    def test_relevances_are_shares_of_each_effect_whatever_their_size(self):
        samples = samples_of(self.x(), 2)
        profile = np.random.default_rng(1).random((2, 2, 2))
        found = samples.informed(profile)
        louder = samples.informed(profile * np.array([1e-9, 1e6])[None, :, None])
        assert torch.equal(found.counts, louder.counts)

    def test_where_too_few_would_count_those_count_that_miss_least(self):
        x = scores(60, 2)
        x[:, 0] = np.where(np.arange(60) % 2, x[:, 0], np.nan)
        samples = samples_of(x, 2)
        found = samples.informed(self.profile(_ab1=0.6, _ab2=0.4))
        # of b's 58 samples 29 miss lag 1 and 29 miss lag 2: none misses little
        np.testing.assert_array_equal(found.counts[:, 1].sum(), 58)
        found = samples.informed(self.profile(_ab1=0.6, _ab2=0.3, _bb1=0.1))
        assert found.counts[:, 1].sum() >= 32
        missing_least = ((samples.slot - 2) % 2 == 0).nonzero()[0]
        assert found.counts[missing_least, 1].all()

    def test_a_missing_slot_never_counts(self):
        x = scores(60, 2)
        x[5:, 0] = np.nan
        samples = samples_of(x, 2)
        found = samples.informed(self.profile(_ba1=1.0, _bb1=1.0))
        assert found.counts[:, 0].sum() == samples.observed[:, 0].sum() == 3

    def test_an_effect_without_relevance_counts_wherever_it_can(self):
        samples = samples_of(self.x(), 2)
        counts = samples.informed(np.zeros((2, 2, 2))).counts
        assert torch.equal(counts, samples.observed * ~samples.hidden[..., 0])

    def test_what_was_drawn_towards_a_slots_own_value_does_not_judge_it(self):
        samples = samples_of(self.x(), 2)
        counts = samples.informed(self.profile(_ba1=1.0, _bb1=1.0)).counts
        assert not counts[(samples.slot - 1) % 4 == 0, 0].any()
        assert counts[:, 1].all()

    @given(missing=st.floats(0.02, 0.9), seed=st.integers(0, 50))
    def test_enough_samples_count_if_there_are(self, missing, seed):
        x = scores(80, 2, missing, seed)
        x[0] = np.nan
        samples = samples_of(x, 2)
        rng = np.random.default_rng(seed)
        counts = samples.informed(rng.random((2, 2, 2))).counts
        assert (counts <= samples.observed).all()
        n_usable = (samples.observed * ~samples.hidden[..., 0]).sum(0)
        assert (counts.sum(0) >= n_usable.clamp(max=32)).all()
