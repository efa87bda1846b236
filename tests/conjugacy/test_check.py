"""A conditional that was read wrongly is found out before anything is drawn."""

import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.conjugacy.families import GAMMA, conjugate_prior
from pymc_dapper.conjugacy.rules import conjugate_rule
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.graphs.errors import NotConjugateError
from tests.conjugacy.pareto import pareto_model


@pytest.mark.parametrize(
    "wrong",
    [
        lambda link: (link.total(0.5), link.total(pt.log(link.value / 0.5))),
        lambda link: (link.total(1.0), link.total(pt.log(link.value))),
        lambda link: (link.total(1.0), link.total(pt.log(link.value / 0.5))[::-1]),
    ],
)
def test_a_wrong_rule_is_found_out(registry, wrong):
    conjugate_prior(pm.Weibull)(lambda one, scale: (GAMMA, (one, 1 / scale)))
    conjugate_rule(GAMMA, pm.Pareto)(wrong)
    model = pareto_model()
    with pytest.raises(NotConjugateError, match="the conditional of 'tail' was read wrongly") as e:
        ConjugateStep([model["tail"]], model=model)
    assert "a rule registered with `conjugate_rule` is wrong" in str(e.value)
