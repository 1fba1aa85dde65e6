"""Which past values drove one prediction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.data.windows import lagged_samples
from causalformer.errors import DataError
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.model.channels import ChannelNetwork

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

_NUMBERS = 20_000_000  # relevances in memory at a time
_BATCH = 256  # slots at a time, at most


@dataclass(frozen=True, eq=False)
class LocalExplanation:
    """The prediction of one slot, shared among the past values it rests on.

    Predictions and relevances are normal scores: standard deviations of the effect.

    Attributes
    ----------
    slot : int
        The predicted slot.
    names : tuple of str
        The series.
    relevance : array ``[cause, effect, lag - 1]``
        What each past value adds to the prediction.
    bias : array ``[effect]``
        What the network predicts of itself.
    prediction : array ``[effect]``
        The network's prediction, computed forwards.
    value : array ``[cause, lag - 1]``
        The past values, in the units of the data.
    observed : array ``[effect]``
        What came instead of the prediction; NaN where it is missing.
    """

    slot: int
    names: tuple[str, ...]
    relevance: FloatArray
    bias: FloatArray
    prediction: FloatArray
    value: FloatArray
    observed: FloatArray

    @property
    def conservation_error(self) -> float:
        """How far the shares are from adding up to the prediction, at most; rounding only."""
        return float(np.abs(self.relevance.sum((0, 2)) + self.bias - self.prediction).max())

    def in_order(self, names: tuple[str, ...]) -> "LocalExplanation":
        """Return the same with the series in another order."""
        at = [self.names.index(name) for name in names]
        return replace(
            self,
            names=names,
            relevance=self.relevance[np.ix_(at, at)],
            bias=self.bias[at],
            prediction=self.prediction[at],
            value=self.value[at],
            observed=self.observed[at],
        )

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per effect and past value, largest relevance first."""
        import pandas as pd

        rows = [
            (effect, cause, lag + 1, self.slot - lag - 1, self.value[j, lag], share[lag])
            for i, effect in enumerate(self.names)
            for j, cause in enumerate(self.names)
            for share in (self.relevance[j, i],)
            for lag in range(len(share))
        ]
        columns = ["effect", "cause", "lag", "slot", "value", "relevance"]
        frame = pd.DataFrame(rows, columns=columns)
        order = frame["relevance"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order].reset_index(drop=True)

    def _repr_html_(self) -> str:
        """Show the largest shares in notebooks."""
        return self.to_frame().to_html(index=False, max_rows=20)


def explain_slot(
    model: ChannelNetwork,
    scaled: Tensor,
    values: FloatArray,
    slot: int,
    names: tuple[str, ...],
    segment: slice | None = None,
) -> LocalExplanation:
    """Explain a slot of ``scaled[slot, series]``; `segment` is the stretch it lies in."""
    first, stop, _ = (segment or slice(None)).indices(len(scaled))
    if not first + model.max_lag <= slot < stop:
        raise DataError(
            f"slot {slot} cannot be explained: choose from {first + model.max_lag} (the first with "
            f"enough past) to {stop - 1}"
        )
    return next(explain_slots(model, scaled, values, [slot], names))


def explain_slots(
    model: ChannelNetwork,
    scaled: Tensor,
    values: FloatArray,
    slots: Sequence[int],
    names: tuple[str, ...],
) -> Iterator[LocalExplanation]:
    """Explain many slots of ``scaled[slot, series]``, each with enough past in its own segment."""
    n_lags = model.max_lag
    batch = min(_BATCH, max(1, _NUMBERS // (model.n_series**2 * n_lags)))

    def plain(tensor: Tensor) -> FloatArray:
        return tensor.cpu().double().numpy()

    for first in range(0, len(slots), batch):
        some = slots[first : first + batch]
        past = torch.cat([lagged_samples(scaled[s - n_lags : s + 1], n_lags)[0] for s in some])
        with torch.no_grad():
            prediction = model(past).mean(1)
        relevance, bias = channel_relevance(model, past)
        relevance = of_all_series(relevance, model)
        for k, slot in enumerate(some):
            yield LocalExplanation(
                slot=slot,
                names=names,
                relevance=plain(relevance[k].permute(0, 2, 1)),
                bias=plain(bias[k]),
                prediction=plain(prediction[k]),
                value=values[slot - n_lags : slot][::-1].T,
                observed=np.where(np.isnan(values[slot]), np.nan, plain(scaled[slot])),
            )


def of_all_series(
    relevance: Float[Tensor, "b cause lag effect"], model: ChannelNetwork
) -> Float[Tensor, "b series lag effect"]:
    """Put the relevance of candidates where their series are; that of the others is zero."""
    if model.sources is None:
        return relevance
    whole = relevance.new_zeros(len(relevance), model.n_series, *relevance.shape[2:])
    at = model.sources.T[None, :, None].expand_as(relevance)
    return whole.scatter_(1, at, relevance)
