"""What log-densities require exactly."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

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
