"""Values on straight lines between their neighbours were made up, and count as missing."""

import numpy as np
import pytest

from causalformer import CausalFormer
from causalformer.data import SeriesTable
from causalformer.data.interpolated import without_interpolated
from causalformer.errors import DataWarning


def filled(missing=0.3, seed=0, n_slots=400):
    """Noise of which a share was lost and filled in by straight lines; and where that was."""
    rng = np.random.default_rng(seed)
    x, lost = rng.standard_normal(n_slots), rng.random(n_slots) < missing
    lost[[0, -1]] = False
    slot = np.arange(n_slots)
    return np.interp(slot, slot[~lost], x[~lost]), lost


def found(*columns, starts=(0,)):
    names = tuple(f"x{i}" for i in range(len(columns)))
    return without_interpolated(SeriesTable(np.column_stack(columns), names, starts=starts))


@pytest.mark.parametrize("missing", [0.02, 0.3, 0.7])
def test_all_that_was_filled_in_is_missing_and_nothing_else(missing):
    x, lost = filled(missing)
    table, told = found(x, filled(0.0, seed=1)[0])
    assert (np.isnan(table.values[:, 0]) == lost).all()
    assert not np.isnan(table.values[:, 1]).any()
    assert told.startswith(
        f"{lost.mean():.0%}".replace("%", " %") + " of 'x0' lie exactly on lines"
    )


def test_units_and_rounding_of_a_file_do_not_matter():
    x, lost = filled()
    for made in (1e6 * x - 3e5, np.array([float(f"{value:.12g}") for value in x])):
        assert (np.isnan(found(made)[0].values[:, 0]) == lost).all()


def test_an_outlier_makes_no_lines():
    x = np.random.default_rng(0).standard_normal(300)
    x[50] = 1e9
    assert not found(x)[1]


def test_the_table_of_the_user_is_not_touched():
    x, _ = filled()
    table = SeriesTable(x[:, None], ("x",))
    without_interpolated(table)
    assert not np.isnan(table.values).any()


def test_few_values_on_lines_do_no_harm():
    x, lost = filled(0.005, n_slots=2000)
    assert lost.any()
    table, told = found(x)
    assert not told
    assert not np.isnan(table.values).any()


@pytest.mark.parametrize(
    "made",
    [
        np.arange(300.0),
        np.interp(np.arange(300), [0, 80, 150, 299], [0.0, 1.0, -1.0, 2.0]),
        np.random.default_rng(0).poisson(3.0, 300).astype(float),
        np.random.default_rng(0).standard_normal(300).round(1),
        np.repeat(np.random.default_rng(0).standard_normal(100), 3),
        np.sin(np.arange(3000) / 100),
    ],
    ids=["counter", "ramps", "counts", "rounded", "level", "smooth"],
)
def test_series_that_are_like_that_stay_as_they_are(made):
    table, told = found(made)
    assert not told
    assert (table.values[:, 0] == made).all()


@pytest.mark.parametrize("step", [5, 7, 12])
def test_what_is_mostly_lines_stays_and_is_named(step):
    knots = np.arange(0, 400, step)
    x = np.interp(np.arange(400), knots, np.random.default_rng(0).standard_normal(len(knots)))
    table, told = found(x)
    assert (table.values[:, 0] == x).all()
    assert "of 'x0' lie exactly on lines between their neighbours: if they were" in told


def test_lines_do_not_lead_from_one_recording_to_the_next():
    x, _ = filled()
    x[200] = x[199] + (x[199] - x[198])  # on a line with two values of the recording before
    x[199] = (x[198] + x[200]) / 2
    table, _ = found(x, starts=(0, 199))
    assert not np.isnan(table.values[199, 0])


def test_a_fit_says_so_and_is_that_of_the_gaps():
    x, lost = filled(n_slots=300)
    y = np.random.default_rng(5).standard_normal(300)
    y[1:] += np.where(lost, 0.0, x)[:-1]
    with_lines = np.column_stack([x, y])
    with_gaps = np.column_stack([np.where(lost, np.nan, x), y])
    with pytest.warns(DataWarning) as caught:
        by_lines = CausalFormer(max_lag=2, random_state=0).fit(with_lines)
    assert "as interpolation leaves them" in str(caught[0].message)
    with pytest.warns(DataWarning):
        by_gaps = CausalFormer(max_lag=2, random_state=0).fit(with_gaps)
    assert list(by_lines.graph_) == list(by_gaps.graph_)
    assert by_lines.diagnostics_.observed[0] == pytest.approx(1 - lost.mean())


def test_lines_that_the_user_asks_for_are_data():
    x, lost = filled(n_slots=300)
    y = np.random.default_rng(5).standard_normal(300)
    with_gaps = np.column_stack([np.where(lost, np.nan, x), y])
    model = CausalFormer(max_lag=2, missing="interpolate", random_state=0).fit(with_gaps)
    assert (model.diagnostics_.observed == 1).all()
    assert not any("interpolation" in text for text in model.diagnostics_.warnings)
