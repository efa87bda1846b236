"""Records whose parameters depend on other records, and are invalid at some of their values.

PyMC's density is zero there. x_i has three values, and y_i is 1 with probability 0.3, 0.8 or 1.2:
with x_i = 2 nothing is possible. All states of two records can be enumerated.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import norm

from pymc_dapper import DapperStep
from pymc_dapper.reading import read_model
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.sweep_parts import PythonFunction, take_apart

OF_X = np.array([0.5, 0.2, 0.3])
P = np.array([0.3, 0.8, 1.2])
VALUES = np.array([(x, y) for x in range(3) for y in range(2)])
DRAWN = np.array([OF_X[x] * (min(P[x], 1) if y else max(1 - P[x], 0)) for x, y in VALUES])
PRIOR = np.where(P[VALUES[:, 0]] <= 1, DRAWN, 0.0)
PRIOR /= PRIOR.sum()
RELEASED, NOISE = 2.6, 1.1


def total(x, y):
    return (x + 2 * y).sum()


def largest(x, y):
    return (x + 2 * y).max()


def model_of(statistic):
    with pm.Model() as model:
        x = pm.Categorical("x", OF_X, shape=2)
        y = pm.Bernoulli("y", pt.constant(P)[x], shape=2)
        pm.Normal("s_dp", statistic(x, y), NOISE, observed=RELEASED)
    return model


def invariance_error(statistic, *, checked=True):
    """Largest change that a sweep makes to the exact conditional posterior."""
    model = model_of(statistic)
    reading = read_model(model, model.value_vars, model.initial_point())
    if not checked:
        object.__setattr__(reading, "possible", None)
    decide = take_apart(reading, function=PythonFunction).decide

    def decide_by_index(state, proposal, log_uniforms):
        *records, accepted, logp = decide(
            *VALUES[state].T.copy(), *VALUES[proposal].T.copy(), log_uniforms
        )
        return 2 * records[0] + records[1], accepted, logp

    def log_mechanism(state):
        return norm.logpdf(RELEASED, statistic(*VALUES[list(state)].T), NOISE)

    posterior = conditional_posterior(PRIOR, log_mechanism, n_records=2)
    drawn = (DRAWN[posterior.states]).prod(axis=1)
    kept = drawn > 0
    matrix = transition_matrix(decide_by_index, posterior.states[kept], drawn[kept])
    exact = posterior.probabilities[kept]
    return np.abs(exact @ matrix - exact).max()


def test_a_sweep_leaves_the_posterior_invariant():
    assert invariance_error(total) < 1e-10


def test_a_sweep_that_takes_invalid_parameters_is_not_invariant():
    assert invariance_error(total, checked=False) > 1e-3


@pytest.mark.long
def test_a_sweep_by_full_evaluation_leaves_the_posterior_invariant():
    assert invariance_error(largest) < 1e-10


def test_exact_draws_are_of_the_posterior_given_answers():
    truth, answers = np.array([0.25, 0.8]), np.array([1, 0, 1])
    with pm.Model() as model:
        x = pm.Categorical("x", OF_X, shape=3)
        y = pm.Bernoulli("y", pt.constant(P)[x], shape=3)
        pm.Bernoulli("answer", pt.constant(truth)[y], observed=answers)
    law = read_model(model, model.value_vars, model.initial_point()).conditional
    weights = np.array([np.broadcast_to(w.eval(mode="FAST_COMPILE"), 3) for w in law.weights])
    likelihood = np.where(answers, truth[VALUES[:, [1]]], 1 - truth[VALUES[:, [1]]])
    exact = PRIOR[:, None] * likelihood
    np.testing.assert_array_equal(law.values, VALUES)
    np.testing.assert_allclose(weights / weights.sum(axis=0), exact / exact.sum(axis=0), atol=1e-14)


@pytest.mark.long
def test_a_spread_that_records_make_negative():
    # y_i ~ N(x_i, x_i / 2) excludes x_i < 0, and only x is released: its posterior is normal, cut.
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 1, shape=2, initval=np.ones(2))
        y = pm.Normal("y", x, 0.5 * x, shape=2)
        pm.Normal("s_dp", x.sum(), 1.0, observed=0.5)
    step = DapperStep([x, y], model=model)
    draws = 20_000
    step.setup_chain(np.random.default_rng(3), tune=0, draws=draws)
    point, found = model.initial_point(), np.empty(draws)
    for k in range(draws):
        point, _ = step.step(point)
        found[k] = point["x"].mean()

    grid = np.linspace(0, 6, 601)[:, None]
    density = norm.pdf(grid, 0.5) * norm.pdf(grid.T, 0.5) * norm.pdf(0.5, grid + grid.T, 1.0)
    # The trapezoidal rule: half of the weight at the cut.
    density[0] /= 2
    density[:, 0] /= 2
    exact = (density * (grid + grid.T) / 2).sum() / density.sum()
    batches = found.reshape(100, -1).mean(axis=1)
    assert abs(batches.mean() - exact) < 4 * batches.std(ddof=1) / 10
