"""Trends, level shifts and seasons: found where they are, and only there."""

from dataclasses import replace

import numpy as np
import pytest

from causalformer.data import SeriesTable
from causalformer.data.time_terms import (
    TimeTerms,
    check_seen,
    find_seasons,
    find_time_terms,
    read_season,
)
from causalformer.errors import SettingsError

SLOT = np.arange(400)


def noise(n_series=2, seed=0, memory=0.5, n_slots=400):
    """Autoregressive noise of variance one."""
    x = np.random.default_rng(seed).standard_normal((n_slots, n_series))
    x[1:] *= np.sqrt(1 - memory**2)
    for t in range(1, n_slots):
        x[t] += memory * x[t - 1]
    return x


def wave(period, shift=0.0, n_slots=400):
    return np.sin(2 * np.pi * (np.arange(n_slots) + shift) / period)


def table(x, **more):
    return SeriesTable(x, tuple("abcdefgh"[: x.shape[1]]), **more)


def found(x, **more):
    given = table(x, **more)
    return find_time_terms(given, find_seasons(given))


def kinds(terms):
    return {place: {t.kind for t in followed} for place, followed in terms.followed.items()}


class TestSeason:
    @pytest.mark.parametrize("period", [7.0, 12.0, 30.4])
    def test_its_period_is_found_and_taken_off_all_series(self, period):
        x = noise() + np.column_stack([2 * wave(period), 1.5 * wave(period, 3)])
        terms = found(x)
        assert terms.periods[0] == pytest.approx(period, rel=5e-3)
        assert (period in terms.periods) == period.is_integer()
        rest = terms.without(table(x)).values
        assert max(abs(np.corrcoef(rest[:, i], wave(period))[0, 1]) for i in (0, 1)) < 0.05

    def test_its_harmonics_belong_to_it(self):
        shape = np.random.default_rng(1).standard_normal(12)
        x = noise() + 2 * np.column_stack([shape[SLOT % 12], shape[(SLOT + 5) % 12]])
        terms = found(x)
        assert terms.periods == (12.0,)
        rest = terms.without(table(x)).values
        assert rest[:396, 0].reshape(-1, 12).mean(axis=0).std() < 0.25 * shape.std()

    def test_where_it_is_weak_it_is_taken_off_because_another_series_has_it(self):
        x = noise(memory=0.0) + np.column_stack([2 * wave(12), 0.35 * wave(12, 3)])
        assert find_seasons(table(x[:, 1:])) == ()
        assert (0, 1) in found(x).followed

    def test_a_resonance_is_none(self):
        n_seasons = 0
        for seed in range(10):
            x = np.random.default_rng(seed).standard_normal((400, 2))
            for t in range(2, 400):
                x[t] += 1.83 * x[t - 1] - 0.94 * x[t - 2]
            n_seasons += len(find_seasons(table(x)))
        assert n_seasons == 0

    def test_an_oscillator_that_loses_its_phase_is_none(self):
        rng = np.random.default_rng(0)
        phase = 2 * np.pi * SLOT[:, None] / 12 + 0.25 * rng.standard_normal((400, 2)).cumsum(axis=0)
        assert find_seasons(table(np.sin(phase) + 0.1 * noise())) == ()

    def test_missing_values_and_segments_hide_nothing(self):
        x = noise() + np.column_stack([2 * wave(12), 2 * wave(12, 3)])
        x[200:] = np.roll(x[200:], 5, axis=0)  # another phase
        x[np.random.default_rng(0).random(x.shape) < 0.05] = np.nan
        terms = found(x, starts=(0, 200))
        assert terms.periods == (12.0,)
        assert set(terms.courses) == {(0, 0), (0, 1), (1, 0), (1, 1)}
        rest = terms.without(table(x, starts=(0, 200)))
        assert np.array_equal(np.isnan(rest.values), np.isnan(x))

    def test_one_that_is_named_is_offered_and_one_that_is_not_there_is_left(self):
        x = noise() + 2 * wave(12)[:, None]
        assert kinds(find_time_terms(table(x), [12])) == {(0, 0): {"season"}, (0, 1): {"season"}}
        assert find_time_terms(table(noise()), [12]).courses == {}
        assert find_time_terms(table(x), []).courses == {}


class TestTrend:
    def test_what_one_series_follows_all_are_freed_from(self):
        """Else an effect that lost a slow wave would no longer match the cause that has it."""
        x = noise()
        x[:, 0] += 4 * SLOT / 400
        terms = found(x)
        assert set(terms.followed) == {(0, 0)}
        assert set(terms.courses) == {(0, 0), (0, 1)}
        (term,) = terms.followed[0, 0]
        rest = terms.without(table(x)).values
        centred = term.columns(400) - term.columns(400).mean()
        np.testing.assert_allclose(centred.T @ rest, 0, atol=1e-9)

    @pytest.mark.parametrize("course", [SLOT / 400, (SLOT / 400) ** 2, np.sin(np.pi * SLOT / 400)])
    def test_it_is_taken_off(self, course):
        x = noise() + 4 * course[:, None] * [1, -1]
        rest = found(x).without(table(x)).values
        assert abs(np.corrcoef(rest.T)[0, 1]) < 0.2 < abs(np.corrcoef(x.T)[0, 1])

    def test_memory_alone_is_none(self):
        some = [bool(found(noise(seed=seed, memory=0.8)).courses) for seed in range(30)]
        assert sum(some) <= 5

    def test_a_clock_leaves_nothing(self):
        x = noise()
        x[:, 1] = 3 + 0.1 * SLOT
        assert np.ptp(found(x).without(table(x)).values[:, 1]) == 0


class TestShift:
    def test_it_is_found_where_it_is_and_offered_to_all(self):
        x = noise()
        x[250:] += [4.0, 1.0]
        terms = found(x)
        ((term,),) = {course.terms for course in terms.courses.values()}
        assert set(terms.courses) == {(0, 0), (0, 1)}
        assert term.kind == "shift"
        assert abs(term.at - 250) <= 3
        assert terms.told(table(x)) == (f"a level shift of 'a', 'b' at slot {term.at}",)
        time = np.datetime64("2020-01-01") + SLOT
        when = f"at {time[int(term.at)]} (slot {term.at})"
        assert when in found(x, time=time).told(table(x, time=time))[0]

    def test_a_change_of_variance_is_none(self):
        n_shifts = 0
        for seed in range(20):
            x = noise(seed=seed)
            x[340:] *= 5
            n_shifts += sum("shift" in k for k in kinds(found(x)).values())
        assert n_shifts <= 1

    def test_a_walk_keeps_its_steps(self):
        walks = [noise(seed=s, memory=0.0).cumsum(axis=0) for s in range(20)]
        assert sum("shift" in k for x in walks for k in kinds(found(x)).values()) <= 2


class TestClock:
    x = noise() + np.column_stack([2 * wave(12), np.where(SLOT < 250, 0, 4.0)])

    def test_the_mean_stays(self):
        rest = found(self.x).without(table(self.x)).values
        np.testing.assert_allclose(rest.mean(axis=0), self.x.mean(axis=0))

    def test_what_is_stored_comes_back(self):
        time = 3.0 * SLOT
        terms = found(self.x, time=time)
        again = TimeTerms.restored(terms.stored())
        given = table(self.x, time=time)
        np.testing.assert_array_equal(again.of(given), terms.of(given))
        assert TimeTerms.restored({}).without(given) is given

    def test_without_times_a_table_begins_as_the_one_learned_from(self):
        terms = found(self.x)
        longer = np.vstack([self.x, self.x[:50] + 100])
        np.testing.assert_allclose(terms.of(table(longer))[:400], terms.of(table(self.x)))

    def test_with_times_it_goes_by_them(self):
        terms = found(self.x, time=10 + 2 * SLOT)
        later = table(self.x[100:], time=(10 + 2 * SLOT)[100:])
        np.testing.assert_allclose(
            terms.of(later), terms.of(table(self.x, time=10 + 2 * SLOT))[100:]
        )

    def test_a_trend_stays_where_it_ended(self):
        x = noise() + 4 * (SLOT / 400)[:, None]
        beyond = found(x).of(table(np.vstack([x, x])))
        assert np.ptp(beyond[399:], axis=0).max() == 0

    def test_of_several_recordings_each_is_looked_at_anew(self):
        both = {"starts": (0, 200), "runs": ("anna", "ben")}
        terms = found(self.x, **both)
        alone = table(self.x[200:])
        mine = TimeTerms.restored(terms.stored()).anew(alone)
        assert mine.n_searched == terms.n_searched == 4
        np.testing.assert_allclose(mine.of(alone), terms.of(table(self.x, **both))[200:])
        single = found(self.x)
        assert single.anew(alone) is single

    def test_units_do_not_matter(self):
        for factor in (2.0**900, 2.0**-900):
            scaled = found(self.x * factor)
            given = table(self.x * factor)
            np.testing.assert_allclose(
                scaled.of(given) / factor, found(self.x).of(table(self.x)), rtol=1e-9, atol=1e-12
            )

    def test_a_series_that_is_missing_or_constant_in_a_segment_has_none(self):
        x = np.column_stack([self.x, np.ones(400)])
        x[200:, 0] = np.nan
        assert set(found(x, starts=(0, 200)).courses) <= {(0, 0), (0, 1), (1, 1)}

    def test_short_segments_have_none(self):
        x = self.x[:40] * 1.0
        assert found(x).courses == {}


@pytest.mark.parametrize(
    ("season", "expected"),
    [
        ("auto", "auto"),
        (None, ()),
        ("none", ()),
        (24, (24.0,)),
        ([24, 168], (24.0, 168.0)),
        ("24,168", (24.0, 168.0)),
        (np.float64(30.4), (30.4,)),
    ],
)
def test_the_option_is_read(season, expected):
    assert read_season(season) == expected


@pytest.mark.parametrize("season", [1, -3, True, "weekly", "24,", (), [7, None], np.inf, np.nan])
def test_what_is_no_season_is_refused(season):
    with pytest.raises(SettingsError, match="choose 'auto', 'none', a number of slots"):
        read_season(season)


def test_a_season_must_be_seen_three_times():
    check_seen(table(noise()), [133])
    with pytest.raises(SettingsError, match="3 periods must be seen"):
        check_seen(table(noise()), [134])
    with pytest.raises(SettingsError, match="has 200 slots"):
        check_seen(replace(table(noise()), starts=(0, 200)), [100])


def test_short_series_with_memory_rarely_seem_to_follow_time():
    tables = (noise(5, seed, memory=0.6, n_slots=60) for seed in range(40))
    assert sum(bool(found(x).followed) for x in tables) <= 8  # 21 if the choice costs half as much
