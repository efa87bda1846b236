"""Shared data of a model of counts."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.counts.compiled.data import CountData
from tests.counts.systems import read


@pytest.fixture
def model():
    with pm.Model() as model:
        groups = pm.Data("groups", np.array([[1.0, 1, 0], [0, 0, 1]]))
        released = pm.Data("released", np.array([3.0, 4.0]))
        x = pm.Poisson("x", 2.0, shape=3)
        pm.Normal("sums", groups @ x, 1.0, observed=released)
    return model


def test_new_releases_are_taken_over(model):
    reading = read(model, "x")
    data = CountData(reading, reading)
    assert data.read() == []
    pm.set_data({"released": np.array([5.0, 6.0])}, model=model)
    assert [x.name for x in data.read()] == ["released"]
    assert any(np.array_equal(value, [5, 6]) for value in data.values)


def test_other_cells_in_a_sum_need_a_new_step(model):
    reading = read(model, "x")
    data = CountData(reading, reading)
    pm.set_data({"groups": np.array([[1.0, 0, 0], [0, 1, 1]])}, model=model)
    with pytest.raises(ValueError, match="'groups' say which counts are added up, and have"):
        data.read()
