"""In which cells records are counted: found if they are counted so, and nowhere else.

What records contribute by value: found where values say all, and nowhere else.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.records.reading.contributions import RowsAtOnce
from pymc_dapper.records.reading.description import describe_reading
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.rows_by_cell import (
    RowsByCell,
    indices,
    rows_by_value,
    seen_columns,
    value_index,
)
from pymc_dapper.statistics import counts, joint_counts
from tests.sweep_parts import PythonFunction, take_apart

N_of_rows_by_value = 5
COVARIATE = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
TABLE = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 3.0], [2.0, 5.0, 3.0]])


def read_of_rows_by_value(statistic, second=False):
    with pm.Model() as model:
        weights = pm.Data("weights", COVARIATE)
        x = pm.Categorical("x", np.full(3, 1 / 3), shape=N_of_rows_by_value)
        y = pm.DiscreteUniform("y", -1, 1, shape=N_of_rows_by_value) if second else None
        pm.Potential("privacy", -(statistic(x, y, weights) ** 2).sum())
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    return read_model(model, values, model.initial_point())


def table(reading):
    [sum_] = reading.sums
    return rows_by_value(sum_.contributions, reading.records, reading.possible_values)


@pytest.mark.parametrize(
    ("statistic", "rows"),
    [
        (lambda x, y, w: pt.constant(TABLE)[x].sum(axis=0), TABLE),
        (lambda x, y, w: pt.eye(3)[x].sum(axis=0), np.eye(3)),
        (lambda x, y, w: pt.eq(x[:, None], np.arange(3)).sum(axis=0), np.eye(3)),
        (lambda x, y, w: pt.eq(np.arange(3)[:, None], x).sum(axis=1), np.eye(3)),
        (lambda x, y, w: (2 * x + 1).mean(), [1.0, 3.0, 5.0]),
        (lambda x, y, w: pt.stack([x, x**2], axis=1).sum(axis=1).sum(), [0.0, 2.0, 6.0]),
    ],
    ids=["look-up", "one-hot", "equal", "transposed", "arithmetic", "over an axis"],
)
def test_contributions_by_value(statistic, rows):
    np.testing.assert_allclose(
        table(read_of_rows_by_value(statistic)).eval(mode="FAST_COMPILE"), rows
    )


@pytest.mark.parametrize(
    "statistic",
    [
        lambda x, y, w: (w * x).sum(),
        lambda x, y, w: pt.dot(w, pt.eye(3)[x]),
        lambda x, y, w: (w[:, None] * pt.eye(3)[x]).sum(axis=0),
        lambda x, y, w: pt.constant(np.arange(15.0).reshape(5, 3))[
            np.arange(N_of_rows_by_value), x
        ].sum(),
        lambda x, y, w: x[1:].sum(),
    ],
    ids=["weights", "dot", "weighted counts", "a row each", "without the first"],
)
def test_records_that_differ_by_more_than_their_value_have_a_row_each(statistic):
    assert table(read_of_rows_by_value(statistic)) is None


def test_two_variables_have_a_row_for_each_pair_of_values():
    reading = read_of_rows_by_value(
        lambda x, y, w: (pt.constant(TABLE)[x, y + 1] * y).sum(), second=True
    )
    values = reading.possible_values
    expected = [TABLE[x, y + 1] * y for x, y in values]
    np.testing.assert_allclose(table(reading).eval(mode="FAST_COMPILE"), expected)


def test_each_value_has_its_index():
    reading = read_of_rows_by_value(lambda x, y, w: (x * y).sum(), second=True)
    values = np.vstack([reading.possible_values, [[3, 0]], [[-1, 0]], [[0, 2]], [[0, -2]]])
    x, y = (pt.vector(dtype="int64") for _ in range(2))
    index = value_index([x, y], reading.possible_values).eval(
        dict(zip([x, y], values.T, strict=True)), mode="FAST_COMPILE"
    )
    np.testing.assert_array_equal(index, [*range(9), 9, 9, 9, 9])


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


def by_bincount(x, y, z):
    return pt.bincount(2 * x + z, minlength=6)


def assert_cells_are_those_contributed_to(reading, people):
    rows = reading.plan.rows
    assert isinstance(rows, RowsByCell)
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
    assert f"one in a cell of each of {len(found)} tables" in describe_reading(reading)


def test_cells_are_those_that_records_contribute_to():
    rng = np.random.default_rng(1)
    people = {"x": rng.integers(0, 3, N), "y": rng.integers(-1, 3, N), "z": rng.integers(0, 2, N)}
    assert_cells_are_those_contributed_to(read(of_xz, of_y, looked_up, by_bincount), people)


def read_matrix(*statistics):
    with pm.Model() as model:
        x = pm.DiscreteUniform("x", -1, 1, shape=(N, 4))
        z = pm.Categorical("z", np.full(2, 1 / 2), shape=N)
        for k, statistic in enumerate(statistics):
            pm.Potential(f"privacy_{k}", -((statistic(x, z) - 2.0) ** 2).sum())
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    return read_model(model, values, model.initial_point())


def test_so_it_is_with_columns_of_a_matrix():
    """A table of some columns doesn't depend on the others."""
    reading = read_matrix(
        lambda x, z: pt.stack([(pt.eq(x[:, 1], k) & pt.eq(z, 1)).sum() for k in (-1, 0, 1)]),
        lambda x, z: joint_counts([x[:, 0] + 1, x[:, -1] + 1], (3, 3)).value,
    )
    rng = np.random.default_rng(1)
    people = {"x": rng.integers(-1, 2, (N, 4)), "z": rng.integers(0, 2, N)}
    assert_cells_are_those_contributed_to(reading, people)
    seen = {tuple(np.flatnonzero(x)) for x in reading.plan.rows.strides}
    assert reading.record_names == ["x", "z"]
    assert seen == {(1, 4), (0, 3)}


def test_joint_values_of_a_whole_matrix_are_not_listed():
    reading = read_matrix(lambda x, z: counts(x.sum(axis=1) + 4, 9).value)
    assert isinstance(reading.plan.rows, RowsAtOnce)


RELEASED = np.arange(9.0).reshape(3, 3)


def table_of(a, b):
    values = (-1, 0, 1)
    return pt.stack([[(pt.eq(a, i) & pt.eq(b, j)).sum() for j in values] for i in values])


def test_a_sweep_over_a_matrix_is_that_over_its_columns():
    """Decisions and log-densities are the same, whatever is proposed."""
    rng, outcomes = np.random.default_rng(1), []
    with pm.Model() as of_columns:
        columns = [pm.DiscreteUniform(name, -1, 1, shape=N) for name in "ab"]
        pmd.GaussianMechanism(1).potential("t", table_of(*columns), released=RELEASED)
    with pm.Model() as of_matrix:
        x = pm.DiscreteUniform("x", -1, 1, shape=(N, 2))
        pmd.GaussianMechanism(1).potential("t", table_of(x[:, 0], x[:, 1]), released=RELEASED)
    decides, given = [], []
    for model in (of_columns, of_matrix):
        reading = read_model(model, model.value_vars, model.initial_point())
        assert isinstance(reading.plan.rows, RowsByCell)
        decides.append(take_apart(reading, function=PythonFunction).decide)
        given = [x.get_value() for x in reading.data]
    for _ in range(50):
        states, log_uniforms = rng.integers(-1, 2, (2, N, 2)), -rng.standard_exponential(N)
        *columns, accepted, log_density = decides[0](
            *states[0].T, *states[1].T, log_uniforms, *given
        )
        found = decides[1](*states, log_uniforms, *given)
        np.testing.assert_array_equal(found[0], np.column_stack(columns))
        np.testing.assert_array_equal(found[1], accepted)
        np.testing.assert_allclose(found[2], log_density, rtol=1e-12)
        outcomes.append(np.mean(accepted))
    assert 0 < np.mean(outcomes) < 1


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
