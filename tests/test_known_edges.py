"""Prior knowledge, from statement to graph: the graph respects it, whatever the data say."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from causalformer import CausalFormer
from causalformer.errors import FileFormatError, SettingsError
from causalformer.knowledge import PriorKnowledge

pytestmark = pytest.mark.filterwarnings("ignore::causalformer.errors.DataWarning")

TINY = {"max_epochs": 2, "n_channels": 4, "n_folds": 2}
SMALL_PAPER = {"window": 4, "d_model": 4, "n_heads": 1, "d_ffn": 4, "max_epochs": 1}
NAMES = ("A", "B", "C", "D")
MAX_LAG = 3


def frame(n_slots=150, seed=0):
    """A chain with memory, A -> B -> C -> D, and D shared with C within a slot."""
    x = np.random.default_rng(seed).laplace(size=(n_slots, 4))
    for t in range(2, n_slots):
        x[t, 0] += 0.6 * x[t - 1, 0]
        x[t, 1] += 0.8 * x[t - 2, 0]
        x[t, 2] += 0.8 * x[t - 1, 1]
        x[t, 3] += 0.7 * x[t, 2]
    return pd.DataFrame(x, columns=list(NAMES))


def default(knowledge=None, **changes):
    options = {"max_lag": MAX_LAG, "settings": TINY, "knowledge": knowledge} | changes
    return CausalFormer(**options)


def paper(knowledge=None):
    return CausalFormer("paper-fmri", settings=SMALL_PAPER, knowledge=knowledge)


def edges(model):
    return {(e.cause, e.effect, e.lag) for e in model.graph_}


def pairs(model):
    return {(e.cause, e.effect) for e in model.graph_}


names = st.sampled_from(NAMES)
lags = st.none() | st.integers(0, MAX_LAG)


@st.composite
def statements(draw, most_required=3):
    """Statements that may contradict each other."""
    required = draw(st.lists(st.tuples(names, names, lags), max_size=most_required))
    wild = st.sampled_from((*NAMES, "*"))
    forbidden = draw(st.lists(st.tuples(wild, wild, lags), max_size=4))
    order = draw(st.permutations(NAMES))
    cut = draw(st.integers(0, 4))
    told = {
        "required": [edge for edge in required if edge[0] != edge[1] or edge[2] != 0],
        "forbidden": [edge for edge in forbidden if edge[0] != edge[1] or edge[2] != 0],
        "tiers": draw(st.sampled_from([[], [order[:cut], order[cut:]]])),
        "exogenous": draw(st.lists(names, max_size=1)),
        "effects_only": draw(st.lists(names, max_size=1)),
    }
    try:
        knowledge = PriorKnowledge(**told)
        known = knowledge.resolve(NAMES, MAX_LAG)
    except SettingsError:
        assume(False)
    return knowledge, known


few = settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much])


class TestAnyKnowledge:
    @few
    @given(told=statements(), instantaneous=st.sampled_from([True, "auto"]))
    def test_the_default_respects_it(self, told, instantaneous):
        knowledge, known = told
        model = default(knowledge, instantaneous=instantaneous).fit(frame())
        assert known.violations(model.graph_) == []
        never = ~known.allowed[..., 1:].any(axis=-1)
        assert (model.scores_["p_value"][never] == 1).all()
        assert (model.scores_["q_value"][never] == 1).all()
        assert (model.scores_["relative_gain"][never] == 0).all()
        assert (model.scores_["strength"][never] == 0).all()
        for matrix in model.scores_.values():
            assert np.isfinite(matrix).all()

    @few
    @given(told=statements())
    def test_the_papers_method_respects_it(self, told):
        knowledge, known = told
        assume((known.required_lags.sum(axis=-1) <= 1).all())  # it has one lag per pair
        model = paper(knowledge).fit(frame(60))
        assert known.violations(model.graph_) == []


def test_knowing_nothing_changes_nothing():
    for make in (default, paper):
        plain = make().fit(frame())
        for nothing in (PriorKnowledge(), {}, {"required": []}):
            assert make(nothing).fit(frame()).graph_ == plain.graph_
        assert make({"tiers": [NAMES]}).fit(frame()).graph_.edges == plain.graph_.edges


@pytest.fixture(scope="module")
def plain():
    return default().fit(frame())


class TestStatements:
    def test_the_graph_without_knowledge(self, plain):
        assert {("A", "B", 2), ("B", "C", 1)} <= edges(plain)
        assert ("D", "B") not in pairs(plain)

    def test_a_forbidden_edge_is_gone_and_never_tested(self, plain):
        model = default({"forbidden": ["A -> B"]}).fit(frame())
        assert ("A", "B") in pairs(plain)
        assert ("A", "B") not in pairs(model)
        assert model.scores_["p_value"][0, 1] == 1

    def test_a_forbidden_lag_moves_an_edge(self):
        model = default({"forbidden": ["A -> B @ 2"]}).fit(frame())
        assert ("A", "B", 2) not in edges(model)

    @pytest.mark.parametrize("lag", ["", " @ 3"])
    def test_a_required_edge_is_there_with_its_evidence(self, lag):
        model = default({"required": [f"D -> B{lag}"]}).fit(frame())
        (edge,) = (e for e in model.graph_ if (e.cause, e.effect) == ("D", "B"))
        assert edge.p_value == model.scores_["p_value"][3, 1] > 0.05
        assert edge.lag == 3 or not lag
        assert np.isfinite([edge.score, edge.q_value, edge.strength]).all()

    def test_two_required_lags_of_one_pair(self):
        told = {"required": ["D -> A @ 1", "D -> A @ 3"]}
        assert {("D", "A", 1), ("D", "A", 3)} <= edges(default(told).fit(frame()))

    def test_two_required_lags_of_one_pair_with_the_papers_method(self):
        told = {"required": ["D -> A @ 1", "D -> A @ 3"]}
        assert {("D", "A", 1), ("D", "A", 3)} <= edges(paper(told).fit(frame(60)))

    def test_nothing_drives_an_exogenous_series_but_itself(self):
        model = default({"exogenous": ["B"]}).fit(frame())
        assert {cause for cause, effect in pairs(model) if effect == "B"} <= {"B"}
        paper_pairs = pairs(paper({"exogenous": ["B"]}).fit(frame(60)))
        assert {cause for cause, effect in paper_pairs if effect == "B"} <= {"B"}

    def test_a_link_within_a_slot_goes_the_way_that_is_known(self):
        assert {("C", "D"), ("D", "C")} & pairs(default(instantaneous=True).fit(frame()))
        model = default({"tiers": [["D"], ["C"]]}, instantaneous=True).fit(frame())
        (edge,) = (e for e in model.graph_ if {e.cause, e.effect} == {"C", "D"} and e.lag == 0)
        assert (edge.cause, edge.oriented) == ("D", True)

    @pytest.mark.parametrize("make", [default, paper])
    def test_everything_may_be_forbidden(self, make):
        told = {"forbidden": ["* -> *", *(f"{name} -> {name}" for name in NAMES)]}
        assert len(make(told).fit(frame()).graph_) == 0

    def test_refits_respect_it_too(self):
        told = {"forbidden": ["A -> B"], "required": ["D -> B @ 1"]}
        model = default(told, stability=2).fit(frame())
        assert ("A", "B") not in pairs(model)
        (edge,) = (e for e in model.graph_ if (e.cause, e.effect) == ("D", "B"))
        assert edge.frequency in (0.0, 0.5, 1.0)

    def test_gaps_and_recordings(self):
        told = PriorKnowledge(required=["D -> A"], forbidden=["B -> C @ 1"], exogenous=["B"])
        parts = [frame(80, seed) for seed in range(3)]
        parts[1].loc[20:30, "B"] = np.nan
        with pytest.warns(match="missing values"):
            model = default(told).fit(parts)
        assert told.resolve(NAMES, MAX_LAG).violations(model.graph_) == []

    def test_the_order_of_the_columns_does_not_matter(self):
        told = PriorKnowledge(required=["D -> A @ 2"], forbidden=["A -> B"], exogenous=["C"])
        model = default(told).fit(frame()[["C", "A", "D", "B"]])
        assert told.resolve(model.names_, MAX_LAG).violations(model.graph_) == []
        assert edges(model) == edges(default(told).fit(frame()))


class TestHabits:
    told = PriorKnowledge(required=["D -> A @ 2"], forbidden=["A -> B"], tiers=[["A"], ["B", "C"]])

    @pytest.mark.parametrize("make", [default, paper])
    def test_a_saved_model_keeps_it(self, make, tmp_path):
        model = make(self.told).fit(frame())
        loaded = CausalFormer.load(model.save(tmp_path / "m"))
        assert PriorKnowledge.from_dict(loaded.knowledge) == self.told
        assert loaded.graph_ == model.graph_
        pd.testing.assert_frame_equal(loaded.predict(frame()), model.predict(frame()))
        assert loaded.fit(frame()).graph_ == model.graph_
        assert PriorKnowledge.from_dict(model.graph_.metadata["knowledge"]) == self.told

    def test_a_pickled_model_predicts_the_same(self):
        model = default(self.told).fit(frame())
        back = pickle.loads(pickle.dumps(model))
        pd.testing.assert_frame_equal(back.predict(frame()), model.predict(frame()))

    def test_it_may_come_from_a_mapping_or_a_file(self, tmp_path):
        path = tmp_path / "knowledge.json"
        path.write_text(json.dumps(self.told.to_dict()))
        expected = default(self.told).fit(frame()).graph_
        for told in (self.told.to_dict(), path, str(path)):
            assert default(told).fit(frame()).graph_ == expected

    def test_fit_edits_no_constructor_argument(self):
        told = self.told.to_dict()
        model = default(told).fit(frame())
        assert model.knowledge is told
        assert told == self.told.to_dict()
        assert clone(model).knowledge == told

    def test_forbidden_past_values_are_relevant_to_no_prediction(self):
        found = default(self.told).fit(frame()).explain(50)
        assert not found.relevance[0, 1].any()
        assert found.conservation_error < 1e-5

    def test_a_checkpoint_of_other_knowledge_is_refused(self, tmp_path, monkeypatch):
        from causalformer import estimator

        plain = estimator.CheckpointFile
        monkeypatch.setattr(
            estimator, "CheckpointFile", lambda path, mark: plain(path, mark, every_seconds=0)
        )
        path = tmp_path / "state.safetensors"
        first = default(self.told, checkpoint=path).fit(frame())
        assert default(self.told, checkpoint=path).fit(frame()).graph_ == first.graph_
        with pytest.raises(FileFormatError, match="other data, settings"):
            default(checkpoint=path).fit(frame())


class TestBadKnowledge:
    @pytest.mark.parametrize("make", [default, paper])
    @pytest.mark.parametrize(
        ("told", "message"),
        [
            ({"required": ["A -> Z"]}, "no series is called 'Z'"),
            ({"required": ["A -> B @ 9"]}, "needs a lag of 9, but max_lag is 3"),
            ({"required": ["A -> B"], "forbidden": ["A -> B"]}, "contradicts forbidden"),
            ({"requird": []}, "did you mean 'required'"),
            (3, "knowledge"),
        ],
    )
    def test_it_is_refused_by_name(self, make, told, message):
        with pytest.raises(SettingsError, match=message):
            make(told).fit(frame(60))

    def test_a_required_edge_within_a_slot_needs_such_edges(self):
        with pytest.raises(SettingsError, match="contemporaneous edge is required"):
            default({"required": ["A -> B @ 0"]}, instantaneous=False).fit(frame(60))

    def test_a_required_lag_beyond_what_the_rows_allow_says_so(self):
        with pytest.raises(SettingsError, match=r"rows|slots"):
            default({"required": ["A -> B @ 7"]}, max_lag=9).fit(frame(26))
