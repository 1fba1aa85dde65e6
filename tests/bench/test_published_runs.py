import numpy as np
import pandas as pd
import pytest

from causalformer.bench.published_runs import (
    beside,
    published_figures,
    published_markdown,
    seed_means,
)
from causalformer.bench.result_file import as_row, results_frame
from causalformer.errors import DataError


@pytest.fixture
def folders(tmp_path):
    """Three files of one structure; the published edges of the second one are missing."""
    data, reference = tmp_path / "data", tmp_path / "reference"
    (data / "fork").mkdir(parents=True)
    reference.mkdir()
    for number in range(3):
        (data / "fork" / f"data_{number}.csv").write_text("a,b\n1,2\n2,1\n3,3\n")
    (data / "fork" / "truth.csv").write_text("0,0,1\n1,1,1\n0,1,1\n")
    (reference / "published_edges.csv").write_text(
        "data,file,cause,effect,delay\n"
        "fork,0,a,a,1\nfork,0,a,b,1\n"  # two of three
        "fork,1,a,a,2\n"  # one of three: belongs to file 2
    )
    (reference / "published_scores.csv").write_text(
        "data,file,precision,recall,f1,pod_as_published\n"
        "fork,0,1.0,0.666667,0.8,1.0\nfork,1,0.5,0.333333,0.4,1.0\nfork,2,1.0,0.333333,0.5,0.0\n"
    )
    return data, reference


def rows(**figures):
    return results_frame(
        as_row(
            {
                "folder": "fork",
                "file": file,
                "method": "paper",
                "seed": seed,
                "precision": 1.0,
                "recall": 0.5,
                "pod": 1.0,
                "paper_pod": 1.0,
                "f1": f1,
                "off_diagonal_f1": f1 / 2,
            }
        )
        for file, seeds in figures.items()
        for seed, f1 in enumerate(seeds)
    )


def test_graphs_are_matched_with_the_printed_scores(folders):
    figures = published_figures(*folders)
    assert figures["file"].tolist() == ["data_0", "data_1", "data_2"]
    assert figures["f1"].tolist() == pytest.approx([0.8, 0.4, 0.5])
    np.testing.assert_array_equal(figures["off_diagonal_f1"], [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(figures["pod"], [1.0, np.nan, 0.0])


def test_a_graph_without_its_score_is_an_error(folders):
    scores = folders[1] / "published_scores.csv"
    scores.write_text("".join(scores.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(DataError, match="1 published graphs of fork"):
        published_figures(*folders)


def test_ours_are_means_over_seeds_with_their_spread(folders):
    results = rows(data_0=(0.6, 0.8), data_2=(0.5, 0.5))
    joined = beside(published_figures(*folders), results).set_index("file")
    assert joined.loc["data_0", "ours_f1"] == pytest.approx(0.7)
    assert joined.loc["data_0", "ours_f1_std"] == pytest.approx(0.1414, abs=1e-4)
    assert joined.loc[["data_0", "data_2"], "seeds"].tolist() == [2, 2]


def test_the_page_says_what_was_met(folders):
    results = rows(data_0=(0.6, 0.8), data_1=(0.6, 0.8), data_2=(0.75, 0.95))
    joined = beside(published_figures(*folders), results)
    text = published_markdown(joined, seed_means(results))
    fork = next(line for line in text.splitlines() if line.startswith("| fork"))
    assert "0.75 (0.65–0.85) | yes" in fork  # printed: 0.79 ± 0.11
    far = pd.concat([joined.assign(ours_f1=0.3)])
    assert "0.30 (0.65–0.85) | no" in published_markdown(far, seed_means(results))
