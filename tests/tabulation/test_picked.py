"""Sums over some of the records: what each contributes, and what can't be written so."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.records.reading.factors import RecordWalk
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.picked import of_all_records

N = 6
WHERE = np.array([True, False, True, True, False, False])
SPREAD = {
    "mask": lambda x: x[WHERE].sum(),
    "places": lambda x: (x[[4, 0, 5]] ** 2).sum(),
    "a place twice": lambda x: x[[2, 2, 1]].sum(),
    "slice": lambda x: x[1:5].sum(),
    "covariate": lambda x: (x[WHERE] * np.array([2.0, -1.0, 0.5])).sum(),
    "columns": lambda x: pt.eq(x[WHERE][:, None], np.arange(2)).sum(axis=0),
    "not a number elsewhere": lambda x: (x[WHERE] / pt.constant([1.0, 2.0, 4.0])).sum(),
    "several axes": lambda x: (np.ones((2, 1)) * x[WHERE][:, None, None]).sum(axis=(0, 1)),
}


def contributions(see):
    x = pt.vector("x", shape=(N,))
    walk = RecordWalk([x])
    walk.follow(see(x))
    [each] = walk.sums
    return x, each.contributions


@pytest.mark.parametrize("form", SPREAD)
def test_contributions_of_picked_records_are_those_of_all(form):
    x, scattered = contributions(SPREAD[form])
    spread = of_all_records(scattered, [x])
    assert spread is not scattered
    values = np.array([0.3, 1.0, 0.0, 1.0, -2.0, 5.0])
    expected, found = (
        graph.eval({x: values}, mode="FAST_COMPILE") for graph in (scattered, spread)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.any(expected != 0)


@pytest.mark.parametrize(
    "see",
    [
        lambda x: (x[[2, 2, 1]] * np.array([1.0, 2.0, 3.0])).sum(),  # whose twice?
        lambda x: (x[WHERE] * x[~WHERE]).sum(),
        lambda x: (x[WHERE] * pm.Normal.dist(shape=3)).sum(),
    ],
)
def test_graphs_without_a_row_per_record_stay(see):
    x = pt.vector("x", shape=(N,))
    try:
        x, scattered = contributions(see)
    except pmd.ReadingError:  # two records at once are no sum
        return
    assert of_all_records(scattered, [x]) is scattered


def test_what_cannot_be_spread_is_refused():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.4, shape=N)
        weight = pm.Normal("weight", shape=3)
        pm.Potential("privacy", -((x[WHERE] * weight).sum() ** 2))
    with pytest.raises(TabulationError, match="isn't known to treat each record by itself"):
        pmd.tabulate(model, [x])
