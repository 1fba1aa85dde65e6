from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalformer import CausalFormer
from causalformer.config import DetectorSettings
from causalformer.detect.memory import Size, memory_limit, plan_memory
from causalformer.errors import SettingsError
from causalformer.scratch import memory_limited

DEFAULT = DetectorSettings()


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("4GB", 4e9),
        (" 1.5 gb ", 1.5e9),
        ("800MB", 8e8),
        ("4G", 4e9),
        ("2GiB", 2**31),
        ("512Ki", 2**19),
        ("12", 12),
        (3e9, 3e9),
        (10**9, 1e9),
    ],
)
def test_amounts_are_read(text, n_bytes):
    assert memory_limit(text) == n_bytes


@pytest.mark.parametrize(
    "text", ["", "much", "-1GB", "0", "4 XB", "1.2.3GB", "1e400", 0, float("nan"), float("inf")]
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(SettingsError, match="max_memory"):
        memory_limit(text)


@pytest.fixture
def machine(monkeypatch):
    """Say what is free on the machine and what this process has already, in bytes."""

    def set_memory(free, resident):
        monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free))
        taken = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=resident))
        monkeypatch.setattr("psutil.Process", lambda: taken)

    return set_memory


def test_without_a_limit_part_of_the_free_memory_may_be_used(machine):
    machine(free=10e9, resident=0)
    assert memory_limit(None) == pytest.approx(7e9)


def test_the_loaded_interpreter_need_not_be_free_again(machine):
    machine(free=1e9, resident=0.4e9)
    assert memory_limit(None) == pytest.approx(1.1e9)
    machine(free=1e9, resident=50e9)  # arrays of the user's: the plan does not count them
    assert memory_limit(None) == pytest.approx(1.2e9)


def test_a_small_fit_starts_where_little_memory_is_free(machine):
    noise = np.random.default_rng(0).standard_normal((100, 3))
    machine(free=0.25e9, resident=0.42e9)
    assert CausalFormer().memory_plan(noise).n_bytes > 0.5e9
    machine(free=0.25e9, resident=0.1e9)  # what is not loaded yet does need room
    with pytest.raises(SettingsError, match=r"only 0\.275 GB may be used"):
        CausalFormer().memory_plan(noise)


def test_what_a_fit_has_taken_since_it_began_need_not_be_free_again(machine):
    size = Size(1000, 60, 5)
    machine(free=3e9, resident=0.5e9)
    with memory_limited(memory_limit(None)):
        before = plan_memory(size, DEFAULT, 2)
        machine(free=0.5e9, resident=0.5e9)  # workers were started
        assert plan_memory(size, DEFAULT, 2) == before
    assert (before.n_jobs, plan_memory(size, DEFAULT, 2).n_jobs) == (2, 1)


def test_blocks_shrink_before_processes_are_given_up():
    size = Size(20_000, 300, 5)
    most = plan_memory(size, DEFAULT, 4, 1e12)
    assert (most.n_jobs, most.effects_per_block) == (4, 10)
    tight = plan_memory(size, DEFAULT, 4, 0.95 * most.n_bytes)
    assert tight.n_jobs == 4
    assert tight.effects_per_block < 10
    tighter = plan_memory(size, DEFAULT, 4, 0.5 * most.n_bytes)
    assert tighter.n_jobs < 4
    assert tighter.n_bytes <= 0.5 * most.n_bytes


@pytest.mark.parametrize("field", ["n_slots", "n_series", "max_lag"])
def test_more_of_anything_takes_more(field):
    small = {"n_slots": 50_000, "n_series": 200, "max_lag": 3}
    large = small | {field: 2 * small[field]}
    needs = [plan_memory(Size(**size), DEFAULT, 1, 1e15).n_bytes for size in (small, large)]
    assert needs[1] > needs[0]


def test_what_cannot_fit_is_refused_with_what_would():
    size, limit = Size(10_000_000, 100, 8), 3e9
    with pytest.raises(SettingsError, match=r"take about .* GB") as caught:
        plan_memory(size, DEFAULT, 1, limit)
    words = str(caught.value).replace(";", " ").split()
    n_slots = int(words[words.index("slots", words.index("lags")) + 1])
    assert plan_memory(Size(n_slots, 100, 8), DEFAULT, 1, limit).n_bytes <= limit
    with pytest.raises(SettingsError):
        plan_memory(Size(n_slots + 1, 100, 8), DEFAULT, 1, limit)


def test_a_fit_that_cannot_stay_below_its_limit_does_not_start():
    model = CausalFormer(max_memory="1MB")
    noise = np.random.default_rng(0).standard_normal((100, 3))
    with pytest.raises(SettingsError, match="choose `max_memory=") as caught:
        model.fit(noise)
    enough = str(caught.value).rpartition("=")[2].strip("`")
    CausalFormer(max_memory=enough).memory_plan(noise)
    with pytest.raises(SettingsError, match="max_memory is 'lots'"):
        CausalFormer(max_memory="lots").fit(np.zeros((50, 2)))


@given(st.integers(2, 2000), st.integers(10, 10**8), st.floats(1e3, 1e10))
def test_the_advised_limit_is_enough(n_series, n_slots, limit):
    size = Size(n_slots, n_series, 5)
    try:
        plan_memory(size, DEFAULT, 1, limit)
    except SettingsError as error:
        plan_memory(size, DEFAULT, 1, str(error).rpartition("=")[2].strip("`"))


def test_processes_without_a_block_take_no_memory():
    few, many = (plan_memory(Size(500, 60, 5), DEFAULT, n_jobs, 1e12) for n_jobs in (4, 64))
    assert few.n_bytes == many.n_bytes
    assert few.effects_per_block == many.effects_per_block


@given(st.integers(17, 2000), st.integers(20, 10**6))
def test_two_workers_end_at_about_the_same_time_and_their_number_changes_no_block(
    n_series, n_slots
):
    size = Size(n_slots, n_series, 5)
    plans = [plan_memory(size, DEFAULT, n_jobs, 1e15) for n_jobs in (1, 2, 7)]
    (effects,) = {plan.effects_per_block for plan in plans}
    rounds = -(-n_series // (2 * effects))
    assert effects <= 28
    assert rounds * effects <= 1.3 * n_series / 2 + 1


def test_products_that_effects_share_take_memory():
    """To screen 60 series with ten lags took 0.28 GB above what was there before."""
    plan = plan_memory(Size(1000, 60, 10), DEFAULT, 1, 1e12)
    with patch("causalformer.detect.memory.n_shared_products", return_value=0):
        without = plan_memory(Size(1000, 60, 10), DEFAULT, 1, 1e12)
    assert plan.n_bytes > without.n_bytes
    assert plan.n_bytes > 0.5e9 + 0.2e9


def test_required_causes_take_memory():
    plain, known = (plan_memory(Size(1000, 120, 5, n), DEFAULT, 1, 1e12) for n in (0, 30))
    assert known.n_bytes > plain.n_bytes


def test_lags_that_will_be_lowered_take_no_memory():
    noise = np.random.default_rng(0).standard_normal((100, 30))
    plans = [CausalFormer(max_lag=lag).memory_plan(noise) for lag in (25, 40)]
    assert plans[0] == plans[1]


@given(st.integers(2, 60), st.integers(10, 10**8), st.integers(2, 40))
def test_what_fits_also_fits_with_fewer_slots(n_series, n_slots, smaller):
    def fits(slots):
        try:
            plan_memory(Size(slots, n_series, 5), DEFAULT, 1, 1.5e9)
        except SettingsError:
            return False
        return True

    assert fits(n_slots // smaller) or not fits(n_slots)


@pytest.mark.parametrize("size", [Size(0, 5, 5), Size(100, 0, 5), Size(0, 0, 1)])
def test_nothing_takes_nothing(size):
    assert plan_memory(size, DEFAULT, 2, 4e9).n_bytes < 4e9


@pytest.mark.parametrize(("value", "limit"), [(1e16, 1e16), ("2e+9", 2e9), (np.float32(1e9), 1e9)])
def test_powers_of_ten_are_read(value, limit):
    assert memory_limit(value) == limit
