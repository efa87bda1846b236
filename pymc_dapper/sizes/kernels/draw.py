"""A draw of one of several numbers by their log-weights."""

import numpy as np
from numba import njit

NEGLIGIBLE = -40.0
"""Relative to the largest weight, a weight with this logarithm is below rounding error."""


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
