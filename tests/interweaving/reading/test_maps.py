"""Records as a function of parameters and noise: what has no map, and maps of one's own."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.interweaving.reading import (
    NoRecordMapError,
    can_interweave,
)
from pymc_dapper.interweaving.step import InterweaveStep
from tests.interweaving.wald import inverse_gaussian, wald_model


def test_what_has_no_quantiles_is_refused_with_the_remedy():
    with pm.Model() as model:
        a = pm.HalfNormal("a")
        kappa = pm.VonMises("x", 0, a, shape=3)
        pm.Potential("release", -(kappa.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=r"records 'x'.*quantiles of VonMises.*register"):
            InterweaveStep([a], records=[kappa])
    assert can_interweave(model, [a], [kappa]) == []


@pytest.mark.parametrize(
    ("records", "name"),
    [
        (lambda a: pm.Dirichlet("x", a * np.ones(3), shape=(4, 3)), "Dirichlet is multivariate"),
        (lambda a: pm.MvStudentT("x", nu=a, mu=np.zeros(2), scale=np.eye(2)), "degrees of freedom"),
        (lambda a: pm.Truncated("x", pm.VonMises.dist(0, a), upper=1, shape=3), "quantiles of"),
        (lambda a: pm.Truncated("x", pm.Poisson.dist(a), upper=5, shape=3), "is discrete"),
    ],
)
def test_other_distributions_without_a_map_are_refused(records, name):
    with pm.Model():
        a = pm.HalfNormal("a")
        x = records(a)
        pm.Potential("release", -(x.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=name):
            InterweaveStep([a], records=[x])


@pytest.mark.usefixtures("uncompiled")
def test_a_map_can_be_registered(register_wald):
    model = wald_model()
    assert can_interweave(model, [model["scale"]], [model["x"]]) == []
    register_wald(inverse_gaussian(1.0))
    with model:
        step = InterweaveStep([model["scale"]], records=[model["x"]])
    assert "'x'" in step.describe()
