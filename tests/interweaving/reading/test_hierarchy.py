"""Which parameters move together with the variables whose scale they are."""

import pymc as pm
import pytest

from pymc_dapper.interweaving.reading.hierarchy import find_hierarchy


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
