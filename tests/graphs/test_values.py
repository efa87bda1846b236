"""Graphs in terms of value variables."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.graphs.values import (
    at_values,
    data_of_known_shape,
    dim_lengths,
    forward,
    frozen_dims,
    shared_data,
    static_shape,
)


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


def test_lengths_are_those_of_the_dims(model):
    assert dim_lengths(model) == {"person": 4, "column": 2}
    frozen = frozen_dims(model, {"person": 7, "column": 2})
    assert static_shape(model["y"], frozen) == (7,)


def test_data_have_the_shape_that_they_have_at_present(model):
    known = data_of_known_shape(model)
    assert known[model["design"]].type.shape == (4, 2)
    assert known[model["design"]].name == "design"
    assert shared_data([model["y"], model["y"] + 1]).count(model["design"]) == 1
    assert shared_data([model["upper"]]) == []
