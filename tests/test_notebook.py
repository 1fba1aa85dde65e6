"""What a notebook shows: one bar, pictures below the cell, tables for results.

A kernel is pretended: what counts is what it is asked to display.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from causalformer import CausalFormer
from causalformer.data import SeriesTable
from causalformer.graph import CausalGraph, Edge
from causalformer.notebook import in_notebook

QUICK = {"settings": {"max_epochs": 4, "n_channels": 4}, "max_lag": 1}


@pytest.fixture
def kernel(monkeypatch):
    """A kernel; gives what is displayed, and what each of it became."""
    shown = []

    def display(content, *, raw, display_id):
        assert raw
        assert display_id
        history = [content]
        shown.append(history)
        return SimpleNamespace(update=lambda content, **_: history.append(content))

    package, part = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel="a kernel")
    part.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    return shown


def series():
    return np.random.default_rng(0).normal(size=(60, 2))


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch):
    package = ModuleType("IPython")
    monkeypatch.setitem(sys.modules, "IPython", package)
    for shell in (None, SimpleNamespace()):
        package.get_ipython = lambda shell=shell: shell
        assert not in_notebook()


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_a_fit_shows_one_bar_that_ends_as_one_line(kernel, capfd):
    CausalFormer(verbose=True, **QUICK).fit(series())
    assert len(kernel) == 1
    html = [content["text/html"] for content in kernel[0]]
    assert '<progress value="0" max="4">' in html[0]
    assert '<progress value="4" max="4">' in html[-2]
    assert "now the graph" in html[-2]
    assert kernel[0][-1]["text/plain"].startswith("Done: 4 epochs")
    assert "<progress" not in html[-1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_nothing_is_shown_unless_asked_for(kernel):
    CausalFormer(**QUICK).fit(series())
    assert kernel == []


def test_a_bar_does_not_go_on_after_an_error(kernel):
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        CausalFormer(verbose=True, on_epoch=fail, **QUICK).fit(series())
    assert kernel[0][-1]["text/plain"].startswith("Stopped by an error after 1 epoch,")


def test_a_verbose_model_can_be_cloned():
    assert clone(CausalFormer(verbose=True)).verbose


def test_a_plot_is_left_to_pyplot_and_a_saved_picture_is_not(monkeypatch, tmp_path):
    from matplotlib import pyplot as plt

    from causalformer.plot import style

    monkeypatch.setattr(style, "in_notebook", lambda: True)
    plt.switch_backend("agg")
    graph = CausalGraph(("a", "b"), (Edge("a", "b", 1, 2.0),))
    graph.save(tmp_path / "graph.png")
    assert plt.get_fignums() == []
    for kind in ("summary", "lags"):
        axes = graph.plot(kind=kind)
        assert plt.figure(plt.get_fignums()[-1]) is axes.figure
    plt.close("all")


def test_results_show_themselves():
    graph = CausalGraph(("a", "<b>"), (Edge("a", "<b>", 1, 2.0),))
    shown = graph._repr_html_()
    assert shown.startswith('<img alt="" width="400" src="data:image/svg+xml;base64,')
    assert "<td>a → &lt;b&gt;</td>" in shown
    many = CausalGraph(tuple(map(str, range(60))))
    assert many._repr_html_() == "<p>60 series, 0 edges</p>"
    table = SeriesTable(np.zeros((9, 2)), ("a", "<b>"))
    assert table._repr_html_().count("<tr") == 1 + 5
    assert "&lt;b&gt;" in table._repr_html_()


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_diagnostics_and_explanations_show_tables():
    model = CausalFormer(**QUICK).fit(series())
    told = model.diagnostics_._repr_html_()
    assert "<th>r2</th>" in told
    assert all(f"<li>{text}" in told for text in model.diagnostics_.warnings)
    assert "<th>relevance</th>" in model.explain(at=30)._repr_html_()
