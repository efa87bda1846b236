"""Conditional tables of columns are read as the model has them, or not at all."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.interweaving.reading.tables import agrees
from tests.interweaving.tabled import N, people_in_tables, read
from tests.long_cases import one_in_three


def test_tables_are_those_of_the_model():
    reading, point = read(people_in_tables())
    assert [rv.name for rv in reading.rvs] == ["p_class", "p_a", "p_b", "p_c"]
    np.testing.assert_array_equal(reading.tables.sizes, [2, 3, 2, 2])
    np.testing.assert_array_equal(reading.tables.strides[3], [2, 4, 0, 1])
    np.testing.assert_array_equal(reading.tables.of[0], [4, 0, 1, 2, 3])
    np.testing.assert_array_equal(reading.released.of[:, 0], [0, 1, 2, 1])
    # Another reading is noticed.
    rng = np.random.default_rng(0)
    point = {k: x + rng.normal(size=x.shape) if k.endswith("__") else x for k, x in point.items()}
    wrong = reading.tables.strides.copy()
    wrong[3, :2] = wrong[3, 1], wrong[3, 0]
    assert agrees(reading, point)
    assert not agrees(replace(reading, tables=reading.tables._replace(strides=wrong)), point)


def public_column(model):
    pm.Categorical("public", model["p_b"][0], observed=[0, 1, 1])


def other_use(model):
    pm.Potential("other", model["p_a"][0, 0])


def answer_of_each(model):
    pm.Bernoulli("answer", 0.3 + 0.2 * model["c"], observed=np.zeros(N, dtype=int))


@pytest.mark.parametrize("more", one_in_three([public_column, other_use, answer_of_each]))
def test_other_models_are_left_to_other_moves(more):
    assert read(people_in_tables(more=more))[0] is None


@pytest.mark.long
def test_columns_of_one_table_are_left_to_other_moves():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(5))
        x = [pm.Categorical(name, p, shape=60) for name in "ab"]
        total = pm.math.stack([pm.math.eq(5 * x[0] + x[1], k).sum() for k in range(25)])
        pm.Potential("released", -(((total - 2.4) / 9) ** 2).sum())
    assert read(model, ("a", "b"))[0] is None
