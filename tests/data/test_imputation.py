import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalformer.data import SeriesTable
from causalformer.data.imputation import impute
from causalformer.errors import SettingsError

NAN = np.nan
FILLINGS = ("interpolate", "previous", "mean")


def table(values, **options):
    return SeriesTable(np.array(values, dtype=float)[:, None], ("a",), **options)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("mask", [NAN, 1, NAN, NAN, 4, NAN, NAN, 8, NAN]),
        ("interpolate", [NAN, 1, 2, 3, 4, NAN, NAN, 8, NAN]),
        ("previous", [NAN, 1, 1, 1, 4, 4, NAN, 8, 8]),
        ("mean", [2.5, 1, 2.5, 2.5, 4, 2.5, 8, 8, 8]),
    ],
)
def test_gaps_are_filled_within_each_segment(missing, expected):
    made = table([NAN, 1, NAN, NAN, 4, NAN, NAN, 8, NAN], starts=(0, 6), runs=("x", "y"))
    found = impute(made, missing)
    np.testing.assert_array_equal(found.values[:, 0], expected)
    assert (found.starts, found.runs, found.names) == (made.starts, made.runs, made.names)


def test_series_are_filled_one_by_one():
    values = np.array([[1.0, 10.0], [NAN, 20.0], [3.0, NAN], [4.0, 40.0]])
    found = impute(SeriesTable(values, ("a", "b")), "interpolate")
    np.testing.assert_array_equal(found.values, [[1, 10], [2, 20], [3, 30], [4, 40]])


@given(
    values=st.lists(st.floats(-9, 9) | st.just(NAN), min_size=1, max_size=20),
    missing=st.sampled_from(FILLINGS),
)
def test_observed_values_stay(values, missing):
    made = table(values)
    found = impute(made, missing).values
    np.testing.assert_array_equal(found[~made.missing], made.values[~made.missing])
    if np.isfinite(values).any():
        filled = found[np.isfinite(found)]
        assert np.nanmin(values) - 1e-9 <= filled.min()
        assert filled.max() <= np.nanmax(values) + 1e-9


@pytest.mark.parametrize("missing", ["mask", *FILLINGS])
def test_complete_series_are_passed_on(missing):
    made = table([1, 2, 3])
    assert impute(made, missing) is made


@pytest.mark.parametrize("missing", FILLINGS)
def test_a_segment_without_values_stays_missing(missing):
    found = impute(table([1, 2, NAN, NAN], starts=(0, 2)), missing)
    assert found.missing[:, 0].tolist() == [False, False, True, True]


@pytest.mark.parametrize("missing", ["median", None, "", True])
def test_other_words_are_named_with_the_choice(missing):
    with pytest.raises(SettingsError, match=f"missing is {missing!r}; choose 'mask', 'interp"):
        impute(table([1, 2, 3]), missing)
