import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from causalformer.data import read_series
from causalformer.errors import DataError, DataWarning, MissingExtraError


class TestXarray:
    def grid(self):
        values = np.arange(24.0).reshape(4, 2, 3)
        values[:, 0, 1] = np.nan
        return xr.Dataset(
            {"sst": (("time", "lat", "lon"), values), "area": (("lat", "lon"), values[0])},
            {
                "time": pd.date_range("2020", periods=4, freq="MS"),
                "lat": [1.5, -0.5],
                "lon": np.array([0, 2.1, 4], dtype="f4"),
            },
        )

    def check_grid(self, source):
        with pytest.warns(DataWarning, match="1 of 6 cells are missing throughout"):
            made = read_series(source)
        assert made.names[:2] == ("sst[lat=1.5 lon=0]", "sst[lat=1.5 lon=4]")
        assert made.values.tolist()[0] == [0, 2, 3, 4, 5]
        assert "1 of 6 cells" in made.source
        assert made.time is not None
        assert str(made.time[1]).startswith("2020-02-01")

    def test_netcdf(self, tmp_path):
        self.grid().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
        self.check_grid(tmp_path / "a.nc")

    def test_netcdf_without_the_extra(self, write, monkeypatch):
        monkeypatch.setitem(sys.modules, "xarray", None)
        with pytest.raises(MissingExtraError, match=r"pip install causalformer\[netcdf\]"):
            read_series(write("", "some.nc"))

    def test_dataset(self):
        self.check_grid(self.grid())

    def test_time_need_not_come_first(self):
        self.check_grid(self.grid().transpose("lat", "lon", "time"))

    def test_variables_of_one_dimension(self):
        data = xr.Dataset({"a": ("time", [1.0, 2]), "b": ("time", [3, 4]), "c": 5.0})
        made = read_series(data)
        assert made.names == ("a", "b")
        assert made.time is None

    def test_array_with_named_series(self):
        array = xr.DataArray(
            np.eye(3, 2), dims=("t", "place"), coords={"place": ["north", "south"], "t": [1, 2, 4]}
        )
        made = read_series(array)
        assert made.names == ("north", "south")
        assert made.time is not None
        assert made.time.tolist() == [1, 2, 4]
        assert read_series(array, names=["a", "b"]).names == ("a", "b")
        assert read_series(array, time_column=None).time is None

    def test_plain_array(self):
        assert read_series(xr.DataArray(np.eye(3, 2))).names == ("x0", "x1")

    def test_the_time_dimension_must_be_known(self):
        array = xr.DataArray(np.eye(3, 2), dims=("year", "place"))
        with pytest.raises(DataError, match="looks like time among year, place"):
            read_series(array)
        with pytest.raises(DataError, match=r"no dimension 'yr'.*year, place"):
            read_series(array, time_column="yr")
        assert read_series(array, time_column="year").n_slots == 3

    def test_time_must_increase(self):
        array = xr.DataArray(np.eye(2), dims=("time", "p"), coords={"time": [2, 1]})
        with pytest.raises(DataError, match="'time' does not increase"):
            read_series(array)

    def test_nothing_to_read(self):
        with pytest.raises(DataError, match="no variable that holds numbers"):
            read_series(xr.Dataset({"a": ("time", ["x", "y"])}))
        with pytest.raises(DataError, match="no variable that holds numbers over time"):
            read_series(xr.Dataset({"a": 1.0}))
