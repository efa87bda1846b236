"""Graphs evaluated in Python.

Sums that what a reading is compared with is formed by.
"""

from functools import partial
from math import fsum

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import ParameterValueError
from pytensor import scan
from pytensor.compile.builders import OpFromGraph

import pymc_dapper as pmd
from pymc_dapper.backend.internals import CheckParameterValue
from pymc_dapper.graphs.asked_once import log_densities
from pymc_dapper.graphs.evaluation import (
    TOLERANCE,
    CarefulSum,
    agree,
    at_point,
    choose_rows,
    compile_in_python,
    log_density_at,
    rounding,
    sum_of_rows,
    with_careful_sums,
)
from pymc_dapper.graphs.view import view_of
from tests.as_written import AS_WRITTEN
from tests.long_cases import one_in_three


def test_long_sums_of_rows_keep_their_digits():
    rows = np.random.default_rng(0).random((200_000, 2))
    exact = np.array([fsum(column) for column in rows.T])
    error = np.abs(sum_of_rows(rows) / exact - 1).max()
    assert error < 2e-15
    # As NumPy does along the first axis: one row after the other.
    assert np.abs(rows.sum(axis=0) / exact - 1).max() > 10 * error


@pytest.mark.parametrize("axis", [None, 0, 2, (0, 2), (1,)])
def test_all_sums_of_a_graph_are_taken_over_their_axes(axis):
    x = pt.constant(np.arange(2 * 300 * 3).reshape(2, 300, 3))
    graph = 2 * x.sum(axis=axis)
    careful = with_careful_sums(graph)
    assert isinstance(careful.owner.inputs[1].owner.op, CarefulSum)
    np.testing.assert_array_equal(
        careful.eval(mode="FAST_COMPILE"), 2 * x.data.sum(axis=axis), strict=True
    )


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


def test_any_number_of_terms_is_added():
    """NumPy's functions have 32 operands at most."""
    x = pt.vector("x")
    terms = [OpFromGraph([x], [k * x])(x) for k in range(45)]
    for graph in (pt.add(*(k * x for k in range(45))), pt.add(*terms)):
        [total] = compile_in_python(pm.Model(), [x], [graph])(np.array([1.0, 0.5]))
        np.testing.assert_array_equal(total, [990, 495])


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("of_counts", one_in_three([True, False]))
def test_any_number_of_releases_is_read(of_counts):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        records = pm.Poisson("records", rate, shape=34)
        tables = [records[k] if of_counts else (records * k).sum() for k in range(34)]
        for k, table in enumerate(tables):
            pmd.LaplaceMechanism(2.0).potential(f"released_{k}", table, released=1.0)
    steps = pmd.assign_steps(model=model)
    assert {x.name for step in steps for x in step.vars} >= {x.name for x in model.value_vars}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_is_that_of_the_least_precise_number(dtype):
    x = pt.vector("x", dtype="float64")
    graph = x.astype(dtype).sum().astype("float64")
    assert rounding([x], [graph]) == TOLERANCE[dtype]
    # What doesn't depend on the records doesn't count.
    assert rounding([x], [x.sum() + pt.constant(np.float32(1)).sum()]) == TOLERANCE["float64"]


def checked(x, scale, replaced):
    return CheckParameterValue("scale > 0", can_be_replaced_by_ninf=replaced)(x, pt.all(scale > 0))


@pytest.mark.parametrize("in_loop", [True, False], ids=["in a loop", "once"])
@pytest.mark.parametrize("replaced", [True, False], ids=["impossible", "an error"])
@pytest.mark.parametrize("check_bounds", [True, False])
def test_invalid_parameters_are_what_they_are_in_pymcs_functions(in_loop, replaced, check_bounds):
    x, scale = pt.vector("x"), pt.dscalar("scale")
    graph = checked(x, scale, replaced)
    if in_loop:
        graph = scan(
            partial(checked, replaced=replaced),
            sequences=[x],
            non_sequences=[scale],
            return_updates=False,
        )
    with pm.Model(check_bounds=check_bounds) as model:
        reference = pm.compile([x, scale], graph, mode=AS_WRITTEN)
    function, values = compile_in_python(model, [x, scale], [graph]), np.array([1.0, 2.0])
    np.testing.assert_array_equal(function(values, 1.0)[0], values)
    if check_bounds and not replaced:
        for raises in (reference, function):
            with pytest.raises(ParameterValueError, match="scale > 0"):
                raises(values, -1.0)
        return
    expected = [-np.inf, -np.inf] if check_bounds else values
    np.testing.assert_array_equal(function(values, -1.0)[0], expected)
    np.testing.assert_array_equal(reference(values, -1.0), expected)


def test_loops_may_be_of_what_is_given_and_of_what_stands_for_shared_data():
    x = pt.vector("x")
    shared = pytensor.shared(np.array([2.0, 3.0]))
    data = shared.type("data")
    data.tag.stands_for = shared
    given = pt.exp(x)
    loop = scan(lambda a, b: a * b, sequences=[given, data], return_updates=False)
    function = compile_in_python(pm.Model(), [given], [loop])
    np.testing.assert_array_equal(function(np.ones(2))[0], [2.0, 3.0])
    shared.set_value(np.array([4.0, 5.0]))
    np.testing.assert_array_equal(function(np.ones(2))[0], [4.0, 5.0])


def test_graphs_of_the_model_and_of_its_view_are_evaluated_at_a_point():
    """With present data; and at values given by the variable, in the place of the point's."""
    with pm.Model() as model:
        known = pm.Data("known", 2.0)
        x = pm.Gamma("x", 2.0, 1.0)
        pm.Normal("y", x, known, observed=[1.0, 3.0])
    view, variables = view_of(model), model.basic_RVs
    [value] = view.values.values()
    written = log_densities(model, variables)
    logp = model.compile_logp(mode="FAST_COMPILE")
    for scale in (2.0, 3.0):
        known.set_value(np.array(scale))
        expected = [float(logp({"x_log__": np.array(z)})) for z in (0.5, 0.7)]
        for graphs in (written, view.log_densities(variables), [*written[:1], *view([written[1]])]):
            log_density = log_density_at(model, graphs)
            assert log_density({"x_log__": 0.5, "other": 1}) == pytest.approx(expected[0])
        assert log_density_at(model, view(written))({}, {value: 0.7}) == pytest.approx(expected[1])
    [found] = at_point(model, [value.astype("int64")])({"x_log__": 7.9})
    assert found == 7


def test_numbers_agree_up_to_rounding_of_what_they_were_computed_from():
    nan, inf = np.nan, np.inf
    computed = [1.0, 1.0 + 1e-7, 100.0 + 1e-7, nan, inf, 1.0, nan, -inf]
    expected = [1.0, 1.0, 100.0, 1.0, 1.0, nan, -inf, inf]
    same = [True, False, True, False, False, False, True, True]
    assert agree(computed, expected, 1e-8).tolist() == same
    assert agree(1.0 + 1e-7, 1.0, 1e-8, size=20)
    assert not agree(1.0 + 1e-7, 1.0, 1e-8, size=0)
    assert not agree(inf, 1.0, 1e-8, size=inf)


def test_values_are_not_cut_to_whole_numbers():
    with pm.Model() as model:
        n = pm.Poisson("n", 3.0)
    doubled = at_point(model, [2 * model.rvs_to_values[n]])
    assert doubled({"n": 3.0}) == [6]
    with pytest.raises(TypeError, match=r"2\.7"):
        doubled({"n": 2.7})
