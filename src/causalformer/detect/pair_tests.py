"""What the data say about every pair of series, in typed parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from causalformer.detect.evidence import edge_local_fdr, edge_q
from causalformer.detect.removal import RemovalErrors
from causalformer.detect.samples import Samples
from causalformer.policy import POLICY

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PairTests:
    """What is known of every pair by itself, without the others; all begin ``[cause, effect]``.

    Attributes
    ----------
    p_value : array
        Combined p-value. Of a pair that is not tested it is only a rank, above one half.
    relative_gain : array
        By which share the held-out error grows without the cause.
    size : array
        `relative_gain`, or the share of variance explained in the test of few terms where that
        counts, if larger; where series flow, the share of the effect's change that the cause
        explains.
    strength : array
        Spread of the cause's contribution to the prediction, in standard deviations of the effect.
    terms_p : array
        p-value of the test of few terms.
    t : array ``[cause, effect, lag - 1]``
        Largest |t| of every lag in the test of few terms.
    lag_profile : array ``[cause, effect, lag - 1]``
        How much of the cause comes through each lag: the square of `t`, or where the terms are not
        believed the mean square of the lag's contribution to the prediction.
    tested : array of bool
        Whether the pair was tested: it is allowed, and the network looked at it, or few terms are
        believed.
    candidates : array of bool
        Whether the network looked at the pair.
    flows : array of bool
        Whether the pair was judged by what the cause does during the slot.
    """

    p_value: FloatArray
    relative_gain: FloatArray
    size: FloatArray
    strength: FloatArray
    terms_p: FloatArray
    t: FloatArray
    lag_profile: FloatArray
    tested: BoolArray
    candidates: BoolArray
    flows: BoolArray

    def at(self, pairs: Any) -> Self:
        """Take some pairs, named by a mask or by their causes and effects."""
        return type(self)(**{name: array[pairs] for name, array in vars(self).items()})

    def put(self, pairs: Any, others: Self) -> Self:
        """Put `others` in the place of some pairs."""
        whole = self.copy()
        for name, array in vars(whole).items():
            array[pairs] = getattr(others, name)
        return whole

    def copy(self) -> Self:
        """Copy all arrays, so that they may be written to."""
        return type(self)(**{name: array.copy() for name, array in vars(self).items()})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put lists of pairs, as `at` takes them, one behind the other."""
        names = vars(parts[0])
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the data say about all pairs together.

    Attributes
    ----------
    pairs : PairTests
        The test of every pair.
    family : array of bool ``[cause, effect]``
        Which pairs count in the rate of false discoveries; those that are not tested count as if
        without evidence.
    samples : Samples
        What the tests rest on.
    removal : RemovalErrors
        Held-out errors.
    """

    pairs: PairTests
    family: BoolArray
    samples: Samples
    removal: RemovalErrors

    @cached_property
    def q_value(self) -> FloatArray:
        """q-values among self-loops and among edges between series; one where nothing is tested."""
        return edge_q(self._tested_p, self.family)

    @cached_property
    def local_fdr(self) -> FloatArray:
        """Local false discovery rates among edges between series; zero for self-loops."""
        return edge_local_fdr(self._tested_p, self.family)

    @property
    def _tested_p(self) -> FloatArray:
        return np.where(self.pairs.tested, self.pairs.p_value, 1.0)

    @property
    def largest_size(self) -> FloatArray:
        """The largest size that the data allow, one-sided at 75 %.

        A size is a share of variance, the square of a partial correlation, and that has a standard
        error of about one over the root of the number of samples.
        """
        n_slots = np.maximum(np.diag(self.removal.n_together), 1.0)
        size = np.maximum(self.pairs.size, 0.0)
        beyond = NormalDist().inv_cdf(1.0 - POLICY.doubt)
        return np.asarray((np.sqrt(size) + beyond / np.sqrt(n_slots)) ** 2)
