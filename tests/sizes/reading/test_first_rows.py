"""Factors of the rows that are there, computed from these alone: beside the model's own."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.view import view_of
from pymc_dapper.sizes.reading import first_rows
from pymc_dapper.sizes.reading.first_rows import factors_of_first_rows
from pymc_dapper.sizes.reading.model import see
from tests.sizes.models import MODELS, SIZES


def factors(model, size):
    """Each factor at a point, as it was written and as the model has it."""
    value = model.rvs_to_values[model[size]]
    seen = see(view_of(model), value)
    written = factors_of_first_rows(seen)
    own = [x.sum() for x in seen.view.log_densities([model[name] for name in written])]
    inputs = list(seen.view.values.values())
    function = compile_in_python(model, inputs, [*written.values(), *own])

    def at(point):
        values = function(*(np.asarray(point[x.name]) for x in inputs))
        return {name: (values[k], values[k + len(written)]) for k, name in enumerate(written)}

    return at, [x.name for x in seen.records]


@pytest.mark.parametrize(("name", "size"), [(k, x) for k, names in SIZES.items() for x in names])
def test_they_are_the_models_own_at_all_numbers(name, size):
    model = MODELS[name]()
    at, records = factors(model, size)
    point = model.initial_point(random_seed=1)
    for n in range(len(point[records[0]]) + 1):
        found = at(point | {size: np.array(n)})
        assert found
        for first, own in found.values():
            np.testing.assert_allclose(first, own, rtol=1e-12)


def test_rows_that_are_not_there_are_not_touched():
    model = MODELS["tied"]()
    at, _ = factors(model, "n")
    x = np.array([0.3, -1.0, np.nan, np.nan])
    for first, _ in at(model.initial_point() | {"n": np.array(2), "x": x}).values():
        assert np.isfinite(first)
    for first, _ in at(model.initial_point() | {"n": np.array(3), "x": x}).values():
        assert np.isnan(first)  # as it would if one row too many were looked at


def test_a_row_that_adds_something_when_it_is_not_there_is_left_to_the_model():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, 3)
        x = pm.Normal("x", 0, 1, shape=3)
        total = pt.switch(pmd.present(n, 3), x, 5.0).sum()
        pmd.LaplaceMechanism(1.0).potential("total", total, released=3.0)
    assert factors(model, "n")[0](model.initial_point()) == {}


def test_a_wrong_bound_is_caught(monkeypatch):
    monkeypatch.setattr(first_rows, "is_zero", lambda x: True)
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, 3)
        x = pm.Normal("x", 0, 1, shape=3)
        total = pt.switch(pmd.present(n, 3), x, 5.0).sum()
        pmd.LaplaceMechanism(1.0).potential("total", total, released=3.0)
    [(first, own)] = factors(model, "n")[0](model.initial_point()).values()
    assert abs(first - own) > 1
