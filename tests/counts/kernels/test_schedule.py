"""Moves are found again in packed arrays, and the memory that they need is enough."""

import numpy as np
import pytest

from pymc_dapper.counts.kernels import schedule as packing
from pymc_dapper.counts.kernels.linked import pack_linked
from tests.counts_enumeration import Model, grid, schedule


def packed():
    """Moves of all kinds, for two cells, and their packed form."""
    moves = grid(1, np.arange(2), passes=3)._replace(
        lines=schedule(single=[1], directions=[[1, -1]]).lines,
        joint=schedule(directions=[[1, -1]], factor=np.array([[2.0]])).joint,
        linked=pack_linked(*np.arange(1, 8).reshape(-1, 1)[:3], np.array([3, -1, -1])),
    )
    structure = Model(np.eye(2), [np.zeros(3)] * 2).structure
    return structure, moves, packing.pack(structure, moves, np.array([0.5, 0.7]))


def test_each_kind_is_found_again():
    structure, moves, arrays = packed()
    found, lines, curvatures = packing.unpack(*arrays)
    kinds = (
        lines,
        packing.unpack_grids(*arrays),
        packing.unpack_joint(*arrays),
        found,
    )
    for one, other in zip(kinds, (moves.lines, moves.grids, moves.joint, structure), strict=True):
        for name, array in one._asdict().items():
            np.testing.assert_array_equal(array, getattr(other, name), err_msg=name)
    terms = packing.terms_of(arrays.integers)
    for one, name in zip(terms, ("kinds", "first", "contexts"), strict=True):
        np.testing.assert_array_equal(one, getattr(structure, name), err_msg=name)
    np.testing.assert_array_equal(packing.unpack_linked(*arrays), moves.linked)
    np.testing.assert_array_equal(curvatures, [0.5, 0.7])
    assert packing.none(*arrays) is None


@pytest.mark.parametrize(
    ("moves", "cells", "exchanges"),
    [
        (schedule(single=[0]), 4, 0),
        (schedule(directions=[[1, -1, 1, -1, 1, -1]]), 6, 0),
        (grid(1, np.arange(7), passes=1), 4, 3),
        (grid(4, np.arange(20), passes=1), 4, 4),
    ],
)
def test_memory_is_enough_for_the_largest_move(moves, cells, exchanges):
    assert packing.room(moves)[:2] == [cells, exchanges]
