"""A model of a table and of records."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd


@pytest.fixture(scope="module")
def table_and_records():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        table = pm.Multinomial("table", 60, p)
        total = pm.Poisson("total", 5)
        x = pm.Bernoulli("x", 0.3, shape=7)
        pmd.LaplaceMechanism(2.0).potential("cells", table, released=[20.0, 25.0, 13.0])
        pmd.LaplaceMechanism(2.0).potential("sum", total + x.sum(), released=7.0)
    return model
