"""Sums over the first 0, 1, ..., n rows."""

import numpy as np
from numba import njit

RUNS = 4
"""Runs of rows that are cumulated side by side: each addition waits for the one before it."""


@njit
def sums_of_first(rows: np.ndarray) -> np.ndarray:
    """Add up the first 0, 1, ..., n rows of a matrix, shape (n, m); the sums have n + 1."""
    n, m = rows.shape
    length = n // RUNS
    sums = np.empty((n + 1, m))
    for j in range(m):
        first = second = third = fourth = 0.0
        sums[0, j] = 0.0
        for i in range(length):
            first += rows[i, j]
            second += rows[length + i, j]
            third += rows[2 * length + i, j]
            fourth += rows[3 * length + i, j]
            sums[1 + i, j] = first
            sums[1 + length + i, j] = second
            sums[1 + 2 * length + i, j] = third
            sums[1 + 3 * length + i, j] = fourth
        second += first
        third += second
        fourth += third
        for i in range(1, 1 + length):
            sums[length + i, j] += first
            sums[2 * length + i, j] += second
            sums[3 * length + i, j] += third
        for i in range(RUNS * length, n):
            fourth += rows[i, j]
            sums[1 + i, j] = fourth
    return sums
