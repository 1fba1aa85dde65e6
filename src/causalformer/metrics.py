"""How well a discovered graph agrees with the true one.

Conventions used throughout:

* The *summary graph* holds the pairs ``(cause, effect)`` that are linked at any lag, self-loops
  included; the *window graph* holds the triples ``(cause, effect, lag)``. Self-loops are easy to
  find and most published truths hold all of them, so figures "off the diagonal", without
  self-loops, stand beside those that include them.
* Precision, recall and F1 with a denominator of zero are 0, also if truth and prediction are
  both empty: an empty graph earns nothing. ``shd`` tells that case apart (it is 0).
* ``pod``, ``off_diagonal_pod`` and ``paper_pod`` are NaN if there is no pair to be judged. They
  and the figures of the window graph are NaN, too, for a method without lags
  (``metadata["lags"]`` is False).
* Areas under curves are NaN without scores, if one of the two classes is missing, or if a
  score that they need is NaN.
"""

import dataclasses
import math
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causalformer.arrays import checked_array
from causalformer.errors import DataError
from causalformer.graph import CausalGraph

Pair = tuple[str, str]
Delays = dict[Pair, set[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Agreement of one discovered graph with the truth; the module says what is NaN when.

    Attributes
    ----------
    precision, recall, f1 : float
        Of the pairs of the summary graph, self-loops included.
    off_diagonal_precision, off_diagonal_recall, off_diagonal_f1 : float
        The same without self-loops.
    window_precision, window_recall, window_f1 : float
        Of the triples (cause, effect, lag), self-loops included.
    pod : float
        Precision of delay: share of the correct pairs (self-loops included) whose lag is one of
        the true lags. If a pair is predicted at several lags, the one with the highest score
        counts.
    off_diagonal_pod : float
        The same over the edges between two series: the lag of a self-loop is easily told.
    paper_f1 : float
        Compatibility with published figures only: as `f1`, but a predicted pair also counts as
        correct if the truth leads from cause to effect in two steps. What was missed is still
        counted over direct edges.
    paper_pod : float
        Compatibility with published figures only: as `pod`, but over the pairs that are correct
        in the sense of `paper_f1`, and only those with a true delay of at most 1. The delay of an
        indirect pair is the sum along its two steps; if there are several paths, each of them is
        a true delay.
    shd : int
        Structural Hamming distance of the summary graphs without self-loops: edges to add,
        remove or turn round; an edge that points the wrong way costs 1.
    n_predicted, n_true, n_correct : int
        Pairs in the predicted and in the true summary graph, and in both.
    auroc, auprc : float
        Area under the ROC curve and average precision of the scores over all pairs.
    off_diagonal_auroc, off_diagonal_auprc : float
        The same without self-loops.
    """

    precision: float
    recall: float
    f1: float
    off_diagonal_precision: float
    off_diagonal_recall: float
    off_diagonal_f1: float
    window_precision: float
    window_recall: float
    window_f1: float
    pod: float
    off_diagonal_pod: float
    paper_f1: float
    paper_pod: float
    shd: int
    n_predicted: int
    n_true: int
    n_correct: int
    auroc: float = math.nan
    auprc: float = math.nan
    off_diagonal_auroc: float = math.nan
    off_diagonal_auprc: float = math.nan

    def to_dict(self) -> dict[str, float]:
        """Return all figures by name, in the order of the class; NaN stays NaN."""
        return dataclasses.asdict(self)


def evaluate(
    predicted: CausalGraph, truth: CausalGraph, scores: ArrayLike | None = None
) -> Metrics:
    """Compare a discovered graph with the truth.

    Parameters
    ----------
    predicted, truth : CausalGraph
        Over the same names; their order may differ.
    scores : array_like of float, shape (N, N), optional
        ``scores[cause, effect]``, higher is more likely an edge, in the order of
        ``predicted.names``; needed for the areas under curves.

    Raises
    ------
    DataError
        If the names differ or the scores have another shape.

    Examples
    --------
    A graph of nothing but self-loops looks good until the diagonal is left out:

    >>> from causalformer.graph import Edge
    >>> loops = tuple(Edge(name, name, 1) for name in "abcd")
    >>> diamond = (Edge("a", "b", 1), Edge("a", "c", 2), Edge("b", "d", 1), Edge("c", "d", 1))
    >>> truth = CausalGraph(tuple("abcd"), loops + diamond)
    >>> metrics = evaluate(CausalGraph(tuple("abcd"), loops), truth)
    >>> round(metrics.f1, 3), metrics.off_diagonal_f1, metrics.shd
    (0.667, 0.0, 4)
    """
    _check_names(predicted, truth)
    found, true = _delays(predicted), _delays(truth)
    chosen = _strongest_lags(predicted)
    summary = _agreement(found.keys(), true.keys())
    crossing = _agreement(_crossing(found), _crossing(true))
    window = _agreement(_triples(found), _triples(true))
    areas = {} if scores is None else _areas(predicted.names, true, scores)
    between = {pair: lags for pair, lags in true.items() if pair[0] != pair[1]}
    judged = (true, between, _short(_with_indirect(true)))
    pod, off_diagonal_pod, paper_pod = (_exact_share(chosen, delays) for delays in judged)
    if predicted.metadata.get("lags") is False:
        window, pod, off_diagonal_pod, paper_pod = (math.nan,) * 3, math.nan, math.nan, math.nan
    return Metrics(
        precision=summary[0],
        recall=summary[1],
        f1=summary[2],
        off_diagonal_precision=crossing[0],
        off_diagonal_recall=crossing[1],
        off_diagonal_f1=crossing[2],
        window_precision=window[0],
        window_recall=window[1],
        window_f1=window[2],
        pod=pod,
        off_diagonal_pod=off_diagonal_pod,
        paper_f1=_paper_f1(found.keys(), true),
        paper_pod=paper_pod,
        shd=_structural_hamming_distance(_crossing(found), _crossing(true)),
        n_predicted=len(found),
        n_true=len(true),
        n_correct=len(found.keys() & true.keys()),
        **areas,
    )


def _check_names(predicted: CausalGraph, truth: CausalGraph) -> None:
    ours, theirs = set(predicted.names), set(truth.names)
    if ours != theirs:
        differences = [
            f"only in {where}: {', '.join(map(repr, sorted(names)))}"
            for where, names in (("the prediction", ours - theirs), ("the truth", theirs - ours))
            if names
        ]
        raise DataError(f"the graphs are over different series; {'; '.join(differences)}")


# -------------------------------------------------------------------- graphs as sets


def _delays(graph: CausalGraph) -> Delays:
    delays: Delays = {}
    for edge in graph:
        delays.setdefault((edge.cause, edge.effect), set()).add(edge.lag)
    return delays


def _strongest_lags(graph: CausalGraph) -> dict[Pair, int]:
    lags: dict[Pair, int] = {}
    for edge in graph:  # strongest first
        lags.setdefault((edge.cause, edge.effect), edge.lag)
    return lags


def _crossing(delays: Delays) -> set[Pair]:
    return {(cause, effect) for cause, effect in delays if cause != effect}


def _triples(delays: Delays) -> set[tuple[Pair, int]]:
    return {(pair, lag) for pair, lags in delays.items() for lag in lags}


# -------------------------------------------------------------------- figures


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _scores_from_counts(correct: int, wrong: int, missed: int) -> tuple[float, float, float]:
    """Precision, recall and F1 = 2PR / (P + R)."""
    precision = _ratio(correct, correct + wrong)
    recall = _ratio(correct, correct + missed)
    return precision, recall, _ratio(2 * correct, 2 * correct + wrong + missed)


def _agreement(found: Set[object], true: Set[object]) -> tuple[float, float, float]:
    return _scores_from_counts(len(found & true), len(found - true), len(true - found))


def _exact_share(chosen: dict[Pair, int], true: Delays) -> float:
    """Share of the predicted pairs with a true delay whose lag is such a delay."""
    exact = [lag in true[pair] for pair, lag in chosen.items() if pair in true]
    return sum(exact) / len(exact) if exact else math.nan


def _structural_hamming_distance(found: set[Pair], true: set[Pair]) -> int:
    wrong, missed = found - true, true - found
    turned = {(effect, cause) for cause, effect in wrong} & missed
    return len(wrong) + len(missed) - len(turned)


def _with_indirect(true: Delays) -> Delays:
    """Add the pairs that the truth links in two steps only, each with the sum of the delays."""
    extended = {pair: set(lags) for pair, lags in true.items()}
    for (cause, middle), first in true.items():
        for (start, effect), second in true.items():
            if start == middle and (cause, effect) not in true:
                sums = {a + b for a in first for b in second}
                extended.setdefault((cause, effect), set()).update(sums)
    return extended


def _short(delays: Delays) -> Delays:
    """Keep only what the published delay precision looks at: true delays of at most 1."""
    short = {pair: {lag for lag in lags if lag <= 1} for pair, lags in delays.items()}
    return {pair: lags for pair, lags in short.items() if lags}


def _paper_f1(found: Set[Pair], true: Delays) -> float:
    extended = _with_indirect(true).keys()
    correct, wrong = len(found & extended), len(found - extended)
    return _scores_from_counts(correct, wrong, missed=len(true.keys() - found))[2]


# -------------------------------------------------------------------- areas under curves


def _areas(names: tuple[str, ...], true: Delays, scores: ArrayLike) -> dict[str, float]:
    n = len(names)
    values = checked_array("scores", scores, (n, n))
    labels = np.array([[(c, e) in true for e in names] for c in names], dtype=bool).reshape(n, n)
    crossing = ~np.eye(n, dtype=bool)
    return {
        "auroc": auroc(labels, values),
        "auprc": auprc(labels, values),
        "off_diagonal_auroc": auroc(labels[crossing], values[crossing]),
        "off_diagonal_auprc": auprc(labels[crossing], values[crossing]),
    }


def auroc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve.

    It is the chance that a true pair has a higher score than a false one, ties counting half.
    NaN if one of the two classes is missing or a score is NaN.

    Examples
    --------
    >>> auroc([False, True, True], [0.1, 0.9, 0.1])
    0.75
    """
    true, false = _cumulative_counts(labels, scores)
    if not true[-1] or not false[-1]:
        return math.nan
    area = np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2)
    return float(area / (true[-1] * false[-1]))


def auprc(labels: ArrayLike, scores: ArrayLike) -> float:
    r"""Return the average precision :math:`\sum_k (R_k - R_{k-1}) P_k` over all thresholds.

    NaN if one of the two classes is missing or a score is NaN.

    Examples
    --------
    >>> auprc([True, False, True], [0.9, 0.5, 0.1])
    0.8333...
    """
    true, false = _cumulative_counts(labels, scores)
    if not true[-1] or not false[-1]:
        return math.nan
    precision = true[1:] / (true[1:] + false[1:])
    return float(np.sum(np.diff(true) * precision) / true[-1])


def _cumulative_counts(
    labels: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count true and false items at or above each distinct score, highest first, after a zero."""
    flags = np.asarray(labels, dtype=bool).ravel()
    values = np.asarray(scores, dtype=np.float64).ravel()
    if np.isnan(values).any():
        return np.zeros(1), np.zeros(1)
    _, level = np.unique(-values, return_inverse=True)
    counts = [
        np.bincount(level[side], minlength=level.max(initial=-1) + 1) for side in (flags, ~flags)
    ]
    true, false = (np.concatenate(([0.0], np.cumsum(count))) for count in counts)
    return true, false
