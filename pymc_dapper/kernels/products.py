"""Categories chosen with probabilities that are products of tables, looked up entry by entry."""

import numpy as np
from numba import njit

from pymc_dapper.kernels.arrays import int64

OUT_OF_RANGE = "an index in the data, or of a record, is out of range"


@njit
def row_of(
    indices: np.ndarray, lengths: np.ndarray, first: int, n_axes: int, n: int, i: int
) -> int:
    """Return the number of the row that an entry looks up in a table.

    Parameters
    ----------
    indices : ndarray of int64, shape (number of axes * n,)
        By which each of n entries looks up its row, for each axis of each table but the last.
    lengths : ndarray of int64, shape (number of axes,)
        Lengths of these axes.
    first, n_axes : int
        The table's first axis, and their number. A table of one row has none.
    n, i : int
        Number of entries, and the entry's own.

    Raises
    ------
    IndexError
        If an index is out of range.
    """
    row = 0
    for k in range(first, first + n_axes):
        at = indices[k * n + i]
        if at < 0:
            at += lengths[k]
        if at < 0 or at >= lengths[k]:
            raise IndexError(OUT_OF_RANGE)
        row = row * lengths[k] + at
    return row


@njit
def first_rows(lengths: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return the number of the first row of each table, all being numbered; and that of all rows.

    ``axes`` are the tables' numbers of axes, without their last ones.
    """
    starts, first = np.zeros(len(axes) + 1, np.int64), 0
    for t in range(len(axes)):
        rows = 1
        for k in range(first, first + axes[t]):
            rows *= lengths[k]
        first += axes[t]
        starts[t + 1] = starts[t] + rows
    return starts


@njit
def choose_by_products(
    size: int, u: np.ndarray, weights: np.ndarray, indices: np.ndarray, lengths: np.ndarray,
    axes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Choose a category for each uniform number, in proportion to products of weights.

    Parameters
    ----------
    size : int
        Number of categories.
    u : ndarray of float64, shape (n,)
        Uniform numbers.
    weights : ndarray of float64
        All tables, flat, one after the other. Each has rows of ``size`` weights.
    indices, lengths : ndarray of int64
        See :func:`row_of`.
    axes : ndarray of int64, shape (number of tables,)
        How many axes each table has, without its last one.

    Returns
    -------
    ndarray of int64, shape (n,)
        -1 where the products' sum isn't a finite number above zero.
    """
    n, starts = len(u), first_rows(lengths, axes)
    products, chosen = np.empty(size), np.empty(n, np.int64)
    for i in range(n):
        products[:] = 1.0
        first = int64(0)
        for t in range(len(axes)):
            row = starts[t] + row_of(indices, lengths, first, axes[t], n, i)
            first += axes[t]
            for c in range(size):
                products[c] *= weights[row * size + c]
        for c in range(1, size):
            products[c] += products[c - 1]
        total, at = products[size - 1], 0
        for c in range(size - 1):
            at += u[i] * total >= products[c]
        chosen[i] = at if 0 < total < np.inf else -1
    return chosen
