import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from causalformer.data.regions import (
    Box,
    averaged_slots,
    coarser,
    cut_box,
    sea_series,
    sea_variable,
    typical_step,
    without_season,
)
from causalformer.errors import DataError, MissingExtraError, SettingsError

MONTHS = pd.date_range("2001-01-01", periods=36, freq="MS")


def globe(step=10.0, time=MONTHS, name="sst"):
    """Noise all over the globe, longitudes from 0 to 360."""
    lat, lon = np.arange(-85.0, 90.0, step), np.arange(0.0, 360.0, step)
    values = np.random.default_rng(0).standard_normal((len(time), len(lat), len(lon)))
    return xr.DataArray(values, {"time": time, "lat": lat, "lon": lon}, name=name)


def saved(field, path):
    field.to_dataset(name=field.name).to_netcdf(path, engine="h5netcdf")
    return path


def other_conventions(field):
    """The same field with falling latitudes and longitudes from -180 to 180."""
    moved = field.assign_coords(lon=(field.lon + 180) % 360 - 180)
    return moved.sortby("lon").sortby("lat", ascending=False)


class TestBox:
    def test_longitudes_in_any_convention(self):
        for box in (Box(20, 70, -80, 0), Box(20, 70, 280, 360), Box(20, 70, 280, 0)):
            assert (box.left, box.width) == (-80, 80)

    def test_south_lies_below_north(self):
        with pytest.raises(SettingsError, match="south must lie below"):
            Box(70, 20, -80, 0)


class TestCut:
    @pytest.mark.parametrize(
        "box", [Box(20, 70, -80, 0), Box(-30, 30, -35, 25), Box(0, 40, 160, -160)]
    )
    def test_conventions_do_not_matter(self, box):
        field = globe()
        cut, again = cut_box(field, box), cut_box(other_conventions(field), box)
        xr.testing.assert_equal(cut, again)
        assert (np.diff(cut.lat) > 0).all()
        assert (np.diff(cut.lon) == 10).all()
        assert cut.lon[0] >= box.left
        there = field.sel(lat=cut.lat[0], lon=cut.lon[0] % 360).values
        np.testing.assert_array_equal(cut.values[:, 0, 0], there)

    def test_a_box_across_greenwich_is_in_one_piece(self):
        assert cut_box(globe(), Box(0, 20, -20, 20)).lon.values.tolist() == [-20, -10, 0, 10]

    def test_nothing_in_the_box(self):
        with pytest.raises(DataError, match="choose another box"):
            cut_box(globe().isel(lon=slice(0, 3)), Box(20, 70, -80, -40))

    def test_a_grid_without_places(self):
        with pytest.raises(DataError, match="no numbers for lat"):
            cut_box(globe().drop_vars("lat"), Box(20, 70, -80, 0))


class TestCoarser:
    def test_against_a_plain_loop(self):
        box = Box(20, 70, -80, 0)
        field = cut_box(globe(step=1.5, time=MONTHS[:1]), box)
        holes = np.random.default_rng(1).random(field.shape) < 0.5
        field = field.where(~holes)
        made = coarser(field, box, 4.0)
        for r, south in enumerate(np.arange(20, 70, 4)):
            for c, west in enumerate(np.arange(-80, 0, 4)):
                inside = [
                    field.values[0, i, j]
                    for i, lat in enumerate(field.lat.values)
                    for j, lon in enumerate(field.lon.values)
                    if south <= lat < south + 4 and west <= lon < west + 4
                ]
                seen = [x for x in inside if np.isfinite(x)]
                expected = np.mean(seen) if len(seen) >= len(inside) / 2 else np.nan
                np.testing.assert_allclose(made.values[0, r, c], expected)

    def test_cells_as_wide_as_those_of_the_file_stay(self):
        box = Box(20, 70, -80, 0)
        field = cut_box(globe(), box)
        xr.testing.assert_allclose(coarser(field, box, 10.0), field)

    def test_no_width(self):
        with pytest.raises(SettingsError, match="degrees is 0"):
            coarser(globe(), Box(20, 70, -80, 0), 0)


class TestSlots:
    def daily(self, n):
        return globe(step=60.0, time=pd.date_range("2013-01-01", periods=n))

    def test_38_days(self):
        field = self.daily(38 * 3 + 20)
        made = averaged_slots(field, 38)
        assert made.sizes["time"] == 3
        np.testing.assert_allclose(made.values[1], field.values[38:76].mean(axis=0))
        assert str(made.time.values[0])[:10] == "2013-01-20"

    def test_a_full_last_slot_stays(self):
        assert averaged_slots(self.daily(76), 38).sizes["time"] == 2

    def test_missing_days_are_looked_past(self):
        field = self.daily(76)
        field[3:10, 0, 0] = np.nan
        field[:30, 0, 1] = np.nan
        made = averaged_slots(field, 38).values
        left = [*range(3), *range(10, 38)]
        np.testing.assert_allclose(made[0, 0, 0], field.values[left, 0, 0].mean())
        assert np.isnan(made[0, 0, 1])

    def test_months_cannot_be_averaged_to_38_days(self):
        with pytest.raises(DataError, match="a value every 31 days"):
            averaged_slots(globe(), 38)

    def test_too_short_a_file(self):
        with pytest.raises(DataError, match="fewer than two slots"):
            averaged_slots(self.daily(50), 38)


class TestSeason:
    def test_months_lose_their_climatology_and_nothing_else(self):
        rng = np.random.default_rng(0)
        time = np.arange("2001-01", "2031-01", dtype="M8[M]")
        month = np.arange(len(time)) % 12
        season = rng.standard_normal((12, 2))[month]
        noise = rng.standard_normal((len(time), 2))
        for m in range(12):
            noise[month == m] -= noise[month == m].mean(axis=0)
        np.testing.assert_allclose(without_season(season + noise, time), noise, atol=1e-12)

    def test_slots_of_38_days_lose_the_yearly_wave(self):
        time = np.datetime64("2013-01-20") + np.arange(96) * np.timedelta64(38, "D")
        year = (time - np.datetime64("2013-01-01")) / np.timedelta64(1, "D") / 365.2425
        season = 5 * np.cos(2 * np.pi * year) + np.sin(4 * np.pi * year + 1)
        noise = np.random.default_rng(0).standard_normal(96)
        left = without_season((15 + season + noise)[:, None], time)[:, 0]
        assert np.std(left - noise) < 0.35  # 7 coefficients take some of the noise, too
        quiet = without_season(season[:, None], time)
        assert np.abs(quiet).max() < 0.1

    def test_a_line_goes_if_asked_for(self):
        time = np.arange("2001-01", "2011-01", dtype="M8[M]")
        line = np.arange(120.0)[:, None]
        assert np.abs(without_season(line, time, trend=True)).max() < 0.1
        assert np.abs(without_season(line, time)).max() > 40

    def test_missing_values_stay_and_do_not_spread(self):
        time = np.arange("2001-01", "2011-01", dtype="M8[M]")
        x = np.random.default_rng(0).standard_normal((120, 2))
        holed = x.copy()
        holed[5, 0] = np.nan
        left = without_season(holed, time)
        assert np.isnan(left).sum() == 1
        np.testing.assert_allclose(left[:, 1], without_season(x, time)[:, 1])


class TestVariable:
    def test_a_known_name_wins(self):
        both = xr.Dataset({"anom": globe(), "sst": 2 * globe()})
        np.testing.assert_array_equal(sea_variable(both).values, 2 * globe().values)

    def test_one_of_several_must_be_named(self):
        both = xr.Dataset({"a": globe(), "b": globe()})
        with pytest.raises(DataError, match=r"several variables on a grid, a, b"):
            sea_variable(both)
        assert sea_variable(both, "b").name == "b"
        with pytest.raises(DataError, match="no variable 'c'"):
            sea_variable(both, "c")

    def test_other_names_of_axes_and_a_level(self):
        field = globe().rename(lat="latitude", lon="Longitude").expand_dims(zlev=[0.0], axis=1)
        made = sea_variable(field.to_dataset(name="tos"))
        assert made.dims == ("time", "lat", "lon")

    def test_several_levels(self):
        field = globe().expand_dims(depth=[0.0, 5.0])
        with pytest.raises(DataError, match="more than one depth"):
            sea_variable(field.to_dataset(name="sst"))

    def test_no_grid(self):
        with pytest.raises(DataError, match="no variable over time"):
            sea_variable(xr.Dataset({"sst": ("time", [1.0, 2.0])}))


class TestSeries:
    box = Box(20, 70, -80, 0)

    def test_land_and_places(self, tmp_path):
        field = globe()
        field = field.where(~((field.lat == 25) & (field.lon == 280)))
        table, cells = sea_series(saved(field, tmp_path / "a.nc"), self.box, degrees=10.0)
        assert table.n_series == 5 * 8 - 1
        assert table.names[0] == "25N 70W"
        assert cells.land.sum() == 1
        assert cells.land[0, 0]
        assert cells.lat[0] == 25
        assert cells.lon[0] == -70
        np.testing.assert_array_equal(cells.lat_edges, np.arange(20, 71, 10))
        np.testing.assert_array_equal(cells.lon_edges, np.arange(-80, 1, 10))
        np.testing.assert_allclose(table.values.mean(axis=0), 0, atol=1e-9)

    def test_conventions_do_not_matter(self, tmp_path):
        one, _ = sea_series(saved(globe(), tmp_path / "a.nc"), self.box)
        other, _ = sea_series(saved(other_conventions(globe()), tmp_path / "b.nc"), self.box)
        assert one.names == other.names
        np.testing.assert_array_equal(one.values, other.values)

    def test_files_of_years_are_joined_in_order_of_time(self, tmp_path):
        field = globe()
        whole, _ = sea_series(saved(field, tmp_path / "all.nc"), self.box)
        late = saved(field.isel(time=slice(12, 36)), tmp_path / "a.nc")
        early = saved(field.isel(time=slice(0, 12)), tmp_path / "b.nc")
        joined, _ = sea_series([late, early], self.box)
        np.testing.assert_allclose(joined.values, whole.values)
        with pytest.raises(DataError, match="does not increase"):
            sea_series([early, early], self.box)

    def test_files_on_different_grids(self, tmp_path):
        paths = [saved(globe(), tmp_path / "a.nc"), saved(globe(20.0), tmp_path / "b.nc")]
        with pytest.raises(DataError, match="different grids"):
            sea_series(paths, self.box, degrees=10.0)

    def test_a_daily_file_with_a_level(self, tmp_path):
        field = globe(30.0, pd.date_range("2013", periods=400)).expand_dims(zlev=[0.0], axis=1)
        path = saved(field, tmp_path / "oisst.nc")
        assert typical_step(path) == 1
        table, _ = sea_series(path, self.box, slot_days=38)
        assert table.n_slots == 10

    def test_cells_that_never_change_are_left_out(self, tmp_path):
        field = globe()
        field[:, :, field.lon.values == 280] = -1.8
        _, cells = sea_series(saved(field, tmp_path / "a.nc"), self.box, degrees=10.0)
        assert cells.land[:, 0].all()
        assert not cells.land[:, 1:].any()

    def test_all_land(self, tmp_path):
        path = saved(globe().where(False), tmp_path / "a.nc")
        with pytest.raises(DataError, match="no value in the box"):
            sea_series(path, self.box)

    def test_no_dates(self, tmp_path):
        path = saved(globe(time=np.arange(36.0)), tmp_path / "a.nc")
        with pytest.raises(DataError, match="holds no dates"):
            sea_series(path, self.box)

    @pytest.mark.parametrize("content", [b"", b"no netCDF", b"\x89HDF\r\n\x1a\n damaged"])
    def test_damaged_files(self, tmp_path, content):
        path = tmp_path / "a.nc"
        path.write_bytes(content)
        with pytest.raises(DataError, match="no intact netCDF file"):
            sea_series(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(DataError, match="no intact netCDF file"):
            sea_series(tmp_path / "none.nc")
        with pytest.raises(DataError, match="no netCDF file is given"):
            sea_series([])

    def test_without_the_extra(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "xarray", None)
        with pytest.raises(MissingExtraError, match=r"pip install causalformer\[netcdf\]"):
            sea_series(tmp_path / "a.nc")
