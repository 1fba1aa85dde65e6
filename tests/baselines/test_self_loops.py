import numpy as np
import pytest
from sklearn.base import clone

from causalformer.baselines import SelfLoops
from causalformer.errors import DataError
from causalformer.graph import Edge


def test_every_series_drives_itself_and_nothing_else():
    model = SelfLoops().fit({"sun": [1.0, 2.0, 4.0], "[red]": [3.0, 0.0, 1.0]})
    assert model.graph_.names == ("sun", "[red]")
    assert set(model.graph_) == {Edge("sun", "sun", 1, 1.0), Edge("[red]", "[red]", 1, 1.0)}
    np.testing.assert_array_equal(model.scores_, np.eye(2))


def test_it_follows_the_habits_of_scikit_learn():
    model = SelfLoops()
    assert model.fit([[1, 2], [3, 5]]) is model
    assert clone(model).get_params() == {}


def test_unusable_series_are_refused_by_name():
    with pytest.raises(DataError, match="'b'"):
        SelfLoops().fit({"a": [1.0, 2.0], "b": [1.0, np.nan]})
