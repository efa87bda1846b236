"""Both bounds between rho and (epsilon, delta): by definition, there and back, at extremes."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from pymc_dapper.budget import (
    TINY,
    ZCDP,
    ApproxDP,
    analytic_gaussian_budget,
    analytic_gaussian_sigma,
    gaussian_sigma,
)
from tests.budget.privacy import BOUNDS, DELTAS, EPSILONS, RHOS


def log_delta_by_search(rho, epsilon):
    """Corollary 13 of Canonne et al. (2020), term by term, on a fine grid of orders."""
    with np.errstate(over="ignore"):
        above_one = np.exp(np.linspace(-40, 40, 400_001))
        order = 1 + above_one
        exponent = above_one * (order * rho - epsilon)
        log_delta = exponent - np.log(above_one) + order * (np.log(above_one) - np.log1p(above_one))
    return np.min(log_delta)


@pytest.mark.parametrize("rho", [1e-6, 1e-2, 0.5, 20.0])
@pytest.mark.parametrize("factor", [0.9, 2.0, 10.0])
def test_the_tight_bound_is_the_infimum_over_all_orders(rho, factor):
    epsilon = rho + factor * math.sqrt(rho)
    found = ZCDP(rho).to_approx(epsilon=epsilon, bound="tight")
    assert math.log(found.delta) == pytest.approx(log_delta_by_search(rho, epsilon), abs=1e-5)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_tight_bound_never_promises_less_than_the_simple_one(rho, delta):
    simple, tight = (ZCDP(rho).to_approx(delta=delta, bound=bound) for bound in BOUNDS)
    assert 0 < tight.epsilon < simple.epsilon
    exact = analytic_gaussian_budget(1 / math.sqrt(2 * rho), sensitivity=1, delta=delta)
    assert 0 < exact.epsilon <= tight.epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_tight_bound_never_needs_more_noise_than_the_simple_one(epsilon, delta):
    goal = ApproxDP(epsilon, delta)
    simple, tight = (gaussian_sigma(goal, sensitivity=3, bound=bound) for bound in BOUNDS)
    assert analytic_gaussian_sigma(goal, sensitivity=3) < tight < simple


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_comes_back_from_epsilon_and_delta(rho, delta, bound):
    implied = ZCDP(rho).to_approx(delta=delta, bound=bound)
    if implied.epsilon == TINY:
        # Every smaller budget has this epsilon, too, so the largest of them comes back.
        assert implied.to_zcdp(bound=bound).rho >= rho
        return
    assert implied.delta == delta
    assert implied.to_zcdp(bound=bound).rho == pytest.approx(rho, rel=1e-12)
    again = ZCDP(rho).to_approx(epsilon=implied.epsilon, bound=bound)
    assert math.log(again.delta) == pytest.approx(math.log(delta), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("bound", BOUNDS)
def test_more_rho_promises_less(bound):
    rhos = np.geomspace(1e-12, 1e6, 100)
    epsilons = [ZCDP(one).to_approx(delta=1e-9, bound=bound).epsilon for one in rhos]
    assert np.all(np.diff(epsilons)[np.array(epsilons[1:]) > TINY] > 0)
    deltas = np.geomspace(1e-300, 0.3, 100)
    epsilons = [ZCDP(0.3).to_approx(delta=one, bound=bound).epsilon for one in deltas]
    assert np.all(np.diff(epsilons) < 0)


@pytest.mark.parametrize("delta", [1e-10, 1e-5])
@pytest.mark.parametrize("rho", [1e-3, 0.1, 5.0])
def test_dp_accounting_agrees_on_the_tight_bound(rho, delta):
    orders = 1 + np.geomspace(0.011, 1e5, 4000)
    accountant = RdpAccountant(orders=orders)
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    tight = ZCDP(rho).to_approx(delta=delta, bound="tight").epsilon
    # It minimises over a grid of orders, so it can't be below.
    assert tight * (1 - 1e-9) <= accountant.get_epsilon(delta) <= tight * (1 + 1e-5)


def test_one_of_delta_and_epsilon_has_to_be_given():
    for given in ({}, {"delta": 0.1, "epsilon": 1}):
        with pytest.raises(TypeError, match="give either delta or epsilon"):
            ZCDP(1).to_approx(**given)
        with pytest.raises(TypeError, match="give either delta or epsilon"):
            analytic_gaussian_budget(1, sensitivity=1, **given)


@pytest.mark.parametrize("bound", ["best", None, 1, "Tight"])
def test_an_unknown_bound_is_refused(bound):
    message = "bound must be 'simple' or 'tight', got"
    error = ValueError if isinstance(bound, str) else TypeError
    with pytest.raises(error, match=message):
        ZCDP(1).to_approx(delta=0.1, bound=bound)
    with pytest.raises(error, match=message):
        ApproxDP(1, 0.1).to_zcdp(bound=bound)
    with pytest.raises(error, match=message):
        gaussian_sigma(ZCDP(1), sensitivity=1, bound=bound)


@pytest.mark.parametrize("bound", BOUNDS)
def test_an_epsilon_at_which_nothing_is_promised_is_refused(bound):
    with pytest.raises(ValueError, match=r"ZCDP\(rho=1e\+06, .*\) with the .* promises nothing"):
        ZCDP(1e6).to_approx(epsilon=1, bound=bound)
    with pytest.raises(ValueError, match=r"sigma 0\.001 at sensitivity 1 promises nothing"):
        analytic_gaussian_budget(1e-3, sensitivity=1, epsilon=1)


def test_what_is_too_small_for_a_float_is_rounded_up_to_the_smallest_one():
    # Both are weaker than the truth, so they hold.
    assert ZCDP(1e-12).to_approx(epsilon=1).delta == TINY
    assert ZCDP(1e-12).to_approx(epsilon=1, bound="tight").delta == TINY
    assert ZCDP(1e-12).to_approx(delta=0.5, bound="tight").epsilon == TINY
    assert analytic_gaussian_budget(1e6, sensitivity=1, delta=0.5).epsilon == TINY


@pytest.mark.parametrize("bound", BOUNDS)
def test_extreme_numbers_neither_fail_nor_give_nan(bound):
    for rho in (1e-300, 1e-100, 1e100, 1e300):
        for delta in (TINY, 1e-10, 1 - 2**-53):
            assert ZCDP(rho).to_approx(delta=delta, bound=bound).epsilon > 0
    for epsilon in (1e-100, 1e100, 1e300):
        for delta in (1e-40, 0.5, 1 - 2**-53):
            assert ApproxDP(epsilon, delta).to_zcdp(bound=bound).rho > 0
            assert analytic_gaussian_sigma(ApproxDP(epsilon, delta), sensitivity=1) > 0
