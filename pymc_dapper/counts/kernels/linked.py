"""Lines of linked tables, which have columns in common and agree on their margins.

A line changes some columns of some people. It does so in one of two ways:

- *in turn*: the cells are those of all combinations of two categories of each changed column, with
  more and fewer people in turn. Tables that have all of these columns change, and agree on what
  they share. In others, the changes add up to zero.
- *at once*: the same people change all of these columns. Every table with any of them changes.

The description of linked tables is packed into one array of integers, as the other inputs of a
sweep are: each array argument of a compiled function takes time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.draws import pick
from pymc_dapper.counts.kernels.line import Line
from pymc_dapper.kernels.arrays import int64


def packed(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Join arrays of integers, with the starts of all and the end of the last before them."""
    starts = len(arrays) + 1 + np.cumsum([0] + [len(x) for x in arrays])
    return np.concatenate([starts, *arrays]).astype(np.int64)


@njit
def part(packed: np.ndarray, k: int) -> np.ndarray:
    """Return one of the packed arrays."""
    return packed[packed[k] : packed[k + 1]]


FIRST = int64.py_func(0)
"""The first of packed arrays. numba compiles ``part`` once for int64, but anew for each literal."""
MOST_CHANGED = 3
"""Most columns that change along a line."""
NONE, AT_ONCE = -1, -2
"""In a set of columns: no column; and ``AT_ONCE - column`` for one that changes at once."""


def pack_linked(
    sizes: np.ndarray, starts: np.ndarray, strides: np.ndarray, sets: np.ndarray
) -> np.ndarray:
    """Pack the description of linked tables into one array.

    Parameters
    ----------
    sizes : ndarray of int64, shape (number of columns,)
        The categories of each column.
    starts : ndarray of int64, shape (number of tables,)
        The first cell of each table.
    strides : ndarray of int64, shape (number of tables, number of columns)
        How many cells lie between two categories; 0 if the table doesn't have the column.
    sets : ndarray of int64, shape (number of lines, MOST_CHANGED)
        The columns that change along each line of a sweep, filled up with ``NONE``. If the same
        people change all, each is written as ``AT_ONCE - column``.
    """
    return packed([sizes, starts, strides.ravel(), sets.ravel()])


@njit
def lines_of(linked: np.ndarray) -> int:
    """Return the number of lines in a sweep: the sets lie between two of the starts."""
    return (linked[4] - linked[3]) // MOST_CHANGED


def n_categories(linked: np.ndarray) -> int:
    """Return how many categories a sweep draws at most."""
    return int(lines_of.py_func(linked) * (part.py_func(linked, 0).size + MOST_CHANGED))


def longest_line(linked: np.ndarray) -> int:
    """Return the largest number of cells in a line."""
    return part.py_func(linked, 1).size * 2**MOST_CHANGED


@njit
def set_linked_line(linked: np.ndarray, k: int, line: Line, draws: Any) -> int:
    """Write a line of linked tables, and return the number of its cells.

    Two categories are drawn for each column of the line's set, and one for each other column. What
    is drawn doesn't depend on counts.
    """
    sizes, starts = part(linked, FIRST), part(linked, FIRST + 1)
    strides = part(linked, FIRST + 2)
    sets = part(linked, FIRST + 3)
    category, by = np.full(sizes.size, -1), np.zeros(sizes.size, dtype=np.int64)
    n_changed, at_once, n_cells = 0, False, 0
    for i in range(k * MOST_CHANGED, (k + 1) * MOST_CHANGED):
        entry = sets[i]
        if entry == NONE:
            continue
        at_once = entry < NONE
        column = AT_ONCE - entry if at_once else entry
        category[column] = pick(draws, 0, sizes[column] - 1)
        other = pick(draws, 0, sizes[column] - 2)
        by[column] = other + (other >= category[column]) - category[column]
        n_changed += 1
    for table in range(starts.size):
        n_here, first, distance = 0, starts[table], 0
        for column in range(sizes.size):
            if strides[table * sizes.size + column] > 0 and by[column] != 0:
                n_here += 1
        if n_here < (1 if at_once else n_changed):
            continue
        for column in range(sizes.size):
            stride = strides[table * sizes.size + column]
            if stride > 0 and category[column] < 0:
                category[column] = pick(draws, 0, sizes[column] - 1)
            first += stride * category[column]
            distance += stride * by[column]
        line.cells[n_cells], line.steps[n_cells], n_corners = first, 1, 1
        for column in range(sizes.size):
            stride = strides[table * sizes.size + column]
            if at_once or stride * by[column] == 0:
                continue
            for corner in range(n_cells, n_cells + n_corners):
                line.cells[corner + n_corners] = line.cells[corner] + stride * by[column]
                line.steps[corner + n_corners] = -line.steps[corner]
            n_corners *= 2
        if at_once:
            line.cells[n_cells + 1], line.steps[n_cells + 1], n_corners = first + distance, -1, 2
        n_cells += n_corners
    return n_cells
