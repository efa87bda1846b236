"""Kinds of budget: what one implies, how they add up and are shared out, what they are like."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, astuple, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from pymc_dapper.budget import ZCDP, ApproxDP, PureDP, analytic_gaussian_budget, compose
from tests.budget.privacy import (
    ORDERS,
    largest_log_ratio_laplace,
    renyi_gaussian,
    renyi_two_outcomes,
)


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
    totals, amounts = (astuple(budget)[:-1] for budget in (compose(*shares), whole))
    assert totals == pytest.approx(amounts, rel=1e-15)


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
        ([1, 0], ValueError, "a weight must be a finite number above 0, got 0"),
        ([1, math.nan], ValueError, "a weight must be a finite number above 0"),
        (["1"], TypeError, "a weight must be a finite number"),
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


@pytest.mark.parametrize(
    ("budget", "written", "printed"),
    [
        (
            PureDP(1),
            "PureDP(epsilon=1.0, one person changes)",
            "PureDP(epsilon=1, one person changes)",
        ),
        (
            ZCDP(Fraction(1, 3)),
            "ZCDP(rho=0.3333333333333333, one person changes)",
            "ZCDP(rho=0.333333, one person changes)",
        ),
        (
            ApproxDP(np.float32(0.5), 1e-10),
            "ApproxDP(epsilon=0.5, delta=1e-10, one person changes)",
            "ApproxDP(epsilon=0.5, delta=1e-10, one person changes)",
        ),
        (
            ZCDP(2, neighbours="add_remove"),
            "ZCDP(rho=2.0, one person joins or leaves)",
            "ZCDP(rho=2, one person joins or leaves)",
        ),
    ],
)
def test_budgets_are_values(budget, written, printed):
    assert repr(budget) == written
    assert str(budget) == printed
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget
    assert hash(budget) == hash(copy.deepcopy(budget))
    name = next(iter(budget.__dataclass_fields__))
    assert type(getattr(budget, name)) is float
    with pytest.raises(FrozenInstanceError):
        setattr(budget, name, 2.0)


MOVED = [
    kind(neighbours="add_remove")
    for kind in (partial(PureDP, 0.5), partial(ZCDP, 0.5), partial(ApproxDP, 0.5, 1e-6))
]


@pytest.mark.parametrize("budget", MOVED)
def test_what_is_made_of_a_budget_is_for_the_same_neighbours(budget):
    made = [*budget.split(2), *budget.split([1, 3]), compose(budget, budget)]
    if not isinstance(budget, ApproxDP):
        made.append(budget.to_approx(delta=1e-9))
    if not isinstance(budget, ZCDP):
        made.append(budget.to_zcdp())
    assert {one.neighbours for one in made} == {"add_remove"}
    assert compose(*budget.split(2)) == budget


@pytest.mark.parametrize("budget", MOVED)
def test_budgets_for_different_neighbours_differ_and_do_not_add_up(budget):
    other = replace(budget, neighbours="replace")
    assert other != budget
    message = "different neighbours.*one person changes.*joins or leaves.*to_replace"
    for pair in [(budget, other), (other, budget)]:
        with pytest.raises(ValueError, match=message):
            compose(*pair)
    assert compose(budget.to_replace(), other).neighbours == "replace"
    assert other.to_replace() is other


def test_a_replaced_record_has_twice_the_epsilon_and_four_times_the_rho():
    # Noise on a sum of records of size one: removing 1 and adding -1 moves it by 2. By the noise of
    # a budget just that is spent, so no smaller factor would do.
    epsilon = PureDP(0.3, neighbours="add_remove")
    spent = largest_log_ratio_laplace(1 / epsilon.epsilon, 2)
    assert spent == pytest.approx(epsilon.to_replace().epsilon, rel=1e-9)
    rho = ZCDP(0.3, neighbours="add_remove")
    sigma = 1 / math.sqrt(2 * rho.rho)
    for order in (1.5, 5.0):
        spent = renyi_gaussian(order, sigma, 2) / order
        assert spent == pytest.approx(rho.to_replace().rho, rel=1e-6)
    # Of an approximate budget the exact curve of the noise must stay below.
    for delta in (1e-3, 1e-6):
        moved = analytic_gaussian_budget(2.0, sensitivity=1, delta=delta)
        implied = replace(moved, neighbours="add_remove").to_replace()
        exact = analytic_gaussian_budget(2.0, sensitivity=2, epsilon=implied.epsilon)
        assert exact.delta <= implied.delta
    # Twins: without the factor nothing of this holds.
    assert largest_log_ratio_laplace(1 / epsilon.epsilon, 2) > 1.5 * epsilon.epsilon
    assert exact.delta > moved.delta


def test_no_promise_to_a_replaced_record_is_made_up():
    with pytest.raises(ValueError, match="promises nothing to a replaced record"):
        ApproxDP(2, 0.2, neighbours="add_remove").to_replace()


@pytest.mark.parametrize("neighbours", ["swap", None, 1, ["replace"]])
def test_unknown_neighbours_are_refused(neighbours):
    for kind in (partial(PureDP, 1), partial(ZCDP, 1), partial(ApproxDP, 1, 0.1)):
        with pytest.raises(ValueError, match=r"neighbours must be 'replace'.*or 'add_remove'"):
            kind(neighbours=neighbours)


def test_budgets_of_different_kinds_differ():
    assert PureDP(1) != ZCDP(1)
