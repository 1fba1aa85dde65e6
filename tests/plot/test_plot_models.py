"""Pictures of fitted models, and the command `plot`."""

import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from causalformer import CausalFormer
from causalformer.cli import app
from causalformer.datasets import make_structure
from causalformer.errors import DataError, SettingsError
from causalformer.graph import CausalGraph, Edge
from causalformer.plot.training import linear_r2

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
TINY = {"max_epochs": 2, "window": 4, "d_model": 8, "d_ffn": 32, "n_heads": 2}


@pytest.fixture(scope="module")
def series():
    return make_structure("fork", 120, random_state=0).series


@pytest.fixture(scope="module")
def model(series):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CausalFormer(max_lag=2, settings={"max_epochs": 2, "n_channels": 4}).fit(series)


@pytest.fixture(scope="module")
def paper(series):
    return CausalFormer("paper-fmri", settings=TINY).fit(series)


@pytest.fixture(scope="module")
def folder(model, series, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    model.save(folder / "model")
    model.graph_.save(folder / "graph.json")
    pd.DataFrame(series.values, columns=series.names).to_csv(folder / "data.csv", index=False)
    (folder / "truth.csv").write_text("0,1,1\n")
    return folder


def run(*words):
    return CliRunner().invoke(app, ["plot", *map(str, words)])


def n_axes(ax):
    return len(ax.get_figure().axes)


def test_a_model_shows_numbers_of_all_pairs(model):
    axes = model.plot(kind="scores", evidence="strength")
    assert np.isfinite(axes.collections[0].get_array()).all()
    axes = model.plot(kind="p_values")
    ticks = [t.get_text() for t in axes.get_figure().axes[1].get_yticklabels()]
    assert "α = 0.05" in ticks
    assert model.plot(kind="summary").texts[0].get_text() == series_names(model)[0]


def series_names(model):
    return model.graph_.names


def test_training_and_held_out(model, paper):
    assert n_axes(model.plot(kind="training")) == 2
    assert n_axes(paper.plot(kind="training")) == 1
    bars = model.plot(kind="held_out").patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], model.diagnostics_.r2)
    linear, d = linear_r2(model.diagnostics_), model.diagnostics_
    np.testing.assert_allclose(1 - (1 - d.r2) / (1 - linear), d.better_than_linear)


def test_series_explain_a_slot(model, series, folder):
    axes = model.plot(kind="series", at=50, effect="x1")
    assert axes.get_title(loc="left") == "What drove x1 at slot 50"
    with pytest.raises(SettingsError, match="`at`"):
        model.plot(kind="series")
    with pytest.raises(DataError, match=r"plot\(kind=.series., X=...\)"):
        CausalFormer.load(folder / "model").plot(kind="series", at=50)


def test_what_a_preset_does_not_have(paper):
    assert np.isfinite(paper.plot(kind="scores").collections[0].get_array()).all()
    for kind in ("p_values", "held_out", "series"):
        with pytest.raises(SettingsError, match="needs the default method"):
            paper.plot(kind=kind)
    with pytest.raises(SettingsError, match="no kind 'sumary'; did you mean 'summary'"):
        paper.plot(kind="sumary")


# -------------------------------------------------------------------- command line


@pytest.mark.parametrize("suffix", MAGIC)
def test_plot_writes_a_picture(folder, tmp_path, suffix):
    out = tmp_path / f"picture.{suffix}"
    done = run(folder / "graph.json", "--out", out)
    assert done.exit_code == 0, done.output
    assert out.name in done.stdout.replace("\n", "")
    assert out.read_bytes().startswith(MAGIC[suffix])


@pytest.mark.parametrize(
    "words",
    [
        ["--kind", "p_values"],
        ["--kind", "training"],
        ["--kind", "summary", "--truth", "truth.csv"],
        ["--kind", "scores", "--evidence", "strength", "--truth", "truth.csv"],
        ["--kind", "series", "--at", "50", "--data", "data.csv", "--effect", "x2"],
    ],
)
def test_plot_of_a_model(folder, tmp_path, words):
    words = [folder / word if word.endswith(".csv") else word for word in words]
    done = run(folder, *words, "--out", tmp_path / "a.png", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "a.png").read_bytes().startswith(MAGIC["png"])


def test_plot_of_a_map(tmp_path):
    graph = CausalGraph(("a", "b"), (Edge("a", "b", 1),)).save(tmp_path / "graph.json")
    places = tmp_path / "places.csv"
    places.write_text("a,1,2\nb,3,4\n")
    out = tmp_path / "map.png"
    assert run(graph, "--kind", "map", "--places", places, "--out", out).exit_code == 0
    done = run(graph, "--kind", "map", "--out", out)
    assert done.exit_code == 2
    assert "--places" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["graph.json", "--kind", "pie"], "no kind 'pie'"),
        (["graph.json", "--kind", "training"], "needs a fitted model"),
        (["graph.json", "--kind", "p_values"], "needs a fitted model"),
        (["graph.json", "--kind", "series", "--at", "5", "--data", "data.csv"], "needs a fitted"),
        (["model", "--kind", "series", "--at", "5"], "--at and --data"),
        (["model", "--kind", "series", "--at", "1", "--data", "data.csv"], "slot 1 cannot"),
        (["graph.json", "--out", "a.gif"], ".png, .svg, .pdf"),
        (["graph.json", "--kind", "scores", "--evidence", "luck"], "no evidence called 'luck'"),
        (["graph.json", "--kind", "map", "--truth", "truth.csv"], "shows no truth"),
        (["missing.json"], "cannot read"),
        (["data.csv"], "data.csv"),
        ([""], "--out"),
    ],
)
def test_mistakes_take_one_line(folder, tmp_path, words, said):
    words = [folder / w if w.endswith((".json", ".csv")) or w == "model" else w for w in words]
    if "--out" not in words and words != [""]:
        words += ["--out", tmp_path / "a.png"]
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
