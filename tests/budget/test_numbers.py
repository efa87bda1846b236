"""What numbers are taken, and the messages about others."""

import math
import re
from decimal import Decimal

import numpy as np
import pytest

from pymc_dapper.budget import (
    ZCDP,
    ApproxDP,
    PureDP,
    analytic_gaussian_budget,
    analytic_gaussian_sigma,
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
    message = rf"^{name} must be a finite number above 0, got {re.escape(shown(value))}\. [A-Z]"
    with pytest.raises(TypeError, match=message):
        function(value)


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: f"{value!r:.9}")
@pytest.mark.parametrize("where", POSITIVE_ARGUMENTS)
def test_numbers_out_of_range_are_refused(where, value):
    name, function = POSITIVE_ARGUMENTS[where]
    with pytest.raises(
        ValueError, match=rf"^{name} must be a finite number above 0, got .*\. [A-Z]"
    ):
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
        with pytest.raises(ValueError, match=r"^delta .* number above 0 and below 1, got .*PureDP"):
            make(value)
    for value in (True, "0.1", [0.1]):
        with pytest.raises(TypeError, match=r"^delta must be a finite number .*, got"):
            make(value)
    with pytest.raises(ValueError, match=r"^delta must not be below 2\.2e-308"):
        make(1e-310)


def test_a_fractional_sensitivity_is_refused_for_noise_of_whole_numbers():
    with pytest.raises(ValueError, match=r"whole number .*, got 1\.5\. .*round a bound down"):
        discrete_laplace_scale(PureDP(1), sensitivity=1.5)
    with pytest.raises(ValueError, match=r"whole number .*, got 0\.5"):
        discrete_laplace_budget(1, sensitivity=0.5)
    assert discrete_laplace_scale(PureDP(1), sensitivity=2.0) == 2


def test_results_that_no_float_holds_are_refused():
    with pytest.raises(ValueError, match=r"rho of PureDP.* too large for a float"):
        PureDP(1e200).to_zcdp()
    with pytest.raises(ValueError, match=r"rho of PureDP.* too small for a float"):
        PureDP(1e-200).to_zcdp()
    with pytest.raises(ValueError, match=r"scale for PureDP.* too large for a float"):
        laplace_scale(PureDP(1e-200), sensitivity=1e200)
    with pytest.raises(ValueError, match=r"rho for sigma .* too small for a float"):
        gaussian_budget(1e200, sensitivity=1)


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
