"""Which variables' distributions depend on a parameter, and how."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import ConjugateStep, NotConjugateError
from pymc_dapper.conjugacy.children import read_children, read_link
from pymc_dapper.graphs.view import view_of


def test_a_child_that_shows_no_parameters_is_refused_by_name():
    with pm.Model() as model:
        a = pm.Gamma("a", 2, 1)
        pm.Truncated("side", pm.Gamma.dist(a, 1), lower=0.1, observed=[0.5, 2.0])
    with pytest.raises(NotConjugateError, match="'side'"):
        ConjugateStep([a], model=model)


def children_of(model, name):
    rv = model[name]
    theta = rv.type(name)
    view = view_of(model)
    return view, theta, [x for x in read_children(view, {rv: theta}) if x.name != name]


def test_children_are_told_by_their_family_value_and_parameters():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("seen", 3 * rate, observed=4)
        pm.Normal("mean", rate, 1.0)
        pm.Normal("other", model["mean"], 1.0)
    view, _, (mean, seen) = children_of(model, "rate")
    assert (seen.family, mean.family) == ("Poisson", "Normal")
    assert seen.value.eval(mode="FAST_COMPILE") == 4
    assert mean.value is view.values[model.rvs_to_values[model["mean"]]]
    assert mean.name_parameter(1) == "the sd of 'mean' (Normal)"
    assert mean.name_parameter(7) == "parameter 8 of 'mean' (Normal)"


def test_a_link_is_a_power_with_a_coefficient():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=2)
        pm.Poisson("y", np.array([3.0, 5.0, 7.0]) * rate[[0, 1, 1]], observed=[1, 2, 4])
    _, theta, [child] = children_of(model, "rate")
    link = read_link(child, theta, positive=True)
    assert (link.position, link.relation.exponent) == (0, 1)
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    at = {theta: np.array([0.3, 0.4])}
    np.testing.assert_array_equal(link.coefficient.eval(**options), [3, 5, 7])
    np.testing.assert_array_equal(link.total(link.value).eval(at, **options), [1, 6])


def test_two_parameters_at_once_are_no_link():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Gamma("y", rate, rate, observed=1.0)
    _, theta, [child] = children_of(model, "rate")
    with pytest.raises(NotConjugateError, match=r"enters the shape of 'y'.* and the scale of 'y'"):
        read_link(child, theta, positive=True)
