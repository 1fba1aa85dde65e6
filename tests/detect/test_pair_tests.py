from dataclasses import replace

import numpy as np
import pytest

from causalformer.detect.pair_tests import PairTests
from evidence_examples import make_evidence


def test_pairs_are_taken_and_put_elsewhere_and_nothing_else_changes():
    first = make_evidence(p_value={(0, 1): 1e-6}, t={(0, 1): [7, 8, 9]}).pairs
    second = make_evidence(size={(2, 2): 0.1}).pairs
    some = first.at((np.array([0]), np.array([1])))
    assert some.t.tolist() == [[7, 8, 9]]
    both = PairTests.joined([some, second.at((np.array([2]), np.array([2])))])
    whole = make_evidence().pairs
    changed = whole.put((np.array([1, 2]), np.array([0, 1])), both)
    expected = make_evidence(
        p_value={(1, 0): 1e-6}, size={(2, 1): 0.1}, t={(1, 0): [7, 8, 9]}
    ).pairs
    for name in ("p_value", "terms_p", "size", "t"):
        np.testing.assert_array_equal(getattr(changed, name), getattr(expected, name), name)
    np.testing.assert_array_equal(whole.t, make_evidence().pairs.t)
    by_mask = whole.put(np.eye(3, dtype=bool), second.at(np.eye(3, dtype=bool)))
    np.testing.assert_array_equal(by_mask.size, second.size)


def test_who_is_not_tested_counts_as_if_without_evidence():
    evidence = make_evidence(p_value={(0, 1): 1e-3, (1, 0): 1e-3})
    tested = evidence.pairs.tested.copy()
    tested[1, 0] = False
    evidence = replace(evidence, pairs=replace(evidence.pairs, tested=tested))
    assert evidence.q_value[0, 1] == pytest.approx(6e-3)
    assert evidence.q_value[1, 0] == evidence.local_fdr[1, 0] == 1


def test_the_largest_size_that_the_data_allow_holds_the_true_one_in_75_of_100_samples():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 500))
    y = np.sqrt(0.01) * x + np.sqrt(0.99) * rng.standard_normal(x.shape)
    size = ((x * y).mean(axis=1) ** 2 / (x**2).mean(axis=1) / (y**2).mean(axis=1))[:, None]
    evidence = make_evidence(1, n_slots=500)

    def largest(size):
        return replace(evidence, pairs=replace(evidence.pairs, size=size)).largest_size

    allowed = [largest(one[None])[0, 0] for one in size]
    assert np.mean(np.array(allowed) > 0.01) == pytest.approx(0.75, abs=0.02)
    beyond = largest(np.array([[-0.1]]))
    assert beyond == pytest.approx(0.6745**2 / 500, rel=1e-3)
