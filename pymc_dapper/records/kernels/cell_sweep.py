"""Sweeps over records that are each counted in one cell of each of several tables.

No record has a row: which cells a proposal changes is looked up by the values of its variables.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.entry_sweep import decisive_gain
from pymc_dapper.records.kernels.record_sweep import log_gain

AT_A_TIME = 1024
"""Number of records in which undecided ones are searched at a time; they fit into the cache."""


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
    """Ints, shape (t, width): what a step of these adds to the place."""
    present: np.ndarray
    proposed: np.ndarray
    """Ints, shape (n, number of variables): the values of records, from 0 on."""


@njit(inline="always")
def sweep_by_cell(
    log_term: Callable[..., float],
    context: np.ndarray,
    arrays: tuple[Any, ...],
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update one record after another, against a density with one term per cell.

    Parameters
    ----------
    log_term, context
        As in :func:`~pymc_dapper.records.kernels.entry_sweep.decide_by_entries`.
    arrays : Cells
        In which cells records are, and would be.
    log_removed, log_added, log_uniforms
        As in :func:`~pymc_dapper.records.kernels.block_sweep.sweep_by_blocks`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were taken.
    log_density : float
        Sum of the terms after the sweep.
    """
    sizes, cells, starts, columns, strides, present, proposed = arrays
    check_cells(sizes, present, proposed)
    places = (cells, starts, columns, strides)
    n_present, n_tables, n_cells = len(log_uniforms), len(starts), len(context)
    # Counts: whole numbers, which no sum of them rounds.
    total = np.zeros(n_cells)
    for i in range(n_present):
        for t in range(n_tables):
            own = cell_of(places, t, present, i)
            if own >= 0:
                total[np.uint64(own)] += 1
    terms = np.empty(n_cells)
    n_impossible = 0
    for j in range(n_cells):
        terms[j] = log_term(total[j], context[j])
        n_impossible += not is_finite(terms[j])

    accepted = np.ones(len(present), dtype=np.bool_)
    separable = log_removed.size > 0
    # The cells that a record would leave and reach in each table, -1 for none, and their terms.
    changes, proposed_terms = np.empty((n_tables, 2), dtype=np.int64), np.empty((n_tables, 2))
    undecided = np.empty(AT_A_TIME, dtype=np.uint32)
    for start in range(0, n_present, AT_A_TIME):
        stop = min(start + AT_A_TIME, n_present)
        n_undecided = find_undecided(present, proposed, separable, start, stop, undecided)
        for i in undecided[:n_undecided]:
            gain = 0.0
            for t in range(n_tables):
                changes[t, 0] = cell_of(places, t, present, i)
                changes[t, 1] = cell_of(places, t, proposed, i)
                if changes[t, 0] == changes[t, 1]:
                    changes[t, 0] = changes[t, 1] = -1
                for side in range(2):
                    if changes[t, side] >= 0:
                        cell = np.uint64(changes[t, side])
                        count = total[cell] + (2 * side - 1)
                        proposed_terms[t, side] = log_term(count, context[cell])
                        gain += proposed_terms[t, side] - terms[cell]
            gain = decisive_gain(gain, n_impossible)
            if separable:
                gain += log_gain(log_removed[i], log_added[i])
            accepted[i] = log_uniforms[i] < gain
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
    return accepted, terms.sum()


@njit(inline="always")
def cell_of(places: tuple[np.ndarray, ...], t: int, values: np.ndarray, i: int) -> int:
    """Look up the cell of a table in which a record is counted; -1 for none.

    Indices are unsigned: a negative one would count from the end, and to look for it takes time.
    """
    cells, starts, columns, strides = places
    place = starts[t]
    for k in range(columns[t, 0]):
        place += strides[t, k] * values[i, np.uint64(columns[t, k + 1])]
    return cells[np.uint64(place)]


@njit(inline="always")
def find_undecided(
    present: np.ndarray,
    proposed: np.ndarray,
    separable: bool,
    start: int,
    stop: int,
    found: np.ndarray,
) -> int:
    """Find the records whose proposals need a decision, from ``start`` to ``stop - 1``.

    If no separable factors decide, a proposal of the present values is accepted at once. ``found``
    is overwritten with these records, in order; their number is returned.
    """
    n_found = 0
    for i in range(start, stop):
        # Branch-free: which records change is as random as their proposals.
        found[n_found] = i
        differ = separable
        for j in range(present.shape[1]):
            differ |= present[i, j] != proposed[i, j]
        n_found += differ
    return n_found


@njit(inline="always")
def check_cells(sizes: np.ndarray, present: np.ndarray, proposed: np.ndarray) -> None:
    """Check that all values have a place.

    Raises
    ------
    IndexError
        If one hasn't: compiled code would read what lies beside it.
    """
    missing = False
    for i in range(len(present)):
        for j in range(len(sizes)):
            missing |= (present[i, j] < 0) | (present[i, j] >= sizes[j])
            missing |= (proposed[i, j] < 0) | (proposed[i, j] >= sizes[j])
    if missing:
        raise IndexError("a record has a value that its distribution can't take")
