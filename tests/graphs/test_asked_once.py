"""What PyMC works out of a model, asked once."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.model import Model

import pymc_dapper as pmd
from pymc_dapper.graphs import asked_once as module
from pymc_dapper.graphs.asked_once import asked_once, initial_point, log_densities
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.known import written_shape

VALUES = {"rate_log__": 0.3, "x": [0.5, 1.0, -2.0]}


@pytest.fixture
def model():
    with pm.Model() as model:
        rate = pm.Exponential("rate", 2.0)
        x = pm.Normal("x", 0, rate, shape=3)
        pm.Potential("privacy", -((x.sum() - 1.0) ** 2))
    return model


@pytest.fixture
def asked(monkeypatch):
    """What models are asked for, in order."""
    found = []

    def noting(ask, name):
        def noted(*given, **options):
            found.append(name)
            return ask(*given, **options)

        return noted

    monkeypatch.setattr(Model, "logp", noting(Model.logp, "logp"))
    ask = noting(module.make_initial_point_expression, "start")
    monkeypatch.setattr(module, "make_initial_point_expression", ask)
    return found


def values_of(model, graphs):
    at = {x: np.asarray(VALUES[x.name]) for x in model.value_vars}
    return [graph.eval(at, mode="FAST_COMPILE", on_unused_input="ignore") for graph in graphs]


@pytest.mark.parametrize("names", [["x"], ["privacy", "rate"], ["rate", "x", "privacy"], []])
@pytest.mark.parametrize("jacobian", [True, False])
def test_log_densities_are_those_of_the_model(model, names, jacobian):
    variables = [model[name] for name in names]
    expected = model.logp(variables, jacobian=jacobian, sum=False)
    with asked_once():
        log_densities(model, variables, jacobian=not jacobian)
        found = log_densities(model, variables, jacobian=jacobian)
    for one, other in zip(values_of(model, found), values_of(model, expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_is_asked_once_until_it_is_another(model, asked):
    with asked_once(), asked_once():
        first, again = log_densities(model, [model["x"]]), log_densities(model, [model["x"]])
        assert first == again
        assert log_densities(model, [model["rate"]]) != first
        assert asked == ["logp"]
        initial_point(model), initial_point(model)
        assert asked == ["logp", "start"]
        with model:
            pm.Normal("y", model["rate"], observed=1.0)
        log_densities(model, [model["x"]])
        assert asked == ["logp", "start", "logp"]
    assert log_densities(model, [model["x"]]) != first


def test_chains_start_where_they_are_told_meanwhile(model):
    with asked_once():
        assert initial_point(model)["x"].tolist() == [0.0, 0.0, 0.0]
        initial_point(model)["x"][:] = 7.0  # the caller's own
        assert initial_point(model)["x"].tolist() == [0.0, 0.0, 0.0]
        model.set_initval(model["x"], np.ones(3))
        assert initial_point(model)["x"].tolist() == [1.0, 1.0, 1.0]


def test_a_start_is_where_pymc_starts():
    """With transforms, values of the user's, others that are computed, and an inner graph."""
    with pm.Model(coords={"area": [1, 2]}) as model:
        ages = pm.Data("ages", np.zeros(3))
        p = pm.Dirichlet("p", [1.0, 2.0, 3.0])
        low = pm.Uniform("low", -1.0, 3.0, initval=0.5)
        x = pm.Normal("x", low, 1.0, shape=ages.shape[0], initval=np.arange(3.0))
        pm.Exponential("rate", pt.exp(x), initval=2.0 * pt.arange(1, 4), shape=3)
        pm.ZeroInflatedPoisson("visits", 0.5, 3.0, dims="area")
        pm.Mixture("mix", p, pm.Normal.dist([0.0, 1.0, 5.0], 1.0))
        pm.Categorical("z", p, shape=4)
        chol, _, _ = pm.LKJCholeskyCov("chol", 2.0, 2, sd_dist=pm.Exponential.dist(1.0, size=2))
        pm.MvNormal("v", np.ones(2), chol=chol)
    found, expected = initial_point(model), model.initial_point(0)
    assert [*found] == [*expected]
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-14)
        assert (found[name].shape, found[name].dtype) == (value.shape, value.dtype)


def test_data_that_were_set_are_seen_afterwards():
    with pm.Model() as model:
        shift = pm.Data("shift", 1.0)
        pm.Normal("x", shift)
    with asked_once():
        assert initial_point(model)["x"] == 1.0
    model.set_data("shift", 2.0)
    with asked_once():
        assert initial_point(model)["x"] == 2.0


@pytest.mark.parametrize("length", [2, 5])
def test_a_variable_that_does_not_fit_its_data_is_named(length):
    with pm.Model() as model:
        age = pm.Data("age", np.zeros(3))
        pm.Normal("x", pm.Flat("slope") * age, shape=3)
    model.set_data("age", np.zeros(length))
    told = rf"'x' can't be .* \('age' \({length},\)\): .*\({length},\).*\(3,\)"
    with pytest.raises(ReadingError, match=told + r"\. Data set to another length need records"):
        initial_point(model)


def test_shapes_are_written_once():
    with pm.Model(coords={"row": range(4)}):
        x = pm.Normal("x", dims="row")
    with asked_once():
        assert written_shape(x) is written_shape(x)
    assert written_shape(x) is not written_shape(x)


def test_other_errors_of_a_start_stay(model, monkeypatch):
    def fail(self, value, *parameters):
        raise ValueError("another one")

    monkeypatch.setattr(type(model.rvs_to_transforms[model["rate"]]), "forward", fail)
    with pytest.raises(ValueError, match="another one"):
        initial_point(model)


@pytest.mark.usefixtures("uncompiled")
def test_all_steps_of_a_model_ask_once(model, asked):
    pmd.assign_steps(model=model, progressbar=False)
    assert asked.count("start") == 1
    assert asked.count("logp") <= 3  # random variables with and without Jacobian, Potentials
