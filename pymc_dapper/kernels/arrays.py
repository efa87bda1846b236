"""Parts of arrays, and types of numbers."""

import numpy as np
from numba import njit


@njit
def int64(x: int) -> int:
    """Make any whole number one of type int64.

    Functions that are given int16, int32, int64 and literal numbers are compiled for each of them.
    """
    return np.int64(x)  # type: ignore[return-value]


@njit
def copy_into(to: np.ndarray, start: int, source: np.ndarray) -> None:
    """Write an array into another one, from an index on.

    Assigning a slice does the same. But with that, numba compiles a message about shapes, which
    takes over a second.
    """
    for k in range(source.size):
        to[start + k] = source[k]


@njit
def with_room(values: np.ndarray, used: int, needed: int) -> np.ndarray:
    """Return an array of floats with enough room, which keeps the used part of another one."""
    if needed <= values.size:
        return values
    more = np.empty(2 * needed)
    copy_into(more, 0, values[:used])
    return more


@njit
def numbered(n: int) -> np.ndarray:
    """Return the whole numbers below n. numba takes longer to compile ``np.arange``."""
    numbers = np.empty(n, dtype=np.int64)
    for k in range(n):
        numbers[k] = k
    return numbers
