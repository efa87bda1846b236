"""Which factors see which variables."""

import numpy as np
import pymc as pm

import pymc_dapper as pmd
from pymc_dapper.graphs.dependence import dependent_factors, records_seen


def small_model():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        x = pm.Bernoulli("x", p, shape=5)
        y = pm.Normal("y", x, 1.0, shape=5)
        pm.Normal("outcome", p, 1.0, observed=0.3)
        pm.Potential("privacy", -(x.sum() ** 2))
        pmd.GaussianMechanism(sigma=2.0).observe("release", y.sum(), released=1.0)
    return model


def factors_of(model, name):
    return set(dependent_factors(model, [model.rvs_to_values[model[name]]]))


def test_factors_are_those_with_the_variable_in_their_graph():
    model = small_model()
    assert factors_of(model, "p") == {"p", "x", "outcome"}
    assert factors_of(model, "x") == {"x", "y", "privacy"}
    assert factors_of(model, "y") == {"y", "release"}


def test_the_jacobian_is_part_of_a_factor_on_request():
    model = small_model()
    value = model.rvs_to_values[model["p"]]
    at = {value: np.array(0.4)}
    with_jacobian, without = (
        dependent_factors(model, [value], jacobian=jacobian)["p"].eval(at, mode="FAST_COMPILE")
        for jacobian in (True, False)
    )
    p = 1 / (1 + np.exp(-0.4))
    np.testing.assert_allclose(with_jacobian - without, np.log(p * (1 - p)))


def test_records_are_what_mechanisms_see_directly():
    model = small_model()
    assert [x.name for x in records_seen(model)] == ["x", "y"]
    with pm.Model() as without:
        pm.Normal("y", pm.Normal("x"), 1.0, observed=0.3)
    assert records_seen(without) == []


def test_a_parameter_that_bounds_the_records_is_not_seen():
    """The records' values are transformed by their bounds: in terms of values, it would be."""
    with pm.Model() as model:
        top = pm.Uniform("top", 1, 4)
        x = pm.Uniform("x", 0, top, shape=4)
        given = pm.Normal("given", top, 1.0, observed=2.0)
        pmd.LaplaceMechanism(0.5).potential("privacy", x.sum() + given, released=5.0)
        pmd.LaplaceMechanism(top).observe("release", x.max(), released=2.0)
    assert records_seen(model) == [x]
    with model:
        pm.Potential("of both", -(x - top).sum())
    assert records_seen(model) == [top, x]


def test_of_counted_answers_the_counts_are_seen_alone():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2, shape=2)
        x = pm.Bernoulli("x", 0.5, shape=6)
        pm.Bernoulli("ill", p[x], observed=[0, 1, 1, 0, 1, 1])
        pm.Deterministic("total", x.sum())
    tabulated = pmd.tabulate(model, [x])
    assert [rv.name for rv in tabulated.free_RVs] == ["p", "x_count"]
    assert [rv.name for rv in records_seen(tabulated)] == ["x_count"]
