"""Data sets that are drawn from a recipe instead of read from a folder, and holes in data."""

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from causalformer.data import SeriesTable
from causalformer.data.imputation import impute
from causalformer.datasets import Generated

Pattern: TypeAlias = Literal["random", "blocks"]

_BLOCK = 20


@dataclass(frozen=True)
class DrawnFile:
    """A file of a suite that is drawn when it is needed.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from causalformer.datasets import make_var
    >>> file = DrawnFile("0", partial(make_var, 3, 50, random_state=0))
    >>> file.load().series.n_slots, file.fingerprint == replace(file, name="1").fingerprint
    (50, True)
    """

    name: str
    draw: partial[Generated]
    orientation: str = ""

    @property
    def fingerprint(self) -> str:
        """A name of what is drawn."""
        recipe = (
            f"{self.draw.func.__qualname__}{self.draw.args}{sorted(self.draw.keywords.items())}"
        )
        return hashlib.sha256(recipe.encode()).hexdigest()[:12]

    def load(self) -> Generated:
        """Draw series and graph."""
        return self.draw()


@dataclass(frozen=True)
class Drawn:
    """A data set that is drawn, under the name that its results have as a folder.

    Methods look at `max_lag` lags if it is given, else at as many as they do by themselves.
    """

    name: str
    files: tuple[DrawnFile, ...]
    max_lag: int | None = None


def with_holes(
    values: NDArray[np.float64], share: float, pattern: Pattern, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Remove a share of ``values[slot, series]``: single ones, or blocks of each series.

    Examples
    --------
    >>> x = with_holes(np.zeros((1000, 2)), 0.3, "blocks", np.random.default_rng(0))
    >>> np.isnan(x).mean(axis=0).round(1)
    array([0.3, 0.3])
    """
    holes = rng.random(values.shape) < share
    if pattern == "blocks":
        n_blocks = -(-len(values) // _BLOCK)
        chosen = [rng.permutation(n_blocks) < round(share * n_blocks) for _ in values.T]
        holes = np.repeat(np.stack(chosen, axis=1), _BLOCK, axis=0)[: len(values)]
    return np.where(holes, np.nan, values)


def filled(series: SeriesTable) -> SeriesTable:
    """Draw straight lines through the holes; beyond the last value of a series, its mean.

    Examples
    --------
    >>> holed = SeriesTable(np.array([[1.0], [np.nan], [3.0], [np.nan]]), ("x",))
    >>> filled(holed).values[:, 0].tolist()
    [1.0, 2.0, 3.0, 2.0]
    """
    return impute(impute(series, "interpolate"), "mean")
