"""Data sets that are drawn from a recipe instead of read from a folder."""

import hashlib
from dataclasses import dataclass
from functools import partial

from causalformer.datasets import Generated


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
    """A data set that is drawn, under the name that its results have as a folder."""

    name: str
    files: tuple[DrawnFile, ...]
