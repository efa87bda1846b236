"""Factors that take full evaluations warn, and are refused for many records."""

import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import DapperStep
from tests.records.refusals import refuse


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
