"""Directions of blocks, and the description of cells that move together."""

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.compiled.blocks import BlockMetric
from pymc_dapper.counts.reading.blocks import Block


def moves_of(weights, n_cells):
    """Cells and weighted sums of them, all known up to half a person."""
    functions = sparse.csr_array(np.vstack([np.eye(n_cells), weights]))
    block = Block(np.arange(n_cells), np.eye(n_cells, dtype=np.int64))
    curvatures = np.full(functions.shape[0], 4.0)
    metric = BlockMetric(block, np.arange(functions.shape[0]), functions)
    table = np.full(n_cells, 10_000)
    bends = functions.T @ sparse.diags_array(curvatures) @ functions
    return metric.moves(table, curvatures), bends.toarray() + np.eye(n_cells) / table[0] ** 2


@pytest.mark.parametrize("seed", range(40))
def test_factors_are_those_of_the_directions_that_move_together(seed):
    # Some of these have short vectors along which all cells lose people, before they are turned.
    weights = np.random.default_rng(seed).choice([-1, 0, 1, 2], size=(4, 10))
    moves, metric = moves_of(weights, 10)
    assert moves.joint
    for chosen, factor in zip(moves.joint, moves.factors, strict=True):
        together = moves.directions.toarray()[chosen]
        np.testing.assert_allclose(factor @ factor.T, together @ metric @ together.T, atol=1e-9)


def test_in_each_direction_some_cell_gains_people():
    moves, _ = moves_of(np.array([[-1, -1, 2, 0], [0, -2, 1, 1]]), 4)
    assert np.all(moves.directions.toarray().max(axis=1) > 0)
