"""People's columns drawn anew, one at a time, given all else.

A person who changes in all columns changes cells of all released tables, which is refused where
these are known almost exactly. One column changes the cells of its own tables alone.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from pymc_dapper.interweaving.kernels.boundaries import (
    Released,
    Tables,
    count_cells,
    gain_of_children,
)
from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.cell_sweep import place_of


@njit
def places(
    released: Released, c: int, people: np.ndarray, i: int, before: np.ndarray, cells: np.ndarray
) -> None:
    """Find where a person is in each released table that counts a column, and in which cell."""
    for s in range(released.of[c, 0]):
        before[s] = place_of(released, released.of[c, s + 1], people.T, i)
        cells[s] = released.cells[before[s]]


@njit
def choose(weights: np.ndarray, size: int, uniform: float) -> int:
    """Choose one of the first ``size`` entries, given logarithms of their probabilities."""
    best, total = weights[:size].max(), 0.0
    for v in range(size):
        total += np.exp(weights[v] - best)
        weights[v] = total
    chosen = 0
    while chosen < size - 1 and uniform * total >= weights[chosen]:
        chosen += 1
    return chosen


@njit(inline="always")
def redraw_columns(
    log_term: Callable[..., float],
    context: np.ndarray,
    released: Released,
    tables: Tables,
    people: np.ndarray,
    p: np.ndarray,
    uniforms: np.ndarray,
) -> int:
    """Draw each column of each person from its conditional distribution, given all else.

    Inputs are as in :func:`~pymc_dapper.interweaving.kernels.boundaries.move_boundaries`. The array
    ``people`` is changed in place. Uniform variates have shape (n * d,). Returns how many people
    changed in a column that a released table counts.
    """
    n, d = people.shape
    total, terms = count_cells(log_term, context, released, people)
    logs, n_changed = np.log(p), 0
    weights, n_tables = np.empty(tables.sizes.max()), len(released.starts)
    before, cells = np.empty(n_tables, dtype=np.int64), np.empty(n_tables, dtype=np.int64)
    for i in range(n if is_finite(terms.sum()) else 0):
        changed = False
        for c in range(d):
            present, size, own = people[i, c], tables.sizes[c], tables.starts[c]
            for r in range(d):
                own += tables.strides[c, r] * people[i, r]
            places(released, c, people, i, before, cells)
            for v in range(size):
                step = v - present
                gain = logs[own + step] + gain_of_children(tables, c, people[i], step, logs)
                for s in range(released.of[c, 0]):
                    cell = cells[s]
                    after = released.cells[before[s] + released.steps[c, s] * step]
                    if cell != after and cell >= 0:
                        gain += log_term(total[cell] - 1, context[cell]) - terms[cell]
                    if cell != after and after >= 0:
                        gain += log_term(total[after] + 1, context[after]) - terms[after]
                weights[v] = gain if is_finite(gain) else -np.inf
            step = choose(weights, size, uniforms[i * d + c]) - present
            if step != 0:
                changed |= released.of[c, 0] > 0
                people[i, c] += step
                for s in range(released.of[c, 0]):
                    cell = cells[s]
                    after = released.cells[before[s] + released.steps[c, s] * step]
                    if cell != after:
                        for k, one in ((cell, -1), (after, 1)):
                            if k >= 0:
                                total[k] += one
                                terms[k] = log_term(total[k], context[k])
        n_changed += changed
    return n_changed
