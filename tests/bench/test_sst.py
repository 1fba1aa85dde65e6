import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from causalformer.bench.sst import CURRENTS, directions, netcdf_files, random_range, run_sst
from causalformer.data.regions import Cells
from causalformer.errors import DataError, SettingsError
from causalformer.graph import CausalGraph


def drifting(path, n_slots=240):
    """Anomalies that move one cell of 4° northwards in a month, from 46° N to 58° N."""
    rng = np.random.default_rng(0)
    lat, lon = np.arange(46.0, 60.0, 4.0), np.array([330.0])
    x = rng.standard_normal((n_slots, len(lat), 1))
    for t in range(1, n_slots):
        x[t, 1:] += 0.8 * x[t - 1, :-1]
    time = pd.date_range("2001", periods=n_slots, freq="MS")
    season = 10 * np.cos(2 * np.pi * np.arange(n_slots) / 12)[:, None, None]
    field = xr.DataArray(x + season, {"time": time, "lat": lat, "lon": lon})
    field.to_dataset(name="sst").to_netcdf(path, engine="h5netcdf")
    return path


def test_a_drift_to_the_north_is_found_and_turns_round_backwards(tmp_path):
    path = drifting(tmp_path / "toy.nc")
    frame = run_sst(path, tmp_path / "out", ["default", "reversed"], max_epochs=10)
    forward, _, backward, _ = frame.to_dict("records")
    assert forward["s_to_n"] == forward["drift_s_to_n"] == backward["n_to_s"] == 3
    assert forward["n_to_s"] + backward["s_to_n"] <= 1  # a false edge may happen
    assert forward["e_w"] == 0
    assert forward["median_km"] == 445
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "the paper sees many S→N. Here 3" in text


def test_all_files_are_written(tmp_path):
    drifting(tmp_path / "toy.nc", 60)
    lines = []
    out = tmp_path / "out"
    frame = run_sst(tmp_path, out, quick=True, on_step=lines.append)
    assert list(frame["method"]) == ["paper", "paper-others", "default", "default-weak"]
    assert set(frame["epochs"]) == {2}
    assert lines[0] == "4 sea cells, 60 slots of 31 days"
    written = pd.read_csv(out / "results.csv")
    assert list(written.columns) == list(frame.columns)
    for method in frame["method"]:
        graph = CausalGraph.load(out / f"{method}.json")
        assert len(graph.names) == 4
        assert (out / f"{method}.png").read_bytes().startswith(b"\x89PNG")
    others = CausalGraph.load(out / "paper-others.json")
    assert others.edges
    assert all(edge.kind != "self" for edge in others)
    facts = json.loads((out / "environment.json").read_text(encoding="utf-8"))
    assert facts["max_epochs"] == 2
    text = (out / "table.md").read_text(encoding="utf-8")
    assert "a trial run" in text
    assert "chance alone would give" in text
    assert "| edges between cells |" in text


def test_a_daily_file_is_averaged_to_the_slots_of_the_paper(tmp_path):
    time = pd.date_range("2013", periods=38 * 30)
    values = np.random.default_rng(0).standard_normal((len(time), 1, 3, 1)).cumsum(axis=0)
    places = {"zlev": [0.0], "lat": [46.0, 50.0, 54.0], "lon": [330.0]}
    field = xr.DataArray(values, {"time": time, **places})
    field.to_dataset(name="sst").to_netcdf(tmp_path / "oisst.nc", engine="h5netcdf")
    frame = run_sst(tmp_path, tmp_path / "out", ["default"], quick=True)
    assert set(frame["slot_days"]) == {38}
    assert set(frame["n_slots"]) == {30}
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "Gridded temperatures are interpolated" in text


def test_random_ranges_enclose_what_shuffled_edges_give():
    rng = np.random.default_rng(0)
    lat = np.repeat(np.arange(40.0, 64.0, 4.0), 5)
    lon = np.tile(np.arange(-40.0, -20.0, 4.0), 6)
    edges = np.zeros(2)
    cells = Cells(lat, lon, edges, edges, np.zeros((1, 1), dtype=bool))
    towards, distance = directions(cells), cells.distance_km
    assert (towards == -towards.T).all()
    found = (rng.random(distance.shape) < 0.1) & ~np.eye(30, dtype=bool)
    low, high = random_range(found, towards > 0, distance)
    assert low < (found & (towards > 0)).sum() < high
    assert (low, high) == random_range(found, towards > 0, distance)
    all_north = found & (towards > 0)
    assert all_north.sum() > random_range(all_north, towards > 0, distance)[1]


def test_the_currents_lie_in_the_sea_the_paper_names():
    lat, lon = np.array([52.0, 64.0, 60.0, 30.0]), np.array([-25.0, -5.0, -44.0, -50.0])
    edges = np.zeros(2)
    cells = Cells(lat, lon, edges, edges, np.zeros((1, 1), dtype=bool))
    drift, greenland = CURRENTS
    assert drift.contains(cells).tolist() == [True, True, False, False]
    assert greenland.contains(cells).tolist() == [False, False, True, False]


def test_wrong_use_gives_plain_errors(tmp_path):
    with pytest.raises(DataError, match="holds no netCDF file"):
        netcdf_files(tmp_path)
    with pytest.raises(DataError, match="holds no netCDF file"):
        netcdf_files(tmp_path / "none.nc")
    with pytest.raises(SettingsError, match="choose from paper, default, reversed"):
        run_sst(tmp_path, tmp_path, ["papr"])
    (tmp_path / "bad.nc").write_bytes(b"no netCDF")
    with pytest.raises(DataError, match="no intact netCDF"):
        run_sst(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
