"""Sums that what a reading is compared with is formed by."""

from math import fsum

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.careful_sums import CarefulSum, sum_of_rows, with_careful_sums


def test_long_sums_of_rows_keep_their_digits():
    rows = np.random.default_rng(0).random((200_000, 2))
    exact = np.array([fsum(column) for column in rows.T])
    error = np.abs(sum_of_rows(rows) / exact - 1).max()
    assert error < 2e-15
    # As NumPy does along the first axis: one row after the other.
    assert np.abs(rows.sum(axis=0) / exact - 1).max() > 10 * error


@pytest.mark.parametrize("axis", [None, 0, 2, (0, 2), (1,)])
def test_all_sums_of_a_graph_are_taken_over_their_axes(axis):
    x = pt.constant(np.arange(2 * 300 * 3).reshape(2, 300, 3))
    graph = 2 * x.sum(axis=axis)
    careful = with_careful_sums(graph)
    assert isinstance(careful.owner.inputs[1].owner.op, CarefulSum)
    np.testing.assert_array_equal(
        careful.eval(mode="FAST_COMPILE"), 2 * x.data.sum(axis=axis), strict=True
    )
