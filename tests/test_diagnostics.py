"""What is said about data that deserve care."""

import numpy as np
import pandas as pd
import pytest

from causalformer import CausalFormer
from causalformer.config import DetectorSettings
from causalformer.datasets import make_random_system
from causalformer.detect.edges import found_edges
from causalformer.diagnostics import hidden_drivers_likely
from causalformer.errors import DataWarning
from causalformer.knowledge import KnownGraph
from evidence_examples import make_evidence, make_within

TINY = {"max_epochs": 3, "n_channels": 4}


def fit(x, **options):
    return CausalFormer(**({"settings": TINY, "max_lag": 2} | options)).fit(x)


def frame(n_slots=200, seed=0):
    """A drives B; every series has a memory."""
    x = np.random.default_rng(seed).standard_normal((n_slots, 3))
    for t in range(1, n_slots):
        x[t] += 0.5 * x[t - 1]
        x[t, 1] += 0.7 * x[t - 1, 0]
    return pd.DataFrame(x, columns=["A", "B", "C"])


@pytest.fixture(scope="module")
def clean():
    return fit(frame()).diagnostics_


def test_good_data_are_used_without_a_word(clean):
    assert clean.warnings == ()


def test_the_frame_has_a_row_per_series(clean):
    table = clean.to_frame()
    figures = ["r2", "better_than_linear", "observed", "counted"]
    assert list(table.columns) == ["series", *figures]
    assert table["series"].tolist() == ["A", "B", "C"]


def test_r2_says_what_can_be_foreseen(clean):
    assert 0 < clean.r2[0] < clean.r2[1] < 1


def test_better_than_linear_is_large_where_the_link_is_bent():
    noise = np.random.default_rng(0).standard_normal((600, 2))
    noise[1:, 1] = noise[:-1, 0] ** 2 + 0.3 * noise[1:, 1]
    found = fit(noise, settings={"max_epochs": 20, "n_channels": 16}).diagnostics_
    assert found.better_than_linear[1] > 0.5
    assert found.better_than_linear[0] < 0.1


def test_short_series():
    with pytest.warns(DataWarning, match="80 slots are few"):
        found = fit(frame(80, seed=1)).diagnostics_
    assert len(found.warnings) == 1


def test_a_lowered_max_lag_names_what_can_no_longer_be_found():
    with pytest.warns(DataWarning, match="max_lag was lowered from 25"):
        found = fit(frame(80, seed=1), max_lag=25).diagnostics_
    assert found.max_lag == 20
    assert "edges of more than 20 slots cannot be found" in found.warnings[0]
    assert found.max_lag_reason.startswith("lowered from 25")


def test_a_shift_of_level_names_the_column():
    moved = frame()
    moved.loc[100:, "C"] += 5
    with pytest.warns(DataWarning):
        found = fit(moved).diagnostics_
    assert any("the level of C differs" in text for text in found.warnings)
    assert not any("A" in text.split(":")[0].split() for text in found.warnings)


def test_noise_cannot_be_predicted():
    noise = np.random.default_rng(1).standard_normal((300, 3))
    with pytest.warns(DataWarning, match="nothing can be predicted"):
        found = fit(noise).diagnostics_
    assert (found.r2 < 0.01).all()


def test_constant_columns_are_nothing_that_was_predicted():
    noise = np.random.default_rng(1).standard_normal((300, 3))
    noise[:, 1] = 7.1
    with pytest.warns(DataWarning) as said:
        found = fit(noise).diagnostics_
    assert found.r2[1] == 0
    assert sum("constant column 'x1'" in str(w.message) for w in said) == 1
    assert any("nothing can be predicted" in text for text in found.warnings)


def test_hidden_drivers_are_suspected_where_they_are():
    hidden = make_random_system(5, 400, n_hidden=1, n_edges=3, random_state=0)
    with pytest.warns(DataWarning, match="hidden common drivers are likely"):
        fit(hidden.series)
    plain = make_random_system(5, 400, n_edges=3, random_state=0)
    assert fit(plain.series).diagnostics_.warnings == ()


@pytest.mark.parametrize(
    ("n_slots", "correlation", "expected"),
    [(1000, 0.3, True), (1000, 0.05, False), (60, 0.2, False), (60, 0.5, True)],
)
def test_hidden_drivers_need_errors_that_agree_beyond_chance(n_slots, correlation, expected):
    pairs = {(i, j): correlation for i in range(3) for j in range(3)}
    evidence = make_evidence(residual_correlation=pairs, n_slots=n_slots)
    within = make_within(partial={(0, 1): 0.5}, direction={(0, 1): 3.0})
    known = KnownGraph.anything(3, 3)
    for option, likely in ((False, expected), (True, False)):  # edges within a slot explain it
        found = found_edges(evidence, within, known, 0.05, DetectorSettings(), option)
        assert hidden_drivers_likely(found) == likely


@pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")
def test_short_independent_series_are_not_suspected():
    said = []
    for seed in range(10):
        said += fit(np.random.default_rng(seed).standard_normal((80, 3))).diagnostics_.warnings
    assert not any("hidden" in text for text in said)


def test_every_warning_is_kept_with_the_graph():
    with pytest.warns(DataWarning):
        model = fit(frame(80))
    assert model.graph_.metadata["warnings"] == list(model.diagnostics_.warnings)
