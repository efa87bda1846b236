"""Entries are taken from variables of each role, any number of times."""

import numpy as np
import pytensor.tensor as pt
from scipy import sparse

from pymc_dapper.graphs.terms.roles import (
    Entrywise,
    Linear,
    LinearEntries,
    Part,
    Reduced,
    part_of,
    take,
)

MATRIX = sparse.csr_array(np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 3]]))
OFFSET = pt.constant([10.0, 20.0, 30.0])


def entrywise():
    x = pt.scalar("x")
    return Entrywise((3,), x**2, {x: LinearEntries(MATRIX, OFFSET)}, {})


def linear_of(terms):
    """Coefficients and values at zero of the one linear function that terms have."""
    [entries] = terms.linear.values()
    return entries.matrix.toarray(), entries.offset.eval(mode="FAST_COMPILE")


def test_of_what_is_linear_rows_and_offsets_are_taken():
    taken = take(Linear((3,), MATRIX, OFFSET), [2, 0, 2], (3, 1))
    np.testing.assert_array_equal(taken.matrix.toarray(), [[0, 0, 3], [1, 0, 0], [0, 0, 3]])
    offset = taken.offset.eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(offset, [[30], [10], [30]])


def test_of_terms_their_arguments_are_taken():
    terms = entrywise()
    assert take(terms, [0, 1, 2], (3,)) is terms
    taken = take(terms, [1, 1], (2,))
    assert set(taken.linear).isdisjoint(terms.linear)
    matrix, offset = linear_of(taken)
    np.testing.assert_array_equal(matrix, [[0, 2, 0]] * 2)
    np.testing.assert_array_equal(offset, [20, 20])


def test_of_sums_all_terms_of_an_entry_are_taken():
    # Entry 0 adds up terms 0 and 2, entry 1 is term 1.
    sums = Reduced((2,), "add", (Part(entrywise(), np.array([0, 1, 0])),))
    [part] = take(sums, [1, 0, 0], (3,)).parts
    matrix, _ = linear_of(part.terms)
    np.testing.assert_array_equal(part.targets, [0, 1, 1, 2, 2])
    np.testing.assert_array_equal(matrix.sum(axis=1), [2, 1, 3, 1, 3])


def test_terms_of_a_part_are_chosen():
    chosen = part_of(Part(entrywise(), np.array([0, 1, 0])), [2], [5])
    matrix, offset = linear_of(chosen.terms)
    np.testing.assert_array_equal(matrix, [[0, 0, 3]])
    assert (offset, chosen.targets) == ([30], [5])
