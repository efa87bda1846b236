"""Move people along a line of tables, drawn by a slice sampler on the integers.

A line is all tables ``counts + t * steps`` with whole t that have no negative count, and none so
large that float64 doesn't hold it. Along it the
log-density changes only in the terms that see the cells of the line, so that an update costs as
much however many people and cells there are.

The slice sampler (Neal 2003, section 4: stepping out and shrinkage) draws a level below the
density at the present table. It lays marks at even distances, of which the present table has a
random place between two, and goes from mark to mark to either side until one lies below the level.
From the tables between the last two marks it then draws one above the level, shrinking the interval
towards the present table with each that lies below. The distance of marks matters for the work
only, not for what is drawn: it comes from the curvature of the terms at some earlier table.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.draws import exponential, pick
from pymc_dapper.kernels.fast_math import is_finite

SLICE_WIDTH = 3.0
"""Distance of marks, in standard deviations by the curvature: about a slice of a normal density."""
LEAST_LEFT = 0.01
"""What terms that bend up leave of the curvature of others, at least."""
WIDEST = 2**40
"""Longest distance of marks: counts stay exact in float64."""
LARGEST = 2**53
"""Largest count. Beyond, float64 doesn't tell tables apart, and sums could leave the integers."""


class Structure(NamedTuple):
    """What the log-density sees of the counts. All of it is fixed."""

    starts: np.ndarray
    """Int64, shape (number of cells + 1,): where each cell's column in ``rows`` and
    ``coefficients`` starts."""
    rows: np.ndarray
    """Int64: the linear functions that see the cell."""
    coefficients: np.ndarray
    """Float64: by what they multiply its count."""
    terms: np.ndarray
    """Int64, shape (number of linear functions,): the term that uses each linear function; -1 for
    those of what is evaluated as a whole."""
    kinds: np.ndarray
    """Int64, shape (number of terms,): which function each term is."""
    first: np.ndarray
    """Int64, shape (number of terms,): the first linear function of each term."""
    contexts: np.ndarray
    """Int64, shape (number of terms,): where each term's values in the context start."""


class State(NamedTuple):
    """A table, and what is known of it."""

    counts: np.ndarray
    """Int64, shape (number of cells,): the table."""
    values: np.ndarray
    """Float64, shape (number of linear functions,): values of the linear functions."""


class Line(NamedTuple):
    """Working memory for a line."""

    cells: np.ndarray
    steps: np.ndarray
    """Int64: the cells that change, and by how many people for each unit of t."""
    slopes: np.ndarray
    """Float64, shape (number of linear functions,): by how much the linear functions change; zero
    between updates."""
    rows: np.ndarray
    """Int64, shape (number of linear functions,): the linear functions that see one of the
    cells."""
    met: np.ndarray
    """Bool, shape (number of linear functions,): which those are; False between updates."""
    terms: np.ndarray
    """Int64, shape (number of terms,): the terms that change."""
    marked: np.ndarray
    """Bool, shape (number of terms,): which those are; False between updates."""


class Change(NamedTuple):
    """What changes along a line."""

    n_rows: int
    n_terms: int
    """How many linear functions see the cells, and how many terms change."""
    whole: bool
    """Whether something that is evaluated as a whole changes."""


@njit
def new_line(structure: Structure, max_cells: int) -> Line:
    """Allocate working memory for lines of at most so many cells."""
    n_values, n_terms = structure.terms.size, structure.kinds.size
    return Line(
        np.empty(max_cells, dtype=np.int64),
        np.empty(max_cells, dtype=np.int64),
        np.zeros(n_values),
        np.empty(n_values, dtype=np.int64),
        np.zeros(n_values, dtype=np.bool_),
        np.empty(n_terms, dtype=np.int64),
        np.zeros(n_terms, dtype=np.bool_),
    )


@njit
def start_values(structure: Structure, counts: np.ndarray) -> np.ndarray:
    """Compute the linear functions of a table."""
    values = np.zeros(structure.terms.size)
    for cell in range(counts.size):
        for j in range(structure.starts[cell], structure.starts[cell + 1]):
            values[structure.rows[j]] += structure.coefficients[j] * counts[cell]
    return values


@njit
def find_change(structure: Structure, line: Line, n_cells: int) -> Change:
    """Find out what changes along the line of the first so many cells of ``line``."""
    n_rows = 0
    for i in range(n_cells):
        cell = line.cells[i]
        for j in range(structure.starts[cell], structure.starts[cell + 1]):
            row = structure.rows[j]
            if not line.met[row]:
                line.met[row] = True
                line.rows[n_rows] = row
                n_rows += 1
            line.slopes[row] += line.steps[i] * structure.coefficients[j]
    n_terms, whole = 0, False
    for i in range(n_rows):
        row = line.rows[i]
        # A total that both cells are in doesn't change when they exchange people.
        if line.slopes[row] == 0.0:
            continue
        term = structure.terms[row]
        if term < 0:
            whole = True
        elif not line.marked[term]:
            line.marked[term] = True
            line.terms[n_terms] = term
            n_terms += 1
    return Change(n_rows, n_terms, whole)


@njit
def forget_change(line: Line, change: Change) -> None:
    """Leave the working memory as it was."""
    for i in range(change.n_rows):
        line.slopes[line.rows[i]] = 0.0
        line.met[line.rows[i]] = False
    for i in range(change.n_terms):
        line.marked[line.terms[i]] = False


@njit
def ends(counts: np.ndarray, line: Line, n_cells: int) -> tuple[int, int]:
    """Return the lowest and highest t without a count that is negative, or too large."""
    lowest, highest = -LARGEST, LARGEST
    for i in range(n_cells):
        count, step = counts[line.cells[i]], line.steps[i]
        down, up = count // abs(step), (LARGEST - count) // abs(step)
        lowest = max(lowest, -down if step > 0 else -up)
        highest = min(highest, up if step > 0 else down)
    return lowest, highest


@njit
def slice_width(curvatures: np.ndarray, line: Line, change: Change) -> int:
    """Return the distance of marks along a line."""
    curvature, downward = 0.0, 0.0
    for i in range(change.n_rows):
        row = line.rows[i]
        bend = line.slopes[row] ** 2 * curvatures[row]
        curvature += bend
        downward += max(bend, 0.0)
    # Terms that bend up nearly cancel others along some lines, or more than that elsewhere.
    curvature = max(curvature, LEAST_LEFT * downward)
    if not curvature > (SLICE_WIDTH / WIDEST) ** 2:
        return WIDEST
    return int(np.ceil(SLICE_WIDTH / np.sqrt(curvature)))


# What calls the log-density is inlined: a function that is passed on as a value can't be cached on
# disk (see `record_sweep`).
@njit(inline="always")
def sum_of_terms(
    log_term: Callable[..., float],
    log_whole: Callable[..., float],
    context: tuple[Any, ...],
    values: np.ndarray,
    slopes: np.ndarray,
    terms: np.ndarray,
    n_terms: int,
    whole: bool,
    t: int,
) -> float:
    """Log-density of what changes along a line, at one of its tables; -inf for nan and +inf.

    Parameters
    ----------
    log_term : callable
        ``log_term(kind, first, start, values, slopes, t, context) -> float``: a term, with its
        linear functions (from ``first`` on) at ``values + t * slopes``, and its context (from
        ``start`` on).
    log_whole : callable
        ``log_whole(values, slopes, t, context) -> float``: the rest of the log-density.
    context : tuple
        What the log-density depends on besides the counts: first ``kinds``, ``first`` and
        ``contexts`` of :class:`Structure`, as a tuple, then what all else the terms look at.
    values : ndarray of float64
        As in :class:`State`.
    slopes, terms : ndarray
        As in :class:`Line`.
    n_terms, whole
        As in :class:`Change`.
    t : int
        The table.
    """
    kinds, first, contexts = context[0]
    total = 0.0
    for i in range(n_terms):
        term = terms[i]
        total += log_term(kinds[term], first[term], contexts[term], values, slopes, t, context[1])
    if whole:
        total += log_whole(values, slopes, t, context[1])
    return total if is_finite(total) else -np.inf


@njit(inline="always")
def log_density_at(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    values: np.ndarray,
    line: Line,
    change: Change,
    t: int,
) -> float:
    """Log-density of what changes along a line, at one of its tables.

    Parameters
    ----------
    log_density : callable
        :func:`sum_of_terms` of the model's terms: takes its arguments from ``context`` on.
    """
    return log_density(context, values, line.slopes, line.terms, change.n_terms, change.whole, t)


@njit(inline="always")
def find_curvatures(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Structure,
    values: np.ndarray,
    line: Line,
) -> np.ndarray:
    """Measure how strongly terms bend at a table, with each of their linear functions.

    Parameters
    ----------
    log_density, context, structure
        As in :func:`update_line`.
    values : ndarray of float64, shape (number of linear functions,)
        The linear functions at the table.
    line : Line
        Working memory.

    Returns
    -------
    ndarray of float64, shape (number of linear functions,)
        Minus the second derivatives, by differences: negative where a term bends up.
    """
    curvatures = np.zeros(values.size)
    around = np.empty(5)
    for row in range(values.size):
        term = structure.terms[row]
        if term < 0:
            continue
        # As far as a count varies by chance, so that the difference isn't lost in rounding.
        step = max(1.0, np.floor(np.sqrt(np.abs(values[row]))))
        line.terms[0] = term
        line.slopes[row] = step
        change = Change(0, 1, False)
        for k in range(5):
            around[k] = log_density_at(log_density, context, values, line, change, k - 2)
        line.slopes[row] = 0.0
        # At the end of the possible counts, from beside it.
        for middle in (2, 3, 1):
            if np.min(around[middle - 1 : middle + 2]) > -np.inf:
                bend = 2 * around[middle] - around[middle - 1] - around[middle + 1]
                curvatures[row] = bend / step**2
                break
    return curvatures


@njit(inline="always")
def update_line(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Structure,
    curvatures: np.ndarray,
    state: State,
    line: Line,
    n_cells: int,
    draws: Any,
) -> tuple[int, float]:
    """Draw a new table on a line, and move there.

    Parameters
    ----------
    log_density : callable
        As in :func:`log_density_at`.
    context : tuple of ndarray
        What the log-density depends on besides the counts.
    structure : Structure
        What the log-density sees of the counts.
    curvatures : ndarray of float64, shape (number of linear functions,)
        How strongly terms bend, roughly. It mustn't depend on the present table.
    state : State
        The present table; overwritten.
    line : Line
        Working memory; the first ``n_cells`` entries of ``cells`` and ``steps`` say which line.
    n_cells : int
        How many cells the line changes.
    draws : Draws
        Random numbers.

    Returns
    -------
    status : int
        -1 if there is no other table on the line, 0 if the table stays the same, 1 if it changes.
    gain : float
        By how much the log-density has changed.

    Notes
    -----
    From an impossible table (log-density -inf or nan) any possible one that is met is taken.
    """
    lowest, highest = ends(state.counts, line, n_cells)
    if highest == lowest:
        return -1, 0.0
    change = find_change(structure, line, n_cells)
    present = log_density_at(log_density, context, state.values, line, change, 0)
    possible = present > -np.inf
    level = present - exponential(draws)

    width = slice_width(curvatures, line, change)
    low = -pick(draws, 0, width - 1)
    high = low + width
    if not possible:  # look everywhere
        low, high = lowest - 1, min(highest + 1, 1_000 - 4 * lowest)
    for side in (-1, 1):
        mark = low if side < 0 else high
        while possible and lowest <= mark <= highest:
            density = log_density_at(log_density, context, state.values, line, change, mark)
            if density <= level:
                break
            mark += side * width
        if side < 0:
            low = mark
        else:
            high = mark
    # The marks themselves lie below the level, or outside.
    low, high = max(low + 1, lowest), min(high - 1, highest)

    t, reached = 0, present
    while low < high:
        proposed = pick(draws, low, high)
        if proposed == 0:
            break
        density = log_density_at(log_density, context, state.values, line, change, proposed)
        if density > level:
            t, reached = proposed, density
            break
        if proposed < 0:
            low = proposed + 1
        else:
            high = proposed - 1

    if t != 0:
        for i in range(change.n_rows):
            row = line.rows[i]
            state.values[row] += t * line.slopes[row]
        for i in range(n_cells):
            state.counts[line.cells[i]] += t * line.steps[i]
    forget_change(line, change)
    return (1 if t != 0 else 0), (reached - present if possible else 0.0)
