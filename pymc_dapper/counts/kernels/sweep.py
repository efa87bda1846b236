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
    Line,
    State,
    Structure,
    find_change,
    find_curvatures,
    log_density_at,
    new_line,
    start_values,
    update_line,
)
from pymc_dapper.counts.kernels.linked import (
    FIRST,
    lines_of,
    longest_line,
    n_categories,
    packed,
    part,
    set_linked_line,
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
    """Int64: directions: the cells of each, as for places, and their changes."""
    direction_lines: np.ndarray
    """Int64: the directions that are lines of a sweep, in this order."""
    joint_starts: np.ndarray
    joint_directions: np.ndarray
    """Int64: directions in which a table moves jointly, as for places."""
    linked: np.ndarray
    """Int64: linked tables, as :func:`pack_linked` has them."""
    joint_factors: np.ndarray
    """Float64: the Cholesky factors of :class:`Directions`, raveled, set by set."""


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


def count_lines(schedule: Schedule) -> int:
    """Return the number of lines of a sweep."""
    in_pass = np.maximum(schedule.grid_rows // 2, 1) * (schedule.grid_columns // 2)
    n_fixed = schedule.single.size + schedule.direction_lines.size
    return int(n_fixed + lines_of.py_func(schedule.linked) + schedule.grid_passes @ in_pass)


def _room(schedule: Schedule) -> int:
    """Return a likely upper limit on the random numbers of a sweep."""
    # A set of directions needs a number for each, and one for the decision.
    n_jointly = schedule.joint_directions.size + schedule.joint_starts.size - 1
    n_lines = SPARE_LINES + count_lines(schedule)
    return int(DRAWS_PER_LINE * n_lines + n_jointly + n_categories(schedule.linked))


def pack(structure: Structure, schedule: Schedule, curvatures: np.ndarray) -> Packed:
    """Join all arrays: those of integers, and those of other numbers."""
    numbers = [structure.coefficients, schedule.joint_factors, curvatures]
    integers = [
        *(x for name, x in structure._asdict().items() if name != "coefficients"),
        *(x for name, x in schedule._asdict().items() if name != "joint_factors"),
        np.cumsum([0] + [len(x) for x in numbers]),
        np.array([_room(schedule)]),
    ]
    return Packed(packed(integers), np.concatenate(numbers).astype(np.float64))


@njit
def terms_of(integers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the terms' functions and arguments from a packed structure."""
    return part(integers, FIRST + 3), part(integers, FIRST + 4), part(integers, FIRST + 5)


@njit
def unpack(integers: np.ndarray, numbers: np.ndarray) -> tuple[Structure, Schedule, np.ndarray]:
    """Return structure, schedule and curvatures from packed arrays."""
    i, k, starts = integers, FIRST, part(integers, FIRST + 20)
    coefficients, factors = numbers[starts[0] : starts[1]], numbers[starts[1] : starts[2]]
    terms = part(i, k + 2), part(i, k + 3), part(i, k + 4), part(i, k + 5)
    structure = Structure(part(i, k), part(i, k + 1), coefficients, *terms)
    grids = part(i, k + 6), part(i, k + 7), part(i, k + 8), part(i, k + 9)
    places = part(i, k + 10), part(i, k + 11), part(i, k + 12)
    directions = part(i, k + 13), part(i, k + 14), part(i, k + 15), part(i, k + 16)
    joint, linked = (part(i, k + 17), part(i, k + 18)), part(i, k + 19)
    schedule = Schedule(*grids, *places, *directions, *joint, linked, factors)
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
    longest = max(4, longest_line(schedule.linked))
    starts = schedule.direction_starts
    for k in range(starts.size - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    return longest


@njit
def pair_cells(cells: np.ndarray, counts: np.ndarray, corners: np.ndarray, draws: Any) -> int:
    """Pair the cells of a group at random, and return the number of pairs.

    Only cells with people look for a partner, since empty cells have nobody to exchange. Each pair
    is as probable as if all cells were paired. With an odd number of cells, one has no partner.
    """
    n_alone, n_pairs = cells.size + cells.size % 2, 0
    alone = np.arange(n_alone)  # the first ``n_alone`` have no partner yet
    place = np.arange(n_alone)  # of each in ``alone``
    for first in range(cells.size):
        if counts[cells[first]] == 0 or place[first] >= n_alone:
            continue
        chosen = first
        for side in range(2):
            if side == 1:
                chosen = alone[pick(draws, 0, n_alone - 1) if n_alone > 1 else 0]
            n_alone -= 1
            last = alone[n_alone]
            alone[place[chosen]], alone[n_alone] = last, chosen
            place[last], place[chosen] = place[chosen], n_alone
        if chosen < cells.size:
            corners[n_pairs, 0], corners[n_pairs, 1] = cells[first], cells[chosen]
            n_pairs += 1
    return n_pairs


@njit
def pair_corners(
    schedule: Schedule, g: int, counts: np.ndarray, corners: np.ndarray, draws: Any
) -> int:
    """Choose the corners of swaps in a grid, each cell at most once; return their number.

    Swaps are left out if there is nobody to swap.
    """
    rows, columns = np.arange(schedule.grid_rows[g]), np.arange(schedule.grid_columns[g])
    shuffle(rows, draws)
    shuffle(columns, draws)
    n_swaps = 0
    for i in range(0, rows.size - 1, 2):
        for j in range(0, columns.size - 1, 2):
            cells = corners[n_swaps]
            for corner in range(4):
                column = columns[j + corner % 2]
                place = schedule.grid_places[g] + rows[i + corner // 2] * columns.size + column
                start, stop = schedule.place_starts[place], schedule.place_starts[place + 1]
                at = pick(draws, start, stop - 1) if stop - start > 1 else start
                cells[corner] = schedule.place_cells[at]
            in_one = min(counts[cells[0]], counts[cells[3]])
            in_other = min(counts[cells[1]], counts[cells[2]])
            n_swaps += int(in_one + in_other > 0)
    return n_swaps


@njit
def plan_pass(
    schedule: Schedule, g: int, counts: np.ndarray, corners: np.ndarray, draws: Any
) -> int:
    """Choose the lines of a pass, and return their number.

    Pass -1 is over single cells. The last pass is over directions, and then over linked tables.
    All others are over grids, and choose the corners of their lines. Lines are left out if the
    present table is the only one along them. Nothing else depends on the present table. Lines of a
    grid have no cell in common, so what is left out stays so until its turn comes.
    """
    if g < 0:
        return schedule.single.size
    if g == schedule.grid_rows.size:
        return schedule.direction_lines.size + lines_of(schedule.linked)
    if schedule.grid_rows[g] > 1:
        return pair_corners(schedule, g, counts, corners, draws)
    start = schedule.place_starts[schedule.grid_places[g]]
    cells = schedule.place_cells[start : start + schedule.grid_columns[g]]
    return pair_cells(cells, counts, corners, draws)


@njit
def set_line(
    schedule: Schedule, g: int, k: int, corners: np.ndarray, line: Line, draws: Any
) -> int:
    """Write the cells and steps of a line, and return the number of its cells."""
    if g == schedule.grid_rows.size:
        if k >= schedule.direction_lines.size:
            return set_linked_line(schedule.linked, k - schedule.direction_lines.size, line, draws)
        d = schedule.direction_lines[k]
        start, stop = schedule.direction_starts[d], schedule.direction_starts[d + 1]
        for i in range(stop - start):
            line.cells[i] = schedule.direction_cells[start + i]
            line.steps[i] = schedule.direction_steps[start + i]
        return stop - start
    n_cells = 1 if g < 0 else 2 * min(schedule.grid_rows[g], 2)
    for corner in range(n_cells):
        line.cells[corner] = schedule.single[k] if g < 0 else corners[k, corner]
        line.steps[corner] = 1 if corner in (0, 3) else -1
    return n_cells


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
    n_joint, first = schedule.joint_starts.size - 1, 0
    for k in range(n_joint + 1 if n_joint else 0):
        # The first pass only evaluates the present table.
        if k > 0:
            directions = joint_directions(schedule, k - 1, first)
            first += directions.factor.size
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
def joint_directions(schedule: Schedule, k: int, first: int) -> Directions:
    """Return a set of joint directions, whose factor begins at ``first``."""
    chosen = schedule.joint_directions[schedule.joint_starts[k] : schedule.joint_starts[k + 1]]
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
    n_grids, most = schedule.grid_rows.size, 0
    for g in range(n_grids):
        most = max(most, max(schedule.grid_rows[g] // 2, 1) * (schedule.grid_columns[g] // 2))
    corners = np.empty((most, 4), dtype=np.int64)
    if curvatures.size < structure.terms.size:
        curvatures = find_curvatures(log_density, context, structure, state.values, line)
    gain, n_moved, n_able = 0.0, 0, 0
    for g in range(-1, n_grids + 1):
        for _ in range(schedule.grid_passes[g] if 0 <= g < n_grids else 1):
            for k in range(plan_pass(schedule, g, state.counts, corners, draws)):
                n_cells = set_line(schedule, g, k, corners, line, draws)
                status, gained = update_line(
                    log_density, context, structure, curvatures, state, line, n_cells, draws
                )
                gain += gained
                if status >= 0:
                    n_able += 1
                    n_moved += status
    for k in range(line.terms.size):
        line.terms[k] = k
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
