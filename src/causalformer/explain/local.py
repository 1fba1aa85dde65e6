"""Which past values drove one prediction."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causalformer.data.windows import lagged_samples
from causalformer.errors import DataError
from causalformer.explain.channel_relevance import channel_relevance
from causalformer.model.channels import ChannelNetwork

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]


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
    """

    slot: int
    names: tuple[str, ...]
    relevance: FloatArray
    bias: FloatArray
    prediction: FloatArray
    value: FloatArray

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
    window = scaled[slot - model.max_lag : slot + 1]
    past, _ = lagged_samples(window, model.max_lag)
    with torch.no_grad():
        prediction = model(past).mean(1)[0]
    relevance, bias = channel_relevance(model, past)

    def plain(tensor: Tensor) -> FloatArray:
        return tensor.double().cpu().numpy()

    return LocalExplanation(
        slot=slot,
        names=names,
        relevance=plain(relevance[0].permute(0, 2, 1)),
        bias=plain(bias[0]),
        prediction=plain(prediction),
        value=values[slot - model.max_lag : slot][::-1].T,
    )
