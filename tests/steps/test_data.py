"""Shared data are read anew; what doesn't fit any more is refused by name."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.steps.data import SharedData


@pytest.fixture
def model():
    with pm.Model(coords={"person": range(3)}) as model:
        design = pm.Data("design", [1.0, 2.0, 3.0], dims="person")
        x = pm.Poisson("x", design, dims="person")
        released = pm.Data("released", [4.0, 7.0])
        noise = pmd.GaussianMechanism(2.0).rounded()
        noise.potential("release", pm.math.stack([x.sum(), x[0]]), released=released)
    return model


def data_of(model):
    shared = [model["design"], model["released"]]
    return SharedData(
        SimpleNamespace(model=model, data=shared, view=SimpleNamespace(dim_lengths={"person": 3}))
    )


def test_changed_data_are_reported_and_taken_over(model):
    data = data_of(model)
    assert data.read() == []
    pm.set_data({"released": [4.0, 9.0]}, model=model)
    assert data.read() == [model["released"]]
    np.testing.assert_array_equal(data.values[1], [4, 9])
    assert data.read() == []


HIDDEN = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])


@pytest.mark.parametrize("values", [np.array([1.0, np.nan, 3.0]), HIDDEN])
def test_missing_values_are_refused_by_name(values, model):
    data = data_of(model)
    pm.set_data({"design": values}, model=model)
    for read in (data.read, lambda: pmd.assign_steps(model=model, progressbar=False)):
        with pytest.raises(
            pmd.ReadingError, match="'design' have missing values, masked or nan: 1 of 3"
        ):
            read()


def test_values_are_copies(model):
    data = data_of(model)
    model["design"].get_value(borrow=True)[0] = 9.0
    assert data.values[0][0] == 1.0
    assert data.read() == [model["design"]]


@pytest.mark.parametrize(
    ("new", "coords", "message"),
    [
        ({"design": np.ones(4)}, {"person": range(4)}, "the dim 'person' had length 3 .* length 4"),
        ({"released": [1, 2, 3]}, None, r"the data 'released' had shape \(2,\)"),
        ({"released": [4.0, 7.5]}, None, "releases integers"),
    ],
)
def test_what_does_not_fit_is_refused(new, coords, message, model):
    data = data_of(model)
    for name, value in new.items():
        model[name].set_value(np.asarray(value, dtype=float))
    if coords:
        model.set_dim("person", 4, coord_values=coords["person"])
    with pytest.raises(ValueError, match=message):
        data.read()
