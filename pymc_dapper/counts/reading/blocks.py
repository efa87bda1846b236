"""Cells that overlapping statistics tie together, and the lattice of their tables.

Sums of disjoint and of nested groups need no more than exchanges of people between two cells. Where
sums overlap otherwise (windows, three margins of a table, weighted sums), and are known better than
the cells, only changes of many cells at once keep them all. And cells with a parameter in common
that was integrated out grow together. Which changes these are depends on how well each sum is
known, so that the step finds them when it has measured that: see
:mod:`pymc_dapper.counts.compiled.blocks`. Here we find out which cells are concerned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsqr

Indices = NDArray[np.int64]

MAX_BLOCK_CELLS = 200
"""Cells of a block, at most: finding its directions takes the cube of their number, or more."""
PRECISION = 1e-12
"""How well a random change keeps the invariants, relatively."""


@dataclass(frozen=True, eq=False)
class Block:
    """Cells that overlapping sums tie together."""

    cells: Indices
    basis: Indices
    """Int, shape (number of vectors, number of cells of the block): a basis of the changes of these
    cells that keep the invariants."""


def find_blocks(
    invariants: sparse.csr_array,
    statistics: Sequence[sparse.csr_array],
    ties: Sequence[sparse.csr_array] = (),
) -> tuple[Block, ...]:
    """Find the blocks of a table: disjoint; none where all sums are of disjoint or nested groups.

    ``ties`` are sums of cells that the prior makes grow together, as if they had a parameter in
    common.
    """
    rows, tied = _sums([invariants, *statistics]), _sums([invariants[:0], *ties])
    tied = tied[~_is_difference(tied) & ~_is_fixed(tied, invariants)]
    together = [rows[_crosses(rows) | _weighs(rows)], tied]
    blocks = []
    for cells in _pieces(sparse.vstack(together, format="csr")):
        equations = invariants[:, cells].toarray()
        if np.array_equal(equations, np.round(equations)):
            basis = integer_kernel(equations.astype(np.int64))
            if len(basis):
                blocks.append(Block(cells, basis))
    return tuple(blocks)


def _sums(matrices: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Collect what is made of several cells."""
    rows = sparse.vstack(matrices, format="csr").astype(float)
    rows.eliminate_zeros()
    return rows[np.diff(rows.indptr) > 1]


def _crosses(rows: sparse.csr_array) -> NDArray[np.bool_]:
    """Say which sums overlap with another one without one being a part of the other."""
    sizes = np.diff(rows.indptr)
    pattern = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    common = (pattern @ pattern.T).tocoo()
    partly = common.data < np.minimum(sizes[common.row], sizes[common.col])
    crosses = np.zeros(len(sizes), dtype=bool)
    crosses[common.row[partly]] = True
    return crosses


def _weighs(rows: sparse.csr_array) -> NDArray[np.bool_]:
    """Say which sums multiply cells by different numbers, beyond the difference of two cells."""
    lowest, highest = _extremes(rows)
    return (lowest != highest) & ~_is_difference(rows)


def _is_difference(rows: sparse.csr_array) -> NDArray[np.bool_]:
    """Say which are the difference of two cells."""
    lowest, highest = _extremes(rows)
    return (np.diff(rows.indptr) == 2) & (lowest == -highest)


def _is_fixed(rows: sparse.csr_array, invariants: sparse.csr_array) -> NDArray[np.bool_]:
    """Say which are the same in all tables: those that a random change leaves as they are."""
    if 0 in (rows.shape[0], invariants.shape[0]):
        return np.zeros(rows.shape[0], dtype=bool)
    change = np.random.default_rng(0).normal(size=rows.shape[1])
    change -= invariants.T @ lsqr(invariants.T, change, atol=PRECISION, btol=PRECISION)[0]
    return np.abs(rows @ change) < 1e-6 * np.sqrt((rows**2).sum(axis=1))


def _extremes(rows: sparse.csr_array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the smallest and the largest coefficient of each sum."""
    if rows.nnz == 0:
        return np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    starts = rows.indptr[:-1]
    return np.minimum.reduceat(rows.data, starts), np.maximum.reduceat(rows.data, starts)


def _pieces(rows: sparse.csr_array) -> list[Indices]:
    """Put cells of the same sums together, the smallest sums first, as far as there is room."""
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


def integer_kernel(matrix: Indices) -> Indices:
    """Find a basis of the integer vectors that a matrix takes to zero, a vector in each row."""
    basis = np.eye(matrix.shape[1], dtype=np.int64)
    images = matrix.T.copy()
    done = 0
    # Euclid's algorithm on all vectors at once, for one equation after the other: in the end a
    # single vector has an image there, and is put aside.
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
