"""Rules are on the page that lists them; and rules of one's own."""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.conjugacy import rules
from pymc_dapper.conjugacy.families import GAMMA, conjugate_prior
from pymc_dapper.conjugacy.names import family_name
from pymc_dapper.conjugacy.rules import conjugate_rule
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.graphs.errors import NotConjugateError
from tests.conjugacy.pareto import pareto_model

PAGE = Path(__file__).parents[2] / "docs" / "conjugate-steps.md"


def test_all_pairs_are_on_the_page():
    told, prior = set(), None
    for first, child in re.findall(r"^\|(.*?)\|(.*?)\|", PAGE.read_text("utf-8"), re.MULTILINE):
        prior = re.match(r" (\w+)", first) or prior
        told |= {(prior[1], name) for name in re.findall(r"[A-Z]\w+", child) if prior}
    registered = {
        (prior, family_name(child))
        for (prior, child), pairs in rules._pairs.items()
        if pairs[0].rule.__module__ == rules.__name__
    }
    assert registered - told == set()


def test_a_rule_and_a_prior_of_ones_own(registry):
    """Pareto: theta m^theta x^(-theta - 1), so that log(x / m) is exponential with rate theta."""
    model = pareto_model()
    with pytest.raises(NotConjugateError, match="Weibull\\) belongs to no conjugate family"):
        ConjugateStep([model["tail"]], model=model)

    @conjugate_prior(pm.Weibull)
    def exponential(one, scale):
        return GAMMA, (one, 1 / scale)

    with pytest.raises(NotConjugateError, match="the likelihood of 'wealth' \\(Pareto\\)"):
        ConjugateStep([model["tail"]], model=model)

    @conjugate_rule(GAMMA, pm.Pareto)
    def gamma_pareto(link):
        _, m = link.parameters
        return link.total(1.0), link.total(pt.log(link.value / m))

    step = ConjugateStep([model["tail"]], model=model)
    [conditional] = step._conditionals
    shape, rate = (x.eval(mode="FAST_COMPILE") for x in conditional.parameters)
    np.testing.assert_allclose(shape, [2, 3])
    np.testing.assert_allclose(rate, 0.25 + np.log([1.4, 6.0 * 2.2]))


def test_a_rule_for_what_is_no_distribution():
    with pytest.raises(TypeError, match="neither a PyMC distribution nor a type of Op"):
        conjugate_rule(GAMMA, "Poisson")
