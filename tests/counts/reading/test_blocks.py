"""Cells that overlapping sums tie together."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.reading import blocks
from pymc_dapper.counts.reading.blocks import find_blocks, integer_kernel


def blocks_of(rows, invariants=(), ties=()):
    n = len(rows[0])
    matrices = [
        sparse.csr_array(np.array(each, dtype=float).reshape(-1, n)) for each in (rows, ties)
    ]
    known = sparse.csr_array(np.array(invariants, dtype=float).reshape(-1, n))
    return find_blocks(known, matrices[:1], matrices[1:])


NESTED = [[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [1, -1, 0, 0, 0, 0]]
WINDOWS = [[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0]]


def test_only_sums_that_overlap_otherwise_than_nested_make_blocks():
    assert blocks_of([*NESTED, *np.eye(6)]) == ()
    [block] = blocks_of([*np.eye(6), *WINDOWS, [1, 1, 1, 1, 1, 1]])
    np.testing.assert_array_equal(block.cells, [0, 1, 2, 3])
    [block] = blocks_of([[0, 0, 1, 2, 0, 0]])
    np.testing.assert_array_equal(block.cells, [2, 3])
    [block] = blocks_of(NESTED, ties=[[0, 1, 0, 1, 1, 0], [0, 0, 1, -1, 0, 0]])
    np.testing.assert_array_equal(block.cells, [1, 3, 4])


def test_a_total_that_is_known_ties_nothing_together():
    total, halves = [[1] * 6], [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert blocks_of(np.eye(6), invariants=total, ties=total) == ()
    assert blocks_of(np.eye(6), invariants=halves, ties=total) == ()
    [block] = blocks_of(np.eye(6), invariants=halves[:1], ties=total)
    np.testing.assert_array_equal(block.cells, range(6))


def test_changes_of_a_block_keep_the_invariants():
    [block] = blocks_of(WINDOWS, invariants=[[1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(block.cells, range(5))
    assert block.basis.shape == (3, 5)
    assert np.all(block.basis.sum(axis=1) == 0)
    assert np.all(block.basis[:, 0] + block.basis[:, 4] == 0)


def test_large_blocks_are_cut_into_pieces(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCK_CELLS", 3)
    rows = [[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert [block.cells.tolist() for block in blocks_of(rows)] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("seed", range(5))
def test_an_integer_kernel_holds_all_integer_vectors_that_a_matrix_takes_to_zero(seed):
    matrix = np.random.default_rng(seed).integers(-3, 4, (2, 5))
    kernel = integer_kernel(matrix)
    assert kernel.shape == (5 - np.linalg.matrix_rank(matrix), 5)
    assert not np.any(matrix @ kernel.T)
    # A basis of all of them, not of a part: its maximal minors have no common factor.
    columns = list(combinations(range(5), len(kernel)))
    minors = [round(np.linalg.det(kernel[:, list(each)])) for each in columns]
    assert np.gcd.reduce(minors) == 1
