"""Exchanges of people between random cells: pairs of a group, and swaps of a grid."""

from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.counts.kernels.draws import pick
from pymc_dapper.counts.kernels.line import Line
from pymc_dapper.counts.kernels.schedule import Grids
from pymc_dapper.kernels.arrays import numbered


@njit
def shuffle(items: np.ndarray, draws: Any) -> None:
    """Put items in a random order."""
    for i in range(items.size - 1, 0, -1):
        j = pick(draws, 0, i)
        items[i], items[j] = items[j], items[i]


@njit
def pair_cells(cells: np.ndarray, counts: np.ndarray, corners: np.ndarray, draws: Any) -> int:
    """Pair the cells of a group at random, and return the number of pairs.

    Only cells with people look for a partner, since empty cells have nobody to exchange. Each pair
    is as probable as if all cells were paired. With an odd number of cells, one has no partner.
    Pairs come in the order of their first cells, whichever of the two looked for the other: were
    the order to depend on who has people, exchanges wouldn't leave the posterior invariant.
    """
    n_alone, n_pairs = cells.size + cells.size % 2, 0
    # The first ``n_alone`` have no partner yet; pairs stand after them. And the place of each.
    alone, place = numbered(n_alone), numbered(n_alone)
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
    # A pair stands at an even place and the next one: ``^ 1`` leads from one to the other.
    for low in range(cells.size):
        if place[low] >= n_alone and low < alone[place[low] ^ 1] < cells.size:
            corners[n_pairs, 0], corners[n_pairs, 1] = cells[low], cells[alone[place[low] ^ 1]]
            n_pairs += 1
    return n_pairs


@njit
def pair_corners(grids: Grids, g: int, counts: np.ndarray, corners: np.ndarray, draws: Any) -> int:
    """Choose the corners of swaps in a grid, each cell at most once; return their number.

    Swaps are left out if there is nobody to swap.
    """
    rows, columns = numbered(grids.rows[g]), numbered(grids.columns[g])
    shuffle(rows, draws)
    shuffle(columns, draws)
    n_swaps = 0
    for i in range(0, rows.size - 1, 2):
        for j in range(0, columns.size - 1, 2):
            cells = corners[n_swaps]
            for corner in range(4):
                column = columns[j + corner % 2]
                place = grids.places[g] + rows[i + corner // 2] * columns.size + column
                start, stop = grids.starts[place], grids.starts[place + 1]
                at = pick(draws, start, stop - 1) if stop - start > 1 else start
                cells[corner] = grids.cells[at]
            in_one = min(counts[cells[0]], counts[cells[3]])
            in_other = min(counts[cells[1]], counts[cells[2]])
            n_swaps += int(in_one + in_other > 0)
    return n_swaps


@njit
def plan_exchanges(
    grids: Grids, g: int, counts: np.ndarray, corners: np.ndarray, draws: Any
) -> int:
    """Choose the corners of a pass over a grid, and return the number of lines.

    Lines are left out if the present table is the only one along them. Nothing else depends on the
    present table. Lines of a grid have no cell in common, so what is left out stays so until its
    turn comes.
    """
    if grids.rows[g] > 1:
        return pair_corners(grids, g, counts, corners, draws)
    start = grids.starts[grids.places[g]]
    cells = grids.cells[start : start + grids.columns[g]]
    return pair_cells(cells, counts, corners, draws)


@njit
def set_exchange(grids: Grids, g: int, corners: np.ndarray, line: Line) -> int:
    """Write the line of these corners, and return the number of its cells."""
    n_cells = 2 * min(grids.rows[g], 2)
    for corner in range(n_cells):
        line.cells[corner] = corners[corner]
        line.steps[corner] = 1 if corner in (0, 3) else -1
    return n_cells
