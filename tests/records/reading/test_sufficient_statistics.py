"""What factors see of the records, and what it is called."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.sufficient_statistics import MOST_NUMBERS, SufficientStatistics


def seen_of(mechanism):
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Potential("privacy", mechanism(x))
    return SufficientStatistics(read_model(model, model.value_vars, model.initial_point()))


RECORDS = [np.array([1.0, 2.0, 4.0])]


def test_sums_are_evaluated_each_once_and_named():
    seen = seen_of(lambda x: -((x.sum() - 1.0) ** 2) - pt.abs((x**2).sum() - x.sum()))
    named = dict(zip(seen.names, seen(RECORDS, []), strict=True))
    assert named == {"the sum of x": 7.0, "the sum of (x ** 2)": 21.0}


def test_entries_of_a_sum_are_told_apart():
    seen = seen_of(lambda x: -((x[:, None] * np.array([1.0, 10.0])).sum(axis=0) ** 2).sum())
    np.testing.assert_allclose(seen(RECORDS, []), [7.0, 70.0])
    assert [name[:18] for name in seen.names] == ["entry 0 of the sum", "entry 1 of the sum"]


def test_sums_of_a_long_formula_are_named_by_the_factor():
    def mechanism(x):
        distance = x[:, None] - np.array([1.0, 2.0])
        terms = pt.sqrt(1 + distance**2 * pt.exp(-distance / 7)) * pt.cos(distance * 3)
        return -(terms.sum(axis=0) ** 2).sum()

    seen = seen_of(mechanism)
    assert seen.names == ["entry 0 of what 'privacy' sees", "entry 1 of what 'privacy' sees"]


def test_a_factor_without_sums_is_seen_as_a_log_density():
    seen = seen_of(lambda x: -pt.abs(pt.sort(x)[1] - 0.5))
    assert seen.names == ["the log-density of 'privacy'"]
    np.testing.assert_allclose(seen(RECORDS, []), [-1.5])


def test_of_very_many_numbers_some_are_taken():
    of_each = np.linspace(1, 2, 3 * MOST_NUMBERS)
    seen = seen_of(lambda x: -(((x[:, None] * of_each).sum(axis=0) - 1.0) ** 2).sum())
    assert len(seen.names) == MOST_NUMBERS
    np.testing.assert_allclose(seen(RECORDS, []), 7 * of_each[::3])
