import numpy as np
import pytest

from causalformer.data.columns import RawColumns
from causalformer.data.conversion import table_from_columns
from causalformer.errors import DataError


def test_columns_of_unequal_length_are_named():
    raw = RawColumns(("a", "b"), (np.arange(2), np.arange(3)), "raw")
    with pytest.raises(DataError, match=r"'a' \(2\), 'b' \(3\)"):
        table_from_columns(raw)


def test_a_column_without_a_name_is_called_by_its_position():
    raw = RawColumns(("a", ""), (np.array([2.0, 1.0]), np.array([5, 4])), "raw")
    assert table_from_columns(raw).names == ("a", "x1")


def test_text_that_holds_numbers_and_truth_values_is_read():
    cells = np.array(["1.5", " true", "False", "NA", None], dtype=object)
    table = table_from_columns(RawColumns(("a",), (cells,), "raw"))
    np.testing.assert_array_equal(table.values[:, 0], [1.5, 1.0, 0.0, np.nan, np.nan])
