"""What is said about data that deserve care."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from causalformer import CausalFormer
from causalformer.config import DetectorSettings
from causalformer.data import SeriesTable
from causalformer.datasets import make_random_system
from causalformer.detect.edges import found_edges
from causalformer.detect.lag_choice import LagChoice
from causalformer.diagnostics import _of_hidden_drivers, _of_sampling, _warnings
from causalformer.errors import DataWarning
from causalformer.knowledge import KnownGraph
from evidence_examples import make_evidence, make_present, make_within, samples_of

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
    found = fit(moved).diagnostics_
    assert "a level shift of 'C' at slot 100" in found.time_terms
    assert not any("'A'" in text or "'B'" in text for text in found.time_terms)
    assert "held fixed: a level shift of" in found._repr_html_()
    assert not found.warnings


def test_a_series_that_wanders_on_is_named():
    walk = frame(400)
    walk["C"] = np.random.default_rng(3).standard_normal(400).cumsum()
    with pytest.warns(DataWarning):
        found = fit(walk).diagnostics_
    told = [text for text in found.warnings if "random walk" in text]
    assert told
    assert all("C" in text and "A" not in text.split() for text in told)


def test_a_mechanism_that_changes_is_named_with_its_time():
    x = np.random.default_rng(0).standard_normal((400, 3))
    sign = np.where(np.arange(400) < 200, 0.7, -0.7)
    for t in range(1, 400):
        x[t] += 0.3 * x[t - 1]
        x[t, 1] += sign[t] * x[t - 1, 0]
    with pytest.warns(DataWarning, match="'A' on 'B', most around slot (19|20)"):
        found = fit(pd.DataFrame(x, columns=["A", "B", "C"])).diagnostics_
    assert sum("changes over time" in text for text in found.warnings) == 1


def test_edges_never_stand_beside_the_word_of_none():
    """Where hardly anything can be predicted, and an edge was drawn all the same."""
    r2 = np.zeros(3)
    choice = LagChoice(2, "chosen by the user")
    drawn = [np.zeros((3, 3, 2), dtype=bool) for _ in range(2)]
    drawn[1][0, 1, 0] = True
    table = SeriesTable(frame().to_numpy(), ("A", "B", "C"))
    said = []
    for lagged in drawn:
        found = replace(choose(make_evidence()), lagged=lagged)
        said.append(_warnings(table, table.values, r2, found, choice))
    assert [any("nothing can be predicted" in text for text in texts) for texts in said] == [
        True,
        False,
    ]


@pytest.mark.parametrize(("r2", "nothing"), [(0.008, True), (0.012, False)])
def test_less_than_one_percent_is_nothing(r2, nothing):
    table = SeriesTable(frame().to_numpy(), ("A", "B", "C"))
    found = replace(choose(make_evidence()), lagged=np.zeros((3, 3, 2), dtype=bool))
    said = _warnings(table, table.values, np.full(3, r2), found, LagChoice(2, "chosen"))
    assert any("nothing can be predicted" in text for text in said) == nothing


@pytest.mark.parametrize(("moved", "told"), [(1.1, True), (0.9, False)])
def test_halves_are_apart_from_a_standard_deviation_on(moved, told):
    scores = np.zeros((200, 3))
    scores[100:, 1] = moved
    table = SeriesTable(frame(200).to_numpy(), ("A", "B", "C"))
    found = choose(make_evidence())
    said = _warnings(table, scores, np.ones(3), found, LagChoice(2, "chosen"))
    assert any("the level of B differs" in text for text in said) == told


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
    shared = np.random.default_rng(5).standard_normal((400, 1))
    x = np.random.default_rng(0).standard_normal((400, 5)) + shared
    for t in range(1, len(x)):
        x[t] += 0.5 * x[t - 1]
    with pytest.warns(DataWarning, match="a series that was not recorded"):
        graph = fit(x).graph_
    assert not any(edge.lag == 0 for edge in graph)
    plain = make_random_system(5, 400, n_edges=3, random_state=0)
    assert fit(plain.series).diagnostics_.warnings == ()


class TestHiddenDrivers:
    """What is said of hidden drivers, by what was found."""

    NAMES = ("A", "B", "C")

    def said(self, found):
        return _of_hidden_drivers(self.NAMES, found)

    @pytest.mark.parametrize(
        ("n_slots", "correlation", "expected"),
        [(1000, 0.3, True), (1000, 0.05, False), (60, 0.2, False), (60, 0.5, True)],
    )
    def test_errors_must_agree_beyond_chance(self, n_slots, correlation, expected):
        pairs = {(i, j): correlation for i in range(3) for j in range(3)}
        evidence = make_evidence(residual_correlation=pairs, n_slots=n_slots)
        within = make_within(linked={(0, 1): 0.99})
        for links, likely in ((None, expected), (within, False)):  # such edges explain it
            said = self.said(choose(evidence, links))
            assert any("far beyond what the edges explain" in text for text in said) == likely

    def test_nothing_is_said_without_a_reason(self):
        evidence = make_evidence(p_value={(0, 1): 1e-6})
        assert self.said(choose(evidence, make_within(linked={(1, 2): 0.99}))) == []

    def test_a_driver_of_all_series(self):
        found = replace(choose(make_evidence()), driven=True)
        (text,) = self.said(found)
        assert "what all series have in common predicts them" in text

    def test_series_that_move_together_are_named(self):
        (text,) = self.said(choose(make_evidence(), make_within(factor=(0, 2))))
        assert text.startswith("A, C move together")
        assert "contemporaneous links are drawn only where they share more than that" in text

    def test_links_that_are_not_drawn_are_named(self):
        within = make_within(linked={(0, 1): 0.99}, hidden={(0, 1): 0.99})
        (text,) = self.said(choose(make_evidence(), within))
        assert "'A' and 'B'" in text
        assert text.endswith("not drawn")

    def test_edges_that_may_be_a_hidden_drivers_are_named_if_one_is_expected_to_be(self):
        evidence = make_evidence(p_value={(0, 1): 1e-6, (1, 2): 1e-6})
        for likely, expected in ((0.49, False), (0.51, True)):
            hidden = np.zeros((3, 3))
            hidden[0, 1], hidden[1, 2] = 0.5, likely
            said = self.said(replace(choose(evidence), hidden=hidden))
            assert len(said) == expected
        assert "may be behind 'A' and 'B', 'B' and 'C'; see may_be_confounded" in said[0]

    def test_edges_that_are_not_drawn_are_not_named(self):
        found = replace(choose(make_evidence()), hidden=np.full((3, 3), 0.9))
        assert self.said(found) == []

    def test_some_pairs_stand_for_many(self):
        pairs = [(j, i) for j in range(4) for i in range(4) if i != j]
        evidence = make_evidence(4, p_value=dict.fromkeys(pairs, 1e-6))
        found = choose(evidence, known=KnownGraph.anything(4, 3))
        hidden = np.where(np.eye(4), 0.0, 0.9)
        (text,) = _of_hidden_drivers(("A", "B", "C", "D"), replace(found, hidden=hidden))
        assert text.count(" and '") == 5
        assert "and 7 more pairs" in text

    def errors(self, lag, size, max_lag=2, n_slots=600):
        """Errors of two series, one of which follows the other after some slots."""
        wrong = np.random.default_rng(0).standard_normal((n_slots, 3))
        wrong[lag:, 1] += size * wrong[:-lag, 0]
        evidence = make_evidence(3, max_lag)
        samples = samples_of(np.zeros((n_slots + max_lag, 3)), max_lag)
        removal = replace(evidence.removal, residual=wrong.astype(np.float32))
        return replace(evidence, samples=samples, removal=removal)

    @pytest.mark.parametrize(
        ("lag", "size", "expected"),
        [(3, 0.8, True), (4, 0.8, True), (5, 0.8, False), (3, 0, False)],
    )
    def test_errors_that_are_related_beyond_max_lag(self, lag, size, expected):
        found = choose(make_evidence())
        said = self.said(replace(found, evidence=self.errors(lag, size)))
        assert any("errors are related over more than 2 slots" in text for text in said) == expected


class TestSampling:
    """Contemporaneous links that show in levels: it may be too long."""

    def said(self, linked, *, levels):
        within = replace(make_within(linked=dict.fromkeys(linked, 0.99)), levels=levels)
        return _of_sampling(choose(make_evidence(p_value={(0, 0): 1e-6}), within))

    def test_links_in_levels(self):
        (text,) = self.said([(0, 1), (1, 2)], levels=True)
        assert text.startswith("2 contemporaneous links show in the levels")
        assert "sample more often" in text

    def test_links_in_surprises_are_no_sign_of_it(self):
        assert self.said([(0, 1), (0, 2), (1, 2)], levels=False) == []

    def test_nothing_to_say_without_links(self):
        assert self.said([], levels=True) == []


def choose(evidence, within=None, instantaneous="auto", known=None):
    known = known or KnownGraph.anything(3, 3)
    n_slots, n_series = len(evidence.samples) + 3, len(evidence.pairs.p_value)
    present = make_present(np.random.default_rng(0).standard_normal((n_slots, n_series)))
    return found_edges(evidence, within, present, known, 0.05, DetectorSettings(), instantaneous)


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


def test_equal_recordings_are_named():
    x, y = np.random.default_rng(0).standard_normal((2, 60, 2))
    for given, expected in (([x, y, x], True), ([x, y], False), ([x], False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            model = CausalFormer(max_lag=1, random_state=0).fit(given)
        named = any(
            text.startswith("recordings ") and "are equal" in text
            for text in model.diagnostics_.warnings
        )
        assert named == expected
