"""What is linked to records, and what only has as many entries."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.records.reading.linked import length, with_linked


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"person": range(6)}) as model:
        pi = pm.Dirichlet("pi", np.ones(6))
        effects = pm.MvNormal("effects", np.zeros(6), np.eye(6))
        kind = pm.Categorical("kind", pi, dims="person")
        ability = pm.Normal("ability", effects[0], 1, dims="person")
        measured = pm.Normal("measured", 0, 1, dims="person")
        pm.Normal("seen", measured, 1, observed=np.zeros(6))
        x = pm.Normal("x", ability + measured + kind, 1, dims="person")
        child = pm.Poisson("child", x**2, dims="person")
        pm.Poisson("grandchild", child, shape=(6, 2))
        pm.Normal("total", x.sum(), 1)
        pm.Normal("apart", 0, 1, dims="person")
    return model


def test_latent_parents_and_children_of_records_are_added(model):
    found = [rv.name for rv in with_linked(model, [model["x"]], 6)]
    # Not linked: a vector with a joint prior, a parent of observed data, an unrelated variable.
    assert found == ["kind", "ability", "x", "child", "grandchild"]


def test_lengths_are_those_of_entries_that_are_drawn_one_by_one(model):
    lengths = {rv.name: length(model, rv) for rv in model.free_RVs}
    assert {name for name, n in lengths.items() if n is None} == {"pi", "effects", "total"}
    assert {n for n in lengths.values() if n is not None} == {6}
