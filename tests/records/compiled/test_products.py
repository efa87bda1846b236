"""Compiled draws of categories by rows of tables, and by products of them."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.graphs.products import chosen_by_products, chosen_by_rows
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


def test_so_are_those_by_rows():
    """Also where a row holds no numbers, which gives the first category."""
    rng, n = np.random.default_rng(1), 700
    first, second = rng.integers(-3, 3, n), rng.integers(2, size=n)
    table, u = pt.tensor("table", shape=(3, 2, 4)), pt.tensor("u", shape=(n,))
    given = [rng.gamma(1, size=(3, 2, 4)), rng.random(n)]
    given[0][1, 0] = np.nan
    found = chosen_by_rows(u, table[first, second])
    compiled = pytensor.function([table, u], found, mode=numba_mode({}))(*given)
    in_python = pytensor.function([table, u], found, mode="FAST_COMPILE")(*given)
    np.testing.assert_array_equal(compiled, in_python)
    assert set(compiled) == {0, 1, 2, 3}
    assert not compiled[(first % 3 == 1) & (second == 0)].any()
