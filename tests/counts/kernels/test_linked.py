"""Lines of linked tables leave exact posteriors as they are, by enumeration.

Packed arrays are found again.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.counts.kernels import sweep
from pymc_dapper.counts.kernels.linked import AT_ONCE, pack_linked, packed, part
from pymc_dapper.counts.kernels.sweep import sweep_counts
from tests.broken import edited
from tests.counts.kernels.test_sweep import error, normalised
from tests.counts_enumeration import Model, connected, schedule, scripted


def test_each_array_is_found_again_also_an_empty_one():
    arrays = [np.array([3, 1]), np.zeros(0, dtype=int), np.array([7])]
    joined = packed(arrays)
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(part.py_func(joined, k), array)


LINKED = scripted(sweep_counts)
SETS = [(0,), (1,), (2,), (0, 1), (1, 2), (AT_ONCE, AT_ONCE - 1), (AT_ONCE - 1, AT_ONCE - 2)]


def linked(chosen):
    """One line of the tables of a, b and of b, c, all of two categories, in which some change."""
    strides, sets = np.array([[2, 1, 0], [0, 2, 1]]), np.array([*chosen, -1, -1, -1])[:3]
    return schedule()._replace(
        linked=pack_linked(np.array([2, 2, 2]), np.array([0, 4]), strides, sets)
    )


def two_tables():
    """Both tables of two people, with noisy cells, and the number who have the first b."""
    people = product(product(range(2), repeat=3), repeat=2)
    tables = sorted({tuple(np.sum([in_cells(x) for x in each], axis=0)) for each in people})
    noisy = np.random.default_rng(0).normal(1.0, 1.0, size=9)
    seen = [*np.eye(8), [1, 0, 1, 0, 0, 0, 0, 0]]
    terms = [stats.norm.logpdf(each, np.arange(3), 1.0) for each in noisy]
    posterior = [
        sum(term[int(np.dot(sees, x))] for term, sees in zip(terms, seen, strict=True))
        for x in tables
    ]
    return Model(seen, terms), tables, normalised(posterior)


def in_cells(person):
    a, b, c = person
    return np.eye(8, dtype=int)[2 * a + b] + np.eye(8, dtype=int)[4 + 2 * b + c]


@pytest.mark.long
def test_lines_of_linked_tables_leave_the_posterior_as_it_is():
    model, tables, posterior = two_tables()
    matrices = [model.matrix(tables, linked(each), [0.5] * 9, LINKED) for each in SETS]
    assert max(error(matrix, posterior) for matrix in matrices) < 1e-10
    assert connected(*matrices[:3])
    assert not connected(*matrices[3:5])


def test_tables_that_change_alone_are_no_longer_linked():
    model, tables, _ = two_tables()
    alone = {"if n_here < (1 if at_once else n_changed):": "if table > 0:"}
    with edited(sweep, "set_linked_line", alone), pytest.raises(KeyError):
        model.matrix(tables, linked((1,)), [0.5] * 9, scripted(sweep_counts))
