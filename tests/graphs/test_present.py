"""Log-densities of the rows that are there."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.graphs.dependence import dependent_factors
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.present import present_factors, present_rows


def test_absent_rows_are_left_out_of_the_records_factor_alone():
    with pm.Model() as model:
        n = pm.Poisson("n", 2)
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, 1, shape=(4, 2))
        pm.Normal("y", mu, 1, shape=4)
    factors = dependent_factors(model, [model.rvs_to_values[mu]])
    there = present_factors(model, factors, {x: n})
    sums = [graph.sum() for name in ("x", "y", "mu") for graph in (factors[name], there[name])]
    point = model.initial_point() | {"x": np.arange(8.0).reshape(4, 2), "y": np.ones(4)}
    function = compile_in_python(model, model.value_vars, sums)
    for k in (0, 1, 3, 4, 9):
        point["n"] = np.array(k)
        all_x, some_x, *others = function(*(np.asarray(point[v.name]) for v in model.value_vars))
        expected = -0.5 * (point["x"] ** 2 + np.log(2 * np.pi))
        np.testing.assert_allclose([all_x, some_x], [expected.sum(), expected[:k].sum()])
        np.testing.assert_allclose(others[::2], others[1::2])


def test_what_has_no_rows_stays_whole():
    n, ndim = pt.constant(2), 2
    rows, row, entries = pt.dmatrix(), pt.matrix(shape=(1, 3)), pt.dvector()
    assert present_rows(row, n, ndim) is row
    assert present_rows(entries, n, ndim) is entries
    found = present_rows(rows, n, ndim).eval({rows: np.ones((5, 3))}, mode="FAST_COMPILE")
    assert found.shape == (2, 3)
