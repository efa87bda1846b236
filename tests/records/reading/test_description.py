"""What is said of how a model of records was read."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from tests.admissions_and_tiny import admissions_model


@pytest.mark.usefixtures("uncompiled")
def test_a_step_says_how_it_read_the_model():
    model = admissions_model()
    step = pmd.DapperStep([model["record"]], model=model)
    assert repr(step) == "<DapperStep: 400 records of record; privacy (function of sums)>"
    described = step.describe()
    assert "400 records, proposed from their prior" in described
    assert "g(sums of shape (4,)) = (-0.5 * sum(((([110. 131. 47. 110.] - S)" in described
    assert "400 evaluations of the functions of sums" in described


@pytest.mark.usefixtures("uncompiled")
def test_a_step_describes_separable_and_full_factors():
    with pm.Model() as model:
        record = pm.Bernoulli("record", 0.3, shape=9)
        pm.Bernoulli("answer", 0.25 + 0.5 * record, observed=np.zeros(9))
    described = pmd.DapperStep([record], model=model).describe()
    assert "by an exact draw from their prior times the separable factors" in described
    assert "they don't interact" in described

    with model:
        pm.Potential("largest", -1.0 * record[pt.argmax(record)])
    with pytest.warns(UserWarning, match="largest"):
        described = pmd.DapperStep([record], model=model).describe()
    assert "full evaluation" in described
    assert "grows with the square of n" in described
