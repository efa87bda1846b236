"""Move people along a line of tables, drawn by a slice sampler on the integers.

A line is all non-negative tables ``counts + t * steps`` with whole t that float64 can hold. Along
it, only terms with cells of the line change, so the cost of an update doesn't depend on the numbers
of people and cells.

The slice sampler (Neal 2003, section 4: stepping out and shrinkage) draws a level below the density
at the present table. It lays marks at equal distances, with the present table at a random place
between two. It goes from mark to mark on either side until one lies below the level. Between the
last two marks it draws tables until one is above the level; each rejected table shrinks the
interval towards the present one. The distance of marks affects the work only, not the distribution.
It comes from the curvature of the terms at some earlier table.
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
"""Least share of the curvature that remains if other terms bend upwards."""
WIDEST = 2**40
"""Longest distance of marks: counts stay exact in float64."""
LARGEST = 2**53
"""Largest count: float64 isn't exact beyond it, and sums could overflow."""


class Linear(NamedTuple):
    """The linear functions that the log-density sees; all fixed.

    Kernels need only these fields of :class:`Structure`: each array takes time to compile.
    """

    starts: np.ndarray
    """Int64, shape (number of cells + 1,): the start of each cell's column in ``rows`` and
    ``coefficients``."""
    rows: np.ndarray
    """Int64: the linear functions that contain the cell."""
    coefficients: np.ndarray
    """Float64: its coefficients in them."""
    terms: np.ndarray
    """Int64, shape (number of linear functions,): the term of each linear function; -1 for the part
    evaluated as a whole."""


class Structure(NamedTuple):
    """The linear functions and terms of the log-density; all fixed."""

    starts: np.ndarray
    rows: np.ndarray
    coefficients: np.ndarray
    terms: np.ndarray
    """As in :class:`Linear`."""
    kinds: np.ndarray
    """Int64, shape (number of terms,): the function of each term."""
    first: np.ndarray
    """Int64, shape (number of terms,): the first linear function of each term."""
    contexts: np.ndarray
    """Int64, shape (number of terms,): the start of each term's values in the context."""


class State(NamedTuple):
    """A table, with the values of its linear functions."""

    counts: np.ndarray
    """Int64, shape (number of cells,): the table."""
    values: np.ndarray
    """Float64, shape (number of linear functions,): values of the linear functions."""


class Line(NamedTuple):
    """Working memory for a line."""

    cells: np.ndarray
    steps: np.ndarray
    """Int64: the cells that change, and their changes for each unit of t."""
    slopes: np.ndarray
    """Float64, shape (number of linear functions,): their changes for each unit of t; zero between
    updates."""
    rows: np.ndarray
    """Int64, shape (number of linear functions,): the linear functions of these cells."""
    met: np.ndarray
    """Bool, shape (number of linear functions,): marks of these; False between updates."""
    terms: np.ndarray
    """Int64, shape (number of terms,): the terms that change."""
    marked: np.ndarray
    """Bool, shape (number of terms,): marks of these; False between updates."""


class Change(NamedTuple):
    """The functions and terms that change along a line."""

    n_rows: int
    n_terms: int
    """Number of linear functions of the cells, and of terms that change."""
    whole: bool
    """Whether the part evaluated as a whole changes."""


@njit
def count_terms(structure: Linear) -> int:
    """Return the number of terms."""
    n_terms = 0
    for term in structure.terms:
        n_terms = max(n_terms, term + 1)
    return n_terms


@njit
def new_line(structure: Linear, max_cells: int) -> Line:
    """Allocate working memory for lines of up to ``max_cells`` cells."""
    n_values, n_terms = structure.terms.size, count_terms(structure)
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
def start_values(structure: Linear, counts: np.ndarray) -> np.ndarray:
    """Compute the linear functions of a table."""
    values = np.zeros(structure.terms.size)
    for cell in range(counts.size):
        for j in range(structure.starts[cell], structure.starts[cell + 1]):
            values[structure.rows[j]] += structure.coefficients[j] * counts[cell]
    return values


@njit
def find_change(structure: Linear, line: Line, n_cells: int) -> Change:
    """Find the terms that change along the line of the first ``n_cells`` cells of ``line``."""
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
        # A total of both cells doesn't change when they exchange people.
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
    """Reset the working memory."""
    for i in range(change.n_rows):
        line.slopes[line.rows[i]] = 0.0
        line.met[line.rows[i]] = False
    for i in range(change.n_terms):
        line.marked[line.terms[i]] = False


@njit
def ends(counts: np.ndarray, line: Line, n_cells: int) -> tuple[int, int]:
    """Return the lowest and highest t without negative or too large counts."""
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
    # Along some lines, terms that bend upwards nearly cancel others, or exceed them elsewhere.
    curvature = max(curvature, LEAST_LEFT * downward)
    if not curvature > (SLICE_WIDTH / WIDEST) ** 2:
        return WIDEST
    return int(np.ceil(SLICE_WIDTH / np.sqrt(curvature)))


# Inlined into a model's log-density, which is an argument of all that follows.
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
    """Log-density of the changing terms at one table of a line; -inf for nan and +inf.

    Parameters
    ----------
    log_term : callable
        ``log_term(kind, first, start, values, slopes, t, context) -> float``: a term, with its
        linear functions (from ``first`` on) at ``values + t * slopes``, and its context (from
        ``start`` on).
    log_whole : callable
        ``log_whole(values, slopes, t, context) -> float``: the rest of the log-density.
    context : tuple
        Other inputs of the log-density: first ``kinds``, ``first`` and ``contexts`` of
        :class:`Structure`, as a tuple, then the terms' other inputs.
    values : ndarray of float64
        As in :class:`State`.
    slopes, terms : ndarray
        As in :class:`Line`.
    n_terms, whole
        As in :class:`Change`.
    t : int
        The table on the line.
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
    """Log-density of the changing terms at one table of a line.

    Parameters
    ----------
    log_density : callable
        :func:`sum_of_terms` of the model's terms: takes its arguments from ``context`` on.
    """
    return log_density(context, values, line.slopes, line.terms, change.n_terms, change.whole, t)


@njit
def find_curvatures(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Linear,
    values: np.ndarray,
    line: Line,
) -> np.ndarray:
    """Measure the curvature of terms at a table, with respect to each linear function.

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
        Minus the second derivatives, by differences: negative where a term bends upwards.
    """
    curvatures = np.zeros(values.size)
    around = np.empty(5)
    for row in range(values.size):
        term = structure.terms[row]
        if term < 0:
            continue
        # Use about a count's standard deviation, so that the difference exceeds rounding errors.
        step = max(1.0, np.floor(np.sqrt(np.abs(values[row]))))
        line.terms[0] = term
        line.slopes[row] = step
        change = Change(0, 1, False)
        for k in range(5):
            around[k] = log_density_at(log_density, context, values, line, change, k - 2)
        line.slopes[row] = 0.0
        # At the end of the possible range, measure beside it. If no three in a row are possible,
        # the range is a few steps wide.
        curvatures[row] = 1 / step**2 if around[2] > -np.inf else 0.0
        for middle in (2, 3, 1):
            if min(around[middle - 1], around[middle], around[middle + 1]) > -np.inf:
                bend = 2 * around[middle] - around[middle - 1] - around[middle + 1]
                curvatures[row] = bend / step**2
                break
    return curvatures


@njit
def update_line(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Linear,
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
        Inputs of the log-density besides the counts.
    structure : Linear
        Linear functions, and their terms.
    curvatures : ndarray of float64, shape (number of linear functions,)
        Approximate curvature of the terms. It must not depend on the present table.
    state : State
        The present table; overwritten.
    line : Line
        Working memory; the first ``n_cells`` entries of ``cells`` and ``steps`` define the line.
    n_cells : int
        Number of cells on the line.
    draws : Draws
        Random numbers.

    Returns
    -------
    status : int
        -1 if there is no other table on the line, 0 if the table stays the same, 1 if it changes.
    gain : float
        The change of the log-density.

    Notes
    -----
    From an impossible table (log-density -inf or nan), the first possible table that is found is
    taken.
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
    if not possible:  # search everywhere
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
    # The marks themselves are below the level, or outside.
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
