"""What records contribute by value: found where values say all, and nowhere else."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.rows_by_value import rows_by_value, value_index

N = 5
COVARIATE = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
TABLE = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 3.0], [2.0, 5.0, 3.0]])


def read(statistic, second=False):
    with pm.Model() as model:
        weights = pm.Data("weights", COVARIATE)
        x = pm.Categorical("x", np.full(3, 1 / 3), shape=N)
        y = pm.DiscreteUniform("y", -1, 1, shape=N) if second else None
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
    np.testing.assert_allclose(table(read(statistic)).eval(mode="FAST_COMPILE"), rows)


@pytest.mark.parametrize(
    "statistic",
    [
        lambda x, y, w: (w * x).sum(),
        lambda x, y, w: pt.dot(w, pt.eye(3)[x]),
        lambda x, y, w: (w[:, None] * pt.eye(3)[x]).sum(axis=0),
        lambda x, y, w: pt.constant(np.arange(15.0).reshape(5, 3))[np.arange(N), x].sum(),
        lambda x, y, w: x[1:].sum(),
    ],
    ids=["weights", "dot", "weighted counts", "a row each", "without the first"],
)
def test_records_that_differ_by_more_than_their_value_have_a_row_each(statistic):
    assert table(read(statistic)) is None


def test_two_variables_have_a_row_for_each_pair_of_values():
    reading = read(lambda x, y, w: (pt.constant(TABLE)[x, y + 1] * y).sum(), second=True)
    values = reading.possible_values
    expected = [TABLE[x, y + 1] * y for x, y in values]
    np.testing.assert_allclose(table(reading).eval(mode="FAST_COMPILE"), expected)


def test_each_value_has_its_index():
    reading = read(lambda x, y, w: (x * y).sum(), second=True)
    values = np.vstack([reading.possible_values, [[3, 0]], [[-1, 0]], [[0, 2]], [[0, -2]]])
    x, y = (pt.vector(dtype="int64") for _ in range(2))
    index = value_index([x, y], reading.possible_values).eval(
        dict(zip([x, y], values.T, strict=True)), mode="FAST_COMPILE"
    )
    np.testing.assert_array_equal(index, [*range(9), 9, 9, 9, 9])
