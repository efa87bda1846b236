"""Blocks: cells that overlapping statistics tie together, and the lattice of their tables.

For sums of disjoint or nested groups, exchanges between two cells are enough. Other overlapping
sums (windows, three margins of a table, weighted sums) may be known better than their cells. Then
only changes of many cells keep all sums. And cells that share a marginalised parameter grow
together. The right changes depend on how well each sum is known; the step measures that
(:mod:`pymc_dapper.counts.compiled.blocks`). Here we find the cells concerned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

MAX_BLOCK_CELLS = 200
"""Most cells of a block: finding its directions takes at least the cube of their number."""
PRECISION = 1e-12
"""Relative precision with which a random change must keep the invariants."""


@dataclass(frozen=True, eq=False)
class Block:
    """Cells that overlapping sums tie together."""

    cells: np.ndarray
    basis: np.ndarray
    """Int, shape (number of vectors, number of cells of the block): a basis of the changes of these
    cells that keep the invariants."""


def find_blocks(
    invariants: sparse.csr_array,
    statistics: Sequence[sparse.csr_array],
    ties: Sequence[sparse.csr_array] = (),
) -> tuple[Block, ...]:
    """Find the blocks of a table, which are disjoint; none if all sums are disjoint or nested.

    ``ties`` are sums of cells whose prior makes them grow together, as if they shared a parameter.
    """
    rows, tied = _sums([invariants, *statistics]), _sums([invariants[:0], *ties])
    tied = tied[~_is_difference(tied) & ~_is_fixed(tied, invariants)]
    together = [rows[_crosses(rows) | _weighs(rows)], tied]
    columns, bases = invariants.tocsc(), dict[tuple[int, bytes], np.ndarray]()
    blocks = []
    for cells in _pieces(sparse.vstack(together, format="csr")):
        inside = columns[:, cells]
        rows_inside, row = np.unique(inside.indices, return_inverse=True)
        equations = np.zeros((len(rows_inside), len(cells)))
        equations[row, np.repeat(np.arange(len(cells)), np.diff(inside.indptr))] = inside.data
        if np.array_equal(equations, np.round(equations)):
            key = len(cells), equations.tobytes()
            if key not in bases:
                bases[key] = integer_kernel(equations.astype(np.int64))
            if len(bases[key]):
                blocks.append(Block(cells, bases[key]))
    return tuple(blocks)


def _sums(matrices: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Collect linear functions of several cells."""
    rows = sparse.vstack(matrices, format="csr").astype(float)
    rows.eliminate_zeros()
    return rows[np.diff(rows.indptr) > 1]


def _crosses(rows: sparse.csr_array) -> np.ndarray:
    """Return which sums overlap with another one without being nested."""
    sizes = np.diff(rows.indptr)
    pattern = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    common = (pattern @ pattern.T).tocoo()
    partly = common.data < np.minimum(sizes[common.row], sizes[common.col])
    crosses = np.zeros(len(sizes), dtype=bool)
    crosses[common.row[partly]] = True
    return crosses


def _weighs(rows: sparse.csr_array) -> np.ndarray:
    """Return which sums have different weights, other than a difference of two cells."""
    lowest, highest = extremes(rows)
    return (lowest != highest) & ~_is_difference(rows)


def _is_difference(rows: sparse.csr_array) -> np.ndarray:
    """Return which linear functions are the difference of two cells."""
    lowest, highest = extremes(rows)
    return (np.diff(rows.indptr) == 2) & (lowest == -highest)


def _is_fixed(rows: sparse.csr_array, invariants: sparse.csr_array) -> np.ndarray:
    """Return which sums are the same in all tables: a random change doesn't change them."""
    if 0 in (rows.shape[0], invariants.shape[0]):
        return np.zeros(rows.shape[0], dtype=bool)
    change = np.random.default_rng(0).normal(size=rows.shape[1])
    change -= invariants.T @ lsqr(invariants.T, change, atol=PRECISION, btol=PRECISION)[0]
    return np.abs(rows @ change) < 1e-6 * np.sqrt((rows**2).sum(axis=1))


def extremes(rows: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Find the smallest and the largest coefficient of each sum."""
    if rows.nnz == 0:
        return np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    starts = rows.indptr[:-1]
    return np.minimum.reduceat(rows.data, starts), np.maximum.reduceat(rows.data, starts)


def _pieces(rows: sparse.csr_array) -> list[np.ndarray]:
    """Join cells of the same sums, smallest sums first, as far as there is room."""
    piece_of = np.arange(rows.shape[1])
    members = {cell: [cell] for cell in np.unique(rows.indices).tolist()}
    for k in np.argsort(np.diff(rows.indptr), kind="stable"):
        cells = rows.indices[rows.indptr[k] : rows.indptr[k + 1]]
        into = piece_of[cells[0]]
        for cell in cells[1:]:
            piece = piece_of[cell]
            if piece == into:
                continue
            if len(members[into]) + len(members[piece]) > MAX_BLOCK_CELLS:
                into = piece
                continue
            moved = members.pop(piece)
            members[into] += moved
            piece_of[moved] = into
    return [np.array(sorted(cells)) for cells in members.values() if len(cells) > 1]


def integer_kernel(matrix: np.ndarray) -> np.ndarray:
    """Find a basis of the integer vectors that a matrix takes to zero, a vector in each row."""
    basis = np.eye(matrix.shape[1], dtype=np.int64)
    images = matrix.T.copy()
    done = 0
    # Euclid's algorithm on all vectors at once, for one equation after the other. In the end a
    # single vector has a nonzero image, and is put aside.
    for equation in range(matrix.shape[0]):
        while True:
            left = done + np.flatnonzero(images[done:, equation])
            if len(left) == 0:
                break
            pivot = left[np.argmin(np.abs(images[left, equation]))]
            for each in (basis, images):
                each[[done, pivot]] = each[[pivot, done]]
            if len(left) == 1:
                done += 1
                break
            times = images[done + 1 :, equation] // images[done, equation]
            basis[done + 1 :] -= np.outer(times, basis[done])
            images[done + 1 :] -= np.outer(times, images[done])
    return basis[done:]
