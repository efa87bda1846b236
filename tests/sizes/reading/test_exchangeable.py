"""What ties records to their place."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.sizes.reading.model import read_size

Z = np.array([0.0, 1.0, 3.0, 2.0])
I2 = np.eye(2)


def tied(records, contribution):
    with pm.Model() as model:
        n = pm.Poisson("n", 2)
        rows = records()
        total = pt.switch(pmd.present(n, 4), contribution(*rows), 0).sum()
        pmd.LaplaceMechanism(1.0).potential("total", total, released=1.0)
    return read_size(model, model.rvs_to_values[n]).tied


def normal(mu=0.0, **options):
    return lambda: (pm.Normal("x", mu, 1, shape=4, **options),)


def of_groups():
    means = pm.Normal("means", shape=2)
    return (pm.Normal("x", means[np.array([0, 0, 1, 1])], 1, shape=4),)


def regression():
    x = pm.Normal("x", shape=4)
    return x, pm.Normal("y", pm.Normal("slope") * x, 1, shape=4)


def on_latent():
    z = pm.Normal("z", shape=4)
    return (pm.Normal("x", z, 1, shape=4),)


ALIKE = {
    "normal": (normal(), lambda x: pt.clip(x, -1, 1)),
    "regression": (regression, lambda x, y: x * y),
    "vectors": (lambda: (pm.MvNormal("x", np.zeros(2), I2, shape=(4, 2)),), lambda x: x.prod(1)),
    "categories": (
        lambda: (pm.Categorical("x", pm.Dirichlet("p", np.ones(3)), shape=4),),
        lambda x: pt.eq(x, 2),
    ),
}
TIED = {
    "prior": (normal(Z), lambda x: x),
    "groups": (of_groups, lambda x: x),
    "latent": (on_latent, lambda x: x),
    "covariate": (normal(), lambda x: Z * x),
    "constant": (normal(), lambda x: x + Z),
}


@pytest.mark.parametrize("name", ALIKE)
def test_rows_that_are_alike_can_change_places(name):
    assert tied(*ALIKE[name]) is None


@pytest.mark.parametrize("name", TIED)
def test_rows_that_differ_are_tied(name):
    assert ("adds" if name in ("covariate", "constant") else "prior of 'x'") in tied(*TIED[name])
