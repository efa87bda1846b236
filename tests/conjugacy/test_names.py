"""Distributions and their parameters have the names that PyMC's users know."""

import pymc as pm
import pytest

from pymc_dapper.conjugacy.names import PARAMETERS, family_name


@pytest.mark.parametrize(
    ("rv", "name"),
    [
        (lambda: pm.Normal.dist(), "Normal"),
        (lambda: pm.InverseGamma.dist(1, 1), "InverseGamma"),
        (lambda: pm.NegativeBinomial.dist(1, 1), "NegativeBinomial"),
        (lambda: pm.Weibull.dist(1, 1), "Weibull"),
        (lambda: pm.MvNormal.dist([0], [[1]]), "MvNormal"),
    ],
)
def test_families_are_named(rv, name):
    assert family_name(type(rv().owner.op)) == name


RATES = {"alpha": 1, "beta": 1}
BUILT = {
    "Bernoulli": {"p": 0.5},
    "Beta": RATES,
    "Binomial": {"n": 2, "p": 0.5},
    "Categorical": {"p": [0.5, 0.5]},
    "Exponential": {"lam": 1},
    "Gamma": RATES,
    "Geometric": {"p": 0.5},
    "InverseGamma": RATES,
    "Multinomial": {"n": 2, "p": [0.5, 0.5]},
    "MvNormal": {"mu": [0], "cov": [[1]]},
    "NegativeBinomial": {"n": 2, "p": 0.5},
    "Poisson": {"mu": 1},
}


@pytest.mark.parametrize("family", PARAMETERS)
def test_there_is_a_name_for_each_parameter(family):
    node = getattr(pm, family).dist(**BUILT.get(family, {})).owner
    assert family_name(type(node.op)) == family
    assert len(node.op.dist_params(node)) == len(PARAMETERS[family])
