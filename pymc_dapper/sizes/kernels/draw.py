"""A random order of the present rows, and a draw of one of several numbers."""

import numpy as np
from numba import njit

NEGLIGIBLE = -40.0
"""Relative to the largest weight, a weight with this logarithm is below rounding error."""


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


@njit(fastmath=False)
def draw_index(log_weights: np.ndarray, u: float, last: int) -> tuple[int, float]:
    """Draw an index with probabilities in proportion to exp(log_weights).

    A weight that isn't a number counts as none. Returned are the index, -1 if nothing has any
    weight, and the probability of the indices from ``last`` on.
    """
    largest = -np.inf
    for k in range(len(log_weights)):
        if log_weights[k] > largest:
            largest = log_weights[k]
    if largest == -np.inf:
        return -1, 0.0
    cumulated = np.empty(len(log_weights))
    total = before = 0.0
    for k in range(len(log_weights)):
        if k == last:
            before = total
        relative = log_weights[k] - largest
        if relative > NEGLIGIBLE:
            total += np.exp(relative)
        cumulated[k] = total
    index = int(np.searchsorted(cumulated, u * total, side="right"))
    return index, (total - before) / total
