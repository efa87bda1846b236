"""Directions of blocks, and the description of cells that move together."""

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.compiled import blocks
from pymc_dapper.counts.compiled.blocks import alike_blocks, block_moves
from pymc_dapper.counts.compiled.sweep import schedule_of, with_blocks
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.reading.blocks import Block
from pymc_dapper.counts.reading.moves import Moves


def moves_of(weights, n_cells):
    """Cells and weighted sums of them, all known up to half a person."""
    functions = sparse.csr_array(np.vstack([np.eye(n_cells), weights]))
    basis = np.eye(n_cells, dtype=np.int64)
    curvatures = np.full(functions.shape[0], 4.0)
    table = np.full(n_cells, 10_000)
    bends = functions.T @ sparse.diags_array(curvatures) @ functions
    metric = bends.toarray() + np.eye(n_cells) / table[0] ** 2
    return block_moves(basis, functions, curvatures[None], table[None]), metric


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


AREAS = 3 * blocks.MOST_METRICS


@pytest.fixture
def areas():
    """Areas of 3 x 3 cells with noise on cells and both margins; one more has other weights."""
    cells = np.arange(9).reshape(3, 3)
    margins = [np.isin(cells, part).ravel() for part in (*cells, *cells.T)]
    each = np.vstack([np.eye(9), margins]).astype(float)
    other = each.copy()
    other[-1, 8] = 2.0
    matrix = sparse.block_diag([*[sparse.coo_array(each)] * AREAS, other], format="csc")
    fields = dict.fromkeys(Structure._fields, np.zeros(0, dtype=np.int64))
    fields |= {"starts": matrix.indptr, "rows": matrix.indices, "coefficients": matrix.data}
    fields |= {"terms": np.arange(matrix.shape[0])}
    found = [
        Block(np.arange(9 * k, 9 * k + 9), np.eye(9, dtype=np.int64)) for k in range(AREAS + 1)
    ]
    return matrix.tocsr(), alike_blocks(found, Structure(**fields))


def test_alike_blocks_are_found_with_their_linear_functions(areas):
    matrix, alike = areas
    assert [each.numbers.tolist() for each in alike] == [list(range(AREAS)), [AREAS]]
    for each in alike:
        for rows, cells in zip(each.rows, each.cells, strict=True):
            inside = matrix[rows][:, cells].toarray()
            np.testing.assert_array_equal(inside, each.coefficients.toarray())
            assert np.abs(matrix[:, cells]).sum() == np.abs(inside).sum()


def test_directions_are_found_once_for_alike_blocks_with_similar_numbers_of_people(
    areas, monkeypatch
):
    matrix, alike = areas
    calls, find = [], blocks.reduce_basis
    monkeypatch.setattr(blocks, "reduce_basis", lambda *given: calls.append(1) or find(*given))
    people = np.repeat(np.arange(1, 1 + blocks.MOST_METRICS), 3)
    people = np.append(np.random.default_rng(1).permutation(people), 1)
    table, curvatures = np.repeat(people, 9), np.full(matrix.shape[0], 4.0)
    found = {}
    for each in alike:
        for part, moves in each.moves(table, curvatures):
            assert np.ptp(people[each.numbers[part]]) == 0
            found |= {int(each.numbers[k]): (each.cells[k], moves) for k in part}
    assert sorted(found) == list(range(AREAS + 1))
    assert len(calls) == blocks.MOST_METRICS + 1

    # In the schedule, each set has the factor of its own directions.
    nothing = schedule_of(Moves.none())
    schedule = with_blocks(nothing, [found[k] for k in sorted(found)])
    entries = schedule.direction_steps, schedule.direction_cells, schedule.direction_starts
    directions = sparse.csr_array(entries, shape=(len(entries[2]) - 1, matrix.shape[1]))
    metric = 4.0 * (matrix.T @ matrix).toarray() + np.eye(len(table)) / table**2
    assert len(schedule.joint_starts) > AREAS
    for k, first in enumerate(schedule.joint_factor_starts):
        chosen = schedule.joint_directions[slice(*schedule.joint_starts[k : k + 2])]
        factor = schedule.joint_factors[first : first + len(chosen) ** 2]
        factor = factor.reshape(len(chosen), len(chosen))
        together = directions[chosen].toarray()
        np.testing.assert_allclose(factor @ factor.T, together @ metric @ together.T, atol=1e-9)
