"""Log-densities as sums of terms, and what they require exactly."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.terms import walk
from pymc_dapper.graphs.terms.roles import Mixed, Reduced
from tests.counts.systems import read


@pytest.mark.parametrize(
    "potential",
    [
        lambda x: pt.switch(pt.all(pt.eq(x.sum(axis=1), [4, 5])), 0, -np.inf),
        lambda x: pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf),
        lambda x: pt.switch(pt.neq(x.sum(axis=1), [4, 5]), -np.inf, 0.0).sum(),
        lambda x: pt.switch(pt.any(pt.neq(x.sum(axis=1), [4, 5])), -np.inf, -(x**2).sum()),
        lambda x: pt.switch(~pt.all(pt.eq(x.sum(axis=1), [4, 5])), -np.inf, 0.0),
        lambda x: pm.math.log(1.0) + pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf),
        lambda x: 2.0 * pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf) / 3,
        lambda x: pt.log(pt.eq(x.sum(axis=1), [4, 5])),
        lambda x: pt.log(pt.all(pt.eq(x.sum(axis=1), [4, 5]))),
        # With something that isn't a sum of terms.
        lambda x: pt.switch(pt.all(pt.eq(x.sum(axis=1), [4, 5])), -pt.sqrt((x**2).sum()), -np.inf),
        lambda x: pt.log(pt.all(pt.eq(x.sum(axis=1), [4, 5]))) - pt.max(x),
    ],
)
def test_invariants_may_be_written_in_several_ways(potential):
    with pm.Model() as model:
        x = pm.Poisson("x", 3, shape=(2, 3))
        pm.Potential("known", potential(x))
    [known] = read(model, "x").invariants
    np.testing.assert_array_equal(
        known.rows.matrix.toarray(), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    )
    np.testing.assert_array_equal(known.rows.offset.eval(mode="FAST_COMPILE"), [-4, -5])


def test_many_terms_are_not_repeated_for_each_entry(monkeypatch):
    x = pt.vector("x", shape=(4,))
    repeated = pt.switch(pt.any(pt.eq(x, 1.0)), -np.inf, x**2)
    for most, kind in ((16, Reduced), (15, Mixed)):
        monkeypatch.setattr(walk, "MOST_ENTRIES", most)
        assert isinstance(walk.CountWalk([x], {}).follow(repeated), kind)


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_terms_of_a_sum_are_of_its_type(dtype):
    x = pt.vector("x", shape=(2,), dtype="int64")
    count = pt.gt(x, 2).astype(dtype).sum()
    for graph, expected in ((1.5 - count, -1), (count * np.uint8(2) * np.uint8(200), 400)):
        [part] = walk.CountWalk([x], {}).follow(graph).parts
        [entry] = part.terms.linear
        others = {y: float(v.eval()[0]) for y, v in part.terms.fixed.items()}
        assert part.terms.function.eval({entry: 3, **others}, mode="FAST_COMPILE") == expected
