"""Arrays of numbers: those that users hand in, ``[cause, effect]`` or so, and axes of others."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causalformer.errors import DataError

_SAME = 1e-6  # share of the largest size below which a direction is none
_CLEAR = 1e-3  # share above which squares tell directions well enough


def is_whole(value: object) -> bool:
    """Say whether a value is a whole number, Python's or NumPy's; True and False are not.

    Examples
    --------
    >>> is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def orthonormal(columns: NDArray[np.float64], largest: float = 0.0) -> NDArray[np.float64]:
    """Give orthonormal axes of columns, but for those that are zero beside the largest.

    Examples
    --------
    >>> abs(orthonormal(np.array([[3.0, 6.0], [4.0, 8.0]])).round(6))
    array([[0.6],
           [0.8]])
    """
    square, turned = np.linalg.eigh(columns.T @ columns)
    if (square > _CLEAR**2 * square.max(initial=largest**2)).all():
        return np.asarray(columns @ (turned / np.sqrt(square)))
    axes, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(axes[:, size > _SAME * size.max(initial=largest)])


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
