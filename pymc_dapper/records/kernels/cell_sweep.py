"""Sweeps over records that are each counted in one cell of each of several tables.

No record has a row: which cells a proposal changes is looked up by the values of its variables.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.entry_sweep import decisive_gain
from pymc_dapper.records.kernels.record_sweep import log_gain


class Cells(NamedTuple):
    """In which cells records are, and would be."""

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
    values: Cells,
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update one record after another, against a density with one term per cell.

    Parameters
    ----------
    log_term, context
        As in :func:`~pymc_dapper.records.kernels.entry_sweep.decide_by_entries`.
    values : Cells
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
    cells, starts, columns, strides, present, proposed = values
    n_present, n_tables, n_cells = len(log_uniforms), len(starts), len(context)
    # Counts: whole numbers, which no sum of them rounds. Indices are unsigned: a negative one would
    # count from the end, and to look for it takes time.
    total = np.zeros(n_cells)
    for i in range(n_present):
        for t in range(n_tables):
            place = starts[t]
            for k in range(columns[t, 0]):
                place += strides[t, k] * present[i, np.uint64(columns[t, k + 1])]
            cell = cells[np.uint64(place)]
            if cell >= 0:
                total[np.uint64(cell)] += 1
    terms = np.empty(n_cells)
    n_impossible = 0
    for j in range(n_cells):
        terms[j] = log_term(total[j], context[j])
        n_impossible += not is_finite(terms[j])

    accepted = np.ones(len(present), dtype=np.bool_)
    separable = log_removed.size > 0
    # What a table without a change writes is overwritten.
    changed, changes = np.empty(2 * n_tables, dtype=np.uint64), np.empty(2 * n_tables)
    proposed_terms = np.empty(2 * n_tables)
    for i in range(n_present):
        gain, n_changed = 0.0, 0
        for t in range(n_tables):
            before, after = starts[t], starts[t]
            for k in range(columns[t, 0]):
                column, stride = np.uint64(columns[t, k + 1]), strides[t, k]
                before += stride * present[i, column]
                after += stride * proposed[i, column]
            left, reached = cells[np.uint64(before)], cells[np.uint64(after)]
            changed[n_changed], changes[n_changed] = np.uint64(left), -1.0
            n_changed += (left != reached) & (left >= 0)
            changed[n_changed], changes[n_changed] = np.uint64(reached), 1.0
            n_changed += (left != reached) & (reached >= 0)
        for k in range(n_changed):
            cell = changed[k]
            proposed_terms[k] = log_term(total[cell] + changes[k], context[cell])
            gain += proposed_terms[k] - terms[cell]
        gain = decisive_gain(gain, n_impossible)
        if separable:
            gain += log_gain(log_removed[i], log_added[i])
        accepted[i] = log_uniforms[i] < gain
        if accepted[i]:
            for k in range(n_changed):
                cell = changed[k]
                if n_impossible > 0:
                    n_impossible -= not is_finite(terms[cell])
                    n_impossible += not is_finite(proposed_terms[k])
                total[cell] += changes[k]
                terms[cell] = proposed_terms[k]
    return accepted, terms.sum()


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
