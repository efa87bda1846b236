"""Directions of blocks, and the description of cells that move together."""

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.compiled.blocks import block_moves, functions_of
from pymc_dapper.counts.compiled.sweep import schedule_of, with_blocks
from pymc_dapper.counts.kernels import sweep
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.reading.moves import Moves

joint_directions = in_python(sweep.joint_directions)


def structure_of(matrix):
    """Linear functions with these coefficients, each of a term of its own."""
    fields = dict.fromkeys(Structure._fields, np.zeros(0, dtype=np.int64))
    fields |= {"starts": matrix.indptr, "rows": matrix.indices, "coefficients": matrix.data}
    return Structure(**fields | {"terms": np.arange(matrix.shape[0])})


def moves_of(weights, n_cells):
    """Cells and weighted sums of them, all known up to half a person."""
    functions = sparse.csr_array(np.vstack([np.eye(n_cells), weights]))
    curvatures = np.full(functions.shape[0], 4.0)
    table = np.full(n_cells, 10_000)
    bends = functions.T @ sparse.diags_array(curvatures) @ functions
    metric = bends.toarray() + np.eye(n_cells) / table[0] ** 2
    basis = np.eye(n_cells, dtype=np.int64)
    return block_moves(basis, functions.toarray(), curvatures, table), metric


@pytest.mark.parametrize("seed", range(40))
def test_factors_are_those_of_the_directions_that_move_together(seed):
    # Some of these have short vectors along which all cells lose people, before they are turned.
    weights = np.random.default_rng(seed).choice([-1, 0, 1, 2], size=(4, 10))
    moves, metric = moves_of(weights, 10)
    assert moves.joint
    for chosen, factor in zip(moves.joint, moves.factors, strict=True):
        together = moves.directions[chosen]
        np.testing.assert_allclose(factor @ factor.T, together @ metric @ together.T, atol=1e-9)


def test_in_each_direction_some_cell_gains_people():
    moves, _ = moves_of(np.array([[-1, -1, 2, 0], [0, -2, 1, 1]]), 4)
    assert np.all(moves.directions.max(axis=1) > 0)


AREAS = 3


def test_each_set_of_directions_has_its_own_factor():
    """Areas of 3 x 3 cells with noise on cells and both margins; one more has other weights."""
    cells = np.arange(9).reshape(3, 3)
    margins = [np.isin(cells, part).ravel() for part in (*cells, *cells.T)]
    each = np.vstack([np.eye(9), margins]).astype(float)
    other = each.copy()
    other[-1, 8] = 2.0
    matrix = sparse.block_diag([*[sparse.coo_array(each)] * AREAS, other], format="csc")
    table = np.repeat([40, 9, 1, 7], 9)
    structure, basis, found = structure_of(matrix), np.eye(9, dtype=np.int64), []
    for cells in np.arange(9 * AREAS + 9).reshape(-1, 9):
        rows, coefficients = functions_of(cells, structure)
        inside = matrix.tocsr()[rows][:, cells]
        np.testing.assert_array_equal(coefficients, inside.toarray())
        assert np.abs(matrix[:, cells]).sum() == np.abs(inside).sum()
        curvatures = np.full(len(rows), 4.0)
        found.append((cells, block_moves(basis, coefficients, curvatures, table[cells])))
    schedule = with_blocks(schedule_of(Moves.none()), found)
    lines, joint = schedule.lines, schedule.joint
    entries = lines.steps, lines.cells, lines.starts
    directions = sparse.csr_array(entries, shape=(len(entries[2]) - 1, matrix.shape[1]))
    metric = 4.0 * (matrix.T @ matrix).toarray() + np.eye(len(table)) / table**2
    assert len(joint.starts) > AREAS
    first = 0
    for k in range(len(joint.starts) - 1):
        chosen, factor = joint_directions(lines, joint, k, first)[-2:]
        first += factor.size
        together = directions[chosen].toarray()
        np.testing.assert_allclose(factor @ factor.T, together @ metric @ together.T, atol=1e-9)
    assert first == len(joint.factors)
