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
    weights = pt.exp(v)[row] * pt.exp(w)
    found = chosen_by_products(u, weights / weights.sum(axis=1, keepdims=True))
    given = [rng.normal(size=(3, 4)), rng.normal(size=4) - 300.0, rng.random(n)]
    given[0][1] -= 500.0
    compiled = pytensor.function([v, w, u], found, mode=numba_mode({}))(*given)
    in_python = pytensor.function([v, w, u], found, mode="FAST_COMPILE")(*given)
    np.testing.assert_array_equal(compiled, in_python)
    np.testing.assert_array_equal(compiled < 0, row % 3 == 1)
    assert set(compiled) == {-1, 0, 1, 2, 3}
