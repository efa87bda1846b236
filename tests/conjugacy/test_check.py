"""A conditional that was read wrongly is found out before anything is drawn."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.conjugacy import check
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.families import GAMMA, conjugate_prior
from pymc_dapper.conjugacy.rules import conjugate_rule
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.graphs.errors import NotConjugateError, ReadingError
from pymc_dapper.steps.building import building
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


@pytest.fixture
def tables():
    """Conditionals of two tables of the same form."""
    with pm.Model() as model:
        p = [pm.Dirichlet(f"p{k}", np.ones(3)) for k in range(2)]
        for k, x in enumerate(p):
            pm.Categorical(f"x{k}", x, shape=20)
    with building(own_mode=False):
        yield model, [read_conditionals(model, [x])[0] for x in p]


@pytest.mark.parametrize("read_wrongly", ["parameters", "of another table", "values"])
def test_one_that_is_read_wrongly_is_refused(tables, read_wrongly):
    model, (first, second) = tables
    point = model.initial_point()
    check.check_conditional(second, point)
    wrong = {
        "parameters": {"parameters": [x + 1.0 for x in second.parameters]},
        "of another table": {"parameters": first.parameters},
        "values": {"to_values": [-x for x in second.to_values]},
    }
    with pytest.raises(NotConjugateError, match="conditional of 'p1'"):
        check.check_conditional(replace(second, **wrong[read_wrongly]), point)


@pytest.mark.parametrize("found", [np.inf, -np.inf, np.nan])
def test_a_density_that_is_no_number_is_refused(tables, found):
    _, (first, _) = tables
    found = iter([found, 0.0])
    family = replace(first.family, log_density=lambda *_: next(found))
    with pytest.raises(NotConjugateError, match="conditional of 'p0' was read wrongly"):
        check.check_conditional(replace(first, family=family), first.model.initial_point())


def normal_values(spread, given=1.0, **options):
    """A mean of given spread, of two values that have a spread, too."""
    with pm.Model(**options) as model:
        mean = pm.Normal("mean", 0, spread(), shape=2)
        pm.Normal("x", mean, given, shape=2)
    return model


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (lambda: normal_values(lambda: -1.0), "mean"),
        (lambda: normal_values(lambda: [1.0, -1.0]), "mean"),
        (lambda: normal_values(lambda: pm.Data("spread", -1.0)), "mean"),
        (lambda: normal_values(lambda: 1.0, given=-1.0), "x"),
    ],
)
def test_parameters_that_the_model_excludes_are_refused(broken, name):
    model = broken()
    with pytest.raises(ReadingError, match=f"'{name}' has impossible parameters: not sigma > 0"):
        ConjugateStep([model["mean"]], model=model)


@pytest.mark.parametrize(
    ("spread", "options"),
    [
        (lambda: 1.0, {}),
        (lambda: -1.0, {"check_bounds": False}),  # nobody asked for the check
        (lambda: pm.Normal("spread", -1), {}),  # another step moves it to where it's possible
    ],
)
def test_others_are_not(spread, options):
    model = normal_values(spread, **options)
    ConjugateStep([model["mean"]], model=model)
