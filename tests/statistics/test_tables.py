"""Counts: their values, and what they take of memory."""

import tracemalloc

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

from pymc_dapper.mechanisms import LaplaceMechanism
from pymc_dapper.reading import ReadingError, read_model
from pymc_dapper.records.reading import self_check
from pymc_dapper.records.reading.plan import ByEntries
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from pymc_dapper.records.reading.self_check import check_reading
from pymc_dapper.statistics import (
    count_where,
    counts,
    cross_counts,
    histogram,
)
from tests.statistics.records import CATEGORIES, CATEGORY, NUMBERS


def test_counts_are_those_of_bincount():
    np.testing.assert_array_equal(counts(CATEGORY, 5).value, np.bincount(CATEGORY, minlength=5))
    by_column = [np.bincount(column, minlength=3) for column in CATEGORIES.T]
    np.testing.assert_array_equal(counts(CATEGORIES, 3).value, by_column)
    assert counts([True, False, True], 2).value.tolist() == [1, 2]
    assert counts(CATEGORY, 5).value.dtype.kind == "i"


def test_conditions_are_counted_by_column():
    assert count_where(CATEGORY > 1).value == np.sum(CATEGORY > 1)
    two = count_where(NUMBERS > 0)
    np.testing.assert_array_equal(two.value, (NUMBERS > 0).sum(axis=0))
    assert two.sensitivity.l1 == 2
    assert two.sensitivity.l2 == np.sqrt(2)
    # One condition may rule out another.
    assert not two.sensitivity.l1.exact
    with pytest.raises(ValueError, match="truth value for each record, but its dtype is int64"):
        count_where(CATEGORY)


def test_cross_counts_are_those_of_each_pair():
    table = cross_counts(CATEGORY, CATEGORIES[:, 0], 4, 3).value
    for j in range(4):
        for k in range(3):
            assert table[j, k] == np.sum((j == CATEGORY) & (k == CATEGORIES[:, 0]))


def test_histogram_is_numpys():
    x, edges = np.array([-3.0, -1.0, -0.5, 0.0, 0.99, 1.0, 1.5, 2.0, 2.1, np.inf]), [-1, 0, 1, 2]
    np.testing.assert_array_equal(histogram(x, edges).value, np.histogram(x, edges)[0])
    assert histogram(x, edges, outside="end_bins").value.tolist() == [3, 2, 5]
    assert histogram(x, [0, np.inf]).value.tolist() == [7]
    by_column = [np.histogram(column, edges)[0] for column in NUMBERS.T]
    np.testing.assert_array_equal(histogram(NUMBERS, edges).value, by_column)


def test_tables_of_data_take_no_array_of_records_times_cells():
    n, k = 10_000, 2_000
    x = np.random.default_rng(1).integers(k, size=n)
    tracemalloc.start()
    tables = [
        counts(x, k).value,
        cross_counts(x // 50, x % 50, 40, 50).value.ravel(),
        histogram(x.astype(float), np.arange(k + 1) - 0.5).value,
    ]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * 8 * n  # of bytes, one to each record and cell would be 2,000 n
    for table in tables:
        np.testing.assert_array_equal(table, np.bincount(x, minlength=k))


def test_many_categories_of_a_model_are_counted_without_comparing_each_with_each():
    n, k = 50, 300
    x = np.random.default_rng(1).integers(-5, k + 5, size=n)
    records = pt.vector("x", shape=(n,), dtype="int64")
    table = counts(records, k).value
    inside = x[(x >= 0) & (x < k)]
    np.testing.assert_array_equal(
        table.eval({records: x}, mode="FAST_COMPILE"), np.bincount(inside, minlength=k)
    )
    assert all(variable.type.ndim <= 1 for variable in ancestors([table]))


def many_categories(n, k):
    with pm.Model() as model:
        record = pm.Categorical("record", pm.Dirichlet("p", np.ones(k)), shape=n)
        LaplaceMechanism(4.0).potential("privacy", counts(record, k), released=np.zeros(k))
    point = model.initial_point()
    return read_model(model, [model.rvs_to_values[record]], point), point


def test_many_categories_are_read_without_an_array_of_records_times_categories(monkeypatch):
    n, k = 20_000, 400
    monkeypatch.setattr(self_check, "ENTRIES_AT_ONCE", n * k // 2)
    tracemalloc.start()
    reading, point = many_categories(n, k)
    check_reading(reading, point)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * n * k / 2
    # Nor does the sweep need one: it looks up in which cell each record is.
    assert isinstance(reading.plan, ByEntries)
    assert isinstance(reading.plan.rows, RowsByCell)


def test_a_misreading_is_found_by_blocks_of_records_too(monkeypatch):
    monkeypatch.setattr(self_check, "ENTRIES_AT_ONCE", 0)
    rows_of_others = self_check.rows_of_others
    reading, point = many_categories(30, 300)
    check_reading(reading, point)
    monkeypatch.setattr(self_check, "rows_of_others", lambda *args: 2 * rows_of_others(*args))
    with pytest.raises(ReadingError, match="record by record"):
        check_reading(reading, point)
