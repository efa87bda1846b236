"""What records contribute, and how a sweep is to make rows of it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.contributions import by_block


def test_a_matrix_of_shared_covariates_is_known_by_block():
    """Its number of columns isn't part of its type: it is that of the present data."""
    with pm.Model() as model:
        design = pm.Data("design", np.ones((9, 2)))
        record = pm.Normal("record", design @ np.array([0.5, -1.0]), shape=9)
        pm.Potential("privacy", -pt.abs(design.T @ record - 1.0).sum())
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    rows = by_block(reading.records, reading.sums)
    assert rows is not None
    assert rows.contributions.type.shape == (None, 2)
