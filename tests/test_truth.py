"""Truth files: every form is read, and what is wrong is named by line."""

import re
from pathlib import Path

import pytest
from hypothesis import given

from causalformer.errors import FileFormatError
from causalformer.graph import CausalGraph, Edge
from causalformer.truth import read_truth
from graph_examples import HOSTILE, graphs, ring


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "truth.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "0,0,1\n0,1,2\n",
        "\ufeff0,0,1\r\n0,1,2",
        " 0 , 0 , 1\n\n 0,1, 2\n",
        "cause,effect,lag\n0,0,1\n0,1,2\n",
        "x,x,1\nx,y,2\n",
        "cause,effect,lag,kind,score\nx,y,2,lagged,0.5\nx,x,1,self,\n",
        "Lag, Effect, Cause\n2,y,x\n1,x,x\n",
    ],
)
def test_truth_files_of_every_form(tmp_path, text):
    graph = read_truth(written(tmp_path, text), ["x", "y"])
    assert graph == CausalGraph(("x", "y"), (Edge("x", "x", 1), Edge("x", "y", 2)))


def test_truth_without_names_counts_the_columns(tmp_path):
    graph = read_truth(written(tmp_path, "0,3,1\n"))
    assert graph.names == ("0", "1", "2", "3")
    named = read_truth(written(tmp_path, "cause,effect\nrain,river\n"))
    assert named == CausalGraph(("rain", "river"), (Edge("rain", "river", 1),))


def test_truth_can_be_reversed(tmp_path):
    path = written(tmp_path, "0,1,2\n")
    assert read_truth(path, ["x", "y"], reverse=True).edges == (Edge("y", "x", 2),)


def test_numbers_win_without_header_and_names_with_header(tmp_path):
    names = ["1", "0"]
    assert read_truth(written(tmp_path, "0,1,1\n"), names).edges == (Edge("1", "0", 1),)
    with_header = written(tmp_path, "cause,effect,lag\n0,1,1\n")
    assert read_truth(with_header, names).edges == (Edge("0", "1", 1),)
    years = read_truth(written(tmp_path, "2001,2002,1\n"), ["2001", "2002"])
    assert years.edges == (Edge("2001", "2002", 1),)


def test_saved_csv_can_be_read_as_truth(tmp_path):
    graph = ring(HOSTILE)
    assert read_truth(graph.save(tmp_path / "edges.csv"), HOSTILE) == graph
    empty = CausalGraph(("a", "b"))
    assert read_truth(empty.save(tmp_path / "none.csv"), ["a", "b"]) == empty


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "truth.csv: the file is empty"),
        ("\n \n", "truth.csv: the file is empty"),
        ("0,1,1\n0,1\n", "line 2: 2 columns instead of 3"),
        ("0,1,1,7\n", "line 1: 4 columns instead of 3"),
        ("0,1,1\n\n0,2,1\n", "line 3: column number 2 is not between 0 and 1"),
        ("-1,1,1\n", "line 1: column number -1 is not between"),
        ("0,1,1\nx,z,1\n", "line 2: no series is called 'z' (series: 'x', 'y')"),
        ("0,y,1\n", "line 1: no series is called '0'"),
        ("x,z,1\n", "line 1: no series is called 'z'"),
        ("0,1,-1\n", "line 1: edge 'x' -> 'y': lag -1 is negative"),
        ("0,1,1.5\n", "line 1: lag '1.5' is no whole number"),
        ("0,1,\n", "line 1: lag '' is no whole number"),
        ("0,0,0\n", "line 1: edge 'x' -> 'x': a self edge needs a lag"),
        ("0,1,1\n0,1,1\n", "line 2: the edge was given before, on line 1"),
        ("cause,effect,effect\n0,1,1\n", "line 1: two columns are called effect"),
        ("cause,effect,lag\n0,1\n", "line 2: 2 columns instead of 3"),
        ('0,1,1\n"0,1,1\n', "broken CSV"),
        ("0,٣,1\n", "no series is called '٣'"),
    ],
)
def test_wrong_truth_files_are_refused_by_line(tmp_path, text, problem):
    with pytest.raises(FileFormatError, match=re.escape(problem)) as caught:
        read_truth(written(tmp_path, text), ["x", "y"])
    assert "truth.csv" in str(caught.value)
    assert "expected cause,effect,lag" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b,1\n", "'a' is no column number and no names of series are given"),
        ("0,999999999,1\n", "too large"),
        ("-1,-1,1\n", "column number -1"),
        ("cause,effect,lag\n", "no edge and no names"),
    ],
)
def test_truth_files_that_need_names_say_so(tmp_path, text, problem):
    with pytest.raises(FileFormatError, match=problem):
        read_truth(written(tmp_path, text))


def test_unreadable_truth_files_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match=r"missing\.csv: cannot read .*No such file"):
        read_truth(tmp_path / "missing.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\xff\xfe0")
    with pytest.raises(FileFormatError, match="UTF-8"):
        read_truth(path)


@given(graphs())
def test_any_graph_survives_csv(tmp_path_factory, graph):
    path = graph.save(tmp_path_factory.mktemp("csv") / "edges.csv")
    back = read_truth(path, graph.names)
    assert {(e.cause, e.effect, e.lag) for e in back} == {(e.cause, e.effect, e.lag) for e in graph}
