"""In which cells records are counted: found if they are counted so, and nowhere else."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.records.reading.contributions import RowsAtOnce
from pymc_dapper.records.reading.description import describe_reading
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.rows_by_cell import RowsByCell, indices, seen_columns
from pymc_dapper.statistics import counts, joint_counts

N = 7


def read(*statistics, n=N):
    with pm.Model() as model:
        x = pm.Categorical("x", np.full(3, 1 / 3), shape=n)
        y = pm.DiscreteUniform("y", -1, 2, shape=n)
        z = pm.Categorical("z", np.full(2, 1 / 2), shape=n)
        for k, statistic in enumerate(statistics):
            pm.Potential(f"privacy_{k}", -((statistic(x, y, z) - 2.0) ** 2).sum())
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    return read_model(model, values, model.initial_point())


def of_xz(x, y, z):
    return joint_counts([x, z], (3, 2)).value


def of_y(x, y, z):
    return counts(y, 3).value  # who is -1 is counted nowhere


def looked_up(x, y, z):
    return pt.eye(12)[4 * x + y + 1].sum(axis=0)


def test_cells_are_those_that_records_contribute_to():
    reading = read(of_xz, of_y, looked_up)
    rows = reading.plan.rows
    assert isinstance(rows, RowsByCell)
    rng = np.random.default_rng(1)
    people = {"x": rng.integers(0, 3, N), "y": rng.integers(-1, 3, N), "z": rng.integers(0, 2, N)}
    by_name = dict(zip(reading.record_names, reading.records, strict=True))
    given = {x: people[name] for name, x in by_name.items()}
    ask = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    index = indices(reading.records, rows.low).eval(given, **ask).T
    assert np.all((index >= 0) & (index < rows.sizes))
    columns, strides = seen_columns(rows.strides)
    found = []
    for (width, *which), steps, start in zip(columns, strides, rows.starts, strict=True):
        places = start + index[:, which[:width]] @ steps[:width]
        found.append(rows.cells[places])
    # Summed by table: those of the sums, in their order.
    sums = [x.contributions.eval(given, **ask).reshape(N, -1) for x in reading.sums]
    expected = np.hstack(sums)
    counted = np.zeros(expected.shape)
    for cells in found:
        inside = cells >= 0
        counted[np.flatnonzero(inside), cells[inside]] += 1
    np.testing.assert_array_equal(counted, expected)
    assert "one in a cell of each of 3 tables" in describe_reading(reading)


@pytest.mark.parametrize(
    "statistic",
    [
        lambda x, y, z: (2 * pt.eq(x[:, None], np.arange(3))).sum(axis=0),
        lambda x, y, z: x.sum(),
        lambda x, y, z: (np.arange(N)[:, None] * pt.eye(3)[x]).sum(axis=0),
        lambda x, y, z: pt.stack([pt.ge(x, 1), pt.ge(x, 2)], axis=1).sum(axis=0),
    ],
    ids=["twice", "a sum", "by a covariate", "in two cells"],
)
def test_other_contributions_are_made_in_rows(statistic):
    assert not isinstance(read(of_xz, statistic).plan.rows, RowsByCell)


def test_large_tables_are_not_looked_up(monkeypatch):
    monkeypatch.setattr("pymc_dapper.records.reading.rows_by_cell.LARGEST_TABLE", 30)
    assert isinstance(read(of_xz).plan.rows, RowsAtOnce)
