"""The one rule of tuning: what has the most effective draws of the slowest parameter per cost."""

import numpy as np
import pytest

from pymc_dapper.kernels.tuning import best, correlation, cost_of_the_rest


def test_the_slowest_parameter_and_the_cost_decide():
    left = np.array([[0.0, 0.9], [0.5, 0.5], [0.4, 0.4]])
    assert best(left, np.ones(3), 10**6) == (2,)
    assert best(left, np.array([1.0, 1.0, 2.0]), 10**6) == (1,)
    assert best(left, np.array([1.0, 100.0, 200.0]), 10**6) == (0,)
    several = np.stack([left, left[::-1]])
    assert best(several, np.array([[1.0, 1.0, 1.0], [0.5, 1.0, 1.0]]), 10**6) == (1, 0)


@pytest.mark.parametrize(("cost", "expected"), [(2.15, 1), (2.3, 0)])
def test_of_nearly_equal_choices_the_one_with_most_effective_draws_is_taken(cost, expected):
    """0.5 and 0.2 are worth 1/3 and 2/3 of an independent draw."""
    left = np.array([[0.5], [0.2]])
    assert best(left, np.array([1.0, cost]), 10**6) == (expected,)


@pytest.mark.parametrize(("n", "expected"), [(100, 0), (10**6, 1)])
def test_what_cannot_be_told_from_zero_is_not_paid_for(n, expected):
    """A standard error of 0.1 doesn't tell 0.05 from 0; one of 0.001 does."""
    assert best(np.array([[0.05], [0.0]]), np.array([1.0, 1.001]), n) == (expected,)


def test_what_stands_still_is_worth_next_to_nothing_and_no_nan():
    assert best(np.array([[1.0], [1.0]]), np.array([1.0, 2.0]), 100) == (0,)


def test_more_records_and_parameters_cost_more():
    assert cost_of_the_rest(100, 1) < cost_of_the_rest(200, 1) < cost_of_the_rest(200, 2)


def test_correlations_of_columns():
    rng = np.random.default_rng(0)
    x, e = rng.standard_normal((2, 10_000))
    before = np.stack([x, x, x, np.ones_like(x)], axis=1)
    after = np.stack([0.6 * x + 0.8 * e, x, -x, np.ones_like(x)], axis=1)
    np.testing.assert_allclose(correlation(before, after), [0.6, 1, 0, 1], atol=0.03)
