"""Log-densities with a parameter marginalised are integrals over it."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp

from pymc_dapper.assignment.readings import Readings
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.marginal import marginalise, parameters_to_marginalise
from tests.evaluated_in_python import REWRITTEN
from tests.long_cases import one_in_three


def prior_of_a_count():
    x = pm.Poisson("x", 4.0)
    p = pm.Beta("p", 1.0 + x, 2.0)
    y = pm.Binomial("y", n=20, p=p)
    return p, [x, y], [{"x": 2, "y": 5}, {"x": 6, "y": 5}, {"x": 6, "y": 12}]


def exposure_of_a_count():
    x = pm.Poisson("x", 3.0)
    p = pm.Gamma("p", 2.0, 1.0)
    y = pm.Poisson("y", p * (1.0 + x))
    return p, [x, y], [{"x": 2, "y": 5}, {"x": 6, "y": 5}, {"x": 6, "y": 12}]


def other_children():
    p = pm.Beta("p", 1.5, 2.0)
    pm.Bernoulli("z", p, shape=3)
    pm.Bernoulli("seen", p, observed=[1, 1, 0, 1])
    x = pm.Binomial("x", n=10, p=p)
    return p, [x], [{"x": 1, "z": [1, 1, 0]}, {"x": 7, "z": [1, 1, 0]}, {"x": 7, "z": [0, 0, 0]}]


def one_of_two_counts():
    p = pm.Beta("p", 1.5, 2.0)
    x = pm.Binomial("x", n=10, p=p)
    pm.Binomial("y", n=9, p=p)
    return p, [x], [{"x": 1, "y": 8}, {"x": 7, "y": 8}, {"x": 7, "y": 1}]


def latent_number():
    n = pm.Poisson("n", 12.0)
    p = pm.Beta("p", 1.5, 2.0)
    x = pm.Binomial("x", n=n, p=p)
    return p, [n, x], [{"n": 12, "x": 3}, {"n": 15, "x": 3}, {"n": 15, "x": 9}]


def hyperprior():
    a = pm.HalfNormal("a")
    p = pm.Gamma("p", a, 1.0)
    x = pm.Poisson("x", p * np.array([1.0, 3.0]))
    tables = [([2, 0], 0.7), ([5, 3], 0.7), ([5, 3], -1.0)]
    return p, [x], [{"x": x, "a_log__": a} for x, a in tables]


WRITTEN = [
    prior_of_a_count,
    exposure_of_a_count,
    other_children,
    one_of_two_counts,
    latent_number,
    hyperprior,
]


def log_ratios(write, *, leave_out=()):
    """Log-density ratios of points: by quadrature over the parameter, and as it is written."""
    with pm.Model() as model:
        p, counts, points = write()
    conditionals = read_conditionals(model, [p])
    view = conditionals[0].view
    factors = marginalise(view, conditionals, counts)
    marginal = pt.add(*(graph.sum() for name, graph in factors.items() if name not in leave_out))
    value = model.rvs_to_values[p]
    others = [x for x in model.value_vars if x is not value]
    options = {"mode": REWRITTEN, "on_unused_input": "ignore"}
    logp = pytensor.function([value, *others], model.logp(), **options)
    written = pytensor.function([view.values[x] for x in others], marginal, **options)
    found = []
    for point in points:
        at = [np.asarray(point[x.name], dtype=x.dtype) for x in others]
        # The parameter is transformed to the whole line, where the trapezoid rule is exact enough.
        integral = logsumexp([logp(theta, *at) for theta in np.linspace(-20, 20, 201)])
        found.append((integral, written(*at)))
    return np.diff(found, axis=0).T


@pytest.mark.parametrize("write", one_in_three(WRITTEN))
def test_log_densities_are_integrals_over_the_parameter(write):
    integrals, written = log_ratios(write)
    assert np.abs(integrals).min() > 0.1
    np.testing.assert_allclose(written, integrals, atol=1e-6)


def test_a_prior_left_out_of_the_integral_shows():
    integrals, written = log_ratios(prior_of_a_count, leave_out=["p"])
    assert np.abs(written - integrals).max() > 1


def test_parameters_that_can_be_marginalised_are_found():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 1)
        p = pm.Beta("p", alpha, 1)
        q = pm.Dirichlet("q", np.ones(3))
        rate = pm.LogNormal("rate")
        x = pm.Binomial("x", n=20, p=p)
        y = pm.Multinomial("y", n=x, p=q)
        z = pm.Poisson("z", rate)
        pm.Normal("released", x + y.sum() + z, 1.0, observed=5.0)
    readings = Readings(model)
    conditionals = [each for rv in (alpha, p, q, rate) for each in readings.conditionals([rv])]
    found = parameters_to_marginalise(conditionals, [x, y, z])
    assert [each.rvs for each in found] == [(p,), (q,)]
    assert parameters_to_marginalise(conditionals, [z]) == []
