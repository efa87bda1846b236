import math
from dataclasses import astuple

import dp_accounting
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    NoOpDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from dp_accounting.pld import PLDAccountant

import pymc_dapper as pmd
from pymc_dapper.releases import budget_of_event, event_of_budget

GAUSSIAN, LAPLACE = GaussianDpEvent(5.0), LaplaceDpEvent(4.0)


ANSWERS = RandomizedResponseDpEvent(0.4, 3)
REPLACED = NeighboringRelation.REPLACE_ONE


def pure(epsilon, neighbours="add_remove"):
    return pmd.PureDP(epsilon, neighbours=neighbours)


def zcdp(rho, neighbours="add_remove"):
    return pmd.ZCDP(rho, neighbours=neighbours)


def same(found, expected):
    assert type(found) is type(expected)
    assert found.neighbours == expected.neighbours
    assert astuple(found)[0] == pytest.approx(astuple(expected)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("event", "budget"),
    [
        (GAUSSIAN, zcdp(0.02)),
        (LAPLACE, pure(0.25)),
        (DiscreteLaplaceDpEvent(0.1, 3), pure(0.3)),
        (ZCDpEvent(0.3), zcdp(0.3)),
        (SelfComposedDpEvent(LAPLACE, 8), pure(2.0)),
        (ComposedDpEvent([LAPLACE, NoOpDpEvent(), SelfComposedDpEvent(LAPLACE, 3)]), pure(1.0)),
        (ComposedDpEvent([GAUSSIAN, LAPLACE]), zcdp(0.02 + 0.25**2 / 2)),
        (SelfComposedDpEvent(ComposedDpEvent([GAUSSIAN, GAUSSIAN]), 2), zcdp(0.08)),
    ],
    ids=repr,
)
def test_events_spend_budgets(event, budget):
    same(budget_of_event(event), budget)


def test_budgets_for_a_replaced_record():
    same(budget_of_event(LAPLACE, "replace"), pure(0.5, "replace"))
    same(budget_of_event(GAUSSIAN, "replace"), zcdp(0.08, "replace"))
    same(budget_of_event(ZCDpEvent(0.3), "replace"), zcdp(0.3, "replace"))
    both = budget_of_event(ComposedDpEvent([LAPLACE, ANSWERS]), "replace")
    same(both, pure(0.5 + math.log(5.5), "replace"))


@pytest.mark.parametrize("categories", [2, 5])
def test_randomised_response_has_the_budget_that_its_mechanism_has(categories):
    mechanism = pmd.RandomizedResponse.calibrate(pmd.PureDP(0.7), categories=categories)
    changed = (1 - mechanism.keep_probability) * categories / (categories - 1)
    event = RandomizedResponseDpEvent(changed, categories)
    same(budget_of_event(event, "replace"), pure(0.7, "replace"))


@pytest.mark.parametrize(
    ("event", "neighbours"), [(LAPLACE, "add_remove"), (ANSWERS, "replace")], ids=repr
)
def test_a_pure_budget_is_where_the_accountant_needs_no_delta(event, neighbours):
    """Beyond it delta is 0, and below it isn't: by dp_accounting's own accounting."""
    epsilon = budget_of_event(event, neighbours).epsilon
    relation = REPLACED if neighbours == "replace" else NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = PLDAccountant(relation).compose(event)
    assert accountant.get_delta(epsilon + 1e-3) < 1e-9
    assert accountant.get_delta(0.8 * epsilon) > 1e-4


def test_zcdp_of_a_replaced_record_is_that_of_the_accountant():
    """An accountant's delta is that of Gaussian noise with this rho, exactly."""
    rho = budget_of_event(GAUSSIAN, "replace").rho
    found = PLDAccountant(REPLACED).compose(GAUSSIAN).get_delta(0.5)
    own = pmd.budget.analytic_gaussian_budget((2 * rho) ** -0.5, sensitivity=1.0, delta=found)
    assert own.epsilon == pytest.approx(0.5, abs=2e-4)


@pytest.mark.parametrize(
    "budget", [pure(0.3, "replace"), pure(30.0, "replace"), zcdp(0.1), zcdp(0.1, "replace")]
)
def test_budgets_go_there_and_back(budget):
    same(budget_of_event(event_of_budget(budget), budget.neighbours), budget)


def test_the_event_of_a_pure_budget_loses_at_least_what_another_mechanism_does():
    event = event_of_budget(budget_of_event(ANSWERS, "replace"))
    worst, other = (
        PLDAccountant(REPLACED).compose(ComposedDpEvent([each] * 10)) for each in (event, ANSWERS)
    )
    for epsilon in (1.0, 5.0, 10.0):
        assert worst.get_delta(epsilon) > other.get_delta(epsilon)


@pytest.mark.parametrize(
    ("event", "error", "message"),
    [
        (NoOpDpEvent(), ValueError, "no budget"),
        (SelfComposedDpEvent(GAUSSIAN, 0), ValueError, "no budget"),
        (dp_accounting.NonPrivateDpEvent(), ValueError, "NonPrivateDpEvent has no"),
        (dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN), ValueError, "PoissonSampled"),
        (GaussianDpEvent(0.0), ValueError, "noise_multiplier of GaussianDpEvent"),
        (GaussianDpEvent(math.nan), ValueError, "noise_multiplier"),
        (ZCDpEvent(0.1, xi=0.2), ValueError, "xi"),
        (RandomizedResponseDpEvent(1.0, 2), ValueError, "no budget"),
        (ANSWERS, ValueError, "write neighbours='replace'"),
        (3.0, TypeError, "must be a DpEvent"),
    ],
)
def test_what_has_no_budget_is_refused(event, error, message):
    with pytest.raises(error, match=message):
        budget_of_event(event)


def test_some_budgets_have_no_event():
    with pytest.raises(ValueError, match=r"no event for PureDP.*to_zcdp\(\)"):
        event_of_budget(pure(1.0))
    with pytest.raises(TypeError, match="no event for an approximate one"):
        event_of_budget(pmd.ApproxDP(1.0, 1e-6))


def test_a_library_that_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dp_accounting.dp_event", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        event_of_budget(pmd.ZCDP(0.1))
