"""All generators by name."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from causalformer.datasets.generated import Generated
from causalformer.datasets.greenhouse import make_greenhouse
from causalformer.datasets.lorenz96 import make_lorenz96
from causalformer.datasets.random_system import make_random_system
from causalformer.datasets.structures import STRUCTURES, make_structure
from causalformer.datasets.var import make_var
from causalformer.errors import SettingsError

GENERATORS: Final[Mapping[str, Callable[..., Generated]]] = MappingProxyType(
    {
        **{name: partial(make_structure, name) for name in STRUCTURES},
        "lorenz96": make_lorenz96,
        "var": make_var,
        "random-system": make_random_system,
        "greenhouse": make_greenhouse,
    }
)
"""The generators that `make_dataset` and ``causalformer datasets make`` know."""


def make_dataset(name: str, **options: object) -> Generated:
    """Make a data set by the name of its generator.

    Parameters
    ----------
    name : str
        One of `GENERATORS`: diamond, mediator, v_structure, fork, lorenz96, var, random-system,
        greenhouse.
    **options
        Options of that generator, such as ``n_slots`` and ``random_state``.

    Returns
    -------
    Generated
        The series and their graph.

    Raises
    ------
    SettingsError
        Unknown name, or an option that the generator does not have.

    Examples
    --------
    >>> make_dataset("diamond", n_slots=300, random_state=0).series.n_series
    4
    """
    if name not in GENERATORS:
        raise SettingsError(f"no data set is called {name!r}; choose among {', '.join(GENERATORS)}")
    known = [p for p in inspect.signature(GENERATORS[name]).parameters if p != "name"]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise SettingsError(
            f"data set {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"its options are {', '.join(known)}"
        )
    return GENERATORS[name](**options)
