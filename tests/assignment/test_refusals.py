"""Releases that are not known yet."""

import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.model.transform.basic import prune_vars_detached_from_observed

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.assignment.latent import find_latent


def test_of_several_releases_those_that_are_not_known_are_left_out():
    with pm.Model() as model:
        count = pm.Poisson("count", 12, shape=3)
        for name in ("a", "b"):
            pmd.LaplaceMechanism(2.0).generate(name, count)
    model = pm.observe(model, {"a": [9.0, 12.0, 15.0]})
    with pytest.raises(ReadingError, match=r"'b' .*prune_vars_detached_from_observed\(model\)"):
        pmd.assign_steps(model=model)
    assert find_latent(prune_vars_detached_from_observed(model), None, None).counts


def test_a_noisy_value_that_is_not_published_may_be_generated_but_without_rules():
    def ratio(mechanism):
        with pm.Model() as model:
            count = pm.Poisson("count", 12, shape=3)
            below = mechanism.generate("below", count[0])
            share = pmd.LaplaceMechanism(2.0 / pt.abs(below))
            share.observe("share", count[1] / below, released=0.3)
        return find_latent(model, None, model["count"]).counts

    assert [x.name for x in ratio(pmd.LaplaceMechanism(2.0))] == ["count"]
    with pytest.raises(ReadingError, match=r"'below' isn't known.*after rounded\(5\). Generate"):
        ratio(pmd.LaplaceMechanism(2.0).rounded(5))
