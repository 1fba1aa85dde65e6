"""Arrays of numbers that users hand in: ``[cause, effect]`` or ``[cause, effect, lag]``."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causalformer.errors import DataError


def is_whole(value: object) -> bool:
    """Say whether a value is a whole number, Python's or NumPy's; True and False are not.

    Examples
    --------
    >>> is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def checked_array(
    what: str, values: ArrayLike, shape: tuple[int | None, ...]
) -> NDArray[np.float64]:
    """Return ``values`` as float64, or raise `DataError` if they do not fit ``shape``.

    Parameters
    ----------
    what : str
        Name of the argument, for the message.
    values : array_like
        Numbers.
    shape : tuple of int or None
        Lengths of the axes cause, effect and, if there is a third, lag; None for any length.

    Examples
    --------
    >>> checked_array("lag", [[1, 2]], (2, 2))
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: lag has shape (1, 2), not (2, 2) = (cause, effect)
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must hold numbers only: {error}") from error
    fits = array.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        axes = ("cause", "effect", "lag")[: len(shape)]
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise DataError(f"{what} has shape {array.shape}, not ({wanted}) = ({', '.join(axes)})")
    return array
