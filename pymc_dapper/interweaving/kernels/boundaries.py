"""Boundaries between categories moved, with the people whose noise they pass.

Each row of a conditional table divides the unit interval among the categories, and a person's noise
is a position in the interval of his category. If the boundary between two categories moves, the
people between its old and its new place change category, and nobody else does.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite

MAX_TRIES = 30
"""Places that a boundary tries before it stays."""

PER_BOUNDARY = 2 + MAX_TRIES
"""Uniform variates: place of the first interval, depth of the slice, and places in it."""


class Tables(NamedTuple):
    """Conditional tables of columns."""

    sizes: np.ndarray
    """Ints, shape (d,): number of categories of each column."""
    starts: np.ndarray
    """Ints, shape (d + 1,): where its table starts in the vector of all."""
    strides: np.ndarray
    """Ints, shape (d, d): what a step of the second column adds to places in the first one's table.
    Its own step adds one."""
    of: np.ndarray
    """Ints, shape (d, d + 1): in how many columns' tables a column's category counts, and which;
    its own comes first."""


class Released(NamedTuple):
    """Tables in whose cells people were counted."""

    cells: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    strides: np.ndarray
    """As in :class:`~pymc_dapper.records.kernels.cell_sweep.Cells`."""
    of: np.ndarray
    """Ints, shape (d, t + 1): in how many of them a column counts, and which."""
    steps: np.ndarray
    """Ints, shape (d, t): what a step of the column adds to the place in each."""


def n_uniforms(tables: Tables, n: int) -> int:
    """Return how many uniform variates a pass over n people takes."""
    rows = np.diff(tables.starts) // tables.sizes
    return int(n * len(tables.sizes) + (rows * (tables.sizes - 1) * (1 + PER_BOUNDARY)).sum())


@njit(inline="always")
def move_boundaries(
    log_term: Callable[..., float],
    context: np.ndarray,
    released: Released,
    tables: Tables,
    widths: np.ndarray,
    records: np.ndarray,
    probabilities: np.ndarray,
    concentrations: np.ndarray,
    uniforms: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move each boundary of each row of all tables once, with categories in random order.

    Parameters
    ----------
    log_term, context
        As in :func:`~pymc_dapper.records.kernels.entry_sweep.decide_by_entries`.
    released : Released
        In which cells people are.
    tables : Tables
        How columns depend on each other.
    widths : ndarray of float64, shape (d,)
        How many people the interval tried first has.
    records : ndarray of int, shape (n, d)
        The people's categories.
    probabilities, concentrations : ndarray of float64
        All conditional tables, and the concentrations of their Dirichlet priors.
    uniforms : ndarray of float64, shape (n_uniforms(tables, n),)
        Uniform on (0, 1).

    Returns
    -------
    probabilities : ndarray of float64
    records : ndarray of int
        After the moves.
    outcome : ndarray of float64, shape (2, d)
        Of each column, how many places a boundary tried on average, and how many people changed.
    """
    n, d = records.shape
    n_cells = len(context)
    p, logs, people = probabilities.copy(), np.log(probabilities), records.copy()
    total, terms, possible = np.zeros(n_cells), np.empty(n_cells), True
    for i in range(n):
        for t in range(len(released.starts)):
            place = released.starts[t]
            for k in range(released.columns[t, 0]):
                place += released.strides[t, k] * people[i, released.columns[t, k + 1]]
            if released.cells[place] >= 0:
                total[released.cells[place]] += 1
    for j in range(n_cells):
        terms[j] = log_term(total[j], context[j])
        possible &= is_finite(terms[j])

    change, is_changed = np.zeros(n_cells), np.zeros(n_cells, dtype=np.bool_)
    changed, proposed = np.empty(n_cells, dtype=np.int64), np.empty(n_cells)
    place_of, who = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    near, moving = np.empty(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    outcome = np.zeros((2, d))
    used = 0
    for c in range(d if possible else 0):
        if released.of[c, 0] == 0:
            continue  # nothing was released that leaves more open than the people do
        size, start = tables.sizes[c], tables.starts[c]
        n_places = tables.starts[c + 1] - start
        # Categories of each row in random order, and people by row and by that order.
        order, rank = np.empty(n_places, dtype=np.int64), np.empty(n_places, dtype=np.int64)
        for row in range(0, n_places, size):
            for k in range(size):
                order[row + k] = k
            for k in range(size - 1):
                other = k + min(int((size - k) * uniforms[used]), size - 1 - k)
                order[row + k], order[row + other] = order[row + other], order[row + k]
                used += 1
            for k in range(size):
                rank[row + order[row + k]] = row + k
        place_of[:] = people[:, c]
        for k in range(d):
            if k != c and tables.strides[c, k] > 0:
                for i in range(n):
                    place_of[i] += tables.strides[c, k] * people[i, k]
        firsts = np.zeros(n_places + 1, dtype=np.int64)
        for i in range(n):
            firsts[rank[place_of[i]] + 1] += 1
        for j in range(n_places):
            firsts[j + 1] += firsts[j]
        filled = firsts.copy()
        for i in range(n):
            place = rank[place_of[i]]
            who[filled[place]] = i
            filled[place] += 1
        # Where in the interval of his category each of them is.
        noise = uniforms[used : used + n].copy()
        used += n
        for row in range(0, n_places, size):
            of_all = widths[c] / max(firsts[row + size] - firsts[row], 1)
            for q in range(row, row + size - 1):
                a, b = row + order[q], row + order[q + 1]
                both = p[start + a] + p[start + b]
                share, rest = p[start + a] / both, p[start + b] / both
                low = -uniforms[used] * of_all / both
                high = min(low + of_all / both, rest)
                low, height = max(low, -share), np.log(uniforms[used + 1])
                n_left, n_near = 0, 0
                for j in range(firsts[q], firsts[q + 1]):
                    near[n_left] = j
                    n_left += share * (noise[j] - 1) > low
                n_near = n_left
                for j in range(firsts[q + 1], firsts[q + 2]):
                    near[n_near] = j
                    n_near += rest * noise[j] < high
                by, taken = 0.0, False
                for attempt in range(MAX_TRIES):
                    by = low + (high - low) * uniforms[used + 2 + attempt]
                    outcome[0, c] += 1
                    step = order[q + 1] - order[q] if by < 0 else order[q] - order[q + 1]
                    begin, end = (0, n_left) if by < 0 else (n_left, n_near)
                    n_changed, n_movers = 0, 0
                    gain = (concentrations[start + a] - 1) * np.log1p(by / share)
                    gain += (concentrations[start + b] - 1) * np.log1p(-by / rest)
                    for k in range(begin, end):
                        j = near[k]
                        if share * (noise[j] - 1) <= by if by < 0 else rest * noise[j] >= by:
                            continue
                        i = who[j]
                        moving[n_movers] = j
                        n_movers += 1
                        for s in range(released.of[c, 0]):
                            t = released.of[c, s + 1]
                            before = released.starts[t]
                            for r in range(released.columns[t, 0]):
                                column = released.columns[t, r + 1]
                                before += released.strides[t, r] * people[i, column]
                            after = released.cells[before + released.steps[c, s] * step]
                            before = released.cells[before]
                            if before == after:
                                continue
                            if before >= 0:
                                if not is_changed[before]:
                                    is_changed[before] = True
                                    changed[n_changed] = before
                                    n_changed += 1
                                change[before] -= 1
                            if after >= 0:
                                if not is_changed[after]:
                                    is_changed[after] = True
                                    changed[n_changed] = after
                                    n_changed += 1
                                change[after] += 1
                        for s in range(1, tables.of[c, 0]):
                            child = tables.of[c, s + 1]
                            place = tables.starts[child]
                            for r in range(d):
                                place += tables.strides[child, r] * people[i, r]
                            gain += logs[place + tables.strides[child, c] * step] - logs[place]
                    for k in range(n_changed):
                        cell = changed[k]
                        proposed[k] = log_term(total[cell] + change[cell], context[cell])
                        gain += proposed[k] - terms[cell]
                    taken = (gain > height) & is_finite(gain) & (-share < by) & (by < rest)
                    for k in range(n_changed):
                        cell = changed[k]
                        if taken:
                            total[cell] += change[cell]
                            terms[cell] = proposed[k]
                        change[cell], is_changed[cell] = 0.0, False
                    if taken:
                        break
                    if by < 0:
                        low = by
                    else:
                        high = by
                used += PER_BOUNDARY
                if not taken:
                    continue
                p[start + a], p[start + b] = both * (share + by), both * (rest - by)
                outcome[1, c] += n_movers
                # Those who moved come beside the boundary, to the others of their new category.
                for k in range(n_movers):
                    j = moving[n_movers - 1 - k] if by < 0 else moving[k]
                    people[who[j], c] += step
                    firsts[q + 1] += -1 if by < 0 else 1
                    other = firsts[q + 1] - (by > 0)
                    who[j], who[other] = who[other], who[j]
                    noise[j], noise[other] = noise[other], noise[j]
                for j in range(firsts[q + 1], firsts[q + 2]):
                    came = by < 0 and j < firsts[q + 1] + n_movers
                    place = share * (noise[j] - 1) if came else rest * noise[j]
                    noise[j] = (place - by) / (rest - by)
        for j in range(start, tables.starts[c + 1]):
            logs[j] = np.log(p[j])
        outcome[0, c] /= n_places - n_places // size
    return p, people, outcome
