"""One sweep over a table of counts: all cells and groups of cells move in turn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.exchanges import plan_exchanges, set_exchange
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
    Linear,
    State,
    count_terms,
    find_change,
    find_curvatures,
    log_density_at,
    new_line,
    start_values,
    update_line,
)
from pymc_dapper.counts.kernels.linked import lines_of, set_linked_line
from pymc_dapper.counts.kernels.schedule import Grids, Joint, Lines
from pymc_dapper.kernels.arrays import int64, numbered


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


@njit
def set_line(
    lines: Lines, linked: np.ndarray | None, g: int, k: int, line: Line, draws: Any
) -> int:
    """Write the cells and steps of a line, and return the number of its cells."""
    if g < 0:
        line.cells[0], line.steps[0] = lines.single[k], 1
        return 1
    if linked is not None and k >= lines.order.size:
        return set_linked_line(linked, k - lines.order.size, line, draws)
    d = lines.order[k]
    start, stop = lines.starts[d], lines.starts[d + 1]
    for i in range(stop - start):
        line.cells[i] = lines.cells[start + i]
        line.steps[i] = lines.steps[start + i]
    return stop - start


@njit
def move_jointly(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Linear,
    lines: Lines,
    joint: Joint,
    curvatures: np.ndarray,
    state: State,
    draws: Any,
) -> tuple[int, float]:
    """Move along several directions at once, one set of directions after another.

    Parameters
    ----------
    log_density, context, structure, curvatures, state, draws
        As in :func:`update_line`.
    lines : Lines
        The directions.
    joint : Joint
        The sets of them.

    Returns
    -------
    n_moved : int
        How often the table changed.
    gain : float
        The change of the log-density.
    """
    memory = new_memory(structure, state.counts.size)
    gain, n_moved = 0.0, 0
    terms, whole = numbered(count_terms(structure)), True
    n_joint, first = joint.starts.size - 1, int64(0)
    for k in range(n_joint + 1 if n_joint else 0):
        # The first pass only evaluates the present table.
        if k > 0:
            directions = joint_directions(lines, joint, k - 1, first)
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
            log_density, context, structure, curvatures, state.values, terms, whole, memory
        )
        if k == 0:
            copy_terms(structure, memory, terms, memory.reached, memory.present)
        else:
            status, gained = decide(structure, directions, proposal, change, state, memory, draws)
            gain += gained
            n_moved += status
    return n_moved, gain


@njit
def joint_directions(lines: Lines, joint: Joint, k: int, first: int) -> Directions:
    """Return a set of joint directions, whose factor begins at ``first``."""
    chosen = joint.chosen[joint.starts[k] : joint.starts[k + 1]]
    factor = joint.factors[first : first + chosen.size**2]
    square = factor.reshape(chosen.size, chosen.size)
    return Directions(lines.starts, lines.cells, lines.steps, chosen, square)


@njit
def sweep_counts(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    structure: Linear,
    lines: Lines,
    grids: Grids | None,
    linked: np.ndarray | None,
    joint: Joint | None,
    room: np.ndarray,
    counts: np.ndarray,
    curvatures: np.ndarray,
    draws: Any,
) -> SweepOutcome:
    """Update the lines one by one, each given the outcome of those before it.

    The first pass is over single cells. Passes over grids follow. The last is over directions, and
    then over linked tables. At the end, sets of directions move jointly. numba leaves out what
    makes moves of a kind that is None, as each kind takes time to compile.

    Parameters
    ----------
    log_density, context, structure, draws
        As in :func:`update_line`.
    lines, grids, linked, joint
        The moves, as in :class:`~pymc_dapper.counts.kernels.schedule.Schedule`.
    room : ndarray of int64
        Sizes of the working memory, as :func:`~pymc_dapper.counts.kernels.schedule.room` has them.
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
    line, corners = new_line(structure, room[0]), np.empty((room[1], 4), dtype=np.int64)
    n_grids, n_last = 0, lines.order.size
    if grids is not None:
        n_grids = grids.rows.size
    if linked is not None:
        n_last += lines_of(linked)
    if curvatures.size < structure.terms.size:
        curvatures = find_curvatures(log_density, context, structure, state.values, line)
    gain, n_moved, n_able = 0.0, 0, 0
    for g in range(-1, n_grids + 1):
        of_grid, n_passes = 0 <= g < n_grids, 1
        if grids is not None and of_grid:
            n_passes = grids.passes[g]
        for _ in range(n_passes):
            n_lines = lines.single.size if g < 0 else n_last
            if grids is not None and of_grid:
                n_lines = plan_exchanges(grids, g, state.counts, corners, draws)
            for k in range(n_lines):
                if grids is not None and of_grid:
                    n_cells = set_exchange(grids, g, corners[k], line)
                else:
                    n_cells = set_line(lines, linked, g, k, line, draws)
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
    if joint is not None:
        state = State(state.counts, start_values(structure, state.counts))
        moved, gained = move_jointly(
            log_density, context, structure, lines, joint, curvatures, state, draws
        )
        n_able += joint.starts.size - 1
        n_moved, gain, final = n_moved + moved, gain + gained, final + gained
    share = n_moved / n_able if n_able else 1.0
    return SweepOutcome(state.counts, share, n_able, final, gain, curvatures)
