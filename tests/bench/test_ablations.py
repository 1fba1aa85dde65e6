import numpy as np
import pytest

from causalformer import CausalFormer
from causalformer.bench import ablations
from causalformer.bench.ablations import PAPER_ABLATIONS, PAPER_READINGS, PaperVariant
from causalformer.bench.methods import method_for
from causalformer.config import PRESETS, Settings, resolve_settings
from causalformer.datasets import make_structure

TINY = {"window": 4, "d_model": 4, "n_heads": 1, "d_ffn": 4, "max_epochs": 2}
SERIES = make_structure("fork", 60, random_state=0).series


def variant(**changes):
    settings = resolve_settings("paper-fmri", {**TINY, **changes}).model_dump()
    return PaperVariant(settings, random_state=3)


@pytest.fixture
def trainings(monkeypatch):
    """Count how often a network is trained."""
    monkeypatch.setattr(ablations, "_LAST_TRAINED", {})
    seen = []

    def train(*arguments, **options):
        seen.append(options["random_state"])
        return plain(*arguments, **options)

    plain = ablations.train_network
    monkeypatch.setattr(ablations, "train_network", train)
    return seen


def test_variants_that_only_read_otherwise_share_one_training(trainings):
    variants = [{}, {"relevance": False}, {"relevance_bias": True}, {"relevance_layers": "all"}]
    scores = [variant(**changes).fit(SERIES).edge_scores_ for changes in variants]
    assert len(trainings) == 1
    assert len({s.tobytes() for s in scores}) == len(variants)


@pytest.mark.parametrize("change", [{"multi_kernel": False}, {"normalisation": "none"}])
def test_variants_that_train_otherwise_do_not(trainings, change):
    variant().fit(SERIES)
    variant(**change).fit(SERIES)
    assert len(trainings) == 2


def test_other_data_are_trained_anew(trainings):
    variant().fit(SERIES)
    variant().fit(SERIES.head(50))
    assert len(trainings) == 2


def test_a_variant_is_the_estimator_with_these_settings():
    settings = {**TINY, "relevance_bias": True}
    model = CausalFormer("paper-fmri", settings=settings, random_state=3).fit(SERIES)
    found = variant(relevance_bias=True).fit(SERIES)
    np.testing.assert_array_equal(found.edge_scores_, model.scores_)
    assert found.graph_.edges == model.graph_.edges


def test_what_is_only_read_is_every_setting_of_the_detector():
    names = list(Settings.model_fields)
    assert set(ablations._READ_ONLY) == set(names[names.index("interpretation") :])


@pytest.mark.parametrize("name", [*PAPER_ABLATIONS, *PAPER_READINGS])
def test_only_without_bias_is_the_whole_method(name):
    same = method_for(name, "fmri").settings == PRESETS["paper-fmri"].model_dump()
    assert same == (name == "paper-without-bias")
