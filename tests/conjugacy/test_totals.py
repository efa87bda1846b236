"""Sums by the entry of a parameter that terms belong to."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import ConjugateStep
from pymc_dapper.conjugacy.totals import total, total_by_category
from pymc_dapper.graphs.products import read_lookup


def test_a_category_out_of_range_is_refused_and_not_written():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        data = pm.Data("data", np.array([0, 1, 2, 2]))
        pm.Categorical("y", p, observed=data)
    step = ConjugateStep([p], model=model)
    with model:
        pm.set_data({"data": np.array([0, 1, 2, 5])})
    step.setup_chain(np.random.default_rng(1), 0, 1)
    with pytest.raises(AssertionError, match=r"a category or an index in the data.* out of range"):
        step.step(model.initial_point())


THETA = pt.matrix("theta", shape=(2, 3))


def at(graph):
    return graph.eval({THETA: np.zeros((2, 3))}, mode="FAST_COMPILE", on_unused_input="ignore")


def test_terms_are_added_up_by_entry():
    terms = pt.constant([1.0, 2.0, 4.0, 8.0])
    found = at(total(terms, THETA[[0, 1, 1, 0], [2, 0, 0, 1]], THETA))
    np.testing.assert_array_equal(found, [[0, 8, 1], [6, 0, 0]])


def test_terms_are_added_up_along_axes_that_entries_lack():
    terms = pt.constant(np.arange(12.0).reshape(2, 2, 3))
    np.testing.assert_array_equal(at(total(terms, THETA, THETA)), terms.data.sum(axis=0))
    by_row = at(total(terms, THETA[:, :1], THETA))
    np.testing.assert_array_equal(by_row[:, 0], terms.data.sum(axis=(0, 2)))
    assert not by_row[:, 1:].any()


@pytest.mark.parametrize("rows", [[0, 1, 1, 1], [-2, 1, -1, 1]])
def test_categories_are_counted_by_the_row_that_they_belong_to(rows):
    categories = pt.constant([2, 0, 0, 1])
    found = at(total_by_category(categories, THETA[rows], THETA))
    np.testing.assert_array_equal(found, [[0, 0, 1], [2, 1, 0]])
    p = pt.vector("p", shape=(3,))
    alike = total_by_category(categories, p, p).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(alike, [2, 1, 1])


CUBE = pt.tensor3("cube", shape=(2, 3, 4))


def counted(entries, categories):
    counts = total_by_category(pt.constant(categories), entries, CUBE)
    given = {CUBE: np.zeros((2, 3, 4))}
    return counts.eval(given, mode="FAST_COMPILE", on_unused_input="ignore")


@pytest.mark.parametrize("first", [4, 3, 0])
def test_rows_may_be_the_first_of_a_table_that_two_columns_look_up(first):
    """As the present ones of records of unknown number are."""
    given, categories = ([0, 1, 1, -1], [-3, 1, 2, 2]), np.array([3, 0, 2, 2])
    expected, n = np.zeros((2, 3, 4)), pt.constant(first)
    np.add.at(expected, (*(np.array(x)[:first] for x in given), categories[:first]), 1)
    entries = CUBE[tuple(pt.constant(x) for x in given)][:n]
    assert read_lookup(entries).table is CUBE
    np.testing.assert_array_equal(counted(entries, categories[:first]), expected)


@pytest.mark.parametrize("wrong", [(2, 0), (-3, 0), (0, 3), (1, -4)])
def test_each_index_of_a_row_is_checked(wrong):
    """Also where the row would be another one of the table."""
    with pytest.raises(AssertionError, match="out of range"):
        counted(CUBE[tuple(pt.constant([0, x]) for x in wrong)], np.array([1, 1]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_rows_may_be_of_a_short_type(dtype):
    """Such as the codes of a column in pandas. The table has more entries than such a type."""
    theta = pt.matrix("theta", shape=(100, 50))
    rows, categories = np.array([3, 99, 99], dtype), np.array([49, 7, 7], "int8")
    counts = total_by_category(pt.constant(categories), theta[rows], theta)
    found = counts.eval({theta: np.zeros((100, 50))}, mode="FAST_COMPILE", on_unused_input="ignore")
    assert (found[3, 49], found[99, 7], found.sum()) == (1, 2, 3)


@pytest.mark.parametrize(("row", "category"), [(2, 0), (-3, 0), (0, 3), (1, -1)])
def test_a_row_or_a_category_out_of_range_is_refused(row, category):
    """Also where it would be an entry of the next row, or of the one before."""
    rows, categories = pt.constant([0, row]), pt.constant([1, category])
    with pytest.raises(AssertionError, match="out of range"):
        at(total_by_category(categories, THETA[rows], THETA))
