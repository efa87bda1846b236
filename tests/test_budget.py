"""Budgets against the definitions of privacy, against each other and against dp-accounting."""

import contextlib
import copy
import doctest
import io
import math
import pickle
import re
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import laplace, norm

from pymc_dapper import budget as budget_module
from pymc_dapper.budget import (
    TINY,
    ZCDP,
    ApproxDP,
    PureDP,
    analytic_gaussian_budget,
    analytic_gaussian_sigma,
    compose,
    discrete_laplace_budget,
    discrete_laplace_scale,
    gaussian_budget,
    gaussian_sigma,
    laplace_budget,
    laplace_scale,
)
from pymc_dapper.checks import shown
from pymc_dapper.sensitivity import sensitivities
from pymc_dapper.statistics import counts

BOUNDS = ("simple", "tight")
TOO_LITTLE = 0.7
"""Noise that is 30 % too small, by which every guarantee must break."""

RHOS = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6)
DELTAS = (1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-3, 0.1, 0.5)
EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6)
ORDERS = (1.001, 1.5, 2.0, 5.0, 20.0, 100.0)


# Privacy by its definitions, for noise added to two statistics that one record tells apart.


def log_integral(log_integrand, low, high, at):
    """Log of the integral of exp(log_integrand), scaled by its value at `at` against underflow."""
    top = log_integrand(at)
    value, _ = quad(lambda z: math.exp(log_integrand(z) - top), low, high, points=[at], limit=400)
    return top + math.log(value)


def renyi_gaussian(order, sigma, shift):
    """Renyi divergence of N(0, sigma^2) from N(shift, sigma^2), by quadrature."""

    def log_integrand(z):
        first, second = norm.logpdf(z, 0, sigma), norm.logpdf(z, shift, sigma)
        return order * first + (1 - order) * second

    mode = (1 - order) * shift
    log_moment = log_integral(log_integrand, mode - 12 * sigma, mode + 12 * sigma, mode)
    return log_moment / (order - 1)


def log_pmf_discrete_gaussian(k, sigma):
    support = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)
    return -(k**2) / (2 * sigma**2) - logsumexp(-(support**2) / (2 * sigma**2))


def renyi_discrete_gaussian(order, sigma, shift):
    mode = round((1 - order) * shift)
    k = np.arange(mode - 60 * math.ceil(sigma), mode + 60 * math.ceil(sigma) + 1)
    first, second = (log_pmf_discrete_gaussian(k - by, sigma) for by in (0, shift))
    return logsumexp(order * first + (1 - order) * second) / (order - 1)


def renyi_two_outcomes(order, first, second):
    first, second = np.log(first), np.log(second)
    return logsumexp(order * first + (1 - order) * second) / (order - 1)


def hockey_stick(log_first, log_second, epsilon):
    """Sum of max(first - exp(epsilon) second, 0) over points with these log weights."""
    gap = epsilon + log_second - log_first
    return float(np.sum(np.where(gap < 0, -np.exp(log_first) * np.expm1(np.minimum(gap, 0)), 0)))


def delta_gaussian(sigma, shift, epsilon):
    """Hockey-stick divergence of N(shift, sigma^2) from N(0, sigma^2), by quadrature."""
    start = (
        shift / 2 + epsilon * sigma**2 / shift
    )  # Where the log ratio of the densities is epsilon.

    def log_integrand(z):
        first, second = norm.logpdf(z, shift, sigma), norm.logpdf(z, 0, sigma)
        return first + math.log(max(-math.expm1(epsilon + second - first), 1e-300))

    peak = max(start, shift) + sigma / max(1.0, (start - shift) / sigma)
    return math.exp(log_integral(log_integrand, start, peak + 12 * sigma, peak))


def delta_discrete_gaussian(sigma, shift, epsilon):
    k = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)
    first, second = (log_pmf_discrete_gaussian(k - by, sigma) for by in (shift, 0))
    return hockey_stick(first, second, epsilon)


def largest_log_ratio_laplace(scale, shift):
    z = np.linspace(-5 * scale, 5 * scale, 2001)
    return np.max(laplace.logpdf(z, scale=scale) - laplace.logpdf(z, shift, scale))


def largest_log_ratio_discrete_laplace(scale, shift):
    k = np.arange(-1000, 1001)
    return np.max(-np.abs(k) / scale + np.abs(k - shift) / scale)


@pytest.mark.parametrize("sensitivity", [0.3, 2.0])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_laplace_noise_keeps_a_pure_budget_and_30_percent_less_does_not(epsilon, sensitivity):
    scale = laplace_scale(PureDP(epsilon), sensitivity=sensitivity)
    assert largest_log_ratio_laplace(scale, sensitivity) == pytest.approx(epsilon, rel=1e-9)
    assert largest_log_ratio_laplace(TOO_LITTLE * scale, sensitivity) > 1.4 * epsilon


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_discrete_laplace_noise_keeps_a_pure_budget_and_30_percent_less_does_not(
    epsilon, sensitivity
):
    scale = discrete_laplace_scale(PureDP(epsilon), sensitivity=sensitivity)
    assert largest_log_ratio_discrete_laplace(scale, sensitivity) == pytest.approx(epsilon)
    assert largest_log_ratio_discrete_laplace(TOO_LITTLE * scale, sensitivity) > 1.4 * epsilon


def test_the_l1_sensitivity_covers_noise_on_several_entries():
    change = np.array([0.5, -1.0, 0.25])
    scale = laplace_scale(PureDP(0.7), sensitivity=np.abs(change).sum())
    spent = sum(largest_log_ratio_laplace(scale, abs(one)) for one in change)
    assert spent == pytest.approx(0.7)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.0])
def test_gaussian_noise_keeps_a_zcdp_budget_and_30_percent_less_does_not(rho, order):
    sigma = gaussian_sigma(ZCDP(rho), sensitivity=1.5)
    assert renyi_gaussian(order, sigma, 1.5) == pytest.approx(rho * order, rel=1e-6)
    assert renyi_gaussian(order, TOO_LITTLE * sigma, 1.5) > 2 * rho * order


def test_the_l2_sensitivity_covers_noise_on_several_entries():
    change = np.array([1.0, -1.0, 0.5])
    sigma = gaussian_sigma(ZCDP(0.2), sensitivity=np.linalg.norm(change))
    spent = sum(renyi_gaussian(3.0, sigma, abs(one)) for one in change)
    assert spent == pytest.approx(0.2 * 3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("rho", "shift"), [(0.02, 1), (0.1, 2), (2.0, 1)])
def test_discrete_gaussian_noise_keeps_a_zcdp_budget_and_30_percent_less_does_not(
    rho, shift, order
):
    sigma = gaussian_sigma(ZCDP(rho), sensitivity=shift)
    assert renyi_discrete_gaussian(order, sigma, shift) <= rho * order * (1 + 1e-9)
    too_much = renyi_discrete_gaussian(order, TOO_LITTLE * sigma, shift)
    assert too_much > 1.5 * rho * order


APPROXIMATE = [
    ApproxDP(epsilon, delta) for epsilon in (0.05, 1, 5) for delta in (1e-12, 1e-6, 1e-3)
]
PAPER = ApproxDP(2 * math.log(3), 1e-10)
"""The budget of the dapper paper's noisy table, whose sensitivity is 2."""


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("goal", [*APPROXIMATE, PAPER], ids=str)
def test_gaussian_noise_keeps_an_approximate_budget(goal, bound):
    sigma = gaussian_sigma(goal, sensitivity=2, bound=bound)
    assert 0 < delta_gaussian(sigma, 2, goal.epsilon) <= goal.delta
    assert 0 < delta_discrete_gaussian(sigma, 2, goal.epsilon) <= goal.delta


@pytest.mark.parametrize(
    ("goal", "bound"),
    # By the simple bound there is more than 30 % to spare where epsilon is small.
    [*((goal, "tight") for goal in APPROXIMATE), (PAPER, "simple"), (ApproxDP(5, 1e-6), "simple")],
    ids=str,
)
def test_30_percent_less_gaussian_noise_breaks_an_approximate_budget(goal, bound):
    sigma = TOO_LITTLE * gaussian_sigma(goal, sensitivity=2, bound=bound)
    assert delta_gaussian(sigma, 2, goal.epsilon) > goal.delta
    assert delta_discrete_gaussian(sigma, 2, goal.epsilon) > goal.delta


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_pure_budget_implies_its_zcdp_budget_whatever_the_mechanism(epsilon):
    # Of all mechanisms with a pure budget, randomised response has the largest Renyi divergence.
    rho = PureDP(epsilon).to_zcdp().rho
    truth = 1 / (1 + math.exp(-epsilon))
    for order in ORDERS:
        spent = renyi_two_outcomes(order, [truth, 1 - truth], [1 - truth, truth])
        assert spent <= rho * order * (1 + 1e-9)


def test_the_zcdp_budget_of_a_pure_one_could_not_be_much_smaller():
    rho = PureDP(0.1).to_zcdp().rho
    truth = 1 / (1 + math.exp(-0.1))
    spent = renyi_two_outcomes(1.001, [truth, 1 - truth], [1 - truth, truth])
    assert spent > 0.99 * rho * 1.001


# The tight bound, from its definition as an infimum over orders.


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


# There and back.


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
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_comes_back_from_the_noise_it_was_turned_into(epsilon, delta, bound):
    goal = ApproxDP(epsilon, delta)
    sigma = gaussian_sigma(goal, sensitivity=2.5, bound=bound)
    spent = gaussian_budget(sigma, sensitivity=2.5).to_approx(delta=delta, bound=bound)
    # Where epsilon is small it is a difference of terms of order 1.
    assert spent.epsilon == pytest.approx(epsilon, rel=1e-11, abs=1e-14)
    exact_sigma = analytic_gaussian_sigma(goal, sensitivity=2.5)
    exact = analytic_gaussian_budget(exact_sigma, sensitivity=2.5, delta=delta)
    assert exact.epsilon == pytest.approx(epsilon, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("value", [1e-12, 0.3, 7.0, 1e6])
def test_noise_scales_come_back_as_the_budget_they_were_made_from(value):
    assert laplace_budget(
        laplace_scale(PureDP(value), sensitivity=0.7), sensitivity=0.7
    ).epsilon == pytest.approx(value, rel=1e-15)
    assert discrete_laplace_budget(
        discrete_laplace_scale(PureDP(value), sensitivity=2), sensitivity=2
    ).epsilon == pytest.approx(value, rel=1e-15)
    assert gaussian_budget(
        gaussian_sigma(ZCDP(value), sensitivity=0.7), sensitivity=0.7
    ).rho == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_larger_budget_allows_less_noise(bound):
    epsilons = np.geomspace(1e-6, 1e4, 60)
    sigmas = [gaussian_sigma(ApproxDP(one, 1e-6), sensitivity=1, bound=bound) for one in epsilons]
    assert np.all(np.diff(sigmas) < 0)
    deltas = np.geomspace(1e-300, 0.5, 60)
    sigmas = [gaussian_sigma(ApproxDP(0.5, one), sensitivity=1, bound=bound) for one in deltas]
    assert np.all(np.diff(sigmas) < 0)


@pytest.mark.parametrize("bound", BOUNDS)
def test_more_rho_promises_less(bound):
    rhos = np.geomspace(1e-12, 1e6, 100)
    epsilons = [ZCDP(one).to_approx(delta=1e-9, bound=bound).epsilon for one in rhos]
    assert np.all(np.diff(epsilons)[np.array(epsilons[1:]) > TINY] > 0)
    deltas = np.geomspace(1e-300, 0.3, 100)
    epsilons = [ZCDP(0.3).to_approx(delta=one, bound=bound).epsilon for one in deltas]
    assert np.all(np.diff(epsilons) < 0)


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


# Published numbers.


def test_the_noise_of_the_dapper_paper_is_reproduced():
    sigma = gaussian_sigma(PAPER, sensitivity=2)
    assert round(sigma, 2) == 6.32


def test_the_example_of_the_discrete_gaussian_paper_follows_from_its_formulas():
    # rho = epsilon^2 / 2 for sigma = sensitivity / epsilon: Theorem 4.
    assert gaussian_budget(1 / 0.3, sensitivity=1).rho == pytest.approx(0.3**2 / 2)


# dp-accounting, an independent implementation.


@pytest.mark.parametrize("delta", [1e-10, 1e-5])
@pytest.mark.parametrize("rho", [1e-3, 0.1, 5.0])
def test_dp_accounting_agrees_on_the_tight_bound(rho, delta):
    orders = 1 + np.geomspace(0.011, 1e5, 4000)
    accountant = RdpAccountant(orders=orders)
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    tight = ZCDP(rho).to_approx(delta=delta, bound="tight").epsilon
    # It minimises over a grid of orders, so it can't be below.
    assert tight * (1 - 1e-9) <= accountant.get_epsilon(delta) <= tight * (1 + 1e-5)


def test_dp_accounting_agrees_on_the_noise_of_several_releases():
    parts = ZCDP(0.4).split([1, 2, 5])
    accountant = RdpAccountant(orders=1 + np.geomspace(0.011, 1e4, 4000))
    for part in parts:
        sigma = gaussian_sigma(part, sensitivity=3)
        accountant.compose(dp_accounting.GaussianDpEvent(sigma / 3))
    total = compose(*parts).to_approx(delta=1e-8, bound="tight")
    assert accountant.get_epsilon(1e-8) == pytest.approx(total.epsilon, rel=1e-5)


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_dp_accounting_agrees_on_the_analytic_gaussian(epsilon, delta):
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    ours = analytic_gaussian_sigma(ApproxDP(epsilon, delta), sensitivity=1)
    assert ours == pytest.approx(theirs, rel=1e-8)
    back = analytic_gaussian_budget(2 * ours, sensitivity=2, delta=delta)
    assert back.epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(ours, delta), rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_dp_accounting_agrees_on_laplace_noise(epsilon):
    scale = laplace_scale(PureDP(epsilon), sensitivity=3)
    law = pld.from_laplace_mechanism(scale, sensitivity=3, value_discretization_interval=1e-2)
    assert law.get_delta_for_epsilon(epsilon) == pytest.approx(0, abs=1e-12)
    assert law.get_delta_for_epsilon(0.95 * epsilon) > 1e-3


def test_dp_accounting_agrees_on_discrete_laplace_noise():
    # Its parameter is the rate.
    scale = discrete_laplace_scale(PureDP(1.5), sensitivity=3)
    law = pld.from_discrete_laplace_mechanism(1 / scale, sensitivity=3)
    assert law.get_delta_for_epsilon(1.5) == pytest.approx(0, abs=1e-9)
    assert law.get_delta_for_epsilon(1.4) > 1e-2


def test_dp_accounting_agrees_that_discrete_gaussian_noise_is_enough():
    goal = ApproxDP(2 * math.log(3), 1e-6)
    for bound in BOUNDS:
        sigma = gaussian_sigma(goal, sensitivity=2, bound=bound)
        law = pld.from_discrete_gaussian_mechanism(
            sigma, sensitivity=2, value_discretization_interval=1e-2
        )
        assert law.get_delta_for_epsilon(goal.epsilon) < goal.delta


# Adding up and sharing out.


def test_budgets_of_a_kind_add_up():
    assert PureDP(0.25).compose(PureDP(0.5)) == PureDP(0.75)
    assert compose(ZCDP(0.25), ZCDP(0.5), ZCDP(0.125)) == ZCDP(0.875)
    assert compose(ApproxDP(0.5, 0.25), ApproxDP(1, 0.125)) == ApproxDP(1.5, 0.375)
    assert compose(ZCDP(0.2)) == ZCDP(0.2)


@pytest.mark.parametrize("whole", [PureDP(0.7), ZCDP(0.3), ApproxDP(1.1, 1e-6)])
@pytest.mark.parametrize("parts", [1, 3, np.int64(7), [1, 2, 4], (0.5,), np.array([0.2, 0.8])])
def test_parts_of_a_budget_add_up_to_it(whole, parts):
    shares = whole.split(parts)
    assert len(shares) == (parts if np.ndim(parts) == 0 else len(parts))
    assert {type(share) for share in shares} == {type(whole)}
    for name in whole.__dataclass_fields__:
        total = getattr(compose(*shares), name)
        assert total == pytest.approx(getattr(whole, name), rel=1e-15)


def test_weights_count_by_their_ratios():
    assert PureDP(1).split([3, 1]) == (PureDP(0.75), PureDP(0.25))
    assert ZCDP(1).split([30, 10]) == (ZCDP(0.75), ZCDP(0.25))


def test_zcdp_composes_better_than_its_approximate_budgets():
    parts = ZCDP(0.5).split(50)
    together = compose(*parts).to_approx(delta=1e-6)
    one_by_one = compose(*(part.to_approx(delta=1e-6 / 50) for part in parts))
    assert one_by_one.delta == pytest.approx(together.delta)
    assert one_by_one.epsilon > 5 * together.epsilon


@pytest.mark.parametrize(
    ("budgets", "way_out"),
    [
        ((PureDP(1), ZCDP(1)), r"PureDP, ZCDP.*Convert each PureDP with \.to_zcdp\(\) first"),
        ((ZCDP(1), ApproxDP(1, 0.1)), r"ApproxDP, ZCDP.*the others with \.to_approx\(delta="),
        ((ApproxDP(1, 0.1), PureDP(1)), r"ApproxDP, PureDP.*the others with \.to_approx\(delta="),
        ((PureDP(1), 0.5), r"only budgets can be composed, got 0\.5"),
        (([PureDP(1), PureDP(2)],), r"unpack it: compose\(\*budgets\)"),
        ((), "at least one budget"),
    ],
)
def test_budgets_that_do_not_add_up_are_refused_with_the_way_out(budgets, way_out):
    with pytest.raises(TypeError, match=way_out):
        compose(*budgets)
    if len(budgets) == 2:
        with pytest.raises(TypeError, match=way_out):
            budgets[0].compose(budgets[1])


def test_deltas_that_add_up_to_one_are_refused():
    with pytest.raises(ValueError, match=r"deltas add up to 1\.2, .*smaller delta"):
        compose(ApproxDP(1, 0.6), ApproxDP(1, 0.6))


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        (0, ValueError, "parts must be at least 1, got 0"),
        (-2, ValueError, "parts must be at least 1, got -2"),
        ([], ValueError, "at least one weight"),
        ([1, 0], ValueError, "a weight must be positive and finite, got 0"),
        ([1, math.nan], ValueError, "a weight must be positive"),
        (["1"], TypeError, "a weight must be a number"),
        (True, TypeError, r"whole number or a sequence of weights, got True.*split\(3\)"),
        (2.0, TypeError, "whole number or a sequence of weights"),
        ("3", TypeError, "whole number or a sequence of weights"),
        ({1: 2}, TypeError, "whole number or a sequence of weights"),
        ([1, 1e308], ValueError, "too small for a float"),
    ],
)
def test_a_split_that_makes_no_sense_is_refused(parts, error, message):
    with pytest.raises(error, match=message):
        ZCDP(1e-9).split(parts)


# What budgets are like as objects.


@pytest.mark.parametrize(
    ("budget", "written", "printed"),
    [
        (PureDP(1), "PureDP(epsilon=1.0)", "PureDP(epsilon=1)"),
        (ZCDP(Fraction(1, 3)), "ZCDP(rho=0.3333333333333333)", "ZCDP(rho=0.333333)"),
        (
            ApproxDP(np.float32(0.5), 1e-10),
            "ApproxDP(epsilon=0.5, delta=1e-10)",
            "ApproxDP(epsilon=0.5, delta=1e-10)",
        ),
    ],
)
def test_budgets_are_values(budget, written, printed):
    assert repr(budget) == written
    assert str(budget) == printed
    assert eval(written) == budget
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget
    assert hash(budget) == hash(eval(written))
    name = next(iter(budget.__dataclass_fields__))
    assert type(getattr(budget, name)) is float
    with pytest.raises(FrozenInstanceError):
        setattr(budget, name, 2.0)


def test_budgets_of_different_kinds_differ():
    assert PureDP(1) != ZCDP(1)


BAD_TYPES = [True, np.True_, "1", None, 1j, [1.0], np.array([1.0]), Decimal(1)]
BAD_VALUES = [0, 0.0, -1, math.nan, math.inf, -math.inf, np.float64("nan"), 10**400]

POSITIVE_ARGUMENTS = {
    "PureDP epsilon": ("epsilon", PureDP),
    "ZCDP rho": ("rho", ZCDP),
    "ApproxDP epsilon": ("epsilon", lambda value: ApproxDP(value, 0.1)),
    "laplace_scale": ("sensitivity", lambda value: laplace_scale(PureDP(1), sensitivity=value)),
    "laplace_budget scale": ("scale", lambda value: laplace_budget(value, sensitivity=1)),
    "laplace_budget": ("sensitivity", lambda value: laplace_budget(1, sensitivity=value)),
    "discrete_laplace_scale": (
        "sensitivity",
        lambda value: discrete_laplace_scale(PureDP(1), sensitivity=value),
    ),
    "discrete_laplace_budget": (
        "sensitivity",
        lambda value: discrete_laplace_budget(1, sensitivity=value),
    ),
    "gaussian_sigma": ("sensitivity", lambda value: gaussian_sigma(ZCDP(1), sensitivity=value)),
    "gaussian_budget sigma": ("sigma", lambda value: gaussian_budget(value, sensitivity=1)),
    "gaussian_budget": ("sensitivity", lambda value: gaussian_budget(1, sensitivity=value)),
    "analytic_gaussian_sigma": (
        "sensitivity",
        lambda value: analytic_gaussian_sigma(ApproxDP(1, 0.1), sensitivity=value),
    ),
    "analytic_gaussian_budget": (
        "sigma",
        lambda value: analytic_gaussian_budget(value, sensitivity=1, delta=0.1),
    ),
}


@pytest.mark.parametrize("value", BAD_TYPES, ids=repr)
@pytest.mark.parametrize("where", POSITIVE_ARGUMENTS)
def test_what_is_no_number_is_refused(where, value):
    name, function = POSITIVE_ARGUMENTS[where]
    message = rf"^{name} must be a number, got {re.escape(shown(value))}\. [A-Z]"
    with pytest.raises(TypeError, match=message):
        function(value)


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: f"{value!r:.9}")
@pytest.mark.parametrize("where", POSITIVE_ARGUMENTS)
def test_numbers_out_of_range_are_refused(where, value):
    name, function = POSITIVE_ARGUMENTS[where]
    with pytest.raises(ValueError, match=rf"^{name} must be positive and finite, got .*\. [A-Z]"):
        function(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda value: ApproxDP(1, value),
        lambda value: PureDP(1).to_approx(delta=value),
        lambda value: ZCDP(1).to_approx(delta=value),
        lambda value: analytic_gaussian_budget(1, sensitivity=1, delta=value),
    ],
)
def test_a_delta_that_is_no_probability_is_refused(make):
    for value in (0, 1, -0.1, 1.5, math.nan, math.inf, 10**400):
        with pytest.raises(ValueError, match=r"^delta must be above 0 and below 1, got .*PureDP"):
            make(value)
    for value in (True, "0.1", [0.1]):
        with pytest.raises(TypeError, match=r"^delta must be a number, got"):
            make(value)
    with pytest.raises(ValueError, match=r"^delta must not be below 2\.2e-308"):
        make(1e-310)


def test_a_fractional_sensitivity_is_refused_for_noise_of_whole_numbers():
    with pytest.raises(ValueError, match=r"whole number .*, got 1\.5\. .*round a bound down"):
        discrete_laplace_scale(PureDP(1), sensitivity=1.5)
    with pytest.raises(ValueError, match=r"whole number .*, got 0\.5"):
        discrete_laplace_budget(1, sensitivity=0.5)
    assert discrete_laplace_scale(PureDP(1), sensitivity=2.0) == 2


def test_one_of_delta_and_epsilon_has_to_be_given():
    for given in ({}, {"delta": 0.1, "epsilon": 1}):
        with pytest.raises(TypeError, match="give either delta or epsilon"):
            ZCDP(1).to_approx(**given)
        with pytest.raises(TypeError, match="give either delta or epsilon"):
            analytic_gaussian_budget(1, sensitivity=1, **given)


@pytest.mark.parametrize("bound", ["best", None, 1, "Tight"])
def test_an_unknown_bound_is_refused(bound):
    message = "bound must be 'simple' or 'tight', got"
    with pytest.raises(ValueError, match=message):
        ZCDP(1).to_approx(delta=0.1, bound=bound)
    with pytest.raises(ValueError, match=message):
        ApproxDP(1, 0.1).to_zcdp(bound=bound)
    with pytest.raises(ValueError, match=message):
        gaussian_sigma(ZCDP(1), sensitivity=1, bound=bound)


@pytest.mark.parametrize("function", [laplace_scale, discrete_laplace_scale])
def test_laplace_noise_for_another_kind_of_budget_names_the_pure_one_that_is_enough(function):
    with pytest.raises(
        TypeError, match=rf"{function.__name__} needs.*sqrt\(2 rho\), here 0\.447214"
    ):
        function(ZCDP(0.1), sensitivity=1)
    with pytest.raises(
        TypeError, match=r"got ApproxDP\(epsilon=0\.5.*same epsilon, 0\.5, is enough"
    ):
        function(ApproxDP(0.5, 0.1), sensitivity=1)
    with pytest.raises(TypeError, match=r"got 0\.5\. Write PureDP\(epsilon="):
        function(0.5, sensitivity=1)


def test_the_pure_budget_that_is_named_as_enough_is_enough():
    with pytest.raises(TypeError) as error:
        laplace_scale(ZCDP(0.1), sensitivity=1)
    named = float(re.search(r"here ([0-9.]+),", str(error.value)).group(1))
    assert PureDP(named).to_zcdp().rho == pytest.approx(0.1, rel=1e-5)


def test_gaussian_noise_for_the_wrong_kind_of_budget_names_the_way_out():
    with pytest.raises(TypeError, match=r"PureDP\(epsilon=1\): no Gaussian noise.*to_zcdp\(\)"):
        gaussian_sigma(PureDP(1), sensitivity=1)
    with pytest.raises(TypeError, match=r"got 0\.5\. Write ZCDP\(rho="):
        gaussian_sigma(0.5, sensitivity=1)
    with pytest.raises(TypeError, match=r"got ZCDP\(rho=1\)\. .*use gaussian_sigma"):
        analytic_gaussian_sigma(ZCDP(1), sensitivity=1)


@pytest.mark.parametrize("bound", BOUNDS)
def test_an_epsilon_at_which_nothing_is_promised_is_refused(bound):
    with pytest.raises(ValueError, match=r"ZCDP\(rho=1e\+06\) with the .* promises nothing"):
        ZCDP(1e6).to_approx(epsilon=1, bound=bound)
    with pytest.raises(ValueError, match=r"sigma 0\.001 at sensitivity 1 promises nothing"):
        analytic_gaussian_budget(1e-3, sensitivity=1, epsilon=1)


def test_what_is_too_small_for_a_float_is_rounded_up_to_the_smallest_one():
    # Both are weaker than the truth, so they hold.
    assert ZCDP(1e-12).to_approx(epsilon=1).delta == TINY
    assert ZCDP(1e-12).to_approx(epsilon=1, bound="tight").delta == TINY
    assert ZCDP(1e-12).to_approx(delta=0.5, bound="tight").epsilon == TINY
    assert analytic_gaussian_budget(1e6, sensitivity=1, delta=0.5).epsilon == TINY


def test_results_that_no_float_holds_are_refused():
    with pytest.raises(ValueError, match=r"rho of PureDP.* too large for a float"):
        PureDP(1e200).to_zcdp()
    with pytest.raises(ValueError, match=r"rho of PureDP.* too small for a float"):
        PureDP(1e-200).to_zcdp()
    with pytest.raises(ValueError, match=r"scale for PureDP.* too large for a float"):
        laplace_scale(PureDP(1e-200), sensitivity=1e200)
    with pytest.raises(ValueError, match=r"rho for sigma .* too small for a float"):
        gaussian_budget(1e200, sensitivity=1)


@pytest.mark.parametrize("bound", BOUNDS)
def test_extreme_numbers_neither_fail_nor_give_nan(bound):
    for rho in (1e-300, 1e-100, 1e100, 1e300):
        for delta in (TINY, 1e-10, 1 - 2**-53):
            assert ZCDP(rho).to_approx(delta=delta, bound=bound).epsilon > 0
    for epsilon in (1e-100, 1e100, 1e300):
        for delta in (1e-40, 0.5, 1 - 2**-53):
            assert ApproxDP(epsilon, delta).to_zcdp(bound=bound).rho > 0
            assert analytic_gaussian_sigma(ApproxDP(epsilon, delta), sensitivity=1) > 0


def test_the_examples_in_the_docstrings_are_right():
    found = doctest.testmod(budget_module)
    assert found.attempted > 10
    assert found.failed == 0


def test_the_page_on_budgets_prints_what_it_says():
    page = (Path(__file__).parents[1] / "docs" / "budgets.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, flags=re.DOTALL)
    printed, names = io.StringIO(), {}
    for kind, block in blocks:
        if kind == "text":
            assert printed.getvalue() == block
            printed = io.StringIO()
        else:
            with contextlib.redirect_stdout(printed):
                exec(block, names)
    assert printed.getvalue() == ""
    assert len(blocks) > 4


# Sensitivities that know their norm ---------------------------------------------------------------


TABLE = sensitivities(2, 2, 1, "replace")
NEEDS = {
    "laplace_scale": ("l1", lambda s: laplace_scale(PureDP(1), sensitivity=s)),
    "laplace_budget": ("l1", lambda s: laplace_budget(1, sensitivity=s)),
    "discrete_laplace_scale": ("l1", lambda s: discrete_laplace_scale(PureDP(1), sensitivity=s)),
    "discrete_laplace_budget": ("l1", lambda s: discrete_laplace_budget(1, sensitivity=s)),
    "gaussian_sigma": ("l2", lambda s: gaussian_sigma(ZCDP(1), sensitivity=s)),
    "gaussian_budget": ("l2", lambda s: gaussian_budget(1, sensitivity=s)),
    "analytic_gaussian_sigma": (
        "l2",
        lambda s: analytic_gaussian_sigma(ApproxDP(1, 1e-6), sensitivity=s),
    ),
    "analytic_gaussian_budget": (
        "l2",
        lambda s: analytic_gaussian_budget(1, sensitivity=s, delta=1e-6),
    ),
}


@pytest.mark.parametrize("name", NEEDS)
def test_the_norm_that_is_needed_is_picked_and_others_are_refused(name):
    norm, function = NEEDS[name]
    assert (
        function(TABLE) == function(getattr(TABLE, norm)) == function(float(getattr(TABLE, norm)))
    )
    for other in {"l1", "l2", "linf"} - {norm}:
        number = getattr(TABLE, other)
        with pytest.raises(ValueError, match=f"needs the {norm.upper()} sensitivity, got the L"):
            function(number)
        if name.startswith("discrete") and not float(number).is_integer():
            continue
        assert function(float(number)) != function(TABLE)  # what was done without a word


def test_a_whole_sensitivity_is_rounded_up():
    assert laplace_scale(PureDP(1), sensitivity=2**53 + 1) > 2**53
    assert laplace_scale(PureDP(1), sensitivity=np.int64(2**53 + 1)) > 2**53


def test_a_statistic_is_not_its_sensitivity():
    with pytest.raises(TypeError, match=r"pass its \.sensitivity"):
        laplace_scale(PureDP(1), sensitivity=counts([0, 1], 2))
