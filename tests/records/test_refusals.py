"""What DapperStep refuses while it samples.

Factors that take full evaluations warn, and are refused for many records.
"""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

from pymc_dapper import DapperStep
from pymc_dapper.records.refusals import (
    LARGEST_ERROR,
    check_digits,
    impossible_start,
    singular,
)
from tests.records.refusals import refuse


def factor(name, expanded=False):
    return SimpleNamespace(name=name, expanded=expanded)


READING = SimpleNamespace(
    factors=[factor("total"), factor("squares", expanded=True)],
    additive_factors=[factor("total"), factor("squares", expanded=True)],
    quoted_names="'x', 'y'",
    record_names=["x", "y"],
    parameters=["mu", "tau"],
    names=lambda values: list(values),
)


@pytest.mark.parametrize("written", [-np.inf, np.nan, 3.0, 3.0 + LARGEST_ERROR / 2])
def test_digits_that_nobody_sees_may_be_lost(written):
    check_digits(READING, written, 3.0)


@pytest.mark.parametrize("computed", [3.0 + 2 * LARGEST_ERROR, np.nan, np.inf])
def test_others_may_not_and_the_factor_of_products_is_named(computed):
    lost = "lost digits in 'squares': the log-density is 3, but .* a fault of pymc_dapper's"
    with pytest.raises(SamplingError, match=lost):
        check_digits(READING, 3.0, computed)
    if np.isfinite(computed):
        check_digits(READING, 3.0, computed, rounding=2 * LARGEST_ERROR)


def test_messages_name_the_factors_and_the_way_out():
    told = str(singular(READING, np.linalg.LinAlgError("Singular matrix.")))
    assert "'total', 'squares' can't be evaluated: Singular matrix. Records" in told
    told = str(impossible_start(READING, 7, [np.zeros(2), np.ones(())]))
    assert "'x', 'y': after 7 sweeps the log-density of 'total', 'squares' is still" in told
    assert "initvals={'x': ...}" in told
    told = str(impossible_start(READING, 7, [np.zeros(2), np.array(np.nan)]))
    assert "starts at a value of 'tau' that the prior excludes" in told


def test_full_evaluation_for_many_records():
    def build():
        x = pm.Normal("x", shape=1000)
        pm.Potential("privacy", -x[pt.argmax(x)])
        return x

    refuse(build, r"'privacy' isn't a function of sums.*Argmax.*allow_full_evaluation=True")


@pytest.mark.usefixtures("uncompiled")
def test_a_full_evaluation_is_announced_with_its_cause_and_cost():
    with pm.Model() as model:
        x = pm.Normal("x", shape=5)
        pm.Potential("privacy", -(x[1:] * x[:-1]).sum())
    with pytest.warns(UserWarning, match=r"'privacy'.* A sweep over the 5 records takes"):
        DapperStep([x], model=model)


@pytest.mark.usefixtures("uncompiled")
def test_full_evaluation_of_many_records_can_be_insisted_on():
    with pm.Model() as model:
        x = pm.Normal("x", shape=1000)
        pm.Potential("privacy", -x[pt.argmax(x)])
    with pytest.warns(UserWarning, match="1000 records"):
        DapperStep([x], model=model, allow_full_evaluation=True)
