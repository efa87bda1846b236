"""Categories chosen with probabilities that are products of tables, looked up entry by entry."""

import numpy as np
from numba import njit

from pymc_dapper.kernels.arrays import int64

OUT_OF_RANGE = "an index in the data, or of a record, is out of range"

AT_A_TIME = 256
"""Number of entries that are looked up at a time."""

SHARE = 8
"""Tables are multiplied if they have one row for so many entries, or fewer."""


@njit
def look_up(
    rows: np.ndarray, indices: np.ndarray, lengths: np.ndarray, first: int, n_axes: int,
    n: int, start: int,
) -> None:  # fmt: skip
    """Find the rows that entries from ``start`` on look up in a table, numbered from 0.

    Parameters
    ----------
    rows : ndarray of int64, shape (number of entries looked at,)
        Zeros. If they are the rows of another table, the two tables' pairs of rows are numbered.
    indices : ndarray of int64, shape (number of axes * n,)
        By which each of n entries looks up its row, for each axis of each table but the last.
    lengths : ndarray of int64, shape (number of axes,)
        Lengths of these axes.
    first, n_axes : int
        The table's first axis, and their number. A table of one row has none.
    n, start : int
        Number of all entries, and the first one looked at.

    Raises
    ------
    IndexError
        If an index is out of range.
    """
    outside = False
    for k in range(first, first + n_axes):
        length, at = lengths[k], indices[k * n + start : k * n + start + len(rows)]
        for i in range(len(rows)):  # branch-free
            outside |= (at[i] < -length) | (at[i] >= length)
            rows[i] = rows[i] * length + at[i] + length * (at[i] < 0)
    if outside:
        raise IndexError(OUT_OF_RANGE)


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
def multiply_neighbours(
    size: int, weights: np.ndarray, starts: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Multiply neighbouring tables into one of all pairs of their rows, of at most ``most`` rows.

    Returns the new tables, flat; the first row of each, all being numbered; and the number of old
    tables before it.
    """
    firsts, before, n = np.zeros_like(starts), np.zeros_like(starts), 0
    for t in range(len(starts) - 1):
        rows, joined = starts[t + 1] - starts[t], firsts[n] - firsts[max(n - 1, 0)]
        if n > 0 and joined * rows <= most:
            firsts[n] += joined * (rows - 1)
        else:
            n += 1
            firsts[n] = firsts[n - 1] + rows
        before[n] = t + 1
    tables = np.ones((firsts[n], size))
    for m in range(n):
        for r in range(firsts[m], firsts[m + 1]):
            rest = r - firsts[m]
            for t in range(before[m + 1] - 1, before[m] - 1, -1):
                rest, row = divmod(rest, starts[t + 1] - starts[t])
                for c in range(size):
                    tables[r, c] *= weights[(starts[t] + row) * size + c]
    return tables.ravel(), firsts[: n + 1], before[: n + 1]


@njit
def choose_by_products(
    size: int, u: np.ndarray, weights: np.ndarray, indices: np.ndarray, lengths: np.ndarray,
    axes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Choose a category for each uniform number, in proportion to products of weights.

    Small tables are multiplied first: then there are fewer factors to look up for each entry.

    Parameters
    ----------
    size : int
        Number of categories.
    u : ndarray of float64, shape (n,)
        Uniform numbers.
    weights : ndarray of float64
        All tables, flat, one after the other. Each has rows of ``size`` weights.
    indices, lengths : ndarray of int64
        See :func:`look_up`.
    axes : ndarray of int64, shape (number of tables,)
        How many axes each table has, without its last one.

    Returns
    -------
    ndarray of int64, shape (n,)
        -1 where the products' sum isn't a finite number above zero.
    """
    n, starts = len(u), first_rows(lengths, axes)
    tables, firsts, before = multiply_neighbours(size, weights, starts, n // SHARE)
    n_tables, products, chosen = len(before) - 1, np.ones(size), np.empty(n, np.int64)
    for start in range(0, n, AT_A_TIME):
        stop, axis = min(start + AT_A_TIME, n), int64(0)
        rows = np.zeros((n_tables, stop - start), np.int64)
        for m in range(n_tables):
            for t in range(before[m], before[m + 1]):
                look_up(rows[m], indices, lengths, axis, axes[t], n, start)
                axis += axes[t]
        for i in range(start, stop):
            products[:] = 1.0
            for m in range(n_tables):
                row = (firsts[m] + rows[m, i - start]) * size
                for c in range(size):
                    products[c] *= tables[row + c]
            for c in range(1, size):
                products[c] += products[c - 1]
            total, at = products[size - 1], 0
            for c in range(size - 1):
                at += u[i] * total >= products[c]
            chosen[i] = at if 0 < total < np.inf else -1
    return chosen


@njit
def choose_by_rows(
    u: np.ndarray, table: np.ndarray, indices: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Choose a category for each uniform number, in proportion to a row of a table.

    Parameters
    ----------
    u : ndarray of float64, shape (n,)
        Uniform numbers.
    table : ndarray of float64, shape (number of rows, number of categories)
        The weights.
    indices, lengths : ndarray of int64
        See :func:`look_up`.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 where the weights aren't numbers.
    """
    n, last, cumulated = len(u), table.shape[1] - 1, table.copy()
    for row in cumulated:
        for c in range(last):
            row[c + 1] += row[c]
    chosen = np.empty(n, np.int64)
    for start in range(0, n, AT_A_TIME):
        rows = np.zeros(min(AT_A_TIME, n - start), np.int64)
        look_up(rows, indices, lengths, 0, len(lengths), n, start)
        for i in range(len(rows)):
            row, at = rows[i], int64(0)
            bound = u[start + i] * cumulated[row, last]
            for c in range(last):  # branch-free
                at += bound >= cumulated[row, c]
            chosen[start + i] = at
    return chosen
