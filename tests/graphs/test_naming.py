"""Operations are named by what a user knows."""

import pytensor.tensor as pt

from pymc_dapper.graphs.naming import describe


def test_an_operation_is_named_by_a_variable_near_it():
    x = pt.vector("x")
    y = pt.sort(pt.exp(x))
    assert describe(y.owner.inputs[0].owner) == "Exp (at 'x')"
    assert describe(y.owner) == str(y.owner.op)
    y.name = "sorted"
    assert describe(y.owner) == f"{y.owner.op} (at 'sorted')"
