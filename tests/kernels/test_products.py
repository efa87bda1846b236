"""Categories chosen in proportion to products of tables."""

import numpy as np
import pytest
from numba import njit

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.kernels import products as kernels
from tests.broken import edited

SIZE = 3
RNG = np.random.default_rng(1)
TABLES = [RNG.gamma(2.0, size=shape) for shape in ((3,), (2, 3), (2, 4, 3))]
WEIGHTS = np.concatenate([x.ravel() for x in TABLES])
INDICES = np.array([[0, 1, -1, 1, 0], [1, 0, 1, -2, 1], [3, -4, 2, 0, 1]])
LENGTHS, AXES = np.array([2, 2, 4]), np.array([0, 1, 2])
P = TABLES[0] * TABLES[1][INDICES[0]] * TABLES[2][tuple(INDICES[1:])]
P /= P.sum(axis=1, keepdims=True)
"""Probabilities of five entries."""


def chosen(kernel, u, weights=WEIGHTS, indices=INDICES):
    return kernel(SIZE, np.full(5, u), weights, indices.ravel(), LENGTHS, AXES)


def shares(kernel, n=4_000):
    """How often each entry chooses each category, at uniform numbers that lie evenly."""
    found = np.array([chosen(kernel, (k + 0.5) / n) for k in range(n)])
    return np.stack([(found == c).mean(axis=0) for c in range(SIZE)], axis=1)


def test_categories_are_chosen_by_their_probabilities():
    """A share of evenly spaced numbers is off by one of them at most, at each of its ends."""
    choose = in_python(kernels.choose_by_products)
    np.testing.assert_allclose(shares(choose), P, atol=2 / 4_000)
    with edited(kernels, "row_of", {"row = row * lengths[k] + at": "row = at"}):
        assert np.abs(shares(in_python(kernels.choose_by_products)) - P).max() > 0.01


@pytest.mark.long
def test_so_are_they_in_compiled_code():
    np.testing.assert_allclose(shares(njit(kernels.choose_by_products.py_func)), P, atol=2 / 4_000)


@pytest.mark.parametrize("weight", [0.0, np.inf, np.nan])
def test_nothing_is_chosen_where_products_are_no_probabilities(weight):
    """The entries that look up the second table's first row."""
    weights = WEIGHTS.copy()
    weights[3:6] = weight
    found = chosen(in_python(kernels.choose_by_products), 0.99, weights)
    np.testing.assert_array_equal(found < 0, INDICES[0] == 0)


@pytest.mark.parametrize(("axis", "value"), [(0, 2), (0, -3), (2, 4), (2, -5)])
def test_an_index_out_of_range_is_refused(axis, value):
    indices = INDICES.copy()
    indices[axis, 3] = value
    with pytest.raises(IndexError, match="out of range"):
        chosen(in_python(kernels.choose_by_products), 0.5, indices=indices)
