"""Sweeps over records that are each counted in one cell of each of several tables.

No record has a row: which cells a proposal changes is looked up by the values of its variables.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.entry_sweep import decisive_gain

AT_A_TIME = 128
"""Number of records that are looked up at a time; their cells fit into the cache."""


class Cells(NamedTuple):
    """In which cells records are, and would be."""

    sizes: np.ndarray
    """Ints, shape (number of variables,): how many values each has."""
    cells: np.ndarray
    """Ints: the cell at each place, -1 for none."""
    starts: np.ndarray
    """Ints, shape (t,): where the places of each table start."""
    columns: np.ndarray
    """Ints, shape (t, 1 + width): how many variables a table sees, and which."""
    strides: np.ndarray
    """Ints, shape (t, width): by how much a step of each variable changes the place."""
    present: np.ndarray
    proposed: np.ndarray
    """Ints, shape (number of variables, n): the values of records, from 0 on."""


@njit
def sweep_by_cell(
    log_term: Callable[..., float],
    context: np.ndarray,
    arrays: tuple[Any, ...],
    thresholds: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update one record after another, against a density with one term per cell.

    Parameters
    ----------
    log_term, context
        As in :func:`~pymc_dapper.records.kernels.entry_sweep.decide_by_entries`.
    arrays : Cells
        In which cells records are, and would be.
    thresholds
        As in :func:`~pymc_dapper.records.kernels.sums_sweep.sweep_by_blocks`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were taken.
    log_density : float
        Sum of the terms after the sweep.
    """
    cells = Cells(*arrays)
    present, proposed = cells.present, cells.proposed
    check_cells(cells.sizes, present, proposed)
    n_present, n_tables, n_cells = len(thresholds), len(cells.starts), len(context)
    total = counted(cells, present, n_present, n_cells)
    terms = np.empty(n_cells)
    n_impossible = 0
    for j in range(n_cells):
        terms[j] = log_term(total[j], context[j])
        n_impossible += not is_finite(terms[j])

    accepted = np.empty(present.shape[1], dtype=np.bool_)
    for i in range(len(accepted)):
        accepted[i] = True
    # The cells that records would leave and reach in each table, -1 for none, and their terms.
    cells_of, proposed_terms = np.empty((AT_A_TIME, n_tables, 2), np.int64), np.empty((n_tables, 2))
    undecided = np.empty(AT_A_TIME, dtype=np.uint32)
    for start in range(0, n_present, AT_A_TIME):
        stop, n_undecided = min(start + AT_A_TIME, n_present), 0
        # A proposal of the present values changes nothing: it is accepted at once.
        for i in range(start, stop):
            # Branch-free: which records change is as random as their proposals.
            undecided[n_undecided] = i
            differ = present[0, i] != proposed[0, i]
            for j in range(1, len(present)):
                differ |= present[j, i] != proposed[j, i]
            n_undecided += differ
        look_up(cells, present, undecided[:n_undecided], cells_of[:, :, 0])
        look_up(cells, proposed, undecided[:n_undecided], cells_of[:, :, 1])
        for k in range(n_undecided):
            i, changes, gain = undecided[k], cells_of[k], 0.0
            for t in range(n_tables):
                if changes[t, 0] == changes[t, 1]:
                    changes[t, 0] = changes[t, 1] = -1
                for side in range(2):
                    if changes[t, side] >= 0:
                        cell = np.uint64(changes[t, side])
                        count = total[cell] + (2 * side - 1)
                        proposed_terms[t, side] = log_term(count, context[cell])
                        gain += proposed_terms[t, side] - terms[cell]
            accepted[i] = thresholds[i] < decisive_gain(gain, n_impossible)
            if accepted[i]:
                for t in range(n_tables):
                    for side in range(2):
                        if changes[t, side] >= 0:
                            cell = np.uint64(changes[t, side])
                            if n_impossible > 0:
                                n_impossible -= not is_finite(terms[cell])
                                n_impossible += not is_finite(proposed_terms[t, side])
                            total[cell] += 2 * side - 1
                            terms[cell] = proposed_terms[t, side]
    log_density = 0.0
    for j in range(n_cells):
        log_density += terms[j]
    return accepted, log_density


@njit
def place_of(tables: Any, t: int, values: np.ndarray, i: int) -> int:
    """Look up the place of a record in a table.

    ``tables`` have ``starts``, ``columns``, ``strides`` and ``cells`` as `Cells` do; ``values``
    have a row for each variable. Indices are unsigned: a negative one would count from the end, and
    to look for it takes time.
    """
    place = tables.starts[t]
    for k in range(tables.columns[t, 0]):
        place += tables.strides[t, k] * values[np.uint64(tables.columns[t, k + 1]), i]
    return place


@njit
def look_up(tables: Any, values: np.ndarray, records: np.ndarray, out: np.ndarray) -> None:
    """Look up the cells of some records in all tables: each table's arrays are found once."""
    places = np.empty(len(records), dtype=np.uint32)
    for t in range(len(tables.starts)):
        for r in range(len(records)):
            places[r] = tables.starts[t]
        for k in range(tables.columns[t, 0]):
            column, stride = values[np.uint64(tables.columns[t, k + 1])], tables.strides[t, k]
            for r in range(len(records)):
                places[r] += stride * column[records[r]]
        for r in range(len(records)):
            out[r, t] = tables.cells[places[r]]


@njit
def counted(tables: Any, values: np.ndarray, n_present: int, n_cells: int) -> np.ndarray:
    """Count the first records in the cells; whole numbers, which no sum of them rounds."""
    # An array for two sides, as the sweep has: so `look_up` is compiled once.
    counts, cells_of = np.zeros(n_cells), np.empty((AT_A_TIME, len(tables.starts), 2), np.int64)
    records = np.empty(AT_A_TIME, dtype=np.uint32)
    for start in range(0, n_present, AT_A_TIME):
        n = min(AT_A_TIME, n_present - start)
        for k in range(n):
            records[k] = start + k
        look_up(tables, values, records[:n], cells_of[:, :, 0])
        for k in range(n):
            for t in range(len(tables.starts)):
                own = cells_of[k, t, 0]
                if own >= 0:  # else it is counted in none
                    counts[np.uint64(own)] += 1
    return counts


@njit
def check_cells(sizes: np.ndarray, present: np.ndarray, proposed: np.ndarray) -> None:
    """Check that all values have a place.

    Raises
    ------
    IndexError
        If one hasn't: compiled code would read what lies beside it.
    """
    missing = False
    for j in range(len(sizes)):
        for i in range(present.shape[1]):
            missing |= (present[j, i] < 0) | (present[j, i] >= sizes[j])
            missing |= (proposed[j, i] < 0) | (proposed[j, i] >= sizes[j])
    if missing:
        raise IndexError("a record has a value that its distribution can't take")
