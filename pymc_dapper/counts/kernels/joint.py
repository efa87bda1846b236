"""Move a table along several directions at once, by randomised nearest plane.

If sums and cells are known to less than one person, a step along a single direction is rarely
possible: tables of similar probability are several steps apart. So we propose the numbers of steps
along several directions together. Near the present table the log-density is about quadratic, with
the slope there and a curvature measured in tuning. The Cholesky factor of the curvature orders the
directions. The number of steps along the last is drawn from a discrete normal distribution, then
the number along the one before given the last, and so on (Klein 2000). The proposal is accepted by
Metropolis-Hastings (Wang and Ling 2018) with the true log-density: slope and curvature only affect
the acceptance rate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.draws import choose
from pymc_dapper.counts.kernels.line import (
    LARGEST,
    Change,
    Line,
    Linear,
    State,
    count_terms,
    forget_change,
    log_density_at,
    new_line,
)
from pymc_dapper.kernels.arrays import copy_into

REACH = 4.0
"""How far from the centre numbers of steps are proposed, in standard deviations."""
FARTHEST = 2.0**40
"""Most steps to the centre, so that sums stay within the integers."""


class Directions(NamedTuple):
    """Directions in which a table moves jointly; all fixed."""

    starts: np.ndarray
    cells: np.ndarray
    steps: np.ndarray
    """Int64: the cells of all directions, and their changes. Direction d has entries ``starts[d]``
    to ``starts[d + 1]``."""
    chosen: np.ndarray
    """Int64, shape (number of joint directions,): the directions that move."""
    factor: np.ndarray
    """Float64, shape (number of joint directions, number of joint directions): lower Cholesky
    factor of their scalar products in the metric of the curvature."""


class LocalDensity(NamedTuple):
    """The log-density near a table."""

    densities: np.ndarray
    """Float64, shape (number of terms + 1,): the terms; the last is the part evaluated as a
    whole."""
    slopes: np.ndarray
    """Float64, shape (number of linear functions,): the slope with respect to each."""


class Memory(NamedTuple):
    """Working memory."""

    line: Line
    probe: Line
    """The move, with t = 1 at the proposed table; also used for single terms."""
    present: LocalDensity
    reached: LocalDensity
    """At the present and at the proposed table; equal between updates."""
    place: np.ndarray
    """Int64, shape (number of cells,): each cell's place in the line; -1 between updates."""
    first: np.ndarray
    """Int64, shape (number of terms,): the first linear function of each term."""


class Proposal(NamedTuple):
    """Steps along several directions. ``Memory.line`` has the changed cells."""

    numbers: np.ndarray
    """Int64, shape (number of directions,): the number of steps along each."""
    log_probability: float
    """Log-probability of these numbers."""
    n_cells: int
    """Number of changed cells; -1 if one would be negative or too large."""


@njit
def new_memory(structure: Linear, n_cells: int) -> Memory:
    """Allocate working memory."""
    n_values, n_terms = structure.terms.size, count_terms(structure)
    first = np.zeros(n_terms, dtype=np.int64)
    for row in range(n_values - 1, -1, -1):
        if structure.terms[row] >= 0:
            first[structure.terms[row]] = row
    return Memory(
        new_line(structure, n_cells),
        new_line(structure, 1),
        LocalDensity(np.zeros(n_terms + 1), np.zeros(n_values)),
        LocalDensity(np.zeros(n_terms + 1), np.zeros(n_values)),
        np.full(n_cells, -1, dtype=np.int64),
        first,
    )


@njit
def measure_locally(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Linear,
    curvatures: np.ndarray,
    values: np.ndarray,
    terms: np.ndarray,
    whole: bool,
    memory: Memory,
) -> None:
    """Compute terms of the log-density at a table, and their slopes.

    Parameters
    ----------
    log_density, context, structure, curvatures
        As in :func:`pymc_dapper.counts.kernels.line.update_line`.
    values : ndarray of float64, shape (number of linear functions,)
        The linear functions at the table.
    terms : ndarray of int64
        The terms.
    whole : bool
        Whether to evaluate the part without terms, too. Its slopes aren't measured.
    memory : Memory
        Working memory. The results are written to ``reached``; other terms stay unchanged.
    """
    probe, near = memory.probe, memory.reached
    for i in range(terms.size + int(whole)):
        term, first, n_rows = memory.first.size, 0, 0
        if i < terms.size:
            term = terms[i]
            first = memory.first[term]
            n_rows = rows_of(structure, first)
        probe.terms[0] = term
        only = Change(0, int(n_rows > 0), n_rows == 0)
        for k in range(max(1, n_rows)):
            row = first + k
            for t in (0, 1, -1):
                probe.slopes[row] = 1.0 if n_rows else 0.0
                density = log_density_at(log_density, context, values, probe, only, t)
                probe.slopes[row] = 0.0
                if t == 0:
                    near.densities[term] = density
                    if n_rows == 0:
                        break
                    near.slopes[row] = 0.0
                elif min(near.densities[term], density) > -np.inf:
                    bend = curvatures[row] / 2
                    near.slopes[row] = t * (density - near.densities[term] + bend)
                    break  # use the other side only at the end of the possible range


@njit
def rows_of(structure: Linear, first: int) -> int:
    """Return the number of a term's linear functions, which are adjacent, from the first on."""
    n_rows, terms = 1, structure.terms
    while first + n_rows < terms.size and terms[first + n_rows] == terms[first]:
        n_rows += 1
    return n_rows


@njit
def copy_terms(
    structure: Linear, memory: Memory, terms: np.ndarray, source: LocalDensity, to: LocalDensity
) -> None:
    """Copy the results for some terms, and for the part evaluated as a whole."""
    to.densities[-1] = source.densities[-1]
    for term in terms:
        to.densities[term] = source.densities[term]
        first = memory.first[term]
        stop = first + rows_of(structure, first)
        copy_into(to.slopes, first, source.slopes[first:stop])


@njit
def slopes_along(structure: Linear, directions: Directions, slopes: np.ndarray) -> np.ndarray:
    """Compute the slope of the log-density along each direction that moves."""
    along = np.zeros(directions.chosen.size)
    for k in range(along.size):
        d = directions.chosen[k]
        for i in range(directions.starts[d], directions.starts[d + 1]):
            cell = directions.cells[i]
            for j in range(structure.starts[cell], structure.starts[cell + 1]):
                change = directions.steps[i] * structure.coefficients[j]
                along[k] += change * slopes[structure.rows[j]]
    return along


@njit
def nearest_plane(
    factor: np.ndarray, along: np.ndarray, numbers: np.ndarray, known: Any, draws: Any
) -> float:
    """Draw the numbers of steps along the directions, and return their log-probability.

    Parameters
    ----------
    factor : ndarray of float64, shape (k, k)
        As in :class:`Directions`.
    along : ndarray of float64, shape (k,)
        The slope along each direction.
    numbers : ndarray of int64, shape (k,)
        The numbers of steps; overwritten unless ``known``.
    known : bool
        Whether the numbers are given, and only their probability is needed.
    draws : Draws
        Random numbers.

    Returns
    -------
    float
        Log-probability of these numbers.
    """
    k = along.size
    middle = np.empty(k)
    for j in range(k):
        left = along[j]
        for i in range(j):
            left -= factor[j, i] * middle[i]
        middle[j] = left / factor[j, j]
    log_probability = 0.0
    for j in range(k - 1, -1, -1):
        centre = middle[j]
        for i in range(j + 1, k):
            centre -= factor[i, j] * numbers[i]
        centre = min(max(centre / factor[j, j], -FARTHEST), FARTHEST)
        lowest = int(np.floor(centre - REACH / factor[j, j]))
        highest = int(np.ceil(centre + REACH / factor[j, j]))
        least = (centre - np.round(centre)) ** 2  # so that not all weights are zero
        weights = np.empty(highest - lowest + 1)
        for number in range(lowest, highest + 1):
            distance = (number - centre) ** 2 - least
            weights[number - lowest] = np.exp(-0.5 * factor[j, j] ** 2 * distance)
        if not known:
            numbers[j] = lowest + choose(draws, weights)
        elif not lowest <= numbers[j] <= highest:
            return -np.inf
        log_probability += np.log(weights[numbers[j] - lowest] / weights.sum())
    return log_probability


@njit
def combine(directions: Directions, numbers: np.ndarray, counts: np.ndarray, memory: Memory) -> int:
    """Write steps along several directions as a line with t = 1 at the new table.

    Returns
    -------
    int
        Number of changed cells; -1 if one would be negative or too large.
    """
    line, place, n_met = memory.line, memory.place, 0
    for k in range(numbers.size):
        d = directions.chosen[k]
        for i in range(directions.starts[d], directions.starts[d + 1]):
            cell = directions.cells[i]
            if place[cell] < 0:
                place[cell] = n_met
                line.cells[n_met], line.steps[n_met] = cell, 0
                n_met += 1
            line.steps[place[cell]] += numbers[k] * directions.steps[i]
    n_cells, possible = 0, True
    for i in range(n_met):
        cell, step = line.cells[i], line.steps[i]
        place[cell] = -1
        possible &= 0 <= counts[cell] + step <= LARGEST
        if step != 0:
            line.cells[n_cells], line.steps[n_cells] = cell, step
            n_cells += 1
    return n_cells if possible else -1


@njit
def propose(
    structure: Linear, directions: Directions, state: State, memory: Memory, draws: Any
) -> Proposal:
    """Propose numbers of steps along several directions.

    Parameters
    ----------
    structure, state, draws
        As in :func:`pymc_dapper.counts.kernels.line.update_line`.
    directions : Directions
        The directions. They must not depend on the present table.
    memory : Memory
        Working memory, with the log-density near the present table.
    """
    numbers = np.zeros(directions.chosen.size, dtype=np.int64)
    along = slopes_along(structure, directions, memory.present.slopes)
    log_probability = nearest_plane(directions.factor, along, numbers, np.bool_(False), draws)
    return Proposal(numbers, log_probability, combine(directions, numbers, state.counts, memory))


@njit
def decide(
    structure: Linear,
    directions: Directions,
    proposal: Proposal,
    change: Change,
    state: State,
    memory: Memory,
    draws: Any,
) -> tuple[int, float]:
    """Accept or reject a proposal.

    Parameters
    ----------
    structure, draws
        As in :func:`pymc_dapper.counts.kernels.line.update_line`.
    directions, proposal
        The proposal.
    change : Change
        The terms that change along the line to the proposed table.
    state : State
        The present table, with the values of the proposed one.
    memory : Memory
        Working memory, with the log-density near both.

    Returns
    -------
    status : int
        0 if the table stays the same, 1 if it changes.
    gain : float
        The change of the log-density.
    """
    line, present, reached = memory.line, memory.present, memory.reached
    terms = line.terms[: change.n_terms]
    gain = reached.densities[-1] - present.densities[-1]
    for term in terms:
        gain += reached.densities[term] - present.densities[term]
    status = 0
    if -np.inf < gain < np.inf:
        along = slopes_along(structure, directions, reached.slopes)
        back = nearest_plane(directions.factor, along, -proposal.numbers, np.bool_(True), draws)
        chance = np.exp(min(0.0, gain + back - proposal.log_probability))
        status = choose(draws, np.array([1.0 - chance, chance]))
    if status == 1:
        for i in range(proposal.n_cells):
            state.counts[line.cells[i]] += line.steps[i]
        copy_terms(structure, memory, terms, reached, present)
    else:
        for i in range(change.n_rows):
            state.values[line.rows[i]] -= line.slopes[line.rows[i]]
        copy_terms(structure, memory, terms, present, reached)
    forget_change(line, change)
    return status, gain if status == 1 else 0.0
