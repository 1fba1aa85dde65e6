"""Which lag of a cause it is: the one that alone, without the cause's other lags, explains most.

The read-out (channels and straight lags) is fitted again in closed form with all other causes and a
single lag of this one. All lags have equally many coefficients, so the errors of the fit itself can
be compared; held-out errors only add noise, and a profile of the full network's relevance spreads
over neighbouring lags where the cause is smooth.
"""

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from causalformer.detect.samples import Samples
from causalformer.model.channels import ChannelNetwork

FloatArray = NDArray[np.float64]


@torch.no_grad()
def single_lag_errors(
    model: ChannelNetwork,
    samples: Samples,
    pairs: NDArray[np.bool_],
    ridge: float,
    lag_weight: Float[Tensor, " lag"],
) -> FloatArray:
    """Give the mean squared error with each single lag, ``[cause, effect, lag - 1]``.

    Only for `pairs` ``[cause, effect]``, infinite elsewhere. The kernels are those of the first
    fold.
    """
    past, max_lag = samples.past, samples.max_lag
    errors = np.full((*pairs.shape, max_lag), np.inf)
    inputs, straight = model.inputs(past), model.straight(past)
    shrink = torch.cat([lag_weight.repeat(model.n_causes), lag_weight.new_full((1,), 1e-6)])
    columns = torch.arange(len(shrink), device=past.device)
    summed = model.channels(past)[:, 0]  # slot, effect, channel
    for cause in np.flatnonzero(pairs.any(axis=1)).tolist():
        effects = torch.from_numpy(np.flatnonzero(pairs[cause])).to(past.device)
        if model.sources is None:
            lags, columns_of = inputs[:, cause, :, None, None], straight
        else:
            lags = inputs[effects, :, cause].movedim(0, -1)[..., None]  # slot, lag, effect, -
            columns_of = straight[effects]
        shares = lags * model.kernel[cause, :, 0][:, effects]
        others = summed[:, effects] - shares.sum(1)
        foreign = columns.div(max_lag, rounding_mode="floor") != cause
        for lag in range(max_lag):
            kept = foreign | (columns == cause * max_lag + lag)
            errors[cause, pairs[cause], lag] = _fit_errors(
                torch.nn.functional.silu(others + shares[:, lag]),
                columns_of[..., kept],
                samples.now[:, effects],
                samples.observed[:, effects],
                ridge * shrink[kept],
                ridge,
            )
    return errors


def _fit_errors(
    hidden: Float[Tensor, "slot effect channel"],
    straight: Float[Tensor, "*effect slot column"],
    now: Float[Tensor, "slot effect"],
    observed: Float[Tensor, "slot effect"],
    shrink: Float[Tensor, " column"],
    channel_shrink: float,
) -> FloatArray:
    """Fit every effect by ridge regression where it was observed; give its mean squared error.

    That is infinite where the equations have no solution.
    """
    bent = hidden.transpose(0, 1)  # effect, slot, channel
    features = torch.cat([bent, straight.expand(len(bent), *straight.shape[-2:])], dim=2)
    count, target = observed.T[..., None], now.T[..., None]
    n_counted = count.sum((1, 2)).clamp(min=1)
    counted = (features * count).transpose(1, 2)
    gram = (counted @ features).double()
    penalty = torch.cat([torch.full_like(bent[0, 0], channel_shrink), shrink])
    gram.diagonal(dim1=1, dim2=2).add_(penalty * n_counted[:, None])
    factor, failed = torch.linalg.cholesky_ex(gram)
    weights = torch.cholesky_solve((counted @ target).double(), factor)
    residual = (target - features @ weights.to(features)) * count
    error = residual.square().sum((1, 2)) / n_counted
    return np.asarray(error.masked_fill(failed > 0, torch.inf).cpu().double().numpy())
