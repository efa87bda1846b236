"""Moves of people between cells that keep the known sums and connect all tables.

Invariants are linear equations of the counts. Cells with the same column in them, a class, can
exchange people freely. If the equations fix the total of each class, as for totals of disjoint or
nested groups, exchanges connect all tables. Latent totals follow from the cells that they sum, and
need no moves (see :mod:`pymc_dapper.counts.reading.totals`). Two other systems have a known Markov
basis, a set of moves that connects all tables. One has one degree of freedom between the classes,
such as a known difference of two sums: all pairings of their cells. The other is the two margins of
a table: its 2 x 2 swaps (Diaconis and Sturmfels 1998). Tables that agree on margins have moves of
their own (:mod:`pymc_dapper.counts.reading.linked`). For other systems we don't guess.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import prod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pymc_dapper.counts.kernels.linked import NONE
from pymc_dapper.counts.reading.blocks import Block, extremes, find_blocks
from pymc_dapper.counts.reading.linked import Linked, find_linked
from pymc_dapper.counts.reading.totals import Totals, no_totals
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.terms.of_sums import rows_of, tidy

EXCHANGE_PASSES = 3
"""Passes over a group of three or more cells; each halves the memory of the previous table."""
SWAP_PASSES = 8
"""Passes over a table with known margins; in each, every cell is in one swap."""
SOFT_SWAP_PASSES = 2
"""Passes over a table whose two margins are parts of statistics."""
MAX_PARTITIONS = 6
"""Most statistics that are compared in pairs, to find such tables."""
BLOCK_PASSES = 3
"""Passes over the directions of a block."""
MAX_PAIRINGS = 1_000
"""Up to this number of pairings, cells of different classes are paired in all ways."""
MAX_GROUP_CELLS = 8
"""Limit on groups that share part of a statistic, in cells per cell; smallest groups first."""


PASS_A_BASIS = (
    "pass a Markov basis of the invariants, `moves=` with a row of integers for each move and a "
    "column for each cell (4ti2 computes such)"
)


@dataclass(frozen=True)
class Grid:
    """A table with 2 x 2 swaps, which keep its margins."""

    cells: tuple[tuple[np.ndarray, ...], ...]
    """The cells at each row and column: one, or several that exchange people."""
    passes: int
    """Number of passes in a sweep."""


@dataclass(frozen=True)
class Moves:
    """The moves of a sweep."""

    single: np.ndarray
    """Cells that move alone."""
    groups: tuple[np.ndarray, ...]
    """Groups of cells that exchange people in pairs."""
    passes: np.ndarray
    """Number of passes over each group in a sweep."""
    grids: tuple[Grid, ...]
    """Tables whose cells make 2 x 2 swaps."""
    directions: sparse.csr_array
    """Shape (number of directions, number of cells): other moves, one in each row."""
    blocks: tuple[Block, ...]
    """Cells tied by overlapping statistics; they move in directions of their own. There are none
    beside linked tables."""
    linked: tuple[Linked, ...] = ()
    """Tables that agree on their margins."""

    @classmethod
    def none(cls) -> Self:
        """Return an empty set of moves."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, (), nothing, (), sparse.csr_array((0, 0)), ())


def find_moves(
    invariants: sparse.csr_array,
    statistics: Sequence[sparse.csr_array],
    bounded: np.ndarray,
    names: Sequence[str],
    given: ArrayLike | None = None,
    ties: Sequence[sparse.csr_array] = (),
    totals: Totals | None = None,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Moves:
    """Find moves that keep the invariants and connect all tables.

    All matrices have a column for each cell, in the order of the tables' ``shapes``. If there are
    ``totals``, the matrices are for the free cells.

    Parameters
    ----------
    invariants
        Coefficients of the equations; ``names`` are for messages.
    statistics
        Other sums of several cells; people are also exchanged within these.
    bounded
        Cells with their own upper limit.
    given
        A Markov basis for invariants that aren't recognised, with a row for each move.
    ties
        Statistics that belong to the counts' own prior.

    Raises
    ------
    ReadingError
        If invariants aren't recognised and no moves are given, or if given moves break invariants.
    """
    n_cells = invariants.shape[1]
    invariants = tidy(invariants)
    totals = totals or no_totals(n_cells)
    linked, inside = _linked_tables(invariants, bounded, shapes if given is None else ())
    if linked:  # all other moves are of other cells
        others = sparse.diags_array((~inside).astype(float), format="csr")
        invariants, *statistics = (tidy(x @ others) for x in (invariants, *statistics))
    classes = classes_of(invariants)
    class_of = np.empty(n_cells, dtype=np.int64)
    for k, cells in enumerate(classes):
        class_of[cells] = k
    is_free = np.diff(invariants.tocsc().indptr) == 0
    exchanged = [cells for cells in classes if not is_free[cells[0]] and len(cells) > 1]
    groups, passes = _groups(exchanged, statistics, class_of)
    single = np.flatnonzero(is_free & ~totals.follows & ~inside)
    grids = _crossed_statistics(invariants, statistics, class_of)
    rows = _kept_differences(invariants, statistics)
    blocks = () if linked else find_blocks(invariants, statistics, ties)
    if given is not None:
        directions = _given_directions(invariants, np.asarray(given), names, totals)
        directions = sparse.vstack([directions, directions_of(rows, n_cells)], format="csr")
        return Moves(single, groups, passes, tuple(grids), directions, blocks)
    for component in components_of(invariants, classes):
        grid, direction = _between_classes(component, classes, bounded, names)
        if grid is not None:
            grids.append(grid)
        if direction is not None:
            rows += _lifted(direction, [classes[k] for k in component.classes])
    directions = directions_of(rows, n_cells)
    return Moves(single, groups, passes, tuple(grids), directions, blocks, tuple(linked))


def _linked_tables(
    invariants: sparse.csr_array, bounded: np.ndarray, shapes: Sequence[tuple[int, ...]]
) -> tuple[list[Linked], np.ndarray]:
    """Find linked tables, and which cells are in them."""
    found, inside = list[Linked](), np.zeros(len(bounded), dtype=bool)
    lowest, highest = extremes(invariants)
    if not shapes or np.all(lowest * highest >= 0):  # no sum of cells is one of others
        return found, inside
    of_cells = np.repeat(np.arange(len(shapes)), list(map(prod, shapes)))
    equations = invariants.tocoo()
    seen = (np.ones(equations.nnz), (equations.row, of_cells[equations.col]))
    by_table = sparse.csr_array(seen, shape=(invariants.shape[0], len(shapes)))
    for component in components_of(by_table, [np.array([k]) for k in range(len(shapes))]):
        cells = np.isin(of_cells, component.classes)
        tables = find_linked(invariants[component.equations], shapes)
        if tables is not None and not bounded[cells].any():
            found.append(tables)
            inside |= cells
    if len(found) > 1 and any(np.all(tables.sets == NONE, axis=1).any() for tables in found):
        return [], np.zeros_like(inside)  # a person more would be one in each
    return found, inside


def _groups(
    exchanged: Sequence[np.ndarray], statistics: Sequence[sparse.csr_array], class_of: np.ndarray
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Exchange within classes, and within the cells of a statistic."""
    groups = {cells.tobytes(): cells for cells in exchanged}
    passes = {key: 1 if len(cells) == 2 else EXCHANGE_PASSES for key, cells in groups.items()}
    shared: dict[bytes, np.ndarray] = {}
    for matrix in statistics:
        for cells in (x for x, _ in rows_of(matrix) if len(x) > 1):
            for part in _split(cells, class_of[cells]):
                if len(part) > 1 and part.tobytes() not in groups:
                    shared.setdefault(part.tobytes(), part)
    room = MAX_GROUP_CELLS * len(class_of)
    for key, cells in sorted(shared.items(), key=lambda item: len(item[1])):
        room -= len(cells)
        if room < 0:
            break
        groups[key], passes[key] = cells, 1
    return tuple(groups.values()), np.array(list(passes.values()), dtype=np.int64)


def _crossed_statistics(
    invariants: sparse.csr_array, statistics: Sequence[sparse.csr_array], class_of: np.ndarray
) -> list[Grid]:
    """Find tables whose two margins are two statistics, or a statistic and invariants.

    If both margins are nearly known, an exchange of two cells hardly ever moves people. Swaps do.
    """
    partitions = {class_of.tobytes(): class_of} if invariants.shape[0] else {}
    for matrix in statistics:
        labels = _partition(matrix)
        if labels is not None and len(partitions) < MAX_PARTITIONS:
            partitions.setdefault(labels.tobytes(), labels)
    columns = invariants.tocsc()
    grids = []
    for first, second in combinations(partitions.values(), 2):
        both = np.flatnonzero((first >= 0) & (second >= 0))
        graph = sparse.coo_array(
            (np.ones(len(both)), (first[both], second[both])),
            shape=(first.max() + 1, second.max() + 1),
        )
        square = sparse.block_array([[None, graph], [graph.T, None]])
        _, component = connected_components(square, directed=False)
        for cells in _split(both, component[first[both]]):
            grid = _full_grid(cells, first[cells], second[cells])
            if grid is not None and _swaps_keep(columns, grid, class_of):
                grids.append(grid)
    return grids


def _partition(matrix: sparse.csr_array) -> np.ndarray | None:
    """Return the sum to which each cell belongs, -1 for none; None if a cell is in two."""
    matrix = matrix.tocsr()
    per_row, per_cell = np.diff(matrix.indptr), np.diff(matrix.tocsc().indptr)
    if per_cell.max(initial=0) > 1 or per_row.max(initial=0) < 2 or np.any(matrix.data != 1):
        return None
    labels = np.full(matrix.shape[1], -1, dtype=np.int64)
    labels[matrix.indices] = np.repeat(np.arange(matrix.shape[0]), per_row)
    return labels


def _full_grid(cells: np.ndarray, first: np.ndarray, second: np.ndarray) -> Grid | None:
    _, row = np.unique(first, return_inverse=True)
    _, column = np.unique(second, return_inverse=True)
    shape = (int(row.max()) + 1, int(column.max()) + 1)
    if min(shape) < 2:
        return None
    places = list(_split(cells, row * shape[1] + column))
    if len(places) != shape[0] * shape[1]:
        return None
    rows = [tuple(places[k : k + shape[1]]) for k in range(0, len(places), shape[1])]
    return Grid(tuple(rows), SOFT_SWAP_PASSES)


def _swaps_keep(columns: sparse.csc_array, grid: Grid, class_of: np.ndarray) -> bool:
    """Whether all swaps in a grid keep the invariants."""
    if any(len(set(class_of[cells])) > 1 for row in grid.cells for cells in row):
        return False
    at = np.array([[cells[0] for cells in row] for row in grid.cells])
    corner = np.broadcast_to(at[0, 0], at.shape).ravel()
    left = np.broadcast_to(at[:, :1], at.shape).ravel()
    top = np.broadcast_to(at[:1], at.shape).ravel()
    change = columns[:, at.ravel()] - columns[:, left] - columns[:, top] + columns[:, corner]
    return bool(abs(change).sum() == 0)


def _kept_differences(
    invariants: sparse.csr_array, statistics: Sequence[sparse.csr_array]
) -> list[dict[int, int]]:
    """Find pairs of cells that grow together because a term depends on their difference."""
    columns = invariants.tocsc()
    found: dict[tuple[int, int], dict[int, int]] = {}
    for matrix in statistics:
        for cells, steps in rows_of(matrix[np.diff(matrix.indptr) == 2]):
            if steps.sum() == 0 and abs(columns[:, cells]).sum() == 0:
                a, b = cells.tolist()
                found[a, b] = {a: 1, b: 1}
    return list(found.values())


def _split(cells: np.ndarray, labels: np.ndarray) -> Iterator[np.ndarray]:
    if not len(cells):
        return
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    yield from np.split(cells[order], cuts)


def classes_of(invariants: sparse.csr_array) -> list[np.ndarray]:
    """Collect cells with the same coefficients in all equations."""
    columns = invariants.tocsc()
    columns.sort_indices()
    found: dict[bytes, list[int]] = {}
    for cell, (start, stop) in enumerate(pairwise(columns.indptr)):
        key = columns.indices[start:stop].tobytes() + columns.data[start:stop].tobytes()
        found.setdefault(key, []).append(cell)
    return [np.array(cells, dtype=np.int64) for cells in found.values()]


@dataclass(frozen=True)
class Component:
    """Equations that share cells, with their classes."""

    equations: np.ndarray
    classes: np.ndarray
    rows: sparse.csr_array
    """Coefficients, a row for each equation and a column for each class."""


def components_of(
    invariants: sparse.csr_array, classes: Sequence[np.ndarray]
) -> Iterator[Component]:
    """Collect equations that have cells in common."""
    by_class = invariants.tocsc()[:, [cells[0] for cells in classes]]
    n_equations = by_class.shape[0]
    graph = sparse.block_array([[None, by_class], [by_class.T, None]]) if n_equations else None
    if graph is None:
        return
    n_components, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(n_components + 1))
    by_class = by_class.tocsr()
    for start, stop in pairwise(starts):
        members = np.sort(order[start:stop])
        equations = members[members < n_equations]
        inside = members[members >= n_equations] - n_equations
        if len(equations) and len(inside):
            yield Component(equations, inside, by_class[equations][:, inside])


def _between_classes(
    component: Component, classes: Sequence[np.ndarray], bounded: np.ndarray, names: Sequence[str]
) -> tuple[Grid | None, np.ndarray | None]:
    """Find moves between classes: none, a grid of swaps, or a direction."""
    matrix = component.rows.toarray()
    n_classes = matrix.shape[1]
    free = n_classes - np.linalg.matrix_rank(matrix)
    if free == 0:
        return None, None
    inside = [classes[k] for k in component.classes]
    if free == 1:
        direction = _kernel_direction(matrix)
        if direction is not None:
            moving = [cells for cells, step in zip(inside, direction, strict=True) if step]
            if any(bounded[cells].any() for cells in moving) and not _pairs_all(moving):
                raise _too_many_pairings(component, names)
            return None, direction
    places = _margins(matrix)
    if places is not None and not any(bounded[cells].any() for cells in inside):
        row, column = places
        grid = [[inside[0]] * (column.max() + 1) for _ in range(row.max() + 1)]
        for cells, i, j in zip(inside, row, column, strict=True):
            grid[i][j] = cells
        return Grid(tuple(tuple(each) for each in grid), SWAP_PASSES), None
    listed = _listed(component, names)
    raise ReadingError(
        f"CountStep doesn't know moves that keep what {listed} fixed and reach every table. It "
        "knows totals of disjoint or nested groups, the two margins of a full table, and tables "
        "linked by a margin, without upper bounds. Leave out totals that follow from the others; "
        f"or {PASS_A_BASIS}"
    )


def _too_many_pairings(component: Component, names: Sequence[str]) -> ReadingError:
    return ReadingError(
        f"what {_listed(component, names)} fixed ties several groups of cells, some of them with "
        "upper bounds. If a cell must stay empty, every table is reached only by moves for all "
        f"pairings of their cells: more than {MAX_PAIRINGS:,}. Use counts without upper bounds; or "
        f"{PASS_A_BASIS}"
    )


def _listed(component: Component, names: Sequence[str]) -> str:
    """Name the equations of a component, with a verb."""
    listed = sorted({names[k] for k in component.equations})
    return ", ".join(f"'{name}'" for name in listed) + (" hold" if len(listed) > 1 else " holds")


def _kernel_direction(matrix: np.ndarray) -> np.ndarray | None:
    """Return the only direction that keeps all equations; None if steps of it exceed one person."""
    direction = np.linalg.svd(matrix)[2][-1]
    direction = direction / np.abs(direction).max()
    rounded = np.round(direction)
    exact = np.allclose(direction, rounded, atol=1e-9) and not np.any(matrix @ rounded)
    if not np.any(rounded > 0):
        rounded = -rounded
    return rounded.astype(np.int64) if exact else None


def _lifted(direction: np.ndarray, classes: Sequence[np.ndarray]) -> list[dict[int, int]]:
    """Move people between classes.

    All pairings of their cells connect all tables, for any upper bounds. If there are many, each
    cell gets one pairing: with exchanges, these connect all tables if no cell is always empty.
    """
    moving = [cells for cells, step in zip(classes, direction, strict=True) if step]
    steps = direction[direction != 0].tolist()
    longest = max(len(cells) for cells in moving)
    pairings = (
        product(*moving)
        if _pairs_all(moving)
        else ([cells[k % len(cells)] for cells in moving] for k in range(longest))
    )
    return [dict(zip(map(int, cells), steps, strict=True)) for cells in pairings]


def _pairs_all(moving: Sequence[np.ndarray]) -> bool:
    """Whether cells of different classes are paired in all ways."""
    sizes = [len(cells) for cells in moving]
    return prod(sizes) <= max(MAX_PAIRINGS, *sizes)


def _margins(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return each class's row and column in a table whose margins are the equations; else None.

    The matrix has an equation in each row and a class in each column.
    """
    signs = np.where(matrix.max(axis=1) > 0, 1.0, -1.0)
    sets = np.unique(signs[:, None] * matrix, axis=0)
    if not np.all((sets == 0) | (sets == 1)):
        return None
    sets = sets[~np.all(sets == 1, axis=1)].astype(bool)
    if len(sets) == 0:
        return None
    # Sets of one margin are disjoint. In a full table, each overlaps with all of the other margin.
    overlap = (sets.astype(int) @ sets.T.astype(int) > 0) & ~np.eye(len(sets), dtype=bool)
    side = overlap[0].astype(int)
    if not side.any() or np.any(overlap != np.not_equal.outer(side, side)):
        return None
    places = []
    for which in (0, 1):
        margin = sets[side == which]
        rest = ~margin.any(axis=0)
        if rest.any():
            margin = np.vstack([margin, rest])
        places.append(margin.argmax(axis=0))
    row, column = places
    shape = (row.max() + 1, column.max() + 1)
    full = len(set(zip(row.tolist(), column.tolist(), strict=True))) == shape[0] * shape[1]
    if not full or shape[0] * shape[1] != len(row):
        return None
    # The equations must determine both margins.
    pairs = zip(shape, places, strict=True)
    margins = np.vstack([np.equal.outer(np.arange(n), at) for n, at in pairs])
    rank = np.linalg.matrix_rank(matrix)
    both = np.linalg.matrix_rank(np.vstack([matrix, margins]))
    return (row, column) if rank == both == shape[0] + shape[1] - 1 else None


def _given_directions(
    invariants: sparse.csr_array, given: np.ndarray, names: Sequence[str], totals: Totals
) -> sparse.csr_array:
    n_cells = invariants.shape[1]
    if given.ndim != 2 or given.shape[1] != n_cells:
        raise ReadingError(
            f"moves has shape {given.shape}: it takes a row for each move and a column for each of "
            f"the {n_cells} cells"
        )
    if not np.array_equal(given, np.round(given.astype(float))):
        raise ReadingError("moves must be integers: numbers of people")
    moves = given.astype(np.int64)
    moves = moves[np.any(moves != 0, axis=1)]
    broken = np.argwhere((invariants @ moves.T) != 0)
    if len(broken):
        equation, move = broken[0]
        raise ReadingError(
            f"the move {moves[move].tolist()} changes what '{names[equation]}' holds fixed"
        )
    for move in moves:
        if not np.array_equal(totals.completed(move), move):
            raise ReadingError(
                f"the move {move.tolist()} changes a total by more or less than its cells"
            )
    moves[:, totals.follows] = 0
    # Turn moves of one sign upwards, so that their line has a lower end.
    return sparse.csr_array(np.where((moves <= 0).all(axis=1, keepdims=True), -moves, moves))


def directions_of(rows: Sequence[dict[int, int]], n_cells: int) -> sparse.csr_array:
    """Return moves as the rows of a matrix, from the steps of their cells."""
    indptr = np.cumsum([0] + [len(row) for row in rows])
    cells = [cell for row in rows for cell in row]
    steps = [step for row in rows for step in row.values()]
    values = np.array(steps, dtype=np.int64), np.array(cells, dtype=np.int64), indptr
    return sparse.csr_array(values, shape=(len(rows), n_cells))
