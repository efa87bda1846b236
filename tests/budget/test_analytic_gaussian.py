"""The exact (epsilon, delta) of Gaussian noise, against quadrature, mpmath and dp-accounting."""

import math

import dp_accounting
import pytest
from mpmath import erfc, exp, findroot, log, mp, mpf, sqrt
from scipy.stats import norm

from pymc_dapper.budget import ApproxDP, analytic_gaussian_budget, analytic_gaussian_sigma
from tests.budget.privacy import APPROXIMATE, PAPER, delta_gaussian


def test_analytic_gaussian_noise_is_just_enough():
    for goal in [*APPROXIMATE, PAPER]:
        sigma = analytic_gaussian_sigma(goal, sensitivity=2)
        assert delta_gaussian(sigma, 2, goal.epsilon) == pytest.approx(goal.delta, rel=1e-6)
        assert delta_gaussian(0.999 * sigma, 2, goal.epsilon) > goal.delta
        found = analytic_gaussian_budget(sigma, sensitivity=2, epsilon=goal.epsilon)
        assert found.delta == pytest.approx(goal.delta, rel=1e-10)


@pytest.mark.parametrize("ratio", [0.0999999, 0.1000001])
def test_the_two_ways_to_compute_the_analytic_delta_agree_where_they_meet(ratio):
    for epsilon in (1e-3, 0.1, 1.0, 3.0):
        a = epsilon / ratio - ratio / 2
        plain = norm.sf(a) - math.exp(epsilon) * norm.sf(a + ratio)
        found = analytic_gaussian_budget(1 / ratio, sensitivity=1, epsilon=epsilon)
        assert found.delta == pytest.approx(plain, rel=1e-10)


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_dp_accounting_agrees_on_the_analytic_gaussian(epsilon, delta):
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    ours = analytic_gaussian_sigma(ApproxDP(epsilon, delta), sensitivity=1)
    assert ours == pytest.approx(theirs, rel=1e-8)
    back = analytic_gaussian_budget(2 * ours, sensitivity=2, delta=delta)
    assert back.epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(ours, delta), rel=1e-8)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-10, 0.5])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e3])
def test_the_noise_is_right_to_all_digits(epsilon, delta):
    def log_delta(sigma):
        a = epsilon * sigma - 1 / (2 * sigma)
        return log((erfc(a / sqrt(2)) - exp(epsilon) * erfc((a + 1 / sigma) / sqrt(2))) / 2)

    found = analytic_gaussian_sigma(ApproxDP(epsilon, delta), sensitivity=1)
    with mp.workdps(60):
        exact = findroot(lambda sigma: log_delta(sigma) - log(mpf(delta)), mpf(found))
        assert abs(found / exact - 1) < 2e-15
