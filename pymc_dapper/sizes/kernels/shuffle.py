"""A random order of the present rows."""

import numpy as np
from numba import njit


@njit
def shuffled(rows: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Put the first n rows of a matrix into an order given by n uniform variates on [0, 1).

    All orders are equally likely: the last place gets any row, the one before it any of the
    remaining rows, and so on (Fisher and Yates). The same variates give the same order for other
    matrices.
    """
    rows = rows.copy()
    for i in range(len(uniforms) - 1, 0, -1):
        k = int(uniforms[i] * (i + 1))
        for j in range(rows.shape[1]):
            rows[i, j], rows[k, j] = rows[k, j], rows[i, j]
    return rows
