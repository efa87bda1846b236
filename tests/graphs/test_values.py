"""Graphs in terms of value variables."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.graphs.values import at_values, forward


@pytest.fixture
def model():
    with pm.Model(coords={"person": range(4)}) as model:
        design = pm.Data("design", np.ones((4, 2)), dims=("person", "column"))
        upper = pm.HalfNormal("upper")
        x = pm.Uniform("x", 0, upper)
        pm.Normal("y", design @ np.ones(2) * x, 1.0, dims="person")
    return model


def test_random_variables_are_computed_from_their_values(model):
    [twice] = at_values(model, [2 * model["x"]], {})
    upper, x = (model.rvs_to_values[model[name]] for name in ("upper", "x"))
    at = {upper: np.log(3.0), x: 0.0}
    # Half of the interval, whose end is another variable's.
    np.testing.assert_allclose(twice.eval(at, mode="FAST_COMPILE"), 3.0)
    [instead] = at_values(model, [2 * model["x"]], {model["x"]: model["upper"]})
    assert instead.owner.inputs[1] is model["upper"]


def test_values_are_those_that_give_the_variables(model):
    [value] = forward(model, {model["x"]: np.array(1.0) + 0 * model.rvs_to_values[model["x"]]})
    at = {model.rvs_to_values[model["upper"]]: np.log(3.0), model.rvs_to_values[model["x"]]: 9.0}
    np.testing.assert_allclose(value.eval(at, mode="FAST_COMPILE"), np.log(1 / 2))
