"""One sweep over a table of counts: all cells and groups of cells move in turn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.count_line import (
    Change,
    Line,
    State,
    Structure,
    find_curvatures,
    log_density_at,
    new_line,
    pick,
    start_values,
    update_line,
)


class Schedule(NamedTuple):
    """The moves of a sweep. All of it is fixed.

    Attributes
    ----------
    single : ndarray of int64
        Cells that move by themselves.
    group_starts, group_cells : ndarray of int64
        Groups of cells that exchange people in pairs: group k has the cells from
        ``group_starts[k]`` to ``group_starts[k + 1]``.
    passes : ndarray of int64, shape (number of groups,)
        How often each group is gone through.
    grid_rows, grid_columns : ndarray of int64, shape (number of grids,)
        Numbers of rows and columns of tables with known margins.
    grid_places : ndarray of int64, shape (number of grids,)
        Where the places of each grid start in ``place_starts``, row by row.
    place_starts, place_cells : ndarray of int64
        The cells at each place of the grids, as for groups.
    grid_passes : ndarray of int64, shape (number of grids,)
        How often each grid is gone through.
    direction_starts, direction_cells, direction_steps : ndarray of int64
        Other moves: the cells of each, as for groups, and by how many people they change.
    """

    single: np.ndarray
    group_starts: np.ndarray
    group_cells: np.ndarray
    passes: np.ndarray
    grid_rows: np.ndarray
    grid_columns: np.ndarray
    grid_places: np.ndarray
    place_starts: np.ndarray
    place_cells: np.ndarray
    grid_passes: np.ndarray
    direction_starts: np.ndarray
    direction_cells: np.ndarray
    direction_steps: np.ndarray


class Swept(NamedTuple):
    """What came of a sweep.

    Attributes
    ----------
    counts : ndarray of int64
        The table after it.
    moved : float
        The share of moves that changed the table, of those that could; 1 if none could.
    log_density : float
        Log-density of the table, without what doesn't depend on it.
    gain : float
        By how much the moves said that they changed it.
    curvatures : ndarray of float64
        The curvatures that were used.
    """

    counts: np.ndarray
    moved: float
    log_density: float
    gain: float
    curvatures: np.ndarray


def pack(structure: Structure, schedule: Schedule) -> np.ndarray:
    """Join all integers of a structure and a schedule into one array.

    Passing many arrays from Python together with a generator costs 8 us for each.

    Returns
    -------
    ndarray of int64
        Where each array starts and the last one stops, then the arrays.
    """
    arrays = [*structure._replace(coefficients=np.zeros(0)), *schedule]
    starts = len(arrays) + 1 + np.cumsum([0] + [len(array) for array in arrays])
    return np.concatenate([starts, *arrays]).astype(np.int64)


@njit
def part(packed: np.ndarray, k: int) -> np.ndarray:
    """Return one of the arrays that were packed."""
    return packed[packed[k] : packed[k + 1]]


@njit
def unpack_structure(packed: np.ndarray, coefficients: np.ndarray) -> Structure:
    """Return the structure that was packed."""
    return Structure(
        part(packed, 0),
        part(packed, 1),
        coefficients,
        part(packed, 3),
        part(packed, 4),
        part(packed, 5),
        part(packed, 6),
    )


@njit
def unpack_schedule(packed: np.ndarray) -> Schedule:
    """Return the schedule that was packed."""
    return Schedule(
        part(packed, 7),
        part(packed, 8),
        part(packed, 9),
        part(packed, 10),
        part(packed, 11),
        part(packed, 12),
        part(packed, 13),
        part(packed, 14),
        part(packed, 15),
        part(packed, 16),
        part(packed, 17),
        part(packed, 18),
        part(packed, 19),
    )


@njit
def shuffle(items: np.ndarray, draws: Any) -> None:
    """Put items in a random order."""
    for i in range(items.size - 1, 0, -1):
        j = pick(draws, 0, i)
        items[i], items[j] = items[j], items[i]


@njit
def longest_direction(schedule: Schedule) -> int:
    """Return how many cells a move changes at most."""
    longest = 4
    for k in range(schedule.direction_starts.size - 1):
        length = schedule.direction_starts[k + 1] - schedule.direction_starts[k]
        longest = max(longest, length)
    return longest


@njit
def any_cell(schedule: Schedule, place: int, draws: Any) -> int:
    """Choose one of the cells at a place of a grid."""
    start, stop = schedule.place_starts[place], schedule.place_starts[place + 1]
    if stop - start == 1:
        return schedule.place_cells[start]
    return schedule.place_cells[pick(draws, start, stop - 1)]


@njit
def whole_change(structure: Structure, line: Line) -> int:
    """Let all terms change; return their number."""
    for term in range(structure.kinds.size):
        line.terms[term] = term
    return structure.kinds.size


@njit
def plan(schedule: Schedule, draws: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the lines of a sweep: which cells take part, and by how many people they change.

    It doesn't look at the table, so each line's update leaves the posterior as it is.

    Returns
    -------
    starts : ndarray of int64, shape (number of lines + 1,)
        Where each line starts in the others.
    cells, steps : ndarray of int64
        The cells of all lines, one after the other, and their steps.
    """
    n_groups, n_grids = schedule.passes.size, schedule.grid_rows.size
    n_directions = schedule.direction_starts.size - 1
    n_lines = schedule.single.size + n_directions
    n_entries = schedule.single.size + schedule.direction_cells.size
    longest = 1
    for g in range(n_groups):
        size = schedule.group_starts[g + 1] - schedule.group_starts[g]
        longest = max(longest, size)
        n_lines += schedule.passes[g] * (size // 2)
        n_entries += schedule.passes[g] * (size // 2) * 2
    for g in range(n_grids):
        swaps = (schedule.grid_rows[g] // 2) * (schedule.grid_columns[g] // 2)
        n_lines += schedule.grid_passes[g] * swaps
        n_entries += schedule.grid_passes[g] * swaps * 4
    starts = np.empty(n_lines + 1, dtype=np.int64)
    cells = np.empty(n_entries, dtype=np.int64)
    steps = np.empty(n_entries, dtype=np.int64)
    starts[0] = 0
    k, at = 0, 0

    for cell in schedule.single:
        cells[at], steps[at] = cell, 1
        at += 1
        k += 1
        starts[k] = at
    for g in range(n_groups):
        members = schedule.group_cells[schedule.group_starts[g] : schedule.group_starts[g + 1]]
        order = members.copy()
        for _ in range(schedule.passes[g]):
            if order.size > 2:
                shuffle(order, draws)
            for i in range(0, order.size - 1, 2):
                cells[at], steps[at] = order[i], 1
                cells[at + 1], steps[at + 1] = order[i + 1], -1
                at += 2
                k += 1
                starts[k] = at
    for g in range(n_grids):
        rows = np.arange(schedule.grid_rows[g])
        columns = np.arange(schedule.grid_columns[g])
        for _ in range(schedule.grid_passes[g]):
            shuffle(rows, draws)
            shuffle(columns, draws)
            for i in range(0, rows.size - 1, 2):
                for j in range(0, columns.size - 1, 2):
                    for corner in range(4):
                        row, column = rows[i + corner // 2], columns[j + corner % 2]
                        place = schedule.grid_places[g] + row * columns.size + column
                        cells[at] = any_cell(schedule, place, draws)
                        steps[at] = 1 if corner in (0, 3) else -1
                        at += 1
                    k += 1
                    starts[k] = at
    for d in range(n_directions):
        for i in range(schedule.direction_starts[d], schedule.direction_starts[d + 1]):
            cells[at], steps[at] = schedule.direction_cells[i], schedule.direction_steps[i]
            at += 1
        k += 1
        starts[k] = at
    return starts, cells, steps


@njit(inline="always")
def sweep_counts(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Structure,
    schedule: Schedule,
    counts: np.ndarray,
    curvatures: np.ndarray,
    draws: Any,
) -> Swept:
    """Update one line after another, each given what came of those before it.

    Parameters
    ----------
    log_density, context, structure, draws
        As in :func:`update_line`.
    schedule : Schedule
        The moves.
    counts : ndarray of int64, shape (number of cells,)
        The present table. It isn't changed.
    curvatures : ndarray of float64, shape (number of linear functions,) or (0,)
        As in :func:`update_line`. If there are none, they are measured at the present table. The
        sweep then doesn't leave the posterior as it is: for tuning only.

    Returns
    -------
    Swept
        The table after the sweep.
    """
    # Computed afresh in every sweep: rounding can't build up, and changes of the parameters
    # between sweeps can't leave a stale value behind.
    state = State(counts.copy(), start_values(structure, counts))
    line = new_line(structure, longest_direction(schedule))
    starts, cells, steps = plan(schedule, draws)
    if curvatures.size < structure.terms.size:
        curvatures = find_curvatures(log_density, context, structure, state.values, line)
    gain, n_moved, n_able = 0.0, 0, 0
    for k in range(starts.size - 1):
        n_cells = starts[k + 1] - starts[k]
        for i in range(n_cells):
            line.cells[i] = cells[starts[k] + i]
            line.steps[i] = steps[starts[k] + i]
        status, gained = update_line(
            log_density, context, structure, curvatures, state, line, n_cells, draws
        )
        gain += gained
        if status >= 0:
            n_able += 1
            n_moved += status
    everything = Change(0, whole_change(structure, line), True)
    final = log_density_at(log_density, context, structure, state.values, line, everything, 0)
    moved = n_moved / n_able if n_able else 1.0
    return Swept(state.counts, moved, final, gain, curvatures)
