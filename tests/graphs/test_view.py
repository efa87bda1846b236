"""A model in terms of values: shapes are known, and data are given."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import explicit_graph_inputs, io_toposort

from pymc_dapper.graphs.asked_once import asked_once
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.view import Reading, dim_lengths, shared_data, view_of
from tests.evaluated_in_python import REWRITTEN


@pytest.fixture
def model():
    with pm.Model(coords={"person": range(4)}) as model:
        design = pm.Data("design", np.ones((4, 2)), dims=("person", "column"))
        upper = pm.HalfNormal("upper")
        x = pm.Uniform("x", 0, upper)
        pm.Normal("y", design @ np.ones(2) * x, 1.0, dims="person")
    return model


def test_all_shapes_are_known(model):
    view = view_of(model)
    assert view.dim_lengths == dim_lengths(model) == {"person": 4, "column": 2}
    y = model["y"]
    assert view.values[model.rvs_to_values[y]].type.shape == view.shape(y) == (4,)
    assert view.data[model["design"]].type.shape == (4, 2)
    [density] = view.log_densities([y])
    assert density.type.shape == (4,)
    names = {x.name for x in explicit_graph_inputs([density])}
    assert names == {"upper_log__", "x_interval__", "y", "design"}
    assert [x.name for x in view.values_in([density])] == ["upper_log__", "x_interval__", "y"]
    assert list(view.data_in([density])) == [model["design"]]


@pytest.mark.parametrize("n", [3, 4])
def test_of_a_condition_on_a_shape_one_branch_is_left(n):
    with pm.Model() as model:
        x = pm.Normal("x", shape=n)
        pm.Potential("median", -pt.median(x))
    view = view_of(model)
    [median] = view.log_densities([model["median"]])
    assert not any(type(x.op).__name__ == "IfElse" for x in io_toposort([], [median]))
    at = {view.values[model.rvs_to_values[x]]: np.arange(n) ** 2.0}
    found = median.eval(at, mode="FAST_COMPILE")
    assert found == -np.median(np.arange(n) ** 2.0)


@pytest.mark.parametrize(
    ("count", "length"),
    [
        (lambda x, y: pt.bincount(x, minlength=4), 4),
        (lambda x, y: pt.bincount(4 * y + x, minlength=8), 8),
        (lambda x, y: pt.bincount(x // 2 + 2 * (x % 2), minlength=4), 4),
        (lambda x, y: pt.bincount(x + y, minlength=7), 7),
        (lambda x, y: pt.bincount(x[:, 1], minlength=9), 9),
        # One more category than cells: the length is 4 or 5.
        (lambda x, y: pt.bincount(x + y, minlength=4), None),
        (lambda x, y: pt.bincount(x), None),
    ],
)
def test_a_length_that_no_record_exceeds_is_known(count, length):
    with pm.Model() as model:
        by_column = length == 9
        x = pm.Categorical("x", np.full(4, 1 / 4), shape=(5, 2) if by_column else 5)
        y = pm.Bernoulli("y", 0.5, shape=5)
        pm.Potential("seen", 1.0 * count(x, y))
    view = view_of(model)
    [seen] = view.log_densities([model["seen"]])
    assert seen.type.shape == (length,)
    for largest in (0, 3):
        at = {"x": np.full(x.type.shape, largest), "y": np.array([0, 1, 0, 1, largest > 0])}
        given = {view.values[model.rvs_to_values[model[name]]]: at[name] for name in at}
        expected = count(*map(pt.constant, at.values())).eval(mode="FAST_COMPILE")
        found = seen.eval(given, mode="FAST_COMPILE", on_unused_input="ignore")
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("start", [0, 0.0])
def test_the_number_of_conditions_that_are_met_is_a_number(start):
    """PyTensor leaves out the 0, and the sum of booleans alone is "or"."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=4)
        pm.Potential("above", sum((x > cut for cut in (0, 1, 2)), start).sum())
    [above] = view_of(model).log_densities([model["above"]])
    [x] = explicit_graph_inputs([above])
    assert above.eval({x: [-0.5, 0.5, 1.5, 2.5]}, mode=REWRITTEN) == 6


def test_factors_are_the_models_own(model):
    view, point = view_of(model), model.initial_point(random_seed=1)
    found = view.dependent_factors(model.value_vars)
    assert list(found) == ["upper", "x", "y"]
    assert list(view.dependent_factors([model.rvs_to_values[model["x"]]])) == ["x", "y"]
    inputs = list(view.values.values())
    values = [point[x.name] for x in inputs]
    computed = compile_in_python(model, inputs, list(found.values()))(*values)
    as_written = compile_in_python(model, model.value_vars, model.logp(sum=False))(*values)
    for a, b in zip(computed, as_written, strict=True):
        np.testing.assert_array_equal(a, b)
    back = view.in_model(list(found.values()))
    for a, b in zip(
        compile_in_python(model, model.value_vars, back)(*values), computed, strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_data_have_their_present_values_where_they_are_not_given(model):
    view = view_of(model)
    [twice] = view([2 * model["design"]])
    evaluate = compile_in_python(model, [], [twice])
    with_data = compile_in_python(model, list(view.data.values()), [twice])
    pm.set_data({"design": np.full((4, 2), 3.0)}, model=model)
    assert np.all(evaluate()[0] == 6)
    assert np.all(with_data(np.zeros((4, 2)))[0] == 0)
    assert shared_data([model["y"], model["y"] + 1]).count(model["design"]) == 1
    assert shared_data([model["upper"]]) == []


def test_readers_have_one_view_of_a_model_as_long_as_it_stays_as_it_is(model):
    with asked_once():
        view = view_of(model)
        assert view_of(model) is view
        with model:
            pm.Normal("another")
        assert [x.name for x in view_of(model).values.values()][-1] == "another"
    assert view_of(model) is not view_of(model)


def test_names_are_those_of_the_model(model):
    view = view_of(model)
    assert Reading(view, {}).names(view.values.values()) == ["upper", "x", "y"]


def test_covariates_of_different_lengths_are_named():
    with pm.Model() as model:
        z, w = pm.Data("z", np.ones(5)), pm.Data("w", np.ones(5))
        x = pm.Normal("x", z + w, 1)
        pm.set_data({"z": np.ones(4)})
    with pytest.raises(ReadingError, match=r"'x' can't be .* \('z' \(4,\), 'w' \(5,\)\)"):
        view_of(model).shape(x)


def test_data_that_do_not_fit_are_named(model):
    with model:
        pm.Potential("release", (model["y"] - pm.Data("released", np.ones(3))) ** 2)
    with pytest.raises(ReadingError, match="'release' can't be evaluated with the shapes"):
        view_of(model).log_densities([model["release"]])


@pytest.mark.parametrize("law", [pm.Normal, pm.Beta])
def test_a_length_that_is_drawn_is_refused(law):
    with pm.Model() as model:
        n = pm.Poisson("n", 10)
        law("x", 1, 1, shape=(n, 2))
    message = "the length of 'x' depends on 'n'.*room.*pmd.present"
    with pytest.raises(ReadingError, match=message):
        _ = view_of(model).values
    with pm.Model() as model:
        among = pm.Data("among", np.array(7))
        law("y", 1, 1, shape=law("x", 1, 1, shape=among).shape)
    assert [x.type.shape for x in view_of(model).values.values()] == [(7,), (7,)]


def test_the_users_graph_is_not_rewritten():
    with pm.Model(coords={"person": range(3)}) as model:
        mean = pm.Normal("mean", 0, 1, dims="person")
        pm.Normal("x", pt.exp(mean * 1.0) + 0.0, 1, dims="person")
    before = pytensor.dprint(model["x"], file="str")
    assert view_of(model).shape(model["x"]) == (3,)
    assert pytensor.dprint(model["x"], file="str") == before
