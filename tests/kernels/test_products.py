"""Categories chosen in proportion to products of tables."""

from itertools import pairwise

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
FAULT = "rows[i] = at[i] + length * (at[i] < 0)"
"""All axes of a table but the last are forgotten."""


def chosen(kernel, u, weights=WEIGHTS, indices=INDICES):
    """Choose for the five entries, once for each uniform number."""
    u = np.ravel(u)
    every = np.tile(indices, len(u)).ravel()
    return kernel(SIZE, np.repeat(u, 5), weights, every, LENGTHS, AXES).reshape(len(u), 5)


def shares(kernel, at_a_time, n=1_200):
    """How often each entry chooses each category, at uniform numbers that lie evenly."""
    u = (np.arange(n) + 0.5) / n
    found = np.concatenate([chosen(kernel, x) for x in np.split(u, n // at_a_time)])
    return np.stack([(found == c).mean(axis=0) for c in range(SIZE)], axis=1)


@pytest.mark.parametrize("at_a_time", [1, 20, 400])
def test_categories_are_chosen_by_their_probabilities(at_a_time):
    """A share of evenly spaced numbers is off by one of them at most, at each of its ends.

    With 5 entries no tables are multiplied, with 100 two, with 2,000 all three.
    """
    choose = in_python(kernels.choose_by_products)
    np.testing.assert_allclose(shares(choose, at_a_time), P, atol=2 / 1_200)
    with edited(
        kernels, "look_up", {"rows[i] = rows[i] * length + at[i] + length * (at[i] < 0)": FAULT}
    ):
        choose = in_python(kernels.choose_by_products)
        assert np.abs(shares(choose, at_a_time) - P).max() > 0.01


@pytest.mark.long
def test_so_are_they_in_compiled_code():
    choose = njit(kernels.choose_by_products.py_func)
    np.testing.assert_allclose(shares(choose, 400), P, atol=2 / 1_200)


@pytest.mark.parametrize(("most", "before"), [(1, [0, 1, 2, 3]), (2, [0, 2, 3]), (16, [0, 3])])
def test_neighbouring_tables_are_multiplied_as_long_as_they_are_small(most, before):
    multiply = in_python(kernels.multiply_neighbours)
    tables, firsts, found = multiply(SIZE, WEIGHTS, np.array([0, 1, 3, 11]), most)
    np.testing.assert_array_equal(found, before)
    flat = [x.reshape(-1, SIZE) for x in TABLES]
    expected = []
    for start, stop in pairwise(before):
        product = np.ones((1, SIZE))
        for table in flat[start:stop]:
            product = (product[:, None] * table).reshape(-1, SIZE)
        expected.append(product)
    np.testing.assert_allclose(tables.reshape(-1, SIZE), np.concatenate(expected))
    np.testing.assert_array_equal(firsts, np.cumsum([0, *map(len, expected)]))


@pytest.mark.parametrize("weight", [0.0, np.inf, np.nan])
def test_nothing_is_chosen_where_products_are_no_probabilities(weight):
    """The entries that look up the second table's first row."""
    weights = WEIGHTS.copy()
    weights[3:6] = weight
    found = chosen(in_python(kernels.choose_by_products), 0.99, weights)
    np.testing.assert_array_equal(found[0] < 0, INDICES[0] == 0)


@pytest.mark.parametrize(("axis", "value"), [(0, 2), (0, -3), (2, 4), (2, -5)])
def test_an_index_out_of_range_is_refused(axis, value):
    indices = INDICES.copy()
    indices[axis, 3] = value
    with pytest.raises(IndexError, match="out of range"):
        chosen(in_python(kernels.choose_by_products), 0.5, indices=indices)


def chosen_by_rows(kernel, u, indices=INDICES[1:]):
    """Choose by the rows of the third table alone."""
    u = np.ravel(u)
    every = np.tile(indices, len(u)).ravel()
    table = TABLES[2].reshape(-1, SIZE)
    return kernel(np.repeat(u, 5), table, every, LENGTHS[1:]).reshape(len(u), 5)


def test_categories_are_chosen_by_rows_of_a_table():
    """With 3,000 numbers at a time, entries are looked up in several turns."""
    n, p = 600, TABLES[2][tuple(INDICES[1:])]
    u, p = (np.arange(n) + 0.5) / n, p / p.sum(axis=1, keepdims=True)

    def far_off():
        found = chosen_by_rows(in_python(kernels.choose_by_rows), u)
        return np.abs(np.stack([(found == c).mean(axis=0) for c in range(SIZE)], axis=1) - p).max()

    assert far_off() <= 2 / n
    for line, fault in {
        "row[c + 1] += row[c]": "row[c + 1] *= row[c]",
        "bound = u[start + i] * cumulated[row, last]": "bound = u[start + i]",
        "row, at = rows[i], int64(0)": "row, at = rows[0], int64(0)",
    }.items():
        with edited(kernels, "choose_by_rows", {line: fault}):
            assert far_off() > 0.01


def test_choosing_leaves_the_table_as_it_is():
    before = TABLES[2].copy()
    chosen_by_rows(in_python(kernels.choose_by_rows), 0.5)
    np.testing.assert_array_equal(TABLES[2], before)


@pytest.mark.parametrize(("axis", "value"), [(0, 2), (0, -3), (1, 4), (1, -5)])
def test_a_row_out_of_range_is_refused(axis, value):
    indices = INDICES[1:].copy()
    indices[axis, 3] = value
    with pytest.raises(IndexError, match="out of range"):
        chosen_by_rows(in_python(kernels.choose_by_rows), 0.5, indices)
