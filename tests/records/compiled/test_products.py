"""Compiled draws of categories by products of tables."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.graphs.products import chosen_by_products
from pymc_dapper.records.compiled import products  # noqa: F401  (compiles them)


def test_compiled_draws_are_those_of_numpy():
    """Also where products underflow, which gives no category."""
    rng, n = np.random.default_rng(1), 200
    row = rng.integers(-3, 3, n)
    v, w, u = pt.tensor("v", shape=(3, 4)), pt.tensor("w", shape=(4,)), pt.tensor("u", shape=(n,))
    weights = v * 1e-200
    p = weights[row] * w
    found = chosen_by_products(u, p / p.sum(axis=1, keepdims=True))
    given = [rng.gamma(1.0, size=(3, 4)), rng.gamma(1.0, size=4) * 1e-100, rng.random(n)]
    given[0][1] *= 1e-100
    compiled = pytensor.function([v, w, u], found, mode=numba_mode({}))(*given)
    np.testing.assert_array_equal(compiled, found.eval(dict(zip([v, w, u], given, strict=True))))
    np.testing.assert_array_equal(compiled < 0, row % 3 == 1)
    assert set(compiled) == {-1, 0, 1, 2, 3}
