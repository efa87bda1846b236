"""Exact draws of records with few values: no weight is lost to rounding."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.reading import read_model
from tests.sweep_parts import PythonFunction, take_apart


def shares(model, function=PythonFunction, draws=400):
    """How often each record takes each of four values."""
    reading = read_model(model, model.value_vars, model.initial_point())
    assert reading.proposes_conditionally
    propose, rng = take_apart(reading, function=function).propose, np.random.default_rng(6)
    x = np.array([propose(rng)[0] for _ in range(draws)])
    return np.array([(x == value).mean(axis=0) for value in range(4)]).T


def test_values_that_the_prior_excludes_take_no_weight_from_others():
    with pm.Model() as model:
        x = pm.Categorical("x", [0.3, 0.4, 0.3, 0.0], shape=3)
        pm.Normal("y", x, 0.001, observed=[2.9, 2.9, 1.0])
    # Compiled: fast arithmetic may take it for granted that weights are finite.
    found = shares(model, JitFunction)
    np.testing.assert_array_equal(found, [[0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0]])


def test_factors_that_contradict_each_other_are_weighed_together():
    with pm.Model() as model:
        x = pm.Categorical("x", [0.3, 0.4, 0.3], shape=500)
        pm.Normal("y", x, 0.01, observed=np.zeros(500))
        pm.Normal("z", x, 0.01, observed=np.ones(500))
    found = shares(model).mean(axis=0)
    error = np.sqrt(0.25 / (400 * 500))
    np.testing.assert_allclose(found, [3 / 7, 4 / 7, 0, 0], atol=4 * error)


@pytest.mark.parametrize("sd", [0.05, 1.0])
def test_both_ways_to_weigh_agree_with_bayes(sd):
    # With sd = 0.05 a weight would be rounded to zero if it weren't a logarithm; not with sd = 1.
    prior, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.45, 1.5, 1.55])
    with pm.Model() as model:
        x = pm.Categorical("x", prior, shape=3)
        pm.Normal("y", x, sd, observed=y)
    weights = prior * np.exp(-0.5 * ((y[:, None] - np.arange(4)) / sd) ** 2)
    exact = weights / weights.sum(axis=1, keepdims=True)
    error = np.sqrt(exact * (1 - exact) / 400)
    assert np.all(np.abs(shares(model) - exact) <= 4.5 * error + 1e-12)
