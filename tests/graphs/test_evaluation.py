"""Graphs evaluated in Python."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor import scan
from pytensor.compile.builders import OpFromGraph

from pymc_dapper.graphs.evaluation import TOLERANCE, choose_rows, compile_in_python, rounding


def test_rows_are_chosen_record_by_record():
    yes, no = np.arange(6.0).reshape(3, 2), np.full((3, 2), -1.0)
    which = np.array([True, False, True])
    matrix, vector = choose_rows(which, [yes, yes[:, 0]], [no, no[:, 0]])
    np.testing.assert_array_equal(matrix, [[0, 1], [-1, -1], [4, 5]])
    np.testing.assert_array_equal(vector, [0, -1, 4])


def test_a_function_is_evaluated_in_python_whatever_inputs_it_needs():
    x, unused = pt.vector("x"), pt.scalar("unused")
    function = compile_in_python(pm.Model(), [x, unused], [x.sum(), 2 * x])
    total, twice = function(np.array([1.0, 2.5]), 0.0)
    assert total == 3.5
    np.testing.assert_array_equal(twice, [2.0, 5.0])


def test_a_graph_is_evaluated_as_it_is_written():
    x = pt.scalar("x")
    [ratio] = compile_in_python(pm.Model(), [x], [x / x])(0.0)
    assert np.isnan(ratio)


@pytest.mark.parametrize(("check_bounds", "expected"), [(True, -np.inf), (False, np.nan)])
def test_invalid_parameters_are_impossible_if_they_are_checked(check_bounds, expected):
    sigma = pt.scalar("sigma")
    log_density = pm.logp(pm.Normal.dist(0, sigma), 1.0)
    function = compile_in_python(pm.Model(check_bounds=check_bounds), [sigma], [log_density])
    np.testing.assert_equal(function(-1.0), [expected])


def test_graphs_within_graphs_are_evaluated():
    x = pt.vector("x")
    sums = scan(
        lambda each, last: last + each,
        sequences=[x],
        outputs_info=[pt.zeros(())],
        return_updates=False,
    )
    square = OpFromGraph([x], [x**2])(x)
    found = compile_in_python(pm.Model(), [x], [sums, square])(np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(found, [[1, 3, 7], [1, 4, 16]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_is_that_of_the_least_precise_number(dtype):
    x = pt.vector("x", dtype="float64")
    graph = x.astype(dtype).sum().astype("float64")
    assert rounding([x], [graph]) == TOLERANCE[dtype]
    # What doesn't depend on the records doesn't count.
    assert rounding([x], [x.sum() + pt.constant(np.float32(1)).sum()]) == TOLERANCE["float64"]
