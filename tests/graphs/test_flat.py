"""One vector in the place of several arrays."""

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.graphs.flat import split


def test_parts_lie_one_after_the_other():
    flat = np.arange(7)
    first, number, rest = split(flat, [(2, 2), (), (2,)])
    np.testing.assert_array_equal(first, [[0, 1], [2, 3]])
    assert number == 4
    np.testing.assert_array_equal(rest, [5, 6])
    symbolic = split(pt.constant(flat), [(2, 2), (), (2,)])
    for part, expected in zip(symbolic, (first, number, rest), strict=True):
        np.testing.assert_array_equal(part.eval(mode="FAST_COMPILE"), expected)
    assert split(flat, []) == []
