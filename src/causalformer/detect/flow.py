r"""Series that act on each other all the time: which of them do so directly.

Many systems flow: the rate of change of a series hangs on the values of its causes at any moment,
and slots are only when somebody looked. Between two slots the influence of a series passes on
through others. So the next value of an effect hangs on the last values of all series from which a
path leads to it in that time, and a test of what the past foretells finds them all, the better the
more slots there are. They are told apart by what a series does *during* the slot. With
:math:`\dot y = f(x)` the change of y in a slot is the integral of f over it, by the trapezoidal
rule

.. math:: y_t - y_{t-1} \approx \tfrac 1 2 \left( f(x_{t-1}) + f(x_t) \right) .

Here f is a sum of few terms out of the series, their squares, and products of two of them, each
taken as the mean of both ends of the slot (equations of motion are read from data like this, e.g.
Brunton et al. 2016). The rule is the same forwards and backwards in time, so it hardly takes an
effect for a cause: what z took from y during the slot is half the mean of y in z's own mean, and
that has nothing to do with the change of y, :math:`E (y_t + y_{t-1}) (y_t - y_{t-1}) = 0` in a
stationary series.
The terms are chosen one by one, as in `causalformer.detect.few_terms`: by the extended information
criterion (Chen and Chen 2008, γ = 1/2), unequal errors counted (White 1980; HC3). A cause is tested
by the best of its terms beside those chosen; the p-value is multiplied by the number of terms on
offer (Bonferroni), as the best was searched. The rule is not exact, and in a long series whatever
helps to mend it is significant. So the size of a cause is a share of the whole change, not of what
is left of it: what others leave is small in a flow without noise, and so is what mends it.

Not every system flows. If others act from one slot to the next, what they do meanwhile is news that
has not reached the effect yet, and their values at the beginning of a slot explain it better than
the means over the slot; if they act at once, within a slot, those at its end do. All three
explanations have equally many coefficients, so the means must be likelier than both others (Vuong
1989): each beside the effect's own past, and without its own present.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray

from causalformer.detect.evidence import SMALLEST
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_NOTHING = -1  # in place of a second cause
# tolerances, and limits of memory and of work; what decides is in `causalformer.policy`
_MOST_ROWS = 2**12
_LEAST_LEFT = 0.1  # of an error that a term has pulled to itself
_SAME = 1e-6  # share of a term's variance below which others say the same
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class FlowTests:
    """Which causes act during a slot; matrices are ``[cause, effect]``.

    Attributes
    ----------
    p_value : array ``[cause, effect]``
        One where nothing was tested.
    explained : array ``[cause, effect]``
        Share of the variance of the effect's change that the cause's best term explains.
    lead : array ``[effect]``
        Vuong's statistic: large if others act during the slot and not at one of its ends.
    flows : array of bool ``[effect]``
        Of which effects this is the better explanation.
    """

    p_value: FloatArray
    explained: FloatArray
    lead: FloatArray
    flows: BoolArray


def flow_tests(
    samples: Samples,
    unexplained: BoolArray,
    allowed: BoolArray,
    own: BoolArray,
    sources: Int[torch.Tensor, "effect cause"] | None = None,
) -> FlowTests:
    """Test what drives effects during a slot, if some are otherwise unexplained; see the module.

    Parameters
    ----------
    samples : Samples
        The past; series with gaps are not tested.
    unexplained : array of bool ``[effect]``
        Effects that decide together whether the series flow. If they do, each of the others
        decides for itself.
    allowed : array of bool ``[cause, effect]``
        Which causes there may be.
    own : array of bool ``[cause, effect]``
        Which cause is the effect itself.
    sources : tensor ``[effect, cause]``, optional
        Which series the causes of each effect are; see `causalformer.model.channels`.
    """
    n_effects = allowed.shape[1]
    p_value, explained = np.ones(allowed.shape), np.zeros(allowed.shape)
    follows = np.flatnonzero(np.diff(samples.slot) == 1) if samples.complete else np.arange(0)
    rows = follows[:: max(1, -(-len(follows) // _MOST_ROWS))]
    if len(rows) < POLICY.least_samples or not unexplained.any():
        return FlowTests(p_value, explained, np.zeros(n_effects), np.zeros(n_effects, dtype=bool))
    lead = np.zeros((len(rows), n_effects, 2))

    def test(effect: int) -> None:
        causes = np.flatnonzero(allowed[:, effect] | own[:, effect])
        series = causes if sources is None else sources[effect].cpu().numpy()[causes]
        start, end = (_values(samples, at, series) for at in (rows, rows + 1))
        itself = int(own[causes, effect].argmax())
        search = _Search(start[..., 0], end[..., 0], itself)
        p_value[causes, effect], explained[causes, effect] = search.tests()
        lead[:, effect] = search.lead(start[:, itself])

    for effect in np.flatnonzero(unexplained).tolist():
        test(effect)
    flows = unexplained & (_vuong(lead.sum(axis=1)) > POLICY.one_sided)
    if flows.any():
        for effect in np.flatnonzero(~unexplained).tolist():
            test(effect)
        flows |= _vuong(lead) > POLICY.one_sided
    return FlowTests(p_value, explained, _vuong(lead), flows)


def _values(
    samples: Samples, at: IntArray, series: IntArray
) -> Float[np.ndarray, "row series lag"]:
    """Give the past of some series in some samples."""
    rows, columns = (torch.from_numpy(x).to(samples.past.device) for x in (at, series))
    return np.asarray(samples.past[rows[:, None], columns].cpu().double().numpy())


def _vuong(lead: Float[np.ndarray, "row *effect two"]) -> FloatArray:
    """Give the mean of every lead over its standard error, of two the smaller one."""
    spread = np.sqrt(len(lead)) * lead.std(axis=0)
    return np.asarray((lead.sum(axis=0) / np.where(spread > 0, spread, 1.0)).min(axis=-1))


class _Search:
    """The few terms that the change of one series during a slot hangs on."""

    def __init__(
        self,
        start: Float[np.ndarray, "row cause"],
        end: Float[np.ndarray, "row cause"],
        own: int,
    ) -> None:
        self._start, self._end, self._own = start, end, own
        n_causes = start.shape[1]
        straight = np.column_stack([np.arange(n_causes), np.full(n_causes, _NOTHING)])
        self._pair = np.vstack([straight, np.column_stack(np.triu_indices(n_causes))])
        mean = (_products(start, self._pair) + _products(end, self._pair)) / 2
        self._terms = _standardised(mean)
        self._change = end[:, own] - start[:, own]
        self._change = self._change - self._change.mean()
        self._price = float(np.log(max(len(mean), 2)) + np.log(max(mean.shape[1], 1)))
        self._chosen = self._without_idle(self._choose())
        left, whole = self._change - self._told(self._change, self._chosen), self._change
        self._left = float(left @ left) / max(float(whole @ whole), _TINY)

    def tests(self) -> tuple[FloatArray, FloatArray]:
        """Give every cause's p-value, and the share of the change that its best term explains."""
        from scipy.special import stdtr

        n_rows, n_terms = self._terms.shape
        freedom = max(n_rows - len(self._chosen) - 2, 1)
        t = np.zeros(n_terms)
        others = np.setdiff1d(np.arange(n_terms), self._chosen)
        t[others] = self._t(others, self._chosen)
        t[self._chosen] = self._t_among(self._chosen)
        p_value = np.clip(n_terms * 2.0 * stdtr(freedom, -t), SMALLEST, 1.0)
        share = t**2 / freedom * self._left
        causes = range(self._start.shape[1])
        of_cause = [(self._pair == cause).any(axis=1) for cause in causes]
        return (
            np.array([p_value[its].min() for its in of_cause]),
            np.array([share[its].max() for its in of_cause]),
        )

    def lead(self, past: Float[np.ndarray, "row lag"]) -> Float[np.ndarray, "row two"]:
        """Compare the likelihoods of every row: others act during the slot, or at one of its ends.

        All beside the effect's own `past`. Its own present would tell all of the change.
        """
        own, pair = self._start[:, self._own], self._pair[self._chosen]
        pair = pair[((pair != self._own) & (pair != _NOTHING)).any(axis=1)]
        if not len(pair):
            return np.zeros((len(own), 2))
        end = self._end.copy()
        end[:, self._own] = own
        began, ended = _products(self._start, pair), _products(end, pair)
        alone = np.column_stack([np.ones(len(own)), past, own**2, own**3])
        during, *at_once = (
            _log_likelihood(self._end[:, self._own], np.hstack([alone, terms]))
            for terms in ((began + ended) / 2, began, ended)
        )
        return during[:, None] - np.column_stack(at_once)

    def _choose(self) -> IntArray:
        """Add terms one by one while they pay, unequal errors counted."""
        n_rows, n_terms = self._terms.shape
        chosen, refused = np.arange(0), np.zeros(n_terms, dtype=bool)
        rest, left = self._terms.copy(), self._change
        for _ in range(n_terms):
            if len(chosen) >= n_rows // POLICY.samples_per_weight:
                break
            size = (rest**2).sum(axis=0)
            usable = (size > _SAME * n_rows) & ~refused
            gained = np.where(usable, (left @ rest) ** 2 / np.where(usable, size, 1.0), 0.0)
            best = int(gained.argmax())
            if not self._pays(gained[best] / max(float(left @ left) - gained[best], _TINY)):
                break
            refused[best] = True  # or chosen
            if self._pays(float(_robust_t(rest[:, [best]], left)[0]) ** 2 / n_rows):
                chosen = np.append(chosen, best)
                direction = rest[:, best] / np.sqrt(size[best])
                rest -= np.outer(direction, direction @ rest)
                left = left - direction * (direction @ left)
        return chosen

    def _without_idle(self, chosen: IntArray) -> IntArray:
        """Drop terms that do not pay beside the others, one by one."""
        while len(chosen):
            t = self._t_among(chosen)
            least = int(t.argmin())
            if self._pays(t[least] ** 2 / len(self._terms)):
                break
            chosen = np.delete(chosen, least)
        return chosen

    def _pays(self, ratio: float) -> bool:
        """Say whether a term lowers the criterion: what it explains, as a ratio to the rest."""
        return len(self._terms) * float(np.log1p(ratio)) > self._price

    def _t_among(self, chosen: IntArray) -> FloatArray:
        """Give |t| of every chosen term beside the others."""
        each = [self._t(chosen[[k]], np.delete(chosen, k))[0] for k in range(len(chosen))]
        return np.array(each)

    def _t(self, terms: IntArray, others: IntArray) -> FloatArray:
        """Give |t| of each of some terms beside others."""
        columns = np.column_stack([self._terms[:, terms], self._change])
        freed = columns - self._told(columns, others)
        return _robust_t(freed[:, :-1], freed[:, -1])

    def _told(self, columns: FloatArray, terms: IntArray) -> FloatArray:
        """Give what some terms tell of columns, by least squares."""
        direction, _ = np.linalg.qr(self._terms[:, terms])
        return np.asarray(direction @ (direction.T @ columns))


def _robust_t(terms: Float[np.ndarray, "row term"], change: FloatArray) -> FloatArray:
    """Give |t| of each term alone; errors may be of unequal size (HC3)."""
    size = (terms**2).sum(axis=0)
    says_more = size > _SAME * len(terms)
    size = np.where(says_more, size, 1.0)
    weight, pull = change @ terms / size, terms**2 / size
    wrong = (change[:, None] - weight * terms) / np.maximum(1.0 - pull, _LEAST_LEFT)
    variance = (pull * wrong**2).sum(axis=0) / size
    return np.where(says_more, np.abs(weight) / np.sqrt(np.maximum(variance, _TINY**2)), 0.0)


def _products(
    values: Float[np.ndarray, "row cause"], pair: Int[np.ndarray, "term two"]
) -> Float[np.ndarray, "row term"]:
    """Multiply the causes of every pair; one of them may be nothing."""
    first, second = pair.T
    return np.asarray(values[:, first] * np.where(second == _NOTHING, 1.0, values[:, second]))


def _standardised(x: Float[np.ndarray, "row term"]) -> Float[np.ndarray, "row term"]:
    centred = x - x.mean(axis=0)
    return np.asarray(centred / np.maximum(centred.std(axis=0), _TINY))


def _log_likelihood(y: FloatArray, x: Float[np.ndarray, "row column"]) -> FloatArray:
    """Give the logarithm of every row's likelihood in a normal regression, but for a constant."""
    wrong = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    variance = max(float((wrong**2).mean()), _TINY)
    return np.asarray(-0.5 * (np.log(variance) + wrong**2 / variance))
