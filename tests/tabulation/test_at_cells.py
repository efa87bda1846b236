"""Graphs rewritten for cells: given chosen records as cells, they have the entries of these.

Sums over some of the records: what each contributes, and what can't be written so.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor import function

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import rebuild, with_static_shape
from pymc_dapper.records.reading.factors import RecordWalk
from pymc_dapper.tabulation.at_cells import AtCells, of_all_records
from pymc_dapper.tabulation.errors import TabulationError

N = 6
RNG = np.random.default_rng(0)
GROUP, OTHER = RNG.integers(0, 3, N), RNG.integers(0, 2, N)
Z, DESIGN = RNG.normal(size=N), RNG.normal(size=(N, 2))
SHARES = RNG.dirichlet(np.ones(4), N)
B, TABLE, EFFECTS = pt.dvector("b", shape=(2,)), pt.dmatrix("t", shape=(4, 2)), pt.dvector("e")
VALUES = {"b": RNG.normal(size=2), "t": RNG.normal(size=(4, 2)), "e": RNG.normal(size=3)}

GRAPHS = {
    "one hot": lambda x: pt.eq(x[:, None], np.arange(4)),
    "look-up": lambda x: TABLE[x],
    "covariate": lambda x: x * Z,
    "linear predictor": lambda x: x * (pt.as_tensor(DESIGN) @ B),
    "cumulated covariate": lambda x: x * (B[0] * pt.cumsum(pt.as_tensor(Z)))[:, None][:, 0],
    "mean of covariates": lambda x: x + pt.stack([pt.as_tensor(Z).sum(), B[0]])[OTHER] * B[1],
    "group": lambda x: EFFECTS[GROUP] + x,
    "two groups": lambda x: TABLE[GROUP, OTHER] * x,
    "counted by group": lambda x: pt.switch(pt.eq(GROUP[:, None], np.arange(3)), x[:, None], 0),
    "columns": lambda x: pt.stack([x, x * Z, pt.ones(N)], axis=1).sum(axis=1),
    "column of data": lambda x: x + pt.as_tensor(DESIGN)[:, 1],
    "own entry": lambda x: pt.as_tensor(SHARES)[np.arange(N), x],
    "filled in": lambda x: pt.set_subtensor(pt.zeros((N, 4))[np.arange(N), x], 1.0),
    "column filled in": lambda x: pt.set_subtensor(pt.zeros((N, 2))[:, 0], x),
    "reshaped": lambda x: pt.reshape(pt.eq(x[:, None], np.arange(4)), (N, 2, 2)),
    "repeated": lambda x: pt.broadcast_to(x[:, None], (N, 3)),
    "product of rows": lambda x: TABLE[x] @ pt.as_tensor(np.ones((2, 3))),
    "public alone": lambda x: pt.log1p(pt.as_tensor(Z) ** 2),
    "public alone, of groups": lambda x: pt.exp(EFFECTS[GROUP])[:, None] * DESIGN,
    "entry of another axis": lambda x: pt.take_along_axis(TABLE[x], OTHER[:, None], axis=1),
}


@pytest.mark.parametrize("chosen", [[3, 1, 5], [0, 0, 2, 4, 5, 1, 1, 3]], ids=["fewer", "more"])
@pytest.mark.parametrize("name", GRAPHS)
def test_cells_have_the_entries_of_their_records(name, chosen):
    x = pt.lvector("x", shape=(N,))
    [graph] = rebuild([GRAPHS[name](x)], None, with_static_shape)
    records = RNG.integers(0, 4, N)
    at = {x: pt.constant(records[chosen])}
    rewritten = AtCells(
        N, len(chosen), at, lambda y, axis: pt.constant(known_value(y).take(chosen, axis=axis))
    ).rewrite(graph)
    inputs = [B, TABLE, EFFECTS]
    given = [VALUES[y.name] for y in inputs]
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    expected = function([x, *inputs], graph, **options)(records, *given)[chosen]
    found = function(inputs, rewritten, **options)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "write",
    [lambda x: x * pt.arange(N), lambda x: x[::-1], lambda x: x - pt.as_tensor(Z)[::-1]],
    ids=["numbered", "reversed", "of others"],
)
def test_records_that_are_told_apart_are_refused_or_looked_up(write):
    x = pt.lvector("x", shape=(N,))
    at = {x: pt.constant(np.zeros(3, dtype=int))}
    leaves = []
    try:
        AtCells(N, 3, at, lambda y, axis: leaves.append(y) or pt.zeros(3)).rewrite(write(x))
    except ReadingError:
        return
    # Public values in another order are values, too.
    np.testing.assert_array_equal(known_value(leaves[0]), Z[::-1])


N_of_picked = 6
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
    x = pt.vector("x", shape=(N_of_picked,))
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
    x = pt.vector("x", shape=(N_of_picked,))
    try:
        x, scattered = contributions(see)
    except pmd.ReadingError:  # two records at once are no sum
        return
    assert of_all_records(scattered, [x]) is scattered


def test_what_cannot_be_spread_is_refused():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.4, shape=N_of_picked)
        weight = pm.Normal("weight", shape=3)
        pm.Potential("privacy", -((x[WHERE] * weight).sum() ** 2))
    with pytest.raises(TabulationError, match="isn't known to treat each record by itself"):
        pmd.tabulate(model, [x])
