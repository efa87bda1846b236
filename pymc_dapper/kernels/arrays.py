"""Parts of arrays."""

import numpy as np
from numba import njit


@njit
def copy_into(to: np.ndarray, start: int, source: np.ndarray) -> None:
    """Write an array into another one, from an index on.

    Assigning a slice does the same. But with that, numba compiles a message about shapes, which
    takes over a second.
    """
    for k in range(source.size):
        to[start + k] = source[k]
