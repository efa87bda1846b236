"""Tables with a bounded number of records of each person."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.mechanisms import LaplaceMechanism
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.plan import ByEntries
from pymc_dapper.statistics import bounded_counts, counts

NONE = 3
PERSONS = np.array(list(product(range(4), repeat=3)))
"""All that a person of three records or fewer can be."""


def by_hand(persons, at_most):
    table = np.zeros(3, dtype=int)
    for person in persons:
        for x in [x for x in person if x != NONE][:at_most]:
            table[x] += 1
    return table


@pytest.mark.parametrize("at_most", [1, 2, 3])
def test_counts_are_of_the_first_records_of_each_person(at_most):
    value = bounded_counts(PERSONS, 3, at_most=at_most).value
    np.testing.assert_array_equal(value, by_hand(PERSONS, at_most))
    x = pt.lmatrix("x")
    symbolic = bounded_counts(pt.specify_shape(x, (None, 3)), 3, at_most=at_most).value
    np.testing.assert_array_equal(symbolic.eval({x: PERSONS}, mode="FAST_COMPILE"), value)
    if at_most < 3:
        without_bound = counts(PERSONS[PERSONS != NONE], 3).value
        assert not np.array_equal(value, without_bound)


@pytest.mark.parametrize("at_most", [1, 2, 3])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_sensitivities_are_those_of_the_most_different_persons(at_most, neighbours):
    each = np.array([by_hand([person], at_most) for person in PERSONS])
    others = each if neighbours == "replace" else np.zeros((1, 3))
    change = np.abs(each[:, None] - others[None])
    found = bounded_counts(PERSONS, 3, at_most=at_most, neighbours=neighbours).sensitivity
    assert found.l1 == pytest.approx(change.sum(axis=-1).max())
    assert found.l2 == pytest.approx(np.sqrt((change**2).sum(axis=-1)).max())
    assert found.linf == pytest.approx(change.max())
    assert found.l1.exact
    if at_most > 1:  # of records instead of persons
        assert found.l1 > counts(PERSONS.ravel(), 4, neighbours=neighbours).sensitivity.l1


def test_persons_are_records_of_a_model():
    with pm.Model() as model:
        record = pm.Categorical("record", p=pm.Dirichlet("p", np.ones(4)), shape=(12, 3))
        table = bounded_counts(record, 3, at_most=2)
        LaplaceMechanism(2.0).potential("privacy", table, released=[5.0, 8.0, 3.0])
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    assert isinstance(reading.plan, ByEntries)


@pytest.mark.parametrize(
    ("record", "at_most", "message"),
    [
        ([0, 1, 2], 1, "a row for each person: it has one axis"),
        ([[0.0, 1.0]], 1, "categories, which are integers"),
        ([[0, 5]], 1, "and -1 or 3 where there is no record: 1 of 2"),
        ([[0, 1]], 3, "at most the records of a person, 2, got 3"),
        ([[0, 1]], 0, "at_most must be"),
    ],
)
def test_nonsense_is_refused(record, at_most, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bounded_counts(record, 3, at_most=at_most)
