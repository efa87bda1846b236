"""Which parameters move together with the variables whose scale they are."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.assignment.latent import find_latent
from pymc_dapper.assignment.parameters import hierarchy_steps
from pymc_dapper.interweaving.reading.hierarchy import GROUPS, SERIES, find_hierarchy, has_map


@pytest.mark.parametrize(
    ("law", "followers", "movers"),
    [
        (lambda m, s: pm.Normal("t", m, s, shape=3), ["t"], ["m", "s"]),
        (lambda m, s: pm.LogNormal("t", m, 2 * s, shape=3), ["t"], ["m", "s"]),
        (
            lambda m, s: pm.Normal("u", m, pm.Normal("t", 0, s, shape=3) ** 2),
            ["t", "u"],
            ["m", "s"],
        ),
        (lambda m, s: pm.Normal("t", m, 1, shape=3), [], []),  # its scale is known
        (lambda m, s: pm.Normal("t", m, s), [], []),  # a single number
        (lambda m, s: pm.Beta("t", 1, s, shape=3), [], []),  # by no map in closed form
    ],
)
def test_vectors_with_an_unknown_scale_follow_its_parameters(law, followers, movers):
    with pm.Model() as model:
        m, s = pm.Normal("m"), pm.HalfNormal("s")
        law(m, s)
    found = find_hierarchy(model, model.free_RVs)
    assert [[rv.name for rv in each] for each in found] == [followers, movers]


def test_a_vector_that_others_follow_stays_itself():
    with pm.Model() as model:
        s = pm.HalfNormal("s")
        regions = pm.Normal("regions", 0, s, shape=2)
        pm.Normal("counties", regions[[0, 0, 1]], s, shape=3)
    followers, movers = find_hierarchy(model, model.free_RVs)
    assert [rv.name for rv in followers] == ["regions", "counties"]
    assert movers == [s]


START = pm.Normal.dist()


@pytest.mark.parametrize(
    ("law", "movers"),
    [
        (lambda m, s: pm.GaussianRandomWalk("t", m, s, init_dist=START, shape=3), ["m", "s"]),
        (lambda m, s: pm.GaussianRandomWalk("t", m, 1, init_dist=START, shape=3), ["m"]),
        (lambda m, s: pm.GaussianRandomWalk("t", 0, 1, init_dist=START, shape=3), []),
        (lambda m, s: pm.AR("t", pt.stack([0.1, m]), s, init_dist=START, shape=4), ["m", "s"]),
    ],
)
def test_series_follow_all_parameters_of_their_laws(law, movers):
    with pm.Model() as model:
        m, s = pm.Normal("m"), pm.HalfNormal("s")
        t = law(m, s)
    for kinds, found in [((*GROUPS, *SERIES), bool(movers)), (GROUPS, False)]:
        followers, moving = find_hierarchy(model, model.free_RVs, kinds)
        assert followers == [t] * found
        assert [rv.name for rv in moving] == movers * found


def test_a_series_with_point_masses_has_no_map_and_hinders_no_other():
    clipped = pm.Censored.dist(START, lower=0, upper=None)
    with pm.Model() as model:
        s = pm.HalfNormal("s")
        groups = pm.Normal("groups", 0, s, shape=2)
        steps = pm.Normal.dist(0, s)
        walk = pm.RandomWalk("walk", init_dist=clipped, innovation_dist=steps, steps=3)
        x = pm.Normal("x", groups[[0, 0, 1]], 1)
        pmd.LaplaceMechanism(1.0).potential("release", x.sum(), released=0.3)
        pm.Normal("public", walk, 1, observed=np.zeros(4))
    assert [has_map(rv) for rv in (groups, walk)] == [True, False]
    latent = find_latent(model, None, None)
    [step] = hierarchy_steps(latent, [s, groups, walk], {"model": model})
    assert "Records that follow: 'groups', 'x'" in step.describe()


def test_without_a_map_no_move_is_added():
    clipped = pm.Censored.dist(START, lower=0, upper=None)
    with pm.Model() as model:
        s = pm.HalfNormal("s")
        walk = pm.RandomWalk(
            "walk", init_dist=clipped, innovation_dist=pm.Normal.dist(0, s), steps=3
        )
        x = pm.Normal("x", 0, s, shape=3)
        pmd.LaplaceMechanism(1.0).potential("release", x.sum(), released=0.3)
        pm.Normal("public", walk, 1, observed=np.zeros(4))
    assert not hierarchy_steps(find_latent(model, None, None), [s, walk], {"model": model})
