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
from pymc_dapper.records.kernels.cell_sweep import counted, place_of

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
    """Ints, shape (d, d): by how much a step of the second column changes the place in the first
    one's table. A step of the column itself changes it by one."""
    of: np.ndarray
    """Ints, shape (d, d + 1): how many columns' tables depend on a column's category, and which;
    its own comes first."""


class Released(NamedTuple):
    """Tables in whose cells people were counted."""

    cells: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    strides: np.ndarray
    """As in :class:`~pymc_dapper.records.kernels.cell_sweep.Cells`."""
    of: np.ndarray
    """Ints, shape (d, t + 1): how many of them count a column, and which."""
    steps: np.ndarray
    """Ints, shape (d, t): by how much a step of the column changes the place in each."""


def n_uniforms(tables: Tables, n: int) -> int:
    """Return how many uniform variates a pass over n people takes."""
    rows = np.diff(tables.starts) // tables.sizes
    return int(n * len(tables.sizes) + (rows * (tables.sizes - 1) * (1 + PER_BOUNDARY)).sum())


class People(NamedTuple):
    """People by row of a table, and by category, in the order that categories have there."""

    order: np.ndarray
    """Ints: the category at each place of the table."""
    firsts: np.ndarray
    """Ints: where the people of each place begin in ``who``."""
    who: np.ndarray
    """Ints, shape (n,): the numbers of the people, place by place."""
    noise: np.ndarray
    """Shape (n,): how far along the interval of his category each of them is, from 0 to 1."""


class Changes(NamedTuple):
    """The changes that moved people make; filled for each place that a boundary tries."""

    of_cells: np.ndarray
    """Shape (number of cells,): by how much each cell's count changes."""
    is_changed: np.ndarray
    """Bool, shape (number of cells,): whether it changes."""
    cells: np.ndarray
    """Ints: the numbers of the cells that change; the first ones are filled."""
    terms: np.ndarray
    """The new terms of these cells."""
    near: np.ndarray
    """Ints: places in `People.who` of those that the boundary may pass."""
    movers: np.ndarray
    """Ints: places in `People.who` of those that it does pass."""


@njit
def sort_people(
    tables: Tables, c: int, people: np.ndarray, uniforms: np.ndarray, used: int
) -> tuple[People, int]:
    """Put categories of each row in random order, and people by row and by that order."""
    size, n = tables.sizes[c], len(people)
    n_places = tables.starts[c + 1] - tables.starts[c]
    order, rank = np.empty(n_places, dtype=np.int64), np.empty(n_places, dtype=np.int64)
    for row in range(0, n_places, size):
        for k in range(size):
            order[row + k] = k
        for k in range(size - 1):
            other = row + k + min(int((size - k) * uniforms[used]), size - 1 - k)
            order[row + k], order[other] = order[other], order[row + k]
            used += 1
        for k in range(size):
            rank[row + order[row + k]] = row + k
    place_of = np.empty(n, dtype=np.int64)
    for i in range(n):
        place_of[i] = people[i, c]
    for k in range(len(tables.sizes)):
        if k != c and tables.strides[c, k] > 0:
            for i in range(n):
                place_of[i] += tables.strides[c, k] * people[i, k]
    firsts = np.zeros(n_places + 1, dtype=np.int64)
    for i in range(n):
        firsts[rank[place_of[i]] + 1] += 1
    for j in range(n_places):
        firsts[j + 1] += firsts[j]
    filled, who = firsts.copy(), np.empty(n, dtype=np.int64)
    for i in range(n):
        place = rank[place_of[i]]
        who[filled[place]] = i
        filled[place] += 1
    return People(order, firsts, who, uniforms[used : used + n].copy()), used + n


@njit
def move_people(
    by_row: People, q: int, c: int, people: np.ndarray, movers: np.ndarray, n_movers: int,
    share: float, rest: float, by: float,
) -> None:  # fmt: skip
    """Sort people who changed category in among those of their new category."""
    order, firsts, who, noise = by_row
    step = order[q + 1] - order[q] if by < 0 else order[q] - order[q + 1]
    for k in range(n_movers):
        j = movers[n_movers - 1 - k] if by < 0 else movers[k]
        people[who[j], c] += step
        firsts[q + 1] += -1 if by < 0 else 1
        other = firsts[q + 1] - (by > 0)
        who[j], who[other] = who[other], who[j]
        noise[j], noise[other] = noise[other], noise[j]
    for j in range(firsts[q + 1], firsts[q + 2]):
        came = by < 0 and j < firsts[q + 1] + n_movers
        place = share * (noise[j] - 1) if came else rest * noise[j]
        noise[j] = (place - by) / (rest - by)


@njit
def add_changes(
    released: Released, c: int, people: np.ndarray, i: int, step: int, changes: Changes,
    n_changed: int,
) -> int:  # fmt: skip
    """Add the changes of cells if a person changes category; return how many cells have changed."""
    for s in range(released.of[c, 0]):
        before = place_of(released, released.of[c, s + 1], people.T, i)
        after = released.cells[before + released.steps[c, s] * step]
        before = released.cells[before]
        if before != after:
            for cell, one in ((before, -1.0), (after, 1.0)):
                if cell >= 0:
                    if not changes.is_changed[cell]:
                        changes.is_changed[cell] = True
                        changes.cells[n_changed] = cell
                        n_changed += 1
                    changes.of_cells[cell] += one
    return n_changed


@njit
def settle_cells(
    changes: Changes, n_changed: int, taken: bool, total: np.ndarray, terms: np.ndarray
) -> None:
    """Apply the changes of cells if a place is accepted, and reset them."""
    for k in range(n_changed):
        cell = changes.cells[k]
        if taken:
            total[cell] += changes.of_cells[cell]
            terms[cell] = changes.terms[k]
        changes.of_cells[cell], changes.is_changed[cell] = 0.0, False


@njit
def gain_of_children(
    tables: Tables, c: int, person: np.ndarray, step: int, logs: np.ndarray
) -> float:
    """Gain in log-probability of a person's other columns, if his category changes."""
    gain = 0.0
    for s in range(1, tables.of[c, 0]):
        child = tables.of[c, s + 1]
        place = tables.starts[child]
        for r in range(len(person)):
            place += tables.strides[child, r] * person[r]
        gain += logs[place + tables.strides[child, c] * step] - logs[place]
    return gain


@njit
def people_near(
    by_row: People, q: int, share: float, rest: float, low: float, high: float, near: np.ndarray
) -> tuple[int, int]:
    """List people near a boundary; return how many are left of it, and how many in all."""
    n_left = 0
    for j in range(by_row.firsts[q], by_row.firsts[q + 1]):
        near[n_left] = j
        n_left += share * (by_row.noise[j] - 1) > low
    n_near = n_left
    for j in range(by_row.firsts[q + 1], by_row.firsts[q + 2]):
        near[n_near] = j
        n_near += rest * by_row.noise[j] < high
    return n_left, n_near


@njit(inline="always")
def count_cells(
    log_term: Callable[..., float], context: np.ndarray, released: Released, people: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Count people in cells; return the counts and the terms."""
    total = counted(released, people.T, len(people), len(context))
    terms = np.empty(len(context))
    for j in range(len(context)):
        terms[j] = log_term(total[j], context[j])
    return total, terms


@njit(inline="always")
def move_boundary(
    log_term: Callable[..., float],
    context: np.ndarray,
    released: Released,
    tables: Tables,
    boundary: tuple[int, int, int, float],
    people: np.ndarray,
    p: np.ndarray,
    logs: np.ndarray,
    concentrations: np.ndarray,
    uniforms: np.ndarray,
    by_row: People,
    changes: Changes,
    total: np.ndarray,
    terms: np.ndarray,
) -> tuple[int, int]:
    """Move a boundary by a slice; return how many places it tried, and how many people changed.

    ``boundary`` has the column, where its row starts, the place of the left category, and how wide
    the interval tried first is, as a probability. All else is as in :func:`move_boundaries`;
    people, probabilities, counts and terms are changed.
    """
    c, row, q, width = boundary
    order, who, noise = by_row.order, by_row.who, by_row.noise
    a, b = tables.starts[c] + row + order[q], tables.starts[c] + row + order[q + 1]
    both = p[a] + p[b]
    share, rest = p[a] / both, p[b] / both
    low = -uniforms[0] * width / both
    high = min(low + width / both, rest)
    low, height = max(low, -share), np.log(uniforms[1])
    n_left, n_near = people_near(by_row, q, share, rest, low, high, changes.near)
    for attempt in range(MAX_TRIES):
        by = low + (high - low) * uniforms[2 + attempt]
        step = order[q + 1] - order[q] if by < 0 else order[q] - order[q + 1]
        begin, end = (0, n_left) if by < 0 else (n_left, n_near)
        n_changed, n_movers, gain = 0, 0, 0.0
        for k in range(begin, end):
            j = changes.near[k]
            if share * (noise[j] - 1) > by if by < 0 else rest * noise[j] < by:
                changes.movers[n_movers] = j
                n_movers += 1
                n_changed = add_changes(released, c, people, who[j], step, changes, n_changed)
                gain += gain_of_children(tables, c, people[who[j]], step, logs)
        gain += (concentrations[a] - 1) * np.log1p(by / share)
        gain += (concentrations[b] - 1) * np.log1p(-by / rest)
        for k in range(n_changed):
            cell = changes.cells[k]
            changes.terms[k] = log_term(total[cell] + changes.of_cells[cell], context[cell])
            gain += changes.terms[k] - terms[cell]
        taken = (gain > height) & is_finite(gain) & (-share < by) & (by < rest)
        settle_cells(changes, n_changed, taken, total, terms)
        if taken:
            p[a], p[b] = both * (share + by), both * (rest - by)
            move_people(by_row, q, c, people, changes.movers, n_movers, share, rest, by)
            return attempt + 1, n_movers
        if by < 0:
            low = by
        else:
            high = by
    return MAX_TRIES, 0


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
        Number of people in the interval that is tried first, for each column.
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
    p, logs, people = probabilities.copy(), np.log(probabilities), records.copy()
    total, terms = count_cells(log_term, context, released, people)
    n_cells, outcome, used = len(total), np.zeros((2, d)), 0
    changes = Changes(
        np.zeros(n_cells),
        np.zeros(n_cells, dtype=np.bool_),
        np.empty(n_cells, dtype=np.int64),
        np.empty(n_cells),
        np.empty(n + 1, dtype=np.int64),
        np.empty(n, dtype=np.int64),
    )
    for c in range(d if is_finite(terms.sum()) else 0):
        if released.of[c, 0] == 0:
            continue  # no released table counts this column
        start, size = tables.starts[c], tables.sizes[c]
        by_row, used = sort_people(tables, c, people, uniforms, used)
        n_places = len(by_row.order)
        for place in range(n_places):
            row = place - place % size
            if place == row + size - 1:
                continue
            of_row = max(by_row.firsts[row + size] - by_row.firsts[row], 1)
            tried, n_movers = move_boundary(
                log_term, context, released, tables, (c, row, place, widths[c] / of_row), people, p,
                logs, concentrations, uniforms[used : used + PER_BOUNDARY], by_row, changes,
                total, terms,
            )  # fmt: skip
            outcome[0, c] += tried / (n_places - n_places // size)
            outcome[1, c] += n_movers
            used += PER_BOUNDARY
        for j in range(start, start + n_places):
            logs[j] = np.log(p[j])
    return p, people, outcome
