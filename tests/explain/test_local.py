import numpy as np
import pytest

from causalformer.errors import DataError
from causalformer.explain.local import explain_slot
from small_models import make_channels, make_series

NAMES = ("a", "b", "c")


def explained(slot=7):
    model, x = make_channels(), make_series()
    return explain_slot(model, x, 10 * x.double().numpy(), slot, NAMES)


@pytest.mark.usefixtures("double")
def test_shares_and_bias_add_up_to_the_prediction():
    found = explained()
    assert found.conservation_error < 1e-12
    shares = found.relevance.sum((0, 2))
    np.testing.assert_allclose(shares + found.bias, found.prediction)


@pytest.mark.usefixtures("double")
def test_a_share_too_much_shows_in_the_conservation_error():
    found = explained()
    found.relevance[0, 1, 0] += 0.5
    assert found.conservation_error == pytest.approx(0.5)


def test_rounding_stays_small_in_single_precision():
    assert explained().conservation_error < 1e-5


def test_the_frame_names_every_past_value_largest_share_first():
    found, x = explained(), make_series()
    frame = found.to_frame()
    assert list(frame.columns) == ["effect", "cause", "lag", "slot", "value", "relevance"]
    assert len(frame) == 3 * 3 * 2
    assert frame["relevance"].abs().is_monotonic_decreasing
    assert (frame["slot"] + frame["lag"] == 7).all()
    for row in frame.itertuples():
        cause, effect = NAMES.index(row.cause), NAMES.index(row.effect)
        assert row.value == pytest.approx(10 * x[row.slot, cause].item())
        assert row.relevance == found.relevance[cause, effect, row.lag - 1]


def test_only_the_slots_before_are_looked_at():
    model, x = make_channels(), make_series()
    changed = x.clone()
    changed[7:] += 100
    changed[:5] += 100
    first, second = (
        explain_slot(model, values, values.double().numpy(), 7, NAMES) for values in (x, changed)
    )
    np.testing.assert_array_equal(first.relevance, second.relevance)
    np.testing.assert_array_equal(first.value, second.value)


@pytest.mark.parametrize("slot", [-1, 0, 1, 12])
def test_slots_without_enough_past_are_named(slot):
    with pytest.raises(DataError, match=rf"slot {slot} cannot be explained: choose from 2 .* 11"):
        explained(slot)


@pytest.mark.parametrize("slot", [2, 11])
def test_the_first_and_the_last_slot_can_be_explained(slot):
    assert explained(slot).slot == slot
