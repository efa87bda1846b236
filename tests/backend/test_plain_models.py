"""Each model with named dimensions has one plain model, and the others none."""

import numpy as np
import pymc as pm
import pymc.dims as pmdims
import pytest

from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.backend.plain_models import plain_model, plain_variable


def test_a_model_without_named_dims_is_its_own():
    with pm.Model() as model:
        pm.Normal("x")
    assert plain_model(model) is model


def test_the_plain_model_is_the_same_until_something_is_added():
    with pm.Model() as model:
        x = pmdims.Normal("x")
        plain = plain_model(model)
        assert plain_model(model) is plain
        assert plain_model(plain) is plain
        pmdims.Normal("y", x, 1)
    again = plain_model(model)
    assert again is not plain
    assert list(again.named_vars) == ["x", "y"]


def test_where_chains_start_and_labels_are_the_models_as_they_are_now():
    with pm.Model(coords={"person": range(3)}, check_bounds=False) as model:
        x = pmdims.Normal("x", dims="person")
        plain_model(model)
        model.set_initval(x, np.full(3, 5.0))
        plain = plain_model(model)
        model.set_dim("person", 3, coord_values=["a", "b", "c"])
    np.testing.assert_array_equal(plain.initial_point()["x"], np.full(3, 5.0))
    assert plain_model(model) is plain
    assert plain.coords["person"] == ("a", "b", "c")
    assert not plain.check_bounds


def test_variables_are_found_by_what_they_are():
    with pm.Model() as model:
        x = pmdims.HalfNormal("x")
        pmdims.Deterministic("y", 2 * x)
    plain = plain_model(model)
    assert plain_variable(model["x"], plain) is plain["x"]
    assert plain_variable(model["y"], plain) is plain["y"]
    assert plain_variable(model.value_vars[0], plain) is plain.value_vars[0]
    assert plain_variable("x", plain) == "x"


def test_a_variable_of_another_model_is_refused():
    with pm.Model(coords={"person": range(3)}):
        other = pmdims.Normal("x", dims="person")
    with pm.Model(coords={"person": range(3)}) as model:
        pmdims.Normal("x", dims="person")
    with pytest.raises(ReadingError, match="belongs to another model"):
        DapperStep([other], model=model)
