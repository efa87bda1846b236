"""Conditionals at the edge: ill-conditioned designs, data out of range, unreadable children."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import ConjugateStep, NotConjugateError
from pymc_dapper.conjugacy import gaussian


def slopes_of_intercept_and_groups(prior_sd):
    """An intercept and three group means: one direction is known from the prior only."""
    groups = np.arange(900) % 3
    design = np.vstack([np.ones(900), *(groups == k for k in range(3))])
    return np.hstack([design, np.eye(4) / prior_sd])


@pytest.mark.parametrize("prior_sd", [1.0, 1e4, 1e7])
def test_a_direction_that_only_the_prior_knows_keeps_its_spread(prior_sd):
    slopes = slopes_of_intercept_and_groups(prior_sd)
    rng = np.random.default_rng(2)
    draws = [gaussian.draw_joint(rng, slopes, np.zeros(slopes.shape[1])) for _ in range(4000)]
    # (1, -1, -1, -1) / 2 leaves all means as they are: its law is its prior.
    along = np.array(draws) @ np.array([1.0, -1.0, -1.0, -1.0]) / 2
    assert abs(along.std() / prior_sd - 1) < 4 / np.sqrt(2 * 4000)


def normal_equations(rng, slopes, residuals):
    """What must not be done: the products square the condition number."""
    lower = np.linalg.cholesky(slopes @ slopes.T)
    return np.linalg.solve(lower.T, rng.standard_normal(len(slopes)))


def test_normal_equations_would_not():
    slopes = slopes_of_intercept_and_groups(1e7)
    rng = np.random.default_rng(2)
    try:
        draws = np.array([normal_equations(rng, slopes, None) for _ in range(4000)])
    except np.linalg.LinAlgError:
        return
    along = draws @ np.array([1.0, -1.0, -1.0, -1.0]) / 2
    assert abs(along.std() / 1e7 - 1) > 4 / np.sqrt(2 * 4000)


def test_a_category_out_of_range_is_refused_and_not_written():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        data = pm.Data("data", np.array([0, 1, 2, 2]))
        pm.Categorical("y", p, observed=data)
    step = ConjugateStep([p], model=model)
    with model:
        pm.set_data({"data": np.array([0, 1, 2, 5])})
    step.setup_chain(np.random.default_rng(1), 0, 1)
    with pytest.raises(AssertionError, match=r"a category in the data.* is out of range"):
        step.step(model.initial_point())


def test_a_child_that_shows_no_parameters_is_refused_by_name():
    with pm.Model() as model:
        a = pm.Gamma("a", 2, 1)
        pm.Truncated("side", pm.Gamma.dist(a, 1), lower=0.1, observed=[0.5, 2.0])
    with pytest.raises(NotConjugateError, match="'side'"):
        ConjugateStep([a], model=model)
