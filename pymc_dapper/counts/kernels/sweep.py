"""One sweep over a table of counts: all cells and groups of cells move in turn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.draws import pick
from pymc_dapper.counts.kernels.joint import (
    Directions,
    copy_terms,
    decide,
    measure_locally,
    new_memory,
    propose,
)
from pymc_dapper.counts.kernels.line import (
    Change,
    State,
    Structure,
    find_change,
    find_curvatures,
    log_density_at,
    new_line,
    start_values,
    update_line,
)

DRAWS_PER_LINE = 8
"""Random numbers for each line of a sweep: usually more than needed."""
SPARE_LINES = 8
"""Extra lines with random numbers: with few lines, needs vary."""


class Schedule(NamedTuple):
    """The moves of a sweep; all fixed."""

    single: np.ndarray
    """Int64: cells that move alone."""
    grid_rows: np.ndarray
    grid_columns: np.ndarray
    """Int64, shape (number of grids,): rows and columns of tables with known margins, whose cells
    make 2 x 2 swaps. A group of cells that exchange people in pairs is one row."""
    grid_places: np.ndarray
    """Int64, shape (number of grids,): the start of each grid's places in ``place_starts``, row by
    row."""
    place_starts: np.ndarray
    place_cells: np.ndarray
    """Int64: the cells at each place of the grids: place k has cells ``place_starts[k]`` to
    ``place_starts[k + 1]``."""
    grid_passes: np.ndarray
    """Int64, shape (number of grids,): number of passes over each grid."""
    direction_starts: np.ndarray
    direction_cells: np.ndarray
    direction_steps: np.ndarray
    """Int64: other moves: the cells of each, as for places, and their changes."""
    joint_starts: np.ndarray
    joint_directions: np.ndarray
    """Int64: directions in which a table moves jointly, as for places."""
    joint_factor_starts: np.ndarray
    """Int64: the start of each set's factor in ``joint_factors``; sets may share it."""
    joint_factors: np.ndarray
    """Float64: Cholesky factors of :class:`Directions`, raveled."""


class SweepOutcome(NamedTuple):
    """The result of a sweep."""

    counts: np.ndarray
    """Int64: the table after the sweep."""
    moved: float
    """Share of possible moves that changed the table; 1 if no move was possible."""
    n_able: int
    """Number of possible moves."""
    log_density: float
    """Log-density of the table, without terms that don't depend on it."""
    gain: float
    """Change of the log-density, added up over moves."""
    curvatures: np.ndarray
    """Float64: the curvatures that were used."""


class Packed(NamedTuple):
    """Structure, schedule and curvatures in two arrays: each array argument takes time."""

    integers: np.ndarray
    """Int64: the starts of all integer arrays and the end of the last, then the arrays. The last
    two have the same for ``numbers``, and the likely number of random numbers."""
    numbers: np.ndarray
    """Float64: coefficients, Cholesky factors, curvatures."""

    @property
    def room(self) -> int:
        """Likely upper limit on the random numbers of a sweep."""
        return int(self.integers[-1])


def count_lines(schedule: Schedule) -> int:
    """Return the number of lines of a sweep."""
    in_pass = np.maximum(schedule.grid_rows // 2, 1) * (schedule.grid_columns // 2)
    n_fixed = schedule.single.size + schedule.direction_starts.size - 1
    return int(n_fixed + schedule.grid_passes @ in_pass)


def _room(schedule: Schedule) -> int:
    """Return a likely upper limit on the random numbers of a sweep."""
    # A set of directions needs a number for each, and one for the decision.
    n_jointly = schedule.joint_directions.size + schedule.joint_starts.size - 1
    return int(DRAWS_PER_LINE * (SPARE_LINES + count_lines(schedule)) + n_jointly)


def pack(structure: Structure, schedule: Schedule, curvatures: np.ndarray) -> Packed:
    """Join all arrays: those of integers, and those of other numbers."""
    numbers = [structure.coefficients, schedule.joint_factors, curvatures]
    integers = [
        *(x for name, x in structure._asdict().items() if name != "coefficients"),
        *(x for name, x in schedule._asdict().items() if name != "joint_factors"),
        np.cumsum([0] + [len(x) for x in numbers]),
        np.array([_room(schedule)]),
    ]
    starts = len(integers) + 1 + np.cumsum([0] + [len(x) for x in integers])
    return Packed(
        np.concatenate([starts, *integers]).astype(np.int64),
        np.concatenate(numbers).astype(np.float64),
    )


@njit
def part(packed: np.ndarray, k: int) -> np.ndarray:
    """Return one of the packed arrays."""
    return packed[packed[k] : packed[k + 1]]


@njit
def terms_of(integers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the terms' functions and arguments from a packed structure."""
    return part(integers, 3), part(integers, 4), part(integers, 5)


@njit
def unpack(integers: np.ndarray, numbers: np.ndarray) -> tuple[Structure, Schedule, np.ndarray]:
    """Return structure, schedule and curvatures from packed arrays."""
    starts = part(integers, 19)
    structure = Structure(
        part(integers, 0),
        part(integers, 1),
        numbers[starts[0] : starts[1]],
        part(integers, 2),
        part(integers, 3),
        part(integers, 4),
        part(integers, 5),
    )
    schedule = Schedule(
        part(integers, 6),
        part(integers, 7),
        part(integers, 8),
        part(integers, 9),
        part(integers, 10),
        part(integers, 11),
        part(integers, 12),
        part(integers, 13),
        part(integers, 14),
        part(integers, 15),
        part(integers, 16),
        part(integers, 17),
        part(integers, 18),
        numbers[starts[1] : starts[2]],
    )
    return structure, schedule, numbers[starts[2] : starts[3]]


@njit
def shuffle(items: np.ndarray, draws: Any) -> None:
    """Put items in a random order."""
    for i in range(items.size - 1, 0, -1):
        j = pick(draws, 0, i)
        items[i], items[j] = items[j], items[i]


@njit
def longest_direction(schedule: Schedule) -> int:
    """Return the largest number of cells in a move."""
    longest = 4
    for length in np.diff(schedule.direction_starts):
        longest = max(longest, length)
    return longest


@njit
def any_cell(starts: np.ndarray, cells: np.ndarray, place: int, draws: Any) -> int:
    """Choose one of the cells at a place of a grid."""
    start, stop = starts[place], starts[place + 1]
    return cells[start] if stop - start == 1 else cells[pick(draws, start, stop - 1)]


@njit
def plan(schedule: Schedule, draws: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the lines of a sweep: their cells, and the changes of these.

    This doesn't depend on the table, so each line's update leaves the posterior invariant.

    Returns
    -------
    starts : ndarray of int64, shape (number of lines + 1,)
        Start of each line in the other arrays.
    cells, steps : ndarray of int64
        The cells of all lines, joined, and their steps.
    """
    n_directions = schedule.direction_starts.size - 1
    n_lines = schedule.single.size + n_directions
    n_entries = schedule.single.size + schedule.direction_cells.size
    for g in range(schedule.grid_rows.size):
        n_rows = schedule.grid_rows[g]
        in_grid = schedule.grid_passes[g] * max(n_rows // 2, 1) * (schedule.grid_columns[g] // 2)
        n_lines += in_grid
        n_entries += in_grid * 2 * min(n_rows, 2)
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
    at_place, members = schedule.place_starts, schedule.place_cells
    for g in range(schedule.grid_rows.size):
        rows = np.arange(schedule.grid_rows[g])
        columns = np.arange(schedule.grid_columns[g])
        for _ in range(schedule.grid_passes[g]):
            if rows.size * columns.size > 2:  # two cells have one line, in either order
                shuffle(rows, draws)
                shuffle(columns, draws)
            for i in range(0, max(rows.size - 1, 1), 2):
                for j in range(0, columns.size - 1, 2):
                    for up in range(min(rows.size, 2)):
                        row = schedule.grid_places[g] + rows[i + up] * columns.size
                        for side in range(2):
                            cells[at] = any_cell(at_place, members, row + columns[j + side], draws)
                            steps[at] = 1 if up == side else -1
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
def move_jointly(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Structure,
    schedule: Schedule,
    curvatures: np.ndarray,
    state: State,
    draws: Any,
) -> tuple[int, float]:
    """Move along several directions at once, one set of directions after another.

    Parameters
    ----------
    log_density, context, structure, curvatures, state, draws
        As in :func:`update_line`.
    schedule : Schedule
        The moves.

    Returns
    -------
    n_moved : int
        How often the table changed.
    gain : float
        The change of the log-density.
    """
    memory = new_memory(structure, state.counts.size)
    gain, n_moved = 0.0, 0
    terms, whole = np.arange(structure.kinds.size), True
    n_joint = schedule.joint_starts.size - 1
    for k in range(n_joint + 1 if n_joint else 0):
        # The first pass only evaluates the present table.
        if k > 0:
            directions = joint_directions(schedule, k - 1)
            proposal = propose(structure, directions, state, memory, draws)
            if proposal.n_cells <= 0:
                continue
            change = find_change(structure, memory.line, proposal.n_cells)
            terms, whole = memory.line.terms[: change.n_terms], change.whole
            for i in range(change.n_rows):
                row = memory.line.rows[i]
                state.values[row] += memory.line.slopes[row]
        measure_locally(
            log_density, context, structure, curvatures, state.values, terms, whole, memory.probe,
            memory.reached,
        )  # fmt: skip
        if k == 0:
            copy_terms(structure, terms, memory.reached, memory.present)
        else:
            status, gained = decide(structure, directions, proposal, change, state, memory, draws)
            gain += gained
            n_moved += status
    return n_moved, gain


@njit
def joint_directions(schedule: Schedule, k: int) -> Directions:
    """Return a set of joint directions."""
    chosen = schedule.joint_directions[schedule.joint_starts[k] : schedule.joint_starts[k + 1]]
    first = schedule.joint_factor_starts[k]
    factor = schedule.joint_factors[first : first + chosen.size**2]
    return Directions(
        schedule.direction_starts,
        schedule.direction_cells,
        schedule.direction_steps,
        chosen,
        factor.reshape(chosen.size, chosen.size),
    )


@njit(inline="always")
def sweep_counts(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Structure,
    schedule: Schedule,
    counts: np.ndarray,
    curvatures: np.ndarray,
    draws: Any,
) -> SweepOutcome:
    """Update the lines one by one, each given the outcome of those before it.

    Parameters
    ----------
    log_density, context, structure, draws
        As in :func:`update_line`.
    schedule : Schedule
        The moves.
    counts : ndarray of int64, shape (number of cells,)
        The present table; not changed.
    curvatures : ndarray of float64, shape (number of linear functions,) or (0,)
        As in :func:`update_line`. If empty, they are measured at the present table. The sweep then
        doesn't leave the posterior invariant: for tuning only.

    Returns
    -------
    SweepOutcome
        The table after the sweep.
    """
    # Computed anew in every sweep: rounding can't build up, and values can't be outdated after
    # parameters changed between sweeps.
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
    line.terms[:] = np.arange(line.terms.size)
    everything = Change(0, line.terms.size, True)
    final = log_density_at(log_density, context, state.values, line, everything, 0)
    moved = n_moved / n_able if n_able else 1.0
    return SweepOutcome(state.counts, moved, n_able, final, gain, curvatures)


@njit(inline="always")
def sweep_jointly(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Structure,
    schedule: Schedule,
    counts: np.ndarray,
    curvatures: np.ndarray,
    draws: Any,
) -> SweepOutcome:
    """Sweep as :func:`sweep_counts` does, then move along several directions at once.

    A separate kernel: it takes longer to compile, and few models have such directions.
    """
    swept = sweep_counts(log_density, context, structure, schedule, counts, curvatures, draws)
    state = State(swept.counts, start_values(structure, swept.counts))
    n_joint = schedule.joint_starts.size - 1
    n_moved, gain = move_jointly(
        log_density, context, structure, schedule, swept.curvatures, state, draws
    )
    n_able = swept.n_able + n_joint
    return SweepOutcome(
        state.counts,
        (swept.moved * swept.n_able + n_moved) / n_able if n_able else 1.0,
        n_able,
        swept.log_density + gain,
        swept.gain + gain,
        swept.curvatures,
    )
