"""What is known of a graph before anything is computed."""

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.graphs.known import known_value

X = pt.tensor("x", shape=(3, None))


def test_values_of_constants_and_of_static_shapes_are_known():
    np.testing.assert_array_equal(known_value(2 * pt.constant([1, 2])), [2, 4])
    assert known_value(X.shape[0] - 1) == 2
    assert known_value(X.shape[1]) is None
    assert known_value(X.sum()) is None


def test_values_that_a_filled_array_was_made_like_are_not_needed():
    assert known_value(pt.zeros_like(X[0, 0]) + 1) == 1
    assert known_value(pt.zeros_like(X)) is None  # its length isn't known
