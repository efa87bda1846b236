"""What a statistic is where all records are alike."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.view import view_of
from pymc_dapper.plausibility.extremes import MOST_EXTREMES, at_extremes

N = 5


def extremes(build):
    with pm.Model() as model:
        *records, statistic = build()
    view = view_of(model)
    found = at_extremes(view, *view([statistic]), [model.rvs_to_values[x] for x in records])
    return np.array(found).tolist()


def counted(x, k=4):
    return pt.eq(x[:, None], np.arange(k)).sum(axis=0)


def categories(p):
    x = pm.Categorical("x", p, shape=N)
    return x, counted(x)


def table(p):
    x = pm.Multinomial("x", N, p)
    return x, pt.concatenate([x, [0]])


P = [0.2, 0.3, 0.5]
EACH = [[5, 0, 0, 0], [0, 5, 0, 0], [0, 0, 5, 0]]


@pytest.mark.parametrize("build", [categories, table])
def test_all_records_are_in_one_cell(build):
    assert extremes(lambda: build(P)) == EACH
    assert extremes(lambda: build(pm.Dirichlet("p", np.ones(3)))) == EACH


def test_what_has_no_probability_is_left_out():
    assert extremes(lambda: categories([0.2, 0.0, 0.8])) == [EACH[0], EACH[2]]
    assert extremes(lambda: table([0.2, 0.0, 0.8])) == [EACH[0], EACH[2]]
    # Nor is what has next to none, if that is known.
    assert extremes(lambda: categories([0.2, 1e-9, 0.8 - 1e-9])) == [EACH[0], EACH[2]]
    assert extremes(lambda: table([0.2, 1e-9, 0.8 - 1e-9])) == [EACH[0], EACH[2]]
    assert extremes(lambda: categories([0.2, 1e-3, 0.799])) == EACH
    # A vague prior has no probability for some in many draws, but in no draw for all.
    prior = np.array([1.0, 1.0, 1e-3])
    assert extremes(lambda: categories(pm.Dirichlet("p", prior))) == EACH


def test_all_combinations_of_several_variables():
    def build():
        x, y = pm.Bernoulli("x", 0.3, shape=N), pm.Binomial("y", 2, 0.5, shape=N)
        return x, y, (x * y).sum()

    assert extremes(build) == [0, 0, 0, 0, 5, 10]


@pytest.mark.parametrize(
    "record",
    [
        lambda: pm.Normal("x", shape=N),
        lambda: pm.Poisson("x", 2, shape=N),
        lambda: pm.DiscreteUniform("x", 0, MOST_EXTREMES, shape=N),
    ],
)
def test_nothing_is_said_where_records_can_have_many_values(record):
    def build():
        x = record()
        return x, x.sum()

    assert extremes(build) == []
