"""The moves of a sweep over counts, packed into two arrays: each array argument takes time."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.line import Linear, Structure
from pymc_dapper.counts.kernels.linked import (
    FIRST,
    lines_of,
    longest_line,
    n_categories,
    packed,
    part,
)

DRAWS_PER_LINE = 8
"""Random numbers for each line of a sweep: usually more than needed."""
SPARE_LINES = 8
"""Extra lines with random numbers: with few lines, needs vary."""


class Lines(NamedTuple):
    """Lines along which cells move whatever the present table is."""

    single: np.ndarray
    """Int64: cells that move alone."""
    starts: np.ndarray
    cells: np.ndarray
    steps: np.ndarray
    """Int64: directions: the cells of each, and their changes. Direction d has entries
    ``starts[d]`` to ``starts[d + 1]``."""
    order: np.ndarray
    """Int64: the directions that are lines of a sweep, in this order."""


class Grids(NamedTuple):
    """Tables with known margins, whose cells make 2 x 2 swaps.

    A group of cells that exchange people in pairs is one row.
    """

    rows: np.ndarray
    columns: np.ndarray
    """Int64, shape (number of grids,)."""
    places: np.ndarray
    """Int64, shape (number of grids,): the start of each grid's places in ``starts``, row by
    row."""
    starts: np.ndarray
    cells: np.ndarray
    """Int64: the cells at each place of the grids: place k has cells ``starts[k]`` to
    ``starts[k + 1]``."""
    passes: np.ndarray
    """Int64, shape (number of grids,): number of passes over each grid."""


class Joint(NamedTuple):
    """Sets of directions in which a table moves jointly."""

    starts: np.ndarray
    chosen: np.ndarray
    """Int64: the directions of each set: set k has entries ``starts[k]`` to ``starts[k + 1]``."""
    factors: np.ndarray
    """Float64: the Cholesky factors of :class:`Directions`, raveled, set by set."""


class Schedule(NamedTuple):
    """The moves of a sweep; all fixed. For kernels, kinds that a model doesn't have are None."""

    lines: Lines
    grids: Grids
    linked: np.ndarray
    """Int64: linked tables, as :func:`pack_linked` has them."""
    joint: Joint


class Packed(NamedTuple):
    """Structure, schedule and curvatures in two arrays."""

    integers: np.ndarray
    """Int64: the starts of all integer arrays and the end of the last, then the arrays. The last
    two have the same for ``numbers``, and :func:`room`."""
    numbers: np.ndarray
    """Float64: coefficients, Cholesky factors, curvatures."""


def count_lines(schedule: Schedule) -> int:
    """Return the number of lines of a sweep."""
    lines, grids, linked, _ = schedule
    in_pass = np.maximum(grids.rows // 2, 1) * (grids.columns // 2)
    n_fixed = lines.single.size + lines.order.size + lines_of.py_func(linked)
    return int(n_fixed + grids.passes @ in_pass)


def room(schedule: Schedule) -> list[int]:
    """Return how many cells and exchanges need memory, and likely random numbers, in a sweep."""
    lines, grids, linked, joint = schedule
    most_cells = np.diff(lines.starts).max(initial=max(4, longest_line(linked)))
    most_exchanges = (np.maximum(grids.rows // 2, 1) * (grids.columns // 2)).max(initial=0)
    # A set of directions needs a number for each, and one for the decision.
    n_jointly = joint.chosen.size + joint.starts.size - 1
    n_lines = SPARE_LINES + count_lines(schedule)
    n_numbers = DRAWS_PER_LINE * n_lines + n_jointly + n_categories(linked)
    return [int(most_cells), int(most_exchanges), int(n_numbers)]


def pack(structure: Structure, schedule: Schedule, curvatures: np.ndarray) -> Packed:
    """Join all arrays: those of integers, and those of other numbers."""
    numbers = [structure.coefficients, schedule.joint.factors, curvatures]
    integers = [
        *(x for name, x in structure._asdict().items() if name != "coefficients"),
        *schedule.lines,
        *schedule.grids,
        *schedule.joint[:2],
        schedule.linked,
        np.cumsum([0] + [len(x) for x in numbers]),
        room(schedule),
    ]
    return Packed(packed(integers), np.concatenate(numbers).astype(np.float64))


LINES, GRIDS, JOINT, LINKED, NUMBERS = (FIRST + k for k in (6, 11, 17, 19, 20))
"""The first of each kind's packed arrays."""


@njit
def terms_of(integers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the terms' functions and arguments from a packed structure."""
    return part(integers, FIRST + 3), part(integers, FIRST + 4), part(integers, FIRST + 5)


@njit
def unpack(integers: np.ndarray, numbers: np.ndarray) -> tuple[Linear, Lines, np.ndarray]:
    """Return linear functions, fixed lines and curvatures from packed arrays."""
    i, k, starts = integers, LINES, part(integers, NUMBERS)
    coefficients = numbers[starts[0] : starts[1]]
    places = part(i, FIRST), part(i, FIRST + 1)
    structure = Linear(*places, coefficients, part(i, FIRST + 2))
    lines = Lines(part(i, k), part(i, k + 1), part(i, k + 2), part(i, k + 3), part(i, k + 4))
    return structure, lines, numbers[starts[2] : starts[3]]


@njit
def unpack_grids(integers: np.ndarray, numbers: np.ndarray) -> Grids:
    """Return grids from packed arrays."""
    i, k = integers, GRIDS
    places = part(i, k + 2), part(i, k + 3), part(i, k + 4)
    return Grids(part(i, k), part(i, k + 1), *places, part(i, k + 5))


@njit
def unpack_linked(integers: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return linked tables from packed arrays."""
    return part(integers, LINKED)


@njit
def unpack_joint(integers: np.ndarray, numbers: np.ndarray) -> Joint:
    """Return the sets of directions from packed arrays."""
    starts = part(integers, NUMBERS)
    factors = numbers[starts[1] : starts[2]]
    return Joint(part(integers, JOINT), part(integers, JOINT + 1), factors)


@njit
def none(integers: np.ndarray, numbers: np.ndarray) -> Any:
    """Return None: there are no moves of a kind, and numba leaves out what makes them."""
    return None
