"""A random order of the records that are there."""

import numpy as np
from numba import njit


@njit
def shuffled(uniforms: np.ndarray) -> np.ndarray:
    """Put 0, ..., n - 1 into an order that n uniform variates on [0, 1) say, each equally likely.

    The last place gets any of all, the one before it any of those left, and so on (Fisher and
    Yates).
    """
    n = len(uniforms)
    order = np.arange(n)
    for i in range(n - 1, 0, -1):
        k = int(uniforms[i] * (i + 1))
        order[i], order[k] = order[k], order[i]
    return order
