import pandas as pd

from causalformer.bench.case_study import PUBLISHED, counted, lottery, reference_runs, run, table
from causalformer.bench.timing import one_thread
from causalformer.datasets import make_structure
from causalformer.graph import CausalGraph, Edge

NAMES = ["F1", "off-diagonal F1", "true", "false", "indirect", "missed", "self-loops"]


def graph(*edges):
    return CausalGraph(tuple("abcd"), tuple(Edge(*pair, 1, 1.0) for pair in edges))


def runs(*rows):
    return pd.DataFrame(rows, columns=NAMES)


def test_edges_between_series_are_counted_and_self_loops_are_not():
    truth = graph("ab", "bc", "cd", "aa", "bb")
    found = graph("ab", "ac", "ad", "dc", "aa", "cc")
    assert counted(found, truth) == {"true": 1, "false": 3, "indirect": 2, "missed": 2}
    assert counted(truth, truth) == {"true": 3, "false": 0, "indirect": 0, "missed": 0}


def test_the_table_says_how_often_the_published_graph_came_out():
    ours = runs(
        (0.86, 0.73, *PUBLISHED.values(), 5),
        (0.80, 0.73, 4, 2, 1, 1, 5),  # as many edges, but not those
        (0.67, 0.0, 0, 0, 0, 5, 5),
        (0.5, 0.8, 5, 2, 0, 0, 0),
    )
    text = table(ours, ours[2:])
    assert "came out in 1 of 4 seeds of ours" in text
    assert "in 2 of 4 of ours and 0 of 2" in text
    assert "| `paper-fmri` | 4 | 0.71 ± 0.16 | 0.56 ± 0.38 |" in text
    assert "| 25% | 25% |" in text


def test_runs_of_the_published_implementation_are_read_in_our_columns(tmp_path):
    path = tmp_path / "seed_runs.csv"
    path.write_text(
        "data,file,seed,f1,off_diagonal_f1,true_between,false_between,missed_between,self_loops\n"
        "fmri,15,3,0.8,0.5,2,1,3,5\nfmri,1,3,0.7,0.1,0,0,5,5\n"
    )
    (found,) = reference_runs(path).to_dict("records")
    assert (found["F1"], found["true"], found["self-loops"]) == (0.8, 2, 5)


def test_every_seed_is_a_row_and_a_point(monkeypatch):
    made = make_structure("fork", 60, random_state=0)
    tiny = {"window": 4, "d_model": 4, "n_heads": 1, "d_ffn": 4, "max_epochs": 1}
    monkeypatch.setattr("causalformer.bench.case_study.SETTINGS", tiny)
    with one_thread():
        ours = run(made, 2)
    assert ours["seed"].tolist() == [0, 1]
    assert set(NAMES) <= set(ours)
    (axes,) = lottery(ours, ours[:1]).axes
    assert [len(line.get_xdata()) for line in axes.lines] == [2, 1, 1]
