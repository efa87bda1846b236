"""Normal conditionals follow their law, also where designs are ill-conditioned."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.conjugacy import gaussian
from tests.conjugacy.laws import LARGEST_DISTANCE, N, distance


def slopes_of_intercept_and_groups(prior_sd):
    """An intercept and three group means: one direction is known from the prior only."""
    groups = np.arange(900) % 3
    design = np.vstack([np.ones(900), *(groups == k for k in range(3))])
    return np.hstack([design, np.eye(4) / prior_sd])


@pytest.mark.parametrize("prior_sd", [1.0, 1e4, 1e7])
def test_a_direction_that_only_the_prior_knows_keeps_its_spread(prior_sd):
    slopes = slopes_of_intercept_and_groups(prior_sd)
    rng = np.random.default_rng(2)
    rows = np.vstack([slopes, np.zeros(slopes.shape[1])])
    draws = [gaussian.draw_joint(rng, rows) for _ in range(4000)]
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


def test_normal():
    rng = np.random.default_rng(6)
    draws = gaussian.ENTRYWISE.draw(rng, np.full(N, -2.0), np.full(N, 1e-3))
    z = (draws + 2) / 1e-3
    assert distance(z, stats.norm()) < LARGEST_DISTANCE
    assert distance(z, stats.norm(scale=1.2)) > LARGEST_DISTANCE


def test_joint_normal():
    rng = np.random.default_rng(7)
    mean, root = np.array([1.0, -2.0]), np.array([[2.0, 0.7], [0.0, 0.1]])
    cov = root @ root.T
    slopes = np.linalg.inv(root).T
    rows = np.vstack([slopes, -mean @ slopes])
    draws = np.stack([gaussian.draw_joint(rng, rows) for _ in range(N)])
    for direction in ([1, 0], [0, 1], [1, 1], [1, -20]):
        c = np.array(direction)
        law = stats.norm(c @ mean, np.sqrt(c @ cov @ c))
        assert distance(draws @ c, law) < LARGEST_DISTANCE
        assert distance(draws @ c, stats.norm(law.mean(), 1.2 * law.std())) > LARGEST_DISTANCE
