"""Models and moves of counts in the form that the kernel takes."""

import numpy as np
import pymc as pm
from scipy import sparse

from pymc_dapper.counts.compiled.sweep import layout_of, schedule_of
from pymc_dapper.counts.reading.moves import Grid, Moves
from tests.counts.systems import read


def test_moves_are_laid_end_to_end():
    moves = Moves(
        single=np.array([7]),
        groups=(np.array([0, 1, 2]), np.array([4, 5])),
        passes=np.array([1, 3]),
        grids=(Grid(((np.array([0]), np.array([1, 2])), (np.array([3]), np.array([4]))), 2),),
        directions=sparse.csr_array(np.array([[1, 0, -2, 0, 0], [0, 0, 0, 1, 1]])),
        blocks=(),
    )
    schedule = schedule_of(moves)
    assert schedule.single.tolist() == [7]
    # A group is a row of cells.
    assert (schedule.grid_rows.tolist(), schedule.grid_columns.tolist()) == ([1, 1, 2], [3, 2, 2])
    assert schedule.grid_passes.tolist() == [1, 3, 2]
    assert schedule.grid_places.tolist() == [0, 3, 5]
    assert schedule.place_starts.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert schedule.place_cells.tolist() == [0, 1, 2, 4, 5, 0, 1, 2, 3, 4]
    assert schedule.direction_starts.tolist() == [0, 2, 4]
    assert schedule.direction_cells.tolist() == [0, 2, 3, 4]
    assert schedule.direction_steps.tolist() == [1, -2, 1, 1]
    assert schedule.direction_lines.tolist() == [0, 1]
    assert schedule.joint_starts.tolist() == [0]


def test_linear_functions_of_a_term_stand_next_to_each_other():
    with pm.Model() as model:
        x = pm.Poisson("x", 2.0, shape=2)
        pm.Normal("product", x[0] - x[1], 1.0 + x.sum(), observed=0.5)
    structure = layout_of(read(model, "x"))
    # A term for each cell, and one of two sums of both.
    assert structure.terms.tolist() == [0, 1, 2, 2]
    assert structure.kinds.tolist() == [0, 0, 1]
    assert structure.first.tolist() == [0, 1, 2]
    assert structure.starts.tolist() == [0, 3, 6]
    matrix = np.zeros((4, 2))
    matrix[structure.rows, [0, 0, 0, 1, 1, 1]] = structure.coefficients
    assert sorted(matrix[2:].tolist()) == [[1, -1], [1, 1]]
    assert matrix[:2].tolist() == [[1, 0], [0, 1]]
