"""Budgets as JSON has them, and those of a model's releases, as a result keeps them."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.budget.written import (
    ReleaseBudgets,
    budget_from_dict,
    budget_to_dict,
    budgets_of_releases,
)


@pytest.mark.parametrize("budget", [None, pmd.PureDP(0.3), pmd.ZCDP(0.1), pmd.ApproxDP(1, 1e-6)])
def test_a_budget_comes_back(budget):
    assert budget_from_dict(budget_to_dict(budget)) == budget


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ({"kind": "RenyiDP", "alpha": 2}, ValueError, "no budget of kind 'RenyiDP'"),
        ({"epsilon": 1.0}, ValueError, "no budget of kind None"),
        ({"kind": "PureDP"}, TypeError, "PureDP.*epsilon"),
        ({"kind": "PureDP", "epsilon": -1.0}, ValueError, "PureDP.*above 0"),
        ({"kind": "ZCDP", "rho": 1.0, "delta": 0.1}, TypeError, "ZCDP.*delta"),
        (1.0, TypeError, "written as a dict"),
    ],
)
def test_what_is_no_budget_is_refused(content, error, message):
    with pytest.raises(error, match=message):
        budget_from_dict(content)


BUDGET = pmd.ZCDP(0.25)


def test_mechanisms_are_told_from_other_factors():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=8)
        calibrated = pmd.GaussianMechanism(2**0.5, budget=BUDGET)
        calibrated.potential("calibrated", x.sum(), released=3.0)
        pmd.GaussianMechanism(2.0).potential("by scale", x.sum(), released=3.0)
        pm.Potential("by hand", -(x.sum() ** 2))
    found = budgets_of_releases(model, ["calibrated", "by scale", "by hand"])
    assert found == ReleaseBudgets({"calibrated": BUDGET, "by scale": None}, ("by hand",))


def test_what_is_written_is_read_again():
    budgets = {
        "a": pmd.PureDP(np.log(3)),
        "b": BUDGET,
        "c": pmd.ApproxDP(1.0, 1e-6),
        "d": None,
    }
    releases = ReleaseBudgets(budgets, ("other",))
    assert ReleaseBudgets.from_json(releases.to_json()) == releases
