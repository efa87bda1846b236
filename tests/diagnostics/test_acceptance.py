"""Acceptance of records against what a privacy budget implies."""

import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dapper as pmd
from pymc_dapper.budget.written import ATTRIBUTE, ReleaseBudgets
from pymc_dapper.diagnostics import acceptance
from tests.evaluated_in_python import evaluated_in_python

OPTIONS = {"draws": 200, "tune": 50, "chains": 2, "cores": 1, "progressbar": False}
OPTIONS |= {"random_seed": 4, "compute_convergence_checks": False}
EPSILON = 0.8


def sampled(sensitivity, **options):
    with evaluated_in_python(), pm.Model():
        x = pm.Uniform("x", shape=40)
        statistic = sensitivity * (x.sum() - 18.0)
        mechanism = pmd.LaplaceMechanism(1 / EPSILON, budget=pmd.PureDP(EPSILON))
        mechanism.potential("release", statistic, released=0.0)
        return pmd.sample(**OPTIONS | options)


@pytest.fixture(scope="module")
def calibrated():
    return sampled(sensitivity=1.0)


def test_rates_are_above_the_floor_of_the_right_budget(calibrated):
    found = acceptance(calibrated)
    assert found.floor == pytest.approx(np.exp(-EPSILON))
    assert found.rates.dims == ("chain",)
    assert np.all(found.rates > found.floor)
    assert not found.below_floor
    assert "chain 0: 0." in str(found)
    assert "no sign of good mixing" in str(found)
    rates = calibrated["sample_stats"]["dapper_accept"].mean("draw")
    np.testing.assert_allclose(found.rates, rates)


def test_too_small_a_scale_is_found_out():
    # Calibrated as if the sensitivity were a twentieth of what it is: far below the floor.
    result = sampled(sensitivity=20.0, draws=50, tune=10)
    with pytest.warns(UserWarning, match="below 0.449.*sensitivity or the scale.*wrongly"):
        found = acceptance(result)
    assert found.below_floor


def test_a_rate_just_below_the_floor_is_within_monte_carlo_error(calibrated):
    found = acceptance(calibrated)
    # A budget whose floor lies half a standard error above the lower rate.
    k = int(np.argmin(found.rates.values))
    floor = float(found.rates[k] + 0.5 * found.errors[k])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not acceptance(calibrated, pmd.PureDP(-np.log(floor))).below_floor


def test_neighbours_that_add_or_remove_count_twice(calibrated):
    found = acceptance(calibrated, pmd.PureDP(0.3, neighbours="add_remove"))
    assert found.floor == pytest.approx(np.exp(-0.6))
    assert "counted twice" in found.explanation


def test_a_result_knows_which_neighbours_its_budgets_are_for(calibrated):
    moved = pmd.PureDP(0.3, neighbours="add_remove")
    both = {"a": moved, "b": moved}
    assert acceptance(with_releases(calibrated, both)).floor == pytest.approx(np.exp(-1.2))
    mixed = {"a": moved, "b": pmd.PureDP(0.5)}
    assert acceptance(with_releases(calibrated, mixed)).floor == pytest.approx(np.exp(-1.1))


@pytest.mark.parametrize("budget", [pmd.ZCDP(0.5), pmd.ApproxDP(1, 1e-6)])
def test_other_budgets_have_no_floor(calibrated, budget):
    found = acceptance(calibrated, budget)
    assert found.floor is None
    assert "implies no floor" in found.explanation


def with_releases(idata, budgets, other_factors=()):
    copy = idata.copy()
    copy.attrs[ATTRIBUTE] = ReleaseBudgets(budgets, other_factors).to_json()
    return copy


def test_several_releases_add_up(calibrated):
    two = with_releases(calibrated, {"a": pmd.PureDP(0.5), "b": pmd.PureDP(0.6)})
    assert acceptance(two).floor == pytest.approx(np.exp(-1.1))
    mixed = with_releases(calibrated, {"a": pmd.PureDP(0.5), "b": pmd.ZCDP(0.6)})
    assert acceptance(mixed).floor is None


def test_why_there_is_no_floor_is_said(calibrated):
    without = calibrated.copy()
    del without.attrs[ATTRIBUTE]
    assert "doesn't know its budget" in acceptance(without).explanation
    nameless = with_releases(calibrated, {"release": None})
    assert "'release' wasn't calibrated to a budget" in acceptance(nameless).explanation
    other = with_releases(calibrated, {"release": pmd.PureDP(1)}, ("answer",))
    assert "also enter 'answer'" in acceptance(other).explanation


def test_sample_writes_what_the_model_knows():
    with evaluated_in_python(), pm.Model():
        x = pm.Normal("x", 0, 1, shape=5)
        budget = pmd.ZCDP(0.1)
        gaussian = pmd.GaussianMechanism.calibrate(budget, sensitivity=1)
        gaussian.observe("mean", x.sum(), released=0.3)
        pm.Potential("other", -(x**2).sum())
        result = pmd.sample(**OPTIONS | {"draws": 10})
    releases = ReleaseBudgets.from_json(result.attrs[ATTRIBUTE])
    assert releases == ReleaseBudgets({"mean": budget}, ("other",))


def test_bad_arguments(calibrated):
    with evaluated_in_python(), pm.Model():
        pm.Normal("x")
        plain = pm.sample(**OPTIONS)
    with pytest.raises(ValueError, match="no DapperStep was among the steps"):
        acceptance(plain)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (1.0, r"budget must be a PureDP, ZCDP or ApproxDP, got 1\.0: write pmd\.PureDP\(1\.0\)"),
        ("1", "budget must be a PureDP, ZCDP or ApproxDP, got '1'$"),
        (True, "budget must be a PureDP, ZCDP or ApproxDP, got True$"),
    ],
)
def test_what_is_no_budget_is_not_taken_for_one_without_a_floor(calibrated, budget, message):
    with pytest.raises(TypeError, match=message):
        acceptance(calibrated, budget)


def test_input_that_is_no_result_is_reported(calibrated):
    with pytest.raises(TypeError, match="idata must be the DataTree that"):
        acceptance({"sample_stats": calibrated.sample_stats})
    with pytest.raises(ValueError, match="no group 'sample_stats', but posterior"):
        acceptance(xr.DataTree.from_dict({"posterior": calibrated.posterior.dataset}))
