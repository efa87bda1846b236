"""What is said of how a model of records was read."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from tests.models import admissions_model, tiny_model, tiny_table_model


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
        pm.Potential("largest", -1.0 * record.max())
    with pytest.warns(UserWarning, match="largest"):
        described = pmd.DapperStep([record], model=model).describe()
    assert "full evaluation" in described
    assert "grows with the square of n" in described


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("data", [lambda name, x: pt.constant(x), pm.Data])
@pytest.mark.parametrize("alike", [True, False])
def test_a_table_of_counts_is_proposed_where_records_are_alike_only(data, alike):
    with pm.Model() as model:
        design = data("design", np.ones((9, 2)))
        p = 0.3 if alike else pm.math.sigmoid(design @ np.array([0.5, -1.0]))
        record = pm.Bernoulli("record", p, shape=9)
        pm.Potential("privacy", -((record.sum() - 3.0) ** 2))
    assert ("pm.Multinomial" in pmd.DapperStep([record], model=model).describe()) == alike


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("build", "alike"), [(admissions_model, True), (tiny_model, False), (tiny_table_model, False)]
)
def test_a_step_says_where_counts_would_do(build, alike):
    model = build()
    text = pmd.DapperStep([model["record"]], model=model).describe()
    assert ("pm.Multinomial table of their counts" in text) == alike
