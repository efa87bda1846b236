"""Exact draws of records with few values: no weight is lost to rounding."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.traversal import ancestors

import pymc_dapper as pmd
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from tests.monte_carlo import smallest_ess, z_score_of_mean
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


ANSWERS = np.array([[0, 1, 1], [1, 1, 0]])


def answers(tied=None):
    """Two people answer three questions, each with a rate of its own."""
    with pm.Model() as model:
        p = pm.Beta("p", 2, 1, shape=3)
        x = pm.Bernoulli("x", p, shape=(2, 3))
        pmd.RandomizedResponse(0.75, categories=2).observe("answers", x, released=ANSWERS)
        if tied is not None:
            pm.Potential("tied", tied(x))
    return read_model(model, [model.rvs_to_values[model["x"]]], model.initial_point())


def test_entries_that_nothing_ties_are_drawn_one_by_one():
    reading, p = answers(), np.array([0.1, 0.4, 0.8])
    law = reading.conditional
    [of_model] = reading.view([reading.model.logp(sum=True)])
    inputs = [*reading.records, *reading.parameters]
    log_density = compile_in_python(reading.model, inputs, [of_model])
    at = np.log(p / (1 - p))
    weights = compile_in_python(reading.model, [*reading.parameters], list(law.weights))(at)
    no, yes = np.broadcast_arrays(*weights, np.zeros((2, 3)))[:2]
    found = yes / (no + yes)
    states = np.array(list(product((0, 1), repeat=6))).reshape(-1, 2, 3)
    density = np.exp([log_density(state, at)[0] for state in states])
    density /= density.sum()
    by_entries = np.where(states == 1, found, 1 - found).prod(axis=(1, 2))
    np.testing.assert_allclose(by_entries, density, rtol=1e-12)
    broken = np.where(states == 1, found[::-1], 1 - found[::-1]).prod(axis=(1, 2))
    assert abs(broken - density).max() > 0.01


def total_of_columns(n, turned=False):
    """Three columns of answers with rates of their own: the graph of their total, and its value."""
    released = np.random.default_rng(3).integers(0, 2, (n, 3))
    with pm.Model() as model:
        p = pm.Beta("p", 2, 1, shape=3)
        x = pm.Bernoulli("x", p[::-1] if turned else p, shape=(n, 3))
        pmd.RandomizedResponse(0.75, categories=2).observe("answers", x, released=released)
    reading = read_model(model, [model.rvs_to_values[x]], model.initial_point())
    total = reading.conditional.log_total((n, 3))
    rates = np.array([0.1, 0.4, 0.8])
    at = compile_in_python(model, [*reading.parameters], [total])(np.log(rates / (1 - rates)))[0]
    yes = 0.25 + 0.5 * rates
    return total, at, np.log(np.where(released, yes, 1 - yes)).sum()


def test_the_total_of_columns_is_that_of_their_entries():
    _, found, expected = total_of_columns(50)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    _, found, expected = total_of_columns(50, turned=True)
    assert abs(found - expected) > 1


def test_the_total_of_columns_is_computed_once_for_answers_that_are_alike():
    of_few, of_many = (total_of_columns(n)[0] for n in (50, 5000))
    shapes = [
        {x.type.shape for x in ancestors([total]) if x.dtype == "float64"}
        for total in (of_few, of_many)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    "tied",
    [
        lambda x: -((x.sum(axis=1) - 1.0) ** 2),
        lambda x: x[:, ::-1] * 0.5,
        lambda x: x.cumsum(axis=1) * 0.1,
        lambda x: (x * x[:, :1]) * 0.3,
        lambda x: -((x.sum() - 2.0) ** 2),
    ],
)
def test_entries_that_a_factor_ties_are_not(tied):
    assert answers(tied).conditional is None


@pytest.mark.long
def test_rates_of_several_answers_follow_their_posterior():
    rng, n = np.random.default_rng(2), 200
    released = (rng.random((n, 3)) < [0.3, 0.5, 0.7]).astype(int)
    with pm.Model():
        p = pm.Beta("p", 1, 1, shape=3)
        x = pm.Bernoulli("x", p, shape=(n, 3))
        pmd.RandomizedResponse(0.75, categories=2).observe("answers", x, released=released)
        idata = pmd.sample(3000, chains=1, random_seed=1, progressbar=False)
    grid = (np.arange(2000) + 0.5) / 2000
    rate, yes = 0.25 + 0.5 * grid, released.sum(axis=0)[:, None]
    log = yes * np.log(rate) + (n - yes) * np.log(1 - rate)
    posterior = np.exp(log - log.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    draws = idata.posterior["p"].values[0]
    z = [z_score_of_mean(draws[:, k], posterior[k] @ grid) for k in range(3)]
    assert np.max(np.abs(z)) < 4
    assert min(smallest_ess(draws[None, :, k]) for k in range(3)) > 1000


def test_categories_whose_number_comes_from_dims_are_few():
    """A softmax of coefficients with dims: its length is in no type."""
    with pm.Model(coords={"group": range(2), "category": range(3)}) as model:
        beta = pm.Normal("beta", dims=("group", "category"))
        group = pm.Bernoulli("group_of", 0.4, shape=5)
        x = pm.Categorical("x", pm.math.softmax(beta[group], axis=-1), shape=5)
        counted = pmd.statistics.joint_counts([group, x], [2, 3])
        pmd.LaplaceMechanism(1.0).potential("table", counted, released=np.ones((2, 3)))
    values = [model.rvs_to_values[model[name]] for name in ("group_of", "x")]
    reading = read_model(model, values, model.initial_point())
    np.testing.assert_array_equal(reading.possible_values, list(product(range(2), range(3))))
    assert isinstance(reading.plan.rows, RowsByCell)
