"""What records contribute, and how a sweep is to make rows of it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.contributions import (
    RowsByBlock,
)


def test_a_matrix_of_shared_covariates_is_known_by_entry():
    """Its number of columns isn't part of its type: it is that of the present data."""
    with pm.Model() as model:
        design = pm.Data("design", np.ones((9, 2)))
        record = pm.Normal("record", design @ np.array([0.5, -1.0]), shape=9)
        pm.Potential("privacy", -pt.abs(design.T @ record - 1.0).sum())
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    rows = reading.plan.rows
    assert isinstance(rows, RowsByBlock)
    assert rows.places is not None
