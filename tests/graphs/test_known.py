"""What is known of a graph before anything is computed."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor import scan

from pymc_dapper.graphs.known import known_length, known_value

X = pt.tensor("x", shape=(3, None))


def test_values_of_constants_and_of_static_shapes_are_known():
    np.testing.assert_array_equal(known_value(2 * pt.constant([1, 2])), [2, 4])
    assert known_value(X.shape[0] - 1) == 2
    assert known_value(X.shape[1]) is None
    assert known_value(X.sum()) is None


def test_values_of_loops_over_constants_are_known_and_of_invalid_ones_are_not():
    steps = pt.constant(np.array([1.0, 2.0, 4.0]))

    def added_up(numbers):
        return scan(
            lambda x, before: x + before,
            sequences=[numbers],
            outputs_info=[np.float64(0.0)],
            return_updates=False,
        )

    np.testing.assert_array_equal(known_value(added_up(steps)), [1.0, 3.0, 7.0])
    assert known_value(added_up(steps[: X.shape[0] - 1])).tolist() == [1.0, 3.0]
    assert known_value(added_up(steps + X[0])) is None
    assert known_value(pt.linalg.inv(pt.zeros((2, 2)))) is None


def test_values_that_a_filled_array_was_made_like_are_not_needed():
    assert known_value(pt.zeros_like(X[0, 0]) + 1) == 1
    assert known_value(pt.zeros_like(X)) is None  # its length isn't known


def test_a_length_may_come_from_dims_and_data_but_not_from_draws():
    with pm.Model(coords={"row": range(4), "column": range(3)}):
        table = pm.Normal("table", dims=("row", "column"))
        rows = pm.Data("rows", [0, 2, 1, 1, 3])
        number = pm.Poisson("number", 3)
    assert table.type.shape[-1] is None
    assert known_length(pm.math.softmax(table[rows], axis=-1)) == 3
    assert known_length(table[:, 0][rows]) == 5
    assert known_length(pt.ones((2, 7))) == 7
    assert known_length(pt.arange(number)) is None
    assert known_length(X) is None
